package envelope

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestNewGenerates(t *testing.T) { // E2
	t.Parallel()
	before := time.Now().UnixMilli()
	e, err := New(" urn:babel:orders:created\n", "orders", map[string]any{"order_id": 1042}, WithID(" "), WithTraceID("\t"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{e.TraceID, e.Meta.ID} {
		if u, err := uuid.Parse(id); err != nil || u.Version() != 4 || id != u.String() {
			t.Errorf("%q is no UUIDv4: %v", id, err)
		}
	}
	if e.TraceID == e.Meta.ID {
		t.Error("one UUID was used for both ids")
	}
	if after := time.Now().UnixMilli(); e.Meta.CreatedAt < before || e.Meta.CreatedAt > after {
		t.Errorf("created_at %d is not in [%d, %d]", e.Meta.CreatedAt, before, after)
	}
	want := Envelope{URN: "urn:babel:orders:created", TraceID: e.TraceID, Data: `{"order_id":1042}`,
		Meta: Meta{ID: e.Meta.ID, Queue: "orders", Lang: "go", CreatedAt: e.Meta.CreatedAt}}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNewOptions(t *testing.T) {
	t.Parallel()
	e, err := New("urn:babel:orders:created", "orders", struct {
		OrderID int `json:"order_id"`
	}{1042},
		WithID("f1e2d3c4-b5a6-4789-90ab-cdef01234567"),
		WithTraceID("7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"),
		WithCreatedAt(time.UnixMilli(1749132727000).Add(999*time.Microsecond)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(canonical, e.Encode()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNewBlankURN(t *testing.T) { // E2
	t.Parallel()
	for _, urn := range []string{"", " ", "\t\u2003\n"} {
		if e, err := New(urn, "orders", nil); !errors.Is(err, ErrEmptyURN) || !cmp.Equal(e, Envelope{}) {
			t.Errorf("%q: got %v", urn, err)
		}
	}
}

type refuses struct{}

var errRefused = errors.New("refused")

func (refuses) MarshalJSON() ([]byte, error) { return nil, errRefused }

func TestNewData(t *testing.T) { // E1, E6
	t.Parallel()
	deep := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"k":`, n) + "0" + strings.Repeat("}", n))
	}
	for _, tc := range []struct {
		name string
		data any
		want string
		err  error
	}{
		{"nil", nil, `{}`, nil},
		{"nil map", map[string]int(nil), `{}`, nil},
		{"nil pointer", (*struct{})(nil), `{}`, nil},
		{"empty raw", json.RawMessage{}, `{}`, nil},
		{"nil raw", json.RawMessage(nil), `{}`, nil},
		{"empty struct", struct{}{}, `{}`, nil},
		{"no HTML escaping", map[string]string{"h": "<a&b>/é"}, `{"h":"<a&b>/é"}`, nil},
		{"raw keeps its numbers", json.RawMessage(" {\n \"big\" : 9007199254740993 , \"f\":1.0,\"e\":1e400,\"s\":\" a \\/\"}\n"),
			`{"big":9007199254740993,"f":1.0,"e":1e400,"s":" a \/"}`, nil},
		{"raw inside a struct", struct{ R json.RawMessage }{json.RawMessage(`{"x": 1.0}`)}, `{"R":{"x":1.0}}`, nil},
		{"json.Number", map[string]any{"n": json.Number("123456789012345678901234567890")},
			`{"n":123456789012345678901234567890}`, nil},
		{"invalid UTF-8 in a string", map[string]string{"s": "a\xff"}, `{"s":"a\ufffd"}`, nil},
		{"as deep as it goes", deep(maxDepth - 1), string(deep(maxDepth - 1)), nil},

		{"array", []int{1}, "", ErrDataNotObject},
		{"string", "{}", "", ErrDataNotObject},
		{"number", 5, "", ErrDataNotObject},
		{"raw null", json.RawMessage("null"), "", ErrDataNotObject},
		{"raw array", json.RawMessage("[]"), "", ErrDataNotObject},
		{"raw that is no JSON", json.RawMessage("{"), "", ErrDataNotObject},
		{"two raw objects", json.RawMessage("{}{}"), "", ErrDataNotObject},
		{"raw with invalid UTF-8", json.RawMessage("{\"a\":\"\xff\"}"), "", ErrDataNotObject},
		{"one level too deep", deep(maxDepth), "", ErrDataNotObject},
		{"what encoding/json refuses", refuses{}, "", errRefused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e, err := New("u", "q", tc.data)
			if !errors.Is(err, tc.err) || e.Data != tc.want {
				t.Fatalf("got %.200s, %v", e.Data, err)
			}
			if err == nil {
				mustDecode(t, e.Encode())
			}
		})
	}
	var unsupported *json.UnsupportedValueError
	if _, err := New("u", "q", map[string]any{"x": math.NaN()}); !errors.As(err, &unsupported) {
		t.Errorf("NaN: %v", err)
	}
}
