package measure

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
)

// Disk is a filer some of whose files are in a directory of this machine, by their
// last names, so that they take no memory. They can be read and made.
type Disk struct {
	*filertest.Filer
	Dir string
	// Local says which files are there; nil is all.
	Local func(filer.Path) bool
}

func (d *Disk) local(p filer.Path) bool { return d.Local == nil || d.Local(p) }

func (d *Disk) name(p filer.Path) string { return filepath.Join(d.Dir, p.Name()) }

// Stat looks at a file.
func (d *Disk) Stat(ctx context.Context, p filer.Path) (*filer.Entry, error) {
	if !d.local(p) {
		return d.Filer.Stat(ctx, p)
	}
	info, err := os.Stat(d.name(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Stale, "stat", filer.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &filer.Entry{Path: p, Size: info.Size(), Mtime: filertest.Epoch, Newest: filertest.Epoch}, nil
}

// Open opens a file.
func (d *Disk) Open(ctx context.Context, p filer.Path) (filer.Object, error) {
	if !d.local(p) {
		return d.Filer.Open(ctx, p)
	}
	e, err := d.Stat(ctx, p)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(d.name(p))
	return &object{f, e}, err
}

// Put makes a file. One that is there stays as it is: a child makes the inputs
// that its parent has made.
func (d *Disk) Put(ctx context.Context, p filer.Path, content []byte, o filer.CreateOptions) (*filer.Entry, error) {
	if !d.local(p) {
		return d.Filer.Put(ctx, p, content, o)
	}
	if _, err := os.Stat(d.name(p)); err != nil {
		if err := os.WriteFile(d.name(p), content, 0o600); err != nil {
			return nil, err
		}
	}
	return d.Stat(ctx, p)
}

// Create makes a file that is written bit by bit.
func (d *Disk) Create(ctx context.Context, p filer.Path, o filer.CreateOptions) (filer.Upload, error) {
	if !d.local(p) {
		return d.Filer.Create(ctx, p, o)
	}
	f, err := os.OpenFile(d.name(p), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return &upload{f, d, p}, err
}

type object struct {
	*os.File
	e *filer.Entry
}

func (o *object) Entry() *filer.Entry { return o.e }

func (o *object) Size() int64 { return o.e.Size }

func (o *object) Stream(offset, length int64) io.ReadCloser {
	if length < 0 {
		length = o.e.Size - offset
	}
	return io.NopCloser(io.NewSectionReader(o.File, offset, length))
}

type upload struct {
	*os.File
	d *Disk
	p filer.Path
}

func (u *upload) Commit(ctx context.Context) (*filer.Entry, error) {
	if err := u.Close(); err != nil {
		return nil, err
	}
	return u.d.Stat(ctx, u.p)
}

func (u *upload) Abort(context.Context) { _ = u.Close() }
