package filer

import (
	"context"
	"errors"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
)

// Delete removes the file at p and its data if g holds. The deletion asserts
// that the entry is the one that was checked; nothing is sent twice.
func (c *Client) Delete(ctx context.Context, p Path, g Guard) error {
	return c.removal(ctx, "delete "+p.String(), p, g, true)
}

// Unlink removes the entry at p like Delete and leaves its data.
func (c *Client) Unlink(ctx context.Context, p Path, g Guard) error {
	return c.removal(ctx, "unlink "+p.String(), p, g, false)
}

func (c *Client) removal(ctx context.Context, doing string, p Path, g Guard, withData bool) error {
	e, err := c.Stat(ctx, p)
	if err != nil {
		return fault.In(doing, err)
	}
	switch {
	case e.IsDir:
		return fault.New(fault.Unsupported, doing+": it is a directory")
	case e.RemoteBacked():
		return fault.New(fault.Unsupported, doing+": it is backed by a remote store, which would lose it too")
	case len(e.PB.GetHardLinkId()) > 0:
		return fault.New(fault.Unsupported, doing+": it is a hard link")
	case g.Identity != "" && e.Identity() != g.Identity:
		return fault.Wrap(fault.Stale, doing+": it was written again", ErrPrecondition)
	case !g.NotModifiedAfter.IsZero() && (e.Newest.IsZero() || e.Newest.After(g.NotModifiedAfter)):
		return fault.Wrap(fault.Stale, doing+": it was modified too recently", ErrPrecondition)
	}
	err = c.change(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		return c.removeEntry(ctx, n, doing, e, withData, opts)
	})
	if errors.Is(err, errNoTransactions) {
		return c.removeUnlessModified(ctx, doing, e, g, withData)
	}
	if errors.Is(err, ErrPrecondition) {
		if _, serr := c.Stat(ctx, p); NotFound(serr) {
			return fault.In(doing, serr)
		}
	}
	return err
}

// removeEntry removes e in a transaction that asserts the whole entry.
func (c *Client) removeEntry(ctx context.Context, n *node, doing string, e *Entry, withData bool, opts []grpc.CallOption) error {
	if err := n.transactional(ctx, c); err != nil {
		return err
	}
	r, err := n.ObjectTransaction(ctx, &filer_pb.ObjectTransactionRequest{
		LockKey: e.Path.String(), RouteKey: routePrefix + e.Path.String(),
		Condition: entryEqual(e.PB),
		Mutations: []*filer_pb.ObjectMutation{{
			Type: filer_pb.ObjectMutation_DELETE, Directory: e.Path.Dir().String(), Name: e.Path.Name(), IsDeleteData: withData,
		}},
	}, opts...)
	if err != nil {
		return err
	}
	return transacted(doing, r)
}

// removeUnlessModified is the removal through a filer without transactions.
// It holds a removal back by the file's time and answers OK all the same, so
// the file is looked for afterwards.
func (c *Client) removeUnlessModified(ctx context.Context, doing string, e *Entry, g Guard, withData bool) error {
	not := e.Mtime
	if !g.NotModifiedAfter.IsZero() && g.NotModifiedAfter.Before(not) {
		not = g.NotModifiedAfter
	}
	if e.Mtime.IsZero() {
		return fault.New(fault.Unsupported, doing+": it has no modification time to guard it by")
	}
	err := c.change(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		r, err := n.DeleteEntry(ctx, &filer_pb.DeleteEntryRequest{
			Directory: e.Path.Dir().String(), Name: e.Path.Name(), IsDeleteData: withData,
			IfNotModifiedAfter: not.Unix(), IfNotModifiedAfterNs: not.UnixNano(),
		}, opts...)
		if err != nil {
			return err
		}
		return replied(doing, filer_pb.FilerError_OK, r.GetError())
	})
	if err != nil {
		return err
	}
	_, err = c.Stat(ctx, e.Path)
	switch {
	case NotFound(err):
		return nil
	case err == nil:
		return fault.Wrap(fault.Stale, doing+": the filer held it back", ErrPrecondition)
	}
	return fault.In(doing+": it cannot be looked at afterwards", unknown(err))
}
