package pool_test

import (
	"fmt"
	"testing"

	"github.com/babelpool/babelpool/pool"
)

// TestBacklog covers B37 and B23: more expired leases, and in the zset layout due messages, than one variadic
// command takes come back and are handled, each once.
func TestBacklog(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		n := 8001 // unpack fails at 8,000
		if !r.Real {
			n = 1500 // the imitation needs seconds for more; a script moves 1,000
		}
		past := float64(r.serverTime().Unix() - 10)
		texts := bodies(n)
		want := int64(n)
		if r.layout == pool.Zset {
			r.due(past, texts...)
			for i := range texts {
				texts[i] = body(n+i, 1) // they died in their first delivery
			}
			r.lease(past, texts...)
			want = int64(2 * n)
		} else {
			r.rpush(r.keys.inFlight, texts...)
			members := make([]string, n)
			for i, text := range texts {
				members[i] = fmt.Sprintf("%032x:%s", i, text)
			}
			r.lease(past, members...)
		}
		p := r.start(r.config(function(ackAll)))
		p.settled(int(want))
		r.awaitSettled()
		s := p.stats()
		wantEqual(t, "moved, started, acked", []int64{s.Moved, s.Started, s.Acked}, []int64{want, want, want})
		r.wantKeys()
	})
}
