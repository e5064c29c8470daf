package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/babelpool/babelpool/cmd/loadtest/page"
)

// output is where a report goes. The zero value is nowhere.
type output struct {
	w    io.Writer
	file *os.File // nil unless it is one
}

// outputs are those of a command.
type outputs struct{ json, html output }

// openOutputs opens what the flags name.
func openOutputs(cfg config, stdout io.Writer) (outputs, error) {
	var o outputs
	var err error
	if o.json, err = openOutput(cfg.json, stdout); err != nil {
		return outputs{}, fmt.Errorf("-json: %w", err)
	}
	if cfg.html == "" {
		return o, nil
	}
	if o.html, err = openOutput(cfg.html, nil); err != nil {
		return outputs{}, errors.Join(fmt.Errorf("-html: %w", err), o.json.close())
	}
	return o, nil
}

// write writes a report, as far as it was asked for, and says where the page is.
func (o outputs) write(report any, p page.Page, table io.Writer) error {
	var problems []error
	if o.json.w != nil {
		if err := o.json.writeJSON(report); err != nil {
			problems = append(problems, fmt.Errorf("-json: %w", err))
		}
	}
	if o.html.w != nil {
		if err := o.html.writePage(p); err != nil {
			problems = append(problems, fmt.Errorf("-html: %w", err))
		} else {
			say(table, "The page is in %s.\n", o.html.file.Name())
		}
	}
	return errors.Join(problems...)
}

func (o outputs) close() error { return errors.Join(o.json.close(), o.html.close()) }

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

func (o output) writeJSON(report any) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("the report cannot be encoded: %w", err)
	}
	return o.replace(append(text, '\n'))
}

func (o output) writePage(p page.Page) error {
	var text bytes.Buffer
	if err := page.Write(&text, p); err != nil {
		return err
	}
	return o.replace(text.Bytes())
}

// replace replaces what the file held. A destination that cannot be truncated, such as a pipe, holds nothing to
// replace.
func (o output) replace(text []byte) error {
	if o.file != nil {
		if info, err := o.file.Stat(); err == nil && info.Mode().IsRegular() {
			if err := o.file.Truncate(0); err != nil {
				return err
			}
		}
	}
	_, err := o.w.Write(text)
	return err
}

func (o output) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
