package model

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/seaice/seaice/filer"
)

// readIO lets iceberg-go read from a filer. It resolves every spelling of a
// path; see candidates.
type readIO struct {
	ctx  context.Context //nolint:containedctx // iceberg-go's interface has none
	fl   filer.Reader
	root filer.Path
}

// Open opens a file by any spelling of its path.
func (r readIO) Open(name string) (iceio.File, error) {
	var last error = fs.ErrNotExist
	for _, p := range candidates(r.root, name) {
		o, err := r.fl.Open(r.ctx, p)
		if err == nil {
			return &openFile{Object: o, SectionReader: io.NewSectionReader(o, 0, o.Size())}, nil
		}
		last = err
		if !filer.NotFound(err) {
			break
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: last}
}

// Remove is refused: reading changes nothing.
func (r readIO) Remove(name string) error {
	return &fs.PathError{Op: "remove", Path: name, Err: errors.ErrUnsupported}
}

// openFile is an object as a file with a position.
type openFile struct {
	filer.Object
	*io.SectionReader
}

func (f *openFile) ReadAt(p []byte, off int64) (int, error) { return f.Object.ReadAt(p, off) }
func (f *openFile) Size() int64                             { return f.Object.Size() }
func (f *openFile) Stat() (fs.FileInfo, error)              { return fileInfo{f.Object.Entry()}, nil }

type fileInfo struct{ e *filer.Entry }

func (i fileInfo) Name() string       { return i.e.Path.Name() }
func (i fileInfo) Size() int64        { return i.e.Size }
func (i fileInfo) Mode() fs.FileMode  { return 0o444 }
func (i fileInfo) ModTime() time.Time { return i.e.Mtime }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return i.e }
