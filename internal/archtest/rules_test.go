package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist keeps the documents true: every test they name stands in a package of that name.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	const root = "../.."
	have := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			have[filepath.Base(filepath.Dir(path))+"."+string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"rules.md": 50, "guarantees.md": 15, "security.md": 8, "scaling.md": 4} {
		text, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`(\\w+\\.(?:Test|Fuzz)\\w+)`").FindAllSubmatch(text, -1)
		if len(named) < least {
			t.Errorf("docs/%s names only %d tests", name, len(named))
		}
		for _, m := range named {
			if !have[string(m[1])] {
				t.Errorf("docs/%s names %s, which does not exist", name, m[1])
			}
		}
	}
}
