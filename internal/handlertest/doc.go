// Package handlertest runs handlers and middleware in a whole pool on a real Redis, in both layouts: the parts of
// router, delivery and the optional packages that are tested alone elsewhere.
//
// It holds nothing that a program could use: all code is in test files.
package handlertest
