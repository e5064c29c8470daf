package router

import (
	"context"
	"errors"

	"github.com/sourcegraph/conc"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
)

// guard runs a user's function on a goroutine of its own and waits for it: a panic comes back as an error,
// and runtime.Goexit ends that goroutine alone. It costs a goroutine, so only what runs after a failure goes
// through it.
func guard(f func()) error {
	var wg conc.WaitGroup
	finished := false
	wg.Go(func() {
		f()
		finished = true
	})
	if p := wg.WaitAndRecover(); p != nil {
		return &PanicError{Value: p.Value, Stack: p.Stack}
	}
	if !finished {
		return ErrExited
	}
	return nil
}

// report tells OnError of a failure.
func (rt *Router) report(ctx context.Context, err error, env envelope.Envelope, raw string) {
	hook := rt.cfg.Policy.OnError
	if hook == nil {
		return
	}
	// The hook often writes to a database or a tracker; a cancelled handler's context would make it fail.
	ctx = context.WithoutCancel(ctx)
	if hookErr := guard(func() { hook(ctx, err, env, raw) }); hookErr != nil {
		text := "OnError failed"
		if crash := new(PanicError); errors.As(hookErr, &crash) {
			text = "OnError panicked"
		}
		rt.notices.hook(text, hookErr)
	}
}

// warnForbidden logs forbidden keys, each once per process (E5).
func (rt *Router) warnForbidden(d *delivery.Delivery) {
	for _, pointer := range d.ForbiddenKeys {
		rt.notices.forbidden(pointer, d)
	}
}
