// Package schema checks the data of messages against JSON Schemas, by URN.
//
// Compile reads the schemas once, when a program starts. Set.Validate is a middleware: a message whose data breaks its
// URN's schema does not reach its handler and is dead-lettered as failed, with an error that names each field and the
// rule it breaks; no retry can mend it. Set.Check is the same for a producer, before it publishes. URNs without a schema
// pass.
//
// Schemas are of draft 2020-12 unless their $schema says otherwise; format is checked, not only noted. A schema refers to
// its own parts alone: nothing is read from files or the network, at no time.
//
// Data is decoded once more for the check. Errors name the fields of a message and what should stand there, never the
// values that did (B48).
//
// Nothing of the package, nor of github.com/santhosh-tekuri/jsonschema, is linked unless it is imported.
package schema
