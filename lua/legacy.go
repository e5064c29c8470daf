package lua

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

const (
	tokenBytes = 12 // of a call's token; the script adds 8 hex digits for the index (L2)
	tokenWidth = 33 // hex digits of a whole token, and the colon
)

// Limits of an audit: beyond the first a queue's processing list is too long to read in one script.
const (
	auditLongest = 20_000
	auditMost    = 100
)

// Legacy is a queue in the list layout (rules L).
type Legacy struct {
	base
	order order // of settlements
}

// NewLegacy makes the store of a legacy queue.
func NewLegacy(o Options) *Legacy {
	s := &Legacy{base: newBase(o)}
	s.lists = "all"
	s.wait = waiter{client: o.Client, key: o.Keys.Ready, block: blockOnList}
	return s
}

// AskPermission asks whether this user may run all that the scripts run, unless it is known. Reserve and Sweep do it by
// themselves; they take nothing before it is granted.
func (s *Legacy) AskPermission(ctx context.Context) error {
	return s.permission.ask(ctx, s.Client, s.Keys.Deadlines, s.lists)
}

// Reserve sweeps expired leases and reserves what the request allows (L2, L3). The call is sent once: beside an
// ambiguous error stands its name, by which Recall finds the messages it may have taken.
func (s *Legacy) Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error) {
	k := &s.Keys
	if err := s.AskPermission(ctx); err != nil {
		return flow.Reserved{}, err
	}
	token := newToken()
	c := newCall(legacyReserve, s.withRecoveries(k.Ready, k.Processing, k.Deadlines, k.Paused), 10).
		arg(s.now(), s.lease, req.Most, req.Bytes, req.FirstPop, token, req.Migration)
	s.count(c, req)
	sent := time.Now()
	reply, err := c.run(ctx, s.Client)
	s.permission.heed(err)
	if errors.Is(err, flow.ErrAmbiguous) {
		return flow.Reserved{Sent: sent, Call: token}, err
	}
	if err != nil {
		return flow.Reserved{}, err
	}
	if len(reply) < 4 {
		return flow.Reserved{}, malformed(legacyReserve, fmt.Sprint(reply))
	}
	head, err := numbers(legacyReserve, reply[2:], 2)
	if err != nil {
		return flow.Reserved{}, err
	}
	res := flow.Reserved{
		Moved: int(head[0]), Left: int(head[1]), Paused: reply[0] == "paused", Sent: sent, Took: time.Since(sent),
	}
	reply, notes, err := s.told(legacyReserve, reply, &res)
	if err != nil {
		return flow.Reserved{}, err
	}
	if res.Lease, err = s.leased(legacyReserve, reply[4:]); err != nil {
		return flow.Reserved{}, err
	}
	return res, s.note(legacyReserve, notes, req, &res)
}

// Wait blocks until ready is not empty, for about a second at most, or until ctx ends.
func (s *Legacy) Wait(ctx context.Context) (int, error) { return s.wait.wait(ctx) }

// blockOnList moves the head of the list to its head: that blocks while the list is empty and leaves it as it
// was. Each waiting process wakes at a push.
func blockOnList(ctx context.Context, c blocker, key string, most time.Duration) (int, error) {
	return 0, c.BLMove(ctx, key, key, "LEFT", "LEFT", most).Err()
}

// ReturnToken does nothing: this layout has no tokens.
func (s *Legacy) ReturnToken(context.Context) error { return nil }

// Settle ends reservations (L4, L6, Z7, D3), one result each. Of a handle that is given twice the first decides and the
// others are Late. Beside an error some may have been carried out; it is safe to send all of them again.
func (s *Legacy) Settle(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	return s.settleCounted(ctx, s.Keys.Deadlines, settled, s.settleApart)
}

func (s *Legacy) settleAll(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	results := make([]flow.Result, len(settled))
	for from := 0; from < len(settled); from += chunk {
		to := min(from+chunk, len(settled))
		if err := s.settle(ctx, settled[from:to], results[from:to]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// settle sends one call, or two: what was not come across by its token goes out again in full.
func (s *Legacy) settle(ctx context.Context, settled []flow.Settlement, results []flow.Result) error {
	byToken := s.order.expected(len(settled))
	reply, err := s.sendSettle(ctx, settled, byToken)
	if err != nil {
		return err
	}
	unseen, err := exceptions(legacySettle, reply, results)
	if err != nil || !byToken {
		return err
	}
	s.order.found(len(settled)-len(unseen), len(unseen))
	if len(unseen) == 0 {
		return nil
	}
	again := make([]flow.Settlement, len(unseen))
	for i, at := range unseen {
		again[i] = settled[at]
	}
	if reply, err = s.sendSettle(ctx, again, false); err != nil {
		return err
	}
	rest := make([]flow.Result, len(unseen))
	if _, err = exceptions(legacySettle, reply, rest); err != nil {
		return err
	}
	for i, at := range unseen {
		results[at] = rest[i]
	}
	return nil
}

// sendSettle names the reservations by their deadline members, or all but the first by the tokens of these.
func (s *Legacy) sendSettle(ctx context.Context, settled []flow.Settlement, byToken bool) ([]string, error) {
	k := &s.Keys
	c := newCall(legacySettle, []string{k.Processing, k.Deadlines, k.Ready, k.DeadLetters}, 1+len(settled)).
		arg(len(settled))
	names := make([]string, len(settled))
	for i := range settled {
		if names[i] = settled[i].Reservation.Handle; byToken && i > 0 {
			names[i] = names[i][:tokenWidth-1]
		}
		c.arg(&names[i])
	}
	for i := range settled {
		switch op := settled[i].Op; op {
		case flow.Ack:
		case flow.Requeue:
			c.arg(i+1, "requeue", &settled[i].Text)
		case flow.DeadLetter:
			c.arg(i+1, "dead", &settled[i].Text)
		default:
			return nil, fmt.Errorf("lua: %w: the legacy layout has no %s", flow.ErrPermanent, op)
		}
	}
	return c.run(ctx, s.Client)
}

// HandBack returns reservations nobody started to the head of ready (L9). They must come in reservation
// order; the last chunk goes first, so that the whole keeps its order. Of a handle that is given twice one goes back
// and the others are Late. Safe to send again.
func (s *Legacy) HandBack(ctx context.Context, held []*flow.Reservation) ([]flow.Result, error) {
	results := make([]flow.Result, len(held))
	k := &s.Keys
	for from := (len(held) - 1) / chunk * chunk; from >= 0; from -= chunk {
		part := held[from:min(from+chunk, len(held))]
		c := newCall(legacyHandBack, []string{k.Processing, k.Deadlines, k.Ready}, len(part))
		for _, r := range part {
			c.arg(&r.Handle)
		}
		reply, err := c.run(ctx, s.Client)
		if err != nil {
			return nil, err
		}
		if _, err := exceptions(legacyHandBack, reply, results[from:from+len(part)]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Renew raises the expiry of held leases (L8). A result of Late means that the lease is gone.
func (s *Legacy) Renew(ctx context.Context, handles []string) ([]flow.Result, error) {
	return s.renew(ctx, s.Keys.Deadlines, handles)
}

// Sweep returns at most limit (1 to 1,000) expired leases to ready (L3) and says how many it removed.
func (s *Legacy) Sweep(ctx context.Context, limit int) (int, error) {
	k := &s.Keys
	if err := s.AskPermission(ctx); err != nil {
		return 0, err
	}
	c := newCall(legacySweep, s.withRecoveries(k.Ready, k.Processing, k.Deadlines), 3).arg(s.now(), limit)
	if s.MaxRecoveries > 0 {
		c.arg(s.keep)
	}
	reply, err := c.run(ctx, s.Client)
	s.permission.heed(err)
	if err != nil {
		return 0, err
	}
	moved, err := numbers(legacySweep, reply, 2)
	if err != nil {
		return 0, err
	}
	return int(moved[0]), nil
}

// Audit looks for orphans (L7).
func (s *Legacy) Audit(ctx context.Context) (flow.Audit, error) {
	k := &s.Keys
	reply, err := newCall(legacyAudit, []string{k.Processing, k.Deadlines}, 2).arg(auditLongest, auditMost).
		run(ctx, s.Client)
	if err != nil {
		return flow.Audit{}, err
	}
	n, err := numbers(legacyAudit, reply, 4)
	if err != nil {
		return flow.Audit{}, err
	}
	return flow.Audit{InFlight: n[0], Leases: n[1], Orphans: n[2], Dangling: n[3], Values: reply[4:]}, nil
}

// Adopt gives values that still are orphans a deadline (L7) and says how many it gave one.
func (s *Legacy) Adopt(ctx context.Context, values []string) (int, error) {
	k := &s.Keys
	if s.lease == "" {
		return 0, fmt.Errorf("lua: %w: adoption needs a lease", flow.ErrPermanent)
	}
	c := newCall(legacyAdopt, []string{k.Processing, k.Deadlines}, 4+len(values)).
		arg(s.now(), s.lease, auditLongest, newToken())
	for i := range values {
		c.arg(&values[i])
	}
	reply, err := c.run(ctx, s.Client)
	if err != nil {
		return 0, err
	}
	n, err := numbers(legacyAdopt, reply, 1)
	if err != nil {
		return 0, err
	}
	return int(n[0]), nil
}

// Depth counts the messages in each place.
func (s *Legacy) Depth(ctx context.Context) (flow.Depth, error) {
	var flight *redis.IntCmd
	return s.depth(ctx, func(p redis.Pipeliner) { flight = p.LLen(ctx, s.Keys.Processing) }, func(d *flow.Depth) {
		d.InFlight = flight.Val()
	})
}

// newToken is the 24 hex digits that make the tokens of one call unique (L2): 48 bits of the time in microseconds,
// then 48 random ones. The time makes the deadlines of one second stand in the order of their reservation, which
// lets a script guess where in processing a value is; nothing but speed depends on it.
func newToken() string {
	var raw [tokenBytes]byte
	binary.BigEndian.PutUint64(raw[:], uint64(time.Now().UnixMicro())<<16) // the low 48 bits
	_, _ = rand.Read(raw[6:])                                              // never fails (crypto/rand)
	return hex.EncodeToString(raw[:])
}

// seconds is how scripts take a delay.
func seconds(n int64) string { return strconv.FormatInt(n, 10) }
