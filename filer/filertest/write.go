package filertest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

const octetStream = "application/octet-stream"

// Create implements filer.Writer.
func (f *Filer) Create(ctx context.Context, p filer.Path, o filer.CreateOptions) (filer.Upload, error) {
	var u *upload
	err := f.do(ctx, Call{Op: OpCreate, Path: p}, func() error {
		u = newUpload(ctx, f, p, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Put implements filer.Writer.
func (f *Filer) Put(ctx context.Context, p filer.Path, content []byte, o filer.CreateOptions) (*filer.Entry, error) {
	if len(content) > filer.InlineLimit {
		u := newUpload(ctx, f, p, o)
		if _, err := u.Write(content); err != nil {
			u.Abort(ctx)
			return nil, err
		}
		e, err := u.Commit(ctx)
		if err != nil {
			u.Abort(ctx)
		}
		return e, err
	}
	var e *filer.Entry
	err := f.do(ctx, Call{Op: OpPut, Path: p}, func() error {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		pb := f.s.fresh(p, o, f.s.clk.Now())
		pb.Content = bytes.Clone(content)
		pb.Attributes.FileSize = uint64(len(content))
		var err error
		e, err = f.s.create(p, pb, o)
		return err
	})
	return e, err
}

// fresh is the entry, without data, of a new file of a writer whose clock shows
// at.
func (s *store) fresh(p filer.Path, o filer.CreateOptions, at time.Time) *filer_pb.Entry {
	mime := o.Mime
	if mime == "" {
		mime = octetStream
	}
	pb := &filer_pb.Entry{Name: p.Name(), Attributes: s.attributes(s.mtime(p, at), mime), Extended: maps.Clone(o.Extended)}
	for k, v := range pb.Extended {
		pb.Extended[k] = bytes.Clone(v)
	}
	return pb
}

func (s *store) create(p filer.Path, pb *filer_pb.Entry, o filer.CreateOptions) (*filer.Entry, error) {
	if s.find(p) != nil && !o.Replace {
		return nil, fault.Wrap(fault.Stale, "create "+p.String(), filer.ErrExists)
	}
	if err := s.put(p, pb); err != nil {
		return nil, err
	}
	return entry(p.Dir(), pb), nil
}

type upload struct {
	f   *Filer
	ctx context.Context //nolint:containedctx // Write has none; the ctx of Create bounds the upload
	p   filer.Path
	o   filer.CreateOptions

	mu     sync.Mutex
	buf    []byte
	chunks []*filer_pb.FileChunk
	size   int64
	part   int
	err    error // what a write met; it stays
	// settled: the entry exists, may exist, or the upload was dropped. The
	// chunks are not this upload's to free any more.
	settled bool
}

func newUpload(ctx context.Context, f *Filer, p filer.Path, o filer.CreateOptions) *upload {
	o.Extended = maps.Clone(o.Extended)
	return &upload{f: f, ctx: ctx, p: p, o: o}
}

// Write implements io.Writer. Each full chunk is one call.
func (u *upload) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.settled {
		return 0, u.over()
	}
	n := 0
	for len(b) > 0 && u.err == nil {
		k := min(len(b), u.f.opts.ChunkSize-len(u.buf))
		u.buf = append(u.buf, b[:k]...)
		b, n = b[k:], n+k
		if len(u.buf) == u.f.opts.ChunkSize {
			u.flush()
		}
	}
	return n, u.err
}

func (u *upload) flush() {
	if len(u.buf) == 0 || u.err != nil {
		return
	}
	u.err = u.f.do(u.ctx, Call{Op: OpChunk, Path: u.p, Part: u.part}, func() error {
		u.f.s.mu.Lock()
		defer u.f.s.mu.Unlock()
		u.chunks = append(u.chunks, u.f.s.keep(u.buf, u.size, u.f.s.clk.Now().UnixNano()))
		return nil
	})
	u.part++
	u.size += int64(len(u.buf))
	u.buf = u.buf[:0]
}

// Commit implements filer.Upload. After a failure that leaves nothing open it
// may be called again.
func (u *upload) Commit(ctx context.Context) (*filer.Entry, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.settled {
		return nil, u.over()
	}
	u.flush()
	if u.err != nil {
		return nil, u.err
	}
	var e *filer.Entry
	err := u.f.do(ctx, Call{Op: OpCommit, Path: u.p}, func() error {
		s := u.f.s
		s.mu.Lock()
		defer s.mu.Unlock()
		pb := s.fresh(u.p, u.o, s.clk.Now())
		pb.Chunks = u.chunks
		pb.Attributes.FileSize = uint64(u.size)
		var err error
		e, err = s.create(u.p, pb, u.o)
		return err
	})
	if err != nil {
		// An open outcome means that an entry may hold the chunks now.
		u.settled = fault.Is(err, fault.Unknown)
		return nil, err
	}
	u.settled = true
	return e, nil
}

// Abort implements filer.Upload.
func (u *upload) Abort(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.settled {
		return
	}
	u.settled = true
	u.buf = nil
	if len(u.chunks) == 0 {
		return
	}
	// The chunks of an aborted upload are garbage at worst, so a failure to
	// free them has nobody to tell.
	_ = u.f.do(context.WithoutCancel(ctx), Call{Op: OpAbort, Path: u.p}, func() error {
		u.f.s.mu.Lock()
		defer u.f.s.mu.Unlock()
		u.f.s.release(u.chunks, nil)
		return nil
	})
}

func (u *upload) over() error {
	return fault.Wrap(fault.Canceled, "write "+u.p.String(), io.ErrClosedPipe)
}
