package admin

import (
	"context"
	"fmt"

	"github.com/babelpool/babelpool/lua"
)

// Messages a step carries: in one slot, and on the way between two, where a cut-off may repeat them.
const (
	window = lua.MostTaken
	parcel = 100
)

// route takes the texts of one list to another.
type route struct {
	*mover
	from, to *lua.List
	way      *lua.List // between two slots; nil = both lists are in one
	as       func(raw string) (text, stays string)
}

func (m *mover) route(from, to *lua.List, as func(raw string) (text, stays string)) *route {
	r := &route{mover: m, from: from, to: to, as: as}
	if !from.Shares(to) {
		r.way = from.Moving()
	}
	return r
}

// walk moves what is in the list now, oldest first. What stays, stays in its place.
func (r *route) walk(ctx context.Context, moved *int64) error {
	left, err := r.from.Len(ctx)
	at, step := int64(0), int64(window)
	if r.way != nil {
		step = parcel
	}
	for err == nil && left > 0 {
		var raws []string
		if raws, err = r.from.Range(ctx, at, min(left, step)); err != nil || len(raws) == 0 {
			break
		}
		left -= int64(len(raws))
		gone, stepErr := r.step(ctx, raws, moved)
		at += int64(len(raws) - gone)
		if err = stepErr; err == nil {
			err = r.stepped()
		}
	}
	return err
}

// step moves some texts, and returns how many of them are no longer in their list.
func (r *route) step(ctx context.Context, raws []string, moved *int64) (gone int, err error) {
	var chosen, texts []string
	for _, raw := range raws {
		text, stays := r.as(raw)
		switch {
		case stays != "":
			r.report.Stayed[stays]++
		case len(chosen) < r.room(len(raws)):
			chosen, texts = append(chosen, raw), append(texts, text)
		}
	}
	if r.o.DryRun || len(chosen) == 0 {
		*moved += int64(len(chosen))
		return 0, nil
	}
	target := r.to
	if r.way != nil {
		target, texts = r.way, chosen // they change at the end of the way
	}
	there, err := r.from.Take(ctx, target, chosen, texts)
	if err != nil {
		return 0, fmt.Errorf("admin: move from %q: %w", r.from.Key(), err)
	}
	n := int64(0)
	for _, ok := range there {
		if ok {
			n++
		}
	}
	r.report.Gone += int64(len(there)) - n
	*moved += n
	return len(there), r.arrive(ctx)
}

// finish brings on what is on its way since a move that was cut off.
func (r *route) finish(ctx context.Context) error {
	if r.way == nil || r.o.DryRun {
		return nil
	}
	return r.arrive(ctx)
}

// arrive publishes what is on its way, and then takes it off it: what is there twice is better than what is lost.
func (r *route) arrive(ctx context.Context) error {
	for r.way != nil {
		raws, err := r.way.Range(ctx, 0, parcel)
		if err != nil || len(raws) == 0 {
			return err
		}
		texts := make([]string, len(raws))
		for i, raw := range raws {
			text, stays := r.as(raw)
			if texts[i] = text; stays != "" {
				return fmt.Errorf("%w: %q holds messages of a move that was cut off, which this one may not move (%s)", ErrOptions, r.way.Key(), stays)
			}
		}
		if err := r.to.Add(ctx, texts); err != nil {
			return fmt.Errorf("admin: %d messages are on their way in %q; move again: %w", len(texts), r.way.Key(), err)
		}
		if _, err := r.way.Take(ctx, nil, raws, nil); err != nil {
			return fmt.Errorf("admin: %d messages have arrived and may still be in %q; the next move repeats them: %w",
				len(texts), r.way.Key(), err)
		}
	}
	return nil
}
