package lua

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

// permission is whether this user may run what the scripts run. It is asked once, before the first script that moves
// messages, and again after a refusal. A script that is refused a command half-way would lose what it had taken.
type permission struct{ granted atomic.Bool }

// ask asks unless it is known. leases is the queue's key that holds a sorted set. By EVAL, as it is seldom sent.
func (p *permission) ask(ctx context.Context, client processor, leases, lists string) error {
	if p.granted.Load() {
		return nil
	}
	refused, err := send(ctx, client, []any{"eval", probeCommands.text, 1, leases, lists})
	if err != nil {
		return failed(ctx, client, probeCommands.name, err)
	}
	if len(refused) > 0 {
		return fmt.Errorf("lua: %w: %w", flow.ErrPermanent, refusal(refused))
	}
	p.granted.Store(true)
	return nil
}

// heed notes what an error says of the permissions.
func (p *permission) heed(err error) {
	if err != nil && (redis.HasErrorPrefix(err, "NOPERM") || strings.Contains(err.Error(), "The user executing the script")) {
		p.granted.Store(false)
	}
}

// refusal is commands that this user may not run.
type refusal []string

// Error names them.
func (r refusal) Error() string {
	return "NOPERM this user may not run " + strings.Join(r, ", ") + "; nothing was taken"
}
