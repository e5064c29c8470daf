package health

import (
	"encoding/json"
	"net/http"

	"github.com/babelpool/babelpool/pool"
)

// Source is what is asked: a *pool.Pool.
type Source interface {
	Health() pool.Health
}

// Answer is the body of every answer, as JSON.
type Answer struct {
	OK      bool     `json:"ok"`
	States  []string `json:"states"`            // of the pools, in their order
	Reasons []string `json:"reasons,omitempty"` // why it is not
}

// Handler serves /livez and /readyz: 200, or 503 where one pool or more is not.
func Handler(pools ...Source) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", Live(pools...))
	mux.Handle("GET /readyz", Ready(pools...))
	return mux
}

// Live is /livez alone, for a path of your own.
func Live(pools ...Source) http.Handler {
	return handler(pools, func(h pool.Health) bool { return h.Live })
}

// Ready is /readyz alone.
func Ready(pools ...Source) http.Handler {
	return handler(pools, func(h pool.Health) bool { return h.Ready })
}

func handler(pools []Source, good func(pool.Health) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer, status := Answer{OK: true}, http.StatusOK
		for _, p := range pools {
			h := p.Health()
			answer.States = append(answer.States, h.State.String())
			if !good(h) {
				answer.OK, status = false, http.StatusServiceUnavailable
				answer.Reasons = append(answer.Reasons, h.Reasons...)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // the asker may have gone
	})
}
