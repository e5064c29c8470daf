package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/redrive"
)

func (a *app) dlqCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dlq", Short: "Look at dead letters, send them back, remove them",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("dlq has no command %q", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(a.dlqList(), a.dlqShow(), a.dlqRedrive(), a.dlqPurge(), a.dlqExport(), a.dlqImport())
	return cmd
}

// withLetters runs do on the dead letters of a queue.
func (a *app) withLetters(queue string, do func(dead *redrive.DeadLetters) error) error {
	return a.flags.with(func(client redis.UniversalClient) error {
		dead, err := redrive.Open(redrive.Config{
			Client: client, Queue: queue, Layout: a.flags.layout, KeyPrefix: a.flags.prefix, DeadLetterKey: a.flags.deadLetterKey,
		})
		if err != nil {
			return usageError{err}
		}
		return do(dead)
	})
}

// addFilter gives a command the flags of a filter.
func addFilter(cmd *cobra.Command, f *redrive.Filter) {
	flags := cmd.Flags()
	flags.StringVar(&f.URN, "urn", "", "only messages of this URN")
	flags.StringVar(&f.Reason, "reason", "", "only those given up for this reason: failed, unknown_urn or poison")
	flags.StringSliceVar(&f.IDs, "id", nil, "only the message with this meta.id; may be given several times")
	flags.DurationVar(&f.OlderThan, "older-than", 0, "only those given up longer ago, such as 1h")
	flags.DurationVar(&f.NewerThan, "newer-than", 0, "only those given up since then, such as 30m")
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions([]string{"failed", "unknown_urn", "poison"}, cobra.ShellCompDirectiveNoFileComp))
}

// letter is what list and show tell of a dead letter.
type letter struct {
	ID            string  `json:"id"`
	URN           string  `json:"urn"`
	Reason        string  `json:"reason"`
	Error         *string `json:"error"`
	Exception     *string `json:"exception"`
	FailedAt      *string `json:"failed_at"`
	OriginalQueue string  `json:"original_queue"`
	Attempts      int64   `json:"attempts"`
	Bad           string  `json:"bad,omitempty"`    // why it is no envelope
	Record        *string `json:"record,omitempty"` // show alone
}

func letterOf(l redrive.Letter) letter {
	v := letter{
		ID: l.ID, URN: l.URN, Reason: l.Why.Reason, Error: l.Why.Error, Exception: l.Why.Exception,
		OriginalQueue: l.Why.OriginalQueue, Attempts: l.Why.Attempts,
	}
	if l.Why.FailedAt > 0 {
		at := time.UnixMilli(l.Why.FailedAt).UTC().Format(time.RFC3339)
		v.FailedAt = &at
	}
	if l.Bad != nil {
		v.Bad = l.Bad.Error()
	}
	return v
}

func (a *app) dlqList() *cobra.Command {
	var f redrive.Filter
	var most int64
	cmd := &cobra.Command{
		Use: "list queue", Short: "List dead letters, oldest first", Args: oneQueue,
		Example: "  babelpool dlq list orders --reason failed --newer-than 1h",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLetters(args[0], func(dead *redrive.DeadLetters) error {
				all, err := collect(cmd.Context(), dead, f, most)
				if err != nil {
					return err
				}
				if a.flags.json {
					return writeJSON(a.out, all)
				}
				rows := make([][]string, len(all))
				for i, l := range all {
					age, text := "-", ""
					if l.FailedAt != nil {
						at, _ := time.Parse(time.RFC3339, *l.FailedAt)
						age = ago(time.Since(at).Truncate(time.Second))
					}
					if l.Error != nil {
						text = *l.Error
					} else if l.Bad != "" {
						text = l.Bad
					}
					rows[i] = []string{shown(l.ID, 40), shown(l.URN, 40), orDash(l.Reason), age, a.look.bad.Render(shownOrEmpty(text, 60))}
				}
				say(a.out, "%s", a.look.table([]string{"id", "urn", "reason", ">ago", "error"}, rows))
				total, err := dead.Len(cmd.Context())
				if err == nil && int64(len(all)) < total {
					say(a.out, "%s\n", a.look.faint.Render(fmt.Sprintf("%d of %s; --limit shows more, the filters fewer", len(all), count(total))))
				}
				return err
			})
		},
	}
	addFilter(cmd, &f)
	cmd.Flags().Int64Var(&most, "limit", 50, "most to list; 0 for all")
	return cmd
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return shown(text, 20)
}

func shownOrEmpty(text string, most int) string {
	if text == "" {
		return ""
	}
	return shown(text, most)
}

func collect(ctx context.Context, dead *redrive.DeadLetters, f redrive.Filter, most int64) ([]letter, error) {
	all := []letter{}
	err := dead.List(ctx, f, func(l redrive.Letter) bool {
		all = append(all, letterOf(l))
		return most == 0 || int64(len(all)) < most
	})
	return all, err
}

func (a *app) dlqShow() *cobra.Command {
	return &cobra.Command{
		Use: "show queue id...", Short: "Show dead letters whole, by their meta.id",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{errors.New("name a queue, and the id of a message or several")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLetters(args[0], func(dead *redrive.DeadLetters) error {
				all := []letter{}
				err := dead.List(cmd.Context(), redrive.Filter{IDs: args[1:]}, func(l redrive.Letter) bool {
					v := letterOf(l)
					v.Record = &l.Raw
					all = append(all, v)
					return true
				})
				switch {
				case err != nil:
					return err
				case a.flags.json:
					return writeJSON(a.out, all)
				case len(all) == 0:
					return fmt.Errorf("none of these is a dead letter of queue %q", args[0])
				}
				for _, l := range all {
					say(a.out, "%s  %s\n", a.look.strong.Render(shown(l.ID, 80)), shown(l.URN, 80))
					for _, field := range []struct{ name, text string }{
						{"reason", l.Reason}, {"error", orEmpty(l.Error)}, {"exception", orEmpty(l.Exception)}, {"failed at", orEmpty(l.FailedAt)},
						{"queue", l.OriginalQueue}, {"attempts", fmt.Sprint(l.Attempts)}, {"not an envelope", l.Bad},
					} {
						if field.text != "" {
							say(a.out, "  %-16s %s\n", field.name, shown(field.text, 4096))
						}
					}
					say(a.out, "  %-16s %s\n", "record", shownText(*l.Record))
				}
				return nil
			})
		},
	}
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (a *app) dlqRedrive() *cobra.Command {
	var f redrive.Filter
	var o redrive.Options
	var c change
	cmd := &cobra.Command{
		Use: "redrive queue", Short: "Send dead letters back to a queue, with attempts 0", Args: oneQueue,
		Long: "Send dead letters back to the queue they failed in, or to another, with attempts 0 and every other byte as it was.\n" +
			"Consumers may go on. A run that is interrupted has lost nothing; start it again.",
		Example: "  babelpool dlq redrive orders --reason failed --rate 100 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLetters(args[0], func(dead *redrive.DeadLetters) error {
				preview := o
				preview.DryRun = true
				report, err := dead.Redrive(cmd.Context(), f, preview)
				if err != nil {
					return usageIf(err, redrive.ErrOptions)
				}
				if !c.dryRun && report.Moved > 0 {
					if err := a.confirm(c, "%s of %s dead letters of queue %s go back to %s.", count(report.Moved), count(report.Looked),
						shown(args[0], 80), targets(report)); err != nil {
						return err
					}
					if report, err = dead.Redrive(cmd.Context(), f, o); err != nil {
						err = fmt.Errorf("%s messages were sent back, then: %w", count(report.Moved), err)
					}
				}
				if a.flags.json {
					return errors.Join(err, writeJSON(a.out, struct {
						DryRun bool `json:"dry_run"`
						redrive.Report
					}{c.dryRun, report}))
				}
				verb := "sent back"
				if c.dryRun {
					verb = "would be sent back"
				}
				say(a.out, "%s of %s looked at %s%s\n", count(report.Moved), count(report.Looked), verb, toTargets(report))
				for reason, n := range report.Skipped {
					say(a.out, "%s stay: %s\n", count(n), whySkipped[reason])
				}
				return err
			})
		},
	}
	addFilter(cmd, &f)
	flags := cmd.Flags()
	flags.StringVar(&o.Queue, "to", "", "the queue they go to (default: the one each failed in)")
	flags.Int64Var(&o.Limit, "limit", 0, "most to send back, the oldest first; 0 for all")
	flags.Float64Var(&o.Rate, "rate", 0, "most per second; 0 for no limit")
	flags.BoolVar(&o.Replay, "replay", false, "mark them, so that handlers see redrive.IsReplay (legacy layout)")
	flags.BoolVar(&o.Raw, "raw", false, "also send what is no envelope, as it is; needs --to")
	c.add(cmd)
	return cmd
}

var whySkipped = map[string]string{
	redrive.SkippedNoURN:   "no acceptable envelope; --raw --to sends them as they are",
	redrive.SkippedNoQueue: "they name no queue; --to does",
	redrive.SkippedGone:    "somebody else took them",
}

func targets(r redrive.Report) string {
	if len(r.Targets) == 1 {
		for queue := range r.Targets {
			return "queue " + shown(queue, 80)
		}
	}
	return fmt.Sprintf("%d queues", len(r.Targets))
}

func toTargets(r redrive.Report) string {
	if r.Moved == 0 {
		return ""
	}
	return ", to " + targets(r)
}

// usageIf makes an error of a kind a mistake in the command line.
func usageIf(err, kind error) error {
	if errors.Is(err, kind) {
		return usageError{err}
	}
	return err
}

func (a *app) dlqPurge() *cobra.Command {
	var f redrive.Filter
	var limit int64
	var c change
	cmd := &cobra.Command{
		Use: "purge queue", Short: "Remove dead letters for good", Args: oneQueue,
		Example: "  babelpool dlq export orders --older-than 720h > old.jsonl && babelpool dlq purge orders --older-than 720h",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLetters(args[0], func(dead *redrive.DeadLetters) error {
				matching := int64(0)
				err := dead.List(cmd.Context(), f, func(redrive.Letter) bool {
					matching++
					return limit == 0 || matching < limit
				})
				if err != nil {
					return err
				}
				if !c.dryRun && matching > 0 {
					if err := a.confirm(c, "%s dead letters of queue %s are removed for good.", count(matching), shown(args[0], 80)); err != nil {
						return err
					}
					matching, err = dead.Purge(cmd.Context(), f, limit)
				}
				if a.flags.json {
					return errors.Join(err, writeJSON(a.out, struct {
						DryRun bool  `json:"dry_run"`
						Purged int64 `json:"purged"`
					}{c.dryRun, matching}))
				}
				verb := "removed"
				if c.dryRun {
					verb = "would be removed"
				}
				say(a.out, "%s dead letters %s\n", count(matching), verb)
				return err
			})
		},
	}
	addFilter(cmd, &f)
	cmd.Flags().Int64Var(&limit, "limit", 0, "most to remove, the oldest first; 0 for all")
	c.add(cmd)
	return cmd
}

func (a *app) dlqExport() *cobra.Command {
	var f redrive.Filter
	cmd := &cobra.Command{
		Use: "export queue", Short: "Write dead letters as JSON lines; nothing is removed", Args: oneQueue,
		Long: "Write dead letters to standard output, one JSON object a line, byte for byte, and a last line with their number, by\n" +
			"which import notices a file that was cut off.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLetters(args[0], func(dead *redrive.DeadLetters) error {
				n, err := dead.Export(cmd.Context(), f, a.out)
				if err == nil && !a.flags.json {
					say(a.err, "%s dead letters written\n", count(n))
				}
				return err
			})
		},
	}
	addFilter(cmd, &f)
	return cmd
}

func (a *app) dlqImport() *cobra.Command {
	var skip int64
	cmd := &cobra.Command{
		Use: "import queue [file]", Short: "Add the records of an export to the dead letters",
		Long: "Add the records of an export, from a file or from standard input, to the dead letters. After an error it says how many\n" +
			"were added; --skip leaves those out of the next try.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{errors.New("name a queue, and a file or none")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in := io.NopCloser(a.in)
			if len(args) == 2 {
				file, err := os.Open(args[1])
				if err != nil {
					return usageError{err}
				}
				in = file
			}
			return errors.Join(a.withLetters(args[0], func(dead *redrive.DeadLetters) error {
				n, err := dead.Import(cmd.Context(), in, skip)
				if err != nil {
					return fmt.Errorf("%s records were added, then: %w", count(n), err)
				}
				if a.flags.json {
					return writeJSON(a.out, struct {
						Added int64 `json:"added"`
					}{n})
				}
				say(a.out, "%s records added\n", count(n))
				return nil
			}), in.Close())
		},
	}
	cmd.Flags().Int64Var(&skip, "skip", 0, "records at the beginning to leave out")
	return cmd
}
