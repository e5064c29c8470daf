package lua

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
)

// waited is the end of a wait.
type waited struct {
	tokens int
	err    error
	took   time.Duration
}

// waiting starts a wait and returns where its end is reported.
func (q *queue) waiting(ctx context.Context) <-chan waited {
	ended := make(chan waited, 1)
	go func() {
		begin := time.Now()
		tokens, err := q.Wait(ctx)
		ended <- waited{tokens, err, time.Since(begin)}
	}()
	return ended
}

// await fails when the wait does not end in time.
func await(t testing.TB, ended <-chan waited) waited {
	t.Helper()
	select {
	case w := <-ended:
		return w
	case <-time.After(10 * time.Second):
		t.Fatal("the wait does not end")
		panic("unreachable")
	}
}

// blocked returns once the server has a blocked client on the queue.
func (q *queue) blocked(t testing.TB, clients int) {
	t.Helper()
	testredis.Eventually(t, 5*time.Second, func() bool {
		info, err := q.client.Info(t.Context(), "clients").Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(info) {
			if n, ok := strings.CutPrefix(line, "blocked_clients:"); ok {
				return strings.TrimSpace(n) == strconv.Itoa(clients)
			}
		}
		return false
	}, "%d blocked clients", clients)
}

// A push ends the wait at once; nothing is consumed but, in the zset layout, the one token that is reported.
func TestWaitEndsAtAPush(t *testing.T) { // B24, B39
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		want, tokens := state{Ready: bodies(0, 2)}, 0
		if q.layout == flow.Zset {
			tokens, want.Notify = 1, 1
		}
		var times []time.Duration
		for range 3 {
			q.clear(t)
			ended := q.waiting(t.Context())
			q.publish(t, bodies(0, 2)...)
			w := await(t, ended)
			if w.err != nil || w.tokens != tokens {
				t.Errorf("%+v, want %d tokens", w, tokens)
			}
			q.expect(t, want)
			times = append(times, w.took)
		}
		req := everything(1)
		req.Tokens = tokens
		q.reserve(t, req) // the token taken counts for the message taken (Z3)
		if q.layout == flow.Zset && q.state(t).Notify != 1 {
			t.Errorf("%d tokens for the one message left", q.state(t).Notify)
		}
		// A wait on a queue with messages does not block.
		w := await(t, q.waiting(t.Context()))
		if times = append(times, w.took); w.err != nil || slices.Min(times) > 500*time.Millisecond {
			t.Errorf("%v; the waits took %v, want well below a second", w.err, times)
		}
	})
}

func TestWaitOnAnIdleQueueEnds(t *testing.T) { // B39
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		queues := []*queue{newQueue(t, b, flow.Legacy, nil), newQueue(t, b, flow.Zset, nil)}
		ended := []<-chan waited{queues[0].waiting(t.Context()), queues[1].waiting(t.Context())} // side by side
		for i, q := range queues {
			w := await(t, ended[i])
			if w.err != nil || w.tokens != 0 || w.took < 700*time.Millisecond || w.took > 5*time.Second {
				t.Errorf("%s: %+v, want about a second", q.layout, w)
			}
			q.expect(t, state{})
		}
	})
}

// A token that was taken and will not be counted goes back (Z1).
func TestReturnToken(t *testing.T) { // Z3, B41
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		tokens, err := q.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := state{Ready: []string{body(1)}}
		if q.layout == flow.Zset {
			want.Notify = 1
		}
		if tokens != want.Notify {
			t.Errorf("%d tokens", tokens)
		}
		if err := q.ReturnToken(t.Context()); err != nil {
			t.Error(err)
		}
		q.expect(t, want)
		if q.layout == flow.Zset {
			q.do(t, "SET", q.keys.Notify, "somebody else's")
			if err := q.ReturnToken(t.Context()); !errors.Is(err, flow.ErrPermanent) || !strings.Contains(err.Error(), q.keys.Notify) {
				t.Errorf("%v, want ErrPermanent and the key", err)
			}
		}
	})
}

func TestWaitWithAnEndedContext(t *testing.T) { // B24
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q.publish(t, body(1))
		q.untouched(t, "a wait that must not start", func() {
			if tokens, err := q.Wait(ctx); tokens != 0 || err != nil {
				t.Errorf("%d, %v", tokens, err)
			}
		})
	})
}

// Where there is no CLIENT UNBLOCK the wait ends by itself within its second.
func TestWaitOnMiniredisEndsByItself(t *testing.T) { // B24
	t.Parallel()
	mini := testredis.Mini(t)
	b := testredis.Backend{Addr: mini.Addr(), Client: testredis.Client(t, mini.Addr()), Prefix: "t:", Mini: mini}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	legacy := newQueue(t, b, flow.Legacy, nil).waiting(ctx)
	for _, w := range []waited{await(t, newQueue(t, b, flow.Zset, nil).waiting(ctx)), await(t, legacy)} {
		if w.err != nil || w.tokens != 0 || w.took > 3*time.Second {
			t.Errorf("%+v", w)
		}
	}
}

// A wait is cut short when its context ends: nothing is taken, nothing moves afterwards, the connection serves
// the next wait and goes back at Close.
func TestWaitIsCutShort(t *testing.T) { // B24, B44
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, proxy *faultproxy.Proxy) {
		var times []time.Duration
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := q.waiting(ctx)
			q.blocked(t, 1)
			at := time.Now()
			cancel()
			w := await(t, ended)
			if times = append(times, time.Since(at)); w.err != nil || w.tokens != 0 {
				t.Errorf("%+v", w)
			}
		}
		if slices.Min(times) > 200*time.Millisecond { // the best of three: the machine may be busy
			t.Errorf("the waits ended %v after their contexts, want at most 200 ms", times)
		}
		conns := map[int]bool{}
		for _, c := range proxy.Commands() {
			if c.Name() == "BLMOVE" || c.Name() == "BLPOP" {
				conns[c.Conn] = true
			}
		}
		if len(conns) != 1 {
			t.Errorf("three waits used %d connections, want one (B17)", len(conns))
		}
		q.publish(t, body(1))
		want := state{Ready: []string{body(1)}}
		if q.layout == flow.Zset {
			want.Notify = 1
		}
		q.expect(t, want)

		stats := q.client.PoolStats()
		if idle := stats.TotalConns - stats.IdleConns; idle != 1 {
			t.Errorf("%d connections are out, want the wait's", idle)
		}
		q.Close()
		q.Close() // once more does no harm
		if stats := q.client.PoolStats(); stats.TotalConns != stats.IdleConns {
			t.Errorf("%d of %d connections are back", stats.IdleConns, stats.TotalConns)
		}
		if w := await(t, q.waiting(t.Context())); w.err != nil { // a closed store connects again
			t.Errorf("after Close: %v", w.err)
		}
	})
}

// A context that ends in the very moment of a push loses no token.
func TestWaitLosesNoTokenAtItsEnd(t *testing.T) { // Z1, B24
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) {
		taken := 0
		const rounds = 100
		for i := range rounds {
			ctx, cancel := context.WithCancel(t.Context())
			ended := q.waiting(ctx)
			q.blocked(t, 1)
			done := make(chan struct{})
			go func() {
				cancel()
				close(done)
			}()
			q.publish(t, body(i))
			<-done
			w := await(t, ended)
			if w.err != nil {
				t.Fatalf("round %d: %v", i, w.err)
			}
			taken += w.tokens
			if s := q.state(t); len(s.Ready) != 1 || q.layout == flow.Zset && s.Notify+w.tokens != 1 {
				t.Fatalf("round %d: %d ready, %d tokens, %d taken", i, len(s.Ready), s.Notify, w.tokens)
			}
			q.clear(t)
		}
		t.Logf("%d of %d tokens were taken", taken, rounds)
	})
}

// TestEveryEighthVainWaitIsLong, so that an idle queue's waits and reserves leave room for its audits.
func TestEveryEighthVainWaitIsLong(t *testing.T) { // B39
	t.Parallel()
	var lengths []time.Duration
	w := waiter{client: notConnected{}, block: func(_ context.Context, _ blocker, _ string, most time.Duration) (int, error) {
		if lengths = append(lengths, most); len(lengths) == 14 {
			return 1, nil // a message: the count begins anew
		}
		return 0, redis.Nil
	}}
	for range 18 {
		if _, err := w.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, d := range lengths {
		want := time.Second
		if i == 3 || i == 11 || i == 17 {
			want = 2 * time.Second
		}
		if d != want {
			t.Errorf("wait %d lasts %s, want %s", i+1, d, want)
		}
	}
}

// notConnected is a client of no known kind: a wait asks nothing of it.
type notConnected struct{ redis.UniversalClient }
