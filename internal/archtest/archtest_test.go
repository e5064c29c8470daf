package archtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is where this package finds its module.
const root = "../.."

func TestThisModuleKeepsTheRules(t *testing.T) {
	t.Parallel()
	gomod, err := os.ReadFile(root + "/go.mod")
	if err != nil || !strings.HasPrefix(string(gomod), "module "+module+"\n") {
		t.Fatalf("%s is not the root of %s: %v", root, module, err)
	}
	findings, err := Check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}

func imports(paths ...string) string {
	var b strings.Builder
	b.WriteString("package p\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "import _ %q\n", strings.Replace(p, "~", module, 1))
	}
	return b.String()
}

// TestCheckReports runs the rules over small trees, each right in all but the places named.
func TestCheckReports(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tree map[string]string
		want []string
	}{
		"nothing on an empty tree": {},
		"nothing on a good tree": {tree: map[string]string{
			"pool/run.go":                 imports("~/router", "~/lua", "~/internal/flow", "github.com/redis/go-redis/v9"),
			"router/mux.go":               imports("~/delivery", "~/envelope", "context"),
			"router/mux_test.go":          imports("~/router", "~/internal/testredis", "testing", "github.com/google/go-cmp/cmp"),
			"cmd/loadtest/main.go":        imports("~/pool", "~/internal/redisproc", "github.com/alicebob/miniredis/v2"),
			"examples/orders/main.go":     imports("~/pool", "~/router"),
			"readme_test.go":              imports("~/pool", "~/delivery"),
			"testdata/broken.go":          "not Go",
			"bench/peers/go.mod":          "module peers",
			"bench/peers/peers.go":        imports("~/internal/flow") + "func f() { go f() }\n",
			"internal/faultproxy/a.go":    imports("testing"),
			"internal/slots/slots.go":     imports("sync"),
			"internal/slots/long_test.go": "package p\n" + strings.Repeat("\n", 2*maxLines),
		}},
		"an actor that imports another": {
			tree: map[string]string{"router/mux.go": imports("~/delivery", "~/acker")},
			want: []string{"router/mux.go:3: router must not import acker"},
		},
		"an actor that imports the store": {
			tree: map[string]string{"reserver/run.go": imports("~/lua")},
			want: []string{"reserver/run.go:2: reserver must not import lua"},
		},
		"an actor that imports the client": {
			tree: map[string]string{"acker/run.go": imports("github.com/redis/go-redis/v9")},
			want: []string{"acker/run.go:2: acker must not import github.com/redis/go-redis/v9: the actors must work on any store"},
		},
		"a part of the client below its root": {
			tree: map[string]string{"scheduler/run.go": imports("github.com/redis/go-redis/v9/maintnotifications")},
			want: []string{"scheduler/run.go:2: scheduler must not import github.com/redis/go-redis/v9/maintnotifications: the actors must work on any store"},
		},
		"an import on another system only": {
			tree: map[string]string{"acker/run_windows.go": imports("~/lua")},
			want: []string{"acker/run_windows.go:2: acker must not import lua"},
		},
		"an actor's test that imports the store": {
			tree: map[string]string{"acker/run_test.go": imports("~/lua")},
			want: []string{"acker/run_test.go:2: acker must not import lua"},
		},
		"an import upwards": {
			tree: map[string]string{"envelope/a.go": imports("~/internal/flow"), "lua/a.go": imports("~/pool")},
			want: []string{"envelope/a.go:2: envelope must not import internal/flow", "lua/a.go:2: lua must not import pool"},
		},
		"an optional part in the pool": {
			tree: map[string]string{"pool/a.go": imports("~/metrics")},
			want: []string{"pool/a.go:2: pool must not import metrics"},
		},
		"a test helper outside tests": {
			tree: map[string]string{"pool/a.go": imports("~/internal/testredis"), "lua/a.go": imports("testing", "testing/iotest")},
			want: []string{
				"lua/a.go:2: lua must not import testing: it belongs in no program",
				"lua/a.go:3: lua must not import testing/iotest: it belongs in no program",
				"pool/a.go:2: pool must not import internal/testredis",
			},
		},
		"an example that nobody could copy": {
			tree: map[string]string{"examples/orders/main.go": imports("~/internal/flow")},
			want: []string{"examples/orders/main.go:2: examples/orders must not import internal/flow"},
		},
		"the root imported from below": {
			tree: map[string]string{"envelope/a.go": imports("~")},
			want: []string{"envelope/a.go:2: envelope must not import ."},
		},
		"a package that no row names": {
			tree: map[string]string{"util/util.go": imports()},
			want: []string{"util/util.go: package util is in no row of the layering; give it one in rules.go"},
		},
		"a bare go statement": {
			tree: map[string]string{
				"pool/a.go":      "package p\n\nfunc f() {\n\tfor {\n\t\tgo func() {}()\n\t}\n}\n",
				"pool/a_test.go": "package p\n\nfunc g() { go g() }\n",
			},
			want: []string{"pool/a.go:5: bare go statement: start it through errgroup or conc, and wait for it"},
		},
		"a long file": {
			tree: map[string]string{
				"lua/a.go": "package p\n" + strings.Repeat("\n", maxLines-1),
				"lua/b.go": "package p\n" + strings.Repeat("\n", maxLines),
			},
			want: []string{fmt.Sprintf("lua/b.go: has %d lines, more than %d: does it still hold one idea?", maxLines+1, maxLines)},
		},
		"a file that does not parse": {
			tree: map[string]string{"lua/a.go": "package"},
			want: []string{"lua/a.go: does not parse: lua/a.go:1:8: expected 'IDENT', found 'EOF'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{}
			for file, source := range tc.tree {
				tree[file] = &fstest.MapFile{Data: []byte(source)}
			}
			got, err := Check(tree)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExceptionsHoldForTheirFileWhileNeeded(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"pool/a.go": {Data: []byte("package p\n\nfunc f() { go f() }\n")},
		"pool/b.go": {Data: []byte("package p\n\nfunc g() { go g() }\n")},
	}
	got, err := check(tree, []exception{{"pool/a.go", "needed"}, {"pool/gone.go", "was needed"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pool/b.go:3: bare go statement: start it through errgroup or conc, and wait for it",
		"pool/gone.go: needs no exception for go statements any more: remove its line",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for _, e := range bareGo {
		if e.reason == "" {
			t.Errorf("%s has no reason", e.file)
		}
	}
}

// TestLayersGoDownwards keeps the table itself in order: a package may import only what stands below
// it, so no cycle and no way back up can be written into it.
func TestLayersGoDownwards(t *testing.T) {
	t.Parallel()
	for i, r := range layers {
		for word := range strings.FieldsSeq(r.may) {
			if word == everything || word == public {
				continue
			}
			found := false
			for _, below := range layers[i+1:] {
				found = found || below.pkg == word
			}
			if !found {
				t.Errorf("%s may import %s, which is not below it", r.pkg, word)
			}
		}
	}
}

// TestNothingLeadsFromAnActorToTheStore follows the table, because a package between could open the
// way that the actors' own rows close.
func TestNothingLeadsFromAnActorToTheStore(t *testing.T) {
	t.Parallel()
	actors := []string{"reserver", "router", "acker", "scheduler"}
	for _, actor := range actors {
		reached := map[string]bool{}
		for todo := []string{actor}; len(todo) > 0; todo = todo[1:] {
			may, known := allowed(todo[0], false)
			if !known {
				t.Errorf("%s has no row", todo[0])
			}
			for word := range strings.FieldsSeq(may) {
				if !reached[word] {
					reached[word] = true
					todo = append(todo, word)
				}
			}
			if covers(gates[0].users, todo[0]) {
				t.Errorf("%s reaches go-redis through %s", actor, todo[0])
			}
		}
		for _, bad := range append(actors, "lua", "pool", everything, public) {
			if reached[bad] {
				t.Errorf("%s reaches %s", actor, bad)
			}
		}
	}
}
