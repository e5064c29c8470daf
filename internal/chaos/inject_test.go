package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// target is an injector of a server of its own, and a client that goes through its proxy.
func target(t *testing.T) (*Injector, *redis.Client) {
	t.Helper()
	server := testredis.Server(t, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
	control := testredis.Client(t, server.URL())
	proxy := faultproxy.Start(t, server.Addr())
	client := testredis.Client(t, "redis://"+proxy.Addr())
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return &Injector{
		Server: server, Proxy: proxy, Replies: []string{"echo"}, Counters: &Counters{},
		Kill: func(draw uint64) bool { return draw == 1 },
		Do:   func(ctx context.Context, words ...any) (any, error) { return control.Do(ctx, words...).Result() },
	}, client
}

func TestInject(t *testing.T) {
	t.Parallel()
	i, client := target(t)
	do := func(e Event, want bool) {
		t.Helper()
		done, err := i.inject(t.Context(), e)
		if err != nil || done != want {
			t.Errorf("%s: %v, %v, want %v", e.Kind, done, err, want)
		}
	}
	do(Event{Kind: ConsumerKill, Draw: 1}, true)
	do(Event{Kind: ConsumerKill, Draw: 2}, false)
	do(Event{Kind: HandlerFail}, false)

	if err := client.ScriptLoad(t.Context(), "return 1").Err(); err != nil {
		t.Fatal(err)
	}
	do(Event{Kind: ScriptFlush}, true)
	const hash = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // of "return 1"
	if err := client.EvalSha(t.Context(), hash, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("the script is still there: %v", err)
	}

	before := i.Server.PID()
	do(Event{Kind: RedisRestart}, true)
	if i.Server.PID() == before {
		t.Error("the server is the old one")
	}
	testredis.Eventually(t, 10*time.Second, func() bool { return client.Get(t.Context(), "key").Val() == "value" }, "the data is not back")

	do(Event{Kind: ClientKill}, true)
	testredis.Eventually(t, 10*time.Second, func() bool { return client.Ping(t.Context()).Err() == nil }, "no new connection")
	do(Event{Kind: ProxyCut}, true)
	testredis.Eventually(t, 10*time.Second, func() bool { return client.Ping(t.Context()).Err() == nil }, "no new connection")

	var g errgroup.Group
	g.Go(func() error {
		for slow := false; !slow; { // ends with the test's patience, if no reply is slow
			begin := time.Now()
			if err := client.Ping(t.Context()).Err(); err != nil {
				return err
			}
			slow = time.Since(begin) >= leastDelay
		}
		return nil
	})
	do(Event{Kind: ProxyDelay}, true)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}

	begin := time.Now()
	do(Event{Kind: DebugSleep}, true)
	if d := time.Since(begin); d < leastSleep {
		t.Errorf("the server slept %s", d)
	}
}

func TestLostReplies(t *testing.T) {
	t.Parallel()
	i, client := target(t)
	var g errgroup.Group
	g.Go(func() error {
		// Until it is lost: nobody knows when the reply is waited for.
		for client.Echo(t.Context(), "hello").Err() == nil {
		}
		return nil
	})
	done, err := i.inject(t.Context(), Event{Kind: LostReply, Draw: 1})
	if !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	_ = g.Wait() // never fails

	// One that nobody sends in time is counted when it is lost later, at the end.
	done, err = i.inject(t.Context(), Event{Kind: LostReply, Draw: 1})
	if done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	late := i.waiting[0]
	if err := client.Echo(t.Context(), "hello").Err(); err == nil {
		t.Error("the reply was not lost")
	}
	<-late.Done()
	i.countLost()
	if n := i.Counters.Of(LostReply); n != 1 || i.waiting != nil {
		t.Errorf("counted %d, waiting %v", n, i.waiting)
	}
}

// A run goes on through its schedule, and ends with its context.
func TestRunCountsWhatHappened(t *testing.T) {
	t.Parallel()
	i, client := target(t)
	i.Kill = func(uint64) bool { return true }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return i.Run(ctx, NewSchedule(1, time.Second)) })
	g.Go(func() error {
		for ctx.Err() == nil {
			_ = client.Echo(ctx, "hello").Err() // replies to lose
		}
		return nil
	})
	testredis.Eventually(t, 30*time.Second, func() bool {
		for kind := ConsumerKill; kind <= ProxyDelay; kind++ {
			if i.Counters.Of(kind) == 0 {
				return false
			}
		}
		return true
	}, "some kind of fault did not happen")
	stop()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if i.Server.PID() == 0 {
		t.Error("the server is not up at the end")
	}
}

func TestRunEndsWithoutItsServer(t *testing.T) {
	t.Parallel()
	i, _ := target(t)
	i.Kill = func(uint64) bool { return false }
	if err := i.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	i.Do = func(context.Context, ...any) (any, error) { return int64(0), nil }
	if err := i.Run(t.Context(), NewSchedule(1, time.Second)); !errors.Is(err, ErrServerGone) {
		t.Errorf("error %v", err)
	}
}
