package filer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

// Move moves a file by a transaction that asserts the whole source entry and
// the absence of the target. It is sent even if the source no longer is what
// was planned: a filer that has carried it out already replays its answer.
func (c *Client) Move(ctx context.Context, m Move) error {
	if m.From == nil {
		return fault.New(fault.Halt, "move without a source entry")
	}
	from := m.From.Path
	doing := fmt.Sprintf("move %s to %s", from, m.To)
	if err := movable(m); err != nil {
		return fault.In(doing, err)
	}
	source, err := c.Stat(ctx, from)
	switch {
	case NotFound(err) || err == nil && source.Identity() != m.From.Identity():
		// What was planned differs from what is there, so the condition fails
		// unless the outcome is remembered.
		source = m.From
	case err != nil:
		return fault.In(doing, err)
	}
	if err := movableEntry(source); err != nil {
		return fault.In(doing, err)
	}
	open, err := c.transact(ctx, doing, from, m.ID, moveRequest(source, m))
	if errors.Is(err, errNoTransactions) {
		return c.rename(ctx, doing, m)
	}
	if err == nil {
		return nil
	}
	return c.moveFailed(ctx, doing, m, open, err)
}

func moveRequest(source *Entry, m Move) *filer_pb.ObjectTransactionRequest {
	return &filer_pb.ObjectTransactionRequest{
		Condition: entryEqual(source.PB),
		Mutations: []*filer_pb.ObjectMutation{
			{Type: filer_pb.ObjectMutation_PUT, Directory: m.To.Dir().String(), Entry: movedEntry(source, m), Condition: absentEntry()},
			{Type: filer_pb.ObjectMutation_DELETE, Directory: source.Path.Dir().String(), Name: source.Path.Name()},
		},
	}
}

// movedEntry is the entry at its new place: the same data, times and attributes
// but those of m.Set. The stamp of the last change is the filer's to set.
func movedEntry(source *Entry, m Move) *filer_pb.Entry {
	pb := proto.CloneOf(source.PB)
	pb.Name, pb.CommitTsNs = m.To.Name(), 0
	setExtended(pb, m.Set)
	return pb
}

// movable checks what can be known without looking.
func movable(m Move) error {
	for _, p := range []Path{m.From.Path, m.To} {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	switch from := m.From.Path; {
	case from.Bucket() == "" || from.Bucket() != m.To.Bucket() || m.To == BucketPath(m.To.Bucket()):
		return fault.New(fault.Unsupported, "files move only within their bucket")
	case m.To.Within(from) || from.Within(m.To):
		return fault.New(fault.Unsupported, "one path lies within the other")
	}
	return movableEntry(m.From)
}

func movableEntry(e *Entry) error {
	switch {
	case e.IsDir:
		return fault.New(fault.Unsupported, "directories are not moved")
	case e.RemoteBacked():
		return fault.New(fault.Unsupported, "files backed by a remote store are not moved")
	case len(e.PB.GetHardLinkId()) > 0:
		return fault.New(fault.Unsupported, "hard-linked files are not moved")
	}
	return nil
}

// moved reports whether the target is what the move makes of its source. It
// shares the source's data, which tells it from every other file.
func moved(m Move, target *Entry) bool {
	return !target.IsDir && target.Identity() == m.From.Identity() &&
		maps.EqualFunc(target.Extended, movedEntry(m.From, m).GetExtended(), bytes.Equal)
}

// moveFailed looks at both paths before it says what a failure means.
func (c *Client) moveFailed(ctx context.Context, doing string, m Move, open bool, cause error) error {
	open = open || fault.Is(cause, fault.Unknown)
	if !open && !errors.Is(cause, ErrPrecondition) {
		return cause
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	_, serr := c.Stat(look, m.From.Path)
	target, terr := c.Stat(look, m.To)
	switch {
	case NotFound(serr) && terr == nil && moved(m, target):
		return nil
	case open:
		return fault.WithHint("both "+m.From.Path.String()+" and "+m.To.String()+" may hold the file",
			unknown(cause))
	case NotFound(serr):
		return fault.In(doing, serr)
	}
	return cause
}

// rename is the move through a filer without transactions: nothing asserts the
// source, so it is compared before, and again at its new place, and moved back
// if it is not the file that was meant.
func (c *Client) rename(ctx context.Context, doing string, m Move) error {
	from := m.From.Path
	source, err := c.Stat(ctx, from)
	if NotFound(err) {
		if target, terr := c.Stat(ctx, m.To); terr == nil && moved(m, target) {
			return nil
		}
	}
	if err != nil {
		return fault.In(doing, err)
	}
	if source.Identity() != m.From.Identity() {
		return fault.Wrap(fault.Stale, doing+": the source was written again", ErrPrecondition)
	}
	if len(m.Set) > 0 {
		names := slices.Sorted(maps.Keys(m.Set))
		if source, err = c.Update(ctx, Update{Base: source, Expect: Expectation(source, names...), Set: m.Set}); err != nil {
			return fault.In(doing, err)
		}
	}
	if err := c.renameEntry(ctx, doing, from, m.To); err != nil {
		return err
	}
	target, err := c.Stat(ctx, m.To)
	if err != nil {
		return fault.In(doing+": it was renamed and cannot be looked at", unknown(err))
	}
	if target.Identity() == source.Identity() {
		return nil
	}
	if err := c.renameEntry(ctx, "move back "+m.To.String(), m.To, from); err != nil {
		return fault.In(doing+": another file was renamed and could not be moved back", unknown(err))
	}
	return fault.Wrap(fault.Stale, doing+": the source was written again", ErrPrecondition)
}

func (c *Client) renameEntry(ctx context.Context, doing string, from, to Path) error {
	return c.change(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		_, err := n.AtomicRenameEntry(ctx, &filer_pb.AtomicRenameEntryRequest{
			OldDirectory: from.Dir().String(), OldName: from.Name(),
			NewDirectory: to.Dir().String(), NewName: to.Name(), FailIfTargetExists: true,
		}, opts...)
		return err
	})
}
