package admin

import (
	"context"

	"github.com/babelpool/babelpool/lua"
)

// delayed moves the delayed messages of a zset queue.
func (m *mover) delayed(ctx context.Context) error {
	set := lua.OpenDelayed(m.client, m.source)
	left, err := set.Len(ctx)
	if err != nil || left == 0 {
		return err
	}
	keeps := m.to.Layout == Zset && lua.SameSlot(m.client, m.source, m.target)
	if !m.o.DelayedNow && !keeps {
		m.report.Stayed[StayedDelayed] += left
		return nil
	}
	onward := m.route(lua.Ready(m.client, m.source), lua.Ready(m.client, m.target), m.translate)
	step := int64(window)
	if onward.way != nil {
		step = parcel
	}
	for at := int64(0); err == nil && left > 0; {
		var members []string
		if members, err = set.Range(ctx, at, min(left, step)); err != nil || len(members) == 0 {
			break
		}
		left -= int64(len(members))
		gone, stepErr := m.delayedStep(ctx, set, onward, members)
		at += int64(len(members) - gone)
		if err = stepErr; err == nil {
			err = m.stepped()
		}
	}
	return err
}

// delayedStep moves some members, and returns how many of them are not delayed any more.
func (m *mover) delayedStep(ctx context.Context, set *lua.DelayedSet, onward *route, members []string) (gone int, err error) {
	var chosen, texts []string
	for _, member := range members {
		text, stays := m.translate(member)
		switch {
		case stays != "":
			m.report.Stayed[stays]++
		case len(chosen) < m.room(len(members)):
			chosen, texts = append(chosen, member), append(texts, text)
		}
	}
	if m.o.DryRun || len(chosen) == 0 {
		m.report.Delayed += int64(len(chosen))
		return 0, nil
	}
	var results []lua.Shifted
	switch {
	case !m.o.DelayedNow:
		results, err = set.ShiftTo(ctx, m.target, chosen, texts)
	case onward.way != nil:
		results, err = set.ShiftToList(ctx, onward.way, chosen, chosen)
	default:
		results, err = set.ShiftToList(ctx, onward.to, chosen, texts)
	}
	if err != nil {
		return 0, err
	}
	for _, result := range results {
		switch result {
		case lua.ShiftDone:
			gone++
			m.report.Delayed++
		case lua.ShiftGone:
			gone++
			m.report.Gone++
		case lua.ShiftTwin:
			m.report.Stayed[StayedTwin]++
		}
	}
	return gone, onward.arrive(ctx)
}
