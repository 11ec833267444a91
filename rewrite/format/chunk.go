package format

import (
	"fmt"
	"unsafe"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

func parseChunk(r *thrift.Reader, c *Chunk) {
	var meta bool
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			c.FilePath = r.Text(f.Kind)
		case 3:
			meta = true
			r.Struct(f.Kind)
			parseChunkMeta(r, c)
		case 4:
			c.OffsetIndexOffset = ptr(r.Int64(f.Kind))
		case 5:
			c.OffsetIndexLength = ptr(r.Int32(f.Kind))
		case 6:
			c.ColumnIndexOffset = ptr(r.Int64(f.Kind))
		case 7:
			c.ColumnIndexLength = ptr(r.Int32(f.Kind))
		case 8, 9:
			c.Encrypted = true
			r.Skip(f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	if !meta && !c.Encrypted {
		r.Fail(missing("a column chunk", "metadata"))
	}
}

func parseChunkMeta(r *thrift.Reader, c *Chunk) {
	var seen uint32
	for f := (thrift.Field{}); r.Next(&f); {
		if f.ID > 0 && f.ID < 32 {
			seen |= 1 << f.ID
		}
		switch f.ID {
		case 1:
			c.Type = Type(r.Int32(f.Kind))
		case 2:
			c.Encodings = parseEncodings(r, f.Kind)
		case 3:
			c.Path = parseTexts(r, f.Kind)
		case 4:
			c.Codec = Codec(r.Int32(f.Kind))
		case 5:
			c.Values = r.Int64(f.Kind)
		case 6:
			c.UncompressedSize = r.Int64(f.Kind)
		case 7:
			c.CompressedSize = r.Int64(f.Kind)
		case 8:
			c.KeyValues = parseKeyValues(r, f.Kind)
		case 9:
			c.DataPage = r.Int64(f.Kind)
		case 10:
			c.IndexPage = ptr(r.Int64(f.Kind))
		case 11:
			c.Dictionary = ptr(r.Int64(f.Kind))
		default:
			parseChunkExtras(r, c, f)
		}
	}
	const required = 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<7 | 1<<9
	if lacking := required &^ seen; lacking != 0 && r.Err() == nil {
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("a column chunk lacks fields (%#x)", lacking)))
	}
}

// parseChunkExtras reads what came to the metadata later.
func parseChunkExtras(r *thrift.Reader, c *Chunk, f thrift.Field) {
	switch f.ID {
	case 12:
		c.Statistics = parseStatistics(r, f.Kind)
	case 13:
		c.EncodingStats = parseEncodingStats(r, f.Kind)
	case 14:
		c.BloomOffset = ptr(r.Int64(f.Kind))
	case 15:
		c.BloomLength = ptr(r.Int32(f.Kind))
	case 16:
		c.Sizes = parseSizes(r, f.Kind)
	case 17:
		from := r.At()
		r.Skip(f.Kind)
		if r.Err() == nil && f.Kind == thrift.Group {
			c.Geospatial = r.Between(from, r.At())
		}
	default:
		r.Skip(f.Kind)
	}
}

func parseEncodings(r *thrift.Reader, k thrift.Kind) []Encoding {
	kind, n := r.List(k, 4)
	out := make([]Encoding, n)
	for i := range out {
		out[i] = Encoding(r.Int32(kind))
	}
	return out
}

func parseTexts(r *thrift.Reader, k thrift.Kind) []string {
	kind, n := r.List(k, 16)
	out := make([]string, n)
	for i := range out {
		out[i] = r.Text(kind)
	}
	return out
}

func parseEncodingStats(r *thrift.Reader, k thrift.Kind) []EncodingStat {
	kind, n := r.List(k, int(unsafe.Sizeof(EncodingStat{})))
	out := make([]EncodingStat, n)
	for i := range out {
		r.Struct(kind)
		for f := (thrift.Field{}); r.Next(&f); {
			switch f.ID {
			case 1:
				out[i].Page = PageType(r.Int32(f.Kind))
			case 2:
				out[i].Encoding = Encoding(r.Int32(f.Kind))
			case 3:
				out[i].Count = r.Int32(f.Kind)
			default:
				r.Skip(f.Kind)
			}
		}
	}
	return out
}

// write appends the column chunk. Its path is the leaf's.
func (c *Chunk) write(w *thrift.Writer, leaf *Node) {
	w.Begin()
	if c.FilePath != "" {
		w.Text(1, c.FilePath)
	}
	w.Int64(2, 0) // file_offset: metadata is only in the footer
	w.Struct(3)
	c.writeMeta(w, leaf)
	w.End()
	maybe64(w, 4, c.OffsetIndexOffset)
	maybe32(w, 5, c.OffsetIndexLength)
	maybe64(w, 6, c.ColumnIndexOffset)
	maybe32(w, 7, c.ColumnIndexLength)
	w.End()
}

func (c *Chunk) writeMeta(w *thrift.Writer, leaf *Node) {
	w.Int32(1, int32(c.Type))
	w.List(2, thrift.I32, len(c.Encodings))
	for _, e := range c.Encodings {
		w.Int(int64(e))
	}
	path := c.Path
	if path == nil {
		path = leaf.Path()
	}
	w.List(3, thrift.Binary, len(path))
	for _, name := range path {
		w.ElementText(name)
	}
	w.Int32(4, int32(c.Codec))
	w.Int64(5, c.Values)
	w.Int64(6, c.UncompressedSize)
	w.Int64(7, c.CompressedSize)
	writeKeyValues(w, 8, c.KeyValues)
	w.Int64(9, c.DataPage)
	maybe64(w, 10, c.IndexPage)
	maybe64(w, 11, c.Dictionary)
	c.Statistics.write(w, 12)
	if c.EncodingStats != nil {
		w.List(13, thrift.Group, len(c.EncodingStats))
		for _, s := range c.EncodingStats {
			w.Begin()
			w.Int32(1, int32(s.Page))
			w.Int32(2, int32(s.Encoding))
			w.Int32(3, s.Count)
			w.End()
		}
	}
	maybe64(w, 14, c.BloomOffset)
	maybe32(w, 15, c.BloomLength)
	c.Sizes.write(w, 16)
	if c.Geospatial != nil {
		w.Field(17, thrift.Group)
		w.Raw(c.Geospatial)
	}
}

func writeKeyValues(w *thrift.Writer, id int16, kv []KeyValue) {
	if kv == nil {
		return
	}
	w.List(id, thrift.Group, len(kv))
	for _, e := range kv {
		w.Begin()
		w.Text(1, e.Key)
		if e.Value != nil {
			w.Text(2, *e.Value)
		}
		w.End()
	}
}

// AppendFooter appends the stored form of f, without its length and magic. What
// is absent stays absent. Chunks without a path have their leaf's.
func AppendFooter(b []byte, f *Footer) []byte {
	w := &thrift.Writer{B: b}
	w.Begin()
	w.Int32(1, f.Version)
	w.List(2, thrift.Group, f.Schema.Root.count())
	f.Schema.Root.write(w, true)
	w.Int64(3, f.Rows)
	w.List(4, thrift.Group, len(f.RowGroups))
	for i := range f.RowGroups {
		f.RowGroups[i].write(w, f.Schema)
	}
	writeKeyValues(w, 5, f.KeyValues)
	if f.CreatedBy != "" {
		w.Text(6, f.CreatedBy)
	}
	if f.Orders != nil {
		w.List(7, thrift.Group, len(f.Orders))
		for _, o := range f.Orders {
			w.Begin()
			if o != OrderUnknown {
				w.Struct(int16(o)) // the orders are numbered like the union's fields
				w.End()
			}
			w.End()
		}
	}
	w.End()
	return w.B
}

func (g *RowGroup) write(w *thrift.Writer, s *Schema) {
	w.Begin()
	w.List(1, thrift.Group, len(g.Columns))
	for i := range g.Columns {
		g.Columns[i].write(w, s.Leaves[i])
	}
	w.Int64(2, g.Bytes)
	w.Int64(3, g.Rows)
	if g.Sorting != nil {
		w.List(4, thrift.Group, len(g.Sorting))
		for _, c := range g.Sorting {
			w.Begin()
			w.Int32(1, c.Leaf)
			w.Bool(2, c.Descending)
			w.Bool(3, c.NullsFirst)
			w.End()
		}
	}
	maybe64(w, 5, g.FileOffset)
	maybe64(w, 6, g.CompressedBytes)
	if g.Ordinal != nil {
		w.Int16(7, *g.Ordinal)
	}
	w.End()
}
