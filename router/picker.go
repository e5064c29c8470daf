package router

import (
	"reflect"

	"github.com/babelpool/babelpool/internal/flow"
)

// picker takes reservations from the queues' channels by weight. Each worker has its own.
type picker struct {
	ins   []<-chan *flow.Reservation
	turns []int // queue of each turn; a queue has as many turns as its weight, spread evenly
	at    int
	open  int
}

func newPicker(queues []Queue, worker int) *picker {
	p := &picker{ins: make([]<-chan *flow.Reservation, len(queues)), open: len(queues)}
	weights := make([]int, len(queues))
	for i, q := range queues {
		p.ins[i], weights[i] = q.In, q.Weight
	}
	p.turns = spread(weights)
	p.at = worker % len(p.turns) // workers start at different turns
	return p
}

// spread lays out one round of turns: at each turn the queue that is furthest behind its weight goes.
func spread(weights []int) []int {
	total := 0
	for _, w := range weights {
		total += w
	}
	credit, turns := make([]int, len(weights)), make([]int, 0, total)
	for range total {
		best := 0
		for i, w := range weights {
			credit[i] += w
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= total
		turns = append(turns, best)
	}
	return turns
}

// next blocks for the next reservation; it is false when every channel is closed and empty.
func (p *picker) next() (*flow.Reservation, bool) {
	if len(p.ins) == 1 {
		r, ok := <-p.ins[0]
		return r, ok
	}
	for p.open > 0 {
		for range p.turns {
			q := p.turns[p.at]
			p.at++
			if p.at == len(p.turns) {
				p.at = 0
			}
			select {
			case r, ok := <-p.ins[q]:
				if ok {
					return r, true
				}
				p.close(q)
			default:
			}
		}
		if p.open == 0 {
			break
		}
		if r, ok := p.wait(); ok {
			return r, true
		}
	}
	return nil, false
}

// wait blocks until any channel has something. It is false when that was a channel's end.
func (p *picker) wait() (*flow.Reservation, bool) {
	cases := make([]reflect.SelectCase, len(p.ins))
	for i, in := range p.ins {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(in)}
	}
	q, value, ok := reflect.Select(cases)
	if !ok {
		p.close(q)
		return nil, false
	}
	r, _ := value.Interface().(*flow.Reservation)
	return r, true
}

// close marks a channel as ended: a nil channel is never ready.
func (p *picker) close(q int) {
	if p.ins[q] != nil {
		p.ins[q] = nil
		p.open--
	}
}
