package filer

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
)

// Open returns the file at p for reading. Its bytes come from the entry or
// straight from the volume servers.
func (c *Client) Open(ctx context.Context, p Path) (Object, error) {
	doing := "open " + p.String()
	e, err := c.Stat(ctx, p)
	if NotFound(err) {
		return nil, c.absent(ctx, p, doing, err)
	}
	if err != nil {
		return nil, fault.In(doing, err)
	}
	if e.IsDir {
		return nil, fault.New(fault.Unsupported, doing+": it is a directory")
	}
	if e.RemoteOnly() {
		if e, err = c.fromRemote(ctx, e); err != nil {
			return nil, fault.In(doing, err)
		}
	}
	o := &object{c: c, e: e}
	if t := e.Encrypted(); t != "" {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("%s: it is encrypted by server-side encryption of type %s", doing, t))
	}
	if inline := e.PB.GetContent(); len(inline) > 0 && (int64(len(inline)) == e.Size || len(e.PB.GetChunks()) == 0) {
		o.inline = inline
	} else {
		chunks, err := c.resolve(ctx, e)
		if err != nil {
			return nil, fault.In(doing, err)
		}
		if o.views, err = viewsOf(p, chunks, e.Size); err != nil {
			return nil, fault.In(doing, err)
		}
	}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	return o, nil
}

// absent tells a missing file from an object of a versioned bucket, whose bytes
// lie in a directory beside.
func (c *Client) absent(ctx context.Context, p Path, doing string, missing error) error {
	versions := Path(p.String() + VersionsSuffix)
	e, err := c.Stat(ctx, versions)
	switch {
	case err == nil && e.IsDir:
		return fault.New(fault.Unsupported, fmt.Sprintf("%s: it is an object of a versioned bucket (%s)", doing, versions))
	case err == nil || NotFound(err):
		return fault.In(doing, missing)
	}
	return fault.In(doing, err)
}

// fromRemote makes the filer fetch a file that is only in a mounted remote
// store. Fetching it twice changes nothing.
func (c *Client) fromRemote(ctx context.Context, e *Entry) (*Entry, error) {
	doing := "cache remote object " + e.Path.String()
	var out *Entry
	err := c.readWithin(ctx, remoteTimeout, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		r, err := n.CacheRemoteObjectToLocalCluster(ctx, &filer_pb.CacheRemoteObjectToLocalClusterRequest{
			Directory: e.Path.Dir().String(), Name: e.Path.Name(),
		}, opts...)
		if err == nil && r.GetEntry() != nil {
			out = NewEntry(e.Path.Dir(), r.GetEntry())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if out == nil || out.RemoteOnly() {
		return nil, fault.New(fault.Transient, doing+": the filer has not cached it")
	}
	return out, nil
}

type object struct {
	c      *Client
	e      *Entry
	inline []byte
	views  []view
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var errObjectClosed = fault.New(fault.Canceled, "object is closed")

func (o *object) Entry() *Entry { return o.e }
func (o *object) Size() int64   { return o.e.Size }
func (o *object) Close() error {
	o.cancel(errObjectClosed)
	return nil
}

// Content are the bytes of a file that the filer keeps in its entry, nil for others.
// They must not be changed.
func (o *object) Content() []byte { return o.inline }

// ReadAt reads ranges of plain chunks; encrypted and compressed chunks are read
// whole and kept in the client's cache.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	return o.readAt(o.ctx, p, off)
}

func (o *object) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	doing := "read " + o.e.Path.String()
	if ctx.Err() != nil {
		return 0, fault.Wrap(fault.Canceled, doing, context.Cause(ctx))
	}
	if off < 0 {
		return 0, fault.New(fault.Unsupported, fmt.Sprintf("%s: negative offset %d", doing, off))
	}
	if off >= o.e.Size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), o.e.Size-off))
	if err := o.fill(ctx, p[:n], off); err != nil {
		return 0, fault.In(doing, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// fill reads buf, which lies within the file.
func (o *object) fill(ctx context.Context, buf []byte, off int64) error {
	if o.inline != nil {
		n := 0
		if off < int64(len(o.inline)) {
			n = copy(buf, o.inline[off:])
		}
		clear(buf[n:])
		return nil
	}
	stop := off + int64(len(buf))
	views := within(o.views, off, stop)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(o.c.cfg.Parallel)
	at := off
	for i, v := range views {
		from, to := max(v.start, off), min(v.stop, stop)
		clear(buf[at-off : from-off])
		at = to
		part, skip := buf[from-off:to-off], v.skip+from-v.start
		if i == len(views)-1 {
			// The last one needs no goroutine of its own.
			clear(buf[at-off:])
			last := o.fetch(gctx, v.chunk, skip, part)
			return cmp.Or(g.Wait(), last)
		}
		g.Go(func() error { return o.fetch(gctx, v.chunk, skip, part) })
	}
	clear(buf[at-off:])
	return nil
}

// fetch reads part from the chunk, skip bytes into it.
func (o *object) fetch(ctx context.Context, ch *filer_pb.FileChunk, skip int64, part []byte) error {
	var err error
	if stored(ch) {
		err = o.c.volumes.readRange(ctx, ch.GetFileIdString(), skip, int64(ch.GetSize()), part)
	} else {
		var data []byte
		if data, err = o.c.decoded(ctx, o.e.Path, ch); err == nil {
			copy(part, data[skip:])
		}
	}
	if NotFound(err) {
		return o.lost(ctx, ch, err)
	}
	return err
}

// lost says what a chunk that no server has means: the file was replaced or
// removed since it was opened, or it is damaged.
func (o *object) lost(ctx context.Context, ch *filer_pb.FileChunk, cause error) error {
	now, err := o.c.Stat(ctx, o.e.Path)
	switch {
	case err == nil && now.Identity() == o.e.Identity():
		return fault.WithHint("weed shell: volume.fsck, or restore the file from its source",
			fault.New(fault.Corrupt, fmt.Sprintf("no volume server has chunk %s: %v", ch.GetFileIdString(), cause)))
	case err == nil:
		return fault.Wrap(fault.Stale, "file was written again since it was opened", ErrPrecondition)
	}
	return fault.In("file is gone since it was opened", err)
}
