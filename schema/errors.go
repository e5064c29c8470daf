package schema

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSchema is returned by Compile when a schema is none. The error names every URN at fault.
var ErrSchema = errors.New("schema: not a usable schema")

// Violation is one place of the data that breaks a rule.
type Violation struct {
	// Path is where, as a JSONPath: $ is data itself, $.lines[2].price a field of it. For a missing field it is
	// where that should be.
	Path string
	// Rule is the keyword of the schema that is broken: type, required, maximum …
	Rule string
	// Expected says what the rule asks for.
	Expected string
}

// String is "path: rule: expected".
func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Path, v.Rule, v.Expected) }

// Error is the failure of data that breaks its URN's schema.
type Error struct {
	// URN is the kind of message.
	URN string
	// Violations are what is wrong, in the order of their paths. There is at least one.
	Violations []Violation
}

// shown is how many violations the text of an Error has.
const shown = 5

// Error names the first violations.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("schema: data breaks its schema: ")
	for i, v := range e.Violations {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(e.Violations)-shown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.String())
	}
	return b.String()
}
