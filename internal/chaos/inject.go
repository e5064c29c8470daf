package chaos

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/retry"
)

const (
	longestDown  = 500 * time.Millisecond // a killed server, before it is started again
	leastSleep   = 200 * time.Millisecond
	longestSleep = 1500 * time.Millisecond // longer than the surest part of a lease of 2 s, shorter than clients wait

	leastDelay   = 20 * time.Millisecond // of a reply that comes late
	longestDelay = 100 * time.Millisecond
	delayedFor   = 300 * time.Millisecond // replies

	commandPatience = 3 * time.Second // of a server that is about to be back
	replyPatience   = 500 * time.Millisecond

	silentOneIn = 4 // lost replies after which the connection stays open and silent
)

// Injector carries out a schedule.
type Injector struct {
	// Server is the server to restart. It must keep its data (redisproc.Config.AppendOnly).
	Server *redisproc.Server
	// Proxy is what consumers and publishers connect through.
	Proxy *faultproxy.Proxy
	// Do sends a command to the server, not through the proxy.
	Do func(ctx context.Context, words ...any) (reply any, err error)
	// Replies are texts that stand in the commands whose replies get lost. At least one.
	Replies []string
	// Kill kills one of the consumers; false when that one is not running.
	Kill func(draw uint64) bool
	// Counters count what has happened.
	Counters *Counters

	waiting []*faultproxy.Swallow // replies to be lost that have not been yet
}

// Run carries faults out until ctx ends; then it finishes the one that is under way, so that the server is up when it
// returns. Its error is ErrServerGone.
func (i *Injector) Run(ctx context.Context, s *Schedule) error {
	start := time.Now()
	defer i.countLost()
	for {
		e := s.Next()
		if retry.Sleep(ctx, e.At-time.Since(start)) != nil {
			return nil
		}
		done, err := i.inject(ctx, e)
		if err != nil {
			return err
		}
		if done {
			i.Counters.Add(e.Kind)
		}
	}
}

// inject carries out one fault and reports whether it happened. One fault may be in the way of another.
func (i *Injector) inject(ctx context.Context, e Event) (done bool, err error) {
	switch e.Kind {
	case ConsumerKill:
		return i.Kill(e.Draw), nil
	case RedisRestart:
		return true, i.restart(context.WithoutCancel(ctx), spread(e.Draw, 0, longestDown))
	case ClientKill:
		killed, _ := i.command(ctx, "client", "kill", "type", "normal", "skipme", "yes").(int64)
		return killed > 0, nil
	case ScriptFlush:
		return i.command(ctx, "script", "flush") != nil, nil
	case DebugSleep:
		seconds := spread(e.Draw, leastSleep, longestSleep).Seconds()
		return i.command(ctx, "debug", "sleep", strconv.FormatFloat(seconds, 'f', 3, 64)) != nil, nil
	case LostReply:
		return i.lose(ctx, e.Draw), nil
	case ProxyCut:
		i.Proxy.Cut()
		return true, nil
	case ProxyDelay:
		i.Proxy.Delay(spread(e.Draw, leastDelay, longestDelay))
		_ = retry.Sleep(ctx, delayedFor) // no longer than the run
		i.Proxy.Delay(0)
		return true, nil
	default:
		return false, nil // it happens in consumers
	}
}

// restart ends the server as a crash does and starts it again.
func (i *Injector) restart(ctx context.Context, down time.Duration) error {
	err := i.Server.Kill()
	if err == nil {
		_ = retry.Sleep(ctx, down) // its context does not end
		err = i.Server.Restart(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrServerGone, err)
	}
	return nil
}

// command sends a command; nil when the server did not carry it out.
func (i *Injector) command(ctx context.Context, words ...any) any {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandPatience)
	defer cancel()
	again := retry.New()
	for {
		reply, err := i.Do(ctx, words...)
		if err == nil {
			return reply
		}
		if again.Wait(ctx) != nil {
			return nil
		}
	}
}

// lose has the reply to one of the next commands lost, and waits for that a moment.
func (i *Injector) lose(ctx context.Context, draw uint64) bool {
	var options []faultproxy.SwallowOption
	if draw%silentOneIn == 0 {
		options = append(options, faultproxy.KeepOpen())
	}
	match := i.Replies[draw/silentOneIn%uint64(len(i.Replies))]
	lost := i.Proxy.SwallowNext(match, options...)
	timer := time.NewTimer(replyPatience)
	defer timer.Stop()
	select {
	case <-lost.Done():
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	i.waiting = append(i.waiting, lost)
	return false
}

// countLost counts the replies that were lost later than expected.
func (i *Injector) countLost() {
	for _, lost := range i.waiting {
		select {
		case <-lost.Done():
			i.Counters.Add(LostReply)
		default:
		}
	}
	i.waiting = nil
}
