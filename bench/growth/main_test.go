package main

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestTables(t *testing.T) {
	t.Parallel()
	const in = `
# date: whenever
goos: linux
BenchmarkGrowth/idle/zset/8-2     	 200	 5 ns/op	 20.0 redis-µs/msg
BenchmarkGrowth/idle/zset/0-2     	 200	 10 ns/op	 0 redis-µs/msg
BenchmarkLatency/legacy-2 	 600	 534.04 p50-µs
PASS
BenchmarkGrowth/idle/zset/8-2     	 200	 6 ns/op	 22.0 redis-µs/msg
BenchmarkGrowth/idle/zset/0-2     	 200	 12 ns/op	 0 redis-µs/msg	 1234567 msg/s
BenchmarkGrowth/idle/zset/8-2     	 200	 100 ns/op	 21.0 redis-µs/msg
BenchmarkGrowth/body/zset/300     	 200	 3 ns/op log: something
ok  	example	1s
`
	const want = `
Growth/idle/zset
        ns/op  redis-µs/msg    msg/s
  0        11             0  1234567
  8  6 (0.55)            21        -

Latency/legacy
    p50-µs
       534

Growth/body/zset
       ns/op
  300      3
`
	var out strings.Builder
	if err := run(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadErrorIsReported(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if err := run(iotest.ErrReader(broken), &strings.Builder{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
