package flow

import (
	"strconv"
	"sync/atomic"
	"time"
)

// State is where a reservation stands in this process. It only moves forward:
//
//	Buffered ──Start──▶ Running ──Settle──▶ Settled
//	    │                  │
//	    ├──────Settle──────┼──▶ Settled   (handed back, poison)
//	    └───────Lose───────┴──▶ Lost      (its lease is gone)
type State uint32

// The states of a reservation.
const (
	Buffered State = iota
	Running
	Settled
	Lost
)

// Reservation is one message this process has reserved and not yet let go of.
//
// The reserver creates it; a worker starts and settles it; the scheduler may lose it at any moment. The
// atomic state decides between them. The texts belong to the acker once the state is Settled or Lost.
type Reservation struct {
	Queue  int    // position of the queue in the pool
	Handle string // what the store takes to settle it: deadline member (L2) or reserved member (Z3)
	Text   string // the stored value a handler's message is read from; in the zset layout the raised one
	Edit   Edit   // zset layout: how Text differs from the ready text
	Order  int    // place within its lease, for settling and handing back in reservation order

	Recovery *Recovery // nil where no worker was lost with it, or none are counted

	lease *Lease
	state atomic.Uint32
	begun atomic.Int64 // when it started, in nanoseconds of the lease clock; 0 = not started
	run   Canceler     // of its run; written before it is Running, read after it is Lost
}

// Edit says how the reserve script changed a text: Length bytes at At (from 0) stand where Old stood.
type Edit struct {
	At, Length int
	Old        string
}

// Ready is the text as it stood in ready before the reserve; uncharged returns write it (Z7, L9).
func (r *Reservation) Ready() string {
	if r.Edit.Length == 0 {
		return r.Text
	}
	return r.Text[:r.Edit.At] + r.Edit.Old + r.Text[r.Edit.At+r.Edit.Length:]
}

// Size is what the reservation counts for against the limit of bytes in flight.
func (r *Reservation) Size() int { return len(r.Handle) }

// Lease is the lease the reservation was made under.
func (r *Reservation) Lease() *Lease { return r.lease }

// State is the present state.
func (r *Reservation) State() State { return State(r.state.Load()) }

// Canceler is a run that can be told to end.
type Canceler interface {
	// Cancel ends the run's context with a cause. It is called from other goroutines, and does not block.
	Cancel(cause error)
}

// Start claims a buffered reservation for a handler. It is false when the reservation was lost or settled
// meanwhile; then nothing may be run. When a reservation that was started is lost, its run is cancelled with
// ErrLeaseLost, once. run may be nil.
func (r *Reservation) Start(now time.Time, run Canceler) bool {
	r.begun.Store(clock(now))
	r.run = run // the swap below hands it to whoever sees the reservation running
	return r.state.CompareAndSwap(uint32(Buffered), uint32(Running))
}

// Settle claims the one settlement of a reservation that is buffered or running. It is false when the
// reservation is lost or was settled already.
func (r *Reservation) Settle() bool {
	// In the order of the states: one that starts between the two is still caught by the second.
	return r.state.CompareAndSwap(uint32(Buffered), uint32(Settled)) ||
		r.state.CompareAndSwap(uint32(Running), uint32(Settled))
}

// Lose marks the reservation as lost and cancels a handler that runs. It is false when it was settled
// before: then the settlement finds out by itself.
func (r *Reservation) Lose() bool {
	if r.state.CompareAndSwap(uint32(Buffered), uint32(Lost)) {
		return true
	}
	if !r.state.CompareAndSwap(uint32(Running), uint32(Lost)) {
		return false
	}
	if r.run != nil {
		r.run.Cancel(ErrLeaseLost)
	}
	return true
}

// String names the reservation in logs without its body (B48).
func (r *Reservation) String() string {
	return "reservation " + strconv.FormatUint(r.lease.number, 10) + "/" + strconv.Itoa(r.Order)
}
