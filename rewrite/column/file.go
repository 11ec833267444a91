package column

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// Input is a file's bytes. ReadAt must be safe for concurrent use.
type Input interface {
	io.ReaderAt
	// Size is the file's length in bytes.
	Size() int64
}

// InMemory is an Input that may have its bytes in memory.
type InMemory interface {
	Input
	// Content are all bytes of the file, which never change, or nil if they are not in
	// memory. They are not copied, and not taken from the budget.
	Content() []byte
}

// Options say how files are read. Zeros are the defaults.
type Options struct {
	// Budget is what all memory is taken from, nil for no bound.
	Budget *Budget
	// MaxPage is the greatest size in bytes of a page and of what is decoded from
	// it; 256 MiB by default. Greater ones are fault.TooLarge.
	MaxPage int64
	// Window is the size in bytes of ranged reads; 1 MiB by default. Two windows
	// of a chunk are in memory at once.
	Window int
	// Whole is the size in bytes up to which files are read whole, with one
	// read; 4 MiB by default, negative for none.
	Whole int64
	// Tail is the size in bytes of what is read first of a file that is not read
	// whole: its end, which the footer should lie in; 64 KiB by default.
	Tail int64
}

const (
	defaultMaxPage = 256 << 20
	defaultWindow  = 1 << 20
	defaultWhole   = 4 << 20
	defaultTail    = 64 << 10 // most footers fit
)

func (o Options) defaults() Options {
	if o.MaxPage <= 0 {
		o.MaxPage = defaultMaxPage
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Whole == 0 {
		o.Whole = defaultWhole
	}
	if o.Tail <= 0 {
		o.Tail = defaultTail
	}
	return o
}

// File is an open Parquet file. It is safe for concurrent use; the iterators it
// hands out are not.
type File struct {
	ctx    context.Context // bounds all reads, like that of filer.Reader.Open
	in     Input
	name   string
	o      Options
	footer *format.Footer
	// end is where the footer begins.
	end int64

	mu    sync.Mutex
	whole []byte // the file, once it has been read
	// memory is what whole lies in.
	memory *Memory
	held   held
}

// Open reads the footer of in, which errors call by name. What is no Parquet file
// or contradicts itself is fault.Corrupt, what is encrypted fault.Unsupported, a
// footer above 64 MiB fault.TooLarge. ctx bounds all reads of the file: after its
// end none is begun.
func Open(ctx context.Context, in Input, name string, o Options) (*File, error) {
	f := &File{ctx: ctx, in: in, name: name, o: o.defaults()}
	f.held.budget = o.Budget
	if err := f.load(); err != nil {
		f.Close()
		return nil, fault.In("open "+name, err)
	}
	return f, nil
}

func (f *File) load() (err error) {
	defer guard(&err)
	raw, err := f.tail()
	if err != nil {
		return err
	}
	if f.whole == nil {
		// The footer refers to its bytes; what was read beside them may go.
		raw = bytes.Clone(raw)
		f.held.shrink(int64(len(raw)))
	}
	if f.footer, err = format.ParseFooter(raw); err != nil {
		return err
	}
	chunks := int64(len(f.footer.RowGroups)) * int64(len(f.footer.Schema.Leaves))
	if err := f.held.grow(f.held.n + chunks*int64(unsafe.Sizeof(format.Chunk{}))); err != nil {
		return err
	}
	return f.footer.Check(f.end)
}

// Close gives the memory back that the file holds. It does not close the input.
func (f *File) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole = nil
	f.held.release()
}

// Footer is what the file says about itself. It must not be changed.
func (f *File) Footer() *format.Footer { return f.footer }

// Name is the name given to Open.
func (f *File) Name() string { return f.name }

// Size is the file's length in bytes.
func (f *File) Size() int64 { return f.in.Size() }

// tail reads the footer.
func (f *File) tail() ([]byte, error) {
	const trailer = 8
	size := f.in.Size()
	if size < trailer+4 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("%d bytes are no parquet file", size))
	}
	n := min(size, max(f.o.Tail, trailer+4))
	if m, ok := f.in.(InMemory); ok {
		if b := m.Content(); int64(len(b)) == size {
			f.whole, f.memory = b, kept()
		}
	}
	if f.whole != nil || size <= f.o.Whole {
		n = size
	}
	b, err := f.read(size-n, n)
	if err != nil {
		return nil, err
	}
	if size <= f.o.Whole { // a tail as long as the file does not keep it
		f.whole, f.memory = b, kept()
	}
	switch magic := b[n-4:]; string(magic) {
	case "PAR1":
	case "PARE":
		return nil, fault.New(fault.Unsupported, "the parquet file is encrypted")
	default:
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the file ends with %q, not with PAR1", magic))
	}
	length := int64(binary.LittleEndian.Uint32(b[n-trailer:]))
	if length > size-trailer-4 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("a footer of %d bytes in a file of %d", length, size))
	}
	if length > format.MaxFooter {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("a footer of %d bytes, more than %d", length, format.MaxFooter))
	}
	f.end = size - trailer - length
	if length <= n-trailer {
		return b[n-trailer-length : n-trailer], nil
	}
	head, err := f.read(f.end, length+trailer-n)
	if err != nil {
		return nil, err
	}
	return append(head, b[:n-trailer]...), nil
}

// Kept reports that the whole file is in memory.
func (f *File) Kept() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whole != nil
}

// read allocates and reads n bytes that the file keeps, if they are not there yet.
func (f *File) read(at, n int64) ([]byte, error) {
	if f.whole != nil {
		return f.whole[at : at+n : at+n], nil
	}
	if err := f.held.grow(f.held.n + n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	return b, f.readAt(b, at)
}

// readAt fills b.
func (f *File) readAt(b []byte, at int64) error {
	if err := f.ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, "read the file", err)
	}
	n, err := f.in.ReadAt(b, at)
	if n >= len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fault.New(fault.Corrupt, fmt.Sprintf("the file ends at %d, %d bytes early", at+int64(n), len(b)-n))
	}
	return fault.In(fmt.Sprintf("read %d bytes at %d", len(b), at), err)
}

// bytes is a range of the file: a part of the whole file if that is in memory.
func (f *File) bytes(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || at > f.in.Size() || n > f.in.Size()-at {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("%d bytes at %d of a file of %d", n, at, f.in.Size()))
	}
	if f.whole != nil {
		return f.whole[at : at+n : at+n], nil
	}
	b := make([]byte, n)
	return b, f.readAt(b, at)
}

// indexShare is the share of the greatest page that a stored index of a chunk may have:
// one of a chunk of gigabytes has some MB. Indexes are not taken from the budget.
const indexShare = 4

// index reads a stored index of a chunk, nil if there is none.
func (f *File) index(at *int64, length *int32, what string) ([]byte, error) {
	if at == nil || length == nil || *length == 0 {
		return nil, nil
	}
	if most := f.o.MaxPage / indexShare; int64(*length) > most {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("%s of %d bytes, more than %d", what, *length, most))
	}
	b, err := f.bytes(*at, int64(*length))
	return b, fault.In("read "+what, err)
}

// OffsetIndex reads that of a chunk. It is nil if the file has none. Its pages lie
// within the chunk, and its rows within the row group.
func (f *File) OffsetIndex(group, leaf int) (*format.OffsetIndex, error) {
	c := &f.footer.RowGroups[group].Columns[leaf]
	b, err := f.index(c.OffsetIndexOffset, c.OffsetIndexLength, "the offset index")
	if b == nil || err != nil {
		return nil, f.about(group, leaf, err)
	}
	x, err := format.ParseOffsetIndex(b)
	if err != nil {
		return nil, f.about(group, leaf, err)
	}
	if n := len(x.Pages); n > 0 {
		last := x.Pages[n-1]
		if x.Pages[0].Offset < c.Begin() || last.Offset+int64(last.Size) > f.end || last.FirstRow > f.footer.RowGroups[group].Rows {
			return nil, f.about(group, leaf, fault.New(fault.Corrupt, "the offset index has pages outside of the chunk"))
		}
	}
	return x, nil
}

// ColumnIndex reads that of a chunk. It is nil if the file has none.
func (f *File) ColumnIndex(group, leaf int) (*format.ColumnIndex, error) {
	c := &f.footer.RowGroups[group].Columns[leaf]
	b, err := f.index(c.ColumnIndexOffset, c.ColumnIndexLength, "the column index")
	if b == nil || err != nil {
		return nil, f.about(group, leaf, err)
	}
	x, err := format.ParseColumnIndex(b)
	return x, f.about(group, leaf, err)
}

// about names the chunk that err is about.
func (f *File) about(group, leaf int, err error) error {
	if err == nil {
		return nil
	}
	return fault.In(fmt.Sprintf("read column %s of row group %d of %s", f.footer.Schema.Leaves[leaf], group, f.name), err)
}

// guard makes a panic of a library an error. Call it deferred.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fault.New(fault.Corrupt, fmt.Sprintf("broken content: %v", p))
	}
}
