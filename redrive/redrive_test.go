package redrive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/redrive"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// rig is the dead letters of queue "orders" in one layout.
type rig struct {
	testredis.Backend
	t      *testing.T
	layout redrive.Layout
	dead   *redrive.DeadLetters
}

func each(t *testing.T, fn func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	for _, layout := range []redrive.Layout{redrive.Legacy, redrive.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				r := &rig{Backend: b, t: t, layout: layout}
				r.dead = r.open(b.Client)
				fn(t, r)
			})
		})
	}
}

func (r *rig) open(client redis.UniversalClient) *redrive.DeadLetters {
	r.t.Helper()
	dead, err := redrive.Open(redrive.Config{Client: client, Queue: "orders", Layout: r.layout, KeyPrefix: r.Prefix})
	if err != nil {
		r.t.Fatal(err)
	}
	return dead
}

// ready is the key of a queue's ready list.
func (r *rig) ready(queue string) string {
	if r.layout == redrive.Zset {
		return r.Prefix + "queues:" + queue
	}
	return r.Prefix + queue
}

func (r *rig) list(key string) []string {
	r.t.Helper()
	values, err := r.Client.LRange(r.t.Context(), key, 0, -1).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	return values
}

func (r *rig) letters() []string { return r.list(r.ready("orders") + ".dlq") }

// bury puts records in the dead letters, with a token each in the zset layout (D1).
func (r *rig) bury(records ...string) {
	r.t.Helper()
	for _, record := range records {
		key := r.ready("orders") + ".dlq"
		err := r.Client.RPush(r.t.Context(), key, record).Err()
		if err == nil && r.layout == redrive.Zset {
			err = r.Client.RPush(r.t.Context(), key+":notify", "1").Err()
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// body is a message as it was published, with attempts.
func body(i int, attempts int) string {
	return fmt.Sprintf(`{"job":"urn:babel:orders:created","trace_id":"t","data":{"n":1e5,"list":[]},`+
		`"meta":{"id":"m-%d","queue":"orders","lang":"php","schema_version":1,"created_at":1749132727000},"attempts":%d}`, i, attempts)
}

// record is its dead letter.
func record(i int, why envelope.DeadLetter) string { return envelope.DeadLetterRecord(body(i, 3), why) }

func failed(queue string) envelope.DeadLetter {
	return envelope.DeadLetter{Reason: envelope.ReasonFailed, FailedAt: time.Now().UnixMilli(), OriginalQueue: queue, Attempts: 3}
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Messages go back to the queue they failed in, byte for byte but for the block and the attempts; the tokens of both lists
// stay in step.
func TestRedrive(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.bury(record(1, failed("orders")), record(2, failed("invoices")), record(3, failed("")))
		report, err := r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "report", report, redrive.Report{
			Looked: 3, Matched: 3, Moved: 3, Targets: map[string]int64{"orders": 2, "invoices": 1}, Skipped: map[string]int64{},
		})
		same(t, "orders", r.list(r.ready("orders")), []string{body(1, 0), body(3, 0)})
		same(t, "invoices", r.list(r.ready("invoices")), []string{body(2, 0)})
		same(t, "left", r.letters(), []string{})
		if r.layout == redrive.Zset {
			same(t, "tokens", len(r.list(r.ready("orders")+":notify")), 2)
			same(t, "tokens of the dead letters", len(r.list(r.ready("orders")+".dlq:notify")), 0)
		}
	})
}

func TestFilters(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		old := failed("orders")
		old.FailedAt = time.Now().Add(-time.Hour).UnixMilli()
		poison := failed("orders")
		poison.Reason = envelope.ReasonPoison
		other := strings.Replace(record(4, failed("orders")), "orders:created", "orders:paid", 1)
		r.bury(record(1, old), record(2, poison), record(3, failed("orders")), other, "no envelope", body(6, 2))
		for name, c := range map[string]struct {
			filter redrive.Filter
			want   []string
		}{
			"all":         {redrive.Filter{}, []string{"m-1", "m-2", "m-3", "m-4", "", "m-6"}},
			"URN":         {redrive.Filter{URN: "urn:babel:orders:paid"}, []string{"m-4"}},
			"reason":      {redrive.Filter{Reason: "poison"}, []string{"m-2"}},
			"ids":         {redrive.Filter{IDs: []string{"m-3", "m-9", "m-6"}}, []string{"m-3", "m-6"}},
			"older":       {redrive.Filter{OlderThan: time.Minute}, []string{"m-1"}},
			"newer":       {redrive.Filter{NewerThan: time.Minute}, []string{"m-2", "m-3", "m-4"}},
			"both":        {redrive.Filter{NewerThan: time.Minute, Reason: "failed"}, []string{"m-3", "m-4"}},
			"no such URN": {redrive.Filter{URN: "urn:x"}, nil},
		} {
			var got []string
			if err := r.dead.List(t.Context(), c.filter, func(l redrive.Letter) bool { got = append(got, l.ID); return true }); err != nil {
				t.Fatal(err)
			}
			same(t, name, got, c.want)
		}
		// A dry run says what a run would do, and the filter is the same.
		before := r.letters()
		report, err := r.dead.Redrive(t.Context(), redrive.Filter{NewerThan: time.Minute}, redrive.Options{DryRun: true})
		if err != nil || report.Moved != 3 || report.Looked != 6 {
			t.Errorf("%+v, %v", report, err)
		}
		same(t, "after a dry run", r.letters(), before)
		report, err = r.dead.Redrive(t.Context(), redrive.Filter{NewerThan: time.Minute}, redrive.Options{})
		if err != nil || report.Moved != 3 {
			t.Errorf("%+v, %v", report, err)
		}
		same(t, "left", r.letters(), []string{record(1, old), "no envelope", body(6, 2)})
	})
}

func TestOptions(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		const job = `{"uuid":"x","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"command":"O:1"}}`
		r.bury(record(1, failed("orders")), job, record(2, failed("orders")), "\xff\x00", record(3, failed("orders")))
		report, err := r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{Limit: 2, Queue: "again"})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "report", report, redrive.Report{
			Looked: 5, Matched: 3, Moved: 2, Targets: map[string]int64{"again": 2}, Skipped: map[string]int64{redrive.SkippedNoURN: 1},
		})
		same(t, "again", r.list(r.ready("again")), []string{body(1, 0), body(2, 0)})
		report, err = r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{Raw: true, Queue: "native"})
		if err != nil || report.Moved != 3 {
			t.Errorf("%+v, %v", report, err)
		}
		same(t, "native", r.list(r.ready("native")), []string{job, "\xff\x00", body(3, 0)})

		for name, o := range map[string]redrive.Options{
			"Raw": {Raw: true}, "Limit": {Limit: -1}, "Rate": {Rate: -1}, "Queue": {Queue: "orders:delayed"},
		} {
			if _, err := r.dead.Redrive(t.Context(), redrive.Filter{}, o); !errors.Is(err, redrive.ErrOptions) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Replays are marked where there are headers.
func TestReplay(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.bury(record(1, failed("orders")))
		_, err := r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{Replay: true})
		if r.layout == redrive.Zset {
			if !errors.Is(err, redrive.ErrOptions) || len(r.letters()) != 1 {
				t.Errorf("%v, %d left", err, len(r.letters()))
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		frame, framed := envelope.Unframe(r.list(r.ready("orders"))[0])
		if !framed || frame.Body != body(1, 0) || !redrive.IsReplay(&delivery.Delivery{Headers: frame.Headers}) {
			t.Errorf("%+v", frame)
		}
		if redrive.IsReplay(&delivery.Delivery{}) {
			t.Error("any message is a replay")
		}
	})
}

// A run looks at what was there when it began, and at nothing that comes meanwhile; many windows, equal records.
func TestLargeRun(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		const n = 1700
		var all []string
		for i := range n {
			why := failed("orders")
			if i%3 == 0 {
				why.Reason = envelope.ReasonPoison
			}
			all = append(all, record(i/2*2, why)) // many are there twice
		}
		r.bury(all...)
		report, err := r.dead.Redrive(t.Context(), redrive.Filter{Reason: "failed"}, redrive.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(n - (n+2)/3)
		if report.Moved != want || report.Looked != n || int64(len(r.list(r.ready("orders")))) != want {
			t.Errorf("%+v, want %d moved; %d ready", report, want, len(r.list(r.ready("orders"))))
		}
		if left := r.letters(); int64(len(left)) != n-want {
			t.Errorf("%d left, want %d", len(left), n-want)
		}
		purged, err := r.dead.Purge(t.Context(), redrive.Filter{}, 10)
		if err != nil || purged != 10 {
			t.Errorf("purged %d, %v", purged, err)
		}
		purged, err = r.dead.Purge(t.Context(), redrive.Filter{Reason: "poison"}, 0)
		if err != nil || purged != n-want-10 || len(r.letters()) != 0 {
			t.Errorf("purged %d, %v, %d left", purged, err, len(r.letters()))
		}
	})
}

// A rate bounds how fast messages go back.
func TestRate(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for i := range 30 {
			r.bury(record(i, failed("orders")))
		}
		began := time.Now()
		report, err := r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{Rate: 50})
		if took := time.Since(began); err != nil || report.Moved != 30 || took < 450*time.Millisecond {
			t.Errorf("%+v in %s, %v", report, took, err)
		}
		r.bury(record(1, failed("orders")), record(2, failed("orders")))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		report, err = r.dead.Redrive(ctx, redrive.Filter{}, redrive.Options{Rate: 0.01})
		if !errors.Is(err, context.DeadlineExceeded) || report.Moved != 1 || len(r.letters()) != 1 {
			t.Errorf("%+v, %v, %d left: a run that is cut off keeps what it did", report, err, len(r.letters()))
		}
	})
}

// A lost reply loses nothing and doubles nothing: the message is in one place, and the next run goes on.
func TestLostReply(t *testing.T) { // B03
	each(t, func(t *testing.T, r *rig) {
		r.bury(record(1, failed("orders")), record(2, failed("orders")))
		proxy := faultproxy.Start(t, r.Addr)
		client := testredis.Client(t, r.Via(proxy.Addr()))
		proxy.SwallowNext("evalsha")
		report, err := r.open(client).Redrive(t.Context(), redrive.Filter{}, redrive.Options{})
		if !redrive.IsAmbiguous(err) || report.Moved != 0 {
			t.Errorf("%+v, %v", report, err)
		}
		if _, err := r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{}); err != nil {
			t.Error(err)
		}
		same(t, "orders", r.list(r.ready("orders")), []string{body(1, 0), body(2, 0)})
		same(t, "left", r.letters(), []string{})
	})
}

// Nothing is taken out of the dead letters when the target cannot take it (B07).
func TestTargetOfAnotherType(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.bury(record(1, failed("orders")))
		before := r.letters()
		if err := r.Client.Set(t.Context(), r.ready("orders"), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{}); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("error %v", err)
		}
		same(t, "left", r.letters(), before)
	})
}

// An export that is imported again is the same, byte for byte; one that was cut off is noticed.
func TestExportAndImport(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.bury(record(1, failed("orders")), "\xff\x00<&>\n", "", record(2, failed("orders")))
		before := r.letters()
		var file bytes.Buffer
		if n, err := r.dead.Export(t.Context(), redrive.Filter{}, &file); err != nil || n != 4 {
			t.Fatalf("%d, %v", n, err)
		}
		if n, err := r.dead.Purge(t.Context(), redrive.Filter{}, 0); err != nil || n != 4 {
			t.Fatalf("%d, %v", n, err)
		}
		whole := file.String()
		if n, err := r.dead.Import(t.Context(), strings.NewReader(whole), 0); err != nil || n != 4 {
			t.Errorf("%d, %v", n, err)
		}
		same(t, "after the import", r.letters(), before)
		if r.layout == redrive.Zset {
			same(t, "tokens", len(r.list(r.ready("orders")+".dlq:notify")), 4)
		}
		lines := strings.SplitAfter(whole, "\n")
		for name, text := range map[string]string{
			"cut off": strings.Join(lines[:3], ""), "a line is missing": lines[0] + lines[2] + lines[3] + lines[4], "no export": "hello\n",
			"no base64": `{"base64":"?"}` + "\n",
		} {
			if _, err := r.dead.Import(t.Context(), strings.NewReader(text), 0); !errors.Is(err, redrive.ErrFile) {
				t.Errorf("%s: %v", name, err)
			}
		}
		length := len(r.letters())
		if n, err := r.dead.Import(t.Context(), strings.NewReader(whole), 3); err != nil || n != 1 || len(r.letters()) != length+1 {
			t.Errorf("skipping three: %d, %v", n, err)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer func() { _ = client.Close() }()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{})
	defer func() { _ = cluster.Close() }()
	ring := redis.NewRing(&redis.RingOptions{})
	defer func() { _ = ring.Close() }()
	for says, cfg := range map[string]redrive.Config{
		"Client: is required": {Queue: "orders"}, "Ring": {Client: ring, Queue: "orders"}, "(R4)": {Client: client},
		"(R3)": {Client: cluster, Queue: "orders"}, "(D1)": {Client: client, Queue: "orders", DeadLetterKey: "orders"},
	} {
		if _, err := redrive.Open(cfg); !errors.Is(err, redrive.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
