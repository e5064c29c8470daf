package faulttest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestWeightsShareTheWorkers loads two queues of different weight: the shares of the workers are about those,
// as long as the buffer is deep enough for the workers to have a choice.
func TestWeightsShareTheWorkers(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 1500
		heavy := newSharedRig(t, layout)
		light := heavy.beside("light")
		t.Cleanup(func() { light.control.Del(context.Background(), light.keys.Ready, light.keys.Notify) })
		heavy.publish(n)
		light.publish(n)
		p := heavy.start(pool.Config{
			Concurrency: 8, Prefetch: 256, RetryAfter: longLease,
			Queues: []pool.Queue{
				{Name: heavy.queue, Weight: 3, Handler: heavy.sleeping(10 * time.Millisecond)},
				{Name: light.queue, Weight: 1, Handler: light.sleeping(10 * time.Millisecond)},
			},
		})
		started := func() (heavy, light float64) {
			s := p.Stats()
			if len(s.Queues) < 2 {
				return 0, 0
			}
			return float64(s.Queues[0].Started), float64(s.Queues[1].Started)
		}
		var h, l float64
		testredis.Eventually(t, patience, func() bool { h, l = started(); return h+l > 1000 }, "1,000 starts")
		t.Logf("%.0f to %.0f starts", h, l)
		if ratio := h / l; ratio < 2 || ratio > 4.5 {
			t.Errorf("%.0f to %.0f starts, a ratio of %.1f with weights of 3 to 1", h, l, ratio)
		}
		heavy.awaitAllDone()
		light.awaitAllDone() // it has all workers in the end
		heavy.awaitEmpty()
		light.awaitEmpty()
		p.stopClean()
	})
}

// TestFiftyQueuesInOnePool serves many queues beside one with a long backlog.
func TestFiftyQueuesInOnePool(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const each = 20
		backlog := newRig(t, layout, redisproc.Config{})
		backlog.publish(scaled(4000, 20_000))
		queues := []pool.Queue{{Name: backlog.queue, Handler: backlog.sleeping(5 * time.Millisecond)}}
		var others []*rig
		for i := range 49 {
			r := backlog.beside("small" + strconv.Itoa(i))
			r.publish(each)
			others = append(others, r)
			queues = append(queues, pool.Queue{Name: r.queue, Handler: r.sleeping(time.Millisecond)})
		}
		p := backlog.start(pool.Config{Queues: queues, Concurrency: 16, RetryAfter: longLease})
		for _, r := range others {
			r.awaitAllDone()
		}
		if backlog.allDone() {
			t.Error("the small queues were served after the backlog")
		}
		for _, r := range others {
			r.awaitEmpty()
			r.onceEach(t)
		}
		p.stopClean()
		backlog.check()
	})
}
