package router

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// layouts are both of them, for tests of what holds in each.
var layouts = []flow.Layout{flow.Legacy, flow.Zset}

const (
	urn   = "urn:babel:orders:created"
	lease = 90 * time.Second
)

// body is an envelope with attempts as it stands in ready. Its data is what no log may show (B48).
func body(attempts int64) string { return bodyOf(urn, attempts, time.UnixMilli(1749132727000)) }

func bodyOf(urn string, attempts int64, created time.Time) string {
	return fmt.Sprintf(`{"job":%q,"trace_id":"t-1","data":{"card":"secret-4111"},"meta":{"id":"m-1","queue":"shop",`+
		`"lang":"php","schema_version":1,"created_at":%d},"attempts":%d}`, urn, created.UnixMilli(), attempts)
}

// framed is a stored value with one header.
func framed(body string) string {
	return envelope.EncodeFrame(body, map[string]string{"traceparent": "00-aa"})
}

// reserved is the reservation a store makes of a ready text: in the zset layout with attempts raised, where
// they can be.
func reserved(queue int, layout flow.Layout, ready string) *flow.Reservation {
	r := &flow.NewLease(queue, 1).Items[0]
	r.Text, r.Handle = ready, "0123456789abcdef0123456789abcdef:"+ready
	if layout == flow.Legacy {
		return r
	}
	if raised, _, err := envelope.RaiseAttempts(ready); err == nil {
		r.Text, r.Edit = raised, editOf(ready, raised)
	}
	r.Handle = r.Text
	return r
}

// editOf is the shortest edit that makes edited of ready.
func editOf(ready, edited string) flow.Edit {
	from := 0
	for from < len(ready) && from < len(edited) && ready[from] == edited[from] {
		from++
	}
	end := 0
	for end < len(ready)-from && end < len(edited)-from && ready[len(ready)-1-end] == edited[len(edited)-1-end] {
		end++
	}
	if from == len(edited) { // nothing changed
		return flow.Edit{}
	}
	return flow.Edit{At: from, Length: len(edited) - from - end, Old: ready[from : len(ready)-end]}
}

// rig is a router with everything around it as the pool would make it.
type rig struct {
	*Router
	in   *flow.Buffer
	out  []chan flow.Settlement
	logs *logs

	mu   sync.Mutex
	told []told // calls of OnError
}

// told is one call of OnError.
type told struct {
	err error
	env envelope.Envelope
	raw string
}

// newRig makes a router of one queue per layout given; each holds up to 1,000 messages.
func newRig(workers int, policy Policy, handler delivery.Handler, layouts ...flow.Layout) *rig {
	g := &rig{logs: &logs{}}
	if policy.OnError == nil {
		policy.OnError = func(_ context.Context, err error, env envelope.Envelope, raw string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.told = append(g.told, told{err, env, raw})
		}
	}
	const room = 1000
	var queues []Queue
	var weights []int
	for _, layout := range layouts {
		out := make(chan flow.Settlement, room)
		g.out = append(g.out, out)
		weights = append(weights, 1)
		queues = append(queues, Queue{
			Name: "orders", Layout: layout, Handler: handler, Counters: &flow.Counters{}, Out: out,
			Book: flow.NewBook(lease, true, 0),
		})
	}
	g.in = flow.NewBuffer(weights)
	g.Router = New(Config{Workers: workers, Source: g.in, Queues: queues, Policy: policy, Logger: slog.New(g.logs)})
	return g
}

// put reserves ready texts for a queue, each under a lease of its own that begins now.
func (g *rig) put(queue int, ready ...string) []*flow.Reservation {
	var all []*flow.Reservation
	for _, text := range ready {
		r := reserved(queue, g.cfg.Queues[queue].Layout, text)
		g.cfg.Queues[queue].Book.Add(r.Lease(), time.Now())
		g.in.Put(queue, r.Lease().Items)
		all = append(all, r)
	}
	return all
}

// end closes what the workers receive from.
func (g *rig) end() {
	g.in.Close()
}

// settlements takes what the acker of a queue would have received by now.
func (g *rig) settlements(queue int) []flow.Settlement {
	var all []flow.Settlement
	for {
		select {
		case s := <-g.out[queue]:
			all = append(all, s)
		default:
			return all
		}
	}
}

// reports is what OnError was told.
func (g *rig) reports() []told {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]told(nil), g.told...)
}

// counted is a queue's counters by name, without zeros.
func (g *rig) counted(queue int) map[string]int64 { return counted(g.cfg.Queues[queue].Counters) }

func counted(c *flow.Counters) map[string]int64 {
	all, v := map[string]int64{}, reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if n, ok := v.Field(i).Addr().Interface().(*atomic.Int64); ok && n.Load() != 0 {
			all[v.Type().Field(i).Name] = n.Load()
		}
	}
	return all
}

// running starts Run on a goroutine of its own; the channel is closed when it has returned.
func (g *rig) running(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Run(ctx)
	}()
	return done
}

// logs is what is logged.
type logs = testlog.Recorder

// vector is one case of Z6 in the project's test data. A value is text, because JSON has no NaN.
type vector struct {
	Base, Multiplier, Max float64
	K                     int64
	Value                 string
	Error                 bool
	Delay                 int64 `json:"delay_seconds"`
}

// vectors reads sections of the test data; without them the test fails, since a skipped rule looks like a kept
// one.
func vectors(t *testing.T, section string) []vector {
	t.Helper()
	text, err := os.ReadFile("../testdata/redis.json")
	if err != nil {
		t.Fatalf("the project's vectors are missing: %v", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var cases []vector
	if err := json.Unmarshal(all[section], &cases); err != nil || len(cases) == 0 {
		t.Fatalf("no cases of %s: %v", section, err)
	}
	return cases
}
