package bench

import (
	"errors"
	"fmt"
	"testing"
)

// What a message may cost. None of these depends on how fast the machine is: two are counts, the third compares
// two consumers on one server. They leave about a third of room above what was measured when they were set.
const (
	mostCommands = 0.11 // of the server, those that scripts call included
	mostAllocs   = 12
	mostCeilings = 1.35 // times the server's CPU for the scripts alone
)

var (
	errCommands = errors.New("bench: too many commands for each message")
	errAllocs   = errors.New("bench: too many allocations for each message")
	errCPU      = errors.New("bench: too much CPU of the server for each message")
)

// cost is what one message took.
type cost struct {
	commands float64 // run by the server
	allocs   float64 // in this process
	ceilings float64 // CPU of the server, in units of what the scripts alone take
}

// check joins an error for each bound that is passed.
func (c cost) check() error {
	var problems []error
	for _, one := range []struct {
		err         error
		value, most float64
	}{{errCommands, c.commands, mostCommands}, {errAllocs, c.allocs, mostAllocs}, {errCPU, c.ceilings, mostCeilings}} {
		if !(one.value <= one.most) { // so that no number does not pass
			problems = append(problems, fmt.Errorf("%w: %.3f, the bound is %.3f", one.err, one.value, one.most))
		}
	}
	return errors.Join(problems...)
}

func TestCostIsCheckedAgainstEachBound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cost cost
		want error
	}{
		"at the bounds": {cost{mostCommands, mostAllocs, mostCeilings}, nil},
		"commands":      {cost{mostCommands * 1.01, mostAllocs, mostCeilings}, errCommands},
		"allocations":   {cost{mostCommands, mostAllocs * 1.01, mostCeilings}, errAllocs},
		"CPU":           {cost{mostCommands, mostAllocs, mostCeilings * 1.01}, errCPU},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.cost.check()
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			for _, other := range []error{errCommands, errAllocs, errCPU} {
				if !errors.Is(tc.want, other) && errors.Is(err, other) {
					t.Errorf("got %v as well", other)
				}
			}
		})
	}
}
