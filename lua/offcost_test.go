package lua

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
)

// commands are how often the server has run each command since its statistics were reset, those of scripts included.
func (q *queue) commands(t testing.TB) map[string]string {
	t.Helper()
	text, err := q.client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, stats, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if ok && name != "info" && name != "config|resetstat" {
			all[name], _, _ = strings.Cut(stats, ",")
		}
	}
	return all
}

// life is what a queue does with a few messages: reserve, lose a worker, sweep, reserve again, leave, ack, dead-letter.
func life(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 8)...)
	q.take(t, 8)
	q.pass(lease)
	held := q.take(t, 4)
	q.take(t, 4)
	q.settle(t, acks(held[:2]...)...)
	q.settle(t, settlement(held[2], flow.DeadLetter, "record"))
	q.pass(lease)
	q.sweep(t, 1000)
}

// lifeCosts is what that made the server run before lost workers were counted at all.
var lifeCosts = map[flow.Layout]map[string]string{
	flow.Legacy: {
		"evalsha": "6", "exists": "3", "lindex": "2", "llen": "3", "lpop": "3", "lrange": "4", "ltrim": "4", "rpush": "7",
		"type": "17", "zadd": "3", "zmscore": "2", "zrangebyscore": "4", "zrank": "3", "zrem": "4",
	},
	flow.Zset: {
		"del": "2", "evalsha": "7", "exists": "5", "llen": "4", "lpop": "4", "rpush": "8", "type": "28", "zadd": "3",
		"zmscore": "5", "zrangebyscore": "8", "zrem": "4",
	},
}

// Counting lost workers costs a queue that does not use it nothing: the server runs the very commands it ran before there
// was such a thing.
func TestB21CostsNothingWhenOff(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) {
		life(t, q) // the scripts become known
		q.clear(t)
		q.do(t, "CONFIG", "RESETSTAT")
		life(t, q)
		if diff := cmp.Diff(lifeCosts[q.layout], q.commands(t)); diff != "" {
			t.Errorf("commands (-before +now):\n%s", diff)
		}
	})
}

// Where lost workers are counted and none is lost, a reserve costs one look at the type of the counts and one at their
// number, a settlement nothing.
func TestB21CostsLittleWhenNoneIsLost(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) {
		cost := func(q *queue) map[string]string {
			round := func() {
				q.publish(t, bodies(0, 4)...)
				held := q.take(t, 4)
				q.settle(t, acks(held...)...)
			}
			round() // the scripts become known
			q.do(t, "CONFIG", "RESETSTAT")
			round()
			return q.commands(t)
		}
		off, on := cost(q), cost(q.counting(t))
		more := map[string]int{}
		for name, calls := range on {
			now, _ := strconv.Atoi(calls)
			before, _ := strconv.Atoi(off[name])
			if now != before {
				more[name] = now - before
			}
		}
		if diff := cmp.Diff(map[string]int{"hlen": 1, "type": 1}, more); diff != "" {
			t.Errorf("commands added (-want +got):\n%s", diff)
		}
	})
}
