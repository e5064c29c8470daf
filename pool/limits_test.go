package pool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestB42DeadLettersStayWithinLimits: of many failing messages with large errors the newest records stay, the others are
// discarded, counted and logged; each error is capped; the tokens of the dead letters are in step (D1).
func TestB42DeadLettersStayWithinLimits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		const n = 600
		large := errors.New("boom " + strings.Repeat("x", 10<<10))
		for name, tc := range map[string]struct {
			limits pool.DeadLetterLimits
			within func(s state) bool
		}{
			"count": {pool.DeadLetterLimits{Count: 100}, func(s state) bool { return len(s.Dead) == 100 }},
			"bytes": {pool.DeadLetterLimits{Bytes: 300_000}, func(s state) bool { return len(s.Dead) > 50 && len(s.Dead) < 200 }},
			"all": {
				pool.DeadLetterLimits{Count: 100, Age: time.Hour, Bytes: 1 << 30}, func(s state) bool { return len(s.Dead) == 100 },
			},
		} {
			r.logs = &recorder{}
			o := &told{}
			r.must(r.Client.Del(t.Context(), r.keys.dead, r.keys.dead+":notify").Err())
			cfg := r.config(function(func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(large) }))
			cfg.DeadLetterLimits, cfg.OnCall = tc.limits, o.onCall
			r.push(bodies(n)...)
			p := r.start(cfg)
			p.settled(n)
			r.await(name+": dead letters within the limits", tc.within)
			p.stopped()
			s := r.state()
			st := p.stats()
			if st.Discarded != int64(n-len(s.Dead)) || st.DeadLettered != n {
				t.Errorf("%s: %d dead-lettered, %d discarded, %d left", name, st.DeadLettered, st.Discarded, len(s.Dead))
			}
			wantEqual(t, name+": told of", o.messages()[pool.CallTrim], n-len(s.Dead))
			if r.layout == pool.Zset && s.DeadNotify != len(s.Dead) {
				t.Errorf("%s: %d tokens beside %d dead letters", name, s.DeadNotify, len(s.Dead))
			}
			for _, record := range s.Dead {
				if len(record) > 3<<10 {
					t.Fatalf("%s: a record of %d bytes", name, len(record))
				}
			}
			if len(r.logs.matching("WARN", "dead letters were discarded", "queue=orders")) == 0 {
				t.Errorf("%s: nothing is logged", name)
			}
		}
	})
}

// TestB42AgeAtStart: what is old when a pool starts, of other processes too, goes at once.
func TestB42AgeAtStart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		old := envelope.DeadLetterRecord(body(1, 1), envelope.DeadLetter{Reason: "failed", FailedAt: time.Now().Add(-2 * time.Hour).UnixMilli()})
		young := envelope.DeadLetterRecord(body(2, 1), envelope.DeadLetter{Reason: "failed", FailedAt: time.Now().UnixMilli()})
		r.rpush(r.keys.dead, old, "raw", old, young, "raw, young")
		cfg := r.config(function(ackAll))
		cfg.DeadLetterLimits.Age = time.Hour
		p := r.start(cfg)
		testredis.Eventually(t, patience, func() bool { return p.stats().Discarded == 3 }, "three are discarded")
		r.wantDead(young, "raw, young")
		p.stopped()
	})
}

// TestB42StartUpNotice: without limits a line at start says that dead letters grow, and how to bound them.
func TestB42StartUpNotice(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limits pool.DeadLetterLimits
		want   int
	}{
		"off": {pool.DeadLetterLimits{}, 1}, "count": {pool.DeadLetterLimits{Count: 1}, 0},
		"age": {pool.DeadLetterLimits{Age: 1}, 0}, "bytes": {pool.DeadLetterLimits{Bytes: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, pool.Legacy, func(t *testing.T, r *rig) {
				cfg := r.config(function(ackAll))
				cfg.DeadLetterLimits = row.limits
				p := r.start(cfg)
				testredis.Eventually(t, patience, func() bool { return len(r.logs.matching("INFO consuming")) == 1 }, "it has started")
				p.stopped()
				if got := len(r.logs.matching("INFO dead letters grow without limit", "DeadLetterLimits")); got != row.want {
					t.Errorf("%d notices, want %d", got, row.want)
				}
			})
		})
	}
}
