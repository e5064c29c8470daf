package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/term"

	"github.com/babelpool/babelpool/internal/retry"
)

// remembered is how many looks a trend shows.
const remembered = 30

// trend is how a queue's ready messages changed.
type trend struct {
	ready []int64
	at    []time.Time
}

func (t *trend) add(ready int64, at time.Time) {
	t.ready, t.at = append(t.ready, ready), append(t.at, at)
	if n := len(t.ready) - remembered; n > 0 {
		t.ready, t.at = t.ready[n:], t.at[n:]
	}
}

// rate is the net change per second since the look before.
func (t *trend) rate() string {
	n := len(t.ready)
	if n < 2 {
		return "-"
	}
	seconds := t.at[n-1].Sub(t.at[n-2]).Seconds()
	rate := float64(t.ready[n-1]-t.ready[n-2]) / max(seconds, 1e-3)
	if rate == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.0f", rate)
}

// line is the trend as blocks, the highest look as a full one.
func (t *trend) line() string {
	const blocks = "▁▂▃▄▅▆▇█"
	most := int64(1)
	for _, n := range t.ready {
		most = max(most, n)
	}
	var b strings.Builder
	for range remembered - len(t.ready) {
		b.WriteByte(' ')
	}
	for _, n := range t.ready {
		b.WriteRune([]rune(blocks)[n*7/most])
	}
	return b.String()
}

// watch shows the queues again and again: a view on a terminal, else blocks or JSON lines.
func (a *app) watch(ctx context.Context, g *gauges, every time.Duration) error {
	if file, ok := a.out.(*os.File); ok && !a.flags.json && term.IsTerminal(int(file.Fd())) {
		v := newView(ctx, a, g, every)
		_, err := tea.NewProgram(v, tea.WithContext(ctx), tea.WithInput(a.in), tea.WithOutput(a.out), tea.WithAltScreen()).Run()
		return unlessEnded(ctx, err)
	}
	for {
		all, err := g.read(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if a.flags.json {
			if err := json.NewEncoder(a.out).Encode(all); err != nil {
				return err
			}
		} else {
			say(a.out, "%s\n", a.statsTable(all, nil))
		}
		if err := retry.Sleep(ctx, every); err != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// unlessEnded is an error, or nil when the person has ended the command: that is how it ends.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // as said
	}
	return err
}

// view is the live terminal view.
type view struct {
	ctx    context.Context //nolint:containedctx // of the program
	app    *app
	gauges *gauges
	every  time.Duration

	all    []queueStats
	trends []trend
	at     time.Time
	err    error // of the last look; the view goes on
}

// looked is the news of a look.
type looked struct {
	all []queueStats
	at  time.Time
	err error
}

func newView(ctx context.Context, a *app, g *gauges, every time.Duration) *view {
	return &view{ctx: ctx, app: a, gauges: g, every: every, trends: make([]trend, len(g.names))}
}

// Init begins with a look.
func (v *view) Init() tea.Cmd { return v.look }

func (v *view) look() tea.Msg {
	all, err := v.gauges.read(v.ctx)
	return looked{all, time.Now(), err}
}

// Update takes a key or a look.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return v, tea.Quit
		}
	case looked:
		v.err, v.at = msg.err, msg.at
		if msg.err == nil {
			v.all = msg.all
			for i, s := range msg.all {
				v.trends[i].add(s.Ready, msg.at)
			}
		}
		return v, tea.Tick(v.every, func(time.Time) tea.Msg { return v.look() })
	}
	return v, nil
}

// View draws.
func (v *view) View() string {
	look := v.app.look
	if v.at.IsZero() {
		return "\n  looking …\n"
	}
	var b strings.Builder
	say(&b, "\n%s %s\n\n", look.strong.Render("babelpool"), look.faint.Render(fmt.Sprintf("%s layout, every %s, %s", v.gauges.layout, v.every,
		v.at.Format(time.TimeOnly))))
	if v.all != nil {
		b.WriteString(v.app.statsTable(v.all, v.trends))
	}
	if v.err != nil {
		say(&b, "\n%s\n", look.bad.Render(shown(v.err.Error(), 120)))
	}
	say(&b, "\n%s\n", look.faint.Render("q ends"))
	return b.String()
}
