package main

import (
	"testing"
	"time"

	"github.com/babelpool/babelpool/envelope"
)

func newTestMint(t *testing.T, payload int) *mint {
	t.Helper()
	m, err := newMint("0123abcd", queuePrefix+"0123abcd", payload)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encoded(t *testing.T, m *mint, seq int64) string {
	t.Helper()
	msg := m.message(seq, time.Now().UnixNano())
	e, err := envelope.New(msg.URN, queuePrefix+m.runID, msg.Data)
	if err != nil {
		t.Fatal(err)
	}
	return e.Encode()
}

func TestEnvelopesHaveTheSizeAskedFor(t *testing.T) {
	t.Parallel()
	for _, payload := range []int{300, 301, 1000, 100_000} {
		m := newTestMint(t, payload)
		for _, seq := range []int64{0, 9, 10, 19_999, 9_999_999} {
			if size := len(encoded(t, m, seq)); size != payload {
				t.Errorf("message %d has %d bytes, want %d", seq, size, payload)
			}
		}
	}
}

func TestAnEnvelopeIsNeverSmallerThanItsContent(t *testing.T) {
	t.Parallel()
	m := newTestMint(t, 1)
	if size := len(encoded(t, m, 12345)); size != m.smallest+5 {
		t.Errorf("%d bytes, want %d", size, m.smallest+5)
	}
}

func TestReadFindsTheNumberInEveryForm(t *testing.T) {
	t.Parallel()
	m := newTestMint(t, 400)
	body := encoded(t, m, 42)
	raised, _, err := envelope.RaiseAttempts(body)
	if err != nil {
		t.Fatal(err)
	}
	other := newTestMint(t, 300)
	other.runID, other.head = "other", `{"run":"other","seq":`
	for name, tt := range map[string]struct {
		value string
		want  int64
	}{
		"body":               {body, 42},
		"reserved member":    {raised, 42},
		"frame":              {envelope.EncodeFrame(body, map[string]string{"traceparent": "x"}), 42},
		"dead letter":        {envelope.DeadLetterRecord(body, envelope.DeadLetter{Reason: "failed"}), 42},
		"another run's":      {encoded(t, other, 42), -1},
		"no JSON":            {"garbage", -1},
		"other data":         {`{"job":"j","trace_id":"t","data":{"seq":"x"},"meta":{"schema_version":1}}`, -1},
		"no data of a stamp": {`{"job":"j","trace_id":"t","data":{},"meta":{"schema_version":1}}`, -1},
	} {
		if got := m.read(tt.value); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
