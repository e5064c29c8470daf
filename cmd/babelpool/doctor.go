package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/internal/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor [queue...]",
		Short: "Look for what stops or loses messages, and say what to do",
		Long: "Look at the server, and at the queues named, for what stops or loses messages: its version, persistence, memory\n" +
			"policy and clock; keys of the wrong type, orphans, overdue leases, permissions. Each finding says what to do.\n" +
			"It only reads. The exit code is 1 when there is a problem.",
		Example: "  babelpool doctor orders --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.flags.with(func(client redis.UniversalClient) error { return a.doctor(cmd.Context(), client, args) })
		},
	}
}

func (a *app) doctor(ctx context.Context, client redis.UniversalClient, names []string) error {
	queues := make([]doctor.Queue, len(names))
	flags := a.flags
	flags.cluster = false // that a name has no hash tag is a finding
	for i, name := range names {
		keys, err := flags.keys(name)
		if err != nil {
			return err
		}
		queues[i] = doctor.Queue{Name: name, Layout: flags.layout, Prefix: flags.prefix, Keys: keys}
	}
	findings, err := doctor.Examine(ctx, client, queues)
	if err != nil {
		return err
	}
	if a.flags.json {
		err = writeJSON(a.out, struct {
			Worst    doctor.Level     `json:"worst"`
			Findings []doctor.Finding `json:"findings"`
		}{doctor.Worst(findings), findings})
	} else {
		a.showFindings(findings)
	}
	if err == nil && doctor.Worst(findings) == doctor.Problem {
		return errFound
	}
	return err
}

const mostNamed = 10 // messages of a finding that a person is shown

func (a *app) showFindings(findings []doctor.Finding) {
	queue := ""
	for _, f := range findings {
		if f.Queue != queue {
			queue = f.Queue
			say(a.out, "\n%s\n", a.look.strong.Render("queue "+shown(queue, 80)))
		}
		mark := a.look.good.Render("ok     ")
		switch f.Level {
		case doctor.Info:
			mark = a.look.faint.Render("info   ")
		case doctor.Warning:
			mark = a.look.mid.Render("warning")
		case doctor.Unknown:
			mark = a.look.mid.Render("unknown")
		case doctor.Problem:
			mark = a.look.bad.Render("PROBLEM")
		case doctor.OK:
		}
		say(a.out, "%s  %-18s %s\n", mark, f.Check, f.Found)
		for i, m := range f.Messages {
			if i == mostNamed {
				say(a.out, "%29s… and %d more; --json names them\n", "", len(f.Messages)-i)
				break
			}
			say(a.out, "%29s%s  %s\n", "", shown(m.ID, 64), shown(m.URN, 64))
		}
		if f.Advice != "" {
			say(a.out, "%28s%s\n", "", a.look.faint.Render("→ "+f.Advice))
		}
	}
}
