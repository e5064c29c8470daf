package router

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/jsonpath"
)

// TypedOption changes what Typed accepts.
type TypedOption func(*typed)

// RefuseUnknownFields makes Typed refuse data with a field that T does not have. Without it such fields are ignored,
// so that a producer may add some before its consumers know them.
func RefuseUnknownFields() TypedOption { return func(t *typed) { t.strict = true } }

// typed is what the options of Typed set.
type typed struct{ strict bool }

// Typed makes a handler of a function that takes the message's data as a T, bound as Delivery.Bind does. When T or *T
// has a method Validate() error, it is called on what was bound.
//
// Data that does not fit T, or that Validate refuses, is dead-lettered as failed at once, whatever MaxAttempts says: no
// retry can mend it. The error is a *PayloadError, which names the field. f is not called then. A field that is missing
// is left zero, as encoding/json does; have Validate refuse it, or use package schema.
func Typed[T any](f func(ctx context.Context, d *delivery.Delivery, v T) error, options ...TypedOption) delivery.Handler {
	if f == nil {
		panic("router: Typed needs a function")
	}
	var t typed
	for _, option := range options {
		option(&t)
	}
	return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
		var v T
		if err := t.bind(d, &v); err != nil {
			return delivery.DeadLetter(payloadError(d.Data, err, func(data string) error { var v T; return t.unmarshal(data, &v) }))
		}
		if err := validate(&v); err != nil {
			return delivery.DeadLetter(invalid(err))
		}
		return f(ctx, d, v)
	})
}

func (t typed) bind(d *delivery.Delivery, v any) error {
	if !t.strict {
		return d.Bind(v)
	}
	return t.unmarshal(d.Data, v)
}

func (t typed) unmarshal(data string, v any) error {
	if data == "" {
		data = "{}"
	}
	decoder := json.NewDecoder(strings.NewReader(data))
	if t.strict {
		decoder.DisallowUnknownFields()
	}
	return decoder.Decode(v)
}

// validate calls Validate where T or *T has it; v is a *T.
func validate[T any](v *T) error {
	if own, ok := any(v).(interface{ Validate() error }); ok { // the methods of *T, and so those of T
		return own.Validate()
	}
	if own, ok := any(*v).(interface{ Validate() error }); ok { // T is a pointer, or an interface
		return own.Validate()
	}
	return nil
}

// invalid is what Validate said, as a PayloadError.
func invalid(err error) error {
	if own := new(PayloadError); errors.As(err, &own) {
		return err
	}
	return &PayloadError{Path: jsonpath.Root, Expected: err.Error(), Err: err}
}
