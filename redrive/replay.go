package redrive

import "github.com/babelpool/babelpool/delivery"

// ReplayHeader is the header that marks a message as a replay. Its value is "1".
const ReplayHeader = "bq-replay-bypass"

// IsReplay reports whether a message was sent back with Options.Replay, so that a handler can leave out what must not
// happen twice. It is always false in the zset layout, which has no headers (F4).
func IsReplay(d *delivery.Delivery) bool { return d.Headers[ReplayHeader] == "1" }
