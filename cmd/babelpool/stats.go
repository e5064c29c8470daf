package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/lua"
)

// queueStats is what stats shows of a queue.
type queueStats struct {
	Queue       string   `json:"queue"`
	Layout      string   `json:"layout"`
	Ready       int64    `json:"ready"`
	InFlight    int64    `json:"in_flight"`
	Delayed     int64    `json:"delayed"`
	DeadLetters int64    `json:"dead_letters"`
	OldestAgeS  *float64 `json:"oldest_age_seconds"` // of the oldest ready message, by its created_at; null when there is none, or it says none
	Paused      bool     `json:"paused"`
}

func (s queueStats) oldest() time.Duration {
	if s.OldestAgeS == nil {
		return -1
	}
	return time.Duration(*s.OldestAgeS * float64(time.Second))
}

func (a *app) statsCommand() *cobra.Command {
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "stats queue...",
		Short: "Show what queues hold",
		Long: "Show how many messages are ready, in flight, delayed and dead, and how old the oldest ready one is. It costs the\n" +
			"server a few commands whose cost does not depend on how much there is.\n\n" +
			"With --watch it shows a view that renews itself; q ends it. Rates are net: arrivals less departures. With --json, or\n" +
			"where there is no terminal, it prints a block, or a JSON line, every interval.",
		Example: "  babelpool stats orders invoices --watch --every 500ms",
		Args:    someQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < 100*time.Millisecond {
				return usageError{fmt.Errorf("--every: %s is less than 100ms", every)}
			}
			return a.flags.with(func(client redis.UniversalClient) error {
				g, err := a.gauges(client, args)
				if err != nil {
					return err
				}
				if watch {
					return a.watch(cmd.Context(), g, every)
				}
				return a.showStats(cmd.Context(), g)
			})
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "renew the view until q is pressed")
	cmd.Flags().DurationVar(&every, "every", time.Second, "how often, with --watch")
	return cmd
}

func (a *app) showStats(ctx context.Context, g *gauges) error {
	all, err := g.read(ctx)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.out, all)
	}
	say(a.out, "%s", a.statsTable(all, nil))
	return nil
}

// gauges read queues.
type gauges struct {
	layout string
	names  []string
	stores []lua.Store
}

func (a *app) gauges(client redis.UniversalClient, names []string) (*gauges, error) {
	g := &gauges{layout: a.flags.layout.String(), names: names}
	for _, name := range names {
		keys, err := a.flags.keys(name)
		if err != nil {
			return nil, err
		}
		g.stores = append(g.stores, lua.New(a.flags.layout, lua.Options{Client: client, Keys: keys}))
	}
	return g, nil
}

func (g *gauges) read(ctx context.Context) ([]queueStats, error) {
	all := make([]queueStats, len(g.names))
	for i, name := range g.names {
		s := queueStats{Queue: name, Layout: g.layout}
		d, err := g.stores[i].Depth(ctx)
		if err == nil {
			s.Paused, err = g.stores[i].Paused(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("queue %q: %w", name, err)
		}
		s.Ready, s.InFlight, s.Delayed, s.DeadLetters = d.Ready, d.InFlight, d.Delayed, d.DeadLetters
		if d.Oldest > 0 {
			age := max(0, time.Since(time.UnixMilli(d.Oldest)).Seconds())
			s.OldestAgeS = &age
		}
		all[i] = s
	}
	return all, nil
}

// statsTable draws queues; trends is what --watch knows besides, or nil.
func (a *app) statsTable(all []queueStats, trends []trend) string {
	headings := []string{"queue", ">ready", ">in flight", ">delayed", ">dead", ">oldest", ""}
	if trends != nil {
		headings = append(headings[:6], ">net/s", "ready over time", "")
	}
	rows := make([][]string, len(all))
	for i, s := range all {
		state, dead := "", count(s.DeadLetters)
		if s.Paused {
			state = a.look.mid.Render("paused")
		}
		if s.DeadLetters > 0 {
			dead = a.look.bad.Render(dead)
		}
		rows[i] = []string{a.look.strong.Render(shown(s.Queue, 40)), count(s.Ready), count(s.InFlight), count(s.Delayed), dead, ago(s.oldest())}
		if trends != nil {
			rows[i] = append(rows[i], trends[i].rate(), a.look.good.Render(trends[i].line()))
		}
		rows[i] = append(rows[i], state)
	}
	return a.look.table(headings, rows)
}
