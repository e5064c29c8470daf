package shard_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/shard"
)

// batch is n messages; message i has the key of shard i mod 4.
func batch(n int) []publisher.Message {
	var keys [shards]string
	for i := range keys {
		keys[i] = keyFor(i)
	}
	all := make([]publisher.Message, n)
	for i := range all {
		all[i] = publisher.Message{URN: urn, ID: fmt.Sprint("id-", i), TraceID: keys[i%shards]}
	}
	return all
}

func byTrace(m publisher.Message) string { return m.TraceID }

// TestBatchByKey: every shard has its messages in the batch's order, and every message its own result.
func TestBatchByKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		at.Key = byTrace
		messages := batch(2*shards + 1)
		messages[5].ID = "" // which gets one
		messages[6].Data = 7
		results, err := at.open(t).PublishBatch(t.Context(), messages)
		if !errors.Is(err, publisher.ErrEncode) {
			t.Error(err)
		}
		wantBatch(t, err, 8, 0, 1)
		for i, r := range results {
			switch {
			case i == 6:
				if !errors.Is(r.Err, publisher.ErrEncode) || r.ID != "" {
					t.Errorf("the bad one: %+v", r)
				}
			case r.Err != nil || i != 5 && r.ID != messages[i].ID || len(r.ID) < 4:
				t.Errorf("message %d: %+v", i, r)
			}
		}
		want := [shards][]string{{"id-0", "id-4", "id-8"}, {"id-1", results[5].ID}, {"id-2"}, {"id-3", "id-7"}}
		if diff := cmp.Diff(want, at.stored(t)); diff != "" {
			t.Errorf("ids in each shard (-want +got):\n%s", diff)
		}
	})
}

// wantBatch fails the test unless err is a BatchError with these counts, and its text tells them.
func wantBatch(t *testing.T, err error, stored, mayBe, not int) {
	t.Helper()
	var failed *shard.BatchError
	if !errors.As(err, &failed) {
		t.Fatalf("%v is no BatchError", err)
	}
	if failed.Stored != stored || failed.MayBeStored != mayBe || failed.NotStored != not {
		t.Errorf("%+v, want %d stored, %d may be, %d not", failed, stored, mayBe, not)
	}
	text := fmt.Sprintf("of %d messages of the batch %d are stored, %d may be and %d are not: publisher: ", stored+mayBe+not, stored, mayBe, not)
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%q does not say %q", err, text)
	}
}

// TestBatchInTurn: messages without a key go by blocks, so that a batch makes few commands, and every shard gets its part.
func TestBatchInTurn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		const n = 256*shards + 300
		messages := batch(n)
		if results, err := p.PublishBatch(t.Context(), messages); err != nil || len(results) != n {
			t.Fatal(err)
		}
		sizes := map[int64]int{}
		for _, size := range at.counts(t) {
			sizes[size]++
		}
		if diff := cmp.Diff(map[int64]int{512: 1, 300: 1, 256: 2}, sizes); diff != "" {
			t.Errorf("sizes of shards (-want +got):\n%s", diff)
		}
		if _, err := p.PublishBatch(t.Context(), messages[:1]); err != nil { // the block after those
			t.Fatal(err)
		}
		if total := sum(at.counts(t)); total != n+1 {
			t.Errorf("%d messages stored", total)
		}
		if results, err := p.PublishBatch(t.Context(), nil); err != nil || len(results) != 0 {
			t.Errorf("an empty batch: %v, %v", results, err)
		}
	})
}

func sum(counts [shards]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// TestBatchOfManyFates covers B03: each shard's part has an end of its own, and each message tells its own. One shard is
// served, one loses its reply, one is refused, and one gets a message that cannot be encoded.
func TestBatchOfManyFates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b testredis.Backend, at target) {
		all := names(t, shards)
		at.Key = byTrace
		warm := at
		warm.KeyPrefix += "warm:"
		if _, err := warm.open(t).PublishBatch(t.Context(), batch(shards)); err != nil { // the script is known from here on
			t.Fatal(err)
		}
		if err := at.direct.Set(t.Context(), at.keyOf(all[2]), "somebody else's", 0).Err(); err != nil {
			t.Fatal(err)
		}
		proxy := faultproxy.Start(t, b.Addr)
		swallow := proxy.SwallowNext(at.keyOf(all[1]))
		at.Client = testredis.Client(t, b.Via(proxy.Addr()))

		messages := batch(5000 * shards) // several commands in each shard
		messages[3].URN = " "
		results, err := at.open(t).PublishBatch(t.Context(), messages)
		testredis.Await(t, swallow.Done(), patience, "a lost reply")
		for _, class := range []error{publisher.ErrMayBeStored, publisher.ErrRefused, publisher.ErrEncode} {
			if !errors.Is(err, class) {
				t.Errorf("%v is not %v", err, class)
			}
		}
		want := map[string]int{
			"0 stored": 5000, "1 may be": 1000, "1 not sent": 4000, "2 refused": 1000, "2 not sent": 4000,
			"3 stored": 4999, "3 encode": 1,
		}
		got := map[string]int{}
		for i, r := range results {
			got[fmt.Sprint(i%shards, " ", fate(r.Err))]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fates (-want +got):\n%s", diff)
		}
		wantBatch(t, err, 9999, 1000, 9001)
		if !strings.HasSuffix(err.Error(), "and 2 more shards failed") {
			t.Error(err)
		}
		counts := at.counts(t)
		counts[2] = 0 // not a list
		if diff := cmp.Diff([shards]int64{5000, 1000, 0, 4999}, counts); diff != "" {
			t.Errorf("messages in each shard (-want +got):\n%s", diff)
		}
	})
}

func fate(err error) string {
	for name, class := range map[string]error{
		"may be": publisher.ErrMayBeStored, "refused": publisher.ErrRefused, "not sent": publisher.ErrNotSent,
		"encode": publisher.ErrEncode, "unavailable": publisher.ErrUnavailable,
	} {
		if errors.Is(err, class) {
			return name
		}
	}
	if err != nil {
		return err.Error()
	}
	return "stored"
}

// TestRaw: texts go in turn by commands, in their order, and a failure ends the rest.
func TestRaw(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		texts := make([]string, 2500)
		for i := range texts {
			texts[i] = fmt.Sprint("text-", i)
		}
		if n, err := at.open(t).PublishRaw(t.Context(), texts); n != len(texts) || err != nil {
			t.Fatal(n, err)
		}
		sizes := map[int64]int{}
		for _, size := range at.counts(t) {
			sizes[size]++
		}
		if diff := cmp.Diff(map[int64]int{1000: 2, 500: 1, 0: 1}, sizes); diff != "" {
			t.Errorf("sizes of shards (-want +got):\n%s", diff)
		}
		at.KeyPrefix += "bad:"
		for _, name := range names(t, shards)[:1] {
			if err := at.direct.Set(t.Context(), at.keyOf(name), "somebody else's", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		texts = slices.Concat(texts, texts) // comes to every shard
		n, err := at.open(t).PublishRaw(t.Context(), texts)
		if !errors.Is(err, publisher.ErrRefused) || n%1000 != 0 || n > 3000 || !strings.Contains(err.Error(), fmt.Sprint(n, " of 5000 texts")) {
			t.Fatal(n, err)
		}
		if total := sum(at.counts(t)); total != int64(n) {
			t.Errorf("%d stored, %d reported", total, n)
		}
	})
}
