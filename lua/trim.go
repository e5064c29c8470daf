package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// trim discards dead letters beyond the limits, at most 1,000 of them; more says that another call is needed (B42). bell
// is the notify list of the dead letters, empty where there is none.
func (b *base) trim(ctx context.Context, bell string, limits flow.DeadLetterLimits) (discarded int, more bool, err error) {
	keys := []string{b.Keys.DeadLetters}
	if bell != "" {
		keys = append(keys, bell)
	}
	c := newCall(trimDead, keys, 4).arg(b.now(), limit(int64(limits.Count)),
		limit(wholeSeconds(limits.Age)), limit(limits.Bytes))
	reply, err := c.run(ctx, b.Client)
	if err != nil {
		return 0, false, err
	}
	n, err := numbers(trimDead, reply, 2)
	if err != nil {
		return 0, false, err
	}
	return int(n[0]), n[1] == 1, nil
}

// wholeSeconds rounds up, also the longest of durations.
func wholeSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}

// limit is how the script takes a limit; 0 is none.
func limit(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Trim discards the oldest dead letters beyond the limits, some at a time (B42).
func (s *Legacy) Trim(ctx context.Context, limits flow.DeadLetterLimits) (discarded int, more bool, err error) {
	return s.trim(ctx, "", limits)
}

// Trim discards the oldest dead letters beyond the limits, some at a time, and the tokens of those (B42, D1).
func (s *Zset) Trim(ctx context.Context, limits flow.DeadLetterLimits) (discarded int, more bool, err error) {
	return s.trim(ctx, s.Keys.DeadLetterNotify, limits)
}
