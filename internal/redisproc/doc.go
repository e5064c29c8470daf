// Package redisproc runs a private redis-server for the load test, the benchmarks and the tests.
//
// It owns one child process per [Server], from the search on PATH to the removal of its temporary
// directory. In flows a [Config]; out flows an address. The server listens on loopback alone, reads
// no configuration file, and writes nothing to disk unless [Config.AppendOnly] asks for it.
//
// Several servers together are a [Cluster], whose slots move and whose replicas take over, or
// [Sentinels], which elect another master; their nodes write down who they are, and sentinels have a
// configuration file.
//
// A server never outlives its parent where the operating system can promise that. On Linux the
// kernel kills it when the parent dies, even by SIGKILL (the temporary directory then stays behind).
// On other systems an orderly end needs [Server.Stop]; there the child shares the parent's process
// group, so that an interrupt from the terminal reaches both.
//
// The package never imports testing, never touches a server it did not start (see [Attach]), and
// ends processes by their id only.
package redisproc
