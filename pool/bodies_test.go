package pool_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/pool"
)

const created = 1782000000123 // meta.created_at of test messages, long ago

// body is a canonical message with an id of its own.
func body(id int, attempts int64) string { return bodyWith(id, `{}`, attempts) }

// bodyWith is body with data.
func bodyWith(id int, data string, attempts int64) string {
	return fmt.Sprintf(`{"job":%q,"trace_id":"11111111-1111-4111-8111-111111111111","data":%s,"meta":{"id":"m-%04d",`+
		`"queue":"orders","lang":"go","schema_version":1,"created_at":%d},"attempts":%d}`, urn, data, id, created, attempts)
}

// bodies are n messages with ids from 0.
func bodies(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = body(i, 0)
	}
	return all
}

// foreignURN is body with a URN that no test has a handler for.
func foreignURN(id int, createdAt int64) string {
	text := strings.Replace(body(id, 0), urn, "urn:babel:orders:unheard", 1)
	return strings.Replace(text, fmt.Sprint(created), fmt.Sprint(createdAt), 1)
}

// attemptsIn returns text with the counter at its end replaced.
func attemptsIn(text string, attempts int64) string {
	return atTheEnd.ReplaceAllString(text, fmt.Sprintf(`"attempts":%d}`, attempts))
}

var atTheEnd = regexp.MustCompile(`"attempts":\d+}$`)

// first is the number a layout's handler sees in attempts on the first delivery of a message published with 0.
func first(layout pool.Layout) int64 {
	if layout == pool.Zset {
		return 1 // Z3
	}
	return 0 // L6
}

var failedAt = regexp.MustCompile(`"failed_at":\d{13},`)

// timeless blanks the time in a dead letter.
func timeless(record string) string { return failedAt.ReplaceAllString(record, `"failed_at":0,`) }

// dead is the timeless dead letter record of a message's text (D2). errText and exception are JSON.
func dead(text, reason, errText, exception string, attempts int64) string {
	members := strings.TrimSuffix(text, "}")
	if members != "{" {
		members += ","
	}
	return fmt.Sprintf(`%s"dead_letter":{"reason":%q,"error":%s,"exception":%s,"failed_at":0,"original_queue":%q,`+
		`"attempts":%d,"lang":"go"}}`, members, reason, errText, exception, queue, attempts)
}

// wantRecords compares dead letters without their times, in order.
func (r *rig) wantRecords(want ...string) {
	r.t.Helper()
	var got []string
	for _, d := range r.state().Dead {
		got = append(got, timeless(d))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

// wantEqual compares two values.
func wantEqual[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
