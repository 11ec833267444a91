package filer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaice/seaice/fault"
)

// Subscribe follows the filer's change feed. A stream that breaks is taken up
// again behind the last change; the filer then may yield changes twice, which
// are left out here. A filer that crashes can lose the changes that it had not
// yet written to its log (about a minute's): who relies on the feed must list
// everything now and then.
func (c *Client) Subscribe(ctx context.Context, o SubscribeOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := checkPath(o.Prefix); err != nil {
			yield(Event{}, err)
			return
		}
		f := &feed{c: c, o: o, doing: "follow changes of " + o.Prefix.String(), id: int32(rand.N(1<<30) + 1), since: o.Since}
		b := c.backoff(c.cfg.RetryFor)
		for {
			n := c.node()
			before := f.since
			done, err := f.run(ctx, n, yield)
			if done {
				return
			}
			if f.since.After(before) {
				b.reset()
			}
			if k := fault.Of(err); k != fault.Transient {
				yield(Event{}, err)
				return
			}
			c.leave(n)
			if !b.again(ctx) {
				yield(Event{}, gaveUp(ctx, err))
				return
			}
		}
	}
}

type feed struct {
	c     *Client
	o     SubscribeOptions
	doing string
	id    int32
	epoch int32
	since time.Time // of the last change or sign of life
}

// run reads one stream until it breaks. done is true when the sequence is over.
func (f *feed) run(ctx context.Context, n *node, yield func(Event, error) bool) (done bool, err error) {
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.epoch++
	req := &filer_pb.SubscribeMetadataRequest{
		ClientName: f.c.cfg.Name, PathPrefix: prefixOf(f.o.Prefix), ClientId: f.id, ClientEpoch: f.epoch,
		ClientSupportsBatching: true, ClientSupportsIdleHeartbeat: true,
	}
	if !f.since.IsZero() {
		req.SinceNs = f.since.UnixNano()
	}
	if !f.o.Until.IsZero() {
		req.UntilNs = f.o.Until.UnixNano()
	}
	s, err := n.SubscribeMetadata(sctx, req)
	if err != nil {
		return false, answered(ctx, f.doing, reads, true, err)
	}
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			if !f.o.Until.IsZero() {
				return true, nil
			}
			return false, fault.New(fault.Transient, f.doing+": the filer ended the stream")
		}
		if err != nil {
			return false, answered(ctx, f.doing, reads, true, err)
		}
		for _, one := range append([]*filer_pb.SubscribeMetadataResponse{r}, r.GetEvents()...) {
			if over, err := f.take(one, yield); over || err != nil {
				return over, err
			}
		}
	}
}

// prefixOf is a directory as the filer matches it: by the beginning of paths.
func prefixOf(p Path) string {
	if p == "/" {
		return "/"
	}
	return p.String() + "/"
}

// take handles one message: a change or, without one, the time up to which the
// filer has nothing more.
func (f *feed) take(r *filer_pb.SubscribeMetadataResponse, yield func(Event, error) bool) (over bool, err error) {
	if r.GetTsNs() == 0 {
		return false, nil
	}
	at := time.Unix(0, r.GetTsNs())
	if !f.o.Until.IsZero() && at.After(f.o.Until) {
		return true, nil
	}
	ev := r.GetEventNotification()
	if ev.GetOldEntry() == nil && ev.GetNewEntry() == nil {
		// A sign of life does not move the point to resume from: the filer
		// resumes an interrupted stream by real changes only.
		return !f.o.Until.IsZero() && !at.Before(f.o.Until), nil
	}
	if !at.After(f.since) {
		return false, nil
	}
	e, err := f.event(at, r.GetDirectory(), ev)
	if err != nil {
		return false, err
	}
	f.since = at
	if e == nil {
		return false, nil
	}
	return !yield(*e, nil), nil
}

// event is the change as far as it lies below the prefix: an entry that moves
// in or out appears created or removed.
func (f *feed) event(at time.Time, dir string, ev *filer_pb.EventNotification) (*Event, error) {
	out := Event{Time: at}
	if pb := ev.GetOldEntry(); pb != nil {
		e, err := f.entry(dir, pb)
		if err != nil {
			return nil, err
		}
		out.Old = e
	}
	if pb := ev.GetNewEntry(); pb != nil {
		if ev.GetNewParentPath() != "" {
			dir = ev.GetNewParentPath()
		}
		e, err := f.entry(dir, pb)
		if err != nil {
			return nil, err
		}
		out.New = e
	}
	if out.Old == nil && out.New == nil {
		return nil, nil //nolint:nilnil // nothing below the prefix changed
	}
	return &out, nil
}

// entry is nil for one outside of the prefix.
func (f *feed) entry(dir string, pb *filer_pb.Entry) (*Entry, error) {
	d, err := ParsePath(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, fmt.Sprintf("%s: directory of %q", f.doing, pb.GetName()), err)
	}
	e := NewEntry(d, pb)
	if e.Path == f.o.Prefix || !e.Path.Within(f.o.Prefix) {
		return nil, nil //nolint:nilnil // as the comment says
	}
	return e, nil
}
