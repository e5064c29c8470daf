package router

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

type line struct {
	SKU   string      `json:"sku"`
	Price int64       `json:"price"`
	Small int8        `json:"small"`
	Tags  []string    `json:"tags"`
	When  time.Time   `json:"when"`
	Own   ownDecoding `json:"own"`
}

// ownDecoding takes only an object with both fields, as types that check themselves do.
type ownDecoding struct{ a, b int }

func (o *ownDecoding) UnmarshalJSON(text []byte) error {
	var both struct{ A, B *int }
	if err := json.Unmarshal(text, &both); err != nil || both.A == nil || both.B == nil {
		return errors.New("needs a and b")
	}
	o.a, o.b = *both.A, *both.B
	return nil
}

type order struct {
	ID    int64            `json:"order_id"`
	Lines []line           `json:"lines"`
	By    map[string]*line `json:"by"`
}

func withData(data string) *delivery.Delivery {
	return &delivery.Delivery{Envelope: envelope.Envelope{URN: urn, Data: data}}
}

func TestTypedBinds(t *testing.T) {
	t.Parallel()
	var got order
	h := Typed(func(_ context.Context, d *delivery.Delivery, v order) error {
		got = v
		if d.URN != urn {
			t.Errorf("URN %q", d.URN)
		}
		return errBoom
	})
	err := h.Handle(t.Context(), withData(`{"order_id":9007199254740993,"lines":[{"sku":"a"}],"unknown":1}`))
	if !errors.Is(err, errBoom) || got.ID != 9007199254740993 || len(got.Lines) != 1 || got.Lines[0].SKU != "a" {
		t.Errorf("%v, %+v", err, got)
	}
	if err := h.Handle(t.Context(), withData("")); !errors.Is(err, errBoom) || got.ID != 0 {
		t.Errorf("no data: %v, %+v", err, got)
	}
}

// TestTypedNamesTheField: wherever the fault is, the error names its place and what belongs there, and shows nothing of
// what stood there.
func TestTypedNamesTheField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data, path, expected string
	}{
		"a field":                {`{"lines":[],"order_id":"secret-4111"}`, "$.order_id", "expected an integer (int64), got string"},
		"a number with digits":   {`{"order_id":4111.4111}`, "$.order_id", "expected an integer (int64), got number"},
		"out of range":           {`{"lines":[{"small":4111}]}`, "$.lines[0].small", "expected an integer (int8), got number"},
		"an element":             {`{"lines":[{"price":1},{"sku":"x","price":"secret-4111"}]}`, "$.lines[1].price", "expected an integer (int64), got string"},
		"an element of a list":   {`{"lines":[{"tags":["a","b",3]}]}`, "$.lines[0].tags[2]", "expected a string, got number"},
		"an array for an object": {`{"lines":{"0":{}}}`, "$.lines", "expected an array ([]router.line), got object"},
		"a value of a map":       {`{"by":{"x":null,"a b":{"sku":false}}}`, `$.by["a b"].sku`, "expected a string, got bool"},
		"a time":                 {`{"lines":[{"when":"4111"}]}`, "$.lines[0].when", "expected a time as RFC 3339 has it"},
		"a type of its own":      {`{"lines":[{"own":{"a":1}}]}`, "$.lines[0].own", "needs a and b"},
		"the second of equal":    {`{"order_id":1,"order_id":"secret-4111"}`, "$.order_id", "expected an integer (int64), got string"},
		"escaped":                {`{"by":{"\"]\n":4111}}`, `$.by["\"]\n"]`, "expected an object (router.line), got number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Typed(func(context.Context, *delivery.Delivery, order) error { t.Error("the handler ran"); return nil })
			err := h.Handle(t.Context(), withData(tc.data))
			wantPayloadError(t, err, tc.path, tc.expected)
			if strings.Contains(err.Error(), "4111") {
				t.Errorf("the error shows the message: %v", err)
			}
		})
	}
}

func wantPayloadError(t *testing.T, err error, path, expected string) {
	t.Helper()
	var bad *PayloadError
	var dead *delivery.DeadLetterError
	if !errors.As(err, &dead) || !errors.As(err, &bad) {
		t.Fatalf("%v is no dead-lettered PayloadError", err)
	}
	if bad.Path != path || bad.Expected != expected {
		t.Errorf("%s: %s; want %s: %s", bad.Path, bad.Expected, path, expected)
	}
	if want := "router: bad payload: " + path + ": " + expected; delivery.Reason(err).Error() != want {
		t.Errorf("the dead letter says %q, want %q", delivery.Reason(err), want)
	}
}

func TestTypedRefusesUnknownFields(t *testing.T) {
	t.Parallel()
	h := Typed(func(context.Context, *delivery.Delivery, order) error { return nil }, RefuseUnknownFields())
	if err := h.Handle(t.Context(), withData(`{"order_id":1}`)); err != nil {
		t.Error(err)
	}
	if err := h.Handle(t.Context(), withData("")); err != nil {
		t.Error(err)
	}
	err := h.Handle(t.Context(), withData(`{"lines":[{"sku":"a"},{"sku":"a","colour":{"r":1}}]}`))
	wantPayloadError(t, err, "$.lines[1].colour", "is not a field of the handler's type")
}

type byValue struct{ N int }

func (v byValue) Validate() error {
	if v.N < 1 {
		return errors.New("n must be above 0")
	}
	return nil
}

type byPointer struct{ N int }

func (v *byPointer) Validate() error {
	if v.N < 1 {
		return &PayloadError{Path: "$.N", Expected: "above 0"}
	}
	return nil
}

func TestTypedValidates(t *testing.T) {
	t.Parallel()
	const own = "n must be above 0"
	t.Run("value", func(t *testing.T) { checkValidation[byValue](t, "$", own) })
	t.Run("pointer method", func(t *testing.T) { checkValidation[byPointer](t, "$.N", "above 0") })
	t.Run("pointer type", func(t *testing.T) { checkValidation[*byPointer](t, "$.N", "above 0") })
	t.Run("pointer to value", func(t *testing.T) { checkValidation[*byValue](t, "$", own) })
}

func checkValidation[T any](t *testing.T, path, expected string) {
	t.Helper()
	ran := 0
	h := Typed(func(context.Context, *delivery.Delivery, T) error { ran++; return nil })
	if err := h.Handle(t.Context(), withData(`{"N":1}`)); err != nil || ran != 1 {
		t.Errorf("good data: %v, ran %d times", err, ran)
	}
	err := h.Handle(t.Context(), withData(`{"N":0}`))
	wantPayloadError(t, err, path, expected)
	if ran != 1 {
		t.Error("the handler ran on what Validate refused")
	}
}

func TestTypedNeedsAFunction(t *testing.T) {
	t.Parallel()
	if panics(func() { Typed[order](nil) }) == nil {
		t.Error("nil was taken")
	}
}

// TestBadPayloadIsDeadLettered: in both layouts, in the first delivery, whatever the policy for failures is.
func TestBadPayloadIsDeadLettered(t *testing.T) {
	t.Parallel()
	zero := 0.0
	h := Typed(func(context.Context, *delivery.Delivery, struct {
		Card int `json:"card"`
	}) error {
		return nil
	})
	dead := &want{
		op: flow.DeadLetter, count: "Started Failed", told: errAny,
		dead: failed("router: bad payload: $.card: expected an integer (int), got string", "*router.PayloadError"),
	}
	play(t, []row{{
		name:    "a bad payload",
		policy:  Policy{MaxAttempts: 5, LegacyRetry: Requeue, Delay: Delay{Fixed: &zero}},
		handler: h.Handle, legacy: dead, zset: dead,
	}})
}

// BenchmarkTyped compares a good payload with Bind by hand, and shows what a bad one costs.
func BenchmarkTyped(b *testing.B) {
	good, bad := `{"order_id":1,"lines":[{"sku":"a","price":1}]}`, `{"order_id":1,"lines":[{"sku":"a","price":"1"}]}`
	for name, c := range map[string]struct {
		data string
		h    delivery.Handler
	}{
		"by hand": {good, delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error { var v order; return d.Bind(&v) })},
		"good":    {good, Typed(func(context.Context, *delivery.Delivery, order) error { return nil })},
		"bad":     {bad, Typed(func(context.Context, *delivery.Delivery, order) error { return nil })},
	} {
		b.Run(name, func(b *testing.B) {
			d := withData(c.data)
			b.ReportAllocs()
			for b.Loop() {
				_ = c.h.Handle(context.Background(), d)
			}
		})
	}
}
