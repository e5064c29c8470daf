// Package securitytest shows what docs/security.md and the README promise about access, transport and secrets: whole
// pools and publishers, as Redis users with exactly the documented permissions, over TLS with good and bad certificates,
// and with passwords, bodies and hostile names that must not appear in any log line or error.
//
// All code is in test files. It owns servers of its own and reads the documents it checks; it never touches a server
// that it did not start.
package securitytest
