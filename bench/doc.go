// Package bench measures each stage of the path of a message, and the whole. It has no code of its own but
// benchmarks and the guard:
//
//	go test -run '^$' -bench . ./bench
//
// BenchmarkGrowth consumes while one thing is small and large, such as the backlog or the number of queues;
// growth.sh makes tables of it. The guard, TestSerialCostGuard, is built with the tag serial and fails when a message
// becomes markedly more expensive in counts and ratios that do not depend on the machine.
//
// Every benchmark starts its own redis-server and skips where there is none. One operation is one message.
// Beside ns/op they report msg/s, redis-µs/msg (CPU time of the server), client-µs/msg and aof-B/msg.
//
// Two yardsticks run beside the end-to-end benchmark. The ceiling is the project's own reserve and settle
// scripts and nothing else; the floor is plain list moves without any of the contract: what Redis can move.
package bench
