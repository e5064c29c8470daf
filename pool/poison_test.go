package pool_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// bad is a body that no handler may see (B08). reason is why, where it gets a record; raw bodies have none.
type bad struct {
	body         string
	legacy, zset string
}

const (
	raw        = ""
	noURN      = "neither job nor urn is a non-blank string"
	noAttempts = "attempts is not a non-negative integer"
	noMeta     = "meta is not an object"
)

// withAttempts is a good body but for its attempts, which is JSON.
func withAttempts(value string) string {
	return strings.TrimSuffix(body(9000, 0), "0}") + value + "}"
}

// everyBadBody is the list of B08, with so many spaces. In the zset layout the reserve script refuses what it
// cannot count in, and its dead letters are raw (Z3).
func everyBadBody(spaces int) []bad {
	good := body(9000, 0)
	return []bad{
		{"", raw, raw},
		{"{", raw, raw},
		{"5", raw, raw},
		{`"str"`, raw, raw},
		{"null", raw, raw},
		{"[]", raw, raw},
		{"NaN", raw, raw},
		{"Infinity", raw, raw},
		{"0x10", raw, raw},
		{"\x00\x00\x00", raw, raw},
		{"\xff\xfe", raw, raw},
		{"s3cret-text", raw, raw},
		{strings.Repeat("[", 2000) + strings.Repeat("]", 2000), raw, raw},
		{`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", noURN, noURN},
		{strings.Repeat(" ", spaces), raw, raw},
		{good + "x", raw, raw},
		{good + good, raw, raw},
		{strings.Replace(good, "{}", "{\"a\":\"\x00\"}", 1), raw, raw},
		{strings.Replace(good, "{}", "{\"a\":\"\xff\"}", 1), raw, raw},
		{strings.Replace(good, "{}", `{"a":tru}`, 1), raw, raw},
		{strings.Replace(good, "{}", `{"a":NaN}`, 1), raw, raw},
		{"{}", noURN, noURN},
		{`{"s3cret-key":1,"attempts":7}`, noURN, noURN},
		{strings.Replace(good, urn, "  ", 1), noURN, noURN},
		{strings.Replace(good, `"`+urn+`"`, "5", 1), "job is not a string", "job is not a string"},
		{strings.Replace(good, "11111111-1111-4111-8111-111111111111", "", 1), "trace_id is not a non-blank string", "trace_id is not a non-blank string"},
		{strings.Replace(good, `"schema_version":1`, `"schema_version":2`, 1), "meta.schema_version is not the integer 1", "meta.schema_version is not the integer 1"},
		{strings.Replace(good, `"data":{}`, `"data":[]`, 1), "data is not an object", "data is not an object"}, // PHP's empty data
		{strings.Replace(good, `"meta":{`, `"Meta":{`, 1), noMeta, raw},                                        // a foreign job in the zset layout (Z8)
		{strings.Replace(good, `"meta":{`, `"meta":null,"x":{`, 1), noMeta, noMeta},
		{withAttempts("null"), noAttempts, raw},
		{withAttempts(`"3"`), noAttempts, raw},
		{withAttempts("{}"), noAttempts, raw},
		{withAttempts("-1"), noAttempts, raw},
		{withAttempts("1e308"), noAttempts, raw},
		{withAttempts("1.5"), noAttempts, raw},
		{withAttempts("99999999999999999999"), noAttempts, raw},
	}
}

// deadLetter is what a bad body becomes: its bytes, with a record where it is one JSON object (D2).
func (b bad) deadLetter(layout pool.Layout) string {
	reason := b.legacy
	if layout == pool.Zset {
		reason = b.zset
	}
	if reason == raw {
		return b.body
	}
	text, attempts := b.body, int64(0)
	if raised, n, err := envelope.RaiseAttempts(b.body); err == nil {
		attempts = n - 1
		if layout == pool.Zset {
			text, attempts = raised, n
		}
	}
	return dead(text, "poison", strconv.Quote("envelope: poison message: "+reason), `"*envelope.PoisonError"`, attempts)
}

// brief makes long texts readable in a failure.
func brief(text string) string {
	if len(text) <= 1000 {
		return text
	}
	return fmt.Sprintf("%.60s… (%d bytes, %x)", text, len(text), sha256.Sum256([]byte(text)))
}

// sortedBriefs makes dead letters comparable. Of twins, the zset layout raises the second one's attempts once
// more (Z3), so the number is left out where the text and its record agree on it.
func sortedBriefs(texts []string) []string {
	var all []string
	for _, text := range texts {
		if found := inRecord.FindStringSubmatch(text); found != nil {
			text = strings.ReplaceAll(text, `"attempts":`+found[1], `"attempts":n`)
		}
		all = append(all, brief(timeless(text)))
	}
	slices.Sort(all)
	return all
}

var inRecord = regexp.MustCompile(`"original_queue":"orders","attempts":(\d+),"lang":"go"}}$`)

type report struct {
	err error
	env envelope.Envelope
	raw string
}

// reports makes an OnError that sends what it is told.
func reports(capacity int) (chan report, func(context.Context, error, envelope.Envelope, string)) {
	ch := make(chan report, capacity)
	return ch, func(_ context.Context, err error, env envelope.Envelope, raw string) { ch <- report{err, env, raw} }
}

// TestPoison covers B08: among bad bodies, each there twice, all good ones are handled; each bad one ends in
// the dead letters with its bytes and is reported; none comes round again.
func TestPoison(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		const good = 100
		spaces := 5 << 20
		if !r.Real {
			spaces = 1 << 16 // the imitation's Lua needs seconds for more, with the race detector, and a call has five
		}
		all, rotten := bodies(good), everyBadBody(spaces)
		all[0] = bodyWith(0, `{"deep":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+"}", 0)
		all[1] = strings.Replace(all[1], `,"attempts":0`, "", 1) // missing reads as 0
		var wantDead, wantRaw []string
		for i, b := range rotten {
			all = slices.Insert(all, 3*i, b.body, b.body)
			wantDead = append(wantDead, b.deadLetter(r.layout), b.deadLetter(r.layout))
			wantRaw = append(wantRaw, b.body, b.body)
		}
		r.push(all...)
		handled := make(chan string, len(all))
		cfg := r.config(function(func(_ context.Context, d *delivery.Delivery) error {
			handled <- d.Meta.ID
			return nil
		}))
		told, onError := reports(len(all))
		cfg.OnError = onError
		p := r.start(cfg)

		ids := map[string]bool{}
		for _, id := range collect(t, handled, good, "the good ones are handled") {
			ids[id] = true
		}
		var gotRaw []string
		for _, rep := range collect(t, told, len(wantRaw), "the bad ones are reported") {
			gotRaw = append(gotRaw, rep.raw)
			if !errors.Is(rep.err, envelope.ErrPoison) || rep.env.URN != "" {
				t.Errorf("reported %s as %v with %v", brief(rep.raw), rep.err, rep.env)
			}
		}
		s := r.awaitSettled()
		p.stopped()
		wantEqual(t, "different messages handled", len(ids), good)
		wantEqual(t, "reported", sortedBriefs(gotRaw), sortedBriefs(wantRaw))
		wantEqual(t, "dead letters", sortedBriefs(s.Dead), sortedBriefs(wantDead))
		counts := p.stats()
		wantEqual(t, "counts", []int64{counts.Started, counts.Acked, counts.Poison, counts.DeadLettered},
			[]int64{good, good, int64(len(wantRaw)), int64(len(wantRaw))})
		if r.layout == pool.Zset {
			wantEqual(t, "tokens of the dead letters (D1)", s.DeadNotify, len(wantRaw))
		}
		if lines := r.logs.matching("s3cret"); len(lines) > 0 {
			t.Errorf("bodies are logged: %q", lines)
		}
		if len(r.logs.matching("message is no acceptable envelope")) != 1 {
			t.Error("poison is not logged once a minute")
		}
	})
}

// TestPoisonLeave covers the strategy BadLeave: poison keeps its lease and comes back for ever. What the
// reserve script of the zset layout refuses is not there to be left.
func TestPoisonLeave(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.Poison, cfg.RetryAfter = pool.BadLeave, 2*time.Second
		told, onError := reports(100)
		cfg.OnError = onError
		r.push(`{"no":"urn"}`, "5")
		p := r.start(cfg)
		seen := map[string]int{}
		again := `{"no":"urn"}`
		if r.layout == pool.Zset {
			again = `{"no":"urn","attempts":1}` // the counter that the first reserve wrote
		}
		for seen[again] < 1 || r.layout == pool.Legacy && seen[again] < 2 {
			seen[receive(t, told, "the object is reported").raw]++
		}
		switch r.layout {
		case pool.Zset:
			wantEqual(t, "reports of 5", seen["5"], 1)
			r.wantDead("5")
			s := r.await("it is in flight", func(s state) bool { return len(s.InFlight) == 1 })
			wantEqual(t, "in flight", s.InFlight, []string{`{"no":"urn","attempts":2}`})
		default:
			r.wantDead()
			s := r.await("both are in flight", func(s state) bool { return len(s.InFlight) == 2 && s.Leases == 2 })
			slices.Sort(s.InFlight)
			wantEqual(t, "in flight", s.InFlight, []string{"5", `{"no":"urn"}`})
		}
		testredis.Eventually(t, patience, func() bool { return p.stats().Left >= 2 }, "both are counted as left") // after Redis has them
		wantEqual(t, "acked", p.stats().Acked, 0)
	})
}
