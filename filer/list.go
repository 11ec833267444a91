package filer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
)

// Stat returns the entry at p, or ErrNotFound.
func (c *Client) Stat(ctx context.Context, p Path) (*Entry, error) {
	if err := checkPath(p); err != nil {
		return nil, err
	}
	if p == "/" {
		return NewEntry("/", &filer_pb.Entry{IsDirectory: true}), nil
	}
	doing := "look up " + p.String()
	var e *Entry
	err := c.read(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		r, err := n.LookupDirectoryEntry(ctx, &filer_pb.LookupDirectoryEntryRequest{Directory: p.Dir().String(), Name: p.Name()}, opts...)
		if err != nil {
			return err
		}
		if r.GetEntry() == nil {
			return fault.Wrap(fault.Stale, doing, ErrNotFound)
		}
		e = NewEntry(p.Dir(), r.GetEntry())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// checkPath refuses what Join and conversions may have made of a foreign name.
func checkPath(p Path) error {
	_, err := ParsePath(string(p))
	return err
}

// List streams the entries of dir. The filer pages through its store while the
// caller consumes; a stream that breaks is taken up again behind the last name.
func (c *Client) List(ctx context.Context, dir Path, o ListOptions) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if err := checkPath(dir); err != nil {
			yield(nil, err)
			return
		}
		l := &lister{c: c, dir: dir, o: o, last: o.After, doing: "list " + dir.String()}
		b := c.backoff(c.cfg.RetryFor)
		for {
			n := c.node()
			before := l.seen
			done, err := l.run(ctx, n, yield)
			if done {
				return
			}
			if fault.Of(err) == fault.Transient {
				if l.seen > before {
					b.reset()
				}
				c.leave(n)
				if b.again(ctx) {
					continue
				}
				err = gaveUp(ctx, err)
			}
			yield(nil, err)
			return
		}
	}
}

type lister struct {
	c     *Client
	dir   Path
	o     ListOptions
	doing string
	last  string
	seen  int
}

// run reads one stream. done is true when the listing is complete or the
// caller has had enough.
func (l *lister) run(ctx context.Context, n *node, yield func(*Entry, error) bool) (done bool, err error) {
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Zero would be the filer's own limit.
	limit := uint32(math.MaxInt32)
	if l.o.Limit > 0 {
		limit = uint32(min(l.o.Limit-l.seen, math.MaxInt32))
	}
	s, err := n.ListEntries(sctx, &filer_pb.ListEntriesRequest{
		Directory: l.dir.String(), Prefix: l.o.Prefix, StartFromFileName: l.last, Limit: limit,
	})
	if err != nil {
		return false, answered(ctx, l.doing, reads, true, err)
	}
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			err = answered(ctx, l.doing, reads, true, err)
			return NotFound(err), err
		}
		pb := r.GetEntry()
		if pb == nil {
			continue
		}
		e, err := l.accept(pb)
		if err != nil {
			return false, err
		}
		if !yield(e, nil) || l.o.Limit > 0 && l.seen >= l.o.Limit {
			return true, nil
		}
	}
}

// accept checks a name from the filer. Resuming and merging depend on the order
// of the names; a store that sorts them otherwise (by a database's collation)
// would make entries disappear silently.
func (l *lister) accept(pb *filer_pb.Entry) (*Entry, error) {
	name := pb.GetName()
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("%s: the filer lists the name %q", l.doing, name))
	}
	if name <= l.last && l.last != "" || !strings.HasPrefix(name, l.o.Prefix) {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf(
			"%s: the filer's store does not list in byte order (%q behind %q with prefix %q)", l.doing, name, l.last, l.o.Prefix))
	}
	l.last = name
	l.seen++
	return NewEntry(l.dir, pb), nil
}
