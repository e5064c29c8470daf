package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/envelope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wrapped is a handler's error around another.
func wrapped(err error) error { return fmt.Errorf("handling: %w", err) }

func TestVerdicts(t *testing.T) {
	t.Parallel()
	cause := &json.SyntaxError{Offset: 7}
	for _, tc := range []struct {
		name   string
		err    error
		text   string
		retry  bool
		delay  time.Duration
		final  bool
		reason error // nil = the error itself
	}{
		{name: "plain", err: io.EOF, text: "EOF"},
		{
			name: "retry", err: RetryAfter(3*time.Second, io.EOF), text: "retry after 3s: EOF",
			retry: true, delay: 3 * time.Second, reason: io.EOF,
		},
		{name: "retry without a reason", err: RetryAfter(0, nil), text: "retry after 0s", retry: true},
		{name: "retry below zero", err: RetryAfter(-time.Second, nil), text: "retry after -1s", retry: true, delay: -time.Second},
		{name: "dead letter", err: DeadLetter(io.EOF), text: "dead-letter: EOF", final: true, reason: io.EOF},
		{name: "dead letter without a reason", err: DeadLetter(nil), text: "dead-letter", final: true},
		{
			name: "wrapped retry", err: wrapped(RetryAfter(time.Minute, io.EOF)), text: "handling: retry after 1m0s: EOF",
			retry: true, delay: time.Minute, reason: io.EOF,
		},
		{name: "wrapped dead letter", err: wrapped(DeadLetter(cause)), text: "handling: dead-letter: ", final: true, reason: cause},
		{
			name: "both, the dead letter outside", err: DeadLetter(RetryAfter(time.Second, io.EOF)),
			text: "dead-letter: retry after 1s: EOF", retry: true, delay: time.Second, final: true,
		},
		{
			name: "both, the dead letter inside", err: RetryAfter(time.Second, DeadLetter(io.EOF)),
			text: "retry after 1s: dead-letter: EOF", retry: true, delay: time.Second, final: true, reason: io.EOF,
		},
		{name: "joined", err: errors.Join(io.ErrNoProgress, DeadLetter(io.EOF)), text: io.ErrNoProgress.Error(), final: true, reason: io.EOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if !strings.HasPrefix(tc.err.Error(), tc.text) {
				t.Errorf("says %q, want %q", tc.err, tc.text)
			}
			var retry *RetryError
			if errors.As(tc.err, &retry) != tc.retry || tc.retry && retry.Delay != tc.delay {
				t.Errorf("retry verdict %+v, want %t, %s", retry, tc.retry, tc.delay)
			}
			var final *DeadLetterError
			if errors.As(tc.err, &final) != tc.final {
				t.Errorf("dead letter verdict %+v, want %t", final, tc.final)
			}
			if tc.reason != nil && !errors.Is(tc.err, tc.reason) {
				t.Error("the handler's own error is not in the chain")
			}
			want := tc.reason
			if want == nil {
				want = tc.err
			}
			if tc.name == "both, the dead letter outside" { // the reason is the verdict inside
				want = final.Err
			}
			if got := Reason(tc.err); got != want { //nolint:errorlint // the very error is meant
				t.Errorf("reason %v, want %v", got, want)
			}
		})
	}
}

// TestReasonKeepsTheType lets a dead letter name the type of the handler's error, not of the verdict (D2).
func TestReasonKeepsTheType(t *testing.T) {
	t.Parallel()
	var syntax *json.SyntaxError
	if err := Reason(wrapped(DeadLetter(&json.SyntaxError{Offset: 7}))); !errors.As(err, &syntax) || syntax.Offset != 7 {
		t.Errorf("reason %T", err)
	}
	if got := fmt.Sprintf("%T", Reason(DeadLetter(&json.SyntaxError{}))); got != "*json.SyntaxError" {
		t.Errorf("reason of type %s", got)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	d := Delivery{Envelope: envelope.Envelope{Data: `{"id":9007199254740993}`}}
	var v struct{ ID int64 }
	if err := d.Bind(&v); err != nil || v.ID != 9007199254740993 { // E6
		t.Errorf("bound %d: %v", v.ID, err)
	}
	if err := d.Bind(&struct{ ID string }{}); err == nil {
		t.Error("a number bound to a string")
	}
}

func TestHandlerFunc(t *testing.T) {
	t.Parallel()
	type key struct{}
	d, ctx := &Delivery{Queue: "orders"}, context.WithValue(t.Context(), key{}, 1)
	var h Handler = HandlerFunc(func(got context.Context, same *Delivery) error {
		if same != d || got.Value(key{}) != 1 {
			t.Error("another delivery or context")
		}
		return io.EOF
	})
	if err := h.Handle(ctx, d); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
