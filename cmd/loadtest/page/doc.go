// Package page writes the result of a load test as one HTML page: facts, throughput over time, latency by percentile,
// and the sweep of settings as heat maps, each chart with its numbers in a table beneath.
//
// In flow a Page; out flow HTML, complete in itself. The page asks no network for anything, and its own policy forbids
// it; it holds no scripts, follows the reader's light or dark scheme, and has every chart twice, for wide and for
// narrow screens. Every text is escaped, wherever it comes from. The package measures nothing and opens no file.
package page
