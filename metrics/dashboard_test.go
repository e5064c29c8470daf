package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// dashboard is what the test reads of docs/grafana.json.
type dashboard struct {
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID         int
		Type       string
		Title      string
		Datasource struct{ UID string }
		GridPos    struct{ H, W, X, Y int }
		Targets    []struct{ Expr, LegendFormat string }
	}
}

// TestTheDashboardIsTrue: docs/grafana.json asks only for metrics and labels that exist, and in the way their types allow.
func TestTheDashboardIsTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	m, s := everything()
	known := catalogue(gather(t, registered(t, m, s)))
	used := map[string]bool{}
	check := func(where, expr, legend string) {
		t.Helper()
		for _, problem := range known.problems(expr, legend, used) {
			t.Errorf("%s: %s: %s", where, expr, problem)
		}
	}
	ids, cells, rows := map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: the id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s lies on %s", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows++
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s: data source %q, %d targets", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			check(p.Title, target.Expr, target.LegendFormat)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		call := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if call == nil {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
			continue
		}
		check("variable "+v.Name, "max by ("+call[2]+") ("+call[1]+")", "")
	}
	if rows < 5 || len(used) < 20 || d.SchemaVersion == 0 {
		t.Errorf("%d rows, %d metrics used, schema %d", rows, len(used), d.SchemaVersion)
	}
}

// TestTheCheckOfTheDashboardSees what it is there for.
func TestTheCheckOfTheDashboardSees(t *testing.T) {
	t.Parallel()
	m, s := everything()
	known := catalogue(gather(t, registered(t, m, s)))
	for expr, want := range map[string]string{
		`rate(babelpool_nothing_total[5m])`:                                                           "no such metric",
		`sum by (queue) (rate(babelpool_messages_total{state="ready"}[5m]))`:                          "has no label state",
		`sum by (urn) (rate(babelpool_messages_total[5m]))`:                                           "has no label urn",
		`sum by (queue) (babelpool_messages_total)`:                                                   "a counter without rate",
		`rate(babelpool_queue_messages[5m])`:                                                          "a rate of a gauge",
		`babelpool_handler_duration_seconds`:                                                          "no such metric",
		`sum by (queue) (rate(babelpool_messages_total{outcome="acknowledged"}[5m]))`:                 "outcome is never",
		`histogram_quantile(0.9, sum by (urn) (rate(babelpool_handler_duration_seconds_bucket[5m])))`: "without le",
		`sum(rate(babelpool_messages_total[5m])`:                                                      "brackets",
	} {
		if got := strings.Join(known.problems(expr, "", map[string]bool{}), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
	if got := known.problems(`sum by (queue) (rate(babelpool_messages_total[5m]))`, "{{urn}}", map[string]bool{}); len(got) != 1 {
		t.Errorf("a legend of a label that is not there: %q", got)
	}
}

// known are the series that a scrape has, histograms by their parts: for each its labels and their values.
type known map[string]struct {
	counter bool
	labels  map[string][]string
}

// fixedValues are labels with a set of values that everything has; of the others a test sees only examples.
var fixedValues = []string{"outcome", "reason", "state"}

func catalogue(families map[string]*dto.MetricFamily) known {
	k := known{}
	for name, f := range families {
		labels := map[string][]string{"job": nil, "instance": nil} // Prometheus's own
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		entry := k[name]
		entry.labels, entry.counter = labels, f.GetType() != dto.MetricType_GAUGE
		if f.GetType() != dto.MetricType_HISTOGRAM {
			k[name] = entry
			continue
		}
		k[name+"_sum"], k[name+"_count"] = entry, entry
		buckets := map[string][]string{"le": nil}
		for l, v := range labels {
			buckets[l] = v
		}
		entry.labels = buckets
		k[name+"_bucket"] = entry
	}
	return k
}

var (
	selector = regexp.MustCompile(`(babelpool_\w+)(\{[^}]*\})?(\[[^\]]*\])?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	legends  = regexp.MustCompile(`{{(\w+)}}`)
)

// problems reads an expression as far as the dashboard's go: selectors, groupings and the functions around them.
func (k known) problems(expr, legend string, used map[string]bool) []string {
	var found []string
	fail := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			fail("brackets %s", pair)
		}
	}
	var groups []string
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		groups = append(groups, strings.Split(g[1], ", ")...)
	}
	selectors := selector.FindAllStringSubmatchIndex(expr, -1)
	if len(selectors) == 0 {
		fail("asks for nothing")
	}
	for _, at := range selectors {
		name := expr[at[2]:at[3]]
		used[name] = true
		metric, ok := k[name]
		if !ok {
			fail("no such metric: %s", name)
			continue
		}
		before := expr[:at[0]]
		rated := strings.HasSuffix(before, "rate(") || strings.HasSuffix(before, "increase(")
		if rated != (at[6] >= 0) || metric.counter && !rated && !strings.HasPrefix(expr, "max by (queue) (") {
			fail("%s: a counter without rate, or a range without one", name)
		}
		if rated && !metric.counter {
			fail("%s: a rate of a gauge", name)
		}
		if strings.HasSuffix(name, "_bucket") && !slices.Contains(groups, "le") {
			fail("%s: without le", name)
		}
		wanted := groups
		if at[4] >= 0 {
			for _, m := range matcher.FindAllStringSubmatch(expr[at[4]:at[5]], -1) {
				wanted = append(wanted[:len(wanted):len(wanted)], m[1])
				for value := range strings.SplitSeq(m[3], "|") {
					if slices.Contains(fixedValues, m[1]) && len(metric.labels[m[1]]) > 0 && !slices.Contains(metric.labels[m[1]], value) {
						fail("%s: %s is never %s", name, m[1], value)
					}
				}
			}
		}
		for _, label := range wanted {
			if _, ok := metric.labels[label]; !ok {
				fail("%s has no label %s", name, label)
			}
		}
	}
	for _, l := range legends.FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(groups, l[1]) {
			fail("the legend names %s, which is not grouped by", l[1])
		}
	}
	return found
}

// TestThePageIsTrue: docs/metrics.md names every metric, and no other.
func TestThePageIsTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m, s := everything()
	families := gather(t, registered(t, m, s))
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("`(babelpool_\\w+)`").FindAllStringSubmatch(string(text), -1) {
		named[found[1]] = true
		if families[found[1]] == nil {
			t.Errorf("%s does not exist", found[1])
		}
	}
	for name := range families {
		if !named[name] {
			t.Errorf("%s is not named", name)
		}
	}
}
