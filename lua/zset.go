package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

// Zset is a queue in the layout compatible with Laravel's (rules Z).
type Zset struct{ base }

// NewZset makes the store of a zset queue.
func NewZset(o Options) *Zset {
	s := &Zset{newBase(o)}
	s.wait = waiter{client: o.Client, key: o.Keys.Notify, block: blockOnToken}
	return s
}

// withDeadLetters appends the dead letter keys; the notify list only where there is one (D1).
func (s *Zset) withDeadLetters(keys ...string) []string {
	keys = append(keys, s.Keys.DeadLetters)
	if s.Keys.DeadLetterNotify != "" {
		keys = append(keys, s.Keys.DeadLetterNotify)
	}
	return keys
}

// AskPermission asks whether this user may run all that the scripts run, unless it is known. Reserve and Sweep do it by
// themselves; they take nothing before it is granted.
func (s *Zset) AskPermission(ctx context.Context) error {
	return s.permission.ask(ctx, s.Client, s.Keys.Reserved, s.lists)
}

// Reserve promotes what is due and reserves what the request allows (Z2, Z3). The call is sent once: on an
// ambiguous error the messages it may have taken come back when their lease runs out.
func (s *Zset) Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error) {
	k := &s.Keys
	if err := s.AskPermission(ctx); err != nil {
		return flow.Reserved{}, err
	}
	keys := s.withRecoveries(s.withDeadLetters(k.Ready, k.Delayed, k.Reserved, k.Notify, k.Paused)...)
	c := newCall(zsetReserve, keys, 10).
		arg(s.now(), s.lease, req.Most, req.Bytes, req.FirstPop, req.Migration, req.Tokens)
	s.count(c, req)
	sent := time.Now()
	reply, err := c.run(ctx, s.Client)
	s.permission.heed(err)
	if err != nil {
		return flow.Reserved{}, err
	}
	const fixed = 7
	if len(reply) < fixed {
		return flow.Reserved{}, malformed(zsetReserve, fmt.Sprint(reply))
	}
	head, err := numbers(zsetReserve, reply[2:], 5)
	if err != nil {
		return flow.Reserved{}, err
	}
	res := flow.Reserved{
		Moved: int(head[0]), Left: int(head[1]), Paused: reply[0] == "paused", Sent: sent, Took: time.Since(sent),
	}
	reply, lost, err := s.told(zsetReserve, reply, &res)
	if err != nil {
		return flow.Reserved{}, err
	}
	members, notes, poison := int(head[2]), int(head[3]), int(head[4])
	if members < 0 || notes < 0 || poison < 0 || len(reply) != fixed+members+notes+poison {
		return flow.Reserved{}, malformed(zsetReserve, fmt.Sprint(reply[:fixed]))
	}
	res.Poison = reply[fixed+members+notes:]
	if members == 0 {
		return res, nil
	}
	res.Lease = flow.NewLease(s.Queue, members)
	for i, member := range reply[fixed : fixed+members] {
		r := &res.Lease.Items[i]
		r.Handle, r.Text, r.Edit = member, member, tailEdit(member)
	}
	for _, note := range reply[fixed+members : fixed+members+notes] {
		if err := readNote(note, res.Lease.Items); err != nil {
			return flow.Reserved{}, err
		}
	}
	return res, s.note(zsetReserve, lost, req, &res)
}

// tailEdit is the edit of a canonical member, "…,"attempts":N}" raised by one: the script does not spend
// bytes on telling it.
func tailEdit(member string) flow.Edit {
	end := len(member) - 1
	at := end
	for at > 0 && member[at-1] >= '0' && member[at-1] <= '9' {
		at--
	}
	n, err := strconv.ParseInt(member[at:max(at, end)], 10, 64)
	if err != nil {
		return flow.Edit{}
	}
	return flow.Edit{At: at, Length: end - at, Old: strconv.FormatInt(n-1, 10)}
}

// readNote reads "position at length old", positions from 1.
func readNote(note string, items []flow.Reservation) error {
	fields := strings.SplitN(note, " ", 4)
	if len(fields) != 4 {
		return malformed(zsetReserve, note)
	}
	n, err := numbers(zsetReserve, fields[:3], 3)
	if err != nil {
		return err
	}
	i, at, length := int(n[0])-1, int(n[1])-1, int(n[2])
	if i < 0 || i >= len(items) || at < 0 || length < 0 || at+length > len(items[i].Text) {
		return malformed(zsetReserve, note)
	}
	items[i].Edit = flow.Edit{At: at, Length: length, Old: fields[3]}
	return nil
}

// Wait blocks until a notify token comes, for about a second at most, or until ctx ends. A token it took is
// counted by the next Reserve, or goes back with ReturnToken.
func (s *Zset) Wait(ctx context.Context) (int, error) { return s.wait.wait(ctx) }

// blockOnToken takes one token; it wakes one of the waiting processes.
func blockOnToken(ctx context.Context, c blocker, key string, most time.Duration) (int, error) {
	if err := c.BLPop(ctx, most, key).Err(); err != nil {
		return 0, err
	}
	return 1, nil
}

// ReturnToken puts back a token that Wait took and no Reserve will count. One too many is trimmed by the next
// Reserve, one too few costs another process a second.
func (s *Zset) ReturnToken(ctx context.Context) error {
	cmd := onceInt{redis.NewIntCmd(ctx, "rpush", s.Keys.Notify, "1")}
	if err := s.Client.Process(ctx, cmd); err != nil {
		return failed(ctx, s.Client, fmt.Sprintf("return token to %q", s.Keys.Notify), err)
	}
	return nil
}

// Settle ends reservations (Z4, Z5, Z7, D3), one result each. Of a handle that is given twice the first decides and the
// others are Late.
func (s *Zset) Settle(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	return s.settleCounted(ctx, s.Keys.Reserved, settled, s.settleAll)
}

func (s *Zset) settleAll(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	results := make([]flow.Result, len(settled))
	for from := 0; from < len(settled); from += chunk {
		to := min(from+chunk, len(settled))
		if err := s.settle(ctx, settled[from:to], results[from:to]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (s *Zset) settle(ctx context.Context, settled []flow.Settlement, results []flow.Result) error {
	c := newCall(zsetSettle, s.withDeadLetters(s.Keys.Reserved, s.Keys.Delayed), 2+len(settled)).
		arg(s.now(), len(settled))
	for i := range settled {
		c.arg(&settled[i].Reservation.Handle)
	}
	for i := range settled {
		switch one := &settled[i]; one.Op {
		case flow.Ack:
		case flow.Release:
			c.arg(i+1, "release", seconds(one.Delay), "")
		case flow.Return:
			c.arg(i+1, "return", seconds(one.Delay), &one.Text)
		case flow.DeadLetter:
			c.arg(i+1, "dead", "", &one.Text)
		default:
			return fmt.Errorf("lua: %w: the zset layout has no %s", flow.ErrPermanent, one.Op)
		}
	}
	reply, err := c.run(ctx, s.Client)
	if err != nil {
		return err
	}
	_, err = exceptions(zsetSettle, reply, results)
	return err
}

// HandBack returns reservations nobody started to the head of ready as they were before (Z7, Z11). They must
// come in reservation order; of a handle that is given twice one goes back and the others are Late. Not safe to send
// again (Z4).
func (s *Zset) HandBack(ctx context.Context, held []*flow.Reservation) ([]flow.Result, error) {
	results := make([]flow.Result, len(held))
	k := &s.Keys
	for from := (len(held) - 1) / chunk * chunk; from >= 0; from -= chunk {
		part := held[from:min(from+chunk, len(held))]
		c := newCall(zsetHandBack, []string{k.Reserved, k.Ready, k.Notify}, 2*len(part))
		for _, r := range part {
			c.arg(&r.Handle, r.Ready())
		}
		reply, err := c.run(ctx, s.Client)
		if err != nil {
			return nil, err
		}
		if _, err := exceptions(zsetHandBack, reply, results[from:from+len(part)]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Renew raises the expiry of held leases (Z10). A result of Late means that the lease is gone.
func (s *Zset) Renew(ctx context.Context, handles []string) ([]flow.Result, error) {
	return s.renew(ctx, s.Keys.Reserved, handles)
}

// Sweep moves at most limit (1 to 1,000) due members to ready (Z2) and says how many it moved.
func (s *Zset) Sweep(ctx context.Context, limit int) (int, error) {
	k := &s.Keys
	if err := s.AskPermission(ctx); err != nil {
		return 0, err
	}
	c := newCall(zsetMigrate, s.withRecoveries(k.Ready, k.Delayed, k.Reserved, k.Notify), 4).arg(s.now(), s.lease, limit)
	if s.MaxRecoveries > 0 {
		c.arg(s.keep)
	}
	reply, err := c.run(ctx, s.Client)
	s.permission.heed(err)
	if err != nil {
		return 0, err
	}
	moved, err := numbers(zsetMigrate, reply, 1)
	if err != nil {
		return 0, err
	}
	return int(moved[0]), nil
}

// Audit looks for members that never expire.
func (s *Zset) Audit(ctx context.Context) (flow.Audit, error) {
	reply, err := newCall(zsetAudit, []string{s.Keys.Reserved}, 0).run(ctx, s.Client)
	if err != nil {
		return flow.Audit{}, err
	}
	n, err := numbers(zsetAudit, reply, 2)
	if err != nil {
		return flow.Audit{}, err
	}
	return flow.Audit{InFlight: n[0], Leases: n[0], Endless: n[1]}, nil
}

// Adopt does nothing: this layout has no orphans.
func (s *Zset) Adopt(context.Context, []string) (int, error) { return 0, nil }

// Depth counts the messages in each place.
func (s *Zset) Depth(ctx context.Context) (flow.Depth, error) {
	var flight, delayed *redis.IntCmd
	return s.depth(ctx, func(p redis.Pipeliner) {
		flight, delayed = p.ZCard(ctx, s.Keys.Reserved), p.ZCard(ctx, s.Keys.Delayed)
	}, func(d *flow.Depth) {
		d.InFlight, d.Delayed = flight.Val(), delayed.Val()
	})
}
