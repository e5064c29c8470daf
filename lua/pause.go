package lua

import (
	"context"
	"fmt"
	"time"
)

// Paused reports whether the queue is paused: whether its key is there, whatever it holds (R6).
func (b *base) Paused(ctx context.Context) (bool, error) {
	n, err := b.Client.Exists(ctx, b.Keys.Paused).Result()
	if err != nil {
		return false, classify(fmt.Sprintf("look for %q", b.Keys.Paused), err)
	}
	return n > 0, nil
}

// Pause makes every pool leave the queue alone until Resume. The key tells people since when, by this machine's
// clock; a queue that is paused already keeps its time. It may be sent again.
func (b *base) Pause(ctx context.Context) error {
	err := b.Client.SetNX(ctx, b.Keys.Paused, time.Now().UTC().Format(time.RFC3339), 0).Err()
	return classify(fmt.Sprintf("pause by %q", b.Keys.Paused), err)
}

// Resume ends the pause. It may be sent again.
func (b *base) Resume(ctx context.Context) error {
	err := b.Client.Del(ctx, b.Keys.Paused).Err()
	return classify(fmt.Sprintf("resume by %q", b.Keys.Paused), err)
}
