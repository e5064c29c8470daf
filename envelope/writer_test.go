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
	"pgregory.net/rapid"
)

// TestWriterWritesWhatEncodeDoes holds the two ways to a text together: bytes and errors.
func TestWriterWritesWhatEncodeDoes(t *testing.T) { // E1, E2
	t.Parallel()
	words := rapid.SampledFrom([]string{"", " ", "urn:babel:orders:created", " a ", "é\u2028", "a\"b\\\n\x01", "\xff<&>/",
		"seventeen letters", "eight_by", "eight__\"", "eight__\x1f", "eight__é", strings.Repeat("long ", 50)})
	datas := rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]any{
			nil, map[string]any(nil), struct{}{}, struct {
				N int
				S string
			}{7, "<é>\u2029"},
			map[string]any{"b": 1.5, "a": json.Number("1e400")}, json.RawMessage(" {\"a\" : 1.0}\n"), json.RawMessage(nil),
			json.RawMessage("{\"a\":\"\xff\"}"), json.RawMessage("{"), json.RawMessage("null"), []int{1}, "{}", 5,
			struct{ R json.RawMessage }{json.RawMessage("\"\xff\"")}, refuses{}, math.NaN(),
		}).Draw(t, "data")
	})
	rapid.Check(t, func(t *rapid.T) {
		queue := words.Draw(t, "queue")
		w := NewWriter(queue)
		for range 3 { // one after the other, since a Writer keeps things
			m := Fresh{URN: words.Draw(t, "urn"), Data: datas.Draw(t, "data"), ID: words.Draw(t, "id"),
				TraceID:   words.Filter(func(s string) bool { return strings.TrimSpace(s) != "" }).Draw(t, "trace"),
				CreatedAt: rapid.SampledFrom([]int64{0, 1, -1, 1749132727000}).Draw(t, "at")}
			got, err := w.Text(&m)
			e, wantErr := New(m.URN, queue, m.Data, WithTraceID(m.TraceID), WithCreatedAt(time.UnixMilli(m.CreatedAt)))
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("%+v: error %v, want %v", m, err, wantErr)
			}
			if err != nil {
				continue
			}
			e.Meta.ID = m.ID
			if diff := cmp.Diff(e.Encode(), string(got)); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
		}
	})
}

func TestWriterMakesIDs(t *testing.T) { // E2
	t.Parallel()
	w, seen := NewWriter("orders"), map[string]bool{}
	check := func(id string) {
		if u, err := uuid.Parse(id); err != nil || u.Version() != 4 || u.Variant() != uuid.RFC4122 || u.String() != id {
			t.Errorf("%q is no UUIDv4: %v", id, err)
		}
		if seen[id] {
			t.Errorf("%s came twice", id)
		}
		seen[id] = true
	}
	for range 500 { // more than one supply of randomness
		m := Fresh{URN: "u", ID: w.NewID(), TraceID: " "}
		text, err := w.Text(&m)
		if err != nil {
			t.Fatal(err)
		}
		e := mustDecode(t, string(text))
		check(e.Meta.ID)
		check(e.TraceID)
	}
}

// TestWriterAfterTrouble: neither an error nor a huge message shows in the next text.
func TestWriterAfterTrouble(t *testing.T) {
	t.Parallel()
	w := NewWriter("orders")
	want := `{"job":"u","trace_id":"t","data":{},"meta":{"id":"i","queue":"orders","lang":"go","schema_version":1,` +
		`"created_at":5},"attempts":0}`
	huge := map[string]string{"pad": strings.Repeat("x", 2*keptBuffer)}
	deep := json.RawMessage(strings.Repeat(`{"k":`, maxDepth) + "0" + strings.Repeat("}", maxDepth))
	for _, trouble := range []struct {
		m   Fresh
		err error
	}{
		{Fresh{URN: "\t"}, ErrEmptyURN},
		{Fresh{URN: "u", Data: refuses{}}, errRefused},
		{Fresh{URN: "u", Data: []int{1}}, ErrDataNotObject},
		{Fresh{URN: "u", Data: deep}, ErrDataNotObject},
		{Fresh{URN: "u", Data: huge}, nil},
	} {
		if text, err := w.Text(&trouble.m); !errors.Is(err, trouble.err) || (text == nil) != (err != nil) {
			t.Errorf("%.40q, %v; want %v", text, err, trouble.err)
		}
		text, err := w.Text(&Fresh{URN: "u", ID: "i", TraceID: "t", CreatedAt: 5})
		if err != nil || string(text) != want {
			t.Errorf("after %v: %s, %v", trouble.err, text, err)
		}
		if cap(text) > keptBuffer {
			t.Errorf("the writer keeps %d bytes", cap(text))
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	type order struct {
		OrderID int64  `json:"order_id"`
		Note    string `json:"note"`
	}
	w := NewWriter("orders")
	m := Fresh{URN: "urn:babel:orders:created", Data: order{1042, strings.Repeat("x", 40)}, CreatedAt: 1749132727000}
	b.ReportAllocs()
	for b.Loop() {
		m.ID = w.NewID()
		if _, err := w.Text(&m); err != nil {
			b.Fatal(err)
		}
	}
}
