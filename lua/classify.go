package lua

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

// ErrFull is returned beside flow.ErrTransient when the server is at maxmemory and refuses a write (B43).
var ErrFull = errors.New("redis is full")

// transient are the codes of a server that cannot serve now, or of a cluster that is being changed (B22).
var transient = []string{
	"LOADING", "BUSY", "MISCONF", "READONLY", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "OOM", "MASTERDOWN",
	"MOVED", "ASK", "UNBLOCKED",
}

// classify wraps an error of a call with the class that says what to do about it. what names the call. The text is safe
// to log.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	err = show(err)
	var reply redis.Error
	if errors.As(err, &reply) {
		return classifyReply(what, reply.Error(), err)
	}
	if errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("lua: %s: %w: the client is closed: %w", what, flow.ErrPermanent, err)
	}
	if untrusted(err) {
		return fmt.Errorf("lua: %s: %w: %w: %w", what, flow.ErrPermanent, flow.ErrUntrusted, err)
	}
	if unsent(err) {
		return fmt.Errorf("lua: %s: %w: %w", what, flow.ErrTransient, err)
	}
	return fmt.Errorf("lua: %s: %w: %w: %w", what, flow.ErrTransient, flow.ErrAmbiguous, err)
}

// classifyReply reads the code of an error reply. The server did not carry the call out, or a script checked
// before its first write; so no reply is ambiguous. text is the reply itself: a hook of the caller's client may
// have wrapped err.
func classifyReply(what, text string, err error) error {
	code := code(text)
	switch {
	case code == "OOM":
		return fmt.Errorf("lua: %s: %w: %w: %w", what, flow.ErrTransient, ErrFull, err)
	case isTransient(code):
		return fmt.Errorf("lua: %s: %w: %w", what, flow.ErrTransient, err)
	case code == "NOAUTH" || code == "WRONGPASS":
		return fmt.Errorf("lua: %s: %w: %w: %w", what, flow.ErrPermanent, flow.ErrAuth, err)
	}
	return fmt.Errorf("lua: %s: %w: %w", what, flow.ErrPermanent, err)
}

// code is the error code of a reply. Servers before 7.0 wrap the error of a command inside a script as "ERR
// Error running script (…): @user_script:1: -READONLY You can't …" (M13), so the wrapped code is looked for.
func code(text string) string {
	if strings.HasPrefix(text, "ERR ") {
		for _, c := range append([]string{"WRONGTYPE", "NOPERM"}, transient...) {
			if strings.Contains(text, ": -"+c+" ") || strings.Contains(text, " @user_script: "+c+" ") {
				return c
			}
		}
		if strings.Contains(text, "max number of clients") {
			return "BUSY"
		}
		// A client that has not authenticated may send only short commands; a script call is none.
		if strings.HasPrefix(text, "ERR Protocol error: unauthenticated ") {
			return "NOAUTH"
		}
	}
	word, _, _ := strings.Cut(text, " ")
	return word
}

func isTransient(code string) bool {
	for _, c := range transient {
		if code == c {
			return true
		}
	}
	return false
}

// unsent reports whether an error shows that the command never left: no connection could be made or had.
func unsent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, context.Canceled)
}

// untrusted reports whether the server's certificate is not accepted, which trying again does not mend.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}

// Classify wraps an error of a command that a caller sent itself, as the stores do with theirs. what names
// the command.
func Classify(what string, err error) error { return classify(what, err) }
