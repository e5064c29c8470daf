package lua

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// longWaitEvery: an idle queue costs two round trips a second, a wait and a reserve, and that is all it may
	// cost (B39). Of the waits in a row that bring nothing, one in eight lasts two seconds, which makes room
	// for the audits without a moment when nobody waits. The fourth is the first of them.
	longWaitEvery = 8
	firstLongWait = 4
	// waitGrace is how long beyond its own time a blocked call may take before the connection counts as
	// dead. It holds where the client honours context deadlines (ContextTimeoutEnabled).
	waitGrace = 3 * time.Second
	// unblockEvery is how often a blocked call is cut short at stop until it ends: the first try can arrive
	// before the call has blocked.
	unblockEvery = 20 * time.Millisecond
)

// blocker is the part of a client the blocking calls need.
type blocker interface {
	BLMove(ctx context.Context, source, destination, srcpos, destpos string, timeout time.Duration) *redis.StringCmd
	BLPop(ctx context.Context, timeout time.Duration, keys ...string) *redis.StringSliceCmd
}

// waiter blocks on a key of an idle queue. It keeps a connection of its own, so the number of blocked
// connections is constant, one per queue (B17), and so the server knows by number which call to cut short:
// the client library does not interrupt a blocked read (B24).
type waiter struct {
	client redis.UniversalClient
	key    string
	block  func(ctx context.Context, c blocker, key string, most time.Duration) (tokens int, err error)

	vain int // waits in a row that brought nothing

	conn *redis.Conn   // nil: not connected, or the client has no connections of its own to give
	node *redis.Client // the node conn leads to
	id   int64         // of conn; 0 = unknown, then a stop waits for the call's end
}

// wait blocks for about a second, or two, at most. When ctx ends it returns soon after, with what the call took.
func (w *waiter) wait(ctx context.Context) (int, error) {
	if ctx.Err() != nil {
		return 0, nil
	}
	// The blocked call must not see ctx end: it would be given up with its token taken.
	most := time.Second
	if w.vain%longWaitEvery == firstLongWait-1 {
		most *= 2
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), most+waitGrace)
	defer cancel()
	var c blocker = w.client
	if err := w.connect(call); err != nil {
		return 0, failed(ctx, w.client, fmt.Sprintf("wait on %q", w.key), err)
	}
	if w.conn != nil {
		c = w.conn
	}
	done, cut := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		w.unblock(call, done)
	})
	tokens, err := w.block(call, c, w.key, most)
	close(done)
	if !stop() {
		<-cut
	}
	if errors.Is(err, redis.Nil) {
		w.vain++
		return 0, nil
	}
	w.vain = 0
	if err != nil {
		w.release()
		return 0, failed(ctx, w.client, fmt.Sprintf("wait on %q", w.key), err)
	}
	return tokens, nil
}

// connect takes a connection for the waits of this queue, from the node that serves the key.
func (w *waiter) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	switch client := w.client.(type) {
	case *redis.Client:
		w.node = client
	case *redis.ClusterClient:
		node, err := client.MasterForKey(ctx, w.key)
		if err != nil {
			return err
		}
		w.node = node
	default:
		return nil // a wrapped client: block on one of its pooled connections
	}
	w.conn = w.node.Conn()
	id, err := w.conn.ClientID(ctx).Result()
	if err != nil {
		var reply redis.Error
		if !errors.As(err, &reply) {
			w.release()
			return err
		}
		id = 0 // the server knows no CLIENT ID, or an ACL forbids it
	}
	w.id = id
	return nil
}

// unblock cuts the blocked call short, again and again until it has ended.
func (w *waiter) unblock(ctx context.Context, done <-chan struct{}) {
	if w.id == 0 {
		return
	}
	ticker := time.NewTicker(unblockEvery)
	defer ticker.Stop()
	for {
		if err := w.node.ClientUnblock(ctx, w.id).Err(); err != nil {
			return // forbidden or out of reach: the call ends by itself
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// release gives the connection back.
func (w *waiter) release() {
	if w.conn != nil {
		_ = w.conn.Close() // only fails when it is closed already
	}
	w.conn, w.id = nil, 0
}
