package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestSlotMigration moves the queue's slot from master to master under load, key by key. While its keys are apart a
// cluster refuses calls that need several, also when some do not exist, as here always: nothing can be reserved then.
func TestSlotMigration(t *testing.T) { // R1, R3
	eachLayout(t, func(t *testing.T, layout pool.Layout) { moveSlots(t, layout, besideOthers) })
}

func moveSlots(t *testing.T, layout pool.Layout, limit time.Duration) {
	t.Helper()
	cluster := testredis.Cluster(t, redisproc.ClusterConfig{})
	r, open, slot := newClusterRig(t, layout, cluster)
	h, client := &tries{}, open()
	client.AddHook(h)
	p := r.start(pool.Config{Client: client, Concurrency: 8, Prefetch: 1024, RetryAfter: 5 * time.Second, Handler: r.sleeping(5 * time.Millisecond)})
	ctx, cancel := context.WithCancel(context.Background())
	loaded := r.load(ctx, open(), 2*time.Millisecond)
	defer func() { cancel(); <-loaded }()
	p.until("the load flows", func(c pool.QueueStats) bool { return c.Acked > 100 })

	for i := range scaled(3, 50) {
		to, err := cluster.AnotherMaster(t.Context(), slot)
		must(t, err)
		begun := time.Now()
		must(t, cluster.MoveSlot(t.Context(), slot, to, func() { pause(t, 300*time.Millisecond) }))
		back := time.Now()
		h.calm(t, begun, back)
		took := r.resumes(open(), back)
		t.Logf("move %d took %v, consumed again %v after it", i+1, back.Sub(begun).Round(time.Millisecond), took.Round(time.Millisecond))
		if took > limit {
			t.Errorf("consumed again %v after the move, want at most %v", took, limit)
		}
	}
	cancel()
	<-loaded
	r.awaitAllDone()
	r.awaitEmpty()
	// Whether a loop notices depends on what it had to do meanwhile: a reserver may be waiting for a message all the time.
	if p.logs.count("reserving is held up")+p.logs.count("settling is held up") == 0 {
		t.Error("no move was noticed: the test has shown nothing")
	}
	p.logs.inPairs(t)
	p.stopClean()
	r.onceEach(t)
	if c := p.counts(); c.Failed+c.DeadLettered+c.Late+c.Lost != 0 {
		t.Errorf("nothing failed, dead, late or lost expected: %+v", c)
	}
}

// inPairs fails the test when a loop did not log each change of its state once. The renewer learns that it works
// again when a lease is due, which may be after the test.
func (b *logBook) inPairs(t *testing.T) {
	t.Helper()
	for _, loop := range []string{"reserving", "settling", "sweeping", "renewing leases"} {
		down, up := 0, 0
		testredis.Eventually(t, 5*time.Second, func() bool {
			down, up = b.count(loop+" is held up"), b.count(loop+" works again")
			return down == up || loop == "renewing leases" && down == up+1
		}, "%s: as many lines for up as for down", loop)
	}
}
