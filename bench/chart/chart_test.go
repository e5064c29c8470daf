package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/internal/plots"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sample = `{
  "date": "2026-11-30T23:25:32Z",
  "machine": {"cores": "2", "cpu": "AMD EPYC", "go": "go1.26.8", "node": "none", "redis": "Redis server v=7.0.15 sha=0 malloc=j"},
  "config": {"body_bytes": 300, "concurrency": 64, "prefetch": 1024, "runs": 3},
  "median_msg_per_s": {"asynq": 11390.1, "babelpool-legacy": 180944.07, "floor": 632328.3, "newcomer <&>": 999.9},
  "runs": {"asynq": [{"msg_per_s": 9200.9}, {"msg_per_s": 13486.8}, {"msg_per_s": 11390.1}], "babelpool-legacy": [{"msg_per_s": 180944.07}]}
}`

func TestBarsAreSortedAndSpanTheirRuns(t *testing.T) {
	t.Parallel()
	r, err := parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.bars([]string{"floor"})
	if err != nil {
		t.Fatal(err)
	}
	want := []bar{
		{"babelpool, legacy layout", 180944.07, 180944.07, 180944.07, true},
		{"asynq", 11390.1, 9200.9, 13486.8, false},
		{"newcomer <&>", 999.9, 999.9, 999.9, false},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(bar{})); diff != "" {
		t.Error(diff)
	}
	notes := []string{
		"300-byte messages · concurrency 64 · babelpool's prefetch 1,024",
		"Median of 3 runs, whiskers from lowest to highest · 2 cores AMD EPYC · Redis 7.0.15 · Go 1.26.8 · 2026-11-30",
	}
	if diff := cmp.Diff(notes, r.conditions()); diff != "" {
		t.Error(diff)
	}
}

func TestResultsThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":       {`{}`, errNothing},
		"all left":    {`{"median_msg_per_s": {"floor": 1}}`, errNothing},
		"a failure":   {`{"median_msg_per_s": {"asynq": 0}}`, errRate},
		"a bad run":   {`{"median_msg_per_s": {"asynq": 5}, "runs": {"asynq": [{"msg_per_s": -1}]}}`, errRate},
		"not JSON":    {`median`, nil},
		"other shape": {`{"median_msg_per_s": []}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "in.json")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := run([]string{"-in", file}, io.Discard, io.Discard)
			if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), "in.json") {
				t.Errorf("got %v, want %v with the file's name", err, c.want)
			}
		})
	}
}

// shapes is what a drawing holds.
type shapes struct {
	label       string
	ours, peers []float64 // widths of bars
	texts       []string
	starts      map[string]float64 // where a text begins
}

var numbers = regexp.MustCompile(`[-0-9.e+]+`)

// read reads a picture back and wants everything in it to lie within.
func read(t *testing.T, svg string) shapes {
	t.Helper()
	s := shapes{starts: make(map[string]float64)}
	height := 0.0
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatalf("the picture is malformed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attrs := make(map[string]string)
		for _, a := range start.Attr {
			attrs[a.Name.Local] = a.Value
		}
		switch start.Name.Local {
		case "svg":
			s.label = attrs["aria-label"]
			height, _ = strconv.ParseFloat(attrs["height"], 64)
		case "path":
			var xs []float64
			for i, n := range numbers.FindAllString(attrs["d"], -1) {
				v, err := strconv.ParseFloat(n, 64)
				if err != nil || v < 0 || v > []float64{width, height}[i%2] {
					t.Errorf("%s lies outside: %s", n, attrs["d"])
				}
				if i%2 == 0 {
					xs = append(xs, v)
				}
			}
			switch length := slices.Max(xs) - slices.Min(xs); {
			case strings.Contains(attrs["style"], "fill:#4493F8"):
				s.ours = append(s.ours, length)
			case strings.Contains(attrs["style"], "fill:#B4BDC7"):
				s.peers = append(s.peers, length)
			}
		case "text":
			var text string
			if err := d.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
			x, err := strconv.ParseFloat(attrs["x"], 64)
			size, _ := strconv.ParseFloat(regexp.MustCompile(`font-size:([0-9.]+)`).FindStringSubmatch(attrs["style"])[1], 64)
			font := plots.Font{Size: size, Bold: strings.Contains(attrs["style"], "bold")}
			if err != nil || x < border-0.5 || x+font.Width(text) > width-border+0.5 {
				t.Errorf("%q at %g leaves the picture", text, x)
			}
			s.texts, s.starts[text] = append(s.texts, text), x
		case "g":
		default:
			t.Errorf("the picture has an element %q", start.Name.Local)
		}
	}
}

func TestThePicture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.svg")
	if err := os.WriteFile(in, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if err := errors.Join(run([]string{"-in", in, "-out", out}, io.Discard, io.Discard), run([]string{"-in", in}, &stdout, io.Discard)); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if stdout.String() != string(file) {
		t.Error("the file and standard output differ")
	}
	s := read(t, string(file))
	if len(s.ours) != 1 || len(s.peers) != 2 {
		t.Fatalf("%d bars of ours and %d of peers, want 1 and 2", len(s.ours), len(s.peers))
	}
	if got, want := s.peers[0]/s.ours[0], 11390.1/180944.07; math.Abs(got-want) > 0.002 {
		t.Errorf("asynq's bar is %.4f of ours, want %.4f", got, want)
	}
	whisker := border + nameWidth + 13486.8/180944.07*s.ours[0]
	if got := s.starts["11,400 msg/s"]; got < whisker+9 {
		t.Errorf("asynq's rate begins at %.1f, in the whisker that ends at %.1f", got, whisker)
	}
	for _, want := range []string{"babelpool, legacy layout", "181,000 msg/s", "asynq", "11,400 msg/s", "newcomer <&>", "1,000 msg/s"} {
		if !slices.Contains(s.texts, want) {
			t.Errorf("no text %q in %q", want, s.texts)
		}
	}
	if !strings.Contains(s.label, "asynq: 11,400 msg/s") {
		t.Errorf("a screen reader says %q", s.label)
	}
}

func TestYardsticksAreDrawnOnDemandAndNamesFit(t *testing.T) {
	t.Parallel()
	r, err := parse([]byte(`{"median_msg_per_s": {"floor": 6e5, "x": 1e-3, "` + strings.Repeat("long name ", 30) + `": 6e9}}`))
	if err != nil {
		t.Fatal(err)
	}
	bars, err := r.bars(nil)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := draw(bars, []string{strings.Repeat("note ", 80)})
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, svg)
	if !slices.Contains(s.texts, "plain list moves in bulk") || len(s.peers) != 3 || slices.Min(s.peers) < 1 {
		t.Errorf("bars %v, texts %q", s.peers, s.texts)
	}
}

func TestAMissingFile(t *testing.T) {
	t.Parallel()
	if err := run([]string{"-in", filepath.Join(t.TempDir(), "none")}, io.Discard, io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestTheReadmesPictureIsOfAResultsFile fails when the picture was changed by hand, or its file was taken away. It
// compares what is written and not how it is drawn, since the last digit of a place may differ between processors.
func TestTheReadmesPictureIsOfAResultsFile(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile("../../docs/peers.svg")
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, string(picture)).texts
	files, err := filepath.Glob("../results/peers-*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var out bytes.Buffer
		if err := run([]string{"-in", file}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(read(t, out.String()).texts, want) {
			return
		}
	}
	t.Errorf("docs/peers.svg is the chart of none of %q", files)
}
