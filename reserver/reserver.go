package reserver

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
)

const (
	// callTimeout bounds one call to Redis where the client honours deadlines.
	callTimeout = 5 * time.Second
	// unknownSize is the guess of a body's size before the first was seen.
	unknownSize = 64 << 10
	// mostMigrated is the most a script moves in one call (L3, Z2).
	mostMigrated = 1000
)

// Store is where messages come from. The reserver calls it from one goroutine.
type Store interface {
	// Reserve takes messages. Not idempotent: it must be sent to Redis once per call. ctx bounds the call. Beside
	// an ambiguous error it names the call, where there is a way to find what it has taken.
	Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error)
	// Recall finds what is still leased to a call whose reply was lost. It changes nothing.
	Recall(ctx context.Context, call string, sent time.Time) (flow.Reserved, error)
	// Wait blocks until there may be messages, for two seconds at most; it returns soon after ctx ends.
	// tokens is what it took that the next Reserve must count.
	Wait(ctx context.Context) (tokens int, err error)
	// ReturnToken puts back a token that no Reserve will count.
	ReturnToken(ctx context.Context) error
	// Close gives back what Wait holds.
	Close()
}

// Slots is the capacity a reserver takes from.
type Slots interface {
	Acquire(ctx context.Context, queue, most int, mostBytes int64) (n int, bytes int64, err error)
	Release(queue, n int, bytes int64)
	// Demand says whether the queue has more messages than it was given.
	Demand(queue int, more bool)
}

// Buffer is where messages go. It has room for all that the slots allow, so Put does not block.
type Buffer interface {
	Put(queue int, items []flow.Reservation)
}

// Config is what a Reserver is made of.
type Config struct {
	Queue          int    // position in the pool
	Name           string // for logs
	Store          Store
	Slots          Slots
	Book           *flow.Book
	Pause          *flow.Pause
	Counters       *flow.Counters
	Out            Buffer
	Batch          int           // most messages per call
	Share          int           // the queue's slots by weight, where there are others beside it; 0 = it is alone
	Bytes          int64         // most body bytes per call
	MigrationBatch int           // most messages moved to ready per call; 0 = no cap but the script's
	PollInterval   time.Duration // pause where it cannot block on the queue
	Solo           *flow.Solo    // the pool's right to hold a message in its last chance; nil = lost workers are not counted (B21)
	OnPoison       func(ctx context.Context, raw string)
	Logger         *slog.Logger
}

// Reserver is the actor that takes the messages of one queue.
type Reserver struct {
	cfg     Config
	retry   *retry.Loop
	size    int64        // mean size of recent bodies
	tokens  int          // taken by Wait, not yet counted by a Reserve
	doubt   *doubt       // the last Reserve, if its reply was lost; nil = none
	healthy bool         // as of the last call; a change is logged once
	more    bool         // the last Reserve left messages in Redis
	lost    bool         // the last Reserve told of messages that workers were lost with
	around  int          // messages in their last chance that went to the tail of ready, and nothing was taken since
	pulse   flow.Pulse   // of Run's loop
	called  atomic.Int64 // Unix nanoseconds of the last call that succeeded; read by the scheduler
}

// New makes a Reserver.
func New(cfg Config) *Reserver {
	return &Reserver{cfg: cfg, retry: retry.New(), size: unknownSize, healthy: true}
}

// LastCall is when the last reserve, with its sweep, succeeded. Safe for concurrent use.
func (a *Reserver) LastCall() time.Time { return time.Unix(0, a.called.Load()) }

// Pulse tells whether Run's loop turns.
func (a *Reserver) Pulse() *flow.Pulse { return &a.pulse }

// Run reserves until ctx ends. When it has returned, nothing is reserved any more and nothing is put in
// the buffer.
func (a *Reserver) Run(ctx context.Context) error {
	defer a.pulse.Rest()
	defer a.cfg.Store.Close()
	defer a.returnToken(ctx)
	defer a.endDoubt(ctx)
	for ctx.Err() == nil {
		a.pulse.Beat()
		if a.doubt != nil { // before the next reserve, which may need the slots
			if err := a.recall(ctx, callTimeout); err != nil {
				a.pause(ctx, err)
			}
			continue
		}
		if a.cfg.Pause.Here() {
			a.rest(ctx)
			continue
		}
		a.pulse.Rest() // a pool may stay full, and a lease unrenewed while Redis is away
		n, bytes, err := a.cfg.Slots.Acquire(ctx, a.cfg.Queue, a.most(), a.cfg.Bytes)
		if err != nil {
			return nil // ctx has ended
		}
		a.cfg.Book.AwaitFresh(ctx)
		a.pulse.Beat()
		if ctx.Err() != nil || a.cfg.Pause.Here() {
			a.cfg.Slots.Release(a.cfg.Queue, n, bytes)
			continue
		}
		got, err := a.reserve(ctx, n, bytes)
		if got.Lease != nil || got.Back == 0 {
			a.around = 0
		}
		switch {
		case err != nil:
			a.pause(ctx, err)
		case got.Paused:
			a.returnToken(ctx) // nothing was taken for it
			a.nap(ctx)
		case got.Lease == nil && got.Back > 0:
			a.awaitSolo(ctx, got)
		case got.Lease == nil && got.Left == 0 && got.Moved == 0:
			a.wait(ctx)
		}
	}
	return nil
}

// most is how many messages the next call may ask for. Its slots are taken for as long as it lasts, which is seconds
// with a server that does not answer, and longer when its reply is lost. The other queues may be on other servers of a
// cluster, and must go on meanwhile: so a queue takes more than its share only when it is known to have more messages,
// and one slot while its own server does not serve.
func (a *Reserver) most() int {
	switch {
	case a.cfg.Share == 0:
		return a.cfg.Batch
	case !a.healthy:
		return 1
	case !a.more:
		return min(a.cfg.Batch, a.cfg.Share)
	}
	return a.cfg.Batch
}

// reserve makes one call and hands on what it brought.
func (a *Reserver) reserve(ctx context.Context, n int, bytes int64) (flow.Reserved, error) {
	// The call must not be given up with its messages taken when ctx ends.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	solo := a.takeSolo()
	got, err := a.cfg.Store.Reserve(call, flow.ReserveRequest{
		Most: n, Bytes: bytes, FirstPop: max(1, min(n, int(bytes/a.size))), Tokens: a.tokens, Migration: a.migration(),
		Solo: solo,
	})
	if solo != nil && (err != nil || !got.Solo) {
		solo.Return()
	}
	if err != nil {
		a.demand(false) // a queue out of reach must not keep others from borrowing
		if errors.Is(err, flow.ErrAmbiguous) && got.Call != "" {
			a.doubt = &doubt{call: got.Call, sent: got.Sent, n: n, bytes: bytes}
			a.lend()
			return flow.Reserved{}, err
		}
		a.cfg.Slots.Release(a.cfg.Queue, n, bytes)
		return flow.Reserved{}, err
	}
	if !got.Paused {
		a.tokens, a.lost = 0, got.Lost > 0
	}
	a.Paused(got.Paused)
	a.recovered()
	a.called.Store(time.Now().UnixNano())
	a.cfg.Counters.Moved.Add(int64(got.Moved))
	a.accept(got, n, bytes)
	for _, raw := range got.Poison {
		a.cfg.OnPoison(ctx, raw)
	}
	return got, nil
}

// accept registers the lease, then gives the messages to the workers and the rest of the slots back.
func (a *Reserver) accept(got flow.Reserved, n int, bytes int64) {
	taken, size := 0, int64(0)
	if got.Lease != nil {
		a.cfg.Book.Add(got.Lease, got.Sent)
		taken = len(got.Lease.Items)
		for i := range got.Lease.Items {
			size += int64(got.Lease.Items[i].Size())
		}
		a.size = max(1, (3*a.size+size/int64(taken))/4)
		a.cfg.Counters.Reserved.Add(int64(taken))
	}
	a.demand(got.Left > got.Back && !got.Paused)
	// Before the messages go out: their slots may be released by the acker from then on.
	a.cfg.Slots.Release(a.cfg.Queue, n-taken, bytes-size)
	if got.Lease != nil {
		a.cfg.Out.Put(a.cfg.Queue, got.Lease.Items)
	}
}

func (a *Reserver) demand(more bool) {
	a.more = more
	a.cfg.Slots.Demand(a.cfg.Queue, more)
}

func (a *Reserver) migration() int {
	if a.cfg.MigrationBatch > 0 {
		return min(a.cfg.MigrationBatch, mostMigrated)
	}
	return mostMigrated
}

// wait blocks on the empty queue. Where that is refused (full, read-only, forbidden) it naps instead.
func (a *Reserver) wait(ctx context.Context) {
	tokens, err := a.cfg.Store.Wait(ctx)
	if err != nil {
		a.nap(ctx)
		return
	}
	a.tokens = tokens
}

// nap lets a poll interval pass, which may be of any length.
func (a *Reserver) nap(ctx context.Context) {
	a.pulse.Rest()
	_ = retry.Sleep(ctx, jittered(a.cfg.PollInterval)) // the loop looks at ctx
}

// rest waits while this process is paused. Others may use what this queue would.
func (a *Reserver) rest(ctx context.Context) {
	a.returnToken(ctx)
	a.demand(false)
	a.pulse.Rest()
	a.cfg.Pause.AwaitHere(ctx)
}

// Paused notes and logs what Redis says of the queue. Safe for concurrent use: the scheduler asks too.
func (a *Reserver) Paused(on bool) {
	if !a.cfg.Pause.SetEverywhere(on) {
		return
	}
	if on {
		a.cfg.Logger.Info("queue is paused", "queue", a.cfg.Name)
		return
	}
	a.cfg.Logger.Info("queue is no longer paused", "queue", a.cfg.Name)
}

// returnToken puts back a token taken for a message that will not be fetched; best effort, a lost token
// costs another consumer a second.
func (a *Reserver) returnToken(ctx context.Context) {
	if a.tokens == 0 {
		return
	}
	a.tokens = 0
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := a.cfg.Store.ReturnToken(call); err != nil {
		a.cfg.Logger.Warn("notify token not returned", "queue", a.cfg.Name, "error", err)
	}
}

// pause waits before the next try and logs the change for the worse, once.
func (a *Reserver) pause(ctx context.Context, err error) {
	if a.healthy {
		a.healthy = false
		a.cfg.Logger.Warn("reserving is held up", "queue", a.cfg.Name, "error", err)
	}
	if errors.Is(err, flow.ErrTransient) {
		_ = a.retry.Wait(ctx) // the loop looks at ctx
		return
	}
	_ = a.retry.Slow(ctx)
}

// recovered logs the change for the better, once.
func (a *Reserver) recovered() {
	a.retry.Reset()
	if !a.healthy {
		a.healthy = true
		a.cfg.Logger.Info("reserving works again", "queue", a.cfg.Name)
	}
}

// jittered spreads polls of many processes: uniform in [d/2, d).
func jittered(d time.Duration) time.Duration {
	return d/2 + rand.N(max(d/2, 1))
}
