package securitytest

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

// station is a queue on a server of its own, and what is needed to see who did what there.
type station struct {
	t       *testing.T
	server  *redisproc.Server
	control *redis.Client // the test's own, and no user's
	own     *tally        // of control
	layout  pool.Layout
	prefix  string
	keys    lua.Keys

	// Of its consumers.
	recoveries int64
	limits     pool.DeadLetterLimits
}

const graveyard = "graveyard" // the station's dead letter key where it has one of its own

func newStation(t *testing.T, layout pool.Layout, deadLetterKey string) *station {
	t.Helper()
	return newStationOn(t, layout, deadLetterKey, "orders", redisproc.Config{})
}

func newStationOn(t *testing.T, layout pool.Layout, deadLetterKey, queue string, cfg redisproc.Config) *station {
	t.Helper()
	server := testredis.Server(t, cfg)
	if major, _, _ := strings.Cut(server.Version(), "."); major < "7" && len(major) == 1 {
		testredis.Missing(t, "before 7.0 the server counts no subcommands, and ACL DRYRUN is missing")
	}
	s := &station{t: t, server: server, control: testredis.Client(t, server.URL()), own: &tally{}, layout: layout, prefix: "app:"}
	var err error
	s.keys, err = lua.NewKeys(layout, s.prefix, queue, deadLetterKey)
	must(t, err)
	must(t, s.control.Ping(t.Context()).Err()) // its connection is not counted
	s.control.AddHook(s.own)
	return s
}

// do runs a command by the test's own connection.
func (s *station) do(words ...any) any {
	s.t.Helper()
	reply, err := s.control.Do(context.Background(), words...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", words[:min(len(words), 3)], err)
	}
	return reply
}

// user makes a Redis user who may run these commands on these keys and nothing else, and returns the URL for it.
func (s *station) user(name string, commands, keys []string) string {
	s.t.Helper()
	words := []any{"ACL", "SETUSER", name, "reset", "on", ">" + secretInPassword}
	for _, key := range keys {
		words = append(words, key)
	}
	for _, command := range commands {
		words = append(words, "+"+command)
	}
	s.do(words...)
	return "redis://" + name + ":" + secretInPassword + "@" + s.server.Addr()
}

// begin forgets what was run so far, the scripts too.
func (s *station) begin() {
	s.t.Helper()
	s.do("SCRIPT", "FLUSH")
	s.do("ACL", "LOG", "RESET")
	s.do("CONFIG", "RESETSTAT")
	s.own.reset()
}

var statPattern = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+),.*rejected_calls=(\d+)`)

// collect adds the commands that others than the test have run since begin, and checks that none was refused.
func (s *station) collect(into map[string]bool) {
	s.t.Helper()
	own := s.own.take()
	info, err := s.control.Info(context.Background(), "commandstats").Result()
	must(s.t, err)
	for _, match := range statPattern.FindAllStringSubmatch(info, -1) {
		calls, err := strconv.Atoi(match[2])
		must(s.t, err)
		if calls > own[match[1]] {
			into[match[1]] = true
		}
		if match[3] != "0" {
			s.t.Errorf("%s was rejected %s times", match[1], match[3])
		}
	}
	// These are always the test's.
	maps.DeleteFunc(into, func(name string, _ bool) bool { return strings.HasPrefix(name, "config|") })
	s.refused()
}

// refused fails the test when the server has refused anybody anything since begin.
func (s *station) refused() {
	s.t.Helper()
	for _, entry := range s.do("ACL", "LOG").([]any) {
		s.t.Errorf("%s: refused: %v", s.layout, entry)
	}
}

// tally is a hook that counts a client's commands as the server does.
type tally struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *tally) count(cmd redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.ToLower(cmd.Name())
	switch name {
	case "acl", "client", "config", "script", "command", "cluster":
		name += "|" + strings.ToLower(cmd.Args()[1].(string))
	}
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[name]++
}

func (c *tally) reset() { c.take() }

func (c *tally) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.calls
	c.calls = nil
	return taken
}

func (c *tally) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *tally) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *tally) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			c.count(cmd)
		}
		return next(ctx, cmds)
	}
}

// push puts bodies in ready, as any producer does.
func (s *station) push(bodies ...string) {
	s.t.Helper()
	words := []any{"RPUSH", s.keys.Ready}
	tokens := []any{"RPUSH", s.keys.Notify}
	for _, b := range bodies {
		words, tokens = append(words, b), append(tokens, "1")
	}
	s.do(words...)
	if s.layout == pool.Zset {
		s.do(tokens...)
	}
}

// expired leaves a message in flight as a consumer does that died long ago.
func (s *station) expired(body string) {
	s.t.Helper()
	if s.layout == pool.Zset {
		s.do("ZADD", s.keys.Reserved, 1, body)
		return
	}
	s.do("RPUSH", s.keys.Processing, body)
	s.do("ZADD", s.keys.Deadlines, 1, strings.Repeat("0", 31)+"1:"+body)
}

// awaitBlocked waits until a consumer waits on the empty queue.
func (s *station) awaitBlocked(user string) {
	s.t.Helper()
	testredis.Eventually(s.t, patience, func() bool {
		list := s.do("CLIENT", "LIST").(string)
		return slices.ContainsFunc(strings.Split(list, "\n"), func(line string) bool {
			return strings.Contains(line, " user="+user+" ") && strings.Contains(line, " flags=b ")
		})
	}, "%s waits", user)
}

// clear removes what is left of an earlier part, but for the dead letters.
func (s *station) clear() {
	s.t.Helper()
	for _, key := range []string{s.keys.Ready, s.keys.Processing, s.keys.Deadlines, s.keys.Delayed, s.keys.Reserved, s.keys.Notify} {
		if key != "" {
			s.do("DEL", key)
		}
	}
}

// dead is the length of the dead letters.
func (s *station) dead() int64 {
	s.t.Helper()
	return s.do("LLEN", s.keys.DeadLetters).(int64)
}

// store is the queue's store alone.
func (s *station) store(client *redis.Client, ahead time.Duration) lua.Store {
	s.t.Helper()
	o := lua.Options{Client: client, Keys: s.keys, RetryAfter: 10 * time.Second, MaxRecoveries: s.recoveries}
	if ahead != 0 {
		o.Now = func() string { return strconv.FormatInt(time.Now().Add(ahead).Unix(), 10) }
	}
	store := lua.New(s.layout, o)
	s.t.Cleanup(store.Close)
	return store
}
