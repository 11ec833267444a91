package output

import (
	"fmt"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// Group is a row group being written. Its columns come in the order of the
// schema's leaves, one at a time.
type Group struct {
	file    *File
	meta    format.RowGroup
	indexes []index
	blooms  [][]byte // by leaf
	rows    []int64  // by leaf, -1 where not known
	open    *Chunk
}

// MaxGroups is how many row groups a file may have: their ordinals are 16 bits
// wide.
const MaxGroups = math.MaxInt16 + 1

// BeginGroup begins the next row group.
func (f *File) BeginGroup() (*Group, error) {
	if err := f.state(); err != nil {
		return nil, err
	}
	if f.open != nil {
		return nil, f.fail(fault.New(fault.Halt, "begin a row group within another"))
	}
	n := len(f.footer.RowGroups)
	if n >= MaxGroups {
		return nil, f.fail(fault.New(fault.TooLarge, fmt.Sprintf("more than %d row groups in a file", n)))
	}
	ordinal, at := int16(n), f.w.at
	f.open = &Group{file: f, meta: format.RowGroup{Ordinal: &ordinal, FileOffset: &at}}
	return f.open, nil
}

// Sorted states the order of the group's rows.
func (g *Group) Sorted(by []format.SortingColumn) { g.meta.Sorting = by }

// Size is the number of bytes of the group's pages so far.
func (g *Group) Size() int64 { return g.file.w.at - *g.meta.FileOffset }

// Close ends the row group, which has so many rows in every column.
func (g *Group) Close(rows int64) error {
	f := g.file
	if err := f.state(); err != nil {
		return err
	}
	switch {
	case g.open != nil:
		return f.fail(fault.New(fault.Halt, "end a row group within a column"))
	case len(g.meta.Columns) != len(f.schema.Leaves):
		return f.fail(fault.New(fault.Halt, fmt.Sprintf("a row group with %d of %d columns", len(g.meta.Columns), len(f.schema.Leaves))))
	case rows <= 0:
		return f.fail(fault.New(fault.Halt, fmt.Sprintf("a row group of %d rows", rows)))
	}
	for i, have := range g.rows {
		if have >= 0 && have != rows {
			return f.fail(fault.New(fault.Halt, fmt.Sprintf("column %s has %d rows in a row group of %d", f.schema.Leaves[i], have, rows)))
		}
	}
	g.meta.Rows = rows
	compressed := int64(0)
	for i := range g.meta.Columns {
		c := &g.meta.Columns[i]
		g.meta.Bytes += c.UncompressedSize
		compressed += c.CompressedSize
		f.leaf[i] += c.CompressedSize
	}
	g.meta.CompressedBytes = &compressed
	g.writeBlooms()
	f.footer.Rows += rows
	f.footer.RowGroups = append(f.footer.RowGroups, g.meta)
	f.indexes = append(f.indexes, g.indexes)
	f.open = nil
	return f.w.err
}

// writeBlooms writes the bloom filters after the group's pages, so that they need
// not be kept until the end of the file.
func (g *Group) writeBlooms() {
	w := &g.file.w
	for i, bits := range g.blooms {
		if bits == nil {
			continue
		}
		header := format.AppendBloomHeader(nil, len(bits))
		at, n := w.at, int32(len(header)+len(bits))
		w.add(header)
		w.add(bits)
		g.meta.Columns[i].BloomOffset, g.meta.Columns[i].BloomLength = &at, &n
		g.blooms[i] = nil
	}
}
