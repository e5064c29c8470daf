package pool_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// delicate are texts that a JSON round trip would change (B30, B31), but for the digit of attempts.
var delicate = map[string]string{
	"numbers": bodyWith(1, `{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551615,"d":0.1,"e":1.0,`+
		`"f":1e400,"g":123456789012345678901234567890,"h":-0,"i":1E+2,"j":0.12345678901234567890123456789}`, 0),
	"empties":            bodyWith(1, `{"a":[],"b":{},"c":[[]],"d":[{}],"e":"","f":null}`, 0),
	"spellings":          bodyWith(1, `{"a":"\/","b":"/","c":"\u00e9é","d":"<&>","e":"\u003c","f":" ","g":"😀\ud83d\ude00"}`, 0),
	"the name elsewhere": bodyWith(1, `{"attempts":7,"a":{"attempts":8},"b":"\"attempts\":9","c":["attempts",10],"dead_letter":1}`, 0),
	"white space": " {\r\n\t\"job\" : \"" + urn + "\" , \"trace_id\" : \"t\" , \"data\" : { \"a\" : [ ] } , \"meta\" : " +
		"{ \"schema_version\" : 1 , \"id\" : \"m-0001\" } , \"attempts\" : 0 , \"more\" : [ 1.0 ] } \n",
	"order": `{"zeta":1.0,"attempts":0,"meta":{"x":1e2,"schema_version":1,"id":"m-0001"},"trace_id":"t","data":{"b":2,"a":1},` +
		`"urn":"` + urn + `","alpha":[]}`,
	"twice":   strings.Replace(bodyWith(1, `{"a":1}`, 0), `{"job"`, `{"attempts":5,"data":{"a":2},"job"`, 1),
	"unicode": strings.Replace(bodyWith(1, `{"a":1.0}`, 0), `"attempts":0}`, `"ключ":"значение","attempts":0}`, 1),
}

// numbered is a delicate text with its counter at n.
func numbered(text string, n string) string {
	at := strings.LastIndex(text, `"attempts"`)
	return text[:at] + strings.Replace(text[at:], "0", n, 1)
}

// TestBytes covers B30 and B31: published raw, reserved, failed and retried three times, lost with its process,
// recovered and given up, a message changes in its top-level attempts and nowhere else.
func TestBytes(t *testing.T) {
	t.Parallel()
	for name, text := range delicate {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r *rig) {
				digits := []string{"0", "1", "2", "3"}
				if r.layout == pool.Zset {
					digits = []string{"1", "2", "3", "4"}
				}
				// The fourth run outlives its process.
				stuck := r.block()
				inFlight := make(chan string, 4)
				seen, handler := watch(func(d *delivery.Delivery) error {
					inFlight <- r.stored(0)
					if d.Number == 4 {
						<-stuck.release
					}
					return errBoom
				})
				cfg := r.config(handler)
				cfg.RetryAfter, cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = 2*time.Second, 5, pool.Requeue, ptr(0.0)
				cfg.DrainTimeout, cfg.HardStopTimeout = time.Millisecond, time.Millisecond
				r.push(text)
				p := r.start(cfg)
				var data string
				for _, digit := range digits {
					d := receive(t, seen, "a delivery")
					wantEqual(t, "seen", d.Body, numbered(text, digit))
					wantEqual(t, "in flight", receive(t, inFlight, "the stored value"), numbered(text, digit))
					data = d.Data
				}
				if !strings.Contains(text, data) {
					t.Errorf("data %s", data)
				}
				if err := p.stop(); !errors.Is(err, pool.ErrAbandoned) {
					t.Fatalf("Run: %v", err)
				}
				wantEqual(t, "left in flight", r.state().InFlight, []string{numbered(text, digits[3])})

				// Another process gives it up. Recovery counts in the zset layout alone (A1).
				seen, cfg.Handler = watch(func(*delivery.Delivery) error { return delivery.DeadLetter(errBoom) })
				p = r.start(cfg)
				last, n := digits[3], int64(3)
				if r.layout == pool.Zset {
					last, n = "5", 5
				}
				d := receive(t, seen, "the recovered one")
				wantEqual(t, "recovered", d.Body, numbered(text, last))
				p.settled(1)
				whole := strings.TrimRight(numbered(text, last), " \n")
				record := dead(whole, "failed", `"boom é/x"`, `"*errors.errorString"`, n)
				r.wantRecords(record + numbered(text, last)[len(whole):])
			})
		})
	}
}
