package securitytest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/pool"
)

var ackAll = delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil })

// vectors runs the project's vectors of the attempts edit (Z3) as the user. The suites of package lua read and prepare
// keys by the store's own connection, which such a user may not do.
func (s *station) vectors(client *redis.Client) {
	s.t.Helper()
	if s.layout != pool.Zset {
		return
	}
	var v struct {
		AttemptsEdit []struct {
			Name, Ready, Reserved string
			Poison                bool
		} `json:"attempts_edit"`
	}
	must(s.t, json.Unmarshal([]byte(read(s.t, "testdata/redis.json")), &v))
	if len(v.AttemptsEdit) == 0 {
		s.t.Fatal("no vectors")
	}
	store := s.store(client, 0)
	for _, c := range v.AttemptsEdit {
		s.clear()
		s.push(c.Ready)
		got, err := store.Reserve(s.t.Context(), flow.ReserveRequest{Most: 1, Bytes: 1 << 30, FirstPop: 1, Migration: 1000})
		must(s.t, err)
		switch {
		case c.Poison:
			if got.Lease != nil || len(got.Poison) != 1 || got.Poison[0] != c.Ready {
				s.t.Errorf("%s: not refused: %+v", c.Name, got)
			}
		case got.Lease == nil || got.Lease.Items[0].Text != c.Reserved:
			s.t.Errorf("%s: reserved %+v, want %s", c.Name, got, c.Reserved)
		}
	}
}

// everything is the content of the server's lists and sorted sets.
func (s *station) everything() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, key := range s.do("KEYS", "*").([]any) {
		key := key.(string)
		all[key] = fmt.Sprintf("%x", s.do("DUMP", key))
	}
	return all
}
