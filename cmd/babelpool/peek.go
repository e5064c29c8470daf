package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

// message is what peek and inflight tell of a message.
type message struct {
	ID       string   `json:"id"`
	URN      string   `json:"urn"`
	AgeS     *float64 `json:"age_seconds"` // since created_at
	Attempts int64    `json:"attempts"`
	Due      *string  `json:"due,omitempty"`    // when it becomes ready, or its lease ends
	Orphan   bool     `json:"orphan,omitempty"` // in flight without a deadline (L7), or with one that never ends
	Bad      string   `json:"bad,omitempty"`    // why it is no acceptable envelope
	Stored   string   `json:"stored"`
}

func messageOf(stored string) message {
	m, body := message{Stored: stored}, stored
	if frame, framed := envelope.Unframe(stored); framed {
		body = frame.Body
	}
	env, err := envelope.Decode(body)
	if err != nil {
		m.Bad = err.Error()
		return m
	}
	m.ID, m.URN, m.Attempts = env.Meta.ID, env.URN, env.Attempts
	if env.Meta.CreatedAt > 0 {
		age := max(0, time.Since(time.UnixMilli(env.Meta.CreatedAt)).Seconds())
		m.AgeS = &age
	}
	return m
}

func (m *message) due(score float64) {
	at := time.UnixMilli(int64(score * 1000)).UTC().Format(time.RFC3339)
	m.Due = &at
}

func (a *app) peekCommand() *cobra.Command {
	var delayed bool
	var most int64
	cmd := &cobra.Command{
		Use: "peek queue", Short: "Look at the next messages of a queue; nothing is taken", Args: oneQueue,
		Example: "  babelpool peek orders --limit 3 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onQueue(args[0], func(client redis.UniversalClient, keys lua.Keys) error {
				all, err := a.peek(cmd.Context(), client, keys, delayed, most)
				if err != nil {
					return err
				}
				return a.showMessages(all, "due in")
			})
		},
	}
	cmd.Flags().BoolVar(&delayed, "delayed", false, "the delayed messages that are due next (zset layout)")
	cmd.Flags().Int64Var(&most, "limit", 10, "most to show")
	return cmd
}

// onQueue runs do with a client and a queue's keys.
func (a *app) onQueue(queue string, do func(client redis.UniversalClient, keys lua.Keys) error) error {
	keys, err := a.flags.keys(queue)
	if err != nil {
		return err
	}
	return a.flags.with(func(client redis.UniversalClient) error { return do(client, keys) })
}

func (a *app) peek(ctx context.Context, client redis.UniversalClient, keys lua.Keys, delayed bool, most int64) ([]message, error) {
	if most < 1 {
		return nil, usageError{fmt.Errorf("--limit: %d is less than 1", most)}
	}
	if !delayed {
		stored, err := client.LRange(ctx, keys.Ready, 0, most-1).Result()
		all := make([]message, len(stored))
		for i, s := range stored {
			all[i] = messageOf(s)
		}
		return all, lua.Classify("peek", err)
	}
	if a.flags.layout == pool.Legacy {
		return nil, usageError{fmt.Errorf("--delayed: the legacy layout has no delayed messages (L1)")}
	}
	scored, err := client.ZRangeWithScores(ctx, keys.Delayed, 0, most-1).Result()
	all := make([]message, len(scored))
	for i, z := range scored {
		all[i] = messageOf(fmt.Sprint(z.Member))
		all[i].due(z.Score)
	}
	return all, lua.Classify("peek", err)
}

func (a *app) showMessages(all []message, due string) error {
	if a.flags.json {
		return writeJSON(a.out, all)
	}
	rows := make([][]string, len(all))
	for i, m := range all {
		rows[i] = []string{shown(m.ID, 40), shown(m.URN, 40), strconv.FormatInt(m.Attempts, 10), "-", "-", ""}
		if m.AgeS != nil {
			rows[i][3] = ago(time.Duration(*m.AgeS * float64(time.Second)))
		}
		if m.Due != nil {
			at, _ := time.Parse(time.RFC3339, *m.Due)
			if left := time.Until(at).Truncate(time.Second); left >= 0 {
				rows[i][4] = ago(left)
			} else {
				rows[i][4] = "overdue " + ago(-left)
			}
		}
		switch {
		case m.Orphan:
			rows[i][5] = a.look.bad.Render("orphan")
		case m.Bad != "":
			rows[i][5] = a.look.bad.Render(shown(m.Bad, 50))
		}
	}
	say(a.out, "%s", a.look.table([]string{"id", "urn", ">attempts", ">age", ">" + due, ""}, rows))
	return nil
}

func (a *app) inflightCommand() *cobra.Command {
	var most int64
	cmd := &cobra.Command{
		Use: "inflight queue", Short: "Show what consumers hold, with the ends of the leases", Args: oneQueue,
		Long: "Show what consumers hold, those whose lease ends next first. An orphan has no deadline, or one that never ends, so that\n" +
			"nothing brings it back: its consumer died before it wrote one, or writes none (L7).",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onQueue(args[0], func(client redis.UniversalClient, keys lua.Keys) error {
				all, err := a.inFlight(cmd.Context(), client, keys, most)
				if err != nil {
					return err
				}
				return a.showMessages(all, "lease ends in")
			})
		},
	}
	cmd.Flags().Int64Var(&most, "limit", 100, "most to show, beside the orphans")
	return cmd
}

// deadlineToken is what stands before the value in a deadline member (L2).
const deadlineToken = len("0123456789abcdef0123456789abcdef:")

func (a *app) inFlight(ctx context.Context, client redis.UniversalClient, keys lua.Keys, most int64) ([]message, error) {
	audit, err := lua.New(a.flags.layout, lua.Options{Client: client, Keys: keys}).Audit(ctx)
	if err != nil {
		return nil, err
	}
	all := []message{}
	for _, value := range audit.Values {
		m := messageOf(value)
		m.Orphan = true
		all = append(all, m)
	}
	scored, err := client.ZRangeWithScores(ctx, keys.Leases(), 0, max(most, 1)-1).Result()
	if err != nil {
		return nil, lua.Classify("in flight", err)
	}
	for _, z := range scored {
		stored := fmt.Sprint(z.Member)
		if a.flags.layout == pool.Legacy {
			stored = stored[min(deadlineToken, len(stored)):]
		}
		m := messageOf(stored)
		if m.Orphan = z.Score > 1e15; !m.Orphan { // +inf: reserved by somebody without retry_after
			m.due(z.Score)
		}
		all = append(all, m)
	}
	return all, nil
}

func (a *app) sweepCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sweep queue", Short: "Return expired leases and due messages to ready, as consumers do", Args: oneQueue,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onQueue(args[0], func(client redis.UniversalClient, keys lua.Keys) error {
				// Leases have the ends that were written; the length counts only for what is reserved.
				store := lua.New(a.flags.layout, lua.Options{Client: client, Keys: keys, RetryAfter: time.Minute})
				const chunk = 1000
				total, moved := 0, chunk
				var err error
				for moved == chunk && err == nil {
					if moved, err = store.Sweep(cmd.Context(), chunk); err == nil {
						total += moved
					}
				}
				if a.flags.json {
					return errors.Join(err, writeJSON(a.out, map[string]int{"moved": total}))
				}
				say(a.out, "%s messages are ready again\n", count(int64(total)))
				return err
			})
		},
	}
}

func (a *app) adoptCommand() *cobra.Command {
	var c change
	lease, again := 90*time.Second, 2*time.Second
	cmd := &cobra.Command{
		Use: "adopt queue", Short: "Give orphans in flight a lease, so that they come back when it ends (legacy)", Args: oneQueue,
		Long: "Give messages in flight without a deadline one (L7). They come back to ready when it ends. Do it only when no consumer\n" +
			"without deadlines runs on the queue: all that such a one works on looks like orphans, and would be handled twice.\n" +
			"It looks twice, since a consumer may be about to write a deadline; what is an orphan both times is one.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.flags.layout == pool.Zset {
				return usageError{fmt.Errorf("the zset layout has no orphans: every reserved message has a lease")}
			}
			if lease < 2*time.Second {
				return usageError{fmt.Errorf("--lease: %s is less than 2s (L5)", lease)}
			}
			return a.onQueue(args[0], func(client redis.UniversalClient, keys lua.Keys) error {
				return a.adopt(cmd.Context(), lua.NewLegacy(lua.Options{Client: client, Keys: keys, RetryAfter: lease}), args[0], lease, again, c)
			})
		},
	}
	cmd.Flags().DurationVar(&lease, "lease", lease, "how long until they come back")
	cmd.Flags().DurationVar(&again, "look-again", again, "how long after the first look comes the second")
	c.add(cmd)
	return cmd
}

// orphansTwice are the orphans of two looks at a queue, and how many there are beside.
func orphansTwice(ctx context.Context, store *lua.Legacy, again time.Duration) (values []string, all int64, err error) {
	first, err := store.Audit(ctx)
	if err != nil || len(first.Values) == 0 {
		return nil, 0, err
	}
	select {
	case <-time.After(again):
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	second, err := store.Audit(ctx)
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]int{}
	for _, value := range first.Values {
		seen[value]++
	}
	for _, value := range second.Values {
		if seen[value] > 0 {
			seen[value]--
			values = append(values, value)
		}
	}
	return values, second.Orphans, nil
}

func (a *app) adopt(ctx context.Context, store *lua.Legacy, queue string, lease, again time.Duration, c change) error {
	values, orphans, err := orphansTwice(ctx, store, again)
	if err != nil {
		return err
	}
	n := len(values)
	if n > 0 && !c.dryRun {
		if err := a.confirm(c, "%s orphans of queue %s come back in %s.", count(int64(n)), shown(queue, 80), lease); err != nil {
			return err
		}
		if n, err = store.Adopt(ctx, values); err != nil {
			return err
		}
	}
	if a.flags.json {
		return writeJSON(a.out, struct {
			DryRun  bool `json:"dry_run"`
			Adopted int  `json:"adopted"`
		}{c.dryRun, n})
	}
	verb := "adopted"
	if c.dryRun {
		verb = "would be adopted"
	}
	say(a.out, "%s orphans %s\n", count(int64(n)), verb)
	if orphans > int64(len(values)) {
		say(a.out, "there are %s; run it again\n", count(orphans))
	}
	return nil
}
