package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// overdue is how long an expired lease or a due message may wait. Every consumer that is alive moves it within seconds.
const overdue = 30 * time.Second

// examination is the look at one queue.
type examination struct {
	list
	queue  Queue
	client redis.UniversalClient
	store  lua.Store
	now    time.Time
	sound  bool // all keys have their types
}

// keyType is a key of the queue and the type it must have.
type keyType struct{ key, want string }

func (e *examination) keys() []keyType {
	k := e.queue.Keys
	if e.queue.Layout == flow.Zset {
		return []keyType{
			{k.Ready, "list"}, {k.Delayed, "zset"}, {k.Reserved, "zset"}, {k.Notify, "list"}, {k.DeadLetters, "list"},
			{k.Ready + ":recoveries", "hash"},
		}
	}
	return []keyType{
		{k.Ready, "list"}, {k.Processing, "list"}, {k.Deadlines, "zset"}, {k.DeadLetters, "list"}, {k.Ready + ":recoveries", "hash"},
	}
}

func (e *examination) examine(ctx context.Context, s *server) []Finding {
	e.list.queue = e.queue.Name
	if s.cluster {
		e.slot()
	}
	e.types(ctx)
	e.permissions(ctx, s)
	if e.sound {
		e.depth(ctx)
		e.orphans(ctx)
		e.overdue(ctx)
		if e.queue.Layout == flow.Zset {
			e.notify(ctx)
		}
	}
	e.paused(ctx)
	e.otherLayout(ctx)
	return e.findings
}

func (e *examination) slot() {
	if err := e.queue.Keys.CheckSlot(e.queue.Name); err != nil {
		e.add(Problem, "cluster-slot", "Drain it outside the cluster, then publish and consume under a name with a hash tag.", "%s", err)
		return
	}
	e.add(OK, "cluster-slot", "", "all keys are in slot %d", lua.Slot(e.queue.Keys.Ready))
}

// types looks at the type and the expiry of each key: one of another type stops a queue, one that expires loses it (B07).
func (e *examination) types(ctx context.Context) {
	e.sound = true
	for _, k := range e.keys() {
		got, err := e.client.Type(ctx, k.key).Result()
		if err != nil {
			e.sound = false
			e.unknown("key-type", err)
			return
		}
		if got != "none" && got != k.want {
			e.sound = false
			e.add(Problem, "key-type", "Find who writes it, rename or delete it; until then the queue stands still, and nothing of it is lost.",
				"%q is a %s and must be a %s", k.key, got, k.want)
			continue
		}
		if got == "none" {
			continue
		}
		if ttl, err := e.client.PTTL(ctx, k.key).Result(); err == nil && ttl > 0 {
			e.add(Problem, "key-expiry", "Run PERSIST on it: its messages vanish when it expires.", "%q expires in %s", k.key, ago(ttl))
		}
	}
	if e.sound {
		e.add(OK, "key-type", "", "every key has its type")
	}
}

func (e *examination) depth(ctx context.Context) {
	d, err := e.store.Depth(ctx)
	if err != nil {
		e.unknown("depth", err)
		return
	}
	e.add(OK, "depth", "", "ready %d, in flight %d, delayed %d", d.Ready, d.InFlight, d.Delayed)
	if d.DeadLetters > 0 {
		e.add(Info, "dead-letters", "See what failed: `babelpool dlq list "+quoteArgument(e.queue.Name)+"`; then redrive or purge it.",
			"%d messages", d.DeadLetters)
	}
}

// orphans looks for what no sweep brings back (L7).
func (e *examination) orphans(ctx context.Context) {
	a, err := e.store.Audit(ctx)
	if err != nil {
		e.unknown("orphans", err)
		return
	}
	switch {
	case e.queue.Layout == flow.Zset:
		if a.Endless > 0 {
			e.add(Problem, "orphans", "A consumer without retry_after reserved them. Stop it; then ZADD the key with XX and score 0 for each, and a sweep returns it.",
				"%d reserved messages never expire", a.Endless)
			return
		}
	case a.Orphans < 0:
		e.add(Warning, "orphans", "Look again when less is in flight.", "too much is in flight to look for orphans: %d values, %d deadlines", a.InFlight, a.Leases)
		return
	case a.Orphans > 0:
		f := e.add(Problem, "orphans", "Their consumers died before they wrote a deadline, or write none. When none of those runs: `babelpool adopt "+
			quoteArgument(e.queue.Name)+"`, or AdoptOrphans in a pool.", "%d messages in flight without a deadline", a.Orphans)
		for _, value := range a.Values {
			f.Messages = append(f.Messages, name(value))
		}
		return
	}
	e.add(OK, "orphans", "", "none")
	if a.Dangling > 0 {
		e.add(Info, "dangling-deadlines", "Nothing: sweeps remove them when they expire.", "%d deadlines whose message is gone", a.Dangling)
	}
}

// name reads what names a message from its stored text.
func name(stored string) Message {
	if frame, framed := envelope.Unframe(stored); framed {
		stored = frame.Body
	}
	if env, err := envelope.Decode(stored); err == nil {
		return Message{ID: env.Meta.ID, URN: env.URN}
	}
	return Message{}
}

// overdue looks for leases that ran out and delayed messages that are due, and that nobody moves.
func (e *examination) overdue(ctx context.Context) {
	places := []struct{ key, what string }{{e.queue.Keys.Deadlines, "leases that ran out"}}
	if e.queue.Layout == flow.Zset {
		places = []struct{ key, what string }{{e.queue.Keys.Reserved, "leases that ran out"}, {e.queue.Keys.Delayed, "delayed messages that are due"}}
	}
	limit := strconv.FormatInt(e.now.Add(-overdue).Unix(), 10)
	total := int64(0)
	for _, p := range places {
		n, err := e.client.ZCount(ctx, p.key, "-inf", limit).Result()
		if err != nil {
			e.unknown("overdue", err)
			return
		}
		if n > 0 {
			total += n
			e.add(Problem, "overdue", "No consumer seems to run, or none that sweeps. Start one, or run `babelpool sweep "+quoteArgument(e.queue.Name)+"`.",
				"%d %s, for more than %s", n, p.what, ago(overdue))
		}
	}
	if total == 0 {
		e.add(OK, "overdue", "", "nothing")
	}
}

// notify compares the wake-up tokens with what is ready (B41).
func (e *examination) notify(ctx context.Context) {
	tokens, err := e.client.LLen(ctx, e.queue.Keys.Notify).Result()
	if err != nil {
		e.unknown("notify-drift", err)
		return
	}
	ready, err := e.client.LLen(ctx, e.queue.Keys.Ready).Result()
	switch {
	case err != nil:
		e.unknown("notify-drift", err)
	case tokens > ready:
		e.add(Info, "notify-drift", "Nothing: the next reserve trims them. If it stays, somebody pushes tokens without messages.",
			"%d tokens for %d ready messages", tokens, ready)
	case tokens < ready:
		e.add(Info, "notify-drift", "Nothing for pools, which look once a second. Laravel workers that block wake late: publishers must push a token with each message (Z1).",
			"%d tokens for %d ready messages", tokens, ready)
	default:
		e.add(OK, "notify-drift", "", "one token a message")
	}
}

func (e *examination) paused(ctx context.Context) {
	since, err := e.client.Get(ctx, e.queue.Keys.Paused).Result()
	switch {
	case errors.Is(err, redis.Nil):
		e.add(OK, "paused", "", "no")
	case err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE"):
		e.unknown("paused", err)
	default:
		e.add(Warning, "paused", "`babelpool resume "+quoteArgument(e.queue.Name)+"` when it should go on.", "no pool takes messages; key %q says %q",
			e.queue.Keys.Paused, since)
	}
}

// otherLayout looks for the same queue in the layout that was not asked for: a common mistake.
func (e *examination) otherLayout(ctx context.Context) {
	other, flag := flow.Zset, "--layout zset"
	if e.queue.Layout == flow.Zset {
		other, flag = flow.Legacy, "--layout legacy"
	}
	keys, err := lua.NewKeys(other, e.queue.Prefix, e.queue.Name, "")
	if err != nil {
		return
	}
	n, err := e.client.LLen(ctx, keys.Ready).Result()
	if err == nil && n > 0 {
		e.add(Warning, "layout", "Look at it with "+flag+". A consumer of one layout never sees messages of the other.",
			"%q holds %d messages of the %s layout", keys.Ready, n, other)
	}
}

// quoteArgument makes a name safe to paste into a shell.
func quoteArgument(name string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/", r)
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !safe(r) }) < 0 {
		return name
	}
	quoted, _ := json.Marshal(name) // control characters become escapes
	return "'" + strings.ReplaceAll(string(quoted[1:len(quoted)-1]), "'", `'\''`) + "'"
}

// quoteText shows a text as Go spells it, without the quotes.
func quoteText(text string) string { return strings.Trim(strconv.Quote(text), `"`) }
