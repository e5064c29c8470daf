package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// BullMQ runs in Node: bullmq/bench.mjs takes the bodies on standard input, one a line, and prints what it took.

func bullFill(ctx context.Context, b *bench) error {
	_, err := bull(ctx, b, "fill")
	return err
}

func bullConsume(ctx context.Context, b *bench) error {
	out, err := bull(ctx, b, "consume")
	if err != nil {
		return err
	}
	var took struct {
		Handled int64   `json:"handled"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(out, &took); err != nil {
		return fmt.Errorf("bullmq printed %q: %w", out, err)
	}
	if took.Handled != b.work.total {
		return fmt.Errorf("%w: %d of %d", errIncomplete, took.Handled, b.work.total)
	}
	b.work.elapsed = time.Duration(took.Seconds * float64(time.Second))
	return nil
}

func bull(ctx context.Context, b *bench, mode string) ([]byte, error) {
	host, port, _ := strings.Cut(b.addr, ":")
	cmd := exec.CommandContext(ctx, "node", "bullmq/bench.mjs", mode, host, port, fmt.Sprint(len(b.bodies)), fmt.Sprint(concurrency))
	cmd.Stderr = os.Stderr
	if mode == "fill" {
		cmd.Stdin = bytes.NewBufferString(strings.Join(b.bodies, "\n"))
	}
	return cmd.Output()
}
