package filer

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaice/seaice/fault"
)

// verdict is what is required of a mapped answer.
func verdict(t *testing.T, err error, kind fault.Kind, is error) {
	t.Helper()
	require.Equal(t, kind, fault.Of(err), "kind of %v", err)
	for _, s := range []error{ErrNotFound, ErrExists, ErrPrecondition} {
		require.Equal(t, s == is, errors.Is(err, s), "%v is %v", err, s) //nolint:errorlint // the sentinels themselves
	}
	if err != nil {
		var f *fault.Error
		require.ErrorAs(t, err, &f)
	}
}

func TestAnsweredMapsEveryCode(t *testing.T) {
	notFound := filer_pb.ErrNotFound.Error()
	for _, c := range []struct {
		name string
		err  error
		// The kinds for a read, for a change that was sent and for one that was not.
		read, sent, unsent fault.Kind
		is                 error
	}{
		{"nil", nil, fault.None, fault.None, fault.None, nil},
		{"unavailable", status.Error(codes.Unavailable, "connection reset"), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"deadline of the attempt", status.Error(codes.DeadlineExceeded, ""), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"canceled by the filer", status.Error(codes.Canceled, ""), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"aborted", status.Error(codes.Aborted, ""), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"internal", status.Error(codes.Internal, "stream terminated"), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"data loss", status.Error(codes.DataLoss, ""), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"store failed", status.Error(codes.Unknown, "leveldb: closed"), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"no status", errors.New("EOF"), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"F6 missing entry", status.Error(codes.Unknown, notFound), fault.Stale, fault.Stale, fault.Stale, ErrNotFound},
		{"F6 missing, wrapped", status.Error(codes.Unknown, "/a/b not found: "+notFound), fault.Stale, fault.Stale, fault.Stale, ErrNotFound},
		{"not found", status.Error(codes.NotFound, "x"), fault.Stale, fault.Stale, fault.Stale, ErrNotFound},
		{"the same text on another code is no answer", status.Error(codes.Unavailable, notFound), fault.Transient, fault.Unknown, fault.Transient, nil},
		{"F6 rename onto a file", status.Error(codes.Unknown, "/a/b: entry already exists"), fault.Stale, fault.Stale, fault.Stale, ErrExists},
		{"already exists", status.Error(codes.AlreadyExists, "x"), fault.Stale, fault.Stale, fault.Stale, ErrExists},
		{"precondition", status.Error(codes.FailedPrecondition, "x"), fault.Stale, fault.Stale, fault.Stale, ErrPrecondition},
		{"read only", status.Error(codes.Unknown, "read only: /buckets/b (e.g. bucket over quota)"), fault.Unsupported, fault.Unsupported, fault.Unsupported, nil},
		{"invalid", status.Error(codes.InvalidArgument, "x"), fault.Unsupported, fault.Unsupported, fault.Unsupported, nil},
		{"out of range", status.Error(codes.OutOfRange, "x"), fault.Unsupported, fault.Unsupported, fault.Unsupported, nil},
		{"unimplemented", status.Error(codes.Unimplemented, "x"), fault.Unsupported, fault.Unsupported, fault.Unsupported, nil},
		{"denied", status.Error(codes.PermissionDenied, "x"), fault.Unsupported, fault.Unsupported, fault.Unsupported, nil},
		{"unauthenticated", status.Error(codes.Unauthenticated, "x"), fault.Unsupported, fault.Unsupported, fault.Unsupported, nil},
		{"answer too large", status.Error(codes.ResourceExhausted, "grpc: received message larger than max (1 vs. 0)"), fault.TooLarge, fault.Unknown, fault.Transient, nil},
		{"request too large", status.Error(codes.ResourceExhausted, "trying to send message larger than max (1 vs. 0)"), fault.TooLarge, fault.TooLarge, fault.TooLarge, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict(t, answered(t.Context(), "x", reads, true, c.err), c.read, c.is)
			verdict(t, answered(t.Context(), "x", changes, true, c.err), c.sent, c.is)
			verdict(t, answered(t.Context(), "x", changes, false, c.err), c.unsent, c.is)
		})
	}
}

// TestAnsweredWhenTheCallerGaveUp: a change that was on its way when its caller
// gave up may have happened.
func TestAnsweredWhenTheCallerGaveUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unknown} {
		err := status.Error(code, "context canceled")
		verdict(t, answered(ctx, "x", reads, true, err), fault.Canceled, nil)
		verdict(t, answered(ctx, "x", changes, true, err), fault.Unknown, nil)
		verdict(t, answered(ctx, "x", changes, false, err), fault.Canceled, nil)
	}
	verdict(t, answered(ctx, "x", changes, true, status.Error(codes.FailedPrecondition, "")), fault.Stale, ErrPrecondition)
}

func TestRepliedMapsEveryError(t *testing.T) {
	for _, c := range []struct {
		code filer_pb.FilerError
		text string
		kind fault.Kind
		is   error
	}{
		{filer_pb.FilerError_OK, "", fault.None, nil},
		{filer_pb.FilerError_OK, "insert entry /a: leveldb: closed", fault.Unknown, nil},
		{filer_pb.FilerError_OK, "invalid path /a/..", fault.Unsupported, nil},
		{filer_pb.FilerError_OK, "create parent: invalid bucket name A_: x", fault.Unsupported, nil},
		{filer_pb.FilerError_ENTRY_NAME_TOO_LONG, "", fault.Unsupported, nil},
		{filer_pb.FilerError_PARENT_IS_FILE, "x", fault.Unsupported, nil},
		{filer_pb.FilerError_EXISTING_IS_DIRECTORY, "x", fault.Stale, ErrExists},
		{filer_pb.FilerError_EXISTING_IS_FILE, "x", fault.Stale, ErrExists},
		{filer_pb.FilerError_ENTRY_ALREADY_EXISTS, "", fault.Stale, ErrExists},
		{filer_pb.FilerError_PRECONDITION_FAILED, "x", fault.Stale, ErrPrecondition},
		{filer_pb.FilerError_READ_ONLY, "x", fault.Unsupported, nil},
		{99, "of a later version", fault.Unknown, nil},
	} {
		t.Run(c.code.String()+c.text, func(t *testing.T) { verdict(t, replied("x", c.code, c.text), c.kind, c.is) })
	}
	for code := range filer_pb.FilerError_name {
		if code != 0 {
			require.NotEqual(t, fault.Unknown, fault.Of(replied("x", filer_pb.FilerError(code), "")), "code %d has a meaning", code)
		}
	}
}

func TestServedMapsEveryStatus(t *testing.T) {
	for _, c := range []struct {
		code int
		kind fault.Kind
		is   error
	}{
		{http.StatusOK, fault.None, nil},
		{http.StatusPartialContent, fault.None, nil},
		{http.StatusNoContent, fault.None, nil},
		{http.StatusMovedPermanently, fault.Stale, ErrNotFound},
		{http.StatusNotFound, fault.Stale, ErrNotFound},
		{http.StatusUnauthorized, fault.Unsupported, nil},
		{http.StatusForbidden, fault.Unsupported, nil},
		{http.StatusRequestedRangeNotSatisfiable, fault.Corrupt, nil},
		{http.StatusBadRequest, fault.Transient, nil},
		{http.StatusConflict, fault.Transient, nil},
		{http.StatusTooManyRequests, fault.Transient, nil},
		{http.StatusInternalServerError, fault.Transient, nil},
		{http.StatusBadGateway, fault.Transient, nil},
	} {
		verdict(t, served("x", c.code, "text"), c.kind, c.is)
	}
}

func TestTransactedTellsWhatFailed(t *testing.T) {
	zero, one := int32(0), int32(1)
	for _, c := range []struct {
		name string
		r    *filer_pb.ObjectTransactionResponse
		kind fault.Kind
		is   error
	}{
		{"ok", &filer_pb.ObjectTransactionResponse{}, fault.None, nil},
		{"its condition", &filer_pb.ObjectTransactionResponse{Error: "x", ErrorCode: filer_pb.FilerError_PRECONDITION_FAILED}, fault.Stale, ErrPrecondition},
		{"target taken", &filer_pb.ObjectTransactionResponse{Error: "x", ErrorCode: filer_pb.FilerError_PRECONDITION_FAILED, FailedMutation: &zero}, fault.Stale, ErrExists},
		{"first mutation by the store", &filer_pb.ObjectTransactionResponse{Error: "x", FailedMutation: &zero}, fault.Unknown, nil},
		{"second mutation", &filer_pb.ObjectTransactionResponse{Error: "x", ErrorCode: filer_pb.FilerError_READ_ONLY, FailedMutation: &one}, fault.Unknown, nil},
	} {
		t.Run(c.name, func(t *testing.T) { verdict(t, transacted("x", c.r), c.kind, c.is) })
	}
}

// TestDeadFilerIsNotAsked: connecting fails without anything being sent, so even
// a change that must not be repeated is only Transient.
func TestDeadFilerIsNotAsked(t *testing.T) {
	w := newWire(t)
	w.server.Stop()
	c := dialWire(t, Config{}, w)
	_, err := c.Put(t.Context(), "/buckets/b/f", nil, CreateOptions{})
	verdict(t, err, fault.Transient, nil)
	_, err = c.Stat(t.Context(), "/buckets/b/f")
	verdict(t, err, fault.Transient, nil)
}
