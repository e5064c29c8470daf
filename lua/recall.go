package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// clockSlack is how many seconds the clocks of a primary and the replica that takes its place may differ without
// hiding a call from Recall. It costs a few small reads for each second in which something was reserved.
const clockSlack = 10

// Recall looks for the messages of a Reserve that was sent at sent and whose reply was lost (B03). They are found by
// the call's token, which every deadline member begins with (L2), and are leased since the lost call. No lease
// means that the call took nothing, or that its leases ran out and were swept. It reads only: safe to send again.
//
// A call that arrives after the look-up, out of a buffer on the way, is not seen; its messages come back with their
// lease.
func (s *Legacy) Recall(ctx context.Context, call string, sent time.Time) (flow.Reserved, error) {
	if len(call) != 2*tokenBytes { // a shorter one would find messages of other processes
		return flow.Reserved{}, fmt.Errorf("lua: %w: %q names no call", flow.ErrPermanent, call)
	}
	ago := (time.Since(sent) + time.Second - 1) / time.Second
	reply, err := newCall(legacyRecall, []string{s.Keys.Deadlines}, 5).
		arg(s.now(), s.lease, call, strconv.FormatInt(int64(ago), 10), clockSlack).run(ctx, s.Client)
	if err != nil {
		return flow.Reserved{}, err
	}
	for _, member := range reply {
		if !strings.HasPrefix(member, call) {
			return flow.Reserved{}, malformed(legacyRecall, member)
		}
	}
	lease, err := s.leased(legacyRecall, reply)
	if err == nil && lease != nil {
		err = s.lookUp(ctx, lease)
	}
	return flow.Reserved{Lease: lease, Sent: sent}, err
}

// Recall finds nothing: in this layout a message does not tell which call has reserved it. The lease recovers it.
func (s *Zset) Recall(context.Context, string, time.Time) (flow.Reserved, error) {
	return flow.Reserved{}, nil
}

// leased makes the reservations of deadline members; nil without any.
func (s *Legacy) leased(from *script, members []string) (*flow.Lease, error) {
	if len(members) == 0 {
		return nil, nil //nolint:nilnil // no lease is an answer
	}
	lease := flow.NewLease(s.Queue, len(members))
	for i, member := range members {
		if len(member) < tokenWidth {
			return nil, malformed(from, member)
		}
		lease.Items[i].Handle, lease.Items[i].Text = member, member[tokenWidth:]
	}
	return lease, nil
}
