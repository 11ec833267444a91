package filer

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaice/seaice/fault"
)

// This file says what every answer of a filer and of a volume server means.
// gRPC codes alone do not suffice (F6): a filer returns plain Go errors, which
// arrive as code Unknown with nothing but their text, and it reports some
// refusals inside of a reply with code OK.

// effect says what repeating a call would do, and so what a lost answer means.
type effect uint8

const (
	// reads change nothing; a lost answer is Transient.
	reads effect = iota
	// changes may have happened when the answer is lost: Unknown.
	changes
)

const (
	hintSecurity = "compare security.toml of this program with the cluster's: [grpc.client], [jwt.signing], [https.client]"
	hintReadOnly = "the path is read-only at the filer, for example because its bucket is over its quota (weed shell: fs.configure, s3.bucket.quota)"
	hintVersion  = "the filer is older than this program needs; see docs/design/filer.md"
)

// Texts of SeaweedFS errors that reach a client as code Unknown.
var (
	textNotFound = filer_pb.ErrNotFound.Error()
	textExists   = filer_pb.ErrEntryAlreadyExists.Error()
	textReadOnly = filer_pb.ErrReadOnly.Error()
)

// answered maps the error of a gRPC call to a fault. sent is whether the
// request can have reached a filer; ctx is the caller's context, whose end is
// not the filer's fault.
func answered(ctx context.Context, doing string, e effect, sent bool, err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	if ctx.Err() != nil && interrupted(st.Code()) {
		if e == changes && sent {
			return fault.Wrap(fault.Unknown, doing, err)
		}
		return fault.Wrap(fault.Canceled, doing, context.Cause(ctx))
	}
	open := fault.Transient
	if e == changes && sent {
		open = fault.Unknown
	}
	switch st.Code() {
	case codes.NotFound:
		return fault.Wrap(fault.Stale, doing, sentinel(ErrNotFound, st))
	case codes.AlreadyExists:
		return fault.Wrap(fault.Stale, doing, sentinel(ErrExists, st))
	case codes.FailedPrecondition:
		return fault.Wrap(fault.Stale, doing, sentinel(ErrPrecondition, st))
	case codes.InvalidArgument, codes.OutOfRange:
		return fault.Wrap(fault.Unsupported, doing, err)
	case codes.Unimplemented:
		return fault.WithHint(hintVersion, fault.Wrap(fault.Unsupported, doing, err))
	case codes.Unauthenticated, codes.PermissionDenied:
		return fault.WithHint(hintSecurity, fault.Wrap(fault.Unsupported, doing, err))
	case codes.ResourceExhausted:
		// Sending too much fails here, before anything is sent.
		if e == reads || strings.Contains(st.Message(), "trying to send message larger") {
			return fault.Wrap(fault.TooLarge, doing, err)
		}
		return fault.Wrap(open, doing, err)
	case codes.Unknown:
		switch text := st.Message(); {
		case strings.Contains(text, textNotFound):
			return fault.Wrap(fault.Stale, doing, sentinel(ErrNotFound, st))
		case strings.Contains(text, textExists):
			return fault.Wrap(fault.Stale, doing, sentinel(ErrExists, st))
		case strings.HasPrefix(text, textReadOnly):
			return fault.WithHint(hintReadOnly, fault.Wrap(fault.Unsupported, doing, err))
		}
		return fault.Wrap(open, doing, err)
	default: // Unavailable, DeadlineExceeded, Canceled, Aborted, Internal, DataLoss
		return fault.Wrap(open, doing, err)
	}
}

// interrupted reports whether the code can come from the end of the caller's
// own context.
func interrupted(c codes.Code) bool {
	return c == codes.Canceled || c == codes.DeadlineExceeded || c == codes.Unknown || c == codes.Unavailable
}

// sentinel is a sentinel error that keeps the filer's own words.
func sentinel(s error, st *status.Status) error {
	return &answerError{says: st.Message(), is: s}
}

type answerError struct {
	says string
	is   error
}

func (e *answerError) Error() string { return e.is.Error() + " (" + e.says + ")" }
func (e *answerError) Unwrap() error { return e.is }

// replied maps the error inside of a reply to a fault. text is the filer's
// message and may be empty if code says everything.
func replied(doing string, code filer_pb.FilerError, text string) error {
	if code == filer_pb.FilerError_OK && text == "" {
		return nil
	}
	cause := errors.New(text)
	if text == "" {
		cause = errors.New(code.String())
	}
	switch code {
	case filer_pb.FilerError_ENTRY_ALREADY_EXISTS, filer_pb.FilerError_EXISTING_IS_DIRECTORY, filer_pb.FilerError_EXISTING_IS_FILE:
		return fault.Wrap(fault.Stale, doing, &answerError{says: cause.Error(), is: ErrExists})
	case filer_pb.FilerError_PRECONDITION_FAILED:
		return fault.Wrap(fault.Stale, doing, &answerError{says: cause.Error(), is: ErrPrecondition})
	case filer_pb.FilerError_ENTRY_NAME_TOO_LONG, filer_pb.FilerError_PARENT_IS_FILE:
		return fault.Wrap(fault.Unsupported, doing, cause)
	case filer_pb.FilerError_READ_ONLY:
		return fault.WithHint(hintReadOnly, fault.Wrap(fault.Unsupported, doing, cause))
	}
	switch {
	case strings.Contains(text, "invalid path "), strings.Contains(text, "invalid bucket name "):
		return fault.Wrap(fault.Unsupported, doing, cause)
	}
	// The store failed at some point of the change: it may have happened.
	return fault.Wrap(fault.Unknown, doing, cause)
}

// unknown makes an error of the outcome being open. Its words are kept, its
// sentinels are not: they would read as an answer.
func unknown(err error) error { return fault.New(fault.Unknown, err.Error()) }

// served maps the status of a volume server's answer. 404 is ErrNotFound: the
// volume server does not hold the chunk.
func served(doing string, code int, says string) error {
	err := error(&statusError{code: code, says: says})
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusNotFound, code >= 300 && code < 400:
		// A server that does not have the volume redirects to one that does;
		// the token would not go along, so the volume is looked up again.
		return fault.Wrap(fault.Stale, doing, &answerError{says: err.Error(), is: ErrNotFound})
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fault.WithHint(hintSecurity, fault.Wrap(fault.Unsupported, doing, err))
	case code == http.StatusRequestedRangeNotSatisfiable:
		return fault.Wrap(fault.Corrupt, doing, err)
	}
	return fault.Wrap(fault.Transient, doing, err)
}

type statusError struct {
	code int
	says string
}

func (e *statusError) Error() string {
	s := "status " + strconv.Itoa(e.code)
	if e.says != "" {
		s += ": " + e.says
	}
	return s
}

// requested maps the failure of an HTTP request that got no answer. Reads and
// uploads of unreferenced chunks may be repeated.
func requested(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, doing, context.Cause(ctx))
	}
	return fault.Wrap(fault.Transient, doing, err)
}

// unimplemented reports whether the filer does not know the call.
func unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
