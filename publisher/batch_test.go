package publisher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

// publishes are the commands that store messages, as the client gets them.
type publishes struct {
	counts []int         // bodies in each
	bytes  []int         // of those
	fail   map[int]error // by number, from 1
}

// watch notes the commands a target's client is given from now on. The client belongs to the test.
func (at target) watch(fail map[int]error) *publishes {
	seen := &publishes{fail: fail}
	at.direct.AddHook(hook(func(cmd redis.Cmder) error {
		words := cmd.Args()
		switch words[0] {
		case "rpush":
			words = words[2:]
		case "evalsha":
			words = words[5:] // hash, number of keys, ready, notify
		default:
			return nil // what the test looks with, and the one EVAL of a script that was not known
		}
		bytes := 0
		for _, word := range words {
			bytes += len(*word.(*string))
		}
		seen.counts, seen.bytes = append(seen.counts, len(words)), append(seen.bytes, bytes)
		return seen.fail[len(seen.counts)]
	}))
	return seen
}

func messages(n int) []publisher.Message {
	all := make([]publisher.Message, n)
	for i := range all {
		all[i] = publisher.Message{URN: urn, ID: fmt.Sprint("id-", i), TraceID: trace, Data: map[string]int{"n": i}}
	}
	return all
}

// storedIDs are the meta.id of what ready holds, in order.
func (at target) storedIDs(t *testing.T) []string {
	t.Helper()
	ids := []string{}
	for _, text := range at.direct.LRange(t.Context(), at.key(), 0, -1).Val() {
		e, err := envelope.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.Meta.ID)
	}
	return ids
}

func TestBatchWithBadMessages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		seen := at.watch(nil)
		batch := messages(6)
		batch[0].URN = " "
		batch[3].Data = []int{1}
		batch[4].ID, batch[4].Headers = "", map[string]string{"k": "v"}
		results, err := p.PublishBatch(t.Context(), batch)
		wantClass(t, err, publisher.ErrEncode)
		if !errors.Is(err, envelope.ErrEmptyURN) || !strings.Contains(err.Error(), "2 of 6") {
			t.Errorf("error of the whole: %v", err)
		}
		var want []string
		for i, r := range results {
			switch i {
			case 0, 3:
				wantClass(t, r.Err, publisher.ErrEncode)
				if r.ID != "" {
					t.Errorf("message %d: id %q without an envelope", i, r.ID)
				}
				continue
			case 4:
				if len(r.ID) != 36 {
					t.Errorf("generated id %q", r.ID)
				}
			default:
				if r.ID != batch[i].ID {
					t.Errorf("message %d: id %q", i, r.ID)
				}
			}
			if r.Err != nil {
				t.Errorf("message %d: %v", i, r.Err)
			}
			want = append(want, r.ID)
		}
		texts := at.direct.LRange(t.Context(), at.key(), 0, -1).Val()
		got := []string{}
		for _, text := range texts {
			frame, _ := envelope.Unframe(text)
			e, err := envelope.Decode(frame.Body)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Meta.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stored ids (-want +got):\n%s", diff)
		}
		if framed := strings.HasPrefix(texts[2], `{"__bq_frame":1`); framed != (at.Layout == publisher.Legacy) {
			t.Errorf("headers stored as %s", texts[2])
		}
		if diff := cmp.Diff([]int{4}, seen.counts); diff != "" {
			t.Errorf("commands (-want +got):\n%s", diff)
		}
		at.tokens(t, 4)
	})
}

func TestBatchOfNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		seen := at.watch(nil)
		if results, err := p.PublishBatch(t.Context(), nil); len(results) != 0 || err != nil {
			t.Errorf("nothing: %v, %v", results, err)
		}
		if results, err := p.PublishBatch(t.Context(), make([]publisher.Message, 2)); len(results) != 2 ||
			!errors.Is(results[1].Err, publisher.ErrEncode) || !errors.Is(err, publisher.ErrEncode) {
			t.Errorf("nothing good: %v, %v", results, err)
		}
		if len(seen.counts) != 0 {
			t.Errorf("commands were sent: %v", seen.counts)
		}
		at.count(t, 0)
	})
}

// TestBatchChunks covers B37: a large batch never makes a large command, and nothing is lost or moved at the
// seams.
func TestBatchChunks(t *testing.T) {
	t.Parallel()
	half := json.RawMessage(`{"pad":"` + strings.Repeat("x", publisher.ChunkBytes/2) + `"}`)
	for name, c := range map[string]struct {
		n    int
		data map[int]json.RawMessage // of single messages
		want []int
	}{
		"one less": {999, nil, []int{999}},
		"exactly":  {1000, nil, []int{1000}},
		"one more": {1001, nil, []int{1000, 1}},
		"several":  {8001, nil, []int{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1}},
		"by bytes": {6, map[int]json.RawMessage{1: half, 3: half, 4: half}, []int{3, 1, 2}},
		"too large": {4, map[int]json.RawMessage{
			1: json.RawMessage(`{"pad":"` + strings.Repeat("x", 2*publisher.ChunkBytes) + `"}`),
		}, []int{1, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, _ testredis.Backend, at target) {
				p := at.open(t)
				seen := at.watch(nil)
				batch := messages(c.n)
				for i, data := range c.data {
					batch[i].Data = data
				}
				results, err := p.PublishBatch(t.Context(), batch)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, r := range results {
					want = append(want, r.ID)
				}
				if diff := cmp.Diff(want, at.storedIDs(t)); diff != "" {
					t.Errorf("stored ids (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.want, seen.counts); diff != "" {
					t.Errorf("messages per command (-want +got):\n%s", diff)
				}
				texts := at.direct.LRange(t.Context(), at.key(), 0, -1).Val()
				at.tokens(t, c.n)

				// The same texts as they are go out in the same chunks.
				seen.counts = nil
				if stored, err := p.PublishRaw(t.Context(), texts); stored != c.n || err != nil {
					t.Fatal(stored, err)
				}
				if diff := cmp.Diff(c.want, seen.counts); diff != "" {
					t.Errorf("texts per command (-want +got):\n%s", diff)
				}
				at.stored(t, append(texts, texts...)...)
			})
		})
	}
}

func TestBatchOf100000(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		const n = 100_000
		p := at.open(t)
		seen := at.watch(nil)
		results, err := p.PublishBatch(t.Context(), messages(n))
		if err != nil || len(results) != n {
			t.Fatal(len(results), err)
		}
		at.count(t, n)
		if len(seen.counts) != n/publisher.ChunkMessages {
			t.Errorf("%d commands", len(seen.counts))
		}
		for i, bytes := range seen.bytes {
			if bytes > publisher.ChunkBytes || seen.counts[i] != publisher.ChunkMessages {
				t.Errorf("command %d: %d messages, %d bytes", i, seen.counts[i], bytes)
			}
		}
		last := at.direct.LIndex(t.Context(), at.key(), -1).Val()
		if e, err := envelope.Decode(last); err != nil || e.Meta.ID != fmt.Sprint("id-", n-1) {
			t.Errorf("last message %s (%v)", last, err)
		}
	})
}

// TestBatchStopsAtAFailure: earlier chunks are stored, the failed one says why, later ones were not sent.
func TestBatchStopsAtAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err, want error
	}{
		"unsent":    {&net.OpError{Op: "dial", Err: errors.New("refused")}, publisher.ErrUnavailable},
		"ambiguous": {&net.OpError{Op: "read", Err: errors.New("reset")}, publisher.ErrMayBeStored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, _ testredis.Backend, at target) {
				p := at.open(t)
				seen := at.watch(map[int]error{2: c.err})
				batch := messages(3500)
				batch[1200].URN = ""
				batch[3000].URN = "" // never looked at
				results, err := p.PublishBatch(t.Context(), batch)
				wantClass(t, err, c.want)
				if !strings.Contains(err.Error(), "2500 of 3500") {
					t.Errorf("error of the whole: %v", err)
				}
				for i, r := range results {
					var want error
					switch {
					case i < 1000:
					case i == 1200:
						want = publisher.ErrEncode
					case i <= 2000:
						want = c.want
					default:
						want = publisher.ErrNotSent
					}
					if !errors.Is(r.Err, want) {
						t.Fatalf("message %d: %v, want %v", i, r.Err, want)
					}
					if i == 999 || i == 1500 || i == 3499 {
						wantClass(t, r.Err, want)
					}
				}
				if results[1500].ID != "id-1500" {
					t.Errorf("a failed message lost its id: %q", results[1500].ID)
				}
				if diff := cmp.Diff([]int{1000, 1000}, seen.counts); diff != "" {
					t.Errorf("commands (-want +got):\n%s", diff)
				}
				at.count(t, 1000)

				// As texts: the number of those stored for certain, and no further command.
				seen.counts = nil
				stored, err := p.PublishRaw(t.Context(), make([]string, 2500))
				wantClass(t, err, c.want)
				if stored != 1000 || !strings.Contains(err.Error(), "1001 to 2000 of 2500") {
					t.Errorf("raw: %d, %v", stored, err)
				}
				at.count(t, 2000)
			})
		})
	}
}

// TestBatchFailureAtAByteSeam: the message that did not fit into the failed command was not sent.
func TestBatchFailureAtAByteSeam(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		seen := at.watch(map[int]error{1: &net.OpError{Op: "dial", Err: errors.New("refused")}})
		batch := messages(4)
		batch[1].Data = json.RawMessage(`{"pad":"` + strings.Repeat("x", publisher.ChunkBytes) + `"}`)
		results, err := p.PublishBatch(t.Context(), batch)
		wantClass(t, err, publisher.ErrUnavailable)
		wantClass(t, results[0].Err, publisher.ErrUnavailable)
		for _, r := range results[1:] {
			wantClass(t, r.Err, publisher.ErrNotSent)
		}
		at.count(t, 0)

		// What the failed batch left behind is not in the next one.
		results, err = p.PublishBatch(t.Context(), messages(2))
		if err != nil || results[1].ID != "id-1" {
			t.Errorf("the next batch: %v, %v", results, err)
		}
		if diff := cmp.Diff([]string{"id-0", "id-1"}, at.storedIDs(t)); diff != "" {
			t.Errorf("stored ids (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{1, 2}, seen.counts); diff != "" {
			t.Errorf("commands (-want +got):\n%s", diff)
		}
	})
}

// TestBatchContextEnds: a batch looks at its context before each command.
func TestBatchContextEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		why := errors.New("the caller is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		batch := messages(3000)
		batch[1500].Data = marshaler(func() { cancel(why) })
		results, err := p.PublishBatch(ctx, batch)
		wantClass(t, err, publisher.ErrNotSent)
		if !errors.Is(err, why) {
			t.Errorf("error of the whole: %v", err)
		}
		if results[999].Err != nil || !errors.Is(results[1000].Err, why) || errors.Is(results[2000].Err, why) {
			t.Errorf("results around the end: %v, %v, %v", results[999].Err, results[1000].Err, results[2000].Err)
		}
		wantClass(t, results[2000].Err, publisher.ErrNotSent)
		at.count(t, 1000)
	})
}

// marshaler is data whose encoding does something.
type marshaler func()

func (m marshaler) MarshalJSON() ([]byte, error) {
	m()
	return []byte(`{}`), nil
}
