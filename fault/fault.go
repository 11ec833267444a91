// Package fault says what a failure means for the work around it.
//
// Every error that leaves a package of this project carries a Kind, and every
// Kind has exactly one consequence, listed in docs/design/architecture.md:
// what happens to the unit at hand, to the operation, to the table and to the
// other tables. Callers decide on the Kind, never on a message.
package fault

import (
	"context"
	"errors"
	"strings"
)

// Kind is the class of a failure. Kinds are ordered: when several errors are
// joined the greatest one decides (see Of).
type Kind uint8

const (
	// None is the kind of a nil error.
	None Kind = iota
	// Transient: the same call may succeed later. Retry with backoff.
	Transient
	// Canceled: the caller gave up. Nothing is wrong with the table.
	Canceled
	// Stale: what was planned is no longer so. Drop, rebase or plan again.
	Stale
	// TooLarge: a stated bound would be passed. Skip the unit and report it.
	TooLarge
	// Unsupported: correct input that this program does not handle. Skip it and
	// name the feature.
	Unsupported
	// Unknown: it may or may not have happened. Keep every staged file; nothing
	// destructive until the head has been read again. An error that carries no
	// kind counts as Unknown, because that is the safe reading.
	Unknown
	// Corrupt: the input contradicts itself or its format. Stop and quarantine
	// the table.
	Corrupt
	// Halt: an invariant of this program is broken, or deletion cannot be
	// trusted. Stop the operation everywhere until a person has looked.
	Halt
)

var kindNames = [...]string{"none", "transient", "canceled", "stale", "too large", "unsupported", "unknown", "corrupt", "halt"}

// String is the kind's name in lower case, as results and metrics show it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// MarshalText renders the kind for JSON results.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, n := range kindNames {
		if n == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return errors.New("unknown fault kind " + string(b))
}

// Error is a failure with its kind, the action that was in progress and,
// for people, a hint at what to look at.
type Error struct {
	Kind Kind
	// Doing names the action in progress in lower case, without "failed to":
	// "read manifest s3://b/t/metadata/x.avro".
	Doing string
	// Hint says what a person can look at or run. Empty when the error speaks
	// for itself.
	Hint string
	// Err is the cause. It may be nil when Doing says everything.
	Err error
}

// Error joins the action and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Doing
	}
	if e.Doing == "" {
		return e.Err.Error()
	}
	return e.Doing + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of kind k that names the action or the finding.
func New(k Kind, doing string) error { return &Error{Kind: k, Doing: doing} }

// Wrap gives err the kind k and names the action in progress. A nil err stays
// nil.
func Wrap(k Kind, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, Doing: doing, Err: err}
}

// In names the action in progress and keeps the kind of err. A nil err stays
// nil.
func In(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Of(err), Doing: doing, Err: err}
}

// WithHint adds what a person can look at. The kind of err is kept and a nil
// err stays nil.
func WithHint(hint string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Of(err), Hint: hint, Err: err}
}

// Of returns the kind of err: of the outermost Error in its chain, and for
// joined errors the greatest of theirs. An error without a kind is Unknown.
func Of(err error) Kind {
	switch e := err.(type) { //nolint:errorlint // the chain is walked by hand, to see joined errors
	case nil:
		return None
	case *Error:
		return e.Kind
	case interface{ Unwrap() []error }:
		worst := None
		for _, inner := range e.Unwrap() {
			worst = max(worst, Of(inner))
		}
		return worst
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return Of(inner)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Canceled
	}
	return Unknown
}

// Is reports whether the kind of err is k.
func Is(err error, k Kind) bool { return Of(err) == k }

// Hints returns every hint in the chain of err, outermost first.
func Hints(err error) []string {
	var out []string
	walk(err, func(e *Error) {
		if e.Hint != "" {
			out = append(out, e.Hint)
		}
	})
	return out
}

// Message is the text for people: the error and, on a line each, its hints.
func Message(err error) string {
	var b strings.Builder
	b.WriteString(err.Error())
	for _, h := range Hints(err) {
		b.WriteString("\nhint: " + h)
	}
	return b.String()
}

func walk(err error, see func(*Error)) {
	if err == nil {
		return
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // the chain is walked by hand, to see joined errors
		see(e)
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			walk(inner, see)
		}
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), see)
	}
}
