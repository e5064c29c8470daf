// Each machine is of one goroutine: the race detector would only make the mutants slow.

//go:build !race

package modeltest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
)

// A machine that finds nothing wrong with a broken script would prove nothing about a whole one.
func TestTheMachineCatchesMutants(t *testing.T) { // L4, L8, Z1, Z3, Z4, Z10
	t.Parallel()
	const (
		gate       = "  if variadic('ZREM', leases, live) < #live then\n"
		alwaysHeld = "  variadic('ZREM', leases, live)\n  for i = 1, #held do held[i] = held[i] or '0' end\n  if false then\n"
		blind      = "  if variadic('ZREM', leases, live) < 0 then\n"
	)
	for name, c := range map[string]struct {
		layout flow.Layout
		mutant mutant
	}{
		"L4 a settlement needs no lease":       {flow.Legacy, mutant{"", gate, alwaysHeld, nil}},
		"Z4 a settlement needs no lease":       {flow.Zset, mutant{"", gate, alwaysHeld, nil}},
		"L4 repetitions pass the gate":         {flow.Legacy, mutant{"", gate, blind, nil}},
		"Z4 repetitions pass the gate":         {flow.Zset, mutant{"", gate, blind, nil}},
		"L4 a late requeue pushes":             {flow.Legacy, mutant{"", "if left[tonumber(ARGV[at])] then", "if true then", nil}},
		"L8 renewal creates deadlines":         {flow.Legacy, mutant{"'GT'", "  if not held[i] then\n", "  if not held[i] then\n    redis.call('ZADD', leases, score, ARGV[2 + i])\n", nil}},
		"Z10 renewal creates members":          {flow.Zset, mutant{"'GT'", "  if not held[i] then\n", "  if not held[i] then\n    redis.call('ZADD', leases, score, ARGV[2 + i])\n", nil}},
		"L4 marks stay in processing":          {flow.Legacy, mutant{"", "    redis.call('LREM', list, tail and -count or count, mark)\n", "\n", nil}},
		"L9 a hand back reverses":              {flow.Legacy, mutant{"", "prepend(ready, back)", "variadic('LPUSH', ready, back)", nil}},
		"Z1 published without tokens":          {flow.Zset, mutant{"", "tokens(KEYS[2], #ARGV)", "tokens(KEYS[2], 0)", nil}},
		"Z3 twins are merged":                  {flow.Zset, mutant{"", "if held[i] or taken[members[i]] then", "if false then", nil}},
		"L4 merge: marks stay":                 {flow.Legacy, mutant{"", "  unmark(processing, marked, mark, start)\n", "\n", nil}},
		"L4 merge: what stood before is lost":  {flow.Legacy, mutant{"", "      prepend(processing, before)\n", "\n", nil}},
		"L4 strike: marks stay":                {flow.Legacy, mutant{"", "  unmark(list, struck, mark, lowest)\n", "\n", nil}},
		"L4 by token: a miss is late":          {flow.Legacy, mutant{"", "digits and 'unseen' or ", "", nil}},
		"L4 by token: deadlines stay":          {flow.Legacy, mutant{"", "        redis.call('ZREMRANGEBYRANK', deadlines, from + runs[i - 1] - 1, from + runs[i] - 1)\n", "", nil}},
		"L4 remove: the tail is turned":        {flow.Legacy, mutant{"", "      variadic('RPUSH', key, rest)\n", "      prepend(key, rest)\n", nil}},
		"Z3 notify is not trimmed":             {flow.Zset, mutant{"", "if redis.call('LLEN', notify) > left then", "if false then", nil}},
		"Z3 the waiter's token is not counted": {flow.Zset, mutant{"", "count - tonumber(ARGV[7])", "count", nil}},
		"Z2 promoted without tokens":           {flow.Zset, mutant{"", "  tokens(notify, #due)\n", "\n", nil}},
		"D1 buried without tokens":             {flow.Zset, mutant{"", "tokens(KEYS[4], #buried)", "tokens(KEYS[4], 0)", nil}},
		"Z3 a twin overshoots":                 {flow.Zset, mutant{"", "      number = on[number] or number + 1\n", "      number = math.max(number, on.top or 0) + 1\n on.top = number\n", nil}},
		"L3 swept to the head":                 {flow.Legacy, mutant{"", "  variadic('RPUSH', ready, back)\n  if recoveries", "  prepend(ready, back)\n  if recoveries", nil}},
		"B03 recall of one score too few":      {flow.Legacy, mutant{"", "token .. 'g', low, after", "token .. '00000002', low, after", nil}},
		"Z7 a late postponement is written":    {flow.Legacy, mutant{"- 0.5", "  if held[i] then\n", "  if true then\n", nil}},
		"Z5 what stays is lost":                {flow.Zset, mutant{"", "variadic('ZADD', reserved, stays)\n", "\n", nil}},
		"Z5 a release replaces":                {flow.Zset, mutant{"", "if coming[text] or redis.call('ZSCORE', delayed, text) then", "if coming[text] then", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mini := testredis.Mini(t)
			b := testredis.Backend{URL: "redis://" + mini.Addr(), Client: testredis.Client(t, mini.Addr()), Prefix: "m:", Mini: mini}
			var s stats
			g := newRig(t, b, c.layout, &s)
			changed := 0
			c.mutant.changed = &changed
			g.client.AddHook(c.mutant)
			var found, crash error
			for range 40 { // rounds of 25 or so; the first is enough most times
				rapid.Check(t, func(t *rapid.T) {
					switch err := g.sequence(t); {
					case err == nil:
					case strings.Contains(err.Error(), "ERR "): // it broke down, which shows nothing: go on
						crash = err
					case found == nil:
						found = err
					}
				})
				if found != nil {
					break
				}
			}
			switch {
			case changed == 0:
				t.Error("no script holds the piece: the mutant is out of date")
			case found == nil && crash != nil:
				t.Errorf("the mutant does not run: %v", crash)
			case found == nil:
				t.Errorf("%d sequences did not notice", s.sequences.Load())
			}
		})
	}
}
