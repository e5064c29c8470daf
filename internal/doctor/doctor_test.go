package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// rig is one server of its own, because findings about it would meet.
type rig struct {
	t      *testing.T
	server *redisproc.Server
	client *redis.Client
}

func newRig(t *testing.T, cfg redisproc.Config) *rig {
	t.Helper()
	server := testredis.Server(t, cfg)
	return &rig{t, server, testredis.Client(t, server.URL())}
}

func (r *rig) do(words ...any) {
	r.t.Helper()
	if err := r.client.Do(r.t.Context(), words...).Err(); err != nil {
		r.t.Fatalf("%v: %v", words, err)
	}
}

// look examines the server and queue "orders", and returns the findings by check.
func (r *rig) look(layout flow.Layout) map[string]Finding {
	r.t.Helper()
	keys, err := lua.NewKeys(layout, "", "orders", "")
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := Examine(r.t.Context(), r.client, []Queue{{Name: "orders", Layout: layout, Keys: keys}})
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]Finding{}
	for _, f := range all {
		if (f.Level == Problem || f.Level == Warning) && f.Advice == "" {
			r.t.Errorf("%s: %q without advice", f.Check, f.Found)
		}
		if worse, ok := found[f.Check]; !ok || Worst([]Finding{f}) == Problem || worse.Level == OK {
			found[f.Check] = f
		}
	}
	return found
}

// want checks the level of one finding, and that it says something.
func want(t *testing.T, found map[string]Finding, check string, level Level, says string) {
	t.Helper()
	if f := found[check]; f.Level != level || !strings.Contains(f.Found, says) {
		t.Errorf("%s: %s %q, want %s with %q", check, f.Level, f.Found, level, says)
	}
}

func body(id string) string {
	return fmt.Sprintf(`{"job":"urn:babel:orders:created","trace_id":"t","data":{},`+
		`"meta":{"id":%q,"queue":"orders","lang":"go","schema_version":1,"created_at":1749132727000},"attempts":0}`, id)
}

// A healthy queue on a healthy server.
func TestAllIsWell(t *testing.T) {
	t.Parallel()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
			r.do("config", "set", "maxmemory", "100mb")
			levels := map[string]Level{}
			for check, f := range r.look(layout) {
				levels[check] = f.Level
			}
			expected := map[string]Level{
				"version": OK, "role": OK, "persistence": OK, "maxmemory-policy": OK, "memory": OK, "clients": OK, "clock": OK,
				"key-type": OK, "acl": OK, "depth": OK, "orphans": OK, "overdue": OK, "paused": OK,
			}
			if layout == flow.Zset {
				expected["notify-drift"] = OK
			}
			if diff := cmp.Diff(expected, levels); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// Each case makes one thing wrong.
func TestFindings(t *testing.T) { // L7, R3, R6, B07, B41, B43
	t.Parallel()
	const legacy, zset = flow.Legacy, flow.Zset
	for name, c := range map[string]struct {
		layout      flow.Layout
		make        func(r *rig)
		check       string
		level       Level
		says        string
		persistence bool
	}{
		"an orphan":                 {legacy, func(r *rig) { r.do("rpush", "orders:processing", body("m-1")) }, "orphans", Problem, "1 messages in flight", true},
		"a reservation without end": {zset, func(r *rig) { r.do("zadd", "queues:orders:reserved", "+inf", body("m-1")) }, "orphans", Problem, "1 reserved", true},
		"a deadline without a value": {legacy, func(r *rig) {
			r.do("zadd", "orders:processing:deadlines", "9999999999", strings.Repeat("0", 32)+":gone")
		},
			"dangling-deadlines", Info, "1 deadlines", true},
		"a key of another type":      {legacy, func(r *rig) { r.do("set", "orders:processing", "x") }, "key-type", Problem, `"orders:processing" is a string`, true},
		"a zset key of another type": {zset, func(r *rig) { r.do("rpush", "queues:orders:delayed", "x") }, "key-type", Problem, "must be a zset", true},
		"a queue that expires":       {legacy, func(r *rig) { r.do("rpush", "orders", "x"); r.do("expire", "orders", "1000") }, "key-expiry", Problem, `"orders" expires`, true},
		"an overdue lease": {legacy, func(r *rig) { r.do("zadd", "orders:processing:deadlines", "1000", strings.Repeat("0", 32)+":x") },
			"overdue", Problem, "1 leases", true},
		"an overdue delay":                   {zset, func(r *rig) { r.do("zadd", "queues:orders:delayed", "1000", body("m-1")) }, "overdue", Problem, "1 delayed messages", true},
		"tokens in excess":                   {zset, func(r *rig) { r.do("rpush", "queues:orders:notify", "1") }, "notify-drift", Info, "1 tokens for 0", true},
		"too few tokens":                     {zset, func(r *rig) { r.do("rpush", "queues:orders", body("m-1")) }, "notify-drift", Info, "0 tokens for 1", true},
		"paused":                             {legacy, func(r *rig) { r.do("set", "orders:paused", "since noon") }, "paused", Warning, "since noon", true},
		"paused by a list":                   {zset, func(r *rig) { r.do("rpush", "queues:orders:paused", "x") }, "paused", Warning, "no pool", true},
		"dead letters":                       {legacy, func(r *rig) { r.do("rpush", "orders.dlq", "x") }, "dead-letters", Info, "1 messages", true},
		"messages of the other layout":       {legacy, func(r *rig) { r.do("rpush", "queues:orders", "x") }, "layout", Warning, `"queues:orders" holds 1`, true},
		"messages of the other layout, zset": {zset, func(r *rig) { r.do("rpush", "orders", "x") }, "layout", Warning, `"orders" holds 1`, true},
		"eviction":                           {legacy, func(r *rig) { r.do("config", "set", "maxmemory-policy", "allkeys-lru") }, "maxmemory-policy", Problem, "allkeys-lru", true},
		"eviction of expiring":               {legacy, func(r *rig) { r.do("config", "set", "maxmemory-policy", "volatile-lru") }, "maxmemory-policy", Info, "volatile-lru", true},
		"a full server":                      {legacy, func(r *rig) { r.do("config", "set", "maxmemory", "1mb") }, "memory", Problem, "of 1.0 MiB", true},
		"no limit of memory":                 {legacy, func(*rig) {}, "memory", Info, "no limit", true},
		"nothing on disk":                    {legacy, func(r *rig) { r.do("config", "set", "save", "") }, "persistence", Warning, "nothing is kept", false},
		"snapshots":                          {legacy, func(r *rig) { r.do("config", "set", "save", "3600 1") }, "persistence", Warning, "snapshots only", false},
		"synced each second":                 {legacy, func(r *rig) { r.do("config", "set", "appendfsync", "everysec") }, "persistence", Info, "everysec", true},
		"too many clients":                   {legacy, func(r *rig) { r.do("config", "set", "maxclients", "1") }, "clients", Problem, "of 1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, redisproc.Config{AppendOnly: c.persistence})
			c.make(r)
			want(t, r.look(c.layout), c.check, c.level, c.says)
		})
	}
}

// The orphans are named, framed ones and those that are no envelope included.
func TestOrphansAreNamed(t *testing.T) { // L7
	t.Parallel()
	r := newRig(t, redisproc.Config{})
	r.do("rpush", "orders:processing", body("m-1"), "no envelope")
	got := r.look(flow.Legacy)["orphans"].Messages
	if diff := cmp.Diff([]Message{{"m-1", "urn:babel:orders:created"}, {}}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// A replica is no place for a pool.
func TestReplica(t *testing.T) {
	t.Parallel()
	master, r := newRig(t, redisproc.Config{}), newRig(t, redisproc.Config{})
	host, port, _ := strings.Cut(master.server.Addr(), ":")
	r.do("replicaof", host, port)
	want(t, r.look(flow.Legacy), "role", Problem, "read-only")
}

// A user who may look at less gets told so, and the rest is looked at all the same.
func TestPermissions(t *testing.T) {
	t.Parallel()
	r := newRig(t, redisproc.Config{})
	r.do("acl", "setuser", "looker", "on", ">secret", "~*", "+@all", "-info", "-time", "-blmove", "-rpush")
	url := strings.Replace(r.server.URL(), "redis://", "redis://looker:secret@", 1)
	r.client = testredis.Client(t, url)
	found := r.look(flow.Legacy)
	want(t, found, "info", Unknown, "cannot be looked at")
	want(t, found, "clock", Unknown, "cannot be looked at")
	want(t, found, "depth", OK, "ready 0")
	for check, f := range found {
		if strings.Contains(f.Found, "secret") {
			t.Errorf("%s tells a password: %s", check, f.Found)
		}
	}
	r.do("acl", "setuser", "default", "on")
	master := testredis.Client(t, r.server.URL())
	if err := master.Do(t.Context(), "acl", "setuser", "looker", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	want(t, r.look(flow.Legacy), "acl", Info, "blmove orders")
}

// Names without a hash tag are found on a cluster.
func TestClusterSlots(t *testing.T) { // R3
	t.Parallel()
	e := &examination{queue: Queue{Name: "orders"}}
	for name, level := range map[string]Level{"orders": Problem, "{orders}": OK} {
		keys, err := lua.NewKeys(flow.Legacy, "", name, "")
		if err != nil {
			t.Fatal(err)
		}
		e.findings, e.queue = nil, Queue{Name: name, Keys: keys}
		e.slot()
		if len(e.findings) != 1 || e.findings[0].Level != level {
			t.Errorf("%s: %+v, want %s", name, e.findings, level)
		}
	}
}

func TestVersions(t *testing.T) { // R5
	t.Parallel()
	for version, want := range map[string][2]bool{ // before 6.2, before 7.0
		"5.0.14": {true, true}, "6.0.16": {true, true}, "6.2.0": {false, true}, "7.0.15": {false, false}, "10.1.0": {false, false},
		"": {false, true}, "strange": {false, false},
	} {
		if got := [2]bool{old(version), old7(version)}; got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	for want, levels := range map[Level][]Level{OK: {OK}, Info: {OK, Info}, Warning: {Info, Unknown, OK}, Problem: {Warning, Problem, OK}} {
		var all []Finding
		for _, l := range levels {
			all = append(all, Finding{Level: l})
		}
		if got := Worst(all); got != want {
			t.Errorf("%v: %s, want %s", levels, got, want)
		}
	}
}

func TestQuoteArgument(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"orders": "orders", "{orders}": "'{orders}'", "it's": `'it'\''s'`, "a b": "'a b'", "x\ny": `'x\ny'`, "": "''", "a;rm -rf": "'a;rm -rf'",
	} {
		if got := quoteArgument(name); got != want {
			t.Errorf("%q is pasted as %s, want %s", name, got, want)
		}
	}
}

// A server that is not there ends the examination.
func TestNoServer(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer func() { _ = client.Close() }()
	if _, err := Examine(context.Background(), client, nil); err == nil {
		t.Error("no error")
	}
}
