package envelope

import "errors"

var (
	// ErrEmptyURN is returned when New is given a URN that is empty or holds
	// only white space (E2).
	ErrEmptyURN = errors.New("envelope: the URN is empty")

	// ErrDataNotObject is returned when the data given to New does not encode
	// as one JSON object of valid UTF-8, nested at most so deep that the whole
	// envelope can be decoded again (E1).
	ErrDataNotObject = errors.New("envelope: data is not a JSON object")

	// ErrPoison is what every error of Decode matches under errors.Is. The
	// error itself is a *PoisonError, which carries the reason.
	ErrPoison = errors.New("envelope: poison message")

	// ErrNotEditable is returned when RaiseAttempts or RequeueEdit is given a
	// text whose counter cannot be raised safely: it is not one JSON object, or
	// its attempts is not a plain integer from 0 to MaxCounter-1 (Z3).
	ErrNotEditable = errors.New("envelope: attempts cannot be edited")
)

// PoisonError is the error of Decode: a body that no consumer may accept (E3).
// It never quotes the body, so it is safe to log (B48).
type PoisonError struct {
	// Reason says in one phrase what is wrong, such as "data is not an object".
	Reason string
}

// Error returns the reason, prefixed with the package name.
func (e *PoisonError) Error() string { return "envelope: poison message: " + e.Reason }

// Is reports whether target is ErrPoison, so that errors.Is(err, ErrPoison)
// holds for every PoisonError.
func (e *PoisonError) Is(target error) bool { return target == ErrPoison }
