package router

import (
	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
)

// giveUp dead-letters a message that workers were lost with as often as MaxRecoveries allows (B21). It is poison of a
// kind that no handler can report, because it takes the process down; so its handler is not run again. The message
// is reserved like any other: when this process dies before the record is written, the next one writes it.
func (w *worker) giveUp(q *Queue, j *job, d *delivery.Delivery) {
	err := &WorkersLostError{Workers: j.reservation.WorkersLost()}
	q.Counters.WorkersLost.Add(1)
	w.rt.notices.gaveUp(q.Name, d, err)
	w.settle(q, j, deadLetter(q, j.reservation, d, envelope.ReasonPoison, err))
	w.rt.report(w.ctx, err, d.Envelope, d.Body)
}
