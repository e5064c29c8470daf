package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// mostOverMean bounds an exponential handler time. One message in 500 million would take longer.
const mostOverMean = 20

// handlerTime is how long handlers take, a flag.Value. The zero value is no time at all.
type handlerTime struct {
	text        string // as it was given
	mean        time.Duration
	exponential bool
}

// String is the value as it was given.
func (h *handlerTime) String() string {
	if h.text == "" {
		return "0s"
	}
	return h.text
}

// Set takes a duration with or without the distribution before it.
func (h *handlerTime) Set(text string) error {
	kind, number, named := strings.Cut(text, ":")
	if !named {
		kind, number = "constant", text
	}
	if kind != "constant" && kind != "exponential" {
		return fmt.Errorf("%q is no distribution: want constant:20ms, or 20ms for short, or exponential:20ms", kind)
	}
	mean, err := time.ParseDuration(number)
	if err != nil {
		return errDuration
	}
	if mean < 0 {
		return errors.New("a handler cannot take less than no time")
	}
	*h = handlerTime{text: text, mean: mean, exponential: kind == "exponential"}
	return nil
}

// of is how long the handler of a message takes, in each of its runs. It depends on nothing but the message,
// so that a run can be repeated and so that all processes agree.
func (h *handlerTime) of(seq int64) time.Duration {
	if !h.exponential {
		return h.mean
	}
	return h.at(uniform(seq, 0)) // handler runs count from 1, so 0 is free
}

// at is the time that a share u of all messages does not exceed.
func (h *handlerTime) at(u float64) time.Duration {
	d := -math.Log1p(-u) * float64(h.mean)
	return min(time.Duration(min(d, math.MaxInt64/2)), h.longest())
}

// longest is the most a handler can take.
func (h *handlerTime) longest() time.Duration {
	if !h.exponential {
		return h.mean
	}
	return time.Duration(min(mostOverMean*float64(h.mean), math.MaxInt64/4))
}
