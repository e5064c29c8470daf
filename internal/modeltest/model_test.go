package modeltest

import (
	"fmt"
	"math"
	"slices"

	"github.com/babelpool/babelpool/internal/flow"
)

// model is what a queue should be. A call's results are predicted before it is made or given to the model afterwards;
// either way the model then stands where Redis must stand.
type model interface {
	publish(bodies []string)
	// reserve takes what the request allows. call is the token of the call, in the layout that has one.
	reserve(req flow.ReserveRequest, lease int64, call string) reserved
	// outcome is what settlements would come to; HandBack is one of the operations. sure is false where a rule
	// leaves open which of several equal ones it is.
	outcome(batch []flow.Settlement) (results []flow.Result, sure bool)
	// settle checks results and carries the settlements out. ordered is false when they went out in two calls.
	settle(batch []flow.Settlement, results []flow.Result, ordered bool) error
	renew(handles []string, lease int64) []flow.Result
	sweep(limit int, lease int64) int
	audit() flow.Audit
	depth() flow.Depth
	// leased reports whether a handle is in force.
	leased(handle string) bool
	// compare checks all keys; name makes a member readable.
	compare(got state, name func(string) string) error
}

// reserved is the answer to a reserve call.
type reserved struct {
	Items       []item
	Poison      []string
	Moved, Left int
	Paused      bool
}

// item is one reservation.
type item struct{ Handle, Text, Ready string }

// queue is what the models of both layouts share.
type queue struct {
	now         int64 // whole seconds
	paused      bool
	ready, dead tail
}

// expiry is the score of a lease; 0 seconds = it does not run out (L5, Z3).
func (q *queue) expiry(lease int64) float64 {
	if lease == 0 {
		return math.Inf(1)
	}
	return float64(q.now + lease)
}

// pop takes up to most bodies from the head while their bytes stay below the budget; the one that crosses it is the
// last.
func (q *queue) pop(req flow.ReserveRequest) []string {
	var taken []string
	bytes := int64(0)
	for _, body := range q.ready.values {
		if len(taken) == req.Most || bytes >= req.Bytes {
			break
		}
		taken, bytes = append(taken, body), bytes+int64(len(body))
	}
	q.ready.values = q.ready.values[len(taken):]
	return taken
}

// due are the first members of a set that are due.
func (q *queue) due(set map[string]float64, limit int) []string {
	var texts []string
	for _, m := range sorted(set) {
		if m.Score > float64(q.now) || len(texts) == limit {
			break
		}
		texts = append(texts, m.Text)
	}
	return texts
}

// renewal raises what is in force and never lowers it (L8, Z10).
func (q *queue) renewal(set map[string]float64, handles []string, lease int64) []flow.Result {
	results := make([]flow.Result, len(handles))
	for i, handle := range handles {
		score, ok := set[handle]
		if !ok {
			results[i] = flow.Late
			continue
		}
		if score == math.Trunc(score) || math.IsInf(score, 0) { // what is put off stays so
			set[handle] = max(score, q.expiry(lease))
		}
	}
	return results
}

// firsts tells of each settlement of a call whether it is the first with its handle; the others are late (L4, Z4). The
// last chunk of a hand back goes out first.
func firsts(batch []flow.Settlement) []bool {
	var chunks []int
	for from := 0; from < len(batch); from += chunk {
		chunks = append(chunks, from)
	}
	if len(batch) > 0 && batch[0].Op == flow.HandBack {
		slices.Reverse(chunks)
	}
	first, seen := make([]bool, len(batch)), make(map[string]bool, len(batch))
	for _, from := range chunks {
		for i := from; i < min(from+chunk, len(batch)); i++ {
			handle := batch[i].Reservation.Handle
			first[i], seen[handle] = !seen[handle], true
		}
	}
	return first
}

// wrongResult is a result that differs from the model's.
func wrongResult(i int, one flow.Settlement, got, want flow.Result) error {
	return fmt.Errorf("settlement %d, %s of %.60q: result %d, want %d", i, one.Op, one.Reservation.Text, got, want)
}
