// Package delivery is what a handler sees: the Delivery, and the verdicts a handler can return.
//
// It owns no behaviour of the pipeline: the router fills a Delivery and interprets the verdicts.
package delivery
