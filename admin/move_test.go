package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/admin"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// rig is a server, or a cluster, with queues.
type rig struct {
	t      *testing.T
	client redis.UniversalClient
	prefix string
}

// places is what a queue holds.
type places struct {
	Ready, DeadLetters, InFlight []string
	Delayed                      map[string]float64
	Notify                       int
}

func (r *rig) queue(name string, layout admin.Layout) admin.Queue {
	return admin.Queue{Name: name, Layout: layout, KeyPrefix: r.prefix}
}

func (r *rig) keys(q admin.Queue) lua.Keys {
	r.t.Helper()
	keys, err := lua.NewKeys(q.Layout, q.KeyPrefix, q.Name, q.DeadLetterKey)
	r.must(err)
	return keys
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// push puts texts in a list.
func (r *rig) push(key string, texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.must(r.client.RPush(context.Background(), key, text).Err())
	}
}

// fill publishes texts in a queue.
func (r *rig) fill(q admin.Queue, texts ...string) {
	r.t.Helper()
	r.must(lua.Ready(r.client, r.keys(q)).Add(context.Background(), texts))
}

func (r *rig) holds(q admin.Queue) places {
	r.t.Helper()
	ctx, keys := context.Background(), r.keys(q)
	list := func(key string) []string {
		if key == "" {
			return nil
		}
		return r.client.LRange(ctx, key, 0, -1).Val()
	}
	p := places{Ready: list(keys.Ready), DeadLetters: list(keys.DeadLetters), Delayed: map[string]float64{}}
	p.Notify = len(list(keys.Notify))
	p.InFlight = list(keys.Processing)
	if keys.Reserved != "" {
		p.InFlight = r.client.ZRange(ctx, keys.Reserved, 0, -1).Val()
		for _, z := range r.client.ZRangeWithScores(ctx, keys.Delayed, 0, -1).Val() {
			p.Delayed[z.Member.(string)] = z.Score
		}
	}
	return p
}

func (r *rig) same(what string, got, want any) {
	r.t.Helper()
	if diff := cmp.Diff(want, got, cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func each(t *testing.T, fn func(r *rig)) {
	t.Helper()
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) { fn(&rig{t, b.Client, b.Prefix}) })
}

func body(i int) string {
	return fmt.Sprintf(`{"job":"urn:babel:orders:created","trace_id":"t-%d","data":{"n":%d},"meta":{"id":"m-%04d","queue":"orders","lang":"go","schema_version":1,"created_at":1749132727000},"attempts":0}`, i, i, i)
}

func bodies(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, body(i))
	}
	return all
}

func framed(i int) string { return envelope.EncodeFrame(body(i), map[string]string{"tenant": "7"}) }

const foreign = `{"uuid":"1","displayName":"App\\Jobs\\Ship","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{}}`

// Every message goes over in its order, in any direction, with the tokens that the target needs; dead letters when they are
// wanted; what is in flight stays.
func TestMove(t *testing.T) { // Z1, D1
	each(t, func(r *rig) {
		for _, from := range []admin.Layout{admin.Legacy, admin.Zset} {
			for _, to := range []admin.Layout{admin.Legacy, admin.Zset} {
				source, target := r.queue(fmt.Sprintf("old%d%d", from, to), from), r.queue(fmt.Sprintf("new%d%d", from, to), to)
				const n = 1203
				r.fill(source, bodies(0, n)...)
				store := lua.New(from, lua.Options{Client: r.client, Keys: r.keys(source), RetryAfter: time.Minute})
				_, err := store.Reserve(context.Background(), flow.ReserveRequest{Most: 3, Bytes: 1 << 20, FirstPop: 3, Migration: 1})
				r.must(err)
				r.push(r.keys(source).DeadLetters, "a record", body(7))
				r.fill(target, body(9000))

				plan, err := admin.Move(context.Background(), r.client, source, target, admin.MoveOptions{DryRun: true, DeadLetters: true})
				r.must(err)
				r.same("ready after a dry run", len(r.holds(source).Ready), n-3)
				told := 0
				report, err := admin.Move(context.Background(), r.client, source, target, admin.MoveOptions{
					DeadLetters: true, Progress: func(admin.MoveReport) { told++ },
				})
				r.must(err)
				r.same("report", report, admin.MoveReport{Ready: n - 3, DeadLetters: 2, InFlight: 3, Stayed: map[string]int64{}})
				r.same("the dry run's report", plan, report)
				if told < 3 {
					t.Errorf("progress was told %d times", told)
				}
				left, got := r.holds(source), r.holds(target)
				r.same("left", []int{len(left.Ready), len(left.DeadLetters), len(left.InFlight), left.Notify}, []int{0, 0, 3, 0})
				r.same("moved", got.Ready, append([]string{body(9000)}, bodies(3, n)...))
				r.same("moved dead letters", got.DeadLetters, []string{"a record", body(7)})
				if to == admin.Zset && got.Notify != n-2 {
					t.Errorf("%d tokens for %d messages", got.Notify, n-2)
				}
			}
		}
	})
}

// What cannot change its layout stays in its place, and is counted; nothing of a message is lost that nobody has given up.
func TestMoveBetweenLayouts(t *testing.T) { // F1, F4, L1, Z8
	each(t, func(r *rig) {
		legacy, zset := r.queue("orders", admin.Legacy), r.queue("orders", admin.Zset)
		odd := `{"attempts": 3,"job":"urn:x","trace_id":"t","data":{},"meta":{"id":"m","queue":"q","lang":"php","schema_version":1,"created_at":1}}`
		r.fill(legacy, "poison", body(1), framed(2), foreign, odd, envelope.EncodeFrame(body(3), nil))
		report, err := admin.Move(context.Background(), r.client, legacy, zset, admin.MoveOptions{})
		r.must(err)
		r.same("report", report, admin.MoveReport{Ready: 3, Stayed: map[string]int64{admin.StayedForeign: 2, admin.StayedHeaders: 1}})
		r.same("stays", r.holds(legacy).Ready, []string{"poison", framed(2), foreign})
		r.same("moved", r.holds(zset).Ready, []string{body(1), odd, body(3)})

		_, err = admin.Move(context.Background(), r.client, legacy, zset, admin.MoveOptions{DropHeaders: true})
		r.must(err)
		r.same("moved without headers", r.holds(zset).Ready, []string{body(1), odd, body(3), body(2)})

		r.must(r.client.ZAdd(context.Background(), r.keys(zset).Delayed, redis.Z{Score: 5e9, Member: body(10)}).Err())
		report, err = admin.Move(context.Background(), r.client, zset, legacy, admin.MoveOptions{})
		r.must(err)
		r.same("report", report, admin.MoveReport{Ready: 4, Stayed: map[string]int64{admin.StayedDelayed: 1}})
		report, err = admin.Move(context.Background(), r.client, zset, legacy, admin.MoveOptions{DelayedNow: true})
		r.must(err)
		r.same("report", report, admin.MoveReport{Delayed: 1, Stayed: map[string]int64{}})
		r.same("moved back", r.holds(legacy).Ready, []string{"poison", foreign, body(1), odd, body(3), body(2), body(10)})
	})
}

// What stays is passed by, however much it is.
func TestMovePassesWhatStays(t *testing.T) {
	each(t, func(r *rig) {
		legacy, zset := r.queue("orders", admin.Legacy), r.queue("orders", admin.Zset)
		var texts, want []string
		for i := range 1700 {
			if i%5 == 4 {
				texts, want = append(texts, body(i)), append(want, body(i))
			} else {
				texts = append(texts, fmt.Sprint("poison ", i))
			}
		}
		r.fill(legacy, texts...)
		report, err := admin.Move(context.Background(), r.client, legacy, zset, admin.MoveOptions{})
		r.must(err)
		r.same("report", report, admin.MoveReport{Ready: 340, Stayed: map[string]int64{admin.StayedForeign: 1360}})
		r.same("moved", r.holds(zset).Ready, want)
		r.same("left", len(r.holds(legacy).Ready), 1360)
	})
}

// Delayed messages keep their time; one whose bytes the target has delayed already stays.
func TestMoveDelayed(t *testing.T) { // Z1, B05
	each(t, func(r *rig) {
		source, target := r.queue("old", admin.Zset), r.queue("new", admin.Zset)
		want := map[string]float64{}
		for i := range 700 {
			want[body(i)] = float64(5e9 + i)
			r.must(r.client.ZAdd(context.Background(), r.keys(source).Delayed, redis.Z{Score: float64(5e9 + i), Member: body(i)}).Err())
		}
		r.must(r.client.ZAdd(context.Background(), r.keys(target).Delayed, redis.Z{Score: 6e9, Member: body(600)}).Err())
		want[body(600)] = 6e9
		report, err := admin.Move(context.Background(), r.client, source, target, admin.MoveOptions{})
		r.must(err)
		r.same("report", report, admin.MoveReport{Delayed: 699, Stayed: map[string]int64{admin.StayedTwin: 1}})
		r.same("moved", r.holds(target).Delayed, want)
		r.same("stays", r.holds(source).Delayed, map[string]float64{body(600): 5e9 + 600})

		report, err = admin.Move(context.Background(), r.client, target, source, admin.MoveOptions{DelayedNow: true, Limit: 450})
		r.must(err)
		r.same("report", report, admin.MoveReport{Delayed: 450, Stayed: map[string]int64{}})
		got := r.holds(source)
		r.same("moved at once", got.Ready, bodies(0, 450))
		r.same("tokens", got.Notify, 450)
	})
}

// Consumers and publishers work on both queues meanwhile: each message is in one place, whoever wins.
func TestMoveMeanwhile(t *testing.T) { // R1
	each(t, func(r *rig) {
		source, target := r.queue("old", admin.Zset), r.queue("new", admin.Legacy)
		const n = 3000
		r.fill(source, bodies(0, n)...)
		ctx, cancel := context.WithCancel(context.Background())
		taken, ended := map[string]int{}, make(chan struct{})
		go func() {
			defer close(ended)
			stores := []lua.Store{
				lua.New(admin.Zset, lua.Options{Client: r.client, Keys: r.keys(source), RetryAfter: time.Hour}),
				lua.New(admin.Legacy, lua.Options{Client: r.client, Keys: r.keys(target), RetryAfter: time.Hour}),
			}
			for ctx.Err() == nil {
				for _, store := range stores {
					res, err := store.Reserve(context.Background(), flow.ReserveRequest{Most: 7, Bytes: 1 << 20, FirstPop: 7, Migration: 1})
					if err != nil {
						t.Error(err)
						return
					}
					if res.Lease == nil {
						continue
					}
					for i := range res.Lease.Items {
						taken[res.Lease.Items[i].Ready()]++
					}
				}
			}
		}()
		extra := 0 // a step may move nothing, where the consumers were quicker
		report, err := admin.Move(context.Background(), r.client, source, target, admin.MoveOptions{Progress: func(admin.MoveReport) {
			r.fill(source, body(n+extra))
			extra++
		}})
		cancel()
		<-ended
		r.must(err)
		for _, text := range append(r.holds(source).Ready, r.holds(target).Ready...) {
			taken[text]++
		}
		if report.Ready == 0 || len(taken) != n+extra {
			t.Errorf("%+v; %d messages in the end", report, len(taken))
		}
		for text, times := range taken {
			if times != 1 {
				t.Errorf("%d times: %s", times, text)
			}
		}
	})
}

// A reply that is lost leaves each message in one of the queues, and the next move goes on.
func TestMoveIsResumed(t *testing.T) { // R1
	each(t, func(r *rig) {
		source, target := r.queue("old", admin.Legacy), r.queue("new", admin.Zset)
		r.fill(source, bodies(0, 1200)...)
		ctx, cancel := context.WithCancel(context.Background())
		_, err := admin.Move(ctx, r.client, source, target, admin.MoveOptions{Progress: func(admin.MoveReport) { cancel() }})
		if err == nil {
			t.Error("a move that was cancelled ended well")
		}
		all := append(r.holds(target).Ready, r.holds(source).Ready...)
		r.same("in both", all, bodies(0, 1200))
		_, err = admin.Move(context.Background(), r.client, source, target, admin.MoveOptions{})
		r.must(err)
		r.same("moved in the end", r.holds(target).Ready, bodies(0, 1200))
	})
}

// Between two slots messages pass through a key of the source's. A move that was cut off there is gone on with.
func TestMoveBetweenSlots(t *testing.T) { // R3
	t.Parallel()
	cluster := testredis.Cluster(t, redisproc.ClusterConfig{})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	r := &rig{t: t, client: client}
	source, target := r.queue("{old}", admin.Legacy), r.queue("{new}", admin.Zset)
	keys := r.keys(source)
	r.fill(source, bodies(50, 400)...)
	r.push(keys.Ready+":moving", bodies(0, 50)...) // what a move that died had taken
	r.push(keys.DeadLetters+":moving", "an older record")
	r.push(keys.DeadLetters, "a record")
	report, err := admin.Move(context.Background(), client, source, target, admin.MoveOptions{DeadLetters: true})
	r.must(err)
	r.same("report", report, admin.MoveReport{Ready: 350, DeadLetters: 1, Stayed: map[string]int64{}})
	got := r.holds(target)
	r.same("moved", got.Ready, bodies(0, 400))
	r.same("tokens", got.Notify, 400)
	r.same("moved dead letters", got.DeadLetters, []string{"an older record", "a record"})
	r.same("left on the way", client.Exists(context.Background(), keys.Ready+":moving").Val()+client.Exists(context.Background(), keys.DeadLetters+":moving").Val(), int64(0))

	// A target that refuses: what was taken is on its way, and the next move brings it on.
	other := r.queue("{other}", admin.Legacy)
	r.must(client.Set(context.Background(), r.keys(other).Ready, "no list", 0).Err())
	if _, err = admin.Move(context.Background(), client, target, other, admin.MoveOptions{}); err == nil || !strings.Contains(err.Error(), "on their way") {
		t.Errorf("the target is no list: %v", err)
	}
	waiting := client.LRange(context.Background(), r.keys(target).Ready+":moving", 0, -1).Val()
	r.same("nothing is lost", slices.Concat(waiting, r.holds(target).Ready), bodies(0, 400))
	r.must(client.Del(context.Background(), r.keys(other).Ready).Err())
	_, err = admin.Move(context.Background(), client, target, other, admin.MoveOptions{})
	r.must(err)
	r.same("brought on", r.holds(other).Ready, bodies(0, 400))

	// Also where nothing else is to be moved.
	r.push(r.keys(target).Ready+":moving", body(400))
	_, err = admin.Move(context.Background(), client, target, other, admin.MoveOptions{})
	r.must(err)
	r.same("brought on alone", r.holds(other).Ready, bodies(0, 401))

	// Delayed messages of another slot cannot keep their time.
	r.must(client.ZAdd(context.Background(), r.keys(target).Delayed, redis.Z{Score: 5e9, Member: body(1)}).Err())
	third := r.queue("{third}", admin.Zset)
	report, err = admin.Move(context.Background(), client, target, third, admin.MoveOptions{})
	r.must(err)
	r.same("stayed", report.Stayed, map[string]int64{admin.StayedDelayed: 1})
	_, err = admin.Move(context.Background(), client, target, third, admin.MoveOptions{DelayedNow: true})
	r.must(err)
	r.same("moved at once", r.holds(third).Ready, []string{body(1)})
}

func TestMoveRefused(t *testing.T) {
	each(t, func(r *rig) {
		for name, c := range map[string]struct {
			from, to admin.Queue
			o        admin.MoveOptions
			word     string
		}{
			"itself":          {r.queue("orders", admin.Legacy), r.queue("orders", 0), admin.MoveOptions{}, "itself"},
			"name":            {r.queue("", admin.Legacy), r.queue("orders", 0), admin.MoveOptions{}, "R4"},
			"target's name":   {r.queue("orders", admin.Legacy), r.queue("orders:processing", 0), admin.MoveOptions{}, "R4"},
			"on its way":      {r.queue("orders", admin.Legacy), r.queue("orders:moving", 0), admin.MoveOptions{}, "R4"},
			"limit":           {r.queue("orders", admin.Legacy), r.queue("orders2", 0), admin.MoveOptions{Limit: -1}, "Limit"},
			"one dead letter": {admin.Queue{Name: "a", DeadLetterKey: "dead"}, admin.Queue{Name: "b", DeadLetterKey: "dead"}, admin.MoveOptions{DeadLetters: true}, "dead"},
		} {
			if _, err := admin.Move(context.Background(), r.client, c.from, c.to, c.o); !errors.Is(err, admin.ErrOptions) || !strings.Contains(err.Error(), c.word) {
				t.Errorf("%s: %v", name, err)
			}
		}
		source := r.queue("old", admin.Legacy)
		r.fill(source, body(1))
		r.must(r.client.Set(context.Background(), r.keys(r.queue("new", admin.Zset)).Ready, "no list", 0).Err())
		if _, err := admin.Move(context.Background(), r.client, source, r.queue("new", admin.Zset), admin.MoveOptions{}); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("a target of the wrong type: %v", err)
		}
		r.same("left", r.holds(source).Ready, []string{body(1)})
	})
}
