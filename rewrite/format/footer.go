package format

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

const (
	// MaxFooter is the greatest length in bytes of a footer that is read.
	MaxFooter = 64 << 20
	// maxFooterMemory is what a footer may take once it is read: chunks have few
	// bytes when they state little.
	maxFooterMemory = 512 << 20
)

// ParseFooter reads a FileMetaData and checks that it agrees with itself: the
// schema is a tree, every row group has a chunk of each leaf, of its type and
// path, counts are not negative and add up. A contradiction is fault.Corrupt, a
// footer of more than 64 MiB or 512 MiB of memory fault.TooLarge. Bounds and raw
// parts are parts of b. Offsets are checked by Check.
func ParseFooter(b []byte) (*Footer, error) {
	if len(b) > MaxFooter {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("a footer of %d bytes, more than %d", len(b), MaxFooter))
	}
	r := thrift.NewReader(b, maxFooterMemory)
	f := parseFooter(&r)
	if err := r.Err(); err != nil {
		return nil, fault.In("read a parquet footer", err)
	}
	if err := f.agree(); err != nil {
		return nil, fault.In("read a parquet footer", err)
	}
	return f, nil
}

func parseFooter(r *thrift.Reader) *Footer {
	m := new(Footer)
	var schema, groups, rows bool
	r.Begin()
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			m.Version = r.Int32(f.Kind)
		case 2:
			m.Schema, schema = parseSchema(r, f.Kind), true
		case 3:
			m.Rows, rows = r.Int64(f.Kind), true
		case 4:
			m.RowGroups, groups = parseGroups(r, f.Kind), true
		case 5:
			m.KeyValues = parseKeyValues(r, f.Kind)
		case 6:
			m.CreatedBy = r.Text(f.Kind)
		case 7:
			m.Orders = parseOrders(r, f.Kind)
		case 8:
			m.Encrypted = true
			r.Skip(f.Kind)
		case 9:
			m.Encrypted = true
			r.Skip(f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	switch {
	case !schema:
		r.Fail(missing("the footer", "schema"))
	case !rows:
		r.Fail(missing("the footer", "number of rows"))
	case !groups:
		r.Fail(missing("the footer", "row groups"))
	}
	return m
}

func parseKeyValues(r *thrift.Reader, k thrift.Kind) []KeyValue {
	kind, n := r.List(k, int(unsafe.Sizeof(KeyValue{}))+16)
	out := make([]KeyValue, n)
	for i := range out {
		r.Struct(kind)
		for f := (thrift.Field{}); r.Next(&f); {
			switch f.ID {
			case 1:
				out[i].Key = r.Text(f.Kind)
			case 2:
				out[i].Value = ptr(r.Text(f.Kind))
			default:
				r.Skip(f.Kind)
			}
		}
	}
	return out
}

// parseOrders reads ColumnOrder unions.
func parseOrders(r *thrift.Reader, k thrift.Kind) []Order {
	kind, n := r.List(k, 1)
	out := make([]Order, n)
	for i := range out {
		r.Struct(kind)
		for f := (thrift.Field{}); r.Next(&f); {
			switch f.ID {
			case 1:
				out[i] = OrderByType
			case 2:
				out[i] = OrderIEEE
			}
			r.Skip(f.Kind)
		}
	}
	return out
}

func parseGroups(r *thrift.Reader, k thrift.Kind) []RowGroup {
	kind, n := r.List(k, int(unsafe.Sizeof(RowGroup{})))
	out := make([]RowGroup, n)
	for i := range out {
		r.Struct(kind)
		parseGroup(r, &out[i])
		if r.Err() != nil {
			r.In(fmt.Sprintf("row group %d", i))
			return nil
		}
	}
	return out
}

func parseGroup(r *thrift.Reader, g *RowGroup) {
	var columns, rows bool
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			kind, n := r.List(f.Kind, int(unsafe.Sizeof(Chunk{})))
			g.Columns, columns = make([]Chunk, n), true
			for i := range g.Columns {
				r.Struct(kind)
				parseChunk(r, &g.Columns[i])
				if r.Err() != nil {
					return
				}
			}
		case 2:
			g.Bytes = r.Int64(f.Kind)
		case 3:
			g.Rows, rows = r.Int64(f.Kind), true
		case 4:
			g.Sorting = parseSorting(r, f.Kind)
		case 5:
			g.FileOffset = ptr(r.Int64(f.Kind))
		case 6:
			g.CompressedBytes = ptr(r.Int64(f.Kind))
		case 7:
			g.Ordinal = ptr(int16(r.Int32(f.Kind)))
		default:
			r.Skip(f.Kind)
		}
	}
	if !columns || !rows {
		r.Fail(missing("a row group", "columns or number of rows"))
	}
}

func parseSorting(r *thrift.Reader, k thrift.Kind) []SortingColumn {
	kind, n := r.List(k, int(unsafe.Sizeof(SortingColumn{})))
	out := make([]SortingColumn, n)
	for i := range out {
		r.Struct(kind)
		for f := (thrift.Field{}); r.Next(&f); {
			switch f.ID {
			case 1:
				out[i].Leaf = r.Int32(f.Kind)
			case 2:
				out[i].Descending = r.Bool(f.Kind)
			case 3:
				out[i].NullsFirst = r.Bool(f.Kind)
			default:
				r.Skip(f.Kind)
			}
		}
	}
	return out
}

// agree checks what the footer says against itself.
func (f *Footer) agree() error {
	if f.Orders != nil && len(f.Orders) != len(f.Schema.Leaves) {
		return fault.New(fault.Corrupt, fmt.Sprintf("there are orders for %d columns, the schema has %d", len(f.Orders), len(f.Schema.Leaves)))
	}
	paths := make([][]string, len(f.Schema.Leaves))
	for i, l := range f.Schema.Leaves {
		paths[i] = l.Path()
	}
	var rows int64
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		if g.Rows < 0 || g.Rows > f.Rows-rows {
			return fault.New(fault.Corrupt, fmt.Sprintf("row group %d has %d rows, with %d before it of %d in the file", i, g.Rows, rows, f.Rows))
		}
		rows += g.Rows
		if len(g.Columns) != len(paths) {
			return fault.New(fault.Corrupt, fmt.Sprintf("row group %d has %d columns, the schema %d", i, len(g.Columns), len(paths)))
		}
		for c := range g.Columns {
			if err := g.Columns[c].agree(f.Schema.Leaves[c], paths[c], g.Rows); err != nil {
				return fault.In(fmt.Sprintf("column %s of row group %d", f.Schema.Leaves[c], i), err)
			}
		}
		for _, s := range g.Sorting {
			if s.Leaf < 0 || int(s.Leaf) >= len(paths) {
				return fault.New(fault.Corrupt, fmt.Sprintf("row group %d is sorted by column %d of %d", i, s.Leaf, len(paths)))
			}
		}
	}
	if rows != f.Rows {
		return fault.New(fault.Corrupt, fmt.Sprintf("the file has %d rows, its row groups %d", f.Rows, rows))
	}
	return nil
}

func (c *Chunk) agree(leaf *Node, path []string, rows int64) error {
	if c.Encrypted {
		return nil // its metadata may lie elsewhere; who reads the chunk refuses
	}
	if c.Type != leaf.Type {
		return fault.New(fault.Corrupt, fmt.Sprintf("it has type %d, the schema %d", c.Type, leaf.Type))
	}
	if !slices.Equal(c.Path, path) {
		return fault.New(fault.Corrupt, fmt.Sprintf("it is called %q", c.Path))
	}
	c.Path = path // one for all row groups
	if c.Values < 0 || c.CompressedSize < 0 || c.UncompressedSize < 0 || leaf.MaxRep > 0 && c.Values < rows {
		return fault.New(fault.Corrupt, fmt.Sprintf("it has %d values in %d bytes, %d uncompressed", c.Values, c.CompressedSize, c.UncompressedSize))
	}
	if leaf.MaxRep == 0 && c.Values != rows {
		return fault.New(fault.Corrupt, fmt.Sprintf("it has %d values for %d rows", c.Values, rows))
	}
	return nil
}
