package publisher

import (
	"context"
	"time"

	"github.com/babelpool/babelpool/lua"
)

// PublishDelayed stores one message that becomes ready after a delay (Z1) and returns its meta.id.
//
// It needs the zset layout, else ErrNoDelay. The delay is rounded up to whole seconds and added to the whole
// seconds of the server's clock, so a message can fall due up to one second early by design (Z9): for at
// least d, ask for d plus one second. A delay of 0 goes through delayed as well and is due at once; a
// negative one is ErrNegativeDelay. There is no upper limit. A consumer has to be running for the message to
// become ready.
//
// ErrDuplicateBody means that delayed holds the very same bytes, which takes a caller that sets meta.id,
// trace_id and created_at. The id is returned as by Publish.
func (p *Publisher) PublishDelayed(
	ctx context.Context, delay time.Duration, urn string, data any, opts ...Option,
) (string, error) {
	if p.zset == nil {
		return "", ErrNoDelay
	}
	if delay < 0 {
		return "", ErrNegativeDelay
	}
	id, body, err := p.encode(urn, data, opts)
	if err != nil {
		return "", err
	}
	if err := ended(ctx); err != nil {
		return id, err
	}
	added, err := p.zset.PublishDelayed(ctx, []lua.Delayed{{Delay: wholeSeconds(delay), Body: body}})
	if err != nil {
		return id, p.failed(err)
	}
	if !added[0] {
		return id, ErrDuplicateBody
	}
	return id, nil
}

// wholeSeconds rounds up, without the overflow that adding a second first would have near the largest delay.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
