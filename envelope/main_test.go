package envelope

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A check takes microseconds here; the default of 100 would leave corners of
	// the generators unvisited. The command line still decides.
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// canonical is the envelope of the contract's examples.
const canonical = `{"job":"urn:babel:orders:created","trace_id":"7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b",` +
	`"data":{"order_id":1042},"meta":{"id":"f1e2d3c4-b5a6-4789-90ab-cdef01234567","queue":"orders",` +
	`"lang":"go","schema_version":1,"created_at":1749132727000},"attempts":0}`

// body builds an envelope text around the part under test: top replaces
// everything but trace_id, data and meta, which stay acceptable.
func body(top string) string {
	return `{"trace_id":"t","data":{},"meta":{"schema_version":1},` + top + `}`
}

// vectors is the part of the project's test data that concerns this package.
type vectors struct {
	AttemptsEdit []struct {
		Name, Ready, Reserved string
		Poison                bool
	} `json:"attempts_edit"`
	Accept []struct {
		Rule, Name, Body string
		OK               bool
		URN              string
		Attempts         int64
	}
	Frame []struct {
		Body, Stored string
		Headers      map[string]string
	}
	Unframe []struct {
		Stored, Body string
		Headers      map[string]string
		Bare         bool
	}
	DeadLetter []struct {
		Body, Reason, Record string
		Error, Exception     *string
		FailedAt             int64  `json:"failed_at"`
		OriginalQueue        string `json:"original_queue"`
		Attempts             int64
	} `json:"dead_letter"`
	RequeueEdit []struct{ Stored, Requeued string } `json:"requeue_edit"`
}

// loadVectors reads the vectors file; without it the test fails, since a
// skipped rule looks like a kept one.
func loadVectors(tb testing.TB) vectors {
	tb.Helper()
	text, err := os.ReadFile("../testdata/redis.json")
	if err != nil {
		tb.Fatalf("the project's vectors are missing: %v", err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		tb.Fatalf("vectors: %v", err)
	}
	return v
}
