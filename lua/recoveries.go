package lua

import (
	"context"
	"strings"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// Counts of lost workers are forgotten when none was lost for this long, the longer of the two (B21).
const (
	leastKept  = 24 * time.Hour
	leasesKept = 10
)

// withRecoveries appends the key of the counts, where lost workers are counted.
func (b *base) withRecoveries(keys ...string) []string {
	if b.MaxRecoveries > 0 {
		keys = append(keys, b.Keys.Recoveries)
	}
	return keys
}

// count appends the arguments that make a reserve count lost workers, where they are counted.
func (b *base) count(c *call, req flow.ReserveRequest) {
	if b.MaxRecoveries == 0 {
		return
	}
	alone := 0
	if req.Solo != nil {
		alone = 1
	}
	c.arg(b.MaxRecoveries, alone, b.keep)
}

// told takes what the script tells of lost workers off the end of a reserve's reply. A paused queue tells nothing.
func (b *base) told(s *script, reply []string, res *flow.Reserved) (rest, notes []string, err error) {
	if b.MaxRecoveries == 0 || res.Paused {
		return reply, nil, nil
	}
	const last = 3
	end := len(reply) - last
	if end < 0 {
		return nil, nil, malformed(s, strings.Join(reply, " "))
	}
	n, err := numbers(s, reply[end:], last)
	if err != nil {
		return nil, nil, err
	}
	at := end - int(n[0])
	if n[0] < 0 || at < 4 {
		return nil, nil, malformed(s, reply[end])
	}
	res.Lost, res.Back = n[1], int(n[2])
	return reply[:at], reply[at:end], nil
}

// note reads "position workers" of the messages that workers were lost with, positions from 1. The first that is in its
// last chance holds the request's Solo; the script has taken no other.
func (b *base) note(s *script, notes []string, req flow.ReserveRequest, res *flow.Reserved) error {
	for _, text := range notes {
		n, err := numbers(s, strings.Fields(text), 2)
		if err != nil {
			return err
		}
		if res.Lease == nil || n[0] < 1 || int(n[0]) > len(res.Lease.Items) {
			return malformed(s, text)
		}
		found := &flow.Recovery{Workers: n[1]}
		if n[1] == b.MaxRecoveries-1 && req.Solo != nil && !res.Solo {
			found.Solo, res.Solo = req.Solo, true
		}
		res.Lease.Items[n[0]-1].Recovery = found
	}
	return nil
}

// lookUp fills in how many workers were lost with messages whose reserve has not told. What is in its last chance
// among them runs beside others: that a reply is lost is rare enough.
func (b *base) lookUp(ctx context.Context, lease *flow.Lease) error {
	if b.MaxRecoveries == 0 {
		return nil
	}
	items := lease.Items
	for from := 0; from < len(items); from += chunk {
		part := items[from:min(from+chunk, len(items))]
		c := newCall(lookUpLost, []string{b.Keys.Recoveries}, len(part))
		for i := range part {
			c.arg(&part[i].Text)
		}
		reply, err := c.run(ctx, b.Client)
		if err != nil {
			return err
		}
		lost, err := numbers(lookUpLost, reply, len(part))
		if err != nil {
			return err
		}
		for i, n := range lost {
			if n > 0 {
				part[i].Recovery = &flow.Recovery{Workers: n}
			}
		}
	}
	return nil
}

// settleCounted settles, and does what counting lost workers needs beside it: leases that are left are excused, and the
// counts of messages that are gone are forgotten. Where workers are not counted it does nothing but settle.
func (b *base) settleCounted(ctx context.Context, leases string, settled []flow.Settlement,
	settle func(context.Context, []flow.Settlement) ([]flow.Result, error),
) ([]flow.Result, error) {
	if b.MaxRecoveries == 0 {
		return settle(ctx, settled)
	}
	var excused, others []flow.Settlement
	for i := range settled {
		if settled[i].Op == flow.Excuse {
			excused = append(excused, settled[i])
		} else {
			others = append(others, settled[i])
		}
	}
	left, err := b.excuse(ctx, leases, excused)
	if err != nil {
		return nil, err
	}
	done, err := settle(ctx, others)
	if err != nil {
		return nil, err
	}
	b.forget(ctx, others, done)
	if len(excused) == 0 {
		return done, nil
	}
	results := make([]flow.Result, 0, len(settled))
	for i := range settled {
		from := &done
		if settled[i].Op == flow.Excuse {
			from = &left
		}
		results = append(results, (*from)[0])
		*from = (*from)[1:]
	}
	return results, nil
}

// excuse says that the leases of messages that are left will run out with their worker alive.
func (b *base) excuse(ctx context.Context, leases string, excused []flow.Settlement) ([]flow.Result, error) {
	results := make([]flow.Result, len(excused))
	for from := 0; from < len(excused); from += chunk {
		part := excused[from:min(from+chunk, len(excused))]
		c := newCall(excuseLeases, []string{leases}, len(part))
		for i := range part {
			c.arg(&part[i].Reservation.Handle)
		}
		reply, err := c.run(ctx, b.Client)
		if err != nil {
			return nil, err
		}
		if _, err := exceptions(excuseLeases, reply, results[from:from+len(part)]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// forget removes the counts of messages that are acked or dead-lettered. It comes after the settlement, and a failure is
// no failure of that, nor is a death between the two: a count that stays behind belongs to a message that does not come
// back, and is dropped in time. (A dead letter that is redriven within that time may be given up once more. To forget first
// is no way out: whether the settlement is late is not known then, and who owns the message by now needs the count.)
func (b *base) forget(ctx context.Context, settled []flow.Settlement, results []flow.Result) {
	c := newCall(forgetLost, []string{b.Keys.Recoveries}, 0)
	known := len(c.words)
	for i := range settled {
		if s := &settled[i]; s.Reservation.Recovery != nil && results[i] == flow.Done &&
			(s.Op == flow.Ack || s.Op == flow.DeadLetter) {
			c.arg(&s.Reservation.Text)
		}
	}
	if len(c.words) > known {
		_, _ = c.run(ctx, b.Client) // see above
	}
}
