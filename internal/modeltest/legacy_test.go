package modeltest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

const tokenWidth = 33 // 32 hex digits and a colon (L2)

// legacy is the model of the list layout.
type legacy struct {
	queue
	processing []string           // as it stood at the last comparison, and what came since
	copies     map[string]int     // of the values in processing now
	deadlines  map[string]float64 // by member
}

func newLegacy(now int64) *legacy {
	return &legacy{queue: queue{now: now}, copies: map[string]int{}, deadlines: map[string]float64{}}
}

// value is what a deadline member carries; a member without a token carries nothing.
func value(handle string) (string, bool) {
	if len(handle) < tokenWidth || handle[tokenWidth-1] != ':' {
		return "", false
	}
	return handle[tokenWidth:], true
}

func (m *legacy) leased(handle string) bool { _, ok := m.deadlines[handle]; return ok }

func (m *legacy) publish(bodies []string) { m.ready.push(bodies...) } // L1

func (m *legacy) enter(values ...string) {
	m.processing = append(m.processing, values...)
	for _, v := range values {
		m.copies[v]++
	}
}

// leave takes one copy out of processing, if there is one.
func (m *legacy) leave(v string) bool {
	if m.copies[v] == 0 {
		return false
	}
	m.copies[v]--
	return true
}

func (m *legacy) reserve(req flow.ReserveRequest, lease int64, call string) reserved { // L2, L3
	r := reserved{Moved: m.sweep(req.Migration, lease), Paused: m.paused}
	if !m.paused {
		for i, body := range m.pop(req) {
			one := item{fmt.Sprintf("%s%08x:%s", call, i+1, body), body, body}
			m.deadlines[one.Handle] = m.expiry(lease)
			r.Items = append(r.Items, one)
			m.enter(body)
		}
	}
	r.Left = len(m.ready.values)
	return r
}

// sweep drops the deadlines that are due, and returns their values as far as processing holds them (L3). Where it
// holds fewer than are due, the later deadlines get them: no rule says so, but it decides what stands behind what.
func (m *legacy) sweep(limit int, _ int64) int {
	due := m.due(m.deadlines, limit)
	want := map[string]int{}
	for _, handle := range due {
		delete(m.deadlines, handle)
		if v, ok := value(handle); ok {
			want[v]++
		}
	}
	for _, handle := range due {
		v, ok := value(handle)
		if !ok {
			continue
		}
		if want[v]--; want[v] < m.copies[v] {
			m.leave(v)
			m.ready.push(v)
		}
	}
	return len(due)
}

func (m *legacy) outcome(batch []flow.Settlement) (results []flow.Result, sure bool) { // L4
	taken, missing := map[string]int{}, map[string]int{}
	results, first := make([]flow.Result, len(batch)), firsts(batch)
	for i, one := range batch {
		v, _ := value(one.Reservation.Handle)
		switch {
		case !first[i] || !m.leased(one.Reservation.Handle):
			results[i] = flow.Late
		case one.Op == flow.Return: // processing is not looked at
		case taken[v] < m.copies[v]:
			taken[v]++
		default:
			missing[v]++
			results[i] = flow.Missing
		}
	}
	for v := range missing {
		if taken[v] > 0 {
			return results, false
		}
	}
	return results, true
}

// settle takes the results as they are where several settlements want the last copy of one value (L4): then their
// number must be right.
func (m *legacy) settle(batch []flow.Settlement, results []flow.Result, ordered bool) error {
	want, sure := m.outcome(batch)
	done := map[string]int{}
	for i, one := range batch {
		v, _ := value(one.Reservation.Handle)
		late := want[i] == flow.Late
		if results[i] != want[i] && (sure || late || results[i] != flow.Done && results[i] != flow.Missing) {
			return wrongResult(i, one, results[i], want[i])
		}
		if one.Op == flow.Return {
			continue
		}
		if want[i] == flow.Done {
			done[v]++
		}
		if results[i] == flow.Done {
			done[v]--
		}
	}
	for v, n := range done {
		if n != 0 {
			return fmt.Errorf("of the settlements of %.60q %d too few are done", v, n)
		}
	}

	var head, back, buried []string
	for i, one := range batch {
		if one.Op == flow.Return && results[i] == flow.Done { // Z7: it comes back by its lease, which nobody renews
			m.deadlines[one.Reservation.Handle] = float64(m.now+one.Delay) - 0.5
			continue
		}
		if want[i] == flow.Late {
			continue
		}
		delete(m.deadlines, one.Reservation.Handle)
		if results[i] != flow.Done {
			continue
		}
		v, _ := value(one.Reservation.Handle)
		m.leave(v)
		switch one.Op { //nolint:exhaustive // the others have no case here
		case flow.HandBack:
			head = append(head, v)
		case flow.Requeue:
			back = append(back, one.Text)
		case flow.DeadLetter:
			buried = append(buried, one.Text)
		}
	}
	m.ready.values = slices.Concat(head, m.ready.values)
	if !ordered {
		m.ready.open(back...)
		m.dead.open(buried...)
		return nil
	}
	m.ready.push(back...)
	m.dead.push(buried...)
	return nil
}

func (m *legacy) renew(handles []string, lease int64) []flow.Result {
	return m.renewal(m.deadlines, handles, lease)
}

// orphans are the values in processing without a deadline, as a multiset, and the number of deadlines without a value
// (L7).
func (m *legacy) orphans() (orphans []string, dangling int) {
	free := map[string]int{}
	for v, n := range m.copies {
		free[v] = n
	}
	for handle := range m.deadlines {
		v, ok := value(handle)
		if ok && free[v] > 0 {
			free[v]--
		} else {
			dangling++
		}
	}
	for v, n := range free {
		orphans = append(orphans, slices.Repeat([]string{v}, n)...)
	}
	slices.Sort(orphans)
	return orphans, dangling
}

func (m *legacy) audit() flow.Audit {
	orphans, dangling := m.orphans()
	return flow.Audit{
		InFlight: m.inFlight(), Leases: int64(len(m.deadlines)), Orphans: int64(len(orphans)), Dangling: int64(dangling),
		Values: orphans,
	}
}

// adoptable are those of the values that are orphans, each counted once.
func (m *legacy) adoptable(values []string) []string {
	orphans, _ := m.orphans()
	free := tally(orphans)
	var adopted []string
	for _, v := range values {
		if free[v] > 0 {
			free[v]--
			adopted = append(adopted, v)
		}
	}
	return adopted
}

// adopt takes over the deadlines that Redis has and the model has not: they must be those of the adopted.
func (m *legacy) adopt(adopted []string, lease int64, got state) error {
	var fresh []string
	for _, d := range got.Deadlines {
		if v, ok := value(d.Text); ok && !m.leased(d.Text) && d.Score == m.expiry(lease) {
			fresh = append(fresh, v)
			m.deadlines[d.Text] = d.Score
		}
	}
	if diff := cmp.Diff(tally(adopted), tally(fresh)); diff != "" {
		return fmt.Errorf("adopted values differ (-want +got):\n%s", diff)
	}
	return nil
}

func (m *legacy) inFlight() int64 {
	n := int64(0)
	for _, c := range m.copies {
		n += int64(c)
	}
	return n
}

func (m *legacy) depth() flow.Depth {
	return flow.Depth{
		Ready: int64(len(m.ready.values)), InFlight: m.inFlight(), DeadLetters: int64(len(m.dead.values)),
	}
}

func (m *legacy) compare(got state, name func(string) string) error {
	if err := m.ready.same("ready", got.Ready); err != nil {
		return err
	}
	if err := m.dead.same("dead letters", got.Dead); err != nil {
		return err
	}
	if err := sameSet("deadlines", m.deadlines, got.Deadlines, name); err != nil {
		return err
	}
	return m.sameProcessing(got.Processing)
}

// sameProcessing compares the values as a multiset, since L4 does not say which of several equal copies leaves. What
// stays must stand as it stood: the sweep and the settlements find values by their place.
func (m *legacy) sameProcessing(got []string) error {
	for v, n := range m.copies {
		if n == 0 {
			delete(m.copies, v)
		}
	}
	if have := tally(got); !maps.Equal(m.copies, have) {
		return fmt.Errorf("values in processing differ (-want +got):\n%s", cmp.Diff(m.copies, have))
	}
	at := 0
	for _, v := range m.processing {
		if at < len(got) && got[at] == v {
			at++
		}
	}
	if at < len(got) {
		return fmt.Errorf("processing has changed its order: from %d on it stands %.200q, and before it stood %.200q",
			at, got[at:], m.processing)
	}
	m.processing = slices.Clone(got)
	return nil
}
