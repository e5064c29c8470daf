package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/lua"
)

// Options say how a run goes. The zero value sends all back to where they came from.
type Options struct {
	// Queue is where messages go. Defaults to the queue that a record names as the one it failed in, else to the one it
	// was published to (meta.queue).
	Queue string
	// Limit is the most messages to send back, the oldest first. Defaults to 0: all that match.
	Limit int64
	// Rate is the most messages per second. Defaults to 0: as fast as possible.
	Rate float64
	// Replay marks each message with the header ReplayHeader, which handlers see with IsReplay. Legacy queues alone have
	// headers (F4).
	Replay bool
	// Raw sends what has no URN, such as a job of another system, back as the very bytes that are in the dead letters. It
	// needs Queue, because such a record names none. Defaults to false: it stays.
	Raw bool
	// DryRun only counts. Nothing is changed.
	DryRun bool
}

// Report is what a run did, or with DryRun would have done.
type Report struct {
	Looked  int64            `json:"looked"`  // records read
	Matched int64            `json:"matched"` // of those, chosen by the filter
	Moved   int64            `json:"moved"`
	Targets map[string]int64 `json:"targets"` // moved, by queue
	Skipped map[string]int64 `json:"skipped"` // matched and left where they are, by reason
}

// The reasons to skip a record.
const (
	SkippedNoURN   = "no_urn"   // no acceptable envelope; Options.Raw sends it back as it is
	SkippedNoQueue = "no_queue" // it names no queue that may be one (R4), and none was given
	SkippedGone    = "gone"     // somebody else took it meanwhile
)

// move is a record on its way.
type move struct{ queue, record, text string }

// Redrive sends the dead letters that match back to a queue. The report is valid beside an error too: what it counts as
// moved was moved. After a lost reply the error matches flow's ambiguous class: the messages of the last call may have been
// moved and are not counted.
func (d *DeadLetters) Redrive(ctx context.Context, f Filter, o Options) (Report, error) {
	r := &run{
		letters: d, filter: f, options: o, now: time.Now(), began: time.Now(), targets: map[string]lua.Keys{},
		report: Report{Targets: map[string]int64{}, Skipped: map[string]int64{}},
	}
	if err := r.check(); err != nil {
		return r.report, err
	}
	err := d.walk(ctx, func(letters []Letter) (int, error) { return r.window(ctx, letters) })
	return r.report, err
}

// run is one call of Redrive.
type run struct {
	letters    *DeadLetters
	filter     Filter
	options    Options
	now, began time.Time
	targets    map[string]lua.Keys
	report     Report
}

func (r *run) check() error {
	o := &r.options
	switch {
	case o.Replay && r.letters.cfg.Layout == Zset:
		return fmt.Errorf("%w: Replay: the zset layout has no headers to mark a replay with (F4)", ErrOptions)
	case o.Raw && o.Queue == "":
		return fmt.Errorf("%w: Raw: needs Queue, because a record without a URN names none", ErrOptions)
	case o.Limit < 0 || o.Rate < 0:
		return fmt.Errorf("%w: Limit and Rate: are at least 0", ErrOptions)
	case o.Queue == "":
		return nil
	}
	_, err := r.target(o.Queue)
	return err
}

// target is the keys of a queue.
func (r *run) target(queue string) (lua.Keys, error) {
	if keys, ok := r.targets[queue]; ok {
		return keys, nil
	}
	cfg := &r.letters.cfg
	keys, err := lua.NewKeys(cfg.Layout, cfg.KeyPrefix, queue, "")
	if err != nil {
		return lua.Keys{}, fmt.Errorf("%w: Queue: %w", ErrOptions, err)
	}
	r.targets[queue] = keys
	return keys, nil
}

// window sends back what matches of one window, and returns how many of it are gone from the dead letters.
func (r *run) window(ctx context.Context, letters []Letter) (gone int, err error) {
	r.report.Looked += int64(len(letters))
	moves := map[string][]move{} // by queue
	var order []string
	chosen := int64(0)
	for i := range letters {
		if !r.filter.matches(&letters[i], r.now) {
			continue
		}
		if r.options.Limit > 0 && r.report.Moved+chosen >= r.options.Limit {
			break
		}
		r.report.Matched++
		m, skipped := r.plan(&letters[i])
		if skipped != "" {
			r.report.Skipped[skipped]++
			continue
		}
		if moves[m.queue] == nil {
			order = append(order, m.queue)
		}
		moves[m.queue] = append(moves[m.queue], m)
		chosen++
	}
	for _, queue := range order {
		n, err := r.send(ctx, queue, moves[queue])
		gone += n
		if err != nil {
			return gone, err
		}
	}
	if r.options.Limit > 0 && r.report.Moved >= r.options.Limit {
		return gone, errEnough
	}
	return gone, nil
}

// plan says where a record goes and as what text, or why it stays.
func (r *run) plan(l *Letter) (m move, skipped string) {
	queue := r.options.Queue
	if l.Bad != nil || l.URN == "" {
		if !r.options.Raw {
			return move{}, SkippedNoURN
		}
		return move{queue, l.Raw, l.Raw}, ""
	}
	for _, named := range []string{l.Why.OriginalQueue, l.Queue} {
		if queue == "" && lua.CheckName(named) == nil {
			queue = named
		}
	}
	if queue == "" {
		return move{}, SkippedNoQueue
	}
	text, err := envelope.Redriven(l.Raw)
	if err != nil {
		return move{}, SkippedNoURN // it decoded, so it is one JSON object
	}
	if r.options.Replay {
		text = envelope.EncodeFrame(text, map[string]string{ReplayHeader: "1"})
	}
	return move{queue, l.Raw, text}, ""
}

// send moves records to one queue, in steps that keep to the rate, and returns how many are gone from the dead letters.
func (r *run) send(ctx context.Context, queue string, moves []move) (gone int, err error) {
	keys, err := r.target(queue)
	if err != nil {
		return 0, err // the name was checked before
	}
	if r.options.DryRun {
		r.count(queue, len(moves))
		return 0, nil
	}
	for len(moves) > 0 {
		n := len(moves)
		if r.options.Rate > 0 {
			n = min(n, max(1, int(r.options.Rate/stepsPerSecond)))
			due := r.began.Add(time.Duration(float64(r.report.Moved) / r.options.Rate * float64(time.Second)))
			if err := retry.Sleep(ctx, time.Until(due)); err != nil {
				return gone, err
			}
		}
		there, err := r.step(ctx, keys, moves[:n])
		for _, ok := range there {
			gone++
			if ok {
				r.count(queue, 1)
			} else {
				r.report.Skipped[SkippedGone]++
			}
		}
		if err != nil {
			return gone, err
		}
		moves = moves[n:]
	}
	return gone, nil
}

// stepsPerSecond is how often messages are sent within a second where there is a rate.
const stepsPerSecond = 10

func (r *run) count(queue string, n int) {
	r.report.Moved += int64(n)
	r.report.Targets[queue] += int64(n)
}

// step moves records at once. It says of each whether it was still there.
func (r *run) step(ctx context.Context, target lua.Keys, moves []move) ([]bool, error) {
	records, texts := make([]string, len(moves)), make([]string, len(moves))
	for i, m := range moves {
		records[i], texts[i] = m.record, m.text
	}
	list := r.letters.list
	if ready := lua.Ready(r.letters.cfg.Client, target); list.Shares(ready) {
		return list.Take(ctx, ready, records, texts)
	}
	// Two slots: published first, because a message that is there twice is better than one that is lost.
	if err := lua.Ready(r.letters.cfg.Client, target).Add(ctx, texts); err != nil {
		return nil, err
	}
	if _, err := list.Take(ctx, nil, records, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("redrive: %d messages were published and may still be dead letters too", len(moves)), err)
	}
	there := make([]bool, len(moves))
	for i := range there {
		there[i] = true
	}
	return there, nil
}

// IsAmbiguous reports whether an error leaves open if the last call was carried out.
func IsAmbiguous(err error) bool { return errors.Is(err, flow.ErrAmbiguous) }
