package lua

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
)

// mutant is a script with one rule taken out of it. As a hook of a client it takes the place of the original.
type mutant struct{ hash, text string }

func (m mutant) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m mutant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m mutant) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if words := cmd.Args(); words[0] == "evalsha" && words[1] == m.hash {
			words[0], words[1] = "eval", m.text
		}
		return next(ctx, cmd)
	}
}

// mutate replaces a piece of a script that stands in it exactly once.
func mutate(t testing.TB, s *script, piece, instead string) mutant {
	t.Helper()
	if n := strings.Count(s.text, piece); n != 1 {
		t.Fatalf("%s holds %q %d times, want once: the mutant is out of date", s.name, piece, n)
	}
	return mutant{s.hash, strings.Replace(s.text, piece, instead, 1)}
}

// verdict stands in for the test while an assertion runs that is to fail.
type verdict struct {
	testing.TB
	failures []string
}

// stopped unwinds an assertion that called Fatalf.
type stopped struct{}

func (v *verdict) Errorf(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

func (v *verdict) Error(args ...any) { v.failures = append(v.failures, fmt.Sprint(args...)) }

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	panic(stopped{})
}

func (v *verdict) Fatal(args ...any) {
	v.Error(args...)
	panic(stopped{})
}

// of runs an assertion and returns what it found wrong.
func (v *verdict) of(assert func(t testing.TB, q *queue), q *queue) (failures []string) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
		}
		failures = v.failures
	}()
	assert(v, q)
	return v.failures
}

// late is lateTouchesNothing for one operation.
func late(op flow.Op) func(t testing.TB, q *queue) {
	return func(t testing.TB, q *queue) { lateTouchesNothing(t, q, op) }
}

// Each gate is needed: the assertion that holds for the script fails for the script without it. A mutant that
// survives means that a test has gone blind.
func TestMutantsAreCaught(t *testing.T) { // L4, L8, L9, Z4, Z5, Z10, Z11, D3, B21, B42
	t.Parallel()
	const (
		removal     = "  if variadic('ZREM', leases, live) < #live then\n"
		alwaysHeld  = "  variadic('ZREM', leases, live)\n  for i = 1, #held do held[i] = held[i] or '0' end\n  if false then\n"
		neverRemove = "  if false then\n"
		blind       = "  if variadic('ZREM', leases, live) < 0 then\n" // to repetitions
	)
	for name, c := range map[string]struct {
		script         *script
		piece, instead string
		assert         func(t testing.TB, q *queue)
	}{
		"L4 an ack needs no lease":                        {legacySettle, removal, alwaysHeld, late(flow.Ack)},
		"L4 a requeue needs no lease":                     {legacySettle, removal, alwaysHeld, late(flow.Requeue)},
		"L4 a late requeue pushes":                        {legacySettle, "if left[tonumber(ARGV[at])] then", "if true then", late(flow.Requeue)},
		"L4 a missing value is pushed":                    {legacySettle, "    if want[value] > 0 then\n      want[value] = want[value] - 1\n    else\n      left", "    do\n      left", missingPushesNothing},
		"L4 the value stays in processing":                {legacySettle, "      redis.call('LTRIM', processing, start + size, -1)\n      prepend(processing, rest)\n      prepend(processing, before)\n", "\n", deadLetterReplacesTheReservation},
		"L4 marks stay in processing":                     {legacySettle, "    redis.call('LREM', list, tail and -count or count, mark)\n", "\n", scatteredLeavesNoMark},
		"L4 an unseen settlement counts as done":          {legacySettle, "digits and 'unseen' or", "", lateInALargeBatch},
		"L9 a hand back needs no lease":                   {legacyHandBack, removal, alwaysHeld, lateHandBackTouchesNothing},
		"L4 repetitions pass the gate":                    {legacySettle, removal, blind, repetitionsAreLate},
		"L4 repetitions are handed back":                  {legacyHandBack, removal, blind, handedBackOnce},
		"L8 renewal creates leases":                       {renewLeases, "    reply[#reply + 1] = i\n", "", renewCreatesNothing},
		"L8 renewal may lower":                            {renewLeases, "'XX', 'GT', ", "'XX', ", renewNeverLowers},
		"D3 legacy: a dead letter without removal":        {legacySettle, removal, neverRemove, deadLetterReplacesTheReservation},
		"D3 legacy: a late dead letter is written":        {legacySettle, removal, alwaysHeld, late(flow.DeadLetter)},
		"D3 legacy: removal without the record":           {legacySettle, "variadic('RPUSH', dead, buried)\n", "\n", deadLetterReplacesTheReservation},
		"Z7 legacy: a late postponement is written":       {legacyPostpone, "  if held[i] then\n", "  if true then\n", late(flow.Return)},
		"Z7 legacy: a renewal undoes a postponement":      {legacyPostpone, " - 0.5", "", postponedComesBackInTime},
		"Z4 an ack needs no reservation":                  {zsetSettle, removal, alwaysHeld, late(flow.Ack)},
		"Z4 a release needs no reservation":               {zsetSettle, removal, alwaysHeld, late(flow.Release)},
		"Z4 a return needs no reservation":                {zsetSettle, removal, alwaysHeld, late(flow.Return)},
		"Z4 repetitions pass the gate":                    {zsetSettle, removal, blind, repetitionsAreLate},
		"Z4 repetitions are handed back":                  {zsetHandBack, removal, blind, handedBackOnce},
		"Z4 a late release is written":                    {zsetSettle, "  elseif held[i] then\n", "  else\n", late(flow.Release)},
		"Z5 a release replaces what delayed holds":        {zsetSettle, "if coming[text] or redis.call('ZSCORE', delayed, text) then", "if coming[text] then", stayedLosesNothing},
		"Z5 a blocked release leaves reserved":            {zsetSettle, "variadic('ZADD', reserved, stays)\n", "\n", stayedLosesNothing},
		"Z10 renewal creates members":                     {renewLeases, "    reply[#reply + 1] = i\n", "", renewCreatesNothing},
		"Z10 renewal may lower":                           {renewLeases, "'XX', 'GT', ", "'XX', ", renewNeverLowers},
		"Z11 a hand back needs no reservation":            {zsetHandBack, removal, alwaysHeld, lateHandBackTouchesNothing},
		"D3 zset: a dead letter without removal":          {zsetSettle, removal, neverRemove, deadLetterReplacesTheReservation},
		"D3 zset: a late dead letter is written":          {zsetSettle, removal, alwaysHeld, late(flow.DeadLetter)},
		"D3 zset: removal without the record":             {zsetSettle, "variadic('RPUSH', dead, buried)\n", "\n", deadLetterReplacesTheReservation},
		"D1 zset: a dead letter without its notify token": {zsetSettle, "tokens(KEYS[4], #buried)", "tokens(KEYS[4], 0)", deadLetterReplacesTheReservation},
		"B21 legacy: a lost worker is not counted":        {legacyReserve, "raised[place + 1] = raised[place + 1] + 1", "", reserveCountsWhatItSweeps},
		"B21 zset: a lost worker is not counted":          {zsetReserve, "    lost(recoveries, died, keep)\n", "", reserveCountsWhatItSweeps},
		"B21 legacy: several last chances at once":        {legacyReserve, "alone = alone - 1", "alone = alone", lastChanceIsTakenAlone},
		"B21 zset: several last chances at once":          {zsetReserve, "alone = alone - 1", "alone = alone", lastChanceIsTakenAlone},
		"B21 zset: what was put back is lost":             {zsetReserve, "  variadic('RPUSH', ready, back)\n  return kept", "  return kept", lastChanceIsTakenAlone},
		"B21 legacy: an excused lease is counted":         {legacySweep, "% 1 == 0.5", "% 1 == 0.25", excusedLeaseIsNotCounted},
		"B21 zset: an excused lease is counted":           {zsetMigrate, "% 1 == 0.5", "% 1 == 0.25", excusedLeaseIsNotCounted},
		"B21 legacy: a renewal undoes an excuse":          {renewLeases, "elseif string.byte(held[i], -2) ~= point then", "else", excusedLeaseIsNotCounted},
		"B21 zset: a renewal undoes an excuse":            {renewLeases, "elseif string.byte(held[i], -2) ~= point then", "else", excusedLeaseIsNotCounted},
		"B21 legacy: the count outlives an ack":           {forgetLost, "variadic('HDEL', recoveries, fields)\n", "\n", settlementEndsTheCount},
		"D1 legacy: what is gone is put in ready":         {takeDead, "    values[i] = false\n", "\n", takesWhatIsThere},
		"D1 legacy: what was taken stays":                 {takeDead, "remove(dead, want, #values, values, ARGV[1])\n", "want = setmetatable({}, {__index = function() return 0 end})\n", takesWhatIsThere},
		"D1 zset: a dead letter's token stays":            {takeDead, "redis.call('LTRIM', bell, 0, left - 1)", "", takesWhatIsThere},
		"B42 legacy: the newest are discarded":            {trimDead, "redis.call('LTRIM', dead, drop, -1)", "redis.call('LTRIM', dead, 0, -drop - 1)", countOfDeadLetters},
		"B42 zset: tokens stay behind":                    {trimDead, "redis.call('LTRIM', bell, 0, left - 1)", "", countOfDeadLetters},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				layout := flow.Zset
				if strings.HasPrefix(c.script.name, "legacy/") || strings.HasPrefix(name, "L8") || strings.Contains(name, " legacy: ") {
					layout = flow.Legacy
				}
				sound := newQueue(t, b, layout, nil)
				c.assert(t, sound) // holds for the original
				sound.clear(t)

				b.Client = testredis.Client(t, b.URL)
				b.Client.AddHook(mutate(t, c.script, c.piece, c.instead))
				failures := (&verdict{TB: t}).of(c.assert, newQueue(t, b, layout, nil))
				if len(failures) == 0 {
					t.Errorf("the mutant of %s survives", c.script.name)
				}
				for _, f := range failures {
					if strings.Contains(f, "ERR ") { // it must run and do the wrong thing
						t.Errorf("the mutant does not run: %s", f)
					}
				}
			})
		})
	}
}
