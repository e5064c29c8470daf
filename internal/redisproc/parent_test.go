package redisproc_test

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/babelpool/babelpool/internal/redisproc"
)

// envParent makes this test binary play the parent that gets killed.
const envParent = "REDISPROC_TEST_PARENT"

// parentMain is the whole program of that parent: it starts a server, says where, and waits for its
// end. It returns false in an ordinary test run.
func parentMain() bool {
	if os.Getenv(envParent) == "" {
		return false
	}
	s, err := redisproc.Start(context.Background(), redisproc.Config{Dir: os.Getenv(envParent)})
	if err != nil {
		fmt.Println("error:", err)
		return true
	}
	fmt.Println(s.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until killed, or until the test is gone
	_ = s.Stop()
	return true
}
