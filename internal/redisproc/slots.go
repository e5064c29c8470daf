package redisproc

import (
	"context"
	"fmt"
)

// migrateLimit bounds the move of one key, in milliseconds.
const migrateLimit = 2000

// MoveSlot moves a slot to another master, key by key, as a resharding does: while it lasts the keys of the slot
// are partly here and partly there, and commands for them are answered ASK or TRYAGAIN. between, when not nil, is
// called before the first key is moved and after each. It returns when all live nodes agree on the new master.
func (c *Cluster) MoveSlot(ctx context.Context, slot int, to *Server, between func()) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	from, err := c.Owner(ctx, slot)
	if err != nil {
		return err
	}
	if between == nil {
		between = func() {}
	}
	// Importing first: the source must not send anybody to a node that would send him back.
	if err := to.do(ctx, "cluster", "setslot", slot, "importing", c.ids[from]).Err(); err != nil {
		return fmt.Errorf("redisproc: importing slot %d: %w", slot, err)
	}
	if err := from.do(ctx, "cluster", "setslot", slot, "migrating", c.ids[to]).Err(); err != nil {
		return fmt.Errorf("redisproc: migrating slot %d: %w", slot, err)
	}
	for {
		between()
		keys, err := from.do(ctx, "cluster", "getkeysinslot", slot, 1).StringSlice()
		if err != nil {
			return fmt.Errorf("redisproc: keys of slot %d: %w", slot, err)
		}
		if len(keys) == 0 {
			break
		}
		// NOKEY, when somebody has emptied the list meanwhile, is fine.
		if err := from.do(ctx, "migrate", "127.0.0.1", to.port, keys[0], 0, migrateLimit).Err(); err != nil {
			return fmt.Errorf("redisproc: moving key %q: %w", keys[0], err)
		}
	}
	// The new master first: it must know before anybody is sent to it.
	for _, s := range append([]*Server{to, from}, alive(c.nodes)...) {
		me, err := s.myself(ctx)
		if err != nil {
			return err
		}
		if me.is("slave") {
			continue // it hears of it from its master
		}
		if err := s.do(ctx, "cluster", "setslot", slot, "node", c.ids[to]).Err(); err != nil {
			return fmt.Errorf("redisproc: telling %s of the move of slot %d: %w", s.addr, slot, err)
		}
	}
	return c.AwaitOwner(ctx, slot, to)
}

// AnotherMaster is a live master other than the slot's own.
func (c *Cluster) AnotherMaster(ctx context.Context, slot int) (*Server, error) {
	owner, err := c.Owner(ctx, slot)
	if err != nil {
		return nil, err
	}
	for _, s := range alive(c.nodes) {
		me, err := s.myself(ctx)
		if err != nil {
			return nil, err
		}
		if s != owner && me.is("master") {
			return s, nil
		}
	}
	return nil, fmt.Errorf("redisproc: no master but %s is left", owner.addr)
}
