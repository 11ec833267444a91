package main

import (
	"errors"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Exit codes. They are documented and stable: scripts depend on them.
const (
	exitDone        = 0 // done, or nothing to do
	exitError       = 1 // anything that has no code of its own
	exitUsage       = 2 // the command line is wrong
	exitStale       = 3 // the table is no longer as planned: plan again
	exitUnsupported = 4 // the table uses what this program does not handle
	exitCorrupt     = 5 // the table contradicts itself or its format
	exitUnknown     = 6 // a change may or may not have happened: look before running again
)

// usageError says that the command line is wrong.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usage marks err as a mistake in the command line. A nil err stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// localError is a failure of this process or call alone, such as writing its
// output. It says nothing about a table, so it is exitError whatever its kind.
type localError struct{ err error }

func (e localError) Error() string { return e.err.Error() }
func (e localError) Unwrap() error { return e.err }

// local marks err as a failure of this process or call alone. A nil err stays nil.
func local(err error) error {
	if err == nil {
		return nil
	}
	return localError{err}
}

// absent marks the error of reading what the command line names and is not
// there. The kind of such an error is fault.Stale, as of anything that went
// away; but planning again would not help. Other errors stay what they are.
func absent(hint string, err error) error {
	if fault.Is(err, fault.Stale) && filer.NotFound(err) {
		return local(fault.WithHint(hint, err))
	}
	return err
}

// exitCode is the code of the process that ends with err. An error without a
// kind counts as unknown, as everywhere.
func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[localError](err); ok {
		return exitError
	}
	switch fault.Of(err) {
	case fault.None:
		return exitDone
	case fault.Stale:
		return exitStale
	case fault.Unsupported:
		return exitUnsupported
	case fault.Corrupt:
		return exitCorrupt
	case fault.Unknown:
		return exitUnknown
	case fault.Transient, fault.Canceled, fault.TooLarge, fault.Halt:
		return exitError
	}
	return exitUnknown
}
