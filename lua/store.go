package lua

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

// Most values one call carries. Larger batches go out in chunks of this size; scripts unpack at most 1,000
// values at a time themselves (B37).
const chunk = 1000

// Options are what both stores need.
type Options struct {
	Client     redis.UniversalClient // owned by the caller; never closed here
	Keys       Keys
	Queue      int           // position of the queue in the pool
	RetryAfter time.Duration // lease, whole seconds (L5); 0 = disabled, leases never run out
	Now        func() string // clock for tests, seconds as text; nil = the server's (R2)

	// MaxRecoveries is how many workers may be lost with a message; 0 = they are not counted (B21). Needs RetryAfter.
	MaxRecoveries int64
}

// Store is one queue in one layout. Its methods are safe for concurrent use, but Wait, which belongs to one
// goroutine.
type Store interface {
	Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error)
	Recall(ctx context.Context, call string, sent time.Time) (flow.Reserved, error)
	Wait(ctx context.Context) (tokens int, err error)
	ReturnToken(ctx context.Context) error
	Close()

	Settle(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error)
	HandBack(ctx context.Context, held []*flow.Reservation) ([]flow.Result, error)

	Renew(ctx context.Context, handles []string) ([]flow.Result, error)
	Sweep(ctx context.Context, limit int) (moved int, err error)
	Audit(ctx context.Context) (flow.Audit, error)
	Adopt(ctx context.Context, values []string) (adopted int, err error)
	Trim(ctx context.Context, limits flow.DeadLetterLimits) (discarded int, more bool, err error)

	Depth(ctx context.Context) (flow.Depth, error)

	AskPermission(ctx context.Context) error

	Paused(ctx context.Context) (bool, error)
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// New makes the store of a layout.
func New(layout flow.Layout, o Options) Store {
	if layout == flow.Zset {
		return NewZset(o)
	}
	return NewLegacy(o)
}

// base is what the layouts share.
type base struct {
	Options
	lease string // RetryAfter as the scripts take it
	keep  string // how many seconds counts of lost workers are kept, as the scripts take it
	wait  waiter

	permission *permission
	lists      string // "all" where messages in flight are in a list
}

func newBase(o Options) base {
	b := base{Options: o, permission: &permission{}}
	if o.RetryAfter > 0 {
		b.lease = strconv.FormatInt(int64((o.RetryAfter+time.Second-1)/time.Second), 10)
	}
	b.keep = seconds(int64(max(leastKept, leasesKept*o.RetryAfter) / time.Second))
	return b
}

// now is the clock argument of a script: empty for the server's own.
func (b *base) now() string {
	if b.Now == nil {
		return ""
	}
	return b.Now()
}

// Close gives back the connection that Wait holds.
func (b *base) Close() { b.wait.release() }

// renew runs the renew script on the key that holds the leases.
func (b *base) renew(ctx context.Context, key string, handles []string) ([]flow.Result, error) {
	results := make([]flow.Result, len(handles))
	for from := 0; from < len(handles); from += chunk {
		part := handles[from:min(from+chunk, len(handles))]
		c := newCall(renewLeases, []string{key}, 2+len(part)).arg(b.now(), b.lease)
		for i := range part {
			c.arg(&part[i])
		}
		reply, err := c.run(ctx, b.Client)
		if err != nil {
			return nil, err
		}
		for _, position := range reply {
			i, err := strconv.Atoi(position)
			if err != nil || i < 1 || i > len(part) {
				return nil, malformed(renewLeases, position)
			}
			results[from+i-1] = flow.Late
		}
	}
	return results, nil
}

// exceptions reads the reply of a settling script: pairs of a position and what became of it. It returns the
// indexes of those that the script has not seen.
func exceptions(s *script, reply []string, results []flow.Result) (unseen []int, err error) {
	for at := 0; at+1 < len(reply); at += 2 {
		i, err := strconv.Atoi(reply[at])
		if err != nil || i < 1 || i > len(results) {
			return nil, malformed(s, reply[at])
		}
		switch reply[at+1] {
		case "late":
			results[i-1] = flow.Late
		case "lost":
			results[i-1] = flow.Missing
		case "left":
			results[i-1] = flow.Stayed
		case "unseen":
			unseen = append(unseen, i-1)
		default:
			return nil, malformed(s, reply[at+1])
		}
	}
	return unseen, nil
}

// numbers reads the first n elements of a reply as integers.
func numbers(s *script, reply []string, n int) ([]int64, error) {
	if len(reply) < n {
		return nil, malformed(s, strconv.Itoa(len(reply))+" elements")
	}
	values := make([]int64, n)
	for i := range values {
		v, err := strconv.ParseInt(reply[i], 10, 64)
		if err != nil {
			return nil, malformed(s, reply[i])
		}
		values[i] = v
	}
	return values, nil
}

// malformed is the error of a reply the store cannot read: something between it and Redis changed it. Only its
// beginning is told, which is shorter than the token before a body (B48).
func malformed(s *script, what string) error {
	return fmt.Errorf("lua: %s: %w: unexpected reply %q", s.name, flow.ErrPermanent, what[:min(len(what), tokenWidth-1)])
}
