package inspect

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Columns of a position delete file (spec, "Reserved Field IDs").
const (
	pathColumn iceberg.FieldID = 2147483546
	posColumn  iceberg.FieldID = 2147483545
)

// maxPageBytes bounds what one page may take in memory.
const maxPageBytes = 256 << 20

// Positions gives every row of a position delete file to see, in order. The path
// is valid during the call. Null in either column is fault.Corrupt (F021), a page
// above 256 MiB fault.TooLarge.
func (f *File) Positions(see func(path []byte, pos int64) error) (err error) {
	defer guard(&err)
	path, pos := f.find(pathColumn, "file_path", format.ByteArray), f.find(posColumn, "pos", format.Int64)
	if path < 0 || pos < 0 {
		return fault.New(fault.Corrupt, "the file has no columns file_path and pos of their types")
	}
	for i := range f.meta.RowGroups {
		for _, c := range []int{path, pos} {
			if err := f.pages(&f.meta.RowGroups[i].Columns[c].MetaData); err != nil {
				return err
			}
		}
	}
	p, err := parquet.OpenFile(f.in, f.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fault.Wrap(fault.Corrupt, "open the parquet file", err)
	}
	for _, g := range p.RowGroups() {
		if err := groupPositions(g, path, pos, see); err != nil {
			return err
		}
	}
	return nil
}

// find is the position of a column, by id, or by name where there are no ids.
func (f *File) find(id iceberg.FieldID, name string, physical format.Type) int {
	for i, c := range f.Columns {
		if (c.ID == id || c.ID == 0 && len(c.Path) == 1 && c.Path[0] == name) && !c.Repeated && c.element.Type.V == physical {
			return i
		}
	}
	return -1
}

// pages goes over the page headers of a chunk, because a page is allocated as
// large as its header says.
func (f *File) pages(m *format.ColumnMetaData) error {
	const window = 64 << 10
	from, n := chunkSpan(m)
	buf := make([]byte, window)
	for n > 0 {
		b := buf[:min(window, n)]
		if err := readAt(f.in, b, from); err != nil {
			return err
		}
		used, err := measure(b)
		if err != nil {
			return fault.In(fmt.Sprintf("read the page at %d", from), err)
		}
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(b[:used])).Decode(&h); err != nil {
			return fault.Wrap(fault.Corrupt, fmt.Sprintf("read the page at %d", from), err)
		}
		size := int64(used) + int64(h.CompressedPageSize)
		if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || size > n {
			return fault.New(fault.Corrupt, fmt.Sprintf("the page at %d has %d bytes of %d, and %d uncompressed", from, size, n, h.UncompressedPageSize))
		}
		if h.UncompressedPageSize > maxPageBytes {
			return fault.New(fault.TooLarge, fmt.Sprintf("the page at %d has %d bytes", from, h.UncompressedPageSize))
		}
		from, n = from+size, n-size
	}
	return nil
}

func groupPositions(g parquet.RowGroup, path, pos int, see func([]byte, int64) error) error {
	chunks := g.ColumnChunks()
	a := &values{pages: chunks[path].Pages()}
	defer a.close()
	b := &values{pages: chunks[pos].Pages()}
	defer b.close()
	for range g.NumRows() {
		x, err := a.next()
		if err != nil {
			return err
		}
		y, err := b.next()
		if err != nil {
			return err
		}
		if x.IsNull() || y.IsNull() {
			return fault.New(fault.Corrupt, "a row has a null file_path or pos")
		}
		if err := see(x.ByteArray(), y.Int64()); err != nil {
			return err
		}
	}
	return nil
}

// values yields the values of a column one at a time.
type values struct {
	pages parquet.Pages
	page  parquet.Page
	in    parquet.ValueReader
	buf   [256]parquet.Value
	have  []parquet.Value
}

func (v *values) next() (parquet.Value, error) {
	for len(v.have) == 0 {
		if err := v.fill(); err != nil {
			return parquet.Value{}, err
		}
	}
	x := v.have[0]
	v.have = v.have[1:]
	return x, nil
}

func (v *values) fill() error {
	if v.in == nil {
		v.release()
		page, err := v.pages.ReadPage()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fault.New(fault.Corrupt, "a column has fewer values than rows")
			}
			return fault.Wrap(readKind(err), "read a page", err)
		}
		v.page, v.in = page, page.Values()
	}
	n, err := v.in.ReadValues(v.buf[:])
	v.have = v.buf[:n]
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		v.in = nil
		return nil
	}
	return fault.Wrap(readKind(err), "read the values of a page", err)
}

// readKind is the kind of a filer's error, which says more than that the page
// could not be read, and Corrupt for those of the library, which have none.
func readKind(err error) fault.Kind {
	if k := fault.Of(err); k != fault.Unknown {
		return k
	}
	return fault.Corrupt
}

func (v *values) release() {
	if v.page != nil {
		parquet.Release(v.page)
		v.page = nil
	}
}

func (v *values) close() {
	v.release()
	_ = v.pages.Close() // only read
}
