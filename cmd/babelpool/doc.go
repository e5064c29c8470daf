// Command babelpool is the operator's tool: it shows what queues hold, finds what is wrong with them, and repairs it.
//
//	babelpool stats --watch orders invoices
//	babelpool doctor orders
//	babelpool dlq redrive orders --yes
//
// Every command takes --json, and then prints one JSON document, or JSON lines where it lists messages. What comes from
// Redis is quoted wherever it is shown. Commands that change or delete messages ask first; --yes answers, and --dry-run
// only says what would be done. Colours and questions need a terminal.
//
// Exit codes: 0 all is well, 1 the command failed or doctor found a problem, 2 the command line is wrong, 3 not confirmed.
//
// The commands hold no queue logic: they call packages admin, redrive, publisher and internal/doctor.
package main
