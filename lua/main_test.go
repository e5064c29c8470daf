package lua

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// vectors are the project's cases for the Redis binding that concern the stores.
type vectors struct {
	Keys []struct {
		Rule, Layout, Queue, Prefix string
		Keys                        map[string]string
	}
	RefusedQueueNames []string `json:"refused_queue_names"`
	DelayedScore      []struct {
		Now          float64
		DelaySeconds float64 `json:"delay_seconds"`
		Score        float64
	} `json:"delayed_score"`
	AttemptsEdit []struct {
		Name, Ready, Reserved string
		Poison                bool
	} `json:"attempts_edit"`
	DeadLetterKey []struct {
		Layout, Queue, Override, Key string
		Notify                       *string
	} `json:"dead_letter_key"`
}

// loadVectors reads the vectors file; without it the test fails, since a skipped rule looks like a kept one.
func loadVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("../testdata/redis.json")
	if err != nil {
		t.Fatalf("the project's vectors are missing: %v", err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("vectors: %v", err)
	}
	return v
}
