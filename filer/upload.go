package filer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
)

const (
	octetStream = "application/octet-stream"
	fileMode    = 0o660
)

// Create starts a file at p. Chunks go to the volume servers as they fill, up
// to Config.Parallel at once; they are referred to by nothing before Commit.
func (c *Client) Create(ctx context.Context, p Path, o CreateOptions) (Upload, error) {
	doing := "create " + p.String()
	if err := checkTarget(p, doing); err != nil {
		return nil, err
	}
	sealed, err := c.cipher(ctx)
	if err != nil {
		return nil, fault.In(doing, err)
	}
	o.Extended = maps.Clone(o.Extended)
	u := &upload{c: c, path: p, o: o, sealed: sealed, slots: make(chan struct{}, max(2, c.cfg.Parallel))}
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	return u, nil
}

// Put creates a small file whose content is in the entry.
func (c *Client) Put(ctx context.Context, p Path, content []byte, o CreateOptions) (*Entry, error) {
	doing := "put " + p.String()
	if err := checkTarget(p, doing); err != nil {
		return nil, err
	}
	if len(content) <= InlineLimit {
		pb := c.newEntry(p, o, int64(len(content)))
		pb.Content = bytes.Clone(content)
		return c.createEntry(ctx, doing, p, pb, o.Replace)
	}
	u, err := c.Create(ctx, p, o)
	if err != nil {
		return nil, err
	}
	defer u.Abort(ctx)
	if _, err := u.Write(content); err != nil {
		return nil, err
	}
	return u.Commit(ctx)
}

func checkTarget(p Path, doing string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if p == "/" {
		return fault.New(fault.Unsupported, doing+": it is the root directory")
	}
	return nil
}

// newEntry is the entry of a new file without its data.
func (c *Client) newEntry(p Path, o CreateOptions, size int64) *filer_pb.Entry {
	now := c.clk.Now()
	sec, ns := now.Unix(), int32(now.Nanosecond())
	mime := o.Mime
	if mime == octetStream {
		mime = "" // as the filer stores it
	}
	return &filer_pb.Entry{
		Name: p.Name(),
		Attributes: &filer_pb.FuseAttributes{
			FileSize: uint64(size), FileMode: fileMode, Mime: mime,
			Mtime: sec, MtimeNs: ns, Crtime: sec, CrtimeNs: ns, Ctime: sec, CtimeNs: ns,
		},
		Extended: maps.Clone(o.Extended),
	}
}

// createEntry makes the entry visible. Exclusive creation is decided under the
// filer's lock of the path.
func (c *Client) createEntry(ctx context.Context, doing string, p Path, pb *filer_pb.Entry, replace bool) (*Entry, error) {
	var r *filer_pb.CreateEntryResponse
	err := c.change(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) (err error) {
		r, err = n.CreateEntry(ctx, &filer_pb.CreateEntryRequest{Directory: p.Dir().String(), Entry: pb, OExcl: !replace}, opts...)
		if err != nil {
			return err
		}
		return replied(doing, r.GetErrorCode(), r.GetError())
	})
	if err != nil {
		return nil, err
	}
	return c.written(ctx, p, r.GetMetadataEvent().GetEventNotification(), pb), nil
}

// written is the entry as the filer stored it: the filer adds an inode and a
// stamp. The event of the change holds it; failing that it is looked up. The
// change has happened, whatever the look says.
func (c *Client) written(ctx context.Context, p Path, ev *filer_pb.EventNotification, sent *filer_pb.Entry) *Entry {
	if pb := ev.GetNewEntry(); pb.GetName() == p.Name() && ev.GetNewParentPath() == p.Dir().String() {
		return NewEntry(p.Dir(), pb)
	}
	if e, err := c.Stat(context.WithoutCancel(ctx), p); err == nil {
		return e
	}
	return NewEntry(p.Dir(), sent)
}

type upload struct {
	c      *Client
	path   Path
	o      CreateOptions
	sealed bool
	ctx    context.Context
	cancel context.CancelCauseFunc

	// slots are the buffers in use: the one being filled and those on their way.
	slots chan struct{}
	buf   []byte
	fill  int
	size  int64
	wg    sync.WaitGroup
	ended bool // Commit or Abort was called

	mu     sync.Mutex
	err    error
	chunks []*filer_pb.FileChunk
	stored []assigned
}

var errUploadEnded = errors.New("upload has ended")

// Write copies p into chunks. It blocks while all buffers are on their way.
func (u *upload) Write(p []byte) (int, error) {
	doing := "write " + u.path.String()
	if u.ended {
		return 0, fault.Wrap(fault.Canceled, doing, errUploadEnded)
	}
	n := 0
	for n < len(p) {
		if err := u.failed(); err != nil {
			return n, fault.In(doing, err)
		}
		if u.buf == nil {
			select {
			case u.slots <- struct{}{}:
			case <-u.ctx.Done():
				return n, fault.In(doing, u.failed())
			}
			u.buf, u.fill = u.c.buffers.get(), 0
		}
		room := u.buf[nonceBytes+u.fill : nonceBytes+u.c.cfg.ChunkBytes]
		k := copy(room, p[n:])
		n += k
		u.fill += k
		u.size += int64(k)
		if k == len(room) {
			u.send()
		}
	}
	return n, nil
}

// failed is the first error of a chunk, or the end of the context.
func (u *upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil && u.ctx.Err() != nil {
		u.err = fault.Wrap(fault.Canceled, "", context.Cause(u.ctx))
	}
	return u.err
}

// send starts the upload of the filled buffer.
func (u *upload) send() {
	buf, n, offset := u.buf, u.fill, u.size-int64(u.fill)
	u.buf, u.fill = nil, 0
	u.wg.Add(1)
	go func() {
		defer u.wg.Done()
		defer func() { <-u.slots }()
		defer u.c.buffers.put(buf)
		chunk, a, err := u.store(buf[:nonceBytes+n], offset)
		u.mu.Lock()
		defer u.mu.Unlock()
		if err != nil {
			if u.err == nil {
				u.err = err
			}
			u.cancel(err)
			return
		}
		u.chunks = append(u.chunks, chunk)
		u.stored = append(u.stored, a)
	}()
}

// store uploads the content behind the nonce's room of buf.
func (u *upload) store(buf []byte, offset int64) (*filer_pb.FileChunk, assigned, error) {
	plain := buf[nonceBytes:]
	// The S3 gateway answers with the etag of the only chunk as that of the object, which
	// clients take for an MD5. Whether there are more is not known at the first.
	first := offset == 0
	clear1 := proofOf(plain, first)
	chunk := &filer_pb.FileChunk{
		Offset: offset, Size: uint64(len(plain)), ModifiedTsNs: u.c.clk.Now().UnixNano(), ETag: clear1.etag,
	}
	body, want := plain, clear1
	if u.sealed {
		sealed, key, err := seal(buf)
		if err != nil {
			return nil, assigned{}, fault.Wrap(fault.Halt, "encrypt chunk of "+u.path.String(), err)
		}
		chunk.CipherKey = key
		body, want = sealed, proofOf(sealed, first)
	}
	a, err := u.c.putChunk(u.ctx, u.path, body, want)
	if err != nil {
		return nil, a, err
	}
	chunk.FileId, chunk.Fid = a.fid, a.id
	if u.sealed {
		if err := u.readBack(chunk, clear1); err != nil {
			u.c.release(u.ctx, []assigned{a})
			return nil, a, err
		}
	}
	return chunk, a, nil
}

// readBack proves that an encrypted chunk can be decrypted to what was written;
// the volume server's checksum covers only the ciphertext.
func (u *upload) readBack(chunk *filer_pb.FileChunk, want proof) error {
	data, err := u.c.wholeChunk(u.ctx, u.path, chunk, int64(chunk.GetSize()))
	if err != nil {
		return fault.In("read back encrypted chunk of "+u.path.String(), err)
	}
	if got := proofOf(data, want.md5 != ""); got != want || len(data) != int(chunk.GetSize()) {
		return fault.New(fault.Corrupt, fmt.Sprintf("encrypted chunk %s of %s decrypts to other bytes than were written", chunk.GetFileId(), u.path))
	}
	return nil
}

// Commit stores the rest, waits for every chunk and creates the entry.
func (u *upload) Commit(ctx context.Context) (*Entry, error) {
	doing := "commit " + u.path.String()
	if u.ended {
		return nil, fault.Wrap(fault.Canceled, doing, errUploadEnded)
	}
	if u.buf != nil {
		u.send()
	}
	stop := context.AfterFunc(ctx, func() { u.cancel(context.Cause(ctx)) })
	u.wg.Wait()
	stop()
	if err := u.failed(); err != nil {
		return nil, fault.In(doing, err)
	}
	slices.SortFunc(u.chunks, func(a, b *filer_pb.FileChunk) int { return cmp.Compare(a.GetOffset(), b.GetOffset()) })
	pb := u.c.newEntry(u.path, u.o, u.size)
	pb.Chunks = u.chunks
	e, err := u.c.createEntry(ctx, doing, u.path, pb, u.o.Replace)
	if err == nil || fault.Is(err, fault.Unknown) {
		// The entry may refer to the chunks: nothing may release them.
		u.ended = true
		u.cancel(errUploadEnded)
	}
	return e, err
}

// Abort drops the upload.
func (u *upload) Abort(ctx context.Context) {
	if u.ended {
		return
	}
	u.ended = true
	u.cancel(errUploadEnded)
	u.wg.Wait()
	if u.buf != nil {
		u.c.buffers.put(u.buf)
		u.buf = nil
		<-u.slots
	}
	u.c.release(ctx, u.stored)
}
