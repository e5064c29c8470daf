package doctor

import (
	"context"
	"strings"

	"github.com/babelpool/babelpool/internal/flow"
)

// needed are the commands of a consumer by what they work on, one key each, as the README lists them.
var needed = map[string][][]string{
	"list": {{"lpop", "KEY"}, {"rpush", "KEY", "x"}, {"lpush", "KEY", "x"}, {"lrange", "KEY", "0", "0"}, {"ltrim", "KEY", "0", "0"},
		{"lrem", "KEY", "0", "x"}, {"lindex", "KEY", "0"}, {"lset", "KEY", "0", "x"}, {"llen", "KEY"}},
	"zset": {{"zadd", "KEY", "1", "x"}, {"zrem", "KEY", "x"}, {"zremrangebyrank", "KEY", "0", "0"}, {"zrangebyscore", "KEY", "0", "0"},
		{"zrange", "KEY", "0", "0"}, {"zrank", "KEY", "x"}, {"zscore", "KEY", "x"}, {"zmscore", "KEY", "x"}, {"zcard", "KEY"},
		{"zcount", "KEY", "0", "0"}},
	"hash": nil, // with MaxRecoveries alone
}

// permissions asks the server whether the user of this command could consume (ACL DRYRUN, Redis 7). Whoever looks is
// seldom the user of the consumers, so a refusal is worth knowing, and no problem.
func (e *examination) permissions(ctx context.Context, s *server) {
	if old7(s.info["redis_version"]) {
		return
	}
	user, err := e.client.Do(ctx, "acl", "whoami").Text()
	if err != nil {
		e.unknown("acl", err)
		return
	}
	var refused []string
	try := func(words ...string) bool {
		args := []any{"acl", "dryrun", user}
		for _, w := range words {
			args = append(args, w)
		}
		reply, err := e.client.Do(ctx, args...).Text()
		if err != nil {
			e.unknown("acl", err)
			return false
		}
		if reply != "OK" {
			refused = append(refused, strings.Join(words[:min(2, len(words))], " "))
		}
		return true
	}
	calls := [][]string{{"evalsha", "x", "1", e.queue.Keys.Ready}, {"exists", e.queue.Keys.Paused}, {"del", e.queue.Keys.Ready}, {"type", e.queue.Keys.Ready}, {"time"}}
	if e.queue.Layout == flow.Zset {
		calls = append(calls, []string{"blpop", e.queue.Keys.Notify, "1"})
	} else {
		calls = append(calls, []string{"blmove", e.queue.Keys.Ready, e.queue.Keys.Ready, "left", "left", "1"})
	}
	for _, k := range e.keys() {
		for _, words := range needed[k.want] {
			words = append([]string(nil), words...)
			words[1] = k.key
			calls = append(calls, words)
		}
	}
	for _, words := range calls {
		if !try(words...) {
			return
		}
	}
	if len(refused) > 0 {
		e.add(Info, "acl", "A consumer needs them; see the README's list. If consumers have a user of their own, look as that one.",
			"user %q may not run: %s", user, strings.Join(quoted(refused), ", "))
		return
	}
	e.add(OK, "acl", "", "user %q may consume", user)
}

// old7 is true before 7.0, which has no ACL DRYRUN, and for versions that cannot be read.
func old7(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	return len(major) == 1 && major < "7" || major == ""
}

func quoted(texts []string) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = quoteText(t)
	}
	return all
}
