package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// output is where the JSON report goes. The zero value is nowhere.
type output struct {
	w    io.Writer
	file *os.File // nil unless -json names a file
}

// openOutput opens the destination before the test runs: a run of an hour must not end with a path that
// cannot be written. What a file holds stays until there is a report.
func openOutput(name string, stdout io.Writer) (output, error) {
	switch name {
	case "":
		return output{}, nil
	case "-":
		return output{w: stdout}, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the user's own choice of file, and no secret in it
	if err != nil {
		return output{}, err
	}
	return output{w: f, file: f}, nil
}

// write writes the report, replacing what the file held. A destination that cannot be truncated, such as a
// pipe, holds nothing to replace.
func (o output) write(r *report) error {
	if o.w == nil {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("the report cannot be encoded: %w", err)
	}
	if o.file != nil {
		if info, err := o.file.Stat(); err == nil && info.Mode().IsRegular() {
			if err := o.file.Truncate(0); err != nil {
				return err
			}
		}
	}
	_, err = o.w.Write(append(text, '\n'))
	return err
}

func (o output) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
