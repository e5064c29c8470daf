package lua

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed lib/*.lua legacy/*.lua zset/*.lua *.lua
var sources embed.FS

// script is one transition: its text, fragments included, and the name Redis caches it under.
type script struct {
	name string
	text string
	hash string
}

var (
	legacyReserve  = load("legacy/reserve.lua")
	legacySettle   = load("legacy/settle.lua")
	legacyHandBack = load("legacy/handback.lua")
	legacyPostpone = load("legacy/postpone.lua")
	legacySweep    = load("legacy/sweep.lua")
	legacyAudit    = load("legacy/audit.lua")
	legacyAdopt    = load("legacy/adopt.lua")
	legacyRecall   = load("legacy/recall.lua")

	zsetReserve  = load("zset/reserve.lua")
	zsetSettle   = load("zset/settle.lua")
	zsetHandBack = load("zset/handback.lua")
	zsetMigrate  = load("zset/migrate.lua")
	zsetAudit    = load("zset/audit.lua")
	zsetPublish  = load("zset/publish.lua")
	zsetDelay    = load("zset/delay.lua")

	renewLeases  = load("renew.lua")
	excuseLeases = load("excuse.lua")

	probeCommands = load("probe.lua")

	takeDead     = load("take.lua")
	trimDead     = load("trim.lua")
	shiftDelayed = load("shift.lua")
	forgetLost   = load("forget.lua")
	lookUpLost   = load("lookup.lua")

	takeClaim = load("claim.lua")
	endClaim  = load("unclaim.lua")
)

const include = "-- @include "

// load reads an embedded script and puts the fragments it names before it. Comments are left out of what
// Redis gets: a script is sent whole after each restart of the server. A file that is not there is a mistake
// in this package, found by any test.
func load(name string) *script {
	text := mustRead(name)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if names, ok := strings.CutPrefix(line, include); ok {
			for _, fragment := range strings.Fields(names) {
				strip(&b, mustRead("lib/"+fragment+".lua"))
			}
		}
	}
	strip(&b, text)
	return made(name, b.String())
}

// made is the script of a text.
func made(name, text string) *script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{name: name, text: text, hash: hex.EncodeToString(sum[:])}
}

func mustRead(name string) string {
	text, err := sources.ReadFile(name)
	if err != nil {
		panic("lua: " + err.Error())
	}
	return string(text)
}

func strip(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			b.WriteString(line)
		}
	}
}
