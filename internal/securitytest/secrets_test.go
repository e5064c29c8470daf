package securitytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
)

const (
	forged      = "level=ERROR msg=FORGED"
	hostile     = "x\r\n" + forged + "\x1b[31m\x1b]0;title\a\x00\u2028\u202e\x7f%s%d"
	hostileName = "or\nders\x1b[31m\r\n" + forged
)

// hostileBody is an envelope whose every name wants out of its log line.
func hostileBody(urn, more string) string {
	quoted := func(s string) string {
		text, _ := json.Marshal(s) // a string: it never fails
		return string(text)
	}
	return fmt.Sprintf(`{"job":%s,"trace_id":%s,"data":{"card":"%s"},"meta":{"id":%s,"queue":%s,"lang":%s,"schema_version":1,`+
		`"created_at":1,"source":"%s"},"timestamp":"%s","attempts":0%s}`, quoted(urn), quoted(hostile), secretInBody, quoted(hostile),
		quoted(hostile), quoted(hostile), secretInBody, secretInBody, more)
}

// TestSecretsAndHostileTexts runs pools and publishers through failures of every kind, with a password in the URL, secrets
// in bodies and headers, and names and error texts that try to forge log lines. Nothing of that is in any log line or error
// as it came (B48).
func TestSecretsAndHostileTexts(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			s := newStationOn(t, layout, "", hostileName, redisproc.Config{})
			url := s.user("consumer", append(commands(t, "consumer"), commands(t, "publisher")...), []string{"~*"})
			logs, told, own := newLogBook(), &errorBook{}, &errorBook{}

			unruly := errors.New(hostile + strings.Repeat("é\n"+forged, 1000))
			mux, stuck, release := router.NewMux(), make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(release) })
			for urn, handler := range map[string]delivery.HandlerFunc{
				hostile + "fail":  func(context.Context, *delivery.Delivery) error { return unruly },
				hostile + "dead":  func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(unruly) },
				hostile + "panic": func(context.Context, *delivery.Delivery) error { panic(unruly) },
				hostile + "exit":  func(context.Context, *delivery.Delivery) error { runtime.Goexit(); return nil },
				hostile + "late":  func(ctx context.Context, _ *delivery.Delivery) error { return retry.Sleep(ctx, time.Minute) },
				hostile + "bind": func(_ context.Context, d *delivery.Delivery) error {
					var into struct {
						Card int `json:"card"`
					}
					return delivery.DeadLetter(d.Bind(&into))
				},
				hostile + "stuck": func(context.Context, *delivery.Delivery) error { close(stuck); <-release; return nil },
				"urn:ack":         ackAll,
			} {
				mux.Register(urn, handler)
			}
			cfg := pool.Config{
				Client: open(t, url), Queues: []pool.Queue{{Name: hostileName}}, Layout: layout, KeyPrefix: s.prefix, Handler: mux,
				Concurrency: 8, RetryAfter: 2 * time.Second, HandlerTimeout: 500 * time.Millisecond, MaxAttempts: 1,
				DrainTimeout: 100 * time.Millisecond, HardStopTimeout: 500 * time.Millisecond, Logger: logs.logger(),
				OnError: func(_ context.Context, err error, _ envelope.Envelope, _ string) {
					if errors.Is(err, unruly) {
						own.add(err) // the handler's own words, which it may hear again
					} else {
						told.add(err)
					}
					panic(hostile)
				},
			}
			if layout == pool.Legacy {
				cfg.LegacyRetry = pool.Requeue
			}
			p := start(t, cfg)
			var texts []string
			for _, urn := range []string{"fail", "dead", "panic", "exit", "late", "bind", "unknown"} {
				texts = append(texts, hostileBody(hostile+urn, ""))
			}
			texts = append(texts,
				secretInBody, `{"secret":"`+secretInBody+`"}`, `{"job":"Native","data":"`+secretInBody+`"}`, `{"job":"`+secretInBody, "",
				envelope.EncodeFrame(hostileBody(hostile+"fail", ""), map[string]string{"authorization": secretInHeader}),
				envelope.EncodeFrame(secretInBody, map[string]string{"authorization": secretInHeader}),
				strings.Repeat("[", 100_000), hostileBody("urn:ack", `,"attempts":-1`), hostileBody("urn:ack", `,"attempts":"`+secretInBody+`"`),
			)
			s.push(texts...)
			p.until("all are in the dead letters", func(pool.QueueStats) bool { return s.dead() == int64(len(texts)) })
			s.trouble(p, logs)

			s.push(hostileBody(hostile+"stuck", ""))
			testredis.Await(t, stuck, patience, "the handler that does not return")
			err := p.stop()
			if !errors.Is(err, pool.ErrAbandoned) {
				t.Errorf("Run: %v, want ErrAbandoned", err)
			}
			told.add(err)
			s.publishInTrouble(url, told)
			badConfigs(t, url, told)
			logs.check(t)
			told.check(t, 25)
			if len(own.texts) == 0 {
				t.Error("OnError heard nothing of the handlers' failures")
			}
			if found := secretsIn(library.String()); found != nil {
				t.Errorf("the client library logs %q", found)
			}
			for text, value := range map[string]any{"the client": cfg.Client, "the pool's config": cfg} {
				if found := secretsIn(fmt.Sprintf("%v %+v", value, value)); found != nil {
					t.Errorf("%s, printed, tells %q", text, found)
				}
			}
		})
	}
}

// trouble breaks what a pool depends on, one thing after the other, waits until the pool says so, mends it, and waits
// until the pool says that too.
func (s *station) trouble(p *running, logs *logBook) {
	s.t.Helper()
	const heldUp, mended = "reserving is held up", "reserving works again"
	setUser := func(rules ...any) { s.do(append([]any{"ACL", "SETUSER", "consumer"}, rules...)...) }
	disconnect := func() { _ = s.control.Do(context.Background(), "CLIENT", "KILL", "USER", "consumer").Err() } // nobody may be there
	for _, one := range []struct {
		name        string
		breaks, fix func()
	}{
		{"permission", func() { setUser("-evalsha", "-eval") }, func() { setUser("+evalsha", "+eval") }},
		{"keys", func() { setUser("resetkeys"); disconnect() }, func() { setUser("~*") }},
		{
			"password", func() { setUser("resetpass", ">another"); disconnect() },
			func() { setUser("resetpass", ">"+secretInPassword) },
		},
		{"a key of another type", func() {
			s.do("SET", s.keys.Ready, secretInBody)
			disconnect()
		}, func() { s.do("DEL", s.keys.Ready) }},
		{"a dead server", func() { must(s.t, s.server.Kill()) }, func() {
			must(s.t, s.server.Restart(context.Background()))
			s.user("consumer", append(commands(s.t, "consumer"), commands(s.t, "publisher")...), []string{"~*"})
		}},
	} {
		before, after := logs.count(heldUp), logs.count(mended)
		one.breaks()
		testredis.Eventually(s.t, patience, func() bool { return logs.count(heldUp) > before }, "%s: the pool is held up", one.name)
		one.fix()
		testredis.Eventually(s.t, patience, func() bool { return logs.count(mended) > after }, "%s: the pool works again", one.name)
	}
	acked := p.counts().Acked
	s.push(body("urn:ack", 1))
	p.until("a message is acked afterwards", func(c pool.QueueStats) bool { return c.Acked > acked })
}

// publishInTrouble collects a publisher's errors of every class.
func (s *station) publishInTrouble(url string, told *errorBook) {
	s.t.Helper()
	t, ctx := s.t, s.t.Context()
	s.clear()
	logs := newLogBook()
	at := func(url string) *publisher.Publisher {
		p, err := publisher.New(publisher.Config{Client: open(t, url), Queue: hostileName, KeyPrefix: s.prefix, Layout: s.layout, Logger: logs.logger()})
		must(t, err)
		return p
	}
	p := at(url)
	data := map[string]string{"card": secretInBody}
	for _, bad := range []any{secretInBody, []string{secretInBody}, map[string]any{"card": make(chan int), "x": secretInBody}, json.RawMessage(`{"card":"` + secretInBody)} {
		_, err := p.Publish(ctx, hostile, bad)
		if !errors.Is(err, publisher.ErrEncode) {
			t.Errorf("%T was published: %v", bad, err)
		}
		told.add(err)
	}
	all := func(p *publisher.Publisher, class error) {
		t.Helper()
		_, err1 := p.Publish(ctx, hostile, data)
		_, err2 := p.PublishWithHeaders(ctx, map[string]string{"authorization": secretInHeader}, hostile, data)
		_, err3 := p.PublishBatch(ctx, []publisher.Message{{URN: hostile, Data: data}})
		_, err4 := p.PublishRaw(ctx, []string{secretInBody})
		for _, err := range []error{err1, err2, err3, err4} {
			if !errors.Is(err, class) {
				t.Errorf("published: %v, want %v", err, class)
			}
			told.add(err)
		}
	}
	s.do("SET", s.keys.Ready, secretInBody)
	all(p, publisher.ErrRefused)
	s.do("DEL", s.keys.Ready)
	all(at(strings.Replace(url, secretInPassword, secretInPassword+"2", 1)), publisher.ErrRefused)
	all(at(strings.Replace(url, s.server.Addr(), "127.0.0.1:1", 1)), publisher.ErrUnavailable)
	if strings.Contains(logs.String(), forged) && s.layout == pool.Legacy {
		t.Error("a publisher has nothing to log here")
	}
	if found := secretsIn(logs.String()); found != nil {
		t.Errorf("a publisher logs %q", found)
	}
}

// badConfigs collects errors of configs and URLs.
func badConfigs(t *testing.T, url string, told *errorBook) {
	t.Helper()
	for _, bad := range []string{
		url + "/" + secretInPassword, strings.Replace(url, "redis:", "http:", 1), url + ":port", strings.Replace(url, "@", "%zz@", 1),
		url + "?pool_size=" + secretInPassword, strings.Replace(url, secretInPassword, secretInPassword+"\n", 1),
	} {
		client, err := pool.OpenRedis(bad)
		if err == nil {
			_ = client.Close()
			t.Errorf("OpenRedis accepts %q", bad)
		}
		told.add(err)
	}
	client := open(t, url)
	for _, cfg := range []pool.Config{
		{Client: client, Handler: ackAll, Queues: []pool.Queue{{Name: hostileName + ":processing"}}},
		{Client: client, Handler: ackAll, Queues: []pool.Queue{{Name: hostileName}, {Name: hostileName}}, KeyPrefix: "{" + hostileName + "}"},
		{Client: client, Queues: []pool.Queue{{Name: hostileName}}, MaxAttempts: 3},
		{Client: client, Handler: ackAll, Queues: []pool.Queue{{Name: hostileName, DeadLetterKey: hostileName + ":paused", RetryAfter: 1}}},
	} {
		err := pool.New(cfg).Run(t.Context())
		if !errors.Is(err, pool.ErrConfig) {
			t.Errorf("Run: %v", err)
		}
		told.add(err)
	}
	_, err := publisher.New(publisher.Config{Client: client, Queue: hostileName + ":notify", KeyPrefix: "{" + hostile + "}"})
	if !errors.Is(err, publisher.ErrConfig) {
		t.Errorf("publisher.New: %v", err)
	}
	told.add(err)
}

// TestRefusedCommandsTellNoArguments: a server that does not know a command repeats the beginning of its arguments: the
// password of AUTH, the body of RPUSH (B48). Proxies and hosted servers are like that.
func TestRefusedCommandsTellNoArguments(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		for name, commands := range map[string][]string{
			"no login": {"HELLO", "AUTH"}, "no data": {"RPUSH", "EVAL", "EVALSHA", "BLMOVE", "BLPOP", "INFO"},
		} {
			t.Run(layout.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				var args []string
				for _, command := range commands {
					args = append(args, "--rename-command", command, "")
				}
				if name == "no data" { // redisproc waits until INFO answers
					args = args[:len(args)-3]
				}
				server := testredis.Server(t, redisproc.Config{Args: args})
				url := "redis://" + server.Addr()
				if name == "no login" {
					url = "redis://default:" + secretInPassword + "@" + server.Addr()
				}
				// That the server does repeat them, or this test shows nothing.
				plain := redis.NewClient(&redis.Options{Addr: server.Addr()})
				t.Cleanup(func() { _ = plain.Close() })
				if err := plain.Do(t.Context(), commands[0], secretInBody).Err(); name == "no data" && (err == nil || secretsIn(err.Error()) == nil) {
					t.Fatalf("the server keeps secrets: %v", err)
				}

				logs, told := newLogBook(), &errorBook{}
				p, err := publisher.New(publisher.Config{Client: open(t, url), Queue: "q", Layout: layout, Logger: logs.logger()})
				must(t, err)
				_, err = p.PublishRaw(t.Context(), []string{secretInBody})
				if !errors.Is(err, publisher.ErrRefused) || !strings.Contains(err.Error(), "unknown command") {
					t.Errorf("published: %v", err)
				}
				told.add(err)
				run := start(t, pool.Config{
					Client: open(t, url), Queues: []pool.Queue{{Name: "q"}}, Layout: layout, Handler: ackAll, Logger: logs.logger(),
				})
				testredis.Eventually(t, patience, func() bool { return logs.count("reserving is held up") == 1 }, "the pool is held up")
				told.add(run.stop())
				logs.check(t)
				told.check(t, 1)
			})
		}
	}
}
