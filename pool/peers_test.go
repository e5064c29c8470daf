package pool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// traced are the headers of the framed samples.
var traced = map[string]string{
	"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-é": "a/b&c",
}

// inner is the body of a framed sample.
func inner(t *testing.T, stored string) string {
	t.Helper()
	var frame struct{ Body string }
	if err := json.Unmarshal([]byte(stored), &frame); err != nil {
		t.Fatal(err)
	}
	return frame.Body
}

// TestPeersMessages covers that what the SDKs of other languages publish is handled, bare or framed: text and
// numbers as they were written (E6), headers beside (F2, F4).
func TestPeersMessages(t *testing.T) {
	t.Parallel()
	samples := map[string]struct {
		stored, lang, big string
		framed            bool
	}{
		"python":        {pythonBare, "python", "9007199254740993", false},
		"python framed": {pythonFramed, "python", "9007199254740993", true},
		"node":          {nodeBare, "node", "9007199254740992", false},
		"node framed":   {nodeFramed, "node", "9007199254740992", true},
		"go":            {goBare, "go", "9007199254740993", false},
		"go framed":     {goFramed, "go", "9007199254740993", true},
		"php":           {phpBare, "php", "9007199254740993", false},
		"laravel":       {laravelBare, "php", "9007199254740993", false},
	}
	each(t, func(t *testing.T, r *rig) {
		seen, handler := watch(nil)
		p := r.start(r.config(handler))
		done := 0
		for name, sample := range samples {
			r.push(sample.stored)
			d := receive(t, seen, name)
			done++
			p.settled(done)

			want, headers := sample.stored, map[string]string(nil)
			if sample.framed {
				want, headers = inner(t, sample.stored), traced
			} else {
				want = attemptsIn(want, first(r.layout))
			}
			wantEqual(t, name+": body", d.Body, want)
			wantEqual(t, name+": headers", d.Headers, headers)
			wantEqual(t, name+": attempts and number", []int64{d.Attempts, d.Number}, []int64{first(r.layout), 1})
			wantEqual(t, name+": meta", []string{d.Meta.Lang, d.Meta.Queue}, []string{sample.lang, queue})
			if !strings.Contains(want, `"data":`+d.Data+",") {
				t.Errorf("%s: data %s", name, d.Data)
			}
			var data struct {
				OrderID       int `json:"order_id"`
				Name, URL     string
				HTML          string
				Big           json.Number
				Empty         []int
				Nul           *int
				F             float64
				ObjectOrArray json.RawMessage `json:"obj"`
			}
			if err := d.Bind(&data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantEqual(t, name+": data", []any{data.OrderID, data.Name, data.URL, data.HTML, data.Big.String()},
				[]any{1042, "é😀", "https://x/y", "<a&b>", sample.big})
		}
		r.awaitSettled()
		r.wantDead()
	})
}

// TestPHPEmptyData covers that PHP's empty data, an array, is poison (E3).
func TestPHPEmptyData(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		r.push(phpEmptyData)
		p := r.start(r.config(function(ackAll)))
		p.settled(1)
		r.awaitSettled()
		n := first(r.layout)
		r.wantRecords(dead(attemptsIn(phpEmptyData, n), "poison", `"envelope: poison message: data is not an object"`, `"*envelope.PoisonError"`, n))
	})
}

// TestPeersReservations covers what a Laravel or Python worker that died has left in reserved: other key order,
// with attempts in the middle. It comes back, is released with a delay, and ends, with no other byte changed.
func TestPeersReservations(t *testing.T) {
	t.Parallel()
	for name, member := range map[string]string{"laravel": laravelReserved, "python": pythonReserved} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, pool.Zset, func(t *testing.T, r *rig) {
				seen, handler := watch(func(d *delivery.Delivery) error {
					if d.Number == 2 {
						return errBoom
					}
					return nil
				})
				cfg := r.config(handler)
				cfg.FailureDelay = ptr(1.0)
				r.lease(float64(r.serverTime().Unix()-1), member)
				p := r.start(cfg)

				d := receive(t, seen, "the expired one")
				second := strings.Replace(member, `"attempts":1`, `"attempts":2`, 1)
				wantEqual(t, "body", d.Body, second)
				wantEqual(t, "attempts and number", []int64{d.Attempts, d.Number}, []int64{2, 2})
				wantEqual(t, "URN and lang", []string{d.URN, d.Meta.Lang}, []string{urn, name2lang(name)})
				s := r.await("it is delayed", func(s state) bool { return len(s.Delayed) == 1 })
				wantEqual(t, "delayed", s.Delayed, []string{second})

				d = receive(t, seen, "the released one")
				wantEqual(t, "body", d.Body, strings.Replace(member, `"attempts":1`, `"attempts":3`, 1))
				wantEqual(t, "acked", p.settled(2).Acked, 1)
				r.awaitSettled()
				r.wantDead()
			})
		})
	}
}

func name2lang(peer string) string {
	if peer == "laravel" {
		return "php"
	}
	return peer
}

// TestForeignJobs covers Z8: a queue shared with Laravel's own jobs. They are given up as they were in ready,
// so that they can go back, or left for Laravel's workers.
func TestForeignJobs(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		told, onError := reports(10)
		cfg := r.config(function(ackAll))
		cfg.OnError = onError
		r.push(laravelJob, goPlain)
		r.due(float64(r.serverTime().Unix()), laravelQueuedCall)
		p := r.start(cfg)
		for _, rep := range collect(t, told, 2, "both jobs are reported") {
			wantWords(t, rep.err.Error(), "a job of another system (Z8)")
			if rep.raw != laravelJob && rep.raw != laravelQueuedCall {
				t.Errorf("reported %s", rep.raw)
			}
		}
		s := r.awaitSettled()
		wantEqual(t, "dead letters", sortedBriefs(s.Dead), sortedBriefs([]string{laravelJob, laravelQueuedCall}))
		wantEqual(t, "tokens", s.DeadNotify, 2)
		wantEqual(t, "acked", p.settled(3).Acked, 1)
	})
}

func TestForeignJobsLeave(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		told, onError := reports(10)
		cfg := r.config(function(ackAll))
		cfg.OnError, cfg.ForeignJobs, cfg.RetryAfter = onError, pool.BadLeave, 2*time.Second
		r.push(laravelJob, `{"job":5}`)
		r.start(cfg)
		// The other strategy is not touched: an object that is no job of anybody is dead-lettered.
		for range 3 { // twice the job, once the object
			receive(t, told, "the job is reported again")
		}
		r.wantRecords(dead(`{"job":5,"attempts":1}`, "poison", `"envelope: poison message: job is not a string"`, `"*envelope.PoisonError"`, 1))
		s := r.await("it is in flight", func(s state) bool { return len(s.InFlight) == 1 })
		wantEqual(t, "in flight", s.InFlight, []string{strings.Replace(laravelJob, `"attempts":0`, `"attempts":2`, 1)})
	})
}

// TestForeignJobsInLegacy covers that the legacy layout knows no foreign jobs: they are poison.
func TestForeignJobsInLegacy(t *testing.T) {
	t.Parallel()
	on(t, pool.Legacy, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.ForeignJobs = pool.BadLeave
		r.push(laravelJob)
		r.start(cfg).settled(1)
		r.wantRecords(dead(laravelJob, "poison", `"envelope: poison message: trace_id is not a non-blank string"`, `"*envelope.PoisonError"`, 0))
	})
}
