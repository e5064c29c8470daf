package lua

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// eachOwn runs a body for both layouts on a real server of its own, behind a proxy.
func eachOwn(t *testing.T, fn func(t *testing.T, q *queue, proxy *faultproxy.Proxy)) {
	t.Helper()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			server := testredis.Server(t, redisproc.Config{})
			proxy := faultproxy.Start(t, server.Addr())
			b := testredis.Backend{
				Name: "redis", Addr: server.Addr(), URL: server.URL(), Client: testredis.Client(t, proxy.Addr()),
				Prefix: testredis.Prefix(t), Real: true, Server: server,
			}
			fn(t, newQueue(t, b, layout, nil), proxy)
		})
	}
}

// cycle runs each call of a layout once.
func cycle(t *testing.T, q *queue) {
	t.Helper()
	for _, c := range busyCalls[q.layout] {
		if err := c.call(t.Context(), q, q.prepare(t)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
}

// sent counts the scripts sent by text and by name.
func sent(proxy *faultproxy.Proxy) (texts map[string]int, names int) {
	texts = map[string]int{}
	for _, c := range proxy.Commands() {
		switch c.Name() {
		case "EVAL":
			texts[c.Args[1]]++
		case "EVALSHA":
			names++
		}
	}
	return texts, names
}

// A script's text goes to a server once; from then on its name is enough, and the text is a constant.
func TestScriptsAreSentOnce(t *testing.T) { // R3, B46
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, proxy *faultproxy.Proxy) {
		cycle(t, q)
		cycle(t, q)
		texts, names := sent(proxy)
		if len(texts) < 6 || names < 3*len(texts) {
			t.Errorf("%d texts and %d names were sent; the calls are not counted", len(texts), names)
		}
		for text, n := range texts {
			if n != 1 {
				t.Errorf("sent %d times: %.200s", n, text)
			}
		}
	})
}

// A server that lost its scripts gets them anew, call by call, with no effect doubled or lost (B46).
func TestScriptFlushBetweenCalls(t *testing.T) { // R3, B46
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) {
		forget := func() {
			q.do(t, "SCRIPT", "FLUSH")
		}
		forget()
		q.publish(t, bodies(0, 5)...)
		forget()
		held := q.take(t, 4)
		forget()
		q.renew(t, handles(held)...)
		forget()
		q.settle(t, acks(held[0])[0], settlement(held[1], flow.DeadLetter, "d"))
		forget()
		q.handBack(t, held[2:]...)
		forget()
		want := state{Ready: bodies(2, 5), DeadLetters: []string{"d"}}
		if q.layout == flow.Zset {
			want.Notify, want.DeadNotify = 3, 1
		}
		q.expect(t, want)
		cycle(t, q)
	})
}

// Some proxies word the error with a prefix; the text is sent all the same, and only for that error.
func TestNoScriptInOtherWords(t *testing.T) { // B46
	t.Parallel()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		for _, reply := range []string{
			"NOSCRIPT No matching script. Please use EVAL.", "ERR NOSCRIPT No matching script", "NOSCRIPT", "NOSCRIPT: unknown",
		} {
			t.Run(layout.String()+" "+reply, func(t *testing.T) {
				t.Parallel()
				mini := testredis.Mini(t)
				mini.Server().SetPreHook(func(peer *server.Peer, cmd string, _ ...string) bool {
					if cmd != "EVALSHA" {
						return false
					}
					peer.WriteError(reply)
					return true
				})
				b := testredis.Backend{Addr: mini.Addr(), Client: testredis.Client(t, mini.Addr()), Prefix: "t:", Mini: mini}
				q := newQueue(t, b, layout, nil)
				q.publish(t, body(1))
				q.settle(t, acks(q.take(t, 1)...)...)
				q.expect(t, state{})
				cycle(t, q)
			})
		}
	}
}

// A server that says NOSCRIPT to the text too gets no third try.
func TestNoScriptForEver(t *testing.T) { // B46
	t.Parallel()
	mini := testredis.Mini(t)
	tries := 0
	mini.Server().SetPreHook(func(peer *server.Peer, cmd string, _ ...string) bool {
		if !strings.HasPrefix(cmd, "EVAL") {
			return false
		}
		tries++
		peer.WriteError("NOSCRIPT always")
		return true
	})
	b := testredis.Backend{Addr: mini.Addr(), Client: testredis.Client(t, mini.Addr()), Prefix: "t:", Mini: mini}
	q := newQueue(t, b, flow.Legacy, nil)
	if _, err := q.Audit(t.Context()); !errors.Is(err, flow.ErrPermanent) || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// What comes back in a shape no script gives is an error, not a panic and not a wrong result.
func TestMalformedReplies(t *testing.T) {
	t.Parallel()
	member := `{"attempts":1}`
	for name, c := range map[string]struct {
		answer []string
		fails  string // calls that must refuse it, in both layouts where they exist
	}{
		"nothing":         {nil, "reserve sweep audit adopt publish-delayed"}, // the others: no exceptions to report
		"words":           {[]string{"ok", "now", "x", "y", "z", "u", "v", "w"}, "reserve sweep audit adopt settle hand-back renew recall"},
		"position beyond": {[]string{"999", "late"}, "reserve settle hand-back renew recall"},
		"position zero":   {[]string{"0", "late"}, "reserve settle hand-back renew recall"},
		"unheard of":      {[]string{"1", "unheard of"}, "reserve settle hand-back renew recall"},
		"counts":          {[]string{"ok", "1", "0", "0", "5", "5", "5"}, "reserve recall"},
		"negative":        {[]string{"ok", "1", "0", "0", "-1", "1", "0"}, "reserve recall"},
		"short member":    {[]string{"ok", "1", "0", "0", "short"}, "reserve recall"},
		"not its own":     {[]string{strings.Repeat("0", 32) + ":x"}, "reserve recall"},
		"short note":      {[]string{"ok", "1", "0", "0", "1", "1", "0", member, "1 2"}, "reserve recall"},
		"note of words":   {[]string{"ok", "1", "0", "0", "1", "1", "0", member, "a b c d"}, "reserve recall"},
		"note beyond":     {[]string{"ok", "1", "0", "0", "1", "1", "0", member, "1 13 99 0"}, "reserve recall"},
		"no such member":  {[]string{"ok", "1", "0", "0", "1", "1", "0", member, "2 1 1 0"}, "reserve recall"},
	} {
		for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
			t.Run(layout.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				mini := testredis.Mini(t)
				b := testredis.Backend{Addr: mini.Addr(), Client: testredis.Client(t, mini.Addr()), Prefix: "t:", Mini: mini}
				q := newQueue(t, b, layout, nil)
				held := q.prepare(t)
				mini.Server().SetPreHook(func(peer *server.Peer, cmd string, _ ...string) bool {
					if !strings.HasPrefix(cmd, "EVAL") {
						return false
					}
					peer.WriteStrings(c.answer)
					return true
				})
				for _, call := range busyCalls[layout] {
					err := call.call(t.Context(), q, held)
					if err != nil && !errors.Is(err, flow.ErrPermanent) {
						t.Errorf("%s: %v, want ErrPermanent", call.name, err)
					}
					if err == nil && slices.Contains(strings.Fields(c.fails), strings.ReplaceAll(call.name, " ", "-")) {
						t.Errorf("%s takes %q as it is", call.name, c.answer)
					}
				}
			})
		}
	}
}

// A call whose context has ended is not sent, and says so.
func TestContextEndsACall(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q.untouched(t, "calls whose context has ended", func() {
			for _, c := range busyCalls[q.layout] {
				if err := c.call(ctx, q, q.fakes()); !errors.Is(err, flow.ErrTransient) || errors.Is(err, flow.ErrAmbiguous) {
					t.Errorf("%s: %v, want a transient error that is not ambiguous", c.name, err)
				}
			}
		})
	})
}

// fakes are reservations that were never made.
func (q *queue) fakes() []*flow.Reservation {
	l := flow.NewLease(0, 3)
	for i := range l.Items {
		l.Items[i].Handle = strings.Repeat("0", 32) + ":" + body(i)
	}
	return items(flow.Reserved{Lease: l})
}

// onCluster counts how often a cluster client is told to look who serves what.
type onCluster struct {
	redis.UniversalClient
	looks int
}

func (c *onCluster) ReloadState(context.Context) { c.looks++ }

// A cluster client does not look for the new master by itself when the old one is gone, as our commands are sent once:
// every call tells it to. What only a change of the call can mend does not.
func TestClusterStateIsLookedAtAgain(t *testing.T) { // R3, B15
	t.Parallel()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		for _, c := range busyCalls[layout] {
			t.Run(layout.String()+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				mini := testredis.Mini(t)
				b := testredis.Backend{Client: testredis.Client(t, mini.Addr()), Prefix: testredis.Prefix(t), Mini: mini}
				direct := newQueue(t, b, layout, nil)
				held := direct.prepare(t)
				client := &onCluster{UniversalClient: b.Client}
				q := direct.with(t, func(o *Options) { o.Client = client })
				mini.SetError("WRONGTYPE of another kind")
				if err := c.call(t.Context(), q, held); !errors.Is(err, flow.ErrPermanent) || client.looks != 0 {
					t.Errorf("%v, %d looks, want a permanent error and none", err, client.looks)
				}
				mini.Close()
				if err := c.call(t.Context(), q, held); !errors.Is(err, flow.ErrTransient) || client.looks != 1 {
					t.Errorf("%v, %d looks, want a transient error and one", err, client.looks)
				}
			})
		}
	}
}
