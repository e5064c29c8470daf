package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/pool"
)

func noEnv(string) string { return "" }

func TestParseFlags(t *testing.T) {
	t.Parallel()
	defaults := config{
		redisFlag: envRedis, layout: pool.Legacy, messages: 20_000, concurrency: 64, prefetch: 256, payload: 300, processes: 1,
		retryAfter: 90 * time.Second, legacyRetry: pool.Leave,
	}
	with := func(change func(*config)) config {
		c := defaults
		change(&c)
		return c
	}
	for args, want := range map[string]config{
		"":                              defaults,
		"-layout zset":                  with(func(c *config) { c.layout = pool.Zset }),
		"-duration 3s":                  with(func(c *config) { c.messages, c.duration = 0, 3*time.Second }),
		"-messages 500":                 with(func(c *config) { c.messages = 500 }),
		"-rate 0.5":                     with(func(c *config) { c.rate = 0.5 }),
		"-concurrency 10":               with(func(c *config) { c.concurrency, c.prefetch = 10, 40 }),
		"-concurrency 64 -prefetch 512": with(func(c *config) { c.prefetch = 512 }),
		"-payload 100000":               with(func(c *config) { c.payload = 100_000 }),
		"-handler-time 5ms":             with(func(c *config) { c.handlerTime = handlerTime{"5ms", 5 * time.Millisecond, false} }),
		"-handler-time constant:5ms": with(func(c *config) {
			c.handlerTime = handlerTime{"constant:5ms", 5 * time.Millisecond, false}
		}),
		"-handler-time exponential:1m": with(func(c *config) {
			c.handlerTime = handlerTime{"exponential:1m", time.Minute, true}
		}),
		"-processes 4":    with(func(c *config) { c.processes = 4 }),
		"-html page.html": with(func(c *config) { c.html = "page.html" }),
		"-sweep": with(func(c *config) {
			c.prefill, c.concurrency, c.prefetch = true, 0, 0
			c.sweep = &sweepPlan{[]int{64}, []int{0}, []int{0}, 1, []combination{{holding{64, 256}, 0}}, nil}
		}),
		"-sweep -concurrency 16,64 -prefetch 32,0,256 -runs 3": with(func(c *config) {
			c.prefill, c.concurrency, c.prefetch = true, 0, 0
			c.sweep = &sweepPlan{
				[]int{16, 64}, []int{32, 0, 256}, []int{0}, 3,
				[]combination{{holding{16, 32}, 0}, {holding{16, 64}, 0}, {holding{16, 256}, 0}, {holding{64, 256}, 0}},
				[]holding{{64, 32}},
			}
		}),
		"-chaos -seed 7": with(func(c *config) {
			c.chaos, c.redisFlag, c.messages, c.duration, c.rate = &chaosPlan{7}, "-redis", 0, 30*time.Second, 2000
			c.processes, c.retryAfter = 3, 2*time.Second
		}),
		"-chaos -seed 7 -layout zset -messages 9000 -rate 500 -processes 5 -retry-after 3s": with(func(c *config) {
			c.chaos, c.redisFlag, c.messages, c.rate, c.layout = &chaosPlan{7}, "-redis", 9000, 500, pool.Zset
			c.processes, c.retryAfter, c.backoff = 5, 3*time.Second, time.Second
		}),
		"-batch 1000": with(func(c *config) { c.batch = 1000 }),
		"-sweep -concurrency 16,64 -prefetch 32,256 -batch 1,0": with(func(c *config) {
			c.prefill, c.concurrency, c.prefetch = true, 0, 0
			c.sweep = &sweepPlan{
				[]int{16, 64}, []int{32, 256}, []int{1, 0}, 1, []combination{
					{holding{16, 32}, 1}, {holding{16, 32}, 0}, {holding{16, 256}, 1}, {holding{16, 256}, 0}, {holding{64, 256}, 1},
					{holding{64, 256}, 0},
				},
				[]holding{{64, 32}},
			}
		}),
		"-fail 0.05 -retry-after 2s":      with(func(c *config) { c.fail, c.retryAfter = 0.05, 2*time.Second }),
		"-retry-after 1500ms":             with(func(c *config) { c.retryAfter = 1500 * time.Millisecond }), // rounded up by the pool
		"-layout zset -backoff 1s":        with(func(c *config) { c.layout, c.backoff = pool.Zset, time.Second }),
		"-layout zset -max-attempts 1":    with(func(c *config) { c.layout, c.maxAttempts = pool.Zset, 1 }),
		"-prefill -json -":                with(func(c *config) { c.prefill, c.json = true, "-" }),
		"-redis miniredis":                with(func(c *config) { c.redis, c.redisFlag = miniRedis, "-redis" }),
		"-redis redis://u:p@h:1/2":        with(func(c *config) { c.redis, c.redisFlag = "redis://u:p@h:1/2", "-redis" }),
		"-redis unix:///run/redis.socket": with(func(c *config) { c.redis, c.redisFlag = "unix:///run/redis.socket", "-redis" }),
		"-legacy-retry requeue -max-attempts 3 -fail 1": with(func(c *config) {
			c.legacyRetry, c.maxAttempts, c.fail = pool.Requeue, 3, 1
		}),
	} {
		got, err := parseFlags(strings.Fields(args), noEnv)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(config{}, handlerTime{}, sweepPlan{}, combination{}, chaosPlan{})); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", args, diff)
		}
	}
}

func TestParseFlagsNamesTheFlagAtFault(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"-layout list":                      {"-layout", "legacy", "zset"},
		"-messages 0":                       {"-messages"},
		"-messages -5":                      {"-messages"},
		"-messages many":                    {"-messages"},
		"-messages 5 -duration 1s":          {"-messages", "-duration", "one of them"},
		"-duration 0s":                      {"-duration"},
		"-duration -1s":                     {"-duration"},
		"-duration 5":                       {"-duration", "500ms"},
		"-rate -1":                          {"-rate"},
		"-rate NaN":                         {"-rate"},
		"-rate +Inf":                        {"-rate"},
		"-concurrency 0":                    {"-concurrency"},
		"-prefetch 10":                      {"-prefetch", "-concurrency"},
		"-prefetch -1":                      {"-prefetch"},
		"-prefetch 2000000":                 {"-prefetch"},
		"-seed 5":                           {"-seed: 5 is of -chaos runs"},
		"-chaos -redis redis://h:1":         {"-redis", "-chaos", "server of its own"},
		"-chaos -sweep":                     {"-sweep", "-chaos"},
		"-chaos -prefill":                   {"-prefill", "-chaos"},
		"-chaos -processes 2":               {"-processes: -chaos needs 3"},
		"-chaos -rate 0":                    {"-rate: -chaos needs one"},
		"-chaos -duration 4s":               {"-duration: 4s is less than 5s"},
		"-chaos -messages 100":              {"-duration: 50ms is less than 5s"},
		"-batch -1":                         {"-batch: -1 is not from 0 to 1000"},
		"-batch 1001":                       {"-batch: 1001 is not from 0 to 1000"},
		"-batch some":                       {"-batch", "some", "whole number"},
		"-batch 1,0":                        {"-batch", "1,0", "-sweep"},
		"-sweep -batch 0,1001":              {"-batch: 1001 is not from 0 to 1000"},
		"-sweep -batch 0,1,0":               {"-batch", "0 stands twice"},
		"-payload 0":                        {"-payload"},
		"-payload 999999999":                {"-payload"},
		"-handler-time -1s":                 {"-handler-time", "-1s"},
		"-handler-time 20":                  {"-handler-time", "20", "500ms"},
		"-handler-time normal:20ms":         {"-handler-time", "normal:20ms", "exponential"},
		"-handler-time exponential:":        {"-handler-time", "exponential:", "500ms"},
		"-handler-time exponential:-5ms":    {"-handler-time", "exponential:-5ms"},
		"-processes 0":                      {"-processes"},
		"-processes 1000":                   {"-processes"},
		"-processes 2 -redis miniredis":     {"-processes", "miniredis lives inside this process"},
		"-concurrency 16,64":                {"-concurrency", "16,64", "-sweep"},
		"-prefetch 16,64":                   {"-prefetch", "16,64", "-sweep"},
		"-concurrency 16,":                  {"-concurrency", "16,", "whole number"},
		"-runs 3":                           {"-runs", "-sweep"},
		"-sweep -runs 0":                    {"-runs"},
		"-sweep -rate 5":                    {"-rate", "-sweep"},
		"-sweep -duration 5s":               {"-duration", "-sweep"},
		"-sweep -concurrency 16,0":          {"-concurrency", "0"},
		"-sweep -prefetch 256,-1":           {"-prefetch", "-1"},
		"-sweep -prefetch 256,64,256":       {"-prefetch", "256 stands twice"},
		"-sweep -prefetch 8,16":             {"-prefetch", "concurrency 64 with prefetch 8"},
		"-json x -html x":                   {"-html", "-json"},
		"-fail 1.5":                         {"-fail"},
		"-fail NaN":                         {"-fail"},
		"-fail 1":                           {"-fail", "-max-attempts"},
		"-backoff -1s":                      {"-backoff"},
		"-retry-after 1s":                   {"-retry-after", "2s"},
		"-retry-after 0s":                   {"-retry-after"},
		"-legacy-retry again":               {"-legacy-retry", "leave", "requeue"},
		"-legacy-retry requeue":             {"-legacy-retry", "-max-attempts"},
		"-max-attempts 3":                   {"-max-attempts", "-legacy-retry requeue"},
		"-max-attempts -1":                  {"-max-attempts"},
		"-redis localhost":                  {"-redis", "redis://"},
		"-verbose":                          {"-verbose"},
		"now":                               {"now"},
		"-fail 2 -rate -1 -layout x -x":     {"-x"}, // the rest cannot be told
		"-fail 2 -rate -1 -concurrency 0 y": {"-fail", "-rate", "-concurrency", "y"},
	} {
		_, err := parseFlags(strings.Fields(args), noEnv)
		if err == nil {
			t.Errorf("%q was accepted", args)
			continue
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q: the error does not say %q: %v", args, text, err)
			}
		}
	}
}

func TestRedisFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := func(url string) func(string) string {
		return func(name string) string {
			if name != envRedis {
				t.Errorf("asked the environment for %s", name)
			}
			return url
		}
	}
	c, err := parseFlags(nil, env("redis://h:1"))
	if err != nil || c.redis != "redis://h:1" {
		t.Errorf("redis = %q, %v; want that of the environment", c.redis, err)
	}
	c, err = parseFlags([]string{"-redis", "miniredis"}, env("redis://h:1"))
	if err != nil || c.redis != miniRedis {
		t.Errorf("redis = %q, %v; want that of the flag", c.redis, err)
	}
	c, err = parseFlags([]string{"-redis="}, env("redis://h:1"))
	if err != nil || c.redis != "" {
		t.Errorf("redis = %q, %v; an empty flag asks for the embedded choice", c.redis, err)
	}
	_, err = parseFlags(nil, env("http://user:secret@h"))
	if err == nil || !strings.Contains(err.Error(), envRedis) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v; want one that names %s and no password", err, envRedis)
	}
}

func TestNotesAboutFlagsInVain(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-backoff 1s": "-backoff",
		"-layout zset -legacy-retry requeue -max-attempts 2": "-legacy-retry",
		"-layout zset -backoff 1s":                           "",
	} {
		c, err := parseFlags(strings.Fields(args), noEnv)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		notes := strings.Join(c.notes(), "\n")
		if (want == "") != (notes == "") || !strings.Contains(notes, want) {
			t.Errorf("%q: notes %q, want %q", args, notes, want)
		}
	}
}

func TestHelpHasEveryFlag(t *testing.T) {
	t.Parallel()
	var names []string
	newFlagSet(&config{}, &rawFlags{}).VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	order := slices.Sorted(slices.Values(flagOrder))
	if diff := cmp.Diff(names, order); diff != "" {
		t.Errorf("flagOrder (-flags +order)\n%s", diff)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != exitBalanced || stderr.Len() > 0 {
		t.Errorf("-h: code %d, stderr %q", code, &stderr)
	}
	for line := range strings.Lines(stdout.String()) {
		if len(line) > usageWidth+1 {
			t.Errorf("the line is longer than %d: %q", usageWidth, line)
		}
	}
	for _, name := range names {
		if !strings.Contains(stdout.String(), "\n  -"+name+" ") {
			t.Errorf("the help does not mention -%s", name)
		}
	}
	if _, err := parseFlags([]string{"-h"}, noEnv); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestBadFlagsExit2(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"-layout list -fail 3":             "-fail",
		"-redis miniredis -json /no/dir/x": "-json",
		"-redis miniredis -html /no/dir/x": "-html",
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != exitUsage || stdout.Len() > 0 || !strings.Contains(stderr.String(), text) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, &stdout, &stderr)
		}
	}
}
