package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReadValueTakesExactlyOneValue(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"simple string":     "+OK\r\n",
		"error":             "-ERR no\r\n",
		"integer":           ":-7\r\n",
		"null":              "_\r\n",
		"boolean":           "#t\r\n",
		"double":            ",inf\r\n",
		"big number":        "(12345678901234567890\r\n",
		"bulk":              "$5\r\na\r\nbc\r\n",
		"empty bulk":        "$0\r\n\r\n",
		"null bulk":         "$-1\r\n",
		"blob error":        "!3\r\nERR\r\n",
		"verbatim":          "=7\r\ntxt:abc\r\n",
		"array":             "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
		"empty array":       "*0\r\n",
		"null array":        "*-1\r\n",
		"set":               "~1\r\n:1\r\n",
		"map":               "%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n",
		"push":              ">2\r\n+message\r\n$1\r\nx\r\n",
		"attribute":         "|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n",
		"attribute inside":  "*2\r\n|1\r\n+ttl\r\n:1\r\n:2\r\n:3\r\n",
		"line over buffers": "+" + strings.Repeat("x", 10_000) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const next = "+NEXT\r\n"
			r := bufio.NewReader(iotest.OneByteReader(strings.NewReader(value + next)))
			got, err := readValue(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value, string(got)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			rest, err := io.ReadAll(r)
			if err != nil || string(rest) != next {
				t.Errorf("left over: %q, %v", rest, err)
			}
		})
	}
}

func TestReadValueRefusesWhatIsNotRESP(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hello\r\n", "$x\r\n", "$3\r\nabcde", "$-2147483648x\r\n", "*1\r\n?\r\n"} {
		if got, err := readValue(bufio.NewReader(strings.NewReader(text)), nil); !errors.Is(err, errProtocol) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

func TestReadCommand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		raw  string
		want []string
	}{
		"array":        {"*2\r\n$4\r\nLLEN\r\n$1\r\nq\r\n", []string{"LLEN", "q"}},
		"binary":       {"*2\r\n$4\r\necho\r\n$4\r\n\x00\r\n*\r\n", []string{"echo", "\x00\r\n*"}},
		"inline":       {"PING hello\r\n", []string{"PING", "hello"}},
		"empty line":   {"\r\n", []string{}},
		"empty array":  {"*0\r\n", nil},
		"empty string": {"*2\r\n$4\r\necho\r\n$0\r\n\r\n", []string{"echo", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, raw, err := readCommand(bufio.NewReader(iotest.OneByteReader(strings.NewReader(tc.raw))))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, args); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.raw, string(raw)); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
		})
	}
	for _, text := range []string{"*1\r\n:1\r\n", "*x\r\n", "*1\r\n$-1\r\n"} {
		if args, _, err := readCommand(bufio.NewReader(strings.NewReader(text))); !errors.Is(err, errProtocol) {
			t.Errorf("%q: got %q, %v", text, args, err)
		}
	}
}
