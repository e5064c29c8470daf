package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
)

const patience = 5 * time.Second

// through returns a proxy in front of b and a client that goes through it. The client is connected
// already, and twice, because go-redis keeps connections for pipelines apart.
func through(t *testing.T, b testredis.Backend) (*Proxy, *redis.Client) {
	t.Helper()
	p := Start(t, b.Addr)
	client := testredis.Client(t, b.Via(p.Addr()))
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		return pipe.Ping(t.Context()).Err()
	}); err != nil {
		t.Fatal(err)
	}
	p.ResetCounts()
	return p, client
}

func wait(t *testing.T, s *Swallow) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the reply was not swallowed")
	}
}

func list(t *testing.T, b testredis.Backend, key string) []string {
	t.Helper()
	got, err := b.Client.LRange(t.Context(), key, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSwallowedReplyLeavesTheEffect(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		key := b.Prefix + "q"
		s := p.SwallowNext("RPush " + key)
		if err := client.RPush(t.Context(), b.Prefix+"other", "0").Err(); err != nil {
			t.Fatalf("a command that does not match: %v", err)
		}
		if err := client.RPush(t.Context(), key, "1").Err(); err == nil {
			t.Fatal("the reply got through")
		}
		wait(t, s)
		if diff := cmp.Diff([]string{"1"}, list(t, b, key)); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		if err := client.RPush(t.Context(), key, "2").Err(); err != nil {
			t.Errorf("only one reply was to be lost: %v", err)
		}
	})
}

// TestSwallowInsidePipeline speaks to the proxy by hand: go-redis marks every command of a pipeline
// that breaks off as failed, those whose reply it has read too.
func TestSwallowInsidePipeline(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	p := Start(t, mini.Addr())
	const key = "q"
	conn := dial(t, p.Addr())
	s := p.SwallowNext("second")
	var pipeline strings.Builder
	for _, v := range []string{"first", "second", "third"} {
		fmt.Fprintf(&pipeline, "*3\r\n$5\r\nRPUSH\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(v), v)
	}
	if _, err := io.WriteString(conn, pipeline.String()); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, conn); got != ":1\r\n" {
		t.Errorf("replies: %q, want the first one alone", got)
	}
	wait(t, s)
	// The server may still be at the last one when the connection goes.
	testredis.Eventually(t, patience, func() bool {
		got, err := mini.List(key)
		return err == nil && len(got) == 3
	}, "all three take effect")
	if got := p.RoundTrips(); got != 1 {
		t.Errorf("%d round trips, want 1", got)
	}
	if got := p.Count("rpush"); got != 3 {
		t.Errorf("%d commands, want 3", got)
	}
}

func TestSwallowKeepingTheConnectionOpen(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		key := b.Prefix + "q"
		s := p.SwallowNext(key, KeepOpen())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := client.RPush(ctx, key, "1").Err(); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			t.Errorf("want the client's own timeout, got %v", err)
		}
		wait(t, s)
		if diff := cmp.Diff([]string{"1"}, list(t, b, key)); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
}

func TestEachSwallowTakesOneCommand(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		first, second := p.SwallowNext("echo"), p.SwallowNext("echo")
		for _, s := range []*Swallow{first, second} {
			if err := client.Echo(t.Context(), "x").Err(); err == nil {
				t.Error("the reply got through")
			}
			wait(t, s)
		}
		if got, err := client.Echo(t.Context(), "x").Result(); err != nil || got != "x" {
			t.Errorf("third: %q, %v", got, err)
		}
	})
}

func TestCommandsAreSeenAsSent(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		ctx := t.Context()
		key := b.Prefix + "q"
		body := "{\"a\":\"\r\n*1\r\n\x00\"}"
		for range 3 {
			if err := client.RPush(ctx, key, body).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := range 1000 {
				pipe.LIndex(ctx, key, int64(i))
			}
			return nil
		}); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if got := p.RoundTrips(); got != 4 {
			t.Errorf("%d round trips, want 4", got)
		}
		if rpush, lindex := p.Count("RPUSH"), p.Count("lindex"); rpush != 3 || lindex != 1000 {
			t.Errorf("%d rpush, %d lindex", rpush, lindex)
		}
		want := Command{Conn: 1, Args: []string{"rpush", key, body}}
		if diff := cmp.Diff(want, p.Commands()[0]); diff != "" {
			t.Errorf("first command (-want +got):\n%s", diff)
		}
		if got := want.Name(); got != "RPUSH" {
			t.Errorf("name %q", got)
		}
		p.ResetCounts()
		if n, trips := len(p.Commands()), p.RoundTrips(); n != 0 || trips != 0 {
			t.Errorf("after the reset: %d commands, %d round trips", n, trips)
		}
	})
}

func TestBlackholeHoldsAndThenDelivers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		key := b.Prefix + "q"
		p.Blackhole(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := client.RPush(ctx, key, "1").Err(); err == nil {
			t.Fatal("a command got through")
		}
		if got := list(t, b, key); len(got) != 0 {
			t.Errorf("the server has %q already", got)
		}
		p.Blackhole(false)
		testredis.Eventually(t, patience, func() bool { return len(list(t, b, key)) == 1 }, "the held command arrives")
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestCutDropsWhatABlackholeHolds(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		key := b.Prefix + "q"
		p.Blackhole(true)
		failed := make(chan error, 1)
		go func() { failed <- client.RPush(context.Background(), key, "1").Err() }()
		testredis.Eventually(t, patience, func() bool { return p.Count("rpush") == 1 }, "the proxy has the command")
		p.Cut()
		if err := <-failed; err == nil {
			t.Error("the command succeeded")
		}
		p.Blackhole(false)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("a new connection: %v", err)
		}
		if got := list(t, b, key); len(got) != 0 {
			t.Errorf("the server has %q", got)
		}
	})
}

func TestStrandSilencesCurrentConnections(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		key := b.Prefix + "q"
		p.Strand()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := client.RPush(ctx, key, "1").Err(); !errors.Is(err, context.DeadlineExceeded) && !os.IsTimeout(err) {
			t.Errorf("on a dead connection: %v, want silence", err)
		}
		if err := testredis.Client(t, b.Via(p.Addr())).RPush(t.Context(), key, "2").Err(); err != nil {
			t.Errorf("on a new one: %v", err)
		}
		if got := list(t, b, key); !slices.Equal(got, []string{"2"}) {
			t.Errorf("the server has %q", got)
		}
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		p.Refuse(true)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("a connection from before: %v", err)
		}
		p.Cut()
		for range 2 { // the first may still meet the cut connection
			if err := client.Ping(t.Context()).Err(); err == nil {
				t.Error("a new connection was accepted")
			}
		}
		p.Refuse(false)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestDelayAppliesOncePerPipeline(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, client := through(t, b)
		const delay, commands = 30 * time.Millisecond, 100
		p.Delay(delay)
		start := time.Now()
		if _, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for range commands {
				pipe.Ping(t.Context())
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < delay || took > commands*delay/2 {
			t.Errorf("took %v with a delay of %v", took, delay)
		}
	})
}

func TestTargetThatIsAway(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	addr := mini.Addr()
	mini.Close()
	p := Start(t, addr)
	client := testredis.Client(t, p.Addr())
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Fatal("an answer from nowhere")
	}
	if err := mini.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("with the target back: %v", err)
	}
}

// TestPushesAndAttributesDoNotShiftReplies scripts a server that puts a push message and an
// attribute between the replies.
func TestPushesAndAttributesDoNotShiftReplies(t *testing.T) {
	t.Parallel()
	replies := []string{
		"+one\r\n",
		">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+ttl\r\n:9\r\n+two\r\n",
		"+three\r\n",
	}
	p := Start(t, scriptedServer(t, replies))
	conn := dial(t, p.Addr())
	s := p.SwallowNext("c3")
	for i := range replies {
		if _, err := fmt.Fprintf(conn, "*1\r\n$2\r\nc%d\r\n", i+1); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if got := readN(t, conn, len(replies[i])); got != replies[i] {
				t.Errorf("reply %d: %q", i+1, got)
			}
		}
	}
	wait(t, s)
	if rest := readAll(t, conn); rest != "" {
		t.Errorf("after the swallowed reply came %q", rest)
	}
	if n, trips := len(p.Commands()), p.RoundTrips(); n != 3 || trips != 3 {
		t.Errorf("%d commands in %d round trips, want 3 in 3", n, trips)
	}
}

// A proxy without a test loses replies all the same, keeps nothing, and is gone after Close.
func TestListenKeepsNoCommands(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		p, err := Listen(b.Addr)
		if err != nil {
			t.Fatal(err)
		}
		client := testredis.Client(t, b.Via(p.Addr()))
		lost := p.SwallowNext("echo hello")
		if err := client.Do(t.Context(), "echo", "hello").Err(); err == nil {
			t.Error("the reply was not lost")
		}
		wait(t, lost)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		if n, trips := len(p.Commands()), p.RoundTrips(); n != 0 || trips != 0 {
			t.Errorf("%d commands and %d round trips were kept", n, trips)
		}
		p.Close()
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Error("the proxy answers after its end")
		}
	})
}
