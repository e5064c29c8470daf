package faulttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/babelpool/babelpool/envelope"
)

// testURN is the URN of all messages that have a handler.
const testURN = "urn:babel:fault:tested"

// ledger keeps what was published and what was handled, without asking Redis. Messages are told apart by a
// sequence number in their data.
type ledger struct {
	mu     sync.Mutex
	stems  map[int]string // published: the body up to its attempts
	unsure map[int]bool   // published with an unknown outcome: may be there
	starts map[int]int    // handler starts
	done   map[int]int    // handler successes
	next   int
}

func newLedger() *ledger {
	return &ledger{stems: map[int]string{}, unsure: map[int]bool{}, starts: map[int]int{}, done: map[int]int{}}
}

// body makes the next message. Until stored is called it counts as one whose outcome is unknown.
func (l *ledger) body(t testing.TB, queue, urn string) (seq int, body string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	seq = l.next
	l.next++
	e, err := envelope.New(urn, queue, map[string]int{"seq": seq})
	if err != nil {
		t.Fatal(err)
	}
	body = e.Encode()
	l.stems[seq], l.unsure[seq] = stem(body), true
	return seq, body
}

// stored notes that messages were published for certain.
func (l *ledger) stored(seqs ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seq := range seqs {
		delete(l.unsure, seq)
	}
}

// unstored notes that a message was certainly not published.
func (l *ledger) unstored(seq int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stems, seq)
	delete(l.unsure, seq)
}

func (l *ledger) begin(seq int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts[seq]++
}

func (l *ledger) finish(seq int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[seq]++
}

// totals are the numbers of certain messages, of those among them that were handled, and of starts of any.
func (l *ledger) totals() (stored, done, starts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for seq := range l.stems {
		if l.unsure[seq] {
			continue
		}
		stored++
		if l.done[seq] > 0 {
			done++
		}
	}
	for _, n := range l.starts {
		starts += n
	}
	return stored, done, starts
}

func (l *ledger) allDone() bool {
	stored, done, _ := l.totals()
	return done == stored
}

// started are the starts of one message.
func (l *ledger) started(seq int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.starts[seq]
}

// onceEach fails the test when a message was not started exactly once.
func (l *ledger) onceEach(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var wrong []string
	for seq := range l.stems {
		if n := l.starts[seq]; n != 1 && !l.unsure[seq] {
			wrong = append(wrong, fmt.Sprintf("%d: %d", seq, n))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		t.Errorf("%d messages were not started exactly once: %s", len(wrong), abridged(wrong))
	}
}

// conserve checks the invariant of all cases on one consistent view of the keys: every certain message is in
// a place or was handled, none is in two places, no bytes appear that were not published, and, in the legacy
// layout, what is in flight is exactly what has a lease.
func (l *ledger) conserve(t testing.TB, s snapshot) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	places := map[int][]string{}
	for _, p := range s.places() {
		for _, text := range p.texts {
			seq, ok := sequence(text)
			if want, published := l.stems[seq]; !ok || !published || stem(text) != want {
				t.Errorf("CONSERVE: %s holds bytes that were not published: %.200q", p.name, text)
				continue
			}
			places[seq] = append(places[seq], p.name)
		}
	}
	var lost, doubled []string
	for seq := range l.stems {
		switch in := places[seq]; {
		case len(in) > 1:
			doubled = append(doubled, fmt.Sprintf("%d in %v", seq, in))
		case len(in) == 0 && l.done[seq] == 0 && !l.unsure[seq]:
			lost = append(lost, strconv.Itoa(seq))
		}
	}
	if len(lost) > 0 {
		t.Errorf("CONSERVE: %d messages are lost: %s", len(lost), abridged(lost))
	}
	if len(doubled) > 0 {
		t.Errorf("CONSERVE: %d messages are there twice: %s", len(doubled), abridged(doubled))
	}
	if s.leases != nil {
		leased, flight := slices.Clone(s.leases), slices.Clone(s.flight)
		slices.Sort(leased)
		slices.Sort(flight)
		if !slices.Equal(leased, flight) {
			t.Errorf("CONSERVE: %d messages in processing, %d with a deadline, and they are not the same", len(flight), len(leased))
		}
	}
}

var sequencePattern = regexp.MustCompile(`"data":\{"seq":(\d+)\}`)

// sequence reads a message's number from any text that was made of its body.
func sequence(text string) (int, bool) {
	match := sequencePattern.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	seq, err := strconv.Atoi(match[1])
	return seq, err == nil
}

// stem is what no transition may change: the body up to its attempts, which the envelope puts last.
func stem(text string) string {
	before, _, _ := strings.Cut(text, `,"attempts":`)
	return before
}

func abridged(items []string) string {
	if len(items) > 10 {
		return strings.Join(items[:10], ", ") + ", …"
	}
	return strings.Join(items, ", ")
}

var idPattern = regexp.MustCompile(`"meta":\{"id":"([^"]+)"`)

// messageID reads a body's meta.id.
func messageID(t testing.TB, body string) string {
	t.Helper()
	match := idPattern.FindStringSubmatch(body)
	if match == nil {
		t.Fatalf("no id in %q", body)
	}
	return match[1]
}
