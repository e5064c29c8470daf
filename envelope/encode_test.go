package envelope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncodeIsCanonical(t *testing.T) { // E1
	t.Parallel()
	e := mustDecode(t, canonical)
	if diff := cmp.Diff(canonical, e.Encode()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := string(e.AppendTo([]byte("before "))); got != "before "+canonical {
		t.Errorf("AppendTo wrote %s", got)
	}
}

func TestEncodeOrder(t *testing.T) { // E1, E4
	t.Parallel()
	e := mustDecode(t, `{"z":[ 1 ],"dead_letter": {"a": 1},"meta":{"z":{"k":1.0},"schema_version":1,"created_at":1,"lang":"l","queue":"q","id":"i"},`+
		`"attempts":3,"data":{"n":1e400,"u":"a\/b","é":[]},"trace_id":"t","urn":"/<&>é\u2028"}`)
	want := `{"job":"/<&>é\u2028","trace_id":"t","data":{"n":1e400,"u":"a\/b","é":[]},` +
		`"meta":{"id":"i","queue":"q","lang":"l","schema_version":1,"created_at":1,"z":{"k":1.0}},` +
		`"attempts":3,"dead_letter":{"a": 1},"z":[ 1 ]}`
	// U+2028 at the end of the URN is white space and is trimmed.
	want = strings.Replace(want, `é\u2028`, `é`, 1)
	if diff := cmp.Diff(want, e.Encode()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestEncodeLeavesOut covers members put into Extra by hand that must not reach
// the wire, or not twice.
func TestEncodeLeavesOut(t *testing.T) { // E5
	t.Parallel()
	var extra, metaExtra []Member
	for _, name := range []string{"job", "trace_id", "data", "meta", "attempts", "dead_letter", "timestamp", "keep"} {
		extra = append(extra, Member{name, `"x"`})
	}
	for _, name := range []string{"id", "queue", "lang", "schema_version", "created_at",
		"max_retries", "attempts", "source", "ts", "keep"} {
		metaExtra = append(metaExtra, Member{name, `"x"`})
	}
	extra = append(extra, Member{Name: "no value"})
	metaExtra = append(metaExtra, Member{Name: "no value"})
	e := Envelope{URN: "u", TraceID: "t", Extra: extra,
		Meta: Meta{ID: "i", Queue: "q", Lang: "l", CreatedAt: 1, Extra: metaExtra}}
	want := `{"job":"u","trace_id":"t","data":{},"meta":{"id":"i","queue":"q","lang":"l",` +
		`"schema_version":1,"created_at":1,"keep":"x"},"attempts":0,"keep":"x"}`
	if diff := cmp.Diff(want, e.Encode()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A zero field gives way to a member of its name, so nothing stands twice.
	e.Meta = Meta{Extra: []Member{{"id", "5"}, {"created_at", "null"}, {"lang", ""}}}
	want = `{"job":"u","trace_id":"t","data":{},"meta":{"queue":"","lang":"","schema_version":1,` +
		`"id":5,"created_at":null},"attempts":0,"keep":"x"}`
	if diff := cmp.Diff(want, e.Encode()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEncodeRepairsInvalidUTF8(t *testing.T) {
	t.Parallel()
	e := Envelope{URN: "a\xff\xfeb", TraceID: "\xc3", Data: "{}", Extra: []Member{{"k\x80", "1"}}}
	again := mustDecode(t, e.Encode())
	if again.URN != "a\uFFFD\uFFFDb" || again.TraceID != "\uFFFD" || again.Extra[0].Name != "k\uFFFD" {
		t.Errorf("got %+v", again)
	}
}
