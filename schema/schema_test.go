package schema

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/routertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const urn = "urn:babel:orders:created"

const orders = `{
	"type": "object",
	"properties": {
		"order_id": {"type": "integer", "minimum": 1},
		"state": {"enum": ["new", "paid", 7]},
		"kind": {"const": "order"},
		"email": {"type": "string", "format": "email", "maxLength": 20},
		"code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2},
		"price": {"type": "number", "exclusiveMinimum": 0, "maximum": 99.5, "multipleOf": 0.5},
		"big": {"type": "integer", "exclusiveMaximum": 9007199254740993},
		"lines": {"type": "array", "minItems": 1, "maxItems": 3, "uniqueItems": true, "items": {"$ref": "#/$defs/line"}},
		"by": {"type": "object", "additionalProperties": {"$ref": "#/$defs/line"}, "maxProperties": 2, "minProperties": 1},
		"pay": {"oneOf": [{"required": ["card"]}, {"required": ["bank"]}]},
		"who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
		"odd": {"not": {"type": "string"}},
		"never": false
	},
	"required": ["order_id", "kind"],
	"dependentRequired": {"email": ["code"]},
	"additionalProperties": false,
	"$defs": {"line": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}}
}`

func set(t *testing.T, text string) *Set {
	t.Helper()
	s, err := Compile(map[string]string{urn: text})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestViolations: each rule is named with its place and with what it asks for; the message's own values are not shown.
func TestViolations(t *testing.T) {
	t.Parallel()
	s := set(t, orders)
	for data, want := range map[string][]Violation{
		``:                                  {{"$.kind", "required", "is missing"}, {"$.order_id", "required", "is missing"}},
		`{"order_id":1,"kind":"order"}`:     nil,
		`{"order_id":"4111","kind":"4111"}`: {{"$.kind", "const", `must be "order"`}, {"$.order_id", "type", "expected integer, got string"}},
		`{"order_id":0,"kind":"order"}`:     {{"$.order_id", "minimum", "must be at least 1"}},
		`{"order_id":1,"kind":"order","state":"4111"}`:         {{"$.state", "enum", `must be one of "new", "paid", 7`}},
		`{"order_id":1,"kind":"order","code":"4111"}`:          {{"$.code", "pattern", "must match ^[a-z]+$"}},
		`{"order_id":1,"kind":"order","code":"x"}`:             {{"$.code", "minLength", "must have at least 2 characters"}},
		`{"order_id":1,"kind":"order","code":"xx","email":4}`:  {{"$.email", "type", "expected string, got number"}},
		`{"order_id":1,"kind":"order","email":"a@b.c"}`:        {{"$.code", "dependentRequired", `is missing beside "email"`}},
		`{"order_id":1,"kind":"order","price":4111}`:           {{"$.price", "maximum", "must be at most 99.5"}},
		`{"order_id":1,"kind":"order","price":0}`:              {{"$.price", "exclusiveMinimum", "must be above 0"}},
		`{"order_id":1,"kind":"order","price":0.7}`:            {{"$.price", "multipleOf", "must be a multiple of 0.5"}},
		`{"order_id":1,"kind":"order","big":9007199254740993}`: {{"$.big", "exclusiveMaximum", "must be below 9007199254740993"}},
		`{"order_id":1,"kind":"order","big":9007199254740992}`: nil, // numbers keep their digits
		`{"order_id":1,"kind":"order","lines":[]}`:             {{"$.lines", "minItems", "must have at least 1 elements"}},
		`{"order_id":1,"kind":"order","lines":[{"sku":"a"},{},{"sku":4111}]}`: {
			{"$.lines[1].sku", "required", "is missing"}, {"$.lines[2].sku", "type", "expected string, got number"},
		},
		`{"order_id":1,"kind":"order","lines":[{"sku":"a"},{"sku":"a"}]}`:       {{"$.lines", "uniqueItems", "elements 0 and 1 are equal"}},
		`{"order_id":1,"kind":"order","lines":{"0":1}}`:                         {{"$.lines", "type", "expected array, got object"}},
		`{"order_id":1,"kind":"order","by":{"0":{},"a b":{"sku":"x"}}}`:         {{`$.by["0"].sku`, "required", "is missing"}},
		`{"order_id":1,"kind":"order","by":{}}`:                                 {{"$.by", "minProperties", "must have at least 1 fields"}},
		`{"order_id":1,"kind":"order","pay":{}}`:                                {{"$.pay", "oneOf", "fits none of the alternatives"}},
		`{"order_id":1,"kind":"order","pay":{"card":"4111","bank":1}}`:          {{"$.pay", "oneOf", "fits more than one of the alternatives"}},
		`{"order_id":1,"kind":"order","who":4111}`:                              {{"$.who", "anyOf", "fits none of the alternatives"}},
		`{"order_id":1,"kind":"order","odd":"4111"}`:                            {{"$.odd", "not", "must not fit the schema in not"}},
		`{"order_id":1,"kind":"order","never":4111}`:                            {{"$.never", "false", "nothing may stand here"}},
		`{"order_id":1,"kind":"order","x y":4111,"z":4111}`:                     {{"$.z", "additionalProperties", "is not allowed"}, {`$["x y"]`, "additionalProperties", "is not allowed"}},
		`{"order_id":1,"kind":"order","code":"xx","email":"4111@example.com "}`: {{"$.email", "format", "must be a valid email"}},
	} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			err := s.check(urn, data)
			if want == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var bad *Error
			if !errors.As(err, &bad) || bad.URN != urn {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(want, bad.Violations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "4111") {
				t.Errorf("the error shows the message: %v", err)
			}
		})
	}
}

func TestTheTextOfManyViolations(t *testing.T) {
	t.Parallel()
	s := set(t, `{"additionalProperties": false}`)
	fields := make([]string, 100_000)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f%d":1`, i)
	}
	err := s.check(urn, "{"+strings.Join(fields, ",")+"}")
	var bad *Error
	if !errors.As(err, &bad) || len(bad.Violations) != most || !strings.HasSuffix(err.Error(), "; and 15 more") || len(err.Error()) > 1000 {
		t.Errorf("%d violations: %.200s", len(bad.Violations), err)
	}
}

func TestCompileNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "line.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Compile(map[string]string{
		"urn:good": `{"type":"string"}`, "urn:true": "true", "urn:text": `{"type":`, "urn:type": `{"type":"strin"}`,
		"urn:file": `{"$ref":"file://` + file + `"}`, "urn:relative": `{"$ref":"line.json"}`, "urn:net": `{"$ref":"https://example.com/s.json"}`,
		"urn:inside": `{"$ref":"#/$defs/none"}`, "urn:old": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`,
	})
	if !errors.Is(err, ErrSchema) {
		t.Fatalf("got %v", err)
	}
	for urn, bad := range map[string]bool{
		"urn:good": false, "urn:true": false, "urn:old": false, "urn:text": true, "urn:type": true, "urn:file": true, "urn:relative": true,
		"urn:net": true, "urn:inside": true,
	} {
		if strings.Contains(err.Error(), urn) != bad {
			t.Errorf("%s is named: %t, in %v", urn, !bad, err)
		}
	}
	if n := strings.Count(err.Error(), errElsewhere.Error()); n != 3 {
		t.Errorf("%d references are refused, want 3: %v", n, err)
	}
}

func TestValidateIsAMiddleware(t *testing.T) {
	t.Parallel()
	ran := 0
	mux := router.NewMux()
	mux.Use(set(t, `{"required":["order_id"]}`).Validate)
	for _, u := range []string{urn, "urn:other"} {
		mux.HandleFunc(u, func(context.Context, *delivery.Delivery) error { ran++; return nil })
	}
	for _, layout := range []routertest.Layout{routertest.Legacy, routertest.Zset} {
		ran = 0
		kit := routertest.New(routertest.Config{Handler: mux, Layout: layout, Policy: router.Policy{MaxAttempts: 5, LegacyRetry: router.Requeue}})
		bad := kit.Run(t.Context(), routertest.Message{URN: urn, Data: map[string]any{"n": 1}})
		const want = `"error":"schema: data breaks its schema: $.order_id: required: is missing","exception":"*schema.Error"`
		if bad.Fate != routertest.DeadLettered || bad.Reason != "failed" || !strings.Contains(bad.Record, want) || ran != 0 {
			t.Errorf("%v, ran %d times: %s", bad, ran, bad.Record)
		}
		for _, m := range []routertest.Message{{URN: urn, Data: map[string]any{"order_id": nil}}, {URN: "urn:other"}} {
			if out := kit.Run(t.Context(), m); out.Fate != routertest.Acked {
				t.Errorf("%s: %v", m.URN, out)
			}
		}
	}
}

func TestCheckBeforePublishing(t *testing.T) {
	t.Parallel()
	s := set(t, `{"properties":{"order_id":{"type":"integer"}}}`)
	type order struct {
		ID any `json:"order_id"`
	}
	var bad *Error
	if err := s.Check(urn, order{"x"}); !errors.As(err, &bad) || bad.Violations[0].Path != "$.order_id" {
		t.Errorf("got %v", err)
	}
	if err := s.Check(" "+urn+" ", order{"x"}); !errors.As(err, &bad) {
		t.Errorf("the URN is not trimmed: %v", err)
	}
	for _, data := range []any{nil, order{1}, map[string]any{"order_id": 5.0}} {
		if err := s.Check(urn, data); err != nil {
			t.Errorf("%v: %v", data, err)
		}
	}
	for _, data := range []any{[]int{1}, order{math.NaN()}} {
		if err := s.Check(urn, data); err == nil || errors.As(err, &bad) && bad == nil {
			t.Errorf("%v: %v", data, err)
		}
	}
	if err := s.Check("urn:other", order{"x"}); err != nil {
		t.Errorf("a URN without a schema: %v", err)
	}
}

// BenchmarkValidate is what a check costs beside the handler's own Bind.
func BenchmarkValidate(b *testing.B) {
	s, err := Compile(map[string]string{urn: orders})
	if err != nil {
		b.Fatal(err)
	}
	h := s.Validate(delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil }))
	d := new(delivery.Delivery)
	d.URN, d.Data = urn, `{"order_id":1,"kind":"order","lines":[{"sku":"a"},{"sku":"b"}],"price":7.5}`
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Handle(context.Background(), d); err != nil {
			b.Fatal(err)
		}
	}
}
