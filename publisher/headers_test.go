package publisher_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

// TestHeadersLegacy covers F1: what is stored is what the vectors say of the same body.
func TestHeadersLegacy(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		at := newTarget(publisher.Legacy, b.Client, b.Prefix)
		p := at.open(t)
		var want []string
		for _, c := range loadVectors(t).Frame {
			e, err := envelope.Decode(c.Body)
			if err != nil {
				t.Fatal(err)
			}
			same := func(made *envelope.Envelope) { *made = e }
			if got, err := p.PublishWithHeaders(t.Context(), c.Headers, urn, nil, same); err != nil || got != e.Meta.ID {
				t.Fatal(got, err)
			}
			want = append(want, c.Stored)
		}
		at.stored(t, want...)
	})
}

// TestHeadersZset covers F4: the bare envelope, and one line in the log.
func TestHeadersZset(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		at := newTarget(publisher.Zset, b.Client, b.Prefix)
		var log bytes.Buffer
		at.Logger = slog.New(slog.NewTextHandler(&log, nil))
		p := at.open(t)
		publish := func(headers map[string]string) {
			t.Helper()
			if _, err := p.PublishWithHeaders(t.Context(), headers, urn, nil, fixed()...); err != nil {
				t.Fatal(err)
			}
		}
		publish(nil)
		publish(map[string]string{" ": "x", "k": "\t"})
		if log.Len() > 0 {
			t.Errorf("no header was lost, but the log says %q", &log)
		}
		for range 3 {
			publish(map[string]string{"traceparent": "secret"})
		}
		message := publisher.Message{URN: urn, ID: id, TraceID: trace, Headers: map[string]string{"a": "b"}}
		if _, err := p.PublishBatch(t.Context(), []publisher.Message{message}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "queue=orders") {
			t.Errorf("the log has %d lines:\n%s", n, &log)
		}
		if strings.Contains(log.String(), "secret") {
			t.Errorf("a header's value is in the log: %s", &log)
		}
		at.count(t, 6)
		for _, text := range b.Client.LRange(t.Context(), at.key(), 0, 4).Val() {
			if text != body("orders", `{}`) {
				t.Errorf("stored %q", text)
			}
		}
		if last := b.Client.LIndex(t.Context(), at.key(), -1).Val(); strings.Contains(last, "__bq_frame") {
			t.Errorf("stored %q", last)
		}
	})
}
