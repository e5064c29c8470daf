//go:build serial && !race

package faulttest

import (
	"testing"
	"time"

	"github.com/babelpool/babelpool/pool"
)

// alone is how soon a pool must consume again: the limit of the case.
const alone = 2 * time.Second

// TestSerialFailover is TestFailover with the limit of the case.
func TestSerialFailover(t *testing.T) {
	for name, ground := range grounds {
		t.Run(name, func(t *testing.T) { failOver(t, ground(t, pool.Legacy), alone) })
	}
}

// TestSerialSlotMigration is TestSlotMigration with the limit of the case.
func TestSerialSlotMigration(t *testing.T) { moveSlots(t, pool.Zset, alone) }
