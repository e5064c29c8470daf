package faultproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxBulk is Redis's own limit for one string; more is a stream that went out of step.
const maxBulk = 512 << 20

// readCommand reads one command: an array of bulk strings, or a line of words. It returns the words
// and the bytes they came as. No words means an empty command, which Redis passes over silently.
func readCommand(r *bufio.Reader) (args []string, raw []byte, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, nil, err
	}
	if line[0] != '*' {
		return strings.Fields(string(line)), line, nil
	}
	count, err := number(line)
	if err != nil {
		return nil, nil, err
	}
	raw = line
	for range count {
		line, err := readLine(r)
		if err != nil {
			return nil, nil, err
		}
		if line[0] != '$' {
			return nil, nil, fmt.Errorf("%w: %q inside a command", errProtocol, line)
		}
		size, err := number(line)
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, line...)
		start := len(raw)
		if raw, err = readBulk(r, raw, size); err != nil {
			return nil, nil, err
		}
		args = append(args, string(raw[start:len(raw)-len("\r\n")]))
	}
	return args, raw, nil
}

// readValue appends the bytes of one whole RESP2 or RESP3 value to raw. An attribute is no value of
// its own: it is read together with the one that follows.
func readValue(r *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	raw = append(raw, line...)
	children := 0
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return raw, nil
	case '$', '!', '=':
		size, err := number(line)
		if err != nil || size < 0 { // -1 is RESP2's null
			return raw, err
		}
		return readBulk(r, raw, size)
	case '*', '~', '>':
		children, err = number(line)
	case '%':
		children, err = number(line)
		children *= 2
	case '|':
		children, err = number(line)
		children = children*2 + 1
	default:
		err = fmt.Errorf("%w: reply starts with %q", errProtocol, line[0])
	}
	if err != nil {
		return nil, err
	}
	for range children { // none for the null array, whose count is -1
		if raw, err = readValue(r, raw); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// isPush tells whether a value is out of band, that is, no reply to any command.
func isPush(raw []byte) bool { return raw[0] == '>' }

// readLine returns a line with its end, which is never empty.
func readLine(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }

// readBulk appends a string of the given size and its line end to raw.
func readBulk(r *bufio.Reader, raw []byte, size int) ([]byte, error) {
	if size < 0 || size > maxBulk {
		return nil, fmt.Errorf("%w: string of %d bytes", errProtocol, size)
	}
	start := len(raw)
	raw = append(raw, make([]byte, size+len("\r\n"))...)
	if _, err := io.ReadFull(r, raw[start:]); err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(raw, []byte("\r\n")) {
		return nil, fmt.Errorf("%w: string without line end", errProtocol)
	}
	return raw, nil
}

// number reads the count or size in a header line such as "*3".
func number(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	if err != nil {
		return 0, fmt.Errorf("%w: header %q", errProtocol, line)
	}
	return n, nil
}
