package lua

import (
	"context"
	"slices"

	"github.com/babelpool/babelpool/internal/flow"
)

// settleApart settles what is put off by a script of its own, and the others by settleAll. Nobody has to wait for rare
// cases: where there are none, this costs a look at each operation.
func (s *Legacy) settleApart(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	if !slices.ContainsFunc(settled, isReturn) {
		return s.settleAll(ctx, settled)
	}
	results := make([]flow.Result, len(settled))
	var parts [2]struct { // what is put off, and the others
		settled []flow.Settlement
		at      []int
	}
	seen := make(map[string]bool, len(settled))
	for i, one := range settled {
		if seen[one.Reservation.Handle] { // the first decides
			results[i] = flow.Late
			continue
		}
		seen[one.Reservation.Handle] = true
		part := &parts[1]
		if isReturn(one) {
			part = &parts[0]
		}
		part.settled, part.at = append(part.settled, one), append(part.at, i)
	}
	for i, by := range []func(context.Context, []flow.Settlement) ([]flow.Result, error){s.postpone, s.settleAll} {
		some, err := by(ctx, parts[i].settled)
		if err != nil {
			return nil, err
		}
		for j, result := range some {
			results[parts[i].at[j]] = result
		}
	}
	return results, nil
}

func isReturn(s flow.Settlement) bool { return s.Op == flow.Return }

// postpone lets leases end after the delays of their settlements.
func (s *Legacy) postpone(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	results := make([]flow.Result, len(settled))
	for from := 0; from < len(settled); from += chunk {
		part := settled[from:min(from+chunk, len(settled))]
		c := newCall(legacyPostpone, []string{s.Keys.Deadlines}, 1+2*len(part)).arg(s.now())
		for i := range part {
			c.arg(&part[i].Reservation.Handle, seconds(part[i].Delay))
		}
		reply, err := c.run(ctx, s.Client)
		if err != nil {
			return nil, err
		}
		if _, err := exceptions(legacyPostpone, reply, results[from:from+len(part)]); err != nil {
			return nil, err
		}
	}
	return results, nil
}
