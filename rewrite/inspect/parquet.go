package inspect

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// File is an open Parquet file with its footer.
type File struct {
	// Rows is the number of rows as the footer says and its row groups add up to.
	Rows int64
	// Columns are the leaves of the schema in order.
	Columns []Column

	in   io.ReaderAt
	size int64
	meta format.FileMetaData
}

// Column is a leaf of a Parquet schema.
type Column struct {
	// ID is the field id, or 0 when the file has none for it.
	ID   iceberg.FieldID
	Path []string
	// Repeated: it is inside a list or a map, so that it has other than one value
	// a row.
	Repeated bool

	element *format.SchemaElement
}

// guard makes a panic of a library an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fault.New(fault.Corrupt, fmt.Sprintf("read a parquet file: %v", p))
	}
}

// Open reads the footer. A file that is no Parquet file or contradicts itself is
// fault.Corrupt, an encrypted one fault.Unsupported, a footer above 64 MiB or a
// million elements fault.TooLarge.
func Open(in io.ReaderAt, size int64) (f *File, err error) {
	defer guard(&err)
	const tail = 8
	if size < tail+4 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("%d bytes are no parquet file", size))
	}
	var end [tail]byte
	if err := readAt(in, end[:], size-tail); err != nil {
		return nil, err
	}
	switch string(end[4:]) {
	case "PAR1":
	case "PARE":
		return nil, fault.New(fault.Unsupported, "the parquet file is encrypted")
	default:
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the file ends with %q, not with PAR1", end[4:]))
	}
	n := int64(binary.LittleEndian.Uint32(end[:4]))
	if n > size-tail-4 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("a footer of %d bytes in a file of %d", n, size))
	}
	if n > maxFooterBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("a footer of %d bytes", n))
	}
	raw := make([]byte, n)
	if err := readAt(in, raw, size-tail-n); err != nil {
		return nil, err
	}
	if _, err := measure(raw); err != nil {
		return nil, err
	}
	f = &File{in: in, size: size}
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(raw)).Decode(&f.meta); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "read the parquet footer", err)
	}
	if f.meta.EncryptionAlgorithm.Value != nil {
		return nil, fault.New(fault.Unsupported, "the parquet file is encrypted")
	}
	if err := f.columns(); err != nil {
		return nil, err
	}
	return f, f.groups()
}

func readAt(in io.ReaderAt, b []byte, at int64) error {
	if n, err := in.ReadAt(b, at); n < len(b) {
		if err == io.EOF { //nolint:errorlint // ReaderAt returns the bare value
			err = fault.Wrap(fault.Corrupt, "read a file that ends early", err)
		}
		return fault.In("read the file", err)
	}
	return nil
}

// columns reads the schema, which is a tree laid out depth first.
func (f *File) columns() error {
	s := f.meta.Schema
	if len(s) == 0 {
		return fault.New(fault.Corrupt, "the parquet file has no schema")
	}
	at := 1
	var group func(children int32, path []string, repeated bool, depth int) error
	group = func(children int32, path []string, repeated bool, depth int) error {
		if depth > 2*maxDepth {
			return fault.New(fault.Corrupt, "the parquet schema is nested too deep")
		}
		for range children {
			if at >= len(s) {
				return fault.New(fault.Corrupt, "the parquet schema is cut")
			}
			e := &s[at]
			at++
			here := append(path[:len(path):len(path)], e.Name)
			many := repeated || e.RepetitionType.Valid && e.RepetitionType.V == format.Repeated
			if n, isGroup := e.NumChildren.Get(); isGroup && n > 0 {
				if err := group(n, here, many, depth+1); err != nil {
					return err
				}
				continue
			}
			if !e.Type.Valid {
				continue // a group without columns
			}
			f.Columns = append(f.Columns, Column{ID: iceberg.FieldID(e.FieldID), Path: here, Repeated: many, element: e})
		}
		return nil
	}
	if err := group(s[0].NumChildren.V, nil, false, 0); err != nil {
		return err
	}
	if at != len(s) {
		return fault.New(fault.Corrupt, "the parquet schema has elements outside of its tree")
	}
	return nil
}

// groups checks that the row groups agree with the file and the schema.
func (f *File) groups() error {
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if g.NumRows < 0 || g.NumRows > math.MaxInt64-f.Rows {
			return fault.New(fault.Corrupt, fmt.Sprintf("row group %d has %d rows", i, g.NumRows))
		}
		f.Rows += g.NumRows
		if len(g.Columns) != len(f.Columns) {
			return fault.New(fault.Corrupt, fmt.Sprintf("row group %d has %d columns, the schema %d", i, len(g.Columns), len(f.Columns)))
		}
		for c := range g.Columns {
			m := &g.Columns[c].MetaData
			from, n := chunkSpan(m)
			if from < 0 || n < 0 || m.NumValues < 0 || from > f.size || n > f.size-from {
				return fault.New(fault.Corrupt, fmt.Sprintf("column %d of row group %d lies at %d+%d in a file of %d bytes", c, i, from, n, f.size))
			}
			if !f.Columns[c].Repeated && m.NumValues != g.NumRows {
				return fault.New(fault.Corrupt, fmt.Sprintf("column %d of row group %d has %d values for %d rows", c, i, m.NumValues, g.NumRows))
			}
		}
	}
	if f.Rows != f.meta.NumRows {
		return fault.New(fault.Corrupt, fmt.Sprintf("the footer says %d rows, its row groups have %d", f.meta.NumRows, f.Rows))
	}
	return nil
}

// chunkSpan is where a column chunk lies.
func chunkSpan(m *format.ColumnMetaData) (from, n int64) {
	from = m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < from {
		from = d
	}
	return from, m.TotalCompressedSize
}
