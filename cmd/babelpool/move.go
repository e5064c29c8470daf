package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/admin"
)

// moveFlags are the flags of move.
type moveFlags struct {
	change
	toLayout, toPrefix, toDeadLetterKey string
	options                             admin.MoveOptions
}

func (a *app) moveCommand() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use: "move queue target", Short: "Move a queue's messages to another name or layout",
		Long: "Move what is ready and delayed in a queue to another, in its order. Consumers and publishers may run on both: what is in\n" +
			"flight stays with its consumers, and what is published meanwhile stays too. So: let publishers use the target, then move,\n" +
			"and move again until nothing is left. It may be cut off at any moment and begun anew.",
		Example: "  babelpool move orders shop-orders\n" +
			"  babelpool move orders orders --to-layout zset --to-key-prefix laravel-database- --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("name a queue and its target, not %d", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to, err := a.moveQueues(args, cmd.Flags().Changed("to-key-prefix"), f)
			if err != nil {
				return err
			}
			return a.flags.with(func(client redis.UniversalClient) error { return a.move(cmd.Context(), client, from, to, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.toLayout, "to-layout", "", "layout of the target, legacy or zset (default: that of the queue)")
	flags.StringVar(&f.toPrefix, "to-key-prefix", "", "goes before the target's keys (default: that of the queue)")
	flags.StringVar(&f.toDeadLetterKey, "to-dead-letter-key", "", "key of the target's dead letters, where a pool sets another one")
	flags.BoolVar(&f.options.DeadLetters, "dead-letters", false, "move the dead letters too")
	flags.BoolVar(&f.options.DropHeaders, "drop-headers", false, "move messages with headers to the zset layout, which has none")
	flags.BoolVar(&f.options.DelayedNow, "delayed-now", false, "put delayed messages in the target at once, instead of keeping their time")
	flags.Int64Var(&f.options.Limit, "limit", 0, "most to move (default: all)")
	_ = cmd.RegisterFlagCompletionFunc("to-layout", cobra.FixedCompletions([]string{"legacy", "zset"}, cobra.ShellCompDirectiveNoFileComp))
	f.add(cmd)
	return cmd
}

// moveQueues are the two queues of the command line.
func (a *app) moveQueues(args []string, prefixed bool, f moveFlags) (from, to admin.Queue, err error) {
	from = admin.Queue{Name: args[0], Layout: a.flags.layout, KeyPrefix: a.flags.prefix, DeadLetterKey: a.flags.deadLetterKey}
	to = admin.Queue{Name: args[1], Layout: a.flags.layout, KeyPrefix: a.flags.prefix, DeadLetterKey: f.toDeadLetterKey}
	if prefixed {
		to.KeyPrefix = f.toPrefix
	}
	switch f.toLayout {
	case "":
	case "legacy":
		to.Layout = admin.Legacy
	case "zset":
		to.Layout = admin.Zset
	default:
		return from, to, usageError{fmt.Errorf("--to-layout: %q is neither legacy nor zset", f.toLayout)}
	}
	return from, to, nil
}

func (a *app) move(ctx context.Context, client redis.UniversalClient, from, to admin.Queue, f moveFlags) error {
	plan := f.options
	plan.DryRun = true
	report, err := admin.Move(ctx, client, from, to, plan)
	if errors.Is(err, admin.ErrOptions) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	// Also where nothing is to be seen: a move that was cut off between two slots may have left messages on their way.
	if !f.dryRun {
		question := "%s messages of queue %s (%s) go to queue %s (%s)."
		if err := a.confirm(f.change, question, count(report.Moved()), shown(from.Name, 80), from.Layout, shown(to.Name, 80), to.Layout); err != nil {
			return err
		}
		report, err = admin.Move(ctx, client, from, to, f.options)
	}
	if a.flags.json {
		return errors.Join(err, writeJSON(a.out, struct {
			DryRun bool `json:"dry_run"`
			admin.MoveReport
		}{f.dryRun, report}))
	}
	verb := "moved"
	if f.dryRun {
		verb = "would be moved"
	}
	say(a.out, "%s ready, %s delayed and %s dead letters %s\n", count(report.Ready), count(report.Delayed), count(report.DeadLetters), verb)
	for _, why := range slices.Sorted(maps.Keys(report.Stayed)) {
		say(a.out, "%s stay: %s\n", count(report.Stayed[why]), whyStayed[why])
	}
	if report.InFlight > 0 {
		say(a.out, "%s are in flight and stay with their consumers; move again when they are done\n", count(report.InFlight))
	}
	return err
}

// whyStayed explains why messages stay, and what to do.
var whyStayed = map[string]string{
	admin.StayedForeign: "they are no envelopes, and cannot change their layout; peek shows them",
	admin.StayedHeaders: "the zset layout has no headers; --drop-headers moves them without",
	admin.StayedDelayed: "their time cannot be kept there; wait, or --delayed-now moves them at once",
	admin.StayedTwin:    "the target has delayed the same bytes already; move again when those are due",
}
