package filertest

import (
	"context"
	"encoding/binary"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Reads counts what was read of one path through a handle.
type Reads struct {
	Opens int
	Calls int
	Bytes int64
}

// ReadCounts returns what was read so far, by path.
func (f *Filer) ReadCounts() map[filer.Path]Reads {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[filer.Path]Reads, len(f.reads))
	for p, r := range f.reads {
		out[p] = r
	}
	return out
}

func (f *Filer) countRead(p filer.Path, r Reads) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := f.reads[p]
	sum.Opens += r.Opens
	sum.Calls += r.Calls
	sum.Bytes += r.Bytes
	f.reads[p] = sum
}

// Stat implements filer.Reader.
func (f *Filer) Stat(ctx context.Context, p filer.Path) (*filer.Entry, error) {
	var e *filer.Entry
	err := f.do(ctx, Call{Op: OpStat, Path: p}, func() error {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		pb := f.s.find(p)
		if pb == nil {
			return missing("stat", p)
		}
		e = entry(p.Dir(), pb)
		return nil
	})
	return e, err
}

// List implements filer.Reader. Between two pages the directory may change, as
// it may on the real filer.
func (f *Filer) List(ctx context.Context, dir filer.Path, o filer.ListOptions) iter.Seq2[*filer.Entry, error] {
	return func(yield func(*filer.Entry, error) bool) {
		after, left := o.After, o.Limit
		for part := 0; ; part++ {
			size := f.opts.PageSize
			if o.Limit > 0 {
				size = min(size, left)
			}
			var page []*filer_pb.Entry
			err := f.do(ctx, Call{Op: OpList, Path: dir, Part: part}, func() error {
				f.s.mu.Lock()
				defer f.s.mu.Unlock()
				page = f.s.list(dir, o.Prefix, after, size)
				return nil
			})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, pb := range page {
				if !yield(filer.NewEntry(dir, pb), nil) {
					return
				}
				after = pb.GetName()
			}
			left -= len(page)
			if len(page) < size || o.Limit > 0 && left <= 0 {
				return
			}
		}
	}
}

// Clock implements filer.Reader. It never shows a time before one that the feed
// has given out.
func (f *Filer) Clock(ctx context.Context) (time.Time, error) {
	var t time.Time
	err := f.do(ctx, Call{Op: OpClock}, func() error {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		t = f.s.now()
		if f.s.stamp > t.UnixNano() {
			t = time.Unix(0, f.s.stamp).In(t.Location())
		}
		return nil
	})
	return t, err
}

// Subscribe implements filer.Reader. With Until ahead of the filer's clock the
// wait is a sleep, so it moves the virtual clock to that time.
func (f *Filer) Subscribe(ctx context.Context, o filer.SubscribeOptions) iter.Seq2[filer.Event, error] {
	return func(yield func(filer.Event, error) bool) {
		if err := f.do(ctx, Call{Op: OpSubscribe, Path: o.Prefix}, func() error { return nil }); err != nil {
			yield(filer.Event{}, err)
			return
		}
		last := int64(0)
		if !o.Since.IsZero() {
			last = o.Since.UnixNano()
		}
		for {
			f.s.mu.Lock()
			changed, now := f.s.changed, f.s.now()
			events := f.s.events(o.Prefix, last, f.opts.PageSize)
			f.s.mu.Unlock()
			for _, e := range events {
				if !o.Until.IsZero() && e.Time.After(o.Until) {
					return
				}
				if !yield(e, nil) {
					return
				}
				last = e.Time.UnixNano()
			}
			if len(events) > 0 {
				continue
			}
			if err := f.alive(); err != nil {
				yield(filer.Event{}, err)
				return
			}
			if !o.Until.IsZero() {
				if !now.Before(o.Until) {
					return
				}
				if f.s.clk.Sleep(ctx, o.Until.Sub(now)) != nil {
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// events returns up to limit changes below prefix after the time last.
func (s *store) events(prefix filer.Path, last int64, limit int) []filer.Event {
	var out []filer.Event
	from := string(binary.BigEndian.AppendUint64(nil, uint64(max(last, 0)+1)))
	s.feed.ascend(from, func(k string, c change) bool {
		e := filer.Event{Time: time.Unix(0, int64(binary.BigEndian.Uint64([]byte(k))))}
		e.Old, e.New = below(prefix, c.oldDir, c.old), below(prefix, c.newDir, c.new)
		if e.Old != nil || e.New != nil {
			out = append(out, e)
		}
		return len(out) < limit
	})
	return out
}

// below is the entry if it lies below prefix: what moves in or out appears
// created or removed.
func below(prefix, dir filer.Path, pb *filer_pb.Entry) *filer.Entry {
	if pb == nil || !dir.Within(prefix) {
		return nil
	}
	return entry(dir, pb)
}

// Open implements filer.Reader.
func (f *Filer) Open(ctx context.Context, p filer.Path) (filer.Object, error) {
	var o *object
	err := f.do(ctx, Call{Op: OpOpen, Path: p}, func() error {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		pb := f.s.find(p)
		if pb == nil {
			versions := filer.Path(p.String() + filer.VersionsSuffix)
			if f.s.find(versions).GetIsDirectory() {
				return fault.New(fault.Unsupported, "open "+p.String()+": it is an object of a versioned bucket")
			}
			return missing("open", p)
		}
		e := entry(p.Dir(), pb)
		if err := readable(e); err != nil {
			return err
		}
		if e.RemoteOnly() {
			if err := f.s.cache(p); err != nil {
				return err
			}
			e = entry(p.Dir(), f.s.find(p))
		}
		o = &object{f: f, ctx: ctx, e: e}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.countRead(p, Reads{Opens: 1})
	return o, nil
}

func readable(e *filer.Entry) error {
	doing := "open " + e.Path.String()
	switch {
	case e.IsDir:
		return fault.New(fault.Unsupported, doing+": it is a directory")
	case e.Encrypted() != "":
		return fault.New(fault.Unsupported, doing+": server-side encryption "+e.Encrypted())
	}
	for _, c := range e.PB.GetChunks() {
		if c.GetIsChunkManifest() {
			return fault.New(fault.Unsupported, doing+": chunk manifests are not kept here")
		}
	}
	return nil
}

// cache brings a remote-only file into the cluster.
func (s *store) cache(p filer.Path) error {
	data, ok := s.remotes.get(string(p))
	if !ok {
		return fault.New(fault.Transient, "cache "+p.String()+": the remote store does not answer")
	}
	pb := share(s.find(p))
	pb.Chunks = s.keepAll(data)
	pb.RemoteEntry.LastLocalSyncTsNs = s.now().UnixNano()
	return s.put(p, pb)
}

type object struct {
	f   *Filer
	ctx context.Context //nolint:containedctx // the ctx of Open bounds all reads, as filer.Reader says
	e   *filer.Entry

	mu     sync.Mutex
	part   int
	closed bool
}

func (o *object) Entry() *filer.Entry { return o.e }
func (o *object) Size() int64         { return o.e.Size }

func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New(fault.Unsupported, "read "+o.e.Path.String()+": negative offset")
	}
	n := int(min(int64(len(b)), max(o.e.Size-off, 0)))
	if n > 0 {
		if err := o.fetch(b[:n], off); err != nil {
			return 0, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// fetch is one ranged read.
func (o *object) fetch(b []byte, off int64) error {
	o.mu.Lock()
	part, closed := o.part, o.closed
	o.part++
	o.mu.Unlock()
	if closed {
		return fault.Wrap(fault.Canceled, "read "+o.e.Path.String(), io.ErrClosedPipe)
	}
	err := o.f.do(o.ctx, Call{Op: OpRead, Path: o.e.Path, Part: part}, func() error {
		o.f.s.mu.Lock()
		defer o.f.s.mu.Unlock()
		return fault.In("read "+o.e.Path.String(), o.f.s.assemble(o.e.PB, off, b))
	})
	if err == nil {
		o.f.countRead(o.e.Path, Reads{Calls: 1, Bytes: int64(len(b))})
	}
	return err
}

// Stream implements filer.Object.
func (o *object) Stream(offset, length int64) io.ReadCloser {
	end := o.e.Size
	if length >= 0 && length < end-offset {
		end = offset + length
	}
	return &stream{o: o, at: offset, end: end}
}

type stream struct {
	o       *object
	at, end int64
	window  []byte
	err     error
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if len(b) == 0 {
		return 0, nil
	}
	if len(s.window) == 0 {
		if s.at >= s.end {
			return 0, io.EOF
		}
		w := make([]byte, min(s.end-s.at, int64(s.o.f.opts.ChunkSize)))
		n, err := s.o.ReadAt(w, s.at)
		if err != nil {
			s.err = err
			return 0, err
		}
		s.at += int64(n)
		s.window = w[:n]
	}
	n := copy(b, s.window)
	s.window = s.window[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	if s.err == nil {
		s.err = fault.Wrap(fault.Canceled, "read "+s.o.e.Path.String(), io.ErrClosedPipe)
	}
	return nil
}

func (f *Filer) alive() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fault.Wrap(fault.Halt, "call the filer", f.dead)
}

// entry is what a caller is handed: nothing it may change is the filer's own.
func entry(dir filer.Path, pb *filer_pb.Entry) *filer.Entry {
	e := filer.NewEntry(dir, share(pb))
	if pb.GetName() == "/" {
		e.Path = "/"
	}
	return e
}

func missing(doing string, p filer.Path) error {
	return fault.Wrap(fault.Stale, doing+" "+p.String(), filer.ErrNotFound)
}
