package output

import (
	"fmt"
	"math"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// Covers says what a bloom filter was filled with.
type Covers uint8

// The contents.
const (
	// CoversValues: every value of the chunk.
	CoversValues Covers = iota
	// CoversDictionary: the entries of the dictionary. The filter is dropped if a
	// page with values does not use the dictionary.
	CoversDictionary
)

// Chunk is a column chunk being written. It is an encode.Sink.
type Chunk struct {
	group *Group
	leaf  *format.Node
	meta  format.Chunk
	begin int64
	// others reports pages with values that do not use the dictionary.
	others bool
	pages  []location
	sum    summary
	// span collects the pages of a part whose statistics were given.
	span  *summary
	given summary
	// part and partValues are the pages and values before the part.
	part       int
	partValues int64
	bloom      *encode.Bloom
	covers     Covers
	scratch    []byte
}

var _ encode.Sink = (*Chunk)(nil)

// location is a data page as the indexes need it.
type location struct {
	offset int64
	size   int32
	values int64
	index  encode.PageIndex
}

// Column begins the chunk of the next leaf. All its pages use the codec.
func (g *Group) Column(leaf int, c format.Codec) (*Chunk, error) {
	f := g.file
	if err := f.state(); err != nil {
		return nil, err
	}
	if g.open != nil || leaf != len(g.meta.Columns) || leaf >= len(f.schema.Leaves) {
		return nil, f.fail(fault.New(fault.Halt, fmt.Sprintf("begin column %d out of turn", leaf)))
	}
	node := f.schema.Leaves[leaf]
	g.open = &Chunk{
		group: g, leaf: node, begin: f.w.at, sum: newSummary(node),
		meta: format.Chunk{Type: node.Type, Path: node.Path(), Codec: c},
	}
	return g.open, nil
}

// Dictionary writes the dictionary page, which comes before the data pages.
func (c *Chunk) Dictionary(p encode.Page) error {
	if c.meta.Dictionary != nil || len(c.pages) > 0 || p.Header.Type != format.DictionaryPage {
		return c.group.file.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": a dictionary page out of turn"))
	}
	at := c.group.file.w.at
	if _, err := c.write(&p); err != nil {
		return err
	}
	c.meta.Dictionary = &at
	return nil
}

// Page writes a data page.
func (c *Chunk) Page(p encode.Page) error {
	f := c.group.file
	h := &p.Header
	coded := h.Encoding == format.RLEDictionary || h.Encoding == format.PlainDictionary
	switch {
	case h.Type != format.DataPage && h.Type != format.DataPageV2:
		return f.fail(fault.New(fault.Halt, fmt.Sprintf("column %s: a page of type %d among the data pages", c.leaf, h.Type)))
	case coded && c.meta.Dictionary == nil:
		return f.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": a page in codes without a dictionary"))
	}
	at := f.w.at
	size, err := c.write(&p)
	if err != nil {
		return err
	}
	if len(c.pages) == 0 {
		c.meta.DataPage = at
	}
	l := location{offset: at, size: size, values: int64(h.Values), index: c.known(&p)}
	c.meta.Values += l.values
	c.others = c.others || !coded && l.index.Nulls != l.values
	into := &c.sum
	if c.span != nil {
		into = c.span
	}
	into.addPage(&l)
	l.shorten(c.leaf)
	c.pages = append(c.pages, l)
	return nil
}

// known is the page's index with what its header or the schema says filled in,
// and with what contradicts them taken out.
func (c *Chunk) known(p *encode.Page) encode.PageIndex {
	x, h := p.Index, &p.Header
	if h.Type == format.DataPageV2 {
		x.Nulls, x.Rows = int64(h.Nulls), int64(h.Rows)
	}
	if c.leaf.MaxDef == 0 {
		x.Nulls = 0
	}
	if c.leaf.MaxRep == 0 {
		x.Rows = int64(h.Values)
	}
	if x.Rows == 0 && h.Values > 0 {
		x.Rows = -1 // the page goes on with a row of the page before
	}
	if o := encode.OrderingOf(c.leaf); o != encode.Floats && o != encode.Doubles {
		x.NaNs = 0
	} else if x.Nulls == int64(h.Values) {
		x.NaNs = 0
	}
	x.Nulls, x.NaNs = possible(x.Nulls, x.NaNs, int64(h.Values))
	x.Bounds = c.bounds(&x, int64(h.Values))
	if len(x.Rep) != c.leaf.MaxRep+1 || c.leaf.MaxRep == 0 {
		x.Rep = nil
	}
	if len(x.Def) != c.leaf.MaxDef+1 || c.leaf.MaxDef < 2 {
		x.Def = nil
	}
	if c.leaf.Type != format.ByteArray {
		x.Unencoded = 0
	}
	return x
}

// possible are counts of nulls and NaNs among so many values, without those that
// cannot be.
func possible(nulls, nans, values int64) (int64, int64) {
	if nulls > values {
		nulls = -1
	}
	if nans > values-max(nulls, 0) {
		nans = -1
	}
	return nulls, nans
}

func (c *Chunk) bounds(x *encode.PageIndex, values int64) encode.Bounds {
	o := encode.OrderingOf(c.leaf)
	switch {
	case o == encode.NoOrder:
		return encode.BoundsUnknown
	case x.Nulls == values:
		x.Min, x.Max = nil, nil
		return encode.BoundsNone
	case x.Bounds == encode.BoundsSet && encode.IsBound(c.leaf, x.Min) && encode.IsBound(c.leaf, x.Max) && o.Compare(x.Min, x.Max) <= 0:
		x.Min, x.Max = o.CoverZeros(x.Min, x.Max)
		return encode.BoundsSet
	case x.Bounds == encode.BoundsNone && x.Nulls >= 0 && x.NaNs == values-x.Nulls:
		return encode.BoundsNone
	}
	return encode.BoundsUnknown
}

// write writes the header and the body, and counts them.
func (c *Chunk) write(p *encode.Page) (size int32, err error) {
	f := c.group.file
	if err := f.state(); err != nil {
		return 0, err
	}
	if c.group.open != c {
		return 0, f.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": a page after the end of its chunk"))
	}
	if int64(p.Header.CompressedSize) != int64(len(p.Body)) {
		return 0, f.fail(fault.New(fault.Halt, fmt.Sprintf("column %s: a page of %d bytes whose header says %d", c.leaf, len(p.Body), p.Header.CompressedSize)))
	}
	header := p.Raw
	if header == nil {
		c.scratch = format.AppendPageHeader(c.scratch[:0], &p.Header)
		header = c.scratch
	}
	total := int64(len(header)) + int64(len(p.Body))
	if total > math.MaxInt32 {
		return 0, f.fail(fault.New(fault.TooLarge, fmt.Sprintf("column %s: a page of %d bytes", c.leaf, total)))
	}
	f.w.add(header)
	f.w.add(p.Body)
	c.meta.UncompressedSize += int64(len(header)) + int64(p.Header.UncompressedSize)
	c.meta.CompressedSize += total
	c.count(&p.Header)
	return int32(total), f.w.err
}

// count keeps encodings and encoding_stats as the headers written say.
func (c *Chunk) count(h *format.PageHeader) {
	for i := range c.meta.EncodingStats {
		if s := &c.meta.EncodingStats[i]; s.Page == h.Type && s.Encoding == h.Encoding {
			s.Count++
			return
		}
	}
	c.meta.EncodingStats = append(c.meta.EncodingStats, format.EncodingStat{Page: h.Type, Encoding: h.Encoding, Count: 1})
	c.encoding(h.Encoding)
	if c.leaf.MaxDef > 0 && h.Type == format.DataPage {
		c.encoding(h.DefEncoding)
	}
	if c.leaf.MaxRep > 0 && h.Type == format.DataPage {
		c.encoding(h.RepEncoding)
	}
	if (c.leaf.MaxDef > 0 || c.leaf.MaxRep > 0) && h.Type == format.DataPageV2 {
		c.encoding(format.RLE)
	}
}

func (c *Chunk) encoding(e format.Encoding) {
	if !slices.Contains(c.meta.Encodings, e) {
		c.meta.Encodings = append(c.meta.Encodings, e)
	}
}

// BeginPart says that the pages until EndPart are a whole chunk of another file,
// of which that file's footer states the given statistics and sizes; nil is
// nothing. They take the place of what the pages say, where they say it, and must
// be trusted: compared in the order of the type. EndPart without BeginPart and
// parts within parts are mistakes of the caller.
func (c *Chunk) BeginPart(s *format.Statistics, z *format.SizeStatistics) error {
	if c.span != nil {
		return c.group.file.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": a part within a part"))
	}
	pages := newSummary(c.leaf)
	c.span, c.given = &pages, stated(c.leaf, s, z)
	c.part, c.partValues = len(c.pages), c.meta.Values
	return nil
}

// EndPart ends what BeginPart began.
func (c *Chunk) EndPart() error {
	if c.span == nil {
		return c.group.file.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": the end of no part"))
	}
	values := c.meta.Values - c.partValues
	c.given.nulls, c.given.nans = possible(c.given.nulls, c.given.nans, values)
	if c.given.nulls >= 0 && c.span.nulls >= 0 && c.given.nulls != c.span.nulls {
		c.given.nulls, c.span.nulls = -1, -1 // nobody knows which of them is right
	}
	if c.given.nulls == values && c.given.bounds == encode.BoundsSet {
		c.given.nulls = -1 // something has these bounds
	}
	if total(c.given.rep, values) != values || total(c.given.def, values) != values {
		c.given.rep, c.given.def, c.given.unencoded = nil, nil, -1
	}
	if c.given.nulls == values && c.given.order != encode.NoOrder {
		c.span.bounds, c.span.nans, c.span.unencoded = encode.BoundsNone, 0, 0
		c.nothing(c.pages[c.part:])
	}
	c.given.complete(c.span)
	c.sum.merge(&c.given)
	c.span = nil
	return nil
}

// total is the number of values in a histogram, or so many where there is none.
func total(histogram []int64, values int64) int64 {
	if histogram == nil {
		return values
	}
	n := int64(0)
	for _, k := range histogram {
		n += k
	}
	return n
}

// nothing states of pages that all their values are null.
func (c *Chunk) nothing(pages []location) {
	for i := range pages {
		x := &pages[i].index
		x.Nulls, x.NaNs, x.Unencoded = pages[i].values, 0, 0
		x.Bounds, x.Min, x.Max = encode.BoundsNone, nil, nil
	}
}

// Bloom gives the chunk a bloom filter, which is used when the chunk is closed.
func (c *Chunk) Bloom(b *encode.Bloom, covers Covers) { c.bloom, c.covers = b, covers }

// Values is the number of levels written so far.
func (c *Chunk) Values() int64 { return c.meta.Values }

// Close ends the chunk.
func (c *Chunk) Close() error {
	f, g := c.group.file, c.group
	if err := f.state(); err != nil {
		return err
	}
	switch {
	case g.open != c:
		return f.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": its chunk has ended already"))
	case len(c.pages) == 0:
		return f.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": a chunk without pages"))
	case c.span != nil:
		return f.fail(fault.New(fault.Halt, "column "+c.leaf.String()+": a part that has no end"))
	}
	c.meta.Statistics, c.meta.Sizes = c.sum.statistics(), c.sum.sizes()
	rows := c.rows()
	x := index{}
	if rows >= 0 {
		x.offsets = format.AppendOffsetIndex(nil, c.offsetIndex())
		if ci := c.columnIndex(); ci != nil {
			x.columns = format.AppendColumnIndex(nil, ci)
		}
	}
	var bits []byte
	if c.bloom != nil && (c.covers == CoversValues || !c.others) {
		bits = c.bloom.Bytes()
	}
	g.meta.Columns = append(g.meta.Columns, c.meta)
	g.indexes = append(g.indexes, x)
	g.blooms = append(g.blooms, bits)
	g.rows = append(g.rows, rows)
	g.open, c.pages = nil, nil
	return nil
}

// rows is the number of rows of the chunk, or -1.
func (c *Chunk) rows() int64 {
	rows := int64(0)
	for i := range c.pages {
		if c.pages[i].index.Rows < 0 {
			return -1
		}
		rows += c.pages[i].index.Rows
	}
	return rows
}
