package testredis

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakGrace is how long goroutines may take to notice that their owner is closed. go-redis needs a
// second: after failed dials, as in tests where a server is away, its pool probes the address in the
// background and looks at whether it was closed only between one-second naps.
const leakGrace = 3 * time.Second

// Main is the body of a package's TestMain: it runs the tests, stops the shared server, and fails
// the run when goroutines are left. Nothing is exempt from the leak check.
//
//	func TestMain(m *testing.M) { testredis.Main(m) }
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m interface{ Run() int }) int {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintf(os.Stderr, "stopping the shared server: %v\n", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code // a failed test may well have left something; its own message matters more
	}
	if err := leaks(leakGrace); err != nil {
		fmt.Fprintf(os.Stderr, "goroutines left after the tests: %v\n", err)
		return 1
	}
	return 0
}

// leaks looks for goroutines that should be gone, patiently: goleak's own patience is under half a
// second and cannot be set.
func leaks(within time.Duration) error {
	for deadline := time.Now().Add(within); ; {
		err := goleak.Find()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
