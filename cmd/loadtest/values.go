package main

import (
	"errors"
	"flag"
	"strconv"
	"strings"
	"time"
)

var errDuration = errors.New("a duration has a unit, such as 500ms, 2s or 1m")

// durationValue is a flag.Value whose error says what a duration looks like.
type durationValue time.Duration

// String is the duration in Go's notation.
func (d *durationValue) String() string { return time.Duration(*d).String() }

// Set parses Go's notation.
func (d *durationValue) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		return errDuration
	}
	*d = durationValue(v)
	return nil
}

func duration(fs *flag.FlagSet, d *time.Duration, name string, fallback time.Duration, usage string) {
	*d = fallback
	fs.Var((*durationValue)(d), name, usage)
}

// intList is a flag.Value of one or more whole numbers with commas between them.
type intList []int

// String is the list as Set takes it.
func (l intList) String() string {
	texts := make([]string, len(l))
	for i, n := range l {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// Set replaces the list.
func (l *intList) Set(text string) error {
	var list intList
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return errors.New("want a whole number, or several with commas between them")
		}
		list = append(list, n)
	}
	*l = list
	return nil
}

// twice finds a number that the list repeats.
func (l intList) twice() (n int, found bool) {
	seen := map[int]bool{}
	for _, n := range l {
		if seen[n] {
			return n, true
		}
		seen[n] = true
	}
	return 0, false
}
