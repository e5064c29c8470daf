package bench

import (
	"context"
	"strconv"
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/yardstick"
	"github.com/babelpool/babelpool/lua"
)

var batches = []int{1, 16, 64, 256, 1000}

// BenchmarkReserve is the reserve script, per message, at several batch sizes.
func BenchmarkReserve(b *testing.B) {
	eachBatch(b, func(b *testing.B, r *rig, layout flow.Layout, batch int) {
		store, keys := r.store(b, layout)
		r.fill(b, keys.Ready, b.N)
		r.measure(b, b.N, func() { reserveAll(b, store, batch) })
	})
}

// BenchmarkAck is the settle script with plain acks in reservation order, per message.
func BenchmarkAck(b *testing.B) {
	eachBatch(b, func(b *testing.B, r *rig, layout flow.Layout, batch int) {
		settleAll(b, r, layout, batch, func(*flow.Reservation) flow.Settlement { return flow.Settlement{Op: flow.Ack} })
	})
}

// BenchmarkDeadLetter is the settle script with dead letters.
func BenchmarkDeadLetter(b *testing.B) {
	eachBatch(b, func(b *testing.B, r *rig, layout flow.Layout, batch int) {
		settleAll(b, r, layout, batch, func(res *flow.Reservation) flow.Settlement {
			return flow.Settlement{Op: flow.DeadLetter, Text: res.Text}
		})
	})
}

// BenchmarkRelease is the settle script with releases (zset).
func BenchmarkRelease(b *testing.B) {
	r := newRig(b, false)
	for _, batch := range batches {
		b.Run("zset/batch="+strconv.Itoa(batch), func(b *testing.B) {
			settleAll(b, r, flow.Zset, batch, func(*flow.Reservation) flow.Settlement {
				return flow.Settlement{Op: flow.Release, Delay: 3600}
			})
		})
	}
}

// BenchmarkHandBack is the hand back script, per message.
func BenchmarkHandBack(b *testing.B) {
	eachBatch(b, func(b *testing.B, r *rig, layout flow.Layout, batch int) {
		store, keys := r.store(b, layout)
		r.fill(b, keys.Ready, b.N)
		held := reserveAll(b, store, 1000)
		r.measure(b, b.N, func() {
			for len(held) > 0 {
				n := min(batch, len(held))
				_, err := store.HandBack(context.Background(), held[:n])
				must(b, err)
				held = held[n:]
			}
		})
	})
}

// BenchmarkRenew is the renew script, per lease.
func BenchmarkRenew(b *testing.B) {
	eachBatch(b, func(b *testing.B, r *rig, layout flow.Layout, batch int) {
		store, keys := r.store(b, layout)
		r.fill(b, keys.Ready, b.N)
		var handles []string
		for _, res := range reserveAll(b, store, 1000) {
			handles = append(handles, res.Handle)
		}
		r.measure(b, b.N, func() {
			for len(handles) > 0 {
				n := min(batch, len(handles))
				_, err := store.Renew(context.Background(), handles[:n])
				must(b, err)
				handles = handles[n:]
			}
		})
	})
}

// BenchmarkSweep returns expired leases to ready, per message.
func BenchmarkSweep(b *testing.B) {
	eachBatch(b, func(b *testing.B, r *rig, layout flow.Layout, batch int) {
		_, keys := r.store(b, layout)
		r.fill(b, keys.Ready, b.N)
		clock := "1000"
		store := lua.New(layout, lua.Options{
			Client: r.client, Keys: keys, RetryAfter: 1, Now: func() string { return clock },
		})
		reserveAll(b, store, 1000)
		clock = "2000"
		r.measure(b, b.N, func() {
			for left := b.N; left > 0; {
				moved, err := store.Sweep(context.Background(), batch)
				must(b, err)
				if moved == 0 {
					b.Fatal(yardstick.ErrShort)
				}
				left -= moved
			}
		})
	})
}

func eachBatch(b *testing.B, run func(b *testing.B, r *rig, layout flow.Layout, batch int)) {
	r := newRig(b, false)
	for _, layout := range both {
		for _, batch := range batches {
			b.Run(layout.String()+"/batch="+strconv.Itoa(batch), func(b *testing.B) { run(b, r, layout, batch) })
		}
	}
}

// reserveAll reserves all that is ready.
func reserveAll(b *testing.B, store lua.Store, batch int) []*flow.Reservation {
	b.Helper()
	return reserveMore(b, store, make([]*flow.Reservation, 0, b.N), b.N, batch)
}

// reserveMore reserves until n are held.
func reserveMore(b *testing.B, store lua.Store, held []*flow.Reservation, n, batch int) []*flow.Reservation {
	b.Helper()
	for len(held) < n {
		most := min(batch, n-len(held))
		got, err := store.Reserve(context.Background(), flow.ReserveRequest{
			Most: most, Bytes: 64 << 20, FirstPop: most, Migration: 1000,
		})
		must(b, err)
		if got.Lease == nil {
			b.Fatal(yardstick.ErrShort)
		}
		for i := range got.Lease.Items {
			held = append(held, &got.Lease.Items[i])
		}
	}
	return held
}

// settleAll reserves all, then settles in reservation order, which is what is measured.
func settleAll(b *testing.B, r *rig, layout flow.Layout, batch int, decide func(*flow.Reservation) flow.Settlement) {
	b.Helper()
	store, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	held := reserveAll(b, store, 1000)
	r.measure(b, b.N, func() {
		for len(held) > 0 {
			n := min(batch, len(held))
			settled := make([]flow.Settlement, n)
			for i := range settled {
				settled[i] = decide(held[i])
				settled[i].Reservation = held[i]
			}
			_, err := store.Settle(context.Background(), settled)
			must(b, err)
			held = held[n:]
		}
	})
}
