package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Check reads the module at the root of tree and returns one line for each place that breaks a rule,
// in the order of the files, and nothing when all is well. Nested modules and testdata are not
// looked at. The error is for a tree that cannot be read; a file that does not parse is a finding.
func Check(tree fs.FS) ([]string, error) { return check(tree, bareGo) }

func check(tree fs.FS, bare []exception) ([]string, error) {
	c := checker{bare: bare, used: make(map[string]bool)}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if skipped(tree, name) {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		c.file(name, source)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: reading the module: %w", err)
	}
	for _, e := range bare {
		if !c.used[e.file] {
			c.report(e.file, 0, "needs no exception for go statements any more: remove its line")
		}
	}
	return c.findings, nil
}

// skipped tells whether a directory holds no packages of this module.
func skipped(tree fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

type checker struct {
	bare     []exception
	used     map[string]bool // files whose exception was needed
	findings []string
}

func (c *checker) report(file string, line int, format string, args ...any) {
	if line > 0 {
		file += ":" + strconv.Itoa(line)
	}
	c.findings = append(c.findings, file+": "+fmt.Sprintf(format, args...))
}

// file applies every rule to one file.
func (c *checker) file(name string, source []byte) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, name, source, parser.SkipObjectResolution)
	if err != nil {
		c.report(name, 0, "does not parse: %v", err)
		return
	}
	pkg, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	may, known := allowed(pkg, test)
	if !known {
		c.report(name, 0, "package %s is in no row of the layering; give it one in rules.go", pkg)
		return
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused that already
		}
		line := positions.Position(spec.Pos()).Line
		if inside, ours := strings.CutPrefix(imported+"/", module+"/"); ours {
			inside = path.Clean(inside) // "." for the root
			if inside != pkg && !covers(may, inside) {
				c.report(name, line, "%s must not import %s", pkg, inside)
			}
			continue
		}
		for _, g := range gates {
			if !test && strings.HasPrefix(imported+"/", g.imports+"/") && !covers(g.users, pkg) {
				c.report(name, line, "%s must not import %s: %s", pkg, imported, g.reason)
			}
		}
	}
	if test {
		return
	}
	c.goStatements(name, parsed, positions)
	if lines := bytes.Count(source, []byte("\n")); lines > maxLines {
		c.report(name, 0, "has %d lines, more than %d: does it still hold one idea?", lines, maxLines)
	}
}

func (c *checker) goStatements(name string, parsed *ast.File, positions *token.FileSet) {
	for node := range ast.Preorder(parsed) {
		if _, ok := node.(*ast.GoStmt); !ok {
			continue
		}
		if slices.ContainsFunc(c.bare, func(e exception) bool { return e.file == name }) {
			c.used[name] = true
			continue
		}
		c.report(name, positions.Position(node.Pos()).Line, "bare go statement: start it through errgroup or conc, and wait for it")
	}
}

// allowed returns the words for what files of a package may import, and whether any row names the
// package.
func allowed(pkg string, test bool) (may string, known bool) {
	for _, r := range layers {
		if !covers(r.pkg, pkg) {
			continue
		}
		may = r.may
		if test {
			may += " " + helpers
			if pkg == "." {
				may += " " + rootTests
			}
		}
		return may, true
	}
	return "", false
}

// covers tells whether one of the words names the package.
func covers(words, pkg string) bool {
	for word := range strings.FieldsSeq(words) {
		switch below, tree := strings.CutSuffix(word, "/..."); {
		case word == everything, word == pkg:
			return true
		case word == public && !strings.HasPrefix(pkg+"/", "internal/"):
			return true
		case tree && strings.HasPrefix(pkg+"/", below+"/"):
			return true
		}
	}
	return false
}
