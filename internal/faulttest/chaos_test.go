package faulttest

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

// chaosSeed is where BQ_CHAOS_SEED names the seed of a run to make again: the order of its faults and their pauses.
const chaosSeed = "BQ_CHAOS_SEED"

const (
	chaosChildren = 2
	chaosPrefetch = 32
	chaosFailing  = 0.03
)

// TestChaos publishes without a pause, lets consumer processes work whose handlers fail, panic and exit at times, and
// does everything to Redis, the network and the processes that it can. Then all is left in peace: every message must
// have been handled, nothing may be left anywhere, and no more handlers may have run than the faults explain.
func TestChaos(t *testing.T) { // R1, L4, Z4, B01, B03, B10, B13, B15, B20, B46
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		seed := rand.Uint64()
		if text := os.Getenv(chaosSeed); text != "" {
			var err error
			seed, err = strconv.ParseUint(text, 10, 64)
			must(t, err)
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Logf("%s=%d", chaosSeed, seed)
		r := newRig(t, layout, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
		proxy := faultproxy.Start(t, r.server.Addr())
		config := childConfig{
			URL: "redis://" + proxy.Addr(), Concurrency: 8, Prefetch: chaosPrefetch, RetryAfter: 2 * time.Second,
			Handler: 2 * time.Millisecond, Misbehave: chaosFailing,
		}
		var children []*child
		for range chaosChildren {
			children = append(children, r.startChild(config))
		}

		ctx, cancel := context.WithCancel(t.Context())
		var group errgroup.Group
		group.Go(func() error { r.publishAlways(ctx); return nil })
		faults := map[string]func(){
			"consumer killed": func() {
				i := rng.IntN(len(children))
				children[i].kill()
				children[i] = r.startChild(config)
			},
			"redis restarted": func() {
				must(t, r.server.Kill())
				pause(t, time.Duration(rng.IntN(300))*time.Millisecond)
				must(t, r.server.Restart(t.Context()))
			},
			"connections killed": func() { _ = r.control.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err() },
			"scripts forgotten":  func() { _ = r.control.ScriptFlush(t.Context()).Err() },
			"redis frozen": func() {
				must(t, r.server.Freeze())
				pause(t, time.Duration(100+rng.IntN(400))*time.Millisecond)
				must(t, r.server.Thaw())
			},
			"network cut": func() { proxy.Cut() },
			"reply lost":  func() { proxy.SwallowNext("evalsha") },
			"network slow": func() {
				proxy.Delay(time.Duration(rng.IntN(100)) * time.Millisecond)
				pause(t, 300*time.Millisecond)
				proxy.Delay(0)
			},
		}
		counts := map[string]int{}
		kinds := slices.Sorted(maps.Keys(faults))
		for begun := time.Now(); time.Since(begun) < scaled(8*time.Second, 5*time.Minute) || len(counts) < len(kinds); {
			rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
			for _, kind := range kinds {
				pause(t, time.Duration(rng.IntN(300))*time.Millisecond)
				faults[kind]()
				counts[kind]++
			}
		}
		cancel()
		_ = group.Wait() // never fails
		calm := time.Now()
		r.awaitAllDone()
		r.awaitEmpty()
		recovery := time.Since(calm)
		for _, c := range children {
			c.stop()
		}

		stored, done, starts := r.totals()
		started := r.startedOnce()
		total := 0
		for _, n := range counts {
			total += n
		}
		t.Logf("%d messages, %d handled, %d starts beyond the first of each, %d faults %v, empty %s after the last", stored, done, starts-started, total, counts,
			recovery.Round(time.Millisecond))
		if dead := r.snapshot().dead; len(dead) > 0 {
			t.Errorf("%d dead letters, and nothing gives a message up", len(dead))
		}
		// Every fault can make all that was in flight run again, and so can a failed handler its own message.
		allowed := total*chaosChildren*chaosPrefetch + int(4*chaosFailing*float64(stored)) + 100
		if again := starts - started; again > allowed {
			t.Errorf("%d runs beyond the first, want at most %d", again, allowed)
		}
	})
}

// startedOnce is the number of messages that were started at least once.
func (l *ledger) startedOnce() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.starts)
}

// publishAlways publishes until ctx ends. What it cannot know to be stored stays unsure in the ledger.
func (r *rig) publishAlways(ctx context.Context) {
	const batch = 20
	for ctx.Err() == nil {
		seqs, bodies := make([]int, batch), make([]string, batch)
		for i := range batch {
			seqs[i], bodies[i] = r.body(r.t, r.queue, testURN)
		}
		if err := r.store.Publish(context.WithoutCancel(ctx), bodies); err == nil {
			r.stored(seqs...)
		}
		_ = nap(ctx, 5*time.Millisecond) // the loop looks at ctx
	}
}
