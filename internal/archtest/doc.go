// Package archtest holds the rules that the compiler does not: which package may import which, that
// no goroutine starts without an owner, and that no file grows past reading.
//
// The rules stand in rules.go, as tables. [Check] reads the source of the whole module, every
// operating system's files included, and returns what breaks them; the package's test runs it on
// this module. A package that does not exist yet is no problem, one that no row names is.
//
// It reads source text only: it builds nothing, and it knows nothing of what the code does.
package archtest
