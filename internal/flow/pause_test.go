package flow

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestPause(t *testing.T) {
	t.Parallel()
	var p Pause
	look := func(here, anywhere bool) {
		t.Helper()
		if p.Here() != here || p.Any() != anywhere {
			t.Errorf("here %v, any %v, want %v, %v", p.Here(), p.Any(), here, anywhere)
		}
	}
	look(false, false)
	if p.SetHere(false) || p.SetEverywhere(false) {
		t.Error("what was so before counts as a change")
	}
	changed := p.Changed()
	if !p.SetEverywhere(true) || p.SetEverywhere(true) {
		t.Error("a pause everywhere is news once")
	}
	look(false, true)
	select {
	case <-changed:
	default:
		t.Error("nobody is told of a change")
	}
	if !p.SetHere(true) {
		t.Error("a pause here is no news")
	}
	look(true, true)
	p.SetEverywhere(false)
	look(true, true)
	p.SetHere(false)
	look(false, false)
}

func TestPauseAwaitHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Pause
		p.AwaitHere(t.Context()) // returns at once
		p.SetHere(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended, resumed := make(chan struct{}), make(chan struct{})
		go func() { defer close(ended); p.AwaitHere(ctx) }()
		go func() { defer close(resumed); p.AwaitHere(t.Context()) }()
		p.SetEverywhere(true) // another change wakes nobody for good
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the end of the context is not noticed")
		}
		select {
		case <-resumed:
			t.Error("went on while paused")
		default:
		}
		p.SetHere(false)
		<-resumed
	})
}
