package rewrite

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// part is one span of a leaf with how it is moved.
type part struct {
	*span
	src   *source
	from  *resolve.Source
	node  *format.Node // the leaf in the file, nil if there is none
	chunk *format.Chunk
	// base is the row of the file at which the row group begins; whole reports
	// that the span is the row group and all of its rows move.
	base  int64
	whole bool
	// copied reports that pages are moved as they are.
	copied  bool
	trusted resolve.Trust
	// codes are those that the entries of the dictionary have in the merged one, nil
	// without dictionary.
	codes *encode.Mapping
	// pages are open behind the dictionary, or nil. decoder has the dictionary
	// if loaded.
	pages   *column.Pages
	decoder *column.Decoder
	loaded  bool

	offsets *format.OffsetIndex
	columns *format.ColumnIndex
	passed  int // pages passed, where all are
}

// parts are the spans of the chunk.
func (m *mover) parts() []part {
	out := make([]part, len(m.spans))
	for i := range m.spans {
		s := &m.spans[i]
		p := part{span: s, src: m.e.sources[s.source]}
		p.from = &p.src.mapping.Leaves[m.index]
		f := p.src.file.Footer()
		p.base = p.src.starts[s.group]
		p.whole = s.live == f.RowGroups[s.group].Rows
		if p.from.Leaf >= 0 {
			p.node, p.chunk = f.Schema.Leaves[p.from.Leaf], &f.RowGroups[s.group].Columns[p.from.Leaf]
			p.trusted = resolve.TrustedWriter(f.CreatedBy, p.node)
			// Where rows get lineage that they lack, what the footer states of the chunk
			// does not hold; whether any does is seen page by page.
			p.whole = p.whole && (p.from.Lineage == resolve.NoLineage || p.node.MaxDef == 0)
		}
		out[i] = p
	}
	return out
}

// weight is about what the part takes as stored.
func (p *part) weight() float64 {
	if p.chunk == nil || p.from.Synthetic {
		return 0
	}
	return float64(p.chunk.CompressedSize) * float64(p.span.rows) / float64(max(1, p.src.file.Footer().RowGroups[p.group].Rows))
}

// copyable reports whether the part may be copied.
func (m *mover) copyable(p *part) bool {
	if m.e.q.Copying == CopyNever || p.chunk == nil || p.from.Synthetic || !p.from.Copyable || p.chunk.Values == 0 {
		return false
	}
	if p.node.Type == format.Boolean && p.coded() {
		return false // dictionaries of booleans are not written
	}
	if p.from.Lineage != resolve.NoLineage && !p.noNulls() {
		return false
	}
	for _, e := range p.chunk.Encodings {
		if !p.canMove(e) && e != format.BitPacked {
			return false
		}
	}
	for i := range p.src.mapping.Expected {
		if x := &p.src.mapping.Expected[i]; x.Leaf == m.index && !p.holds(x) {
			return false
		}
	}
	if p.node.MaxRep == 0 {
		return true
	}
	// The rows of a page are known from the offset index or from headers of
	// version 2; pages that are copied whole may be split within rows.
	if slices.Contains(p.chunk.Encodings, format.BitPacked) {
		return false
	}
	return p.whole || p.chunk.OffsetIndexOffset != nil || p.onlyV2()
}

// canMove reports whether pages in an encoding may be moved.
func (p *part) canMove(e format.Encoding) bool {
	switch e {
	case format.Plain, format.PlainDictionary, format.RLEDictionary, format.RLE, format.DeltaBinaryPacked,
		format.DeltaLengthByteArray, format.ByteStreamSplit:
		return true
	case format.DeltaByteArray:
		return p.trusted.DeltaByteArray
	}
	return false
}

// movable reports whether a page may be moved by what its header says.
func (p *part) movable(h *format.PageHeader) bool {
	if h.Type == format.DataPage && (p.node.MaxDef > 0 && h.DefEncoding != format.RLE || p.node.MaxRep > 0 && h.RepEncoding != format.RLE) {
		return false
	}
	if column.Coded(h.Encoding) && p.codes == nil {
		return false // of nulls, which need no dictionary, or of one that the footer does not name
	}
	return p.canMove(h.Encoding)
}

func (p *part) noNulls() bool {
	s := p.chunk.Statistics
	return p.node.MaxDef == 0 || s != nil && s.NullCount != nil && *s.NullCount == 0
}

func (p *part) onlyV2() bool {
	if p.chunk.EncodingStats == nil {
		return false
	}
	for _, s := range p.chunk.EncodingStats {
		if s.Page == format.DataPage {
			return false
		}
	}
	return true
}

// holds reports whether the statistics show that all values are the expected one.
// Bounds that are equal are exact.
func (p *part) holds(x *resolve.Expected) bool {
	s := p.statistics()
	if s == nil || s.NullCount == nil || p.node.MaxRep > 0 {
		return false
	}
	if x.Constant == nil {
		return *s.NullCount == p.chunk.Values
	}
	if p.node.Type == format.Float || p.node.Type == format.Double {
		return false // the bounds of floats do not tell zeros apart and leave NaN out
	}
	return *s.NullCount == 0 && s.Min != nil && s.Max != nil && x.Holds(s.Min) && x.Holds(s.Max)
}

// statistics are those of the chunk that may be believed, or nil.
func (p *part) statistics() *format.Statistics {
	s := p.stated()
	if s == nil {
		return nil
	}
	out := *s
	out.LegacyMin, out.LegacyMax, out.DistinctCount = nil, nil, nil
	if !p.bounded() {
		out.Min, out.Max = nil, nil
	}
	return &out
}

// stated are the statistics of the chunk, without a count of nulls that may not be believed.
func (p *part) stated() *format.Statistics {
	s := p.chunk.Statistics
	if s == nil || p.trusted.Nulls {
		return s
	}
	out := *s
	out.NullCount = nil
	return &out
}

// sizes are those of the chunk that may be believed, or nil.
func (p *part) sizes() *format.SizeStatistics {
	if !p.trusted.Nulls {
		return nil // its histograms count nulls
	}
	return p.chunk.Sizes
}

// bounded reports whether the order of the file's bounds is known.
func (p *part) bounded() bool {
	orders := p.src.file.Footer().Orders
	return p.trusted.Statistics && p.from.Leaf < len(orders) && orders[p.from.Leaf] == format.OrderByType
}

// coded reports whether the chunk may have a dictionary.
func (p *part) coded() bool {
	return p.chunk.Dictionary != nil || slices.ContainsFunc(p.chunk.Encodings, column.Coded)
}

// load makes the decoder know the dictionary of the chunk.
func (p *part) load() error {
	if p.decoder == nil {
		p.decoder = p.src.file.Decoder(p.group, p.from.Leaf)
	}
	if p.loaded || p.codes == nil {
		return nil
	}
	pages, err := p.src.file.Pages(p.group, p.from.Leaf)
	if err != nil {
		return err
	}
	defer pages.Close()
	page, err := pages.Next()
	if err != nil {
		return err
	}
	p.loaded = true
	return p.decoder.Dictionary(page)
}

func (p *part) close() {
	if p.pages != nil {
		p.pages.Close()
		p.pages = nil
	}
	if p.decoder != nil {
		p.decoder.Close()
		p.decoder, p.loaded = nil, false
	}
	p.offsets, p.columns = nil, nil
}

// open gives the pages of a part and reads its indexes.
func (m *mover) open(p *part) (*column.Pages, error) {
	var err error
	if p.offsets, err = p.src.file.OffsetIndex(p.group, p.from.Leaf); err != nil {
		return nil, err
	}
	if p.bounded() && p.trusted.Nulls {
		// Some writers make column indexes that contradict themselves; without one
		// only less is known.
		if p.columns, err = p.src.file.ColumnIndex(p.group, p.from.Leaf); err != nil {
			if !fault.Is(err, fault.Corrupt) {
				return nil, err
			}
			p.columns = nil
		}
		if p.columns != nil && (p.offsets == nil || len(p.offsets.Pages) != len(p.columns.NullPages)) {
			p.columns = nil // only the offset index says which page an entry is about
		}
	}
	if p.decoder == nil {
		p.decoder = p.src.file.Decoder(p.group, p.from.Leaf)
	}
	pages := p.pages
	p.pages = nil
	if pages == nil {
		if pages, err = p.src.file.Pages(p.group, p.from.Leaf); err != nil {
			return nil, err
		}
	}
	if !p.whole {
		pages.SkipTo(p.first - p.base)
	}
	return pages, nil
}

// plan decides how each part is moved, and merges the dictionaries of those that
// are copied.
func (m *mover) plan() ([]part, error) {
	parts := m.parts()
	for i := range parts {
		p := &parts[i]
		p.copied = m.copyable(p) && !m.scattered(p)
	}
	m.few(parts)
	m.share(parts)
	if err := m.gain(parts); err != nil {
		return parts, err
	}
	if err := m.merge(parts); err != nil {
		return parts, err
	}
	m.share(parts)
	return parts, nil
}

// share gives copying up if most of the chunk has to be encoded anew anyway: a
// dictionary of its own is worth more then.
func (m *mover) share(parts []part) {
	total, copied := 0.0, 0.0
	for i := range parts {
		w := parts[i].weight()
		total += w
		if parts[i].copied {
			copied += w
		}
	}
	if m.e.q.Copying == CopyForced && copied > 0 || copied > 0 && copied >= total/2 {
		return
	}
	for i := range parts {
		parts[i].copied = false
		parts[i].close()
	}
	m.union = nil
}

// scatterLimit is the share of pages with deleted rows above which a part is
// encoded anew as a whole.
const scatterLimit = 0.5

// scattered reports that most pages of a part have to be decoded for the rows deleted
// of them.
func (m *mover) scattered(p *part) bool {
	d := p.src.Deleted
	deleted := p.span.rows - p.live
	if deleted == 0 || m.e.q.Copying == CopyForced {
		return false
	}
	// Pages are taken to be of equal length; those of the file are not known
	// before they are read.
	rows := max(1, p.src.file.Footer().RowGroups[p.group].Rows/max(1, p.pageCount()))
	pages, touched, most := 0, 0, 0.0
	if m.filterable(p) {
		most = 1 - keepShare // of a page may be deleted
	}
	for at := p.first; at < p.first+p.span.rows; at += rows {
		pages++
		if n := d.Count(at, min(at+rows, p.first+p.span.rows)); n > 0 && n < rows && float64(n) > most*float64(rows) {
			touched++
		}
	}
	return float64(touched) > scatterLimit*float64(pages)
}

// pageCount is about how many data pages the chunk has.
func (p *part) pageCount() int64 {
	n := int64(0)
	for _, s := range p.chunk.EncodingStats {
		if s.Page == format.DataPage || s.Page == format.DataPageV2 {
			n += int64(s.Count)
		}
	}
	if n > 0 {
		return n
	}
	return max(1, p.chunk.UncompressedSize>>20)
}

// merge makes the merged dictionary of all parts that are copied. A part whose
// dictionary does not fit is encoded anew.
func (m *mover) merge(parts []part) error {
	m.union = nil
	open := int64(0)
	for i := range parts {
		p := &parts[i]
		if !p.copied || !p.coded() {
			continue
		}
		m.ahead(parts[i+1:], (*part).coded) // the others would stay open
		if err := m.mergeOne(p); err != nil {
			return fault.In("read "+p.src.Location, err)
		}
		// What was read ahead is kept for a few parts, and else read again.
		takes, most := m.stays(p)
		if open+takes > most || !p.copied || !m.e.roomy() {
			p.close()
			continue
		}
		open += takes
	}
	return nil
}

// openBytes is about what an open chunk takes at most.
const openBytes = 2 << 20

func (m *mover) mergeOne(p *part) error {
	var err error
	if p.pages == nil { // not read ahead
		if p.pages, err = p.src.file.Pages(p.group, p.from.Leaf); err != nil {
			return err
		}
	}
	page, err := p.pages.Next()
	if errors.Is(err, io.EOF) {
		return fault.New(fault.Corrupt, fmt.Sprintf("column %s has no pages", m.leaf.Name))
	}
	if err != nil {
		return err
	}
	if !page.Dictionary() {
		// The first data page is read again. One of codes has nulls only, or is broken:
		// who decodes it finds out.
		p.copied = !column.Coded(page.Header.Encoding)
		p.close()
		return nil
	}
	decoder, err := m.joins(p)
	if err != nil {
		return err
	}
	if err := decoder.Dictionary(page); err != nil {
		return err
	}
	entries := decoder.Entries()
	if m.union == nil {
		if m.union, err = encode.NewDictionary(m.leaf.Node, int(m.e.settings.dictBytes)); err != nil {
			return err
		}
	}
	// The codes are kept until the chunk ends: of many parts with large dictionaries
	// the last are encoded anew rather than have them take all memory.
	if m.mapped += int64(entries.Len()) * mappedBytes; m.mapped > m.e.memory()/8/int64(m.e.workers) {
		p.copied = false
		return nil
	}
	codes, ok, err := m.union.Union(entries)
	if err != nil || !ok {
		p.copied = false
		return err
	}
	p.codes = &codes
	return m.proof.joined(entries, m.union, &codes, p.src.Location)
}

// joins is the decoder of the dictionary of a part. Of a part that moves as a whole
// hardly any page is decoded, so that nobody needs the entries once they are merged.
func (m *mover) joins(p *part) (*column.Decoder, error) {
	if !p.whole {
		p.decoder, p.loaded = p.src.file.Decoder(p.group, p.from.Leaf), true
		return p.decoder, nil
	}
	if m.joiner == nil {
		m.joiner = p.src.file.Decoder(p.group, p.from.Leaf)
		return m.joiner, nil
	}
	return m.joiner, p.src.file.Reuse(m.joiner, p.group, p.from.Leaf)
}

// mappedBytes is what the mapping of one entry of a dictionary takes.
const mappedBytes = 4
