package lua

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// replyError is an error reply of the server.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// wrapped is how servers before 7.0 report the error of a command inside a script (M13).
func wrapped(text string) string {
	return "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): @user_script:7: @user_script: 7: -" + text
}

// classes are the marks of an error.
type classes struct{ transient, permanent, ambiguous, full, auth bool }

func classesOf(err error) classes {
	return classes{
		errors.Is(err, flow.ErrTransient), errors.Is(err, flow.ErrPermanent), errors.Is(err, flow.ErrAmbiguous),
		errors.Is(err, ErrFull), errors.Is(err, flow.ErrAuth),
	}
}

var replies = map[string]classes{
	"LOADING Redis is loading the dataset in memory":                                    {transient: true},
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL":                {transient: true},
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to":   {transient: true},
	"READONLY You can't write against a read only replica.":                             {transient: true},
	"READONLY You can't write … script: 0123456789abcdef, on @user_script:1.":           {transient: true},
	"NOREPLICAS Not enough good replicas to write.":                                     {transient: true},
	"CLUSTERDOWN The cluster is down":                                                   {transient: true},
	"TRYAGAIN Multiple keys request during rehashing of slot":                           {transient: true},
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":  {transient: true},
	"MOVED 3999 127.0.0.1:6381":                                                         {transient: true},
	"ASK 3999 127.0.0.1:6381":                                                           {transient: true},
	"UNBLOCKED force unblock from blocking operation, instance state changed":           {transient: true},
	"OOM command not allowed when used memory > 'maxmemory'.":                           {transient: true, full: true},
	"OOM command not allowed … script: 0123456789abcdef, on @user_script:1.":            {transient: true, full: true},
	"WRONGTYPE Operation against a key holding the wrong kind of value":                 {permanent: true},
	"NOPERM this user has no permissions to run the 'evalsha' command":                  {permanent: true},
	"CROSSSLOT Keys in request don't hash to the same slot":                             {permanent: true},
	"NOAUTH Authentication required.":                                                   {permanent: true, auth: true},
	"WRONGPASS invalid username-password pair or user is disabled.":                     {permanent: true, auth: true},
	"ERR Protocol error: unauthenticated multibulk length":                              {permanent: true, auth: true},
	"ERR unknown command 'EVALSHA'":                                                     {permanent: true},
	"ERR max number of clients reached":                                                 {transient: true},
	"ERR Error running script: @user_script: WRONGTYPE Operation against a key":         {permanent: true},
	"ERR Error running script: @user_script: READONLY You can't write against a read …": {transient: true},
	"ERR this text has - OOM in it, but no code":                                        {permanent: true},
	"": {permanent: true},
}

func TestClassifyReplies(t *testing.T) { // B22, M13
	t.Parallel()
	check := func(text string, want classes) {
		t.Helper()
		for name, err := range map[string]error{
			"plain": replyError(text), "wrapped by a hook": fmt.Errorf("a hook: %w", replyError(text)),
		} {
			got := classify("call", err)
			if classesOf(got) != want || !errors.Is(got, err) || !strings.HasPrefix(got.Error(), "lua: call: ") {
				t.Errorf("%s %q is %+v, want %+v", name, text, classesOf(got), want)
			}
		}
	}
	for text, want := range replies {
		check(text, want)
		if code, _, _ := strings.Cut(text, " "); code != "ERR" && !want.auth && text != "" && code != "CROSSSLOT" {
			check(wrapped(text), want)
		}
	}
	if classify("call", nil) != nil || Classify("call", nil) != nil {
		t.Error("no error has a class")
	}
	if got := Classify("call", replyError("LOADING x")); !errors.Is(got, flow.ErrTransient) {
		t.Errorf("Classify: %v", got)
	}
}

func TestClassifyConnectionErrors(t *testing.T) { // B15, B17
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want classes
	}{
		"reply lost":        {io.EOF, classes{transient: true, ambiguous: true}},
		"read timeout":      {&net.OpError{Op: "read", Err: context.DeadlineExceeded}, classes{transient: true, ambiguous: true}},
		"connection reset":  {&net.OpError{Op: "write", Err: errors.New("reset")}, classes{transient: true, ambiguous: true}},
		"deadline":          {context.DeadlineExceeded, classes{transient: true, ambiguous: true}},
		"refused":           {&net.OpError{Op: "dial", Err: errors.New("refused")}, classes{transient: true}},
		"name not found":    {&net.DNSError{Err: "no such host"}, classes{transient: true}},
		"pool timeout":      {redis.ErrPoolTimeout, classes{transient: true}},
		"pool exhausted":    {redis.ErrPoolExhausted, classes{transient: true}},
		"cancelled in line": {context.Canceled, classes{transient: true}},
		"client closed":     {redis.ErrClosed, classes{permanent: true}},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if got := classesOf(classify("call", err)); got != c.want {
				t.Errorf("%s: %v is %+v, want %+v", name, err, got, c.want)
			}
		}
	}
}

// Through the real client: a server that is not there, one that wants a password, a pool with no connection
// left, a client that is closed.
func TestClassifyRealFaults(t *testing.T) { // B17, B48
	t.Parallel()
	const secret = "s3cret-w0rd"
	server := testredis.Server(t, redisproc.Config{Args: []string{"--requirepass", "right " + secret}})
	ask := func(t *testing.T, client *redis.Client) error {
		t.Helper()
		s := NewLegacy(Options{Client: client, Keys: Keys{Ready: "q", Processing: "p", Deadlines: "d", Paused: "x"}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := s.Reserve(ctx, everything(1))
		if err == nil {
			t.Fatal("no error")
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats the password: %v", err)
		}
		return err
	}
	for name, c := range map[string]struct {
		client func(t *testing.T) *redis.Client
		want   classes
	}{
		"no password": {func(t *testing.T) *redis.Client { return testredis.Client(t, server.Addr()) }, classes{permanent: true, auth: true}},
		"wrong password": {func(t *testing.T) *redis.Client {
			return testredis.Client(t, "redis://:wrong"+secret+"@"+server.Addr())
		}, classes{permanent: true, auth: true}},
		"nobody there": {func(t *testing.T) *redis.Client {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close() // the port is free again, or at least nobody's Redis
			return testredis.Client(t, l.Addr().String())
		}, classes{transient: true}},
		"no connection left": {func(t *testing.T) *redis.Client {
			client := redis.NewClient(&redis.Options{
				Addr: server.Addr(), Password: "right " + secret, PoolSize: 1, PoolTimeout: 10 * time.Millisecond, MaxRetries: -1,
			})
			conn := client.Conn()
			if err := conn.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = errors.Join(conn.Close(), client.Close()) })
			return client
		}, classes{transient: true}},
		"closed": {func(*testing.T) *redis.Client {
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			_ = client.Close()
			return client
		}, classes{permanent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := ask(t, c.client(t)); classesOf(err) != c.want {
				t.Errorf("%v is %+v, want %+v", err, classesOf(err), c.want)
			}
		})
	}
}

// Every call of a store passes the class on, whatever the server answers, plain and wrapped, and goes on when
// the server does (B22).
func TestEveryCallClassifiesReplies(t *testing.T) { // B22
	t.Parallel()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			mini := testredis.Mini(t)
			b := testredis.Backend{Addr: mini.Addr(), Client: testredis.Client(t, mini.Addr()), Prefix: "t:", Mini: mini}
			q := newQueue(t, b, layout, nil)
			for _, c := range busyCalls[layout] {
				held := q.prepare(t)
				for text, want := range replies {
					for _, reply := range []string{text, wrapped(text)} {
						if text == "" || reply != text && (want.auth || strings.HasPrefix(text, "ERR") || strings.HasPrefix(text, "CROSSSLOT")) {
							continue
						}
						mini.Server().SetPreHook(func(peer *server.Peer, cmd string, _ ...string) bool {
							if cmd != "EVALSHA" && cmd != "EVAL" && cmd != "RPUSH" {
								return false
							}
							peer.WriteError(reply)
							return true
						})
						err := c.call(t.Context(), q, held)
						if classesOf(err) != want {
							t.Errorf("%s, reply %q: %v is %+v, want %+v", c.name, reply, err, classesOf(err), want)
						}
					}
				}
				mini.Server().SetPreHook(nil)
				if err := c.call(t.Context(), q, held); err != nil {
					t.Errorf("%s after the server is well: %v", c.name, err)
				}
			}
		})
	}
}

// The text of an error holds no arguments, which are bodies and passwords; no line of its own; and no book (B48).
func TestErrorTextsAreSafe(t *testing.T) { // B48
	t.Parallel()
	for given, want := range map[string]string{
		"ERR unknown command 'rpush', with args beginning with: 'orders' '{\"card\":4111}' ": "ERR unknown command 'rpush'",
		"ERR unknown command `AUTH`, with args beginning with: `s3cret`, ":                   "ERR unknown command `AUTH`",
		"WRONGTYPE key a\nb\x1b[31m\xff holds a set":                                         `WRONGTYPE key a\nb\x1b[31m` + "\uFFFD" + ` holds a set`,
		"WRONGTYPE key é…\u202e holds a set":                                                 `WRONGTYPE key é…\u202e holds a set`,
		"LOADING Redis is loading":                                                           "LOADING Redis is loading",
	} {
		err := replyError(given)
		got := classify("call", fmt.Errorf("failed to authenticate: %w", err))
		if !strings.HasSuffix(got.Error(), ": failed to authenticate: "+want) {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
		if !errors.Is(got, err) {
			t.Errorf("%q is no longer to be found", given)
		}
	}
	if n := len(classify("call", replyError(strings.Repeat("é", 10_000))).Error()); n > mostShown+200 {
		t.Errorf("an error of %d bytes", n)
	}
	reply := strings.Repeat("0", tokenWidth-1) + ":secret"
	if got := malformed(legacyRecall, reply).Error(); strings.Contains(got, "secret") {
		t.Errorf("a body is told: %s", got)
	}
}
