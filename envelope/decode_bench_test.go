package envelope

import (
	stdjson "encoding/json"
	"fmt"
	"strings"
	"testing"

	gojson "github.com/goccy/go-json"
)

// structEnvelope is what a decoder with reflection would fill.
type structEnvelope struct {
	Job        *string            `json:"job"`
	URN        *string            `json:"urn"`
	TraceID    string             `json:"trace_id"`
	Data       stdjson.RawMessage `json:"data"`
	Attempts   *int64             `json:"attempts"`
	DeadLetter stdjson.RawMessage `json:"dead_letter"`
	Meta       struct {
		ID            string `json:"id"`
		Queue         string `json:"queue"`
		Lang          string `json:"lang"`
		SchemaVersion int    `json:"schema_version"`
		CreatedAt     int64  `json:"created_at"`
	} `json:"meta"`
}

// decodeStruct does with a general decoder what comes nearest to Decode. It
// does less: nothing of UTF-8, unknown keys, forbidden keys or names in another
// case.
func decodeStruct(unmarshal func([]byte, any) error, text string) (Envelope, error) {
	var s structEnvelope
	if err := unmarshal([]byte(text), &s); err != nil {
		return Envelope{}, err
	}
	if s.Job == nil {
		s.Job = s.URN
	}
	if s.Job == nil || s.TraceID == "" || len(s.Data) == 0 || s.Data[0] != '{' || s.Meta.SchemaVersion != SchemaVersion {
		return Envelope{}, ErrPoison
	}
	e := Envelope{URN: *s.Job, TraceID: s.TraceID, Data: string(s.Data), DeadLetter: string(s.DeadLetter),
		Meta: Meta{ID: s.Meta.ID, Queue: s.Meta.Queue, Lang: s.Meta.Lang, CreatedAt: s.Meta.CreatedAt}}
	if s.Attempts != nil {
		e.Attempts = *s.Attempts
	}
	return e, nil
}

// sized returns a canonical envelope of about n bytes whose data is a mix of
// strings, numbers and small objects.
func sized(n int) string {
	var lines strings.Builder
	for i := 0; len(canonical)+lines.Len() < n-20; i++ {
		fmt.Fprintf(&lines, `,"line_%d":{"sku":"A-%06d","qty":%d,"price":19.99,"note":"première qualité"}`, i, i*7919, i%9+1)
		if n < 1000 {
			break
		}
	}
	return strings.Replace(canonical, `"order_id":1042`, `"order_id":1042`+lines.String(), 1)
}

var benchSizes = map[string]int{"300B": 300, "10KB": 10_000}

func BenchmarkDecode(b *testing.B) {
	for _, impl := range []struct {
		name   string
		decode func(string) (Envelope, error)
	}{
		{"encoding_json", func(s string) (Envelope, error) { return decodeStruct(stdjson.Unmarshal, s) }},
		{"goccy", func(s string) (Envelope, error) { return decodeStruct(gojson.Unmarshal, s) }},
		{"scanner", Decode},
	} {
		for _, size := range []string{"300B", "10KB"} {
			text := sized(benchSizes[size])
			b.Run(impl.name+"/"+size, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if e, err := impl.decode(text); err != nil || e.Meta.Queue != "orders" {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range []string{"300B", "10KB"} {
		e, err := Decode(sized(benchSizes[size]))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(size, func(b *testing.B) {
			buf := e.AppendTo(nil)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = e.AppendTo(buf[:0])
			}
		})
	}
}

// BenchmarkUnframe shows what a bare body pays for frames to exist, and what a
// frame costs.
func BenchmarkUnframe(b *testing.B) {
	for _, size := range []string{"300B", "10KB"} {
		bare := sized(benchSizes[size])
		for name, stored := range map[string]string{
			"bare":   bare,
			"framed": EncodeFrame(bare, map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
		} {
			b.Run(name+"/"+size, func(b *testing.B) {
				b.SetBytes(int64(len(stored)))
				b.ReportAllocs()
				for b.Loop() {
					if f, _ := Unframe(stored); f.Body != bare {
						b.Fatal("wrong body")
					}
				}
			})
		}
	}
}

func BenchmarkRaiseAttempts(b *testing.B) {
	for _, size := range []string{"300B", "10KB"} {
		text := sized(benchSizes[size])
		b.Run(size, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := RaiseAttempts(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
