package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
)

// Set holds compiled schemas by URN. It is safe for concurrent use.
type Set struct {
	schemas map[string]*jsonschema.Schema
}

// Compile compiles schemas, JSON texts by URN. All problems are joined in one ErrSchema; each names its URN.
func Compile(byURN map[string]string) (*Set, error) {
	s := &Set{schemas: make(map[string]*jsonschema.Schema, len(byURN))}
	var problems []error
	for urn, text := range byURN {
		compiled, err := compile(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%q: %w", urn, err))
			continue
		}
		s.schemas[urn] = compiled
	}
	if len(problems) == 0 {
		return s, nil
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return nil, fmt.Errorf("%w:\n%w", ErrSchema, errors.Join(problems...))
}

// place is the schema's own address: references within it are resolved against it.
const place = "schema:///"

func compile(text string) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refuseAll{})
	c.AssertFormat()
	if err := c.AddResource(place, document); err != nil {
		return nil, err
	}
	return c.Compile(place)
}

// refuseAll loads nothing: a schema that names a file or an address must not make a program read it.
type refuseAll struct{}

var errElsewhere = errors.New("a schema must not refer to anything outside itself")

func (refuseAll) Load(string) (any, error) { return nil, errElsewhere }

// Validate is a middleware, for Mux.Use. Messages that break the schema of their URN are dead-lettered as failed, with
// an *Error, and do not reach next.
func (s *Set) Validate(next delivery.Handler) delivery.Handler {
	return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
		if err := s.check(d.URN, d.Data); err != nil {
			return delivery.DeadLetter(err)
		}
		return next.Handle(ctx, d)
	})
}

// Check reports whether data may be published under a URN: what Publish would make of it breaks no schema. The error is
// an *Error, or says that the data cannot be encoded; it is nil for a URN without a schema.
func (s *Set) Check(urn string, data any) error {
	e, err := envelope.New(urn, "", data)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return s.check(e.URN, e.Data)
}

func (s *Set) check(urn, data string) error {
	schema, ok := s.schemas[urn]
	if !ok {
		return nil
	}
	if data == "" {
		data = "{}"
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
	if err != nil {
		return &Error{URN: urn, Violations: []Violation{{Path: "$", Rule: "type", Expected: "is no JSON"}}}
	}
	err = schema.Validate(value)
	var broken *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &broken):
		return &Error{URN: urn, Violations: violations(broken, value)}
	}
	return fmt.Errorf("schema: %w", err)
}
