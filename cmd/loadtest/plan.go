package main

import (
	"fmt"
	"strings"
)

// holding is how many workers there are and how many messages they hold. Whether both go together does not depend
// on anything else.
type holding struct {
	Concurrency int `json:"concurrency"`
	Prefetch    int `json:"prefetch"`
}

// String names the holding.
func (h holding) String() string {
	return fmt.Sprintf("concurrency %s with prefetch %s", count(int64(h.Concurrency)), count(int64(h.Prefetch)))
}

// joined is a list of holdings for people.
func joined(list []holding) string {
	texts := make([]string, len(list))
	for i, h := range list {
		texts[i] = h.String()
	}
	return strings.Join(texts, ", ")
}

// combination is a setting that a sweep compares with others.
type combination struct {
	holding
	Batch int `json:"batch"` // 0 = the pool's default, which is no single number
}

// String names the combination.
func (c combination) String() string {
	if c.Batch == 0 {
		return c.holding.String() + " and the default batch"
	}
	return c.holding.String() + " and batch " + count(int64(c.Batch))
}

// batchText is a batch as it stands in a column.
func batchText(batch int) string {
	if batch == 0 {
		return "default"
	}
	return count(int64(batch))
}

// sweepPlan is what a sweep measures.
type sweepPlan struct {
	concurrency, prefetch, batch []int // as given
	runs                         int   // of each combination
	combinations                 []combination
	skipped                      []holding // some workers would never have work
}

// newSweepPlan makes all combinations, in the order given. A prefetch of 0 stands for the default, which may be
// in the list as a number too; then it is measured once.
func newSweepPlan(concurrency, prefetch, batch intList, runs int) *sweepPlan {
	p := &sweepPlan{concurrency: concurrency, prefetch: prefetch, batch: batch, runs: runs}
	seen := map[holding]bool{}
	for _, workers := range concurrency {
		for _, held := range prefetch {
			if held == 0 {
				held = defaultPrefetch(workers)
			}
			h := holding{workers, held}
			switch {
			case seen[h]:
			case held < workers:
				p.skipped = append(p.skipped, h)
			default:
				for _, n := range batch {
					p.combinations = append(p.combinations, combination{h, n})
				}
			}
			seen[h] = true
		}
	}
	return p
}
