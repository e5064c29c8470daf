package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limits of what is still healthy.
const (
	mostMemoryUsed = 0.9             // of maxmemory
	mostClockDrift = 2 * time.Second // between this machine and the server
)

// server is what is known of the server; a cluster is asked through one of its nodes.
type server struct {
	list
	client  redis.UniversalClient
	info    map[string]string
	infoErr error
	now     time.Time // by the server; this machine's where that is not allowed
	drift   time.Duration
	timeErr error
	cluster bool
}

// read asks for what several checks need.
func (s *server) read(ctx context.Context) {
	text, err := s.client.Info(ctx, "everything").Result()
	s.info, s.infoErr = parseInfo(text), err
	s.cluster = s.info["cluster_enabled"] == "1"
	before := time.Now()
	if s.now, s.timeErr = s.client.Time(ctx).Result(); s.timeErr != nil {
		s.now = before
		return
	}
	middle := before.Add(time.Since(before) / 2)
	s.drift = middle.Sub(s.now)
}

func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func (s *server) examine(ctx context.Context) []Finding {
	if s.infoErr != nil {
		s.unknown("info", s.infoErr)
	} else {
		s.version()
		s.role()
		s.persistence(ctx)
		s.memory()
		s.clients()
	}
	s.clock()
	return s.findings
}

func (s *server) version() {
	version := s.info["redis_version"]
	if old(version) {
		s.add(Problem, "version", "Upgrade to Redis 6.2 or newer; pools refuse this one (R5).", "Redis %q", version)
		return
	}
	s.add(OK, "version", "", "Redis %s", quoteText(version))
}

// old is false for a version that cannot be read: other servers that speak the protocol have their own.
func old(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a < 6 || a == 6 && b < 2)
}

func (s *server) role() {
	if s.info["role"] == "slave" {
		s.add(Problem, "role", "Connect to the master, or use a Sentinel or cluster client that finds it.", "this is a read-only replica")
		return
	}
	s.add(OK, "role", "", "master with %s replicas", orZero(s.info["connected_slaves"]))
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

func (s *server) persistence(ctx context.Context) {
	if s.info["loading"] == "1" {
		s.add(Problem, "persistence", "Wait until the server has loaded its data.", "the server is loading")
		return
	}
	if s.info["aof_enabled"] == "1" && s.info["aof_last_write_status"] != "ok" {
		s.add(Problem, "persistence", "Free disk space or mend the disk: nothing is stored now.", "the last write of the append-only file failed")
		return
	}
	if s.info["rdb_last_bgsave_status"] == "err" {
		s.add(Problem, "persistence", "See the server's log; until a save succeeds, writes may be refused (stop-writes-on-bgsave-error).",
			"the last snapshot failed")
		return
	}
	if s.info["aof_enabled"] == "1" {
		fsync, err := s.config(ctx, "appendfsync")
		switch {
		case err != nil:
			s.add(OK, "persistence", "", "append-only file is on; how often it is synced is not known: %s", short(err))
		case fsync == "always":
			s.add(OK, "persistence", "", "append-only file, synced with every command")
		default:
			s.add(Info, "persistence", "Set appendfsync to always where no acknowledged message may be lost when the machine fails.",
				"append-only file with appendfsync %q: a failing machine loses up to a second or more", fsync)
		}
		return
	}
	save, err := s.config(ctx, "save")
	if err == nil && save == "" {
		s.add(Warning, "persistence", "Turn on appendonly: a restart of the server loses every message.", "nothing is kept on disk")
		return
	}
	s.add(Warning, "persistence", "Turn on appendonly: a crash loses what came after the last snapshot.", "snapshots only")
}

func (s *server) memory() {
	policy := s.info["maxmemory_policy"]
	switch {
	case strings.HasPrefix(policy, "allkeys-"):
		s.add(Problem, "maxmemory-policy", "Set maxmemory-policy to noeviction: under this policy the server deletes whole queues when its memory is full.",
			"%q", policy)
	case policy == "noeviction":
		s.add(OK, "maxmemory-policy", "", "noeviction")
	case policy != "":
		s.add(Info, "maxmemory-policy", "noeviction is safer: keys with an expiry, such as those of the idempotency store, may go early.", "%q", policy)
	}
	used, _ := strconv.ParseFloat(s.info["used_memory"], 64)
	most, _ := strconv.ParseFloat(s.info["maxmemory"], 64)
	switch {
	case most == 0:
		s.add(Info, "memory", "Set maxmemory below what the machine has: then a full server refuses publishes and still drains.", "%s used, no limit",
			mebibytes(used))
	case used > mostMemoryUsed*most:
		s.add(Problem, "memory", "Drain or delete something: when the memory is full every publish is refused.", "%s of %s used", mebibytes(used), mebibytes(most))
	default:
		s.add(OK, "memory", "", "%s of %s used", mebibytes(used), mebibytes(most))
	}
}

func mebibytes(bytes float64) string { return strconv.FormatFloat(bytes/(1<<20), 'f', 1, 64) + " MiB" }

func (s *server) clients() {
	connected, _ := strconv.ParseFloat(s.info["connected_clients"], 64)
	most, _ := strconv.ParseFloat(s.info["maxclients"], 64)
	if most > 0 && connected > mostMemoryUsed*most {
		s.add(Problem, "clients", "Raise maxclients, or find who opens so many connections: the next one is refused.", "%.0f of %.0f", connected, most)
		return
	}
	s.add(OK, "clients", "", "%.0f connected", connected)
}

func (s *server) clock() {
	switch {
	case s.timeErr != nil:
		s.unknown("clock", s.timeErr)
	case s.drift.Abs() > mostClockDrift:
		s.add(Warning, "clock", "Leases go by the server's clock, so nothing is lost; but ages shown here are off. Run NTP on both.",
			"this machine's clock is %s off the server's", s.drift.Round(time.Millisecond))
	default:
		s.add(OK, "clock", "", "agrees with this machine's")
	}
}

// config reads a setting. Where CONFIG is not allowed it fails.
func (s *server) config(ctx context.Context, name string) (string, error) {
	all, err := s.client.ConfigGet(ctx, name).Result()
	return all[name], err
}

func short(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
