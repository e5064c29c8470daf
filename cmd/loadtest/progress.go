package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	drawEvery  = 100 * time.Millisecond // on a terminal
	lineEvery  = 2 * time.Second        // elsewhere
	rateWindow = 3 * time.Second
	barSteps   = 1000
	echoRoom   = "   \b\b\b" // leaves room for the ^C that a terminal echoes, which else breaks the line
	leastBar   = 26          // columns; the text beside it gives way
)

// progress shows how far a run is: a bar on a terminal, a line now and then elsewhere. Everything else that
// is printed meanwhile goes through it, so that the bar is not torn.
type progress struct {
	w        io.Writer
	terminal *os.File // nil elsewhere

	mu   sync.Mutex
	bar  *progressbar.ProgressBar // nil unless one is shown
	head string                   // stands before everything that is shown, if it is not empty
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = f
	}
	return p
}

// Write prints above the bar.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	return p.w.Write(b)
}

// title puts a text before everything that is shown from now on.
func (p *progress) title(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head = text
}

// notef prints a line above the bar.
func (p *progress) notef(format string, args ...any) { say(p, "loadtest: "+format+"\n", args...) }

// view is how far a phase of the run is.
type view struct {
	verb     string // what is done to the messages
	done     int64
	total    int64         // as far as it is known
	open     bool          // total still grows
	fraction float64       // of the whole phase, 0 to 1
	least    time.Duration // that the phase goes on whatever the rate
}

// follow shows what look sees until ctx ends.
func (p *progress) follow(ctx context.Context, look func() view) {
	every := lineEvery
	if p.terminal != nil {
		every = drawEvery
		p.startBar()
		defer p.endBar()
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	begin := time.Now()
	var speed speedometer
	speed.add(begin, look().done)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			v := look()
			if p.head != "" { // set between two phases only
				v.verb = p.head + " " + v.verb
			}
			rate := speed.add(now, v.done)
			if p.terminal != nil {
				p.draw(v, v.parts(rate))
			} else {
				p.line(now.Sub(begin), v, v.parts(rate))
			}
		}
	}
}

func (p *progress) startBar() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar = progressbar.NewOptions(barSteps,
		progressbar.OptionSetWriter(p.terminal),
		progressbar.OptionFullWidth(),
		progressbar.OptionSetPredictTime(false), // its own guess takes no notice of -duration
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetTheme(progressbar.Theme{
			Saucer: "=", SaucerHead: ">", SaucerPadding: " ", BarStart: "[", BarEnd: "]",
		}),
		progressbar.OptionUseANSICodes(runtime.GOOS != "windows"),
	)
}

func (p *progress) endBar() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
	p.bar = nil
}

// draw shows the bar with as much of the text beside it as the terminal has room for.
func (p *progress) draw(v view, parts []string) {
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil {
		width = 80
	}
	text := parts[0]
	for _, part := range parts[1:] {
		if len(text)+len(part)+2 > width-leastBar {
			break
		}
		text += "  " + part
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A bar that is full counts as finished and is drawn no more.
	_ = p.bar.Set(min(int(v.fraction*barSteps), barSteps-1))
	p.bar.Describe(text + echoRoom)
}

func (p *progress) line(passed time.Duration, v view, parts []string) {
	text := fmt.Sprintf("%7.1f s  %3d %%", passed.Seconds(), int(100*v.fraction))
	for _, part := range parts {
		text += "  " + part
	}
	say(p, "%s\n", text)
}

// parts are the texts beside the bar, the most important first.
func (v view) parts(rate float64) []string {
	total := count(v.total)
	amount := fmt.Sprintf("%s %*s of %s", v.verb, len(total), count(v.done), total)
	if v.open {
		amount = fmt.Sprintf("%s %s", v.verb, count(v.done))
	}
	parts := []string{amount, fmt.Sprintf("%9s msg/s", count(int64(rate)))}
	switch {
	case v.done < v.total && rate > 0:
		left := time.Duration(float64(v.total-v.done) / rate * float64(time.Second))
		parts = append(parts, clockTime(max(left, v.least))+" left")
	case v.least > 0:
		parts = append(parts, clockTime(v.least)+" left")
	case v.done < v.total:
		parts = append(parts, fmt.Sprintf("waiting for %s more", count(v.total-v.done)))
	}
	return parts
}

// speedometer measures a rate over the last few seconds.
type speedometer struct {
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// add takes a sample and returns the rate per second.
func (s *speedometer) add(now time.Time, done int64) float64 {
	s.samples = append(s.samples, sample{now, done})
	for len(s.samples) > 2 && now.Sub(s.samples[1].at) >= rateWindow {
		s.samples = s.samples[1:]
	}
	first := s.samples[0]
	if passed := now.Sub(first.at); passed > 0 {
		return float64(done-first.done) / passed.Seconds()
	}
	return 0
}
