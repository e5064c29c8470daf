package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
)

func handlerTimeOf(t *testing.T, text string) handlerTime {
	t.Helper()
	var h handlerTime
	if err := h.Set(text); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestConstantHandlerTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"20ms", "constant:20ms"} {
		h := handlerTimeOf(t, text)
		for seq := range int64(100) {
			if d := h.of(seq); d != 20*time.Millisecond {
				t.Fatalf("%s: message %d takes %s", text, seq, d)
			}
		}
		if h.longest() != 20*time.Millisecond || h.String() != text {
			t.Errorf("%s: longest %s, reported as %s", text, h.longest(), &h)
		}
	}
	var none handlerTime
	if none.of(1) != 0 || none.longest() != 0 || none.String() != "0s" {
		t.Errorf("the zero value is %s", &none)
	}
}

func TestExponentialHandlerTime(t *testing.T) {
	t.Parallel()
	const messages, mean = 200_000, 20 * time.Millisecond
	h := handlerTimeOf(t, "exponential:20ms")
	var total, squares float64
	below := 0
	for seq := range int64(messages) {
		d := h.of(seq)
		if d < 0 || d > h.longest() || d != h.of(seq) {
			t.Fatalf("message %d takes %s, then %s; the most is %s", seq, d, h.of(seq), h.longest())
		}
		total += float64(d)
		squares += float64(d) * float64(d)
		if d < mean {
			below++
		}
	}
	got := total / messages
	deviation := math.Sqrt(squares/messages - got*got)
	// 1 - 1/e of an exponential distribution lies below its mean, which is its standard deviation too.
	for what, ratio := range map[string]float64{
		"mean": got / float64(mean), "deviation": deviation / float64(mean), "share below the mean": float64(below) / messages / (1 - 1/math.E),
	} {
		if ratio < 0.98 || ratio > 1.02 {
			t.Errorf("%s is %.3f times what it should be", what, ratio)
		}
	}
	if h.longest() != mostOverMean*mean {
		t.Errorf("the most is %s", h.longest())
	}
}

func TestAHugeMeanDoesNotOverflow(t *testing.T) {
	t.Parallel()
	h := handlerTimeOf(t, "exponential:2500000h")
	for seq := range int64(1000) {
		if d := h.of(seq); d < 0 || d > h.longest() {
			t.Fatalf("message %d takes %s", seq, d)
		}
	}
	if h.longest() <= 0 || 2*h.longest() <= 0 {
		t.Errorf("the most is %s", h.longest())
	}
}

func TestTheCapHolds(t *testing.T) {
	t.Parallel()
	h := handlerTime{mean: time.Second, exponential: true}
	// No sequence number of a short test is an outlier of 1 in 500 million, so the bound is asked itself.
	if d := h.at(math.Nextafter(1, 0)); d != mostOverMean*time.Second {
		t.Errorf("the rarest message takes %s", d)
	}
}

// The sleep of a handler ends with its context.
func TestAHandlerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &worker{
			cfg: config{handlerTime: handlerTimeOf(t, "1h")}, runID: "0123abcd", clock: newClock(), books: newBooks(),
			latencies: newLatencies(),
		}
		if err := k.books.open(1); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(stamp{Run: k.runID, At: k.clock.stamp(0)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = k.handle(ctx, &delivery.Delivery{Envelope: envelope.Envelope{Data: string(data)}})
		if !errors.Is(err, context.DeadlineExceeded) || k.clock.now() != time.Minute {
			t.Errorf("%v after %s", err, k.clock.now())
		}
		if e := k.books.entry(0); e.starts.Load() != 1 || e.successes.Load() != 0 {
			t.Error("a handler that was cut off passes for a success")
		}
	})
}
