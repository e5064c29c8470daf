package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/lua"
)

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause queue...",
		Short: "Make every pool leave queues alone, within a second",
		Long: "Make every pool leave queues alone: handlers that run finish, what waits in the pools goes back to the head of its\n" +
			"queue, and nothing is taken until `babelpool resume`. Publishing goes on. Consumers of other languages do not know of it.",
		Args: someQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.flags.with(func(client redis.UniversalClient) error { return a.setPaused(cmd.Context(), client, args, true) })
		},
	}
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume queue...", Short: "End a pause", Args: someQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.flags.with(func(client redis.UniversalClient) error { return a.setPaused(cmd.Context(), client, args, false) })
		},
	}
}

// pausedQueue is what the two commands tell of a queue.
type pausedQueue struct {
	Queue   string `json:"queue"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"` // false when it was so before
}

func (a *app) setPaused(ctx context.Context, client redis.UniversalClient, names []string, on bool) error {
	stores := make([]lua.Store, len(names)) // all names are checked before anything is changed
	for i, name := range names {
		keys, err := a.flags.keys(name)
		if err != nil {
			return err
		}
		stores[i] = lua.New(a.flags.layout, lua.Options{Client: client, Keys: keys})
	}
	done := make([]pausedQueue, 0, len(names))
	for i, store := range stores {
		before, err := store.Paused(ctx)
		if err == nil && before != on {
			if on {
				err = store.Pause(ctx)
			} else {
				err = store.Resume(ctx)
			}
		}
		if err != nil {
			return fmt.Errorf("queue %q: %w", names[i], err)
		}
		done = append(done, pausedQueue{names[i], on, before != on})
	}
	if a.flags.json {
		return writeJSON(a.out, done)
	}
	for _, q := range done {
		state, again := "resumed", "was not paused"
		if on {
			state, again = "paused", "was paused already"
		}
		if !q.Changed {
			state = again
		}
		say(a.out, "%s: %s\n", shown(q.Queue, 80), state)
	}
	return nil
}
