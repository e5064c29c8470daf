package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// core is what every program with a pool or a publisher links, and what it may bring with it. Each new name here is
// somebody else's code in every such program.
var (
	core        = []string{"pool", "publisher", "router", "reserver", "acker", "scheduler", "lua", "delivery", "envelope", "health", "idempotency"}
	coreModules = []string{
		module, "github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "go.uber.org/atomic", // the client and its own
		"github.com/cenkalti/backoff/v4", "github.com/sourcegraph/conc", "golang.org/x/sync", "golang.org/x/sys",
	}
)

// TestTheCoreLinksNothingMore follows the import graph as the compiler does: optional parts bring their dependencies only
// where they are imported.
func TestTheCoreLinksNothingMore(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		packages []string
		allowed  []string
		optional string // a module that these packages do bring, which shows that the test can see one
	}{
		{core, coreModules, ""},
		{[]string{"metrics"}, nil, "github.com/prometheus/client_golang"},
		{[]string{"tracing"}, nil, "go.opentelemetry.io/otel/trace"},
	} {
		args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
		for _, p := range tc.packages {
			args = append(args, "./"+p)
		}
		list := exec.CommandContext(t.Context(), "go", args...)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		linked := slices.Compact(slices.Sorted(strings.FieldsSeq(string(out))))
		if tc.optional != "" && !slices.Contains(linked, tc.optional) {
			t.Errorf("%s links no %s", tc.packages, tc.optional)
		}
		for _, m := range linked {
			if tc.allowed != nil && !slices.Contains(tc.allowed, m) {
				t.Errorf("the core links %s", m)
			}
		}
	}
}
