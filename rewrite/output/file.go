// Package output writes one Parquet file from finished pages: it lays them out,
// and makes from what is known of them everything a reader is told: sizes,
// encodings, statistics, page indexes, bloom filters, footer. What is not known is
// left out, never invented (parquet-format, parquet.thrift and PageIndex.md).
package output

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

const magic = "PAR1"

// Options of a file.
type Options struct {
	// KeyValues are the file's metadata, as iceberg.schema.
	KeyValues []format.KeyValue
	// CreatedBy is as CreatedBy makes it.
	CreatedBy string
}

// CreatedBy is the name of the writer in a form all readers parse:
// "seaice version 1.2.3 (build abc)". A leading v of the version goes; what could
// not be parsed back is replaced.
func CreatedBy(version, build string) string {
	clean := func(s, otherwise string) string {
		s = strings.Map(func(r rune) rune {
			if r <= ' ' || r == '(' || r == ')' || r > '~' {
				return -1
			}
			return r
		}, s)
		if s == "" {
			return otherwise
		}
		return s
	}
	version = strings.TrimPrefix(clean(version, "0.0.0"), "v")
	if version == "" || version[0] < '0' || version[0] > '9' {
		version = "0.0.0"
	}
	return fmt.Sprintf("seaice version %s (build %s)", version, clean(build, "unknown"))
}

// File is a Parquet file being written, front to back. It is not safe for
// concurrent use. After an error nothing more is written and every call answers
// that error.
type File struct {
	w      writer
	schema *format.Schema
	o      Options
	footer format.Footer
	// groups keep the indexes of their chunks until the end of the file.
	indexes [][]index
	leaf    []int64 // bytes of each leaf
	open    *Group
	closed  bool
	err     error
}

// index has the encoded indexes of a chunk, nil for none.
type index struct{ columns, offsets []byte }

// NewFile begins a file with the given schema.
func NewFile(w io.Writer, schema *format.Schema, o Options) (*File, error) {
	if o.CreatedBy == "" {
		return nil, fault.New(fault.Halt, "write a Parquet file without saying who wrote it")
	}
	f := &File{w: writer{to: w}, schema: schema, o: o, leaf: make([]int64, len(schema.Leaves))}
	f.footer = format.Footer{Version: 1, Schema: schema, KeyValues: o.KeyValues, CreatedBy: o.CreatedBy}
	f.footer.Orders = make([]format.Order, len(schema.Leaves))
	for i := range f.footer.Orders {
		f.footer.Orders[i] = format.OrderByType
	}
	f.w.add([]byte(magic))
	return f, f.w.err
}

// fail keeps the first error.
func (f *File) fail(err error) error {
	if f.err == nil {
		f.err = err
	}
	return err
}

// state is the error that forbids to go on.
func (f *File) state() error {
	switch {
	case f.err != nil:
		return f.err
	case f.w.err != nil:
		return f.w.err
	case f.closed:
		return fault.New(fault.Halt, "write to a Parquet file that is finished")
	}
	return nil
}

// Size is the number of bytes written so far, the footer not included.
func (f *File) Size() int64 { return f.w.at }

// Memory is what the file keeps until its end, in bytes: page indexes and the
// footer's content.
func (f *File) Memory() int {
	n := 0
	for _, g := range f.indexes {
		for _, x := range g {
			n += len(x.columns) + len(x.offsets) + chunkMemory
		}
	}
	return n
}

// chunkMemory is about what a chunk of the footer takes.
const chunkMemory = 640

// Result says what was written.
type Result struct {
	Footer *format.Footer
	Rows   int64
	Bytes  int64
	// LeafBytes is the compressed size of each leaf with its page headers,
	// over all row groups: Iceberg's column sizes.
	LeafBytes []int64
	// SplitOffsets are where the row groups begin.
	SplitOffsets []int64
}

// Close writes what follows the row groups and tells what the file is. The
// writer below is not closed.
func (f *File) Close() (Result, error) {
	if err := f.state(); err != nil {
		return Result{}, err
	}
	if f.open != nil {
		return Result{}, f.fail(fault.New(fault.Halt, "finish a Parquet file within a row group"))
	}
	f.closed = true
	f.writeIndexes()
	footer := format.AppendFooter(nil, &f.footer)
	if len(footer) > math.MaxInt32 {
		return Result{}, f.fail(fault.New(fault.TooLarge, fmt.Sprintf("a footer of %d bytes", len(footer))))
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	f.w.add(append(footer, magic...))
	f.w.flush()
	if f.w.err != nil {
		return Result{}, f.w.err
	}
	r := Result{Footer: &f.footer, Rows: f.footer.Rows, Bytes: f.w.at, LeafBytes: f.leaf, SplitOffsets: []int64{}}
	for i := range f.footer.RowGroups {
		r.SplitOffsets = append(r.SplitOffsets, *f.footer.RowGroups[i].FileOffset)
	}
	return r, nil
}

// writeIndexes writes all column indexes and then all offset indexes, as
// PageIndex.md lays them out.
func (f *File) writeIndexes() {
	for g := range f.indexes {
		for c, x := range f.indexes[g] {
			if x.columns != nil {
				chunk := &f.footer.RowGroups[g].Columns[c]
				chunk.ColumnIndexOffset, chunk.ColumnIndexLength = f.w.put(x.columns)
			}
		}
	}
	for g := range f.indexes {
		for c, x := range f.indexes[g] {
			if x.offsets != nil {
				chunk := &f.footer.RowGroups[g].Columns[c]
				chunk.OffsetIndexOffset, chunk.OffsetIndexLength = f.w.put(x.offsets)
			}
		}
	}
	f.indexes = nil
}

// writer counts bytes, gathers small writes, and keeps the first error.
type writer struct {
	to      io.Writer
	at      int64
	pending []byte
	err     error
}

// gathered is the length up to which writes are gathered.
const gathered = 8 << 10

// add writes b, which is not kept.
func (w *writer) add(b []byte) {
	w.at += int64(len(b))
	if len(w.pending)+len(b) <= gathered {
		w.pending = append(w.pending, b...)
		return
	}
	w.flush()
	if len(b) <= gathered {
		w.pending = append(w.pending, b...)
		return
	}
	w.write(b)
}

func (w *writer) flush() {
	if len(w.pending) > 0 {
		w.write(w.pending)
		w.pending = w.pending[:0]
	}
}

func (w *writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.to.Write(b)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fault.In("write a Parquet file", err)
	}
}

// put writes a structure and answers where it is.
func (w *writer) put(b []byte) (*int64, *int32) {
	at, n := w.at, int32(len(b))
	w.add(b)
	return &at, &n
}
