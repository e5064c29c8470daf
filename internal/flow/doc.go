// Package flow holds what the actors of a pool exchange: reservations and their leases, settlements and
// their results, the classes of errors, and the counters.
//
// It owns the rule that each reservation is settled once: every reservation has one atomic state, and a
// single compare-and-swap decides start, settlement, hand back and loss. It knows neither Redis nor
// handlers.
package flow
