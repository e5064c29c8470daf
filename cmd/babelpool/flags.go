package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

const (
	envRedis     = "BQ_REDIS_URL"
	envLayout    = "BQ_LAYOUT"
	envKeyPrefix = "BQ_KEY_PREFIX"

	defaultRedis = "redis://127.0.0.1:6379"
)

// globalFlags are the flags of every command.
type globalFlags struct {
	redis, layoutName, prefix, deadLetterKey string
	cluster                                  bool
	json                                     bool

	layout pool.Layout // after check
}

func (f *globalFlags) add(root *cobra.Command) {
	p := root.PersistentFlags()
	p.StringVar(&f.redis, "redis", orEnv(envRedis, ""), "URL of the server; also "+envRedis+" (default "+defaultRedis+")")
	p.BoolVar(&f.cluster, "cluster", false, "the server is a node of a cluster; more nodes: redis://a:7000?addr=b:7000")
	p.StringVar(&f.layoutName, "layout", orEnv(envLayout, "legacy"), "layout of the queues, legacy or zset; also "+envLayout)
	p.StringVar(&f.prefix, "key-prefix", orEnv(envKeyPrefix, ""), "goes before every key; also "+envKeyPrefix)
	p.StringVar(&f.deadLetterKey, "dead-letter-key", "", "key of the dead letters, where a pool sets another one")
	p.BoolVar(&f.json, "json", false, "print JSON")
	_ = root.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions([]string{"legacy", "zset"}, cobra.ShellCompDirectiveNoFileComp))
	// The URL's default may hold a password from the environment, which help must not show.
	p.Lookup("redis").DefValue = ""
}

func orEnv(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// check reads what the flags say.
func (f *globalFlags) check() error {
	if f.redis == "" {
		f.redis = defaultRedis
	}
	switch f.layoutName {
	case "legacy":
		f.layout = pool.Legacy
	case "zset":
		f.layout = pool.Zset
	default:
		return usageError{fmt.Errorf("--layout: %q is neither legacy nor zset", f.layoutName)}
	}
	return nil
}

// with runs f with a client, which it closes.
func (f *globalFlags) with(do func(client redis.UniversalClient) error) error {
	client, err := f.open()
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close())
}

func (f *globalFlags) open() (redis.UniversalClient, error) {
	if !f.cluster {
		client, err := pool.OpenRedis(f.redis)
		if err != nil {
			return nil, usageError{errors.New("--redis: the URL is not valid; it must look like redis://user:password@host:6379/0")}
		}
		return client, nil
	}
	o, err := redis.ParseClusterURL(f.redis)
	if err != nil {
		return nil, usageError{errors.New("--redis: the URL is not valid; a cluster's looks like redis://user:password@host:7000?addr=other:7000")}
	}
	o.ContextTimeoutEnabled = true
	return redis.NewClusterClient(o), nil
}

// keys are a queue's keys.
func (f *globalFlags) keys(queue string) (lua.Keys, error) {
	keys, err := lua.NewKeys(f.layout, f.prefix, queue, f.deadLetterKey)
	if err == nil && f.cluster {
		err = keys.CheckSlot(queue)
	}
	if err != nil {
		return lua.Keys{}, usageError{err}
	}
	return keys, nil
}
