//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/internal/chaos"
	"github.com/babelpool/babelpool/internal/testredis"
)

// envMutant plants a mutant in the consumers of a run that a test started as a process.
const envMutant = "BQ_LOADTEST_TEST_MUTANT"

// gate is a mutant of all scripts that settle: their gate lets everything pass.
type gate struct{ texts map[string]string }

const (
	gateAnswer = "  if variadic('ZREM', leases, live) < #live then\n"
	gateOpen   = "  variadic('ZREM', leases, live)\n  for i = 1, #held do held[i] = held[i] or '0' end\n  if false then\n"
)

func (g gate) learn(hash, text string) {
	if strings.Contains(text, gateAnswer) {
		g.texts[hash] = strings.Replace(text, gateAnswer, gateOpen, 1)
	}
}

func (g gate) change(hash string, words []any) {
	if text := g.texts[hash]; text != "" {
		words[0], words[1] = "eval", text
	}
}

func plantMutant(name string) {
	if name == "gate" {
		plantedHook = newScriptHook(gate{map[string]string{}})
	}
}

// runChaos runs a run with faults as a process of its own, so that it may have a mutant.
func runChaos(t *testing.T, flags, mutant string) outcome {
	t.Helper()
	testredis.Require(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields("-chaos -json - "+flags)...)
	cmd.Env = append(os.Environ(), envCommand+"=1", envMutant+"="+mutant)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	o := outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	if err := json.Unmarshal(stdout.Bytes(), &o.report); err != nil {
		t.Fatalf("stdout is no report: %v\n%s\n%s", err, o.stdout, o.stderr)
	}
	if (err == nil) != (o.code == exitBalanced) {
		t.Errorf("code %d, %v", o.code, err)
	}
	return o
}

// chaosFlags is the short form, and the full form with BQ_STRESS=1: over a million messages in both layouts.
func chaosFlags() string {
	if os.Getenv("BQ_STRESS") == "1" {
		return "-messages 550000 -rate 4000"
	}
	return "-duration 10s -rate 1500"
}

func TestChaos(t *testing.T) { // R1, L4, Z4, B01, B03, B10, B13, B15, B20, B46
	t.Parallel()
	for _, layout := range []string{"legacy", "zset"} {
		t.Run(layout, func(t *testing.T) {
			if os.Getenv("BQ_STRESS") != "1" { // the full form wants the machine to itself
				t.Parallel()
			}
			o := runChaos(t, "-layout "+layout+" "+chaosFlags(), "")
			r := o.report
			if o.code != exitBalanced || !r.Reconciled || r.Lost != 0 || r.Stuck == nil || *r.Stuck != 0 {
				t.Fatalf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
			}
			t.Log(o.stderr[strings.Index(o.stderr, "\nloadtest-")+1:])
			for _, kind := range chaos.Kinds() {
				if r.Faults[kind.String()] == 0 {
					t.Errorf("no fault of kind %s", kind)
				}
			}
			if os.Getenv("BQ_STRESS") == "1" && r.Published < 500_000 {
				t.Errorf("only %d messages", r.Published)
			}
			if *r.DuplicatesAllowed < r.Duplicated || *r.LongestRecoveryMS <= 0 || *r.Seed == 0 {
				t.Errorf("%s", o.stdout)
			}
			if r.Redelivered == 0 || r.RedisCPU != nil || r.Redis.Source != sourceOwn || len(r.Processes) != chaosProcesses {
				t.Errorf("%s", o.stdout)
			}
		})
	}
}

// TestChaosFindsAMissingGate is the proof that the proof works: without the gate of the settle scripts a late settlement
// takes messages away, or makes two of them.
func TestChaosFindsAMissingGate(t *testing.T) { // L4, Z4
	t.Parallel()
	for layout, want := range map[string]string{
		"legacy": "removed by a settlement whose lease was gone", "zset": "doubled by a settlement whose lease was gone",
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			// About ten messages of a run tell. On a machine so slow that none does, another seed may.
			for range 3 {
				o := runChaos(t, "-layout "+layout+" -duration 7s -rate 1500", "gate")
				t.Logf("seed %d: stolen %d, repeated %d", *o.report.Seed, *o.report.Stolen, *o.report.Repeated)
				if *o.report.Stolen+*o.report.Repeated == 0 {
					continue
				}
				if o.code != exitFailed || o.report.Reconciled || !strings.Contains(o.stderr, want) {
					t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
				}
				return
			}
			t.Error("the mutant was not found")
		})
	}
}
