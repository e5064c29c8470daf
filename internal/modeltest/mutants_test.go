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
	const gate = "  variadic('ZREM', leases, live)\n  return held\n"
	for name, c := range map[string]struct {
		layout flow.Layout
		mutant mutant
	}{
		"L4 a settlement needs no lease": {flow.Legacy, mutant{"", gate, "  variadic('ZREM', leases, live)\n  for i = 1, #held do held[i] = held[i] or '0' end\n  return held\n", nil}},
		"Z4 a settlement needs no lease": {flow.Zset, mutant{"", gate, "  variadic('ZREM', leases, live)\n  for i = 1, #held do held[i] = held[i] or '0' end\n  return held\n", nil}},
		"L4 a late requeue pushes":       {flow.Legacy, mutant{"", "if left[tonumber(ARGV[at])] then", "if true then", nil}},
		"L8 renewal creates deadlines":   {flow.Legacy, mutant{"'GT'", "    raised[#raised + 1] = ARGV[2 + i]\n  else\n", "    raised[#raised + 1] = ARGV[2 + i]\n  else\n    redis.call('ZADD', leases, score, ARGV[2 + i])\n", nil}},
		"Z10 renewal creates members":    {flow.Zset, mutant{"'GT'", "    raised[#raised + 1] = ARGV[2 + i]\n  else\n", "    raised[#raised + 1] = ARGV[2 + i]\n  else\n    redis.call('ZADD', leases, score, ARGV[2 + i])\n", nil}},
		"L4 marks stay in processing":    {flow.Legacy, mutant{"", "    redis.call('LREM', list, tail and -count or count, mark)\n", "\n", nil}},
		"L9 a hand back reverses":        {flow.Legacy, mutant{"", "prepend(ready, back)", "variadic('LPUSH', ready, back)", nil}},
		"Z1 published without tokens":    {flow.Zset, mutant{"", "tokens(KEYS[2], #ARGV)", "tokens(KEYS[2], 0)", nil}},
		"Z3 twins are merged":            {flow.Zset, mutant{"", "if held[i] or taken[members[i]] then", "if false then", nil}},
		"Z5 a release replaces":          {flow.Zset, mutant{"", "      blocked[i] = true\n", "\n", nil}},
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
			var found error
			for range 40 { // rounds of 25 or so; the first is enough most times
				rapid.Check(t, func(t *rapid.T) {
					if err := g.sequence(t); err != nil && found == nil {
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
			case found == nil:
				t.Errorf("%d sequences did not notice", s.sequences.Load())
			case strings.Contains(found.Error(), "ERR "):
				t.Errorf("the mutant does not run: %v", found)
			}
		})
	}
}
