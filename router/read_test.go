package router

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// TestRead counts deliveries as A1 says, and takes frames off (F3, F4).
func TestRead(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"traceparent": "00-aa"}
	counted := func(outer string) string { // the frame as the reserve script leaves it in a zset queue
		return strings.TrimSuffix(framed(body(0)), "}") + `,"attempts":` + outer + "}"
	}
	for _, tc := range []struct {
		name     string
		layout   flow.Layout
		text     string // as reserved
		attempts int64
		number   int64
		headers  map[string]string
		body     string // "" = the text
	}{
		{name: "legacy, first", layout: flow.Legacy, text: body(0), number: 1},
		{name: "legacy, requeued", layout: flow.Legacy, text: body(2), attempts: 2, number: 3},
		{
			name: "legacy, the largest attempts", layout: flow.Legacy, text: body(math.MaxInt64),
			attempts: math.MaxInt64, number: math.MaxInt64,
		},
		{name: "legacy, without attempts", layout: flow.Legacy, text: strings.Replace(body(0), `,"attempts":0`, "", 1), number: 1},
		{name: "legacy, framed", layout: flow.Legacy, text: framed(body(2)), attempts: 2, number: 3, headers: headers, body: body(2)},
		{
			name: "legacy, framed with a counter of its own", layout: flow.Legacy, text: counted("7"),
			number: 1, headers: headers, body: body(0),
		},
		{name: "zset, first", layout: flow.Zset, text: body(1), attempts: 1, number: 1},
		{name: "zset, third", layout: flow.Zset, text: body(3), attempts: 3, number: 3},
		{name: "zset, not raised", layout: flow.Zset, text: body(0)},
		{name: "zset, framed", layout: flow.Zset, text: counted("3"), attempts: 3, number: 3, headers: headers, body: body(0)},
		{name: "zset, framed, counter unusable", layout: flow.Zset, text: counted(`"3"`), headers: headers, body: body(0)},
		{name: "zset, framed, counter missing", layout: flow.Zset, text: framed(body(4)), attempts: 4, number: 4, headers: headers, body: body(4)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d, err := read(&Queue{Name: "orders", Layout: tc.layout}, &flow.Reservation{Text: tc.text})
			if err != nil {
				t.Fatal(err)
			}
			if d.Number != tc.number || d.Attempts != tc.attempts {
				t.Errorf("delivery %d with attempts %d, want %d and %d", d.Number, d.Attempts, tc.number, tc.attempts)
			}
			want := tc.body
			if want == "" {
				want = tc.text
			}
			if d.Body != want || d.URN != urn || d.Meta.ID != "m-1" || d.Queue != "orders" || d.Meta.Queue != "shop" {
				t.Errorf("queue %s, %s %s, body %s", d.Queue, d.URN, d.Meta.ID, d.Body)
			}
			if diff := cmp.Diff(tc.headers, d.Headers); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadPoison(t *testing.T) { // E3
	t.Parallel()
	for _, text := range []string{"", "hello", "{}", framed("hello"), framed(framed(body(0)))} {
		for _, layout := range layouts {
			d, err := read(&Queue{Layout: layout}, &flow.Reservation{Text: text})
			var poison *envelope.PoisonError
			if d != nil || !errors.As(err, &poison) {
				t.Errorf("%s, %q: got %v, %v", layout, text, d, err)
			}
		}
	}
}
