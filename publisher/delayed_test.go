package publisher_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

func (at target) delayed(t *testing.T) []redis.Z {
	t.Helper()
	got, err := at.direct.ZRangeWithScores(t.Context(), at.key()+":delayed", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestDelayedScore covers Z1 with a clock of the test's own.
func TestDelayedScore(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		at := newTarget(publisher.Zset, b.Client, b.Prefix)
		for i, c := range loadVectors(t).DelayedScore {
			at.KeyPrefix = fmt.Sprint(b.Prefix, i, ":")
			p, err := publisher.NewAt(at.Config, c.Now.String())
			if err != nil {
				t.Fatal(err)
			}
			delay := time.Duration(math.Round(c.Delay * float64(time.Second)))
			if got, err := p.PublishDelayed(t.Context(), delay, urn, nil, fixed()...); err != nil || got != id {
				t.Fatal(got, err)
			}
			if diff := cmp.Diff([]redis.Z{{Score: c.Score, Member: body("orders", `{}`)}}, at.delayed(t)); diff != "" {
				t.Errorf("%s + %v (-want +got):\n%s", c.Now, delay, diff)
			}
			at.count(t, 0) // and no token
		}
	})
}

// TestDelayedByServerClock covers R2.
func TestDelayedByServerClock(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		at := newTarget(publisher.Zset, b.Client, b.Prefix)
		p := at.open(t)
		for _, c := range []struct {
			delay   time.Duration
			seconds float64
		}{
			{0, 0}, {1, 1}, {time.Second, 1}, {time.Second + 1, 2}, {90 * time.Minute, 5400},
			{math.MaxInt64, 9223372037},
		} {
			before := b.Client.Time(t.Context()).Val().Unix()
			made, err := p.PublishDelayed(t.Context(), c.delay, urn, nil)
			if err != nil {
				t.Fatal(err)
			}
			after := b.Client.Time(t.Context()).Val().Unix()
			got := math.NaN()
			for _, z := range at.delayed(t) {
				e, err := envelope.Decode(z.Member.(string))
				if err != nil {
					t.Fatal(err)
				}
				if e.Meta.ID == made {
					got = z.Score
				}
			}
			if !(got >= float64(before)+c.seconds && got <= float64(after)+c.seconds) {
				t.Errorf("%v: score %.0f, want %.0f more than %d to %d", c.delay, got, c.seconds, before, after)
			}
		}
	})
}

// TestDelayedDuplicate covers B05.
func TestDelayedDuplicate(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		at := newTarget(publisher.Zset, b.Client, b.Prefix)
		p, err := publisher.NewAt(at.Config, "1749132727.5")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.PublishDelayed(t.Context(), 5*time.Second, urn, nil, fixed()...); err != nil {
			t.Fatal(err)
		}
		got, err := p.PublishDelayed(t.Context(), time.Second, urn, nil, fixed()...)
		wantClass(t, err, publisher.ErrDuplicateBody)
		if got != id {
			t.Errorf("id %q", got)
		}
		later := append(fixed(), envelope.WithCreatedAt(created.Add(time.Millisecond)))
		if _, err := p.PublishDelayed(t.Context(), time.Second, urn, nil, later...); err != nil {
			t.Errorf("other bytes with the same id: %v", err)
		}
		all := at.delayed(t)
		if len(all) != 2 || all[1].Score != 1749132732 {
			t.Errorf("delayed holds %v; the first message has to keep its time", all)
		}
	})
}

func TestDelayedRefused(t *testing.T) {
	t.Parallel()
	client := testredis.Client(t, testredis.Mini(t).Addr())
	for _, c := range []struct {
		layout publisher.Layout
		delay  time.Duration
		want   error
	}{
		{publisher.Legacy, time.Second, publisher.ErrNoDelay},
		{publisher.Legacy, 0, publisher.ErrNoDelay},
		{publisher.Zset, -1, publisher.ErrNegativeDelay},
		{publisher.Zset, math.MinInt64, publisher.ErrNegativeDelay},
	} {
		got, err := newTarget(c.layout, client, "").open(t).PublishDelayed(t.Context(), c.delay, urn, nil)
		if got != "" || !errors.Is(err, c.want) {
			t.Errorf("%v, %v: %q, %v", c.layout, c.delay, got, err)
		}
		wantClass(t, err, c.want)
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}
