package securitytest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/pool"
)

func read(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	must(t, err)
	return string(text)
}

// block is what a document prints between ```acl <name> and ```.
func block(t *testing.T, document, name string) string {
	t.Helper()
	_, after, found := strings.Cut(read(t, document), "```acl "+name+"\n")
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("%s has no block of rules %q", document, name)
	}
	return text
}

var rulePattern = regexp.MustCompile(`^\+([a-z]+(?:\|[a-z]+)?)$`)

// commands are the commands that the README allows a role.
func commands(t *testing.T, role string) []string {
	t.Helper()
	return rules(t, "README.md", role)
}

// rules are the commands of a block. Whatever else stood in it would be a rule that the reader copies and no test knows.
func rules(t *testing.T, document, name string) []string {
	t.Helper()
	var names []string
	for _, word := range strings.Fields(block(t, document, name)) {
		match := rulePattern.FindStringSubmatch(word)
		if match == nil {
			t.Fatalf("%q in the rules %q of %s allows no single command", word, name, document)
		}
		names = append(names, match[1])
	}
	return names
}

var readmeKeys = regexp.MustCompile("on keys `([^`]+)` \\(legacy\\) or `([^`]+)` \\(zset\\)")

// wideKeys are the README's key patterns of a layout, for a prefix.
func wideKeys(t *testing.T, layout pool.Layout, prefix string) []string {
	t.Helper()
	match := readmeKeys.FindStringSubmatch(read(t, "README.md"))
	if match == nil {
		t.Fatal("the README says nothing of keys")
	}
	pattern := match[1]
	if layout == pool.Zset {
		pattern = match[2]
	}
	return []string{"~" + strings.ReplaceAll(pattern, "<prefix>", prefix)}
}

// narrowKeys are the key patterns of docs/security.md.
func narrowKeys(t *testing.T, layout pool.Layout, prefix string) []string {
	t.Helper()
	return strings.Fields(strings.ReplaceAll(block(t, "docs/security.md", layout.String()+" keys"), "<prefix>", prefix))
}
