package lua

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// luaFiles are the embedded sources by name.
func luaFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d Lua files", len(files))
	}
	return files
}

// scripts are all transitions.
var scripts = []*script{
	legacyReserve, legacySettle, legacyHandBack, legacySweep, legacyAudit, legacyAdopt, legacyRecall, legacyPostpone,
	zsetReserve, zsetSettle, zsetHandBack, zsetMigrate, zsetAudit, zsetPublish, zsetDelay, renewLeases,
	excuseLeases, forgetLost, lookUpLost, trimDead, takeDead, shiftDelayed, probeCommands, takeClaim, endClaim,
}

// Every file is loaded or included by a script, and what is sent holds no comment.
func TestScriptsCoverAllFiles(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	hashes := map[string]bool{}
	for _, s := range scripts {
		used[s.name] = true
		for line := range strings.Lines(mustRead(s.name)) {
			if names, ok := strings.CutPrefix(line, include); ok {
				for _, fragment := range strings.Fields(names) {
					used["lib/"+fragment+".lua"] = true
				}
			}
		}
		if hashes[s.hash] || len(s.hash) != 40 {
			t.Errorf("%s: hash %q", s.name, s.hash)
		}
		hashes[s.hash] = true
		if strings.Contains(s.text, "--") || strings.Contains(s.text, "#!") {
			t.Errorf("%s: what is sent holds a comment or a header that forbids running on a full server (M8)", s.name)
		}
	}
	for name := range luaFiles(t) {
		if !used[name] {
			t.Errorf("%s is used by no script", name)
		}
	}
}

// No script parses a body: cjson damages numbers, empty arrays and the order of keys (B30, B31).
func TestNoScriptUsesCjson(t *testing.T) { // Z3
	t.Parallel()
	for _, s := range scripts {
		for _, word := range []string{"cjson", "cmsgpack", "loadstring"} {
			if strings.Contains(s.text, word) {
				t.Errorf("%s uses %s", s.name, word)
			}
		}
	}
}

var headerFields = []string{"KEYS", "ARGV", "Returns", "Promise", "Cost"}

// Each transition says what it takes, gives, promises and costs.
func TestScriptHeaders(t *testing.T) {
	t.Parallel()
	for name, text := range luaFiles(t) {
		header := text[:max(0, strings.Index(text+"\nlocal", "\nlocal"))]
		if strings.HasPrefix(name, "lib/") {
			if !strings.HasPrefix(text, "-- ") || !strings.Contains(header, "(") {
				t.Errorf("%s: a fragment starts with its signature", name)
			}
			continue
		}
		at := -1
		for _, field := range headerFields {
			next := strings.Index(header, "\n-- "+field+" ")
			if next <= at {
				t.Errorf("%s: the header lacks %s, or has it out of order", name, field)
			}
			at = next
		}
	}
}

var (
	redisCall = regexp.MustCompile(`redis\.p?call\(([^)]*)`)
	unpacking = regexp.MustCompile(`unpack\(`)
	bounded   = regexp.MustCompile(`unpack\(\w+, \w+, math\.min\(\w+ \+ 999, (#\w+|\w+)\)\)`)
	keyCount  = regexp.MustCompile(`KEYS\[(\d+)\]`)
)

// Every key a script touches comes from KEYS: no key argument is text, none is built (R3, B45).
func TestScriptsTakeKeysFromKEYS(t *testing.T) { // R3
	t.Parallel()
	for name, text := range luaFiles(t) {
		for _, m := range redisCall.FindAllStringSubmatch(text, -1) {
			words := strings.Split(m[1], ", ")
			if strings.HasPrefix(words[0], "'TIME'") {
				continue
			}
			if words[0] == "'MEMORY'" { // its key comes after a word of its own
				words = words[1:]
			}
			if len(words) < 2 || !regexp.MustCompile(`^(KEYS\[\d+\]|[a-z_]+)$`).MatchString(words[1]) {
				t.Errorf("%s: redis.call(%s: the key is no plain name", name, m[1])
			}
			if words[0] != "command" && !strings.HasPrefix(words[0], "'") {
				t.Errorf("%s: redis.call(%s: the command is not constant", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(ARGV\[[^\]]*\]|KEYS\[\d+\]) \.\. '[:.]`).FindAllString(text, -1) {
			t.Errorf("%s builds a key: %s", name, m)
		}
	}
	// A script is given as many keys as it reads.
	for _, s := range scripts {
		most := 0
		for _, m := range keyCount.FindAllStringSubmatch(s.text, -1) {
			most = max(most, int(m[1][0]-'0'))
		}
		if named := strings.Count(header(s.name, "KEYS"), "  ") + 1; most > 7 || named < most {
			t.Errorf("%s reads KEYS[%d], its header names %d", s.name, most, named)
		}
	}
}

// header is one field of a script's header, with its continuation lines.
func header(name, field string) string {
	_, rest, _ := strings.Cut(mustRead(name), "\n-- "+field)
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line, "--         ") {
			return strings.Join(lines[:i+1], " ")
		}
	}
	return rest
}

// unpack fails beyond 7,999 values, so none is without its bound (M1).
func TestScriptsUnpackWithABound(t *testing.T) { // B37
	t.Parallel()
	for name, text := range luaFiles(t) {
		if all, good := len(unpacking.FindAllString(text, -1)), len(bounded.FindAllString(text, -1)); all != good {
			t.Errorf("%s: %d of %d unpack calls are bounded by a window of 1,000", name, good, all)
		}
	}
}

// The first thing a script may write is a removal: a full server lets it go on then (M8). Publishing is the
// exception, because a full server is to refuse that.
func TestScriptsWriteARemovalFirst(t *testing.T) { // B43, L8
	t.Parallel()
	grows := []string{"RPUSH", "LPUSH", "ZADD", "SET", "HSET"}
	writes := regexp.MustCompile(`'(RPUSH|LPUSH|ZADD|SET|HSET|ZREM|LPOP|LREM|LTRIM|DEL|HDEL)'`)
	for _, s := range scripts {
		if s == zsetPublish || s == zsetDelay {
			continue
		}
		// The body alone: fragments only define functions. Calls of fragments that remove first are removals.
		body := s.text[strings.LastIndex(s.text, "local wrong = expect("):]
		body = regexp.MustCompile(`\b(gate|gated|match|sweep|promote|pop)\(`).ReplaceAllString(body, "'ZREM'(")
		first := writes.FindStringSubmatch(body)
		if first != nil && slices.Contains(grows, first[1]) {
			t.Errorf("%s: the first write is %s", s.name, first[1])
		}
	}
}
