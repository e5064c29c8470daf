package securitytest

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// roles are the users of the README.
var roles = []string{"consumer", "publisher"}

// ofLayout are the commands that the README says one layout alone needs.
var ofLayout = map[string]pool.Layout{"blmove": pool.Legacy, "blpop": pool.Zset}

// TestACL: users with exactly the README's commands, on its keys and on the narrower ones of docs/security.md, do
// everything, and nothing is refused. What they use is the README's list, no less and no more.
func TestACL(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	used := map[string]map[string]bool{"consumer": {}, "publisher": {}}
	t.Run("tour", func(t *testing.T) {
		for _, layout := range layouts {
			for _, keys := range []struct {
				name       string
				of         func(*testing.T, pool.Layout, string) []string
				deadLetter string
			}{{"narrow", narrowKeys, ""}, {"wide", wideKeys, graveyard}} {
				t.Run(layout.String()+" "+keys.name, func(t *testing.T) {
					t.Parallel()
					s := newStation(t, layout, keys.deadLetter)
					patterns := keys.of(t, layout, s.prefix)
					if keys.deadLetter != "" {
						patterns = append(patterns, "~"+keys.deadLetter)
					}
					clients, here := map[string]*redis.Client{}, map[string]map[string]bool{"consumer": {}, "publisher": {}}
					for _, role := range roles {
						clients[role] = open(t, s.user(role, commands(t, role), patterns))
					}
					s.begin()
					s.publishTour(clients["publisher"])
					s.collect(here["publisher"])
					s.begin()
					s.consumeTour(clients["consumer"])
					s.storeTour(clients["consumer"])
					s.vectors(clients["consumer"])
					s.collect(here["consumer"])
					for role, names := range here {
						mu.Lock()
						maps.Copy(used[role], names)
						mu.Unlock()
						for name, only := range ofLayout {
							if names[name] && layout != only {
								t.Errorf("%s is used in the %s layout, and the README says that only %s needs it", name, layout, only)
							}
						}
					}
					if names := here["publisher"]; layout == pool.Legacy {
						want := []string{"exec", "hello", "multi", "rpush"} // as the README says
						if diff := cmp.Diff(want, slices.Sorted(maps.Keys(names))); diff != "" {
							t.Errorf("a legacy publisher's commands (-README +used):\n%s", diff)
						}
					}
				})
			}
		}
	})
	for _, role := range roles {
		want, have := slices.Sorted(slices.Values(commands(t, role))), maps.Clone(used[role])
		delete(have, "hello") // needs no permission, see TestACLNeedsEachRule
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(have))); diff != "" {
			t.Errorf("the commands of a %s (-README +used):\n%s", role, diff)
		}
	}
}

// TestACLNeedsEachRule takes each rule out in turn: the server then refuses that command, so none is there in vain.
func TestACLNeedsEachRule(t *testing.T) {
	t.Parallel()
	s := newStation(t, pool.Legacy, "")
	for role, all := range map[string][]string{
		"consumer": commands(t, "consumer"), "publisher": commands(t, "publisher"), "recoveries": commands(t, "recoveries"),
		"dead letter bytes": commands(t, "dead letter bytes"),
	} {
		if slices.Contains(all, "hello") {
			t.Errorf("%s: hello needs no permission", role)
		}
		for i, name := range all {
			s.user("probe", slices.Concat(all[:i], all[i+1:]), []string{"~*"})
			if verdict := s.dryRun("probe", name); !strings.Contains(verdict, "no permissions to run") {
				t.Errorf("%s without %s may still run it: %s", role, name, verdict)
			}
		}
		s.user("probe", all, []string{"~*"})
		for _, name := range append(all, "hello") {
			if verdict := s.dryRun("probe", name); verdict != "OK" {
				t.Errorf("%s may not run %s: %s", role, name, verdict)
			}
		}
	}
}

// dryRun is what the server would say to a user's command.
func (s *station) dryRun(user, name string) string {
	s.t.Helper()
	about, ok := s.do("COMMAND", "INFO", name).([]any)[0].([]any)
	if !ok {
		s.t.Fatalf("the server knows no command %q", name)
	}
	arity := about[1].(int64)
	words := []any{"ACL", "DRYRUN", user}
	for _, word := range strings.Split(name, "|") {
		words = append(words, word)
	}
	for n := max(arity, -arity); int64(len(words)-3) < n; {
		words = append(words, "1") // also a number of keys, where one is asked for
	}
	return s.do(words...).(string)
}

// TestACLOptionalRules: a pool works without what the README says may be missing, and its log does not fill up.
func TestACLOptionalRules(t *testing.T) {
	t.Parallel()
	if !strings.Contains(read(t, "README.md"), "`client` and `info` may be missing") {
		t.Error("the README no longer says what may be missing")
	}
	for _, layout := range layouts {
		s := newStation(t, layout, "")
		least := slices.DeleteFunc(commands(t, "consumer"), func(name string) bool {
			return name == "info" || strings.HasPrefix(name, "client|")
		})
		logs := &testlog.Recorder{}
		s.push(body("urn:ack", 1), body("urn:ack", 2))
		p := start(t, pool.Config{
			Client: open(t, s.user("consumer", least, narrowKeys(t, layout, s.prefix))), Queues: []pool.Queue{{Name: "orders"}},
			Layout: layout, KeyPrefix: s.prefix, Handler: ackAll, Logger: slog.New(logs),
		})
		p.until("both are acked", func(c pool.QueueStats) bool { return c.Acked == 2 })
		s.awaitBlocked("consumer")
		must(t, p.stop())
		if got := logs.With("level=WARN"); got != nil {
			t.Errorf("%s: logged: %q", layout, got)
		}
	}
}

// TestACLPublisherCannotConsume: by no command of its own, by no script, by no pool.
func TestACLPublisherCannotConsume(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s := newStation(t, layout, "")
		thief := open(t, s.user("publisher", commands(t, "publisher"), narrowKeys(t, layout, s.prefix)))
		s.push(body("urn:ack", 1), body("urn:ack", 2))
		s.expired(body("urn:ack", 3))
		ready := s.keys.Ready
		before := s.everything()
		for _, command := range []string{
			"LPOP " + ready, "RPOP " + ready, "LRANGE " + ready + " 0 -1", "LINDEX " + ready + " 0", "LMOVE " + ready + " " + ready + ":x LEFT LEFT",
			"BLPOP " + ready + " 1", "DUMP " + ready, "DEL " + ready, "RENAME " + ready + " " + ready + ":x", "COPY " + ready + " " + ready + ":x",
			"SORT " + ready + " ALPHA", "ZRANGE " + ready + ":reserved 0 -1", "KEYS *", "SCAN 0", "FLUSHALL", "CONFIG GET *", "ACL LIST", "MONITOR",
		} {
			var words []any
			for _, word := range strings.Fields(command) {
				words = append(words, word)
			}
			if err := thief.Do(t.Context(), words...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("%s: a publisher's %q: %v", layout, command, err)
			}
			if name := words[0].(string); strings.HasSuffix(command, "LEFT LEFT") || strings.HasSuffix(command, " 0 -1") || name == "LPOP" || name == "DUMP" || name == "DEL" {
				if slices.Contains(commands(t, "publisher"), "eval") {
					list := `"` + strings.Join(strings.Fields(command), `","`) + `"`
					err := thief.Do(t.Context(), "EVAL", "return redis.call("+list+")", 0).Err()
					if err == nil || !strings.Contains(err.Error(), "can't run this command") && !strings.Contains(err.Error(), "NOPERM") {
						t.Errorf("%s: a publisher's script with %q: %v", layout, command, err)
					}
				}
			}
		}
		for _, role := range roles { // other queues are out of reach for both
			client := thief
			if role == "consumer" {
				client = open(t, s.user(role, commands(t, role), narrowKeys(t, layout, s.prefix)))
			}
			for _, key := range []string{"payments", s.prefix + "payments", s.prefix + "orders2", s.prefix + "queues:orders2", "orders"} {
				if err := client.RPush(t.Context(), key, "x").Err(); !redis.HasErrorPrefix(err, "NOPERM") {
					t.Errorf("%s: a %s may write to %s: %v", layout, role, key, err)
				}
			}
		}

		logs := &testlog.Recorder{}
		p := start(t, pool.Config{
			Client: thief, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, KeyPrefix: s.prefix, Handler: ackAll, Logger: slog.New(logs),
		})
		p.until("it is told so", func(pool.QueueStats) bool {
			return len(logs.With("reserving is held up", "this user may not run")) == 1
		})
		must(t, p.stop())
		if got := p.counts().Reserved; got != 0 {
			t.Errorf("%s: a publisher's pool reserved %d messages", layout, got)
		}
		if diff := cmp.Diff(before, s.everything()); diff != "" {
			t.Errorf("%s: a publisher changed something (-before +after):\n%s", layout, diff)
		}
	}
}

// TestACLOnACluster: the client library asks for the slots besides.
func TestACLOnACluster(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s := newStationOn(t, layout, "", "{orders}", redisproc.Config{Args: []string{"--cluster-enabled", "yes"}})
		s.do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
		testredis.Eventually(t, patience, func() bool {
			return strings.Contains(s.do("CLUSTER", "INFO").(string), "cluster_state:ok")
		}, "the one-node cluster serves")
		keys := []string{"~" + s.prefix + "{orders}*"}
		if layout == pool.Zset {
			keys = []string{"~" + s.prefix + "queues:{orders}*"}
		}
		options, err := redis.ParseURL(s.user("consumer", append(commands(t, "consumer"), rules(t, "docs/security.md", "cluster")...), keys))
		must(t, err)
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{options.Addr}, Username: options.Username, Password: options.Password, ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { _ = client.Close() })
		s.do("ACL", "LOG", "RESET")
		s.push(body("urn:ack", 1), body("urn:ack", 2))
		p := start(t, pool.Config{
			Client: client, Queues: []pool.Queue{{Name: "{orders}"}}, Layout: layout, KeyPrefix: s.prefix, Handler: ackAll,
			Logger: slog.New(&testlog.Recorder{}),
		})
		p.until("both are acked", func(c pool.QueueStats) bool { return c.Acked == 2 })
		s.awaitBlocked("consumer")
		must(t, p.stop())
		s.refused()
	}
}
