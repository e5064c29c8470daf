package archtest

// module is what the imports of this module start with.
const module = "github.com/babelpool/babelpool"

// row is one line of the layering. Names are paths below the module's root; "." is the root itself,
// and "x/..." means x and everything below it.
type row struct {
	pkg string
	may string // the packages of this module that it may import, in words; see everything and public
}

const (
	everything = "*"      // all packages
	public     = "public" // all packages outside internal
)

// layers says who may import whom within the module. A package stands above everything it imports,
// so reading downwards is reading towards the wire. The actors (reserver, router, acker, scheduler)
// know neither each other nor the store: pool connects them.
//
// Test files may import what their package may, the package itself, and the helpers below.
var layers = []row{
	{"cmd/...", everything},
	{"bench/...", everything},
	{"examples/...", public}, // readers copy them, and nobody else can import internal packages
	{".", ""},
	{"internal/modeltest", "lua internal/flow envelope"},                                                                        // random sequences against a model, in tests
	{"internal/faulttest", "pool publisher shard router delivery lua internal/flow internal/retry envelope"},                    // whole pools, in tests
	{"internal/securitytest", "pool publisher router delivery lua internal/flow internal/retry envelope"},                       // the same, as other people see it
	{"internal/handlertest", "pool shard publisher router routertest tracing idempotency limit batch schema delivery envelope"}, // handlers in whole pools, in tests

	{"metrics", "pool router delivery envelope"}, // optional, as those below pool
	{"health", "pool delivery"},
	{"shard", "pool publisher router lua delivery envelope"}, // one queue over several

	{"pool", "reserver router acker scheduler lua delivery internal/flow internal/retry internal/slots envelope"},

	// Optional parts: linked only when imported, so nothing above may be in their way.
	{"tracing", "publisher router delivery envelope"},
	{"idempotency", "router lua delivery envelope"},
	{"batch", "routertest router delivery envelope"},
	{"limit", "router delivery envelope"},
	{"admin", "publisher lua internal/flow envelope"},
	{"redrive", "publisher lua delivery internal/flow internal/retry envelope"},
	{"schema", "routertest router delivery internal/jsonpath envelope"},
	{"routertest", "router delivery internal/flow envelope"}, // for users' tests

	{"publisher", "lua internal/flow envelope"},
	{"internal/doctor", "lua internal/flow envelope"}, // of the operator's command
	{"internal/yardstick", "lua internal/flow"},
	{"internal/chaos", "internal/redisproc internal/faultproxy internal/retry"}, // the load test's faults

	{"reserver", "delivery internal/flow internal/retry internal/slots envelope"},
	{"router", "delivery internal/flow internal/retry internal/slots internal/jsonpath envelope"},
	{"acker", "delivery internal/flow internal/retry internal/slots envelope"},
	{"scheduler", "delivery internal/flow internal/retry internal/slots envelope"},

	{"lua", "internal/flow envelope"},
	{"delivery", "internal/flow envelope"},
	{"internal/flow", "envelope"},
	{"internal/retry", ""},
	{"internal/slots", ""},
	{"internal/jsonpath", ""},
	{"envelope", ""},

	{"internal/archtest", ""},
	{"internal/testredis", "internal/redisproc"},
	{"internal/faultproxy", ""},
	{"internal/testlog", ""},
	{"internal/plots", ""}, // of the load test and of the benchmarks' results
	{"internal/redisproc", ""},
}

// helpers are what any test file may import besides.
const helpers = "internal/testredis internal/testlog internal/faultproxy internal/redisproc"

// rootTests are what the test files at the module's root may import besides: the README's examples
// are compiled there.
const rootTests = public

// gate keeps a package or module from other modules to a few of ours. Test files are free.
type gate struct {
	imports string // an import path; what lies below it is meant too
	users   string // in words, as in row
	reason  string
}

var gates = []gate{
	{
		"github.com/redis/go-redis",
		"cmd/... bench/... examples/... pool shard idempotency redrive admin tracing publisher lua internal/testredis internal/redisproc internal/yardstick internal/doctor",
		"the actors must work on any store",
	},
	{"github.com/prometheus", "metrics bench/... examples/... cmd/...", "it is linked only where metrics is imported"},
	{"go.opentelemetry.io", "tracing bench/... examples/... cmd/...", "it is linked only where tracing is imported"},
	{"testing", "bench/... internal/testredis internal/testlog internal/faultproxy", "it belongs in no program"},
	{"github.com/alicebob/miniredis", "cmd/... bench/... internal/testredis", "it belongs in no program but the load test"},
	{"go.uber.org/goleak", "internal/testredis", "it belongs in no program"},
	{"github.com/google/go-cmp", "", "it belongs in no program"},
	{"pgregory.net/rapid", "", "it belongs in no program"},
}

// exception lets one file break one rule, for a reason that the next reader can judge.
type exception struct {
	file   string
	reason string
}

// bareGo lists the files that may hold a bare go statement outside tests. Everywhere else goroutines
// start through errgroup or conc, so that somebody waits for them and a panic reaches somebody.
var bareGo = []exception{}

// maxLines is the most a file may have, test files aside. One that needs more holds several ideas.
const maxLines = 450
