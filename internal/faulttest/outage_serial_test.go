//go:build serial && !race

package faulttest

import (
	"testing"
	"time"
)

// TestSerialB15ConsumesAgainWithinTwoSeconds is TestB15ConsumesAgainAfterAnOutage with the limit of the case.
func TestSerialB15ConsumesAgainWithinTwoSeconds(t *testing.T) {
	for _, o := range outages() {
		for _, layout := range layouts {
			t.Run(o.name+"/"+layout.String(), func(t *testing.T) { surviveOutage(t, layout, o, 2*time.Second) })
		}
	}
}
