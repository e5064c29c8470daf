package publisher_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

// TestStoredBytes covers E1, E2, L1 and Z1: the very bytes, in order, at the tail of the right key.
func TestStoredBytes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		texts := []struct {
			data any
			want string
		}{
			{nil, `{}`},
			{map[string]any{"order_id": 1042}, `{"order_id":1042}`},
			{map[string]string{"html": "/<b>&é\u00a0"}, "{\"html\":\"/<b>&é\u00a0\"}"},
			{json.RawMessage(` { "big": 9007199254740993, "f": 1.0, "e": [ ] } `), `{"big":9007199254740993,"f":1.0,"e":[]}`},
			{struct {
				B string `json:"b"`
				A string `json:"a"`
			}{"1", "2"}, `{"b":"1","a":"2"}`},
		}
		var want []string
		for _, text := range texts {
			got, err := p.Publish(t.Context(), "\t"+urn+" ", text.data, fixed()...)
			if err != nil || got != id {
				t.Fatalf("published %v as %q, %v", text.data, got, err)
			}
			want = append(want, body("orders", text.want)) // the logical name, whatever the key is
		}
		at.stored(t, want...)
	})
}

// TestGeneratedFields covers the rest of E2.
func TestGeneratedFields(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		at := newTarget(publisher.Legacy, b.Client, b.Prefix)
		p := at.open(t)
		before := time.Now().UnixMilli()
		first, err := p.Publish(t.Context(), urn, nil, publisher.WithID(" "), publisher.WithTraceID(""))
		if err != nil {
			t.Fatal(err)
		}
		second, err := p.Publish(t.Context(), urn, nil)
		if err != nil {
			t.Fatal(err)
		}
		after := time.Now().UnixMilli()
		texts, err := b.Client.LRange(t.Context(), at.key(), 0, -1).Result()
		if err != nil || len(texts) != 2 {
			t.Fatal(texts, err)
		}
		seen := map[string]bool{}
		for i, want := range []string{first, second} {
			e, err := envelope.Decode(texts[i])
			if err != nil {
				t.Fatal(err)
			}
			if e.Meta.ID != want {
				t.Errorf("stored id %q, returned %q", e.Meta.ID, want)
			}
			for _, text := range []string{e.Meta.ID, e.TraceID} {
				u, err := uuid.Parse(text)
				if err != nil || u.Version() != 4 || seen[text] {
					t.Errorf("%q is not a new UUIDv4 (%v)", text, err)
				}
				seen[text] = true
			}
			if e.Meta.CreatedAt < before || e.Meta.CreatedAt > after {
				t.Errorf("created_at %d is not between %d and %d", e.Meta.CreatedAt, before, after)
			}
		}
	})
}

func TestMessagesThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	at := newTarget(publisher.Zset, testredis.Client(t, testredis.Mini(t).Addr()), "")
	p := at.open(t)
	for name, c := range map[string]struct {
		urn  string
		data any
		want error
	}{
		"empty URN":    {"", nil, envelope.ErrEmptyURN},
		"blank URN":    {" \n\u00a0", nil, envelope.ErrEmptyURN},
		"a list":       {urn, []int{1}, envelope.ErrDataNotObject},
		"a number":     {urn, 1, envelope.ErrDataNotObject},
		"broken raw":   {urn, json.RawMessage(`{"a":}`), envelope.ErrDataNotObject},
		"not a number": {urn, map[string]any{"x": math.NaN()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for call, publish := range map[string]func() (string, error){
				"Publish":        func() (string, error) { return p.Publish(t.Context(), c.urn, c.data) },
				"PublishDelayed": func() (string, error) { return p.PublishDelayed(t.Context(), 0, c.urn, c.data) },
				"PublishWithHeaders": func() (string, error) {
					return p.PublishWithHeaders(t.Context(), map[string]string{"a": "b"}, c.urn, c.data)
				},
				"PublishIn": func() (string, error) {
					return p.PublishIn(t.Context(), at.direct.TxPipeline(), c.urn, c.data)
				},
			} {
				got, err := publish()
				if got != "" {
					t.Errorf("%s: id %q of a message that was not made", call, got)
				}
				wantClass(t, err, publisher.ErrEncode)
				if c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", call, err, c.want)
				}
			}
		})
	}
	at.count(t, 0)
}

func TestPublishEnvelope(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		text := strings.Replace(body("elsewhere", `{"n":1.0}`), `"attempts":0`, `"attempts":3,"x":[ 1 ]`, 1)
		e, err := envelope.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.PublishEnvelope(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		at.stored(t, text)
		if err := p.PublishEnvelope(t.Context(), envelope.Envelope{URN: urn}); !errors.Is(err, publisher.ErrEncode) {
			t.Errorf("an envelope without a trace id: %v", err)
		}
		at.stored(t, text)
	})
}

func TestPublishRaw(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		if stored, err := p.PublishRaw(t.Context(), nil); stored != 0 || err != nil {
			t.Errorf("nothing: %d, %v", stored, err)
		}
		texts := []string{"", "no JSON\r\n\x00\xff", `{"__bq_frame":1,"headers":{},"body":"x"}`}
		if stored, err := p.PublishRaw(t.Context(), texts); stored != 3 || err != nil {
			t.Errorf("%d, %v", stored, err)
		}
		at.stored(t, texts...)
	})
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		const workers, each = 8, 40
		p := at.open(t)
		var mu sync.Mutex
		want := map[string]bool{}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range each {
					got, err := p.Publish(t.Context(), urn, map[string]string{"pad": strings.Repeat("x", 100)})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					want[got] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		at.count(t, workers*each)
		got := map[string]bool{}
		for _, text := range at.direct.LRange(t.Context(), at.key(), 0, -1).Val() {
			e, err := envelope.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			got[e.Meta.ID] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ids (-returned +stored):\n%s", diff)
		}
	})
}
