package main

import (
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// tampered runs a slow test and lets meddle change a message behind its back.
func tampered(t *testing.T, b backend, flags string, meddle func(ready string)) outcome {
	t.Helper()
	var o outcome
	var g errgroup.Group
	g.Go(func() error {
		o = runCommand(t.Context(), t, "-messages 100 -concurrency 1 -prefetch 1 -handler-time 2ms "+flags+" -redis "+b.url)
		return nil
	})
	meddle(b.readyKey(t, 20))
	_ = g.Wait() // never fails
	return o
}

// TestALostMessageIsFound is the proof that the proof works.
func TestALostMessageIsFound(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"legacy", "zset"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			alone(t, func(t *testing.T, b backend) {
				o := tampered(t, b, "-layout "+layout, func(ready string) {
					if err := b.client.RPop(t.Context(), ready).Err(); err != nil {
						t.Error(err)
					}
				})
				r := o.report
				if o.code != exitFailed || r.Reconciled || r.Published != 100 || r.Acked != 99 || r.Lost != 1 {
					t.Errorf("code %d\n%s", o.code, o.stdout)
				}
				if !strings.Contains(o.stderr, "DO NOT BALANCE: 1 published and in no place.") {
					t.Errorf("the table does not say what is wrong:\n%s", o.stderr)
				}
			})
		})
	}
}

func TestStrangersAndCopiesAreFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key  func(ready string) string
		body func(b backend, ready string) string
		want string
	}{
		"poison": {
			func(ready string) string { return ready }, func(backend, string) string { return "garbage" },
			"1 values in the keys that this run did not publish",
		},
		"a message of another run": {
			func(ready string) string { return ready },
			func(b backend, ready string) string {
				return strings.ReplaceAll(b.client.LIndex(t.Context(), ready, 0).Val(), strings.TrimPrefix(ready, queuePrefix), "eeeeeeee")
			},
			"1 values in the keys that this run did not publish",
		},
		"two copies of a message": {
			func(ready string) string { return ready + ".dlq" },
			func(b backend, ready string) string {
				body := b.client.LIndex(t.Context(), ready, -1).Val()
				b.client.RPush(t.Context(), ready+".dlq", body)
				return body
			},
			"1 in the keys more than once",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone(t, func(t *testing.T, b backend) {
				o := tampered(t, b, "", func(ready string) {
					if err := b.client.RPush(t.Context(), tt.key(ready), tt.body(b, ready)).Err(); err != nil {
						t.Error(err)
					}
				})
				if o.code != exitFailed || o.report.Reconciled || !strings.Contains(o.stderr, tt.want) {
					t.Errorf("code %d, want %q in\n%s", o.code, tt.want, o.stderr)
				}
			})
		})
	}
}
