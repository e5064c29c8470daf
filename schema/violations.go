package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/babelpool/babelpool/internal/jsonpath"
)

// most is how many members a rule about members names; a message may have any number of them.
const most = 20

// violations are the rules at the bottom of an error: a broken rule that consists of others is told by those, but for
// alternatives, of which none is the one that was meant.
func violations(err *jsonschema.ValidationError, value any) []Violation {
	var all []Violation
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf, *kind.Not:
		default:
			if len(e.Causes) > 0 {
				for _, cause := range e.Causes {
					walk(cause)
				}
				return
			}
		}
		all = append(all, broken(e, value)...)
	}
	walk(err)
	slices.SortFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Expected, b.Expected))
	})
	return slices.Compact(all)
}

// broken is what one rule finds wrong; a rule about members names each.
func broken(e *jsonschema.ValidationError, value any) []Violation {
	path := pathOf(e.InstanceLocation, value)
	rule := ruleOf(e.ErrorKind)
	each := func(keys []string, expected string) []Violation {
		all := make([]Violation, 0, min(len(keys), most))
		for _, key := range keys[:min(len(keys), most)] {
			all = append(all, Violation{path + jsonpath.Key(key), rule, expected})
		}
		return all
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(k.Missing, "is missing")
	case *kind.DependentRequired:
		return each(k.Missing, "is missing beside "+strconv.Quote(k.Prop))
	case *kind.Dependency:
		return each(k.Missing, "is missing beside "+strconv.Quote(k.Prop))
	case *kind.AdditionalProperties:
		return each(k.Properties, "is not allowed")
	}
	return []Violation{{path, rule, expectation(e.ErrorKind)}}
}

// pathOf spells a place in a value, which tells members from elements.
func pathOf(location []string, value any) string {
	path := jsonpath.Root
	for _, step := range location {
		if list, ok := value.([]any); ok {
			i, err := strconv.Atoi(step)
			if err == nil && i >= 0 && i < len(list) {
				path, value = path+jsonpath.Index(i), list[i]
				continue
			}
		}
		object, _ := value.(map[string]any)
		path, value = path+jsonpath.Key(step), object[step]
	}
	return path
}

// ruleOf is the keyword of a rule.
func ruleOf(k jsonschema.ErrorKind) string {
	switch k.(type) {
	case *kind.FalseSchema:
		return "false"
	case *kind.Not:
		return "not"
	}
	if path := k.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return "schema"
}

// expectation says what a rule asks for, in the schema's words and never in the message's.
func expectation(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "expected " + strings.Join(k.Want, " or ") + ", got " + k.Got
	case *kind.Enum:
		return "must be one of " + texts(k.Want)
	case *kind.Const:
		return "must be " + texts([]any{k.Want})
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be above " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be below " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d elements", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d elements", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d fields", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d fields", k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("elements %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.AnyOf:
		return "fits none of the alternatives"
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return "fits more than one of the alternatives"
		}
		return "fits none of the alternatives"
	case *kind.Not:
		return "must not fit the schema in not"
	case *kind.FalseSchema:
		return "nothing may stand here"
	}
	return "is broken"
}

// texts are values of a schema as JSON, cut short when there are many.
func texts(values []any) string {
	var all []string
	for i, v := range values {
		if i == most {
			all = append(all, "…")
			break
		}
		text, err := json.Marshal(v)
		if err != nil {
			continue // it came from JSON, so it cannot be
		}
		all = append(all, string(text))
	}
	return strings.Join(all, ", ")
}

// number spells a number of a schema.
func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
