package idempotency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/idempotency"
	"github.com/babelpool/babelpool/internal/testredis"
)

// conformance is the block of the public conformance data that this package is about.
type conformance struct {
	Idempotency struct {
		DedupKey struct {
			File string `json:"envelope_file"`
			Key  string `json:"expected_key"`
		} `json:"dedup_key"`
		Sequences struct{ Cases []sequence }
	}
}

type sequence struct {
	Name       string
	Deliveries []struct {
		ID      string `json:"meta_id"`
		Forget  bool   `json:"forget_before"`
		Effect  string `json:"expect_effect"`
		Outcome string
	}
	Effects int `json:"expected_effects"` // counts every run
}

// conformanceFile reads a file of the public data.
func conformanceFile(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("BQ_CONFORMANCE_DIR")
	if dir == "" {
		testredis.Missing(t, "BQ_CONFORMANCE_DIR does not name the directory of the public conformance data")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// stores runs a test body with each store of this package.
func stores(t *testing.T, f func(t *testing.T, s idempotency.Store, c idempotency.Claims)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		f(t, idempotency.NewMemory(idempotency.MemoryConfig{}), nil)
	})
	for _, claims := range []bool{false, true} {
		t.Run(fmt.Sprintf("claims %t", claims), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				r := redisStore(t, idempotency.RedisConfig{Client: b.Client, KeyPrefix: b.Prefix})
				if claims {
					f(t, r, r)
					return
				}
				f(t, r, nil)
			})
		})
	}
}

func TestConformanceSequences(t *testing.T) {
	t.Parallel()
	var c conformance
	if err := json.Unmarshal(conformanceFile(t, "manifest.json"), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Idempotency.Sequences.Cases) < 6 {
		t.Fatalf("only %d sequences", len(c.Idempotency.Sequences.Cases))
	}
	for _, seq := range c.Idempotency.Sequences.Cases {
		t.Run(seq.Name, func(t *testing.T) {
			t.Parallel()
			stores(t, seq.replay)
		})
	}
}

func (seq sequence) replay(t *testing.T, s idempotency.Store, claims idempotency.Claims) {
	runs, outcome := 0, ""
	h, _ := wrap(idempotency.Config{Store: s, Claims: claims}, func(context.Context, *delivery.Delivery) error {
		if runs++; outcome == "throw" {
			return errBoom
		}
		return nil
	})
	for i, d := range seq.Deliveries {
		if d.Forget {
			if err := s.Forget(t.Context(), d.ID); err != nil {
				t.Fatal(err)
			}
		}
		before := runs
		outcome = d.Outcome
		err := h.Handle(t.Context(), message(d.ID))
		if ran := runs > before; ran != (d.Effect == "run") || (err != nil) != (d.Outcome == "throw") {
			t.Errorf("delivery %d: ran %t, %v, want %s and %s", i, ran, err, d.Effect, d.Outcome)
		}
	}
	if runs != seq.Effects {
		t.Errorf("%d effects, want %d", runs, seq.Effects)
	}
}

// The key of a real message is its meta.id, byte for byte.
func TestConformanceKey(t *testing.T) {
	t.Parallel()
	var c conformance
	if err := json.Unmarshal(conformanceFile(t, "manifest.json"), &c); err != nil {
		t.Fatal(err)
	}
	e, err := envelope.Decode(string(conformanceFile(t, c.Idempotency.DedupKey.File)))
	if err != nil {
		t.Fatal(err)
	}
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		r := redisStore(t, idempotency.RedisConfig{Client: b.Client, KeyPrefix: b.Prefix})
		h, _ := wrap(idempotency.Config{Store: r}, func(context.Context, *delivery.Delivery) error { return nil })
		if err := h.Handle(t.Context(), &delivery.Delivery{Envelope: e}); err != nil {
			t.Fatal(err)
		}
		if got := b.Client.Get(t.Context(), b.Prefix+"bq:idemp:"+c.Idempotency.DedupKey.Key).Val(); got != "1" {
			t.Errorf("the key holds %q", got)
		}
	})
}
