package pool

import "github.com/babelpool/babelpool/internal/flow"

// Stats is what a pool has done since it started, and what it holds now.
type Stats struct {
	// Held is the number of messages reserved and not yet settled, of all queues, and the room that reserve
	// calls under way have taken; at most Prefetch.
	Held int
	// Prefetch is the most there can be of those.
	Prefetch int
	// Running is the number of workers with a message in hand: nearly all of them run its handler.
	Running int
	// Concurrency is the number of workers.
	Concurrency int
	// Queues are the counts of each queue, in the order of Config.Queues.
	Queues []QueueStats
}

// QueueStats are the counts of one queue since the pool started. They tell what this pool did, not what is in
// Redis. A settlement that was sent again after a lost reply may have been carried out by the first try; then it
// counts as Late and not as Acked, so do not wait for Acked to reach a number.
type QueueStats struct {
	Name           string
	Layout         Layout
	Paused         bool  // no message is taken: Pause was called, or Redis says so
	Reserved       int64 // messages reserved
	Started        int64 // handlers started
	Acked          int64 // messages removed after success
	Failed         int64 // handler runs that failed; panics and timeouts included
	Panics         int64 // handler runs that panicked or called runtime.Goexit
	Released       int64 // zset: failed messages put in delayed
	Returned       int64 // messages that come back after a delay, uncharged
	Requeued       int64 // legacy: failed messages requeued with attempts raised
	Left           int64 // messages left to their lease
	DeadLettered   int64 // messages put in the dead letters; by reason (D2):
	DeadFailed     int64
	DeadUnknownURN int64
	DeadPoison     int64 // jobs of other systems included (Z8)
	HandedBack     int64 // messages returned to the head of ready
	Postponed      int64 // handler runs that ended with delivery.Postpone, whatever became of the message then
	UnknownURN     int64 // messages without a handler
	Poison         int64 // messages that are no acceptable envelope
	Late           int64 // settlements that came after the lease was gone; nothing was touched
	Missing        int64 // settlements whose message had left processing by other hands
	Lost           int64 // reservations whose lease was lost before they were settled
	Moved          int64 // expired or due messages moved to ready
	Renewed        int64 // leases renewed, counted by message
	Orphans        int64 // messages in flight without a deadline, at the last audit (L7)
	Adopted        int64 // orphans given a deadline
	WorkersLost    int64 // messages given up because of MaxRecoveries; they count as DeadLettered too (B21)
	Discarded      int64 // dead letters discarded because of DeadLetterLimits, but for calls whose reply was lost (B42)
	Reconnects     int64 // times Redis served this queue again after it had been away
}

// Stats reads the counters. Safe for concurrent use, before, during and after Run. The numbers are read one
// by one, so they may not add up to the instant.
func (p *Pool) Stats() Stats {
	t := p.topology.Load()
	if t == nil {
		return Stats{}
	}
	free, _ := t.slots.Free()
	s := Stats{Held: t.prefetch - free, Prefetch: t.prefetch, Running: t.busy(), Concurrency: t.concurrency}
	for i, c := range t.counters {
		s.Queues = append(s.Queues, queueStats(t.queues[i], p.pauses[i], c))
	}
	return s
}

func queueStats(q Queue, pause *flow.Pause, c *flow.Counters) QueueStats {
	return QueueStats{
		Name: q.Name, Layout: q.Layout, Paused: pause.Any(), Reserved: c.Reserved.Load(), Started: c.Started.Load(), Acked: c.Acked.Load(),
		Failed: c.Failed.Load(), Panics: c.Panics.Load(), Released: c.Released.Load(), Returned: c.Returned.Load(),
		Requeued: c.Requeued.Load(), Left: c.Left.Load(), DeadLettered: c.DeadLettered.Load(),
		DeadFailed: c.DeadBy[flow.Failed].Load(), DeadUnknownURN: c.DeadBy[flow.UnknownURN].Load(), DeadPoison: c.DeadBy[flow.Poison].Load(),
		HandedBack: c.HandedBack.Load(), Postponed: c.Postponed.Load(), UnknownURN: c.UnknownURN.Load(), Poison: c.Poison.Load(),
		Late: c.Late.Load(), Missing: c.Missing.Load(), Lost: c.Lost.Load(), Moved: c.Moved.Load(),
		Renewed: c.Renewed.Load(), Orphans: c.Orphans.Load(), Adopted: c.Adopted.Load(),
		WorkersLost: c.WorkersLost.Load(), Discarded: c.Discarded.Load(), Reconnects: c.Reconnects.Load(),
	}
}
