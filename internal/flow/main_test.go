package flow

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// base is the time the tests count from, in nanoseconds of the lease clock.
const base = int64(time.Hour)

// at is the time d after base.
func at(d time.Duration) time.Time { return epoch.Add(time.Duration(base) + d) }

// made makes a lease of n reservations with handles of their own.
func made(n int) *Lease {
	l := NewLease(0, n)
	for i := range l.Items {
		l.Items[i].Handle = "handle " + strconv.Itoa(i)
		l.Items[i].Text = "text " + strconv.Itoa(i)
	}
	return l
}

// finish finishes one reservation.
func finish(b *Book, r *Reservation) { b.Finish([]Settlement{{Reservation: r}}) }
