package router

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// inSeconds is the duration nearest to a number of seconds.
func inSeconds(d float64) time.Duration { return time.Duration(math.Round(d * float64(time.Second))) }

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectorsBackoff(t *testing.T) { // Z6
	t.Parallel()
	for _, tc := range vectors(t, "backoff") {
		t.Run(fmt.Sprintf("%g x %g to %g, k %d", tc.Base, tc.Multiplier, tc.Max, tc.K), func(t *testing.T) {
			t.Parallel()
			d := Delay{Backoff: Backoff{Base: inSeconds(tc.Base), Multiplier: tc.Multiplier, Max: inSeconds(tc.Max)}}
			if err := d.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := d.For(tc.K); got != tc.Delay {
				t.Errorf("got %d s, want %d", got, tc.Delay)
			}
		})
	}
}

func TestVectorsFailureDelay(t *testing.T) { // Z6
	t.Parallel()
	for _, tc := range vectors(t, "failure_delay") {
		t.Run(tc.Value, func(t *testing.T) {
			t.Parallel()
			v := number(t, tc.Value)
			d := Delay{Fixed: &v}
			if err := d.Validate(); (err != nil) != tc.Error {
				t.Fatalf("Validate: %v", err)
			}
			if tc.Error {
				return
			}
			if got := d.For(1); got != tc.Delay || !d.Set() {
				t.Errorf("got %d s (set %t), want %d", got, d.Set(), tc.Delay)
			}
		})
	}
}

func TestVectorsPolicyResult(t *testing.T) { // Z6
	t.Parallel()
	for _, tc := range vectors(t, "policy_result") {
		t.Run(tc.Value, func(t *testing.T) {
			t.Parallel()
			v := number(t, tc.Value)
			d := Delay{Policy: func(int64) float64 { return v }}
			if got := d.For(1); got != tc.Delay {
				t.Errorf("got %d s, want %d", got, tc.Delay)
			}
		})
	}
}

// TestBackoffNeverOverflows is the table of B35: no wrap-around, no escape from the cap, no hot loop. It ends
// at all because no k is counted through.
func TestBackoffNeverOverflows(t *testing.T) {
	t.Parallel()
	ks := []int64{math.MinInt64, -1, 0, 1, 2, 31, 32, 62, 63, 64, 1000, 1 << 31, math.MaxInt64}
	for _, base := range []time.Duration{0, 1, time.Hour, math.MaxInt64} {
		for _, multiplier := range []float64{0, 1, 1.5, 2, 1e9, math.MaxFloat64} {
			for _, limit := range []time.Duration{0, 1, time.Second, MaxDelay, math.MaxInt64} {
				b := Backoff{Base: base, Multiplier: multiplier, Max: limit}
				if err := b.Validate(); err != nil {
					t.Fatal(err)
				}
				most := MaxDelay.Seconds()
				if limit > 0 {
					most = min(most, limit.Seconds())
				}
				before := -1.0
				for _, k := range ks {
					d := b.seconds(k, nil)
					if !(d >= 0 && d <= most) {
						t.Errorf("%+v: k %d gives %g s, want 0 to %g", b, k, d, most)
					}
					if d < before {
						t.Errorf("%+v: k %d gives %g s, less than the %g s of the k before", b, k, d, before)
					}
					before = d
					if k <= 1 && d != min(base.Seconds(), most) {
						t.Errorf("%+v: k %d gives %g s, want the base", b, k, d)
					}
					b.Jitter = FullJitter
					for _, random := range []float64{0, 0.25, 0.5, 1 - 1e-16} {
						j := b.seconds(k, func() float64 { return random })
						if j != d*random || j > d {
							t.Errorf("%+v: k %d and random %g give %g s of %g", b, k, random, j, d)
						}
					}
					b.Jitter = NoJitter
				}
			}
		}
	}
}

// TestDelayForAnyK holds that k below 1 counts as 1, for all three kinds.
func TestDelayForAnyK(t *testing.T) { // Z6
	t.Parallel()
	var seen []int64
	d := Delay{Policy: func(k int64) float64 { seen = append(seen, k); return float64(k) }}
	for k, want := range map[int64]int64{-5: 1, 0: 1, 1: 1, 7: 7, math.MaxInt64: int64(MaxDelay.Seconds())} {
		seen = nil
		if got := d.For(k); got != want || len(seen) != 1 || seen[0] != max(k, 1) {
			t.Errorf("k %d: got %d s of k %v, want %d", k, got, seen, want)
		}
	}
	b := Delay{Backoff: Backoff{Base: time.Second, Multiplier: 3}}
	if got := [...]int64{b.For(-1), b.For(0), b.For(1), b.For(2)}; got != [...]int64{1, 1, 1, 3} {
		t.Errorf("backoff: %v", got)
	}
}

// TestJitterIsFull draws from the package's own random source.
func TestJitterIsFull(t *testing.T) { // Z6
	t.Parallel()
	d := Delay{Backoff: Backoff{Base: 1000 * time.Second, Jitter: FullJitter}}
	low, high := int64(math.MaxInt64), int64(0)
	for range 2000 {
		got := d.For(1)
		low, high = min(low, got), max(high, got)
	}
	if low < 0 || low > 50 || high > 1000 || high < 950 {
		t.Errorf("2,000 delays lie between %d and %d s, want about 0 to 1,000", low, high)
	}
}

// TestDelayOrder holds which of the three counts.
func TestDelayOrder(t *testing.T) { // Z6
	t.Parallel()
	fixed := 5.0
	policy := func(int64) float64 { return 6 }
	backoff := Backoff{Base: 7 * time.Second}
	for _, tc := range []struct {
		name string
		d    Delay
		set  bool
		want int64
	}{
		{"nothing", Delay{Backoff: Backoff{Multiplier: 2, Max: time.Second}}, false, 0},
		{"backoff", Delay{Backoff: backoff}, true, 7},
		{"policy", Delay{Policy: policy, Backoff: backoff}, true, 6},
		{"fixed", Delay{Fixed: &fixed, Policy: policy, Backoff: backoff}, true, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.d.Set() != tc.set || tc.d.For(1) != tc.want {
				t.Errorf("set %t, %d s; want %t, %d s", tc.d.Set(), tc.d.For(1), tc.set, tc.want)
			}
		})
	}
}

func TestSeconds(t *testing.T) { // Z6: rounded up last
	t.Parallel()
	const most = 30 * 24 * 3600
	for in, want := range map[float64]int64{
		0: 0, -1: 0, math.Inf(-1): 0, 1e-9: 1, 0.2: 1, 1: 1, 1.2: 2, 59.0001: 60,
		most - 0.5: most, most: most, most + 1: most, 1e300: most, math.Inf(1): most,
	} {
		if got := Seconds(in); got != want {
			t.Errorf("%g s: got %d, want %d", in, got, want)
		}
	}
	if got := Seconds(math.NaN()); got != 0 {
		t.Errorf("NaN: got %d", got)
	}
}

func TestDelayProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Base:       time.Duration(rapid.Int64Min(0).Draw(t, "base")),
			Multiplier: rapid.Float64Range(1, math.MaxFloat64).Draw(t, "multiplier"),
			Max:        time.Duration(rapid.Int64Min(0).Draw(t, "max")),
			Jitter:     rapid.SampledFrom([]Jitter{NoJitter, FullJitter}).Draw(t, "jitter"),
		}
		got := Delay{Backoff: b}.For(rapid.Int64().Draw(t, "k"))
		limit := int64(MaxDelay.Seconds())
		if b.Max > 0 {
			limit = min(limit, int64(math.Ceil(b.Max.Seconds())))
		}
		if got < 0 || got > limit {
			t.Fatalf("%+v: %d s, want 0 to %d", b, got, limit)
		}
	})
}

func TestDelayValidate(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, tc := range []struct {
		name string
		d    Delay
		want []string // fields named
	}{
		{"zero", Delay{}, nil},
		{"all good", Delay{Backoff: Backoff{Base: 1, Multiplier: 1, Max: 1, Jitter: FullJitter}}, nil},
		{"base", Delay{Backoff: Backoff{Base: -1}}, []string{"Backoff.Base"}},
		{"multiplier below 1", Delay{Backoff: Backoff{Multiplier: 0.5}}, []string{"Backoff.Multiplier"}},
		{"multiplier NaN", Delay{Backoff: Backoff{Multiplier: nan}}, []string{"Backoff.Multiplier"}},
		{"multiplier infinite", Delay{Backoff: Backoff{Multiplier: math.Inf(1)}}, []string{"Backoff.Multiplier"}},
		{"multiplier negative", Delay{Backoff: Backoff{Multiplier: math.Inf(-1)}}, []string{"Backoff.Multiplier"}},
		{"max", Delay{Backoff: Backoff{Max: -1}}, []string{"Backoff.Max"}},
		{"jitter", Delay{Backoff: Backoff{Jitter: 2}}, []string{"Backoff.Jitter"}},
		{
			"all at once", Delay{Fixed: &nan, Backoff: Backoff{Base: -1, Multiplier: -1, Max: -1, Jitter: 9}},
			[]string{"FailureDelay", "Backoff.Base", "Backoff.Multiplier", "Backoff.Max", "Backoff.Jitter"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := tc.d.Validate()
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, field := range tc.want {
				if !strings.Contains(err.Error(), field+":") {
					t.Errorf("%q does not name %s", err, field)
				}
			}
		})
	}
}
