package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/resolve"
)

// copy moves the pages of a part as they are, but for their dictionary codes and
// their compression. Pages that hold a row which does not move are decoded, and
// what is live of them is encoded anew.
func (m *mover) copy(p *part) error {
	pages, err := m.open(p)
	if err != nil {
		return err
	}
	defer pages.Close()
	defer p.close()
	c := copier{m: m, p: p, feed: m.feed(p.source), counted: m.measure.Collect()}
	defer func() { m.state(p, c.counted, c.stated) }()
	// What was encoded before is no page of this part, whose statistics are those of
	// the source's chunk.
	if err := m.enc.Flush(); err != nil {
		return err
	}
	if p.whole {
		if err := m.lane.put(m.ctx, item{kind: itemBeginPart, statistics: p.statistics(), sizes: p.sizes()}); err != nil {
			return err
		}
	}
	for {
		page, err := pages.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if page.Dictionary() {
			if err := p.unnamed(page); err != nil {
				return err
			}
			continue
		}
		if c.past(&page) {
			// The last row must not go on in this page.
			if _, err := c.count(&page); err != nil || page.Rows < 0 {
				return within(err, 0, 0)
			}
			break
		}
		if err := c.page(&page); err != nil {
			return err
		}
	}
	if p.codes != nil {
		if err := m.proof.still(p.codes.Codes, p.src.Location); err != nil {
			return err
		}
	}
	if !p.whole {
		return nil
	}
	if c.rows != p.rows {
		return fault.New(fault.Corrupt, fmt.Sprintf("the column has %d rows in a row group of %d", c.rows, p.rows))
	}
	if err := m.enc.Flush(); err != nil {
		return err
	}
	return m.lane.put(m.ctx, item{kind: itemEndPart})
}

// unnamed takes the dictionary of a chunk that is not said to have one: its pages are
// decoded.
func (p *part) unnamed(page column.Page) error {
	if p.codes != nil {
		return nil
	}
	p.loaded = true
	return p.decoder.Dictionary(page)
}

// copier moves the pages of one part.
type copier struct {
	m    *mover
	p    *part
	feed *feed
	// rows is the number of rows passed that begin in pages.
	rows  int64
	batch column.Batch
	// runs are what stays of a page, mapped its codes in the merged dictionary and
	// codes those of the page made of it.
	runs          []encode.Run
	mapped, codes []uint32
	// incomplete reports that the page at hand is of a lineage column and has nulls.
	incomplete bool
	// counted are the values of decoded pages, stated what is known of others.
	counted *metrics.Collector
	stated  []metrics.Stats
}

// past reports that a page and all after it lie behind the part.
func (c *copier) past(page *column.Page) bool {
	return !c.p.whole && c.p.base+page.FirstRow >= c.p.first+c.p.span.rows
}

// page moves one page.
func (c *copier) page(page *column.Page) error {
	p := c.p
	if page.Header.Values == 0 {
		return nil // it says nothing, and readers need not expect it
	}
	if err := c.lineage(page); err != nil {
		return err
	}
	if p.whole {
		return c.all(page)
	}
	if page.Rows < 0 {
		return fault.New(fault.Corrupt, "it is not known which rows a page has")
	}
	// Nothing is cut by rows that an index merely states.
	stated := page.Rows
	if n, err := c.count(page); err != nil || n != stated || page.Rows != stated {
		return within(err, n, stated)
	}
	first := p.base + page.FirstRow
	from, to := max(first, p.first), min(first+page.Rows, p.first+p.span.rows)
	if from >= to {
		return nil
	}
	switch deleted := c.feed.s.Deleted.Count(from, to); {
	case deleted == to-from:
		return nil
	case deleted == 0 && to-from == page.Rows && c.movable(page):
		c.m.moved(c.feed.s, from, to-from)
		return c.move(page)
	case c.stays(page, to-from-deleted):
		return c.filter(page, first, from, to)
	}
	return c.decode(page, first, from, to)
}

// lineage looks for nulls in a page of a lineage column: they are to be completed, whatever
// the footer says of them.
func (c *copier) lineage(page *column.Page) error {
	if c.feed.from.Lineage == resolve.NoLineage || c.p.node.MaxDef == 0 {
		return nil
	}
	if err := c.p.decoder.Levels(*page, &c.batch); err != nil {
		return err
	}
	c.incomplete = bytes.IndexByte(c.batch.Def, 0) >= 0
	return nil
}

// codesBytes is the memory that a page of codes takes for each as it is remapped: the
// codes read, and those of the page made. It must be less than a part in codesShare of
// all: runs may have any number of codes in a few bytes. Who decodes a page asks for
// memory before.
const (
	codesBytes = 8
	codesShare = 4
)

// movable reports whether a page may be moved, and is not too long for that.
func (c *copier) movable(page *column.Page) bool {
	h := &page.Header
	if c.incomplete || !c.counts(page) {
		return false
	}
	if column.Coded(h.Encoding) && int64(h.Values)*codesBytes > c.m.e.memory()/codesShare {
		return false
	}
	return c.p.movable(h)
}

// counts reports that the header of a page of version 2 has the number of nulls that the
// levels have. Others are made anew: what is wrong in the header would get into the indexes
// (arrow-rs 2191, arrow 34326).
func (c *copier) counts(page *column.Page) bool {
	h := &page.Header
	if h.Type != format.DataPageV2 {
		return true
	}
	if c.p.node.MaxDef == 0 {
		return h.Nulls == 0
	}
	from, to := int64(h.RepBytes), int64(h.RepBytes)+int64(h.DefBytes)
	if h.RepBytes < 0 || h.DefBytes < 0 || to > int64(len(page.Body)) {
		return false
	}
	n, err := column.CountLevels(page.Body[from:to], int(h.Values), c.p.node.MaxDef)
	return err == nil && n == int(h.Values-h.Nulls)
}

// all moves a page of a part of which all pages move.
func (c *copier) all(page *column.Page) error {
	p := c.p
	first := p.first + c.rows
	rows, err := c.count(page)
	if err != nil {
		return err
	}
	if page.Rows < 0 && (c.rows == 0 || page.Header.Type == format.DataPageV2) {
		// It would add to a row of the part before; pages of version 2 never do.
		return fault.New(fault.Corrupt, "a page begins within a row, there is none before it")
	}
	c.rows += rows
	if c.movable(page) {
		c.m.moved(c.feed.s, first, rows)
		return c.move(page)
	}
	if p.node.MaxRep > 0 && (page.Rows < 0 || p.offsets == nil && page.Header.Type == format.DataPage) {
		if p.movable(&page.Header) {
			return fault.New(fault.TooLarge, fmt.Sprintf("a page of %d dictionary codes", page.Header.Values))
		}
		return fault.New(fault.Corrupt, "a page is not encoded as the column says")
	}
	return c.decode(page, first, first, first+rows)
}

// within is the error of a page that has other rows than those stated.
func within(err error, rows, stated int64) error {
	if err != nil {
		return err
	}
	return fault.New(fault.Corrupt, fmt.Sprintf("a page in which %d rows should begin has %d, or begins within a row", stated, rows))
}

// count counts the rows that begin in a page by its repetition levels. It becomes
// the page's number if it begins at a row, else that is -1.
func (c *copier) count(page *column.Page) (int64, error) {
	if c.p.node.MaxRep == 0 {
		return page.Rows, nil
	}
	if err := c.p.decoder.Levels(*page, &c.batch); err != nil {
		return 0, err
	}
	n := int64(bytes.Count(c.batch.Rep, []byte{0}))
	page.Rows = n
	if len(c.batch.Rep) > 0 && c.batch.Rep[0] != 0 {
		page.Rows = -1
	}
	return n, nil
}

// decode encodes the live rows of a page anew, of those from row from up to, and
// without, to of the file. The page begins at row first.
func (c *copier) decode(page *column.Page, first, from, to int64) error {
	f := c.feed
	if err := c.p.load(); err != nil {
		return err
	}
	if err := c.p.decoder.Decode(*page, &f.raw); err != nil {
		return err
	}
	if len(f.raw.Rep) > 0 && f.raw.Rep[0] != 0 || int64(f.raw.Rows) != page.Rows {
		return fault.New(fault.Corrupt, fmt.Sprintf("a page has %d rows, %d were announced", f.raw.Rows, page.Rows))
	}
	return f.batch(first, from, to, func(b *column.Batch) error {
		c.m.proof.read(b)
		c.m.levels += int64(b.Levels)
		c.counted.Add(b)
		return c.m.enc.Write(b)
	})
}

// move moves a whole page.
func (c *copier) move(page *column.Page) error {
	m, p := c.m, c.p
	m.levels += int64(page.Header.Values)
	// What was encoded before is a page of its own, and proved before this one.
	if err := m.enc.Flush(); err != nil {
		return err
	}
	out := encode.Page{Header: page.Header, Raw: page.Raw, Body: page.Body, Index: p.index(page)}
	if len(c.stated) == 0 || !p.whole { // of a whole chunk its statistics are taken
		c.stated = append(c.stated, m.pageStats(p, page, &out.Index))
	}
	coded := column.Coded(page.Header.Encoding)
	if m.bloom != nil && !coded {
		if err := p.decoder.Decode(*page, &c.batch); err != nil {
			return err
		}
		m.bloom.AddValues(&c.batch.Values, 0, c.batch.Values.Len())
	}
	size := int64(len(out.Raw) + len(out.Body))
	var lent *column.Memory
	var err error
	same := coded && p.codes.Identity
	if same && len(p.codes.Codes) == 1 {
		// Codes of the only entry may have a width of 0. Readers are known that take the
		// begin of the next run for such a code, which of more entries is another one.
		same = false
	}
	if same && m.union.Len() > len(p.codes.Codes) {
		// A code beyond the page's own dictionary must not become one of another's.
		if _, err = m.remapper.OpenOf(out, p.chunk.Codec, len(p.codes.Codes)); err != nil {
			return err
		}
	}
	switch {
	case coded && !same:
		if out, err = c.remap(out); err != nil {
			return err
		}
		m.e.counts.remapped.Add(size)
	case p.chunk.Codec != m.e.codec || m.e.q.Recompress:
		if out, err = c.recompress(page, out); err != nil {
			return err
		}
		m.e.counts.recompressed.Add(size)
	default:
		if h := p.corrected(out); h != out.Header {
			if out.Raw, err = format.RewritePageHeader(nil, out.Raw, &h); err != nil {
				return err
			}
			out.Header = h
		}
		lent = page.Memory
		m.e.counts.verbatim.Add(size)
	}
	m.inserting, m.lent = true, lent
	err = m.enc.Insert(out, max(page.Rows, 0))
	m.inserting, m.lent = false, nil
	return err
}

// corrected is the header of a page that is moved as it is, without what does not hold.
func (p *part) corrected(page encode.Page) format.PageHeader {
	h := page.Header
	if !p.bounded() {
		h.Statistics = nil // the output says how bounds are compared, which the source did not
	}
	if levels := h.RepBytes + h.DefBytes; h.Type == format.DataPageV2 && h.UncompressedSize == levels && len(page.Body) == int(levels) {
		h.Compressed = false // parquet-mr says it of no bytes, which for Snappy is an error (duckdb 17029)
	}
	return h
}

// remap gives the page the codes of the merged dictionary. Its levels stay the
// bytes they are, so the proof is about those and about every code.
func (c *copier) remap(in encode.Page) (encode.Page, error) {
	m, p := c.m, c.p
	read, err := m.remapper.Open(in, p.chunk.Codec)
	if err != nil {
		return in, err
	}
	out, err := m.remapper.Codes(in.Header, read, p.codes.Codes, m.union.Len(), p.src.spare[p.group], in.Index)
	if err != nil || !m.proof.on {
		return out, err
	}
	m.e.fault(faultMade, out.Body)
	if m.proof.opener == nil {
		m.proof.opener = m.e.remapper(m.leaf.Node, encode.Options{})
	}
	return out, m.proof.coded(&in.Header, &read, p.codes.Codes, &out)
}

// recompress gives the page the output's codec and level.
func (c *copier) recompress(page *column.Page, in encode.Page) (encode.Page, error) {
	m, p := c.m, c.p
	out, err := m.remapper.Recompress(in, p.chunk.Codec)
	if err != nil || !m.proof.on {
		return out, err
	}
	m.e.fault(faultMade, out.Body)
	before, err := m.proof.plain(&page.Header, page.Body, p.chunk.Codec)
	if err != nil {
		return out, err
	}
	after, err := m.proof.plain(&out.Header, out.Body, m.e.codec)
	if err != nil {
		return out, fault.Wrap(fault.Halt, "read a page just compressed", err)
	}
	if before != after || page.Header.Values != out.Header.Values {
		return out, fault.New(fault.Halt, "a page that was compressed anew has another content")
	}
	m.proof.alike(before, int64(page.Header.Values))
	return out, nil
}

// plain is the hash of the levels and values of a page as they are encoded.
func (p *proof) plain(h *format.PageHeader, body []byte, c format.Codec) (uint64, error) {
	levels := 0
	compressed := c != format.Uncompressed
	if h.Type == format.DataPageV2 {
		levels = int(h.RepBytes) + int(h.DefBytes)
		compressed = compressed && h.Compressed
	}
	size := int(h.UncompressedSize)
	if levels < 0 || levels > len(body) || levels > size {
		return 0, fault.New(fault.Corrupt, "levels longer than their page")
	}
	p.buffer = append(p.buffer[:0], body[:levels]...)
	if !compressed {
		p.buffer = append(p.buffer, body[levels:]...)
		return xxh3.Hash(p.buffer), nil
	}
	p.buffer = slices.Grow(p.buffer, size-levels)[:size]
	if err := codec.Decompress(p.buffer[levels:], body[levels:], c); err != nil {
		return 0, err
	}
	return xxh3.Hash(p.buffer), nil
}

// coded compares a data page of codes that was made with the one it was made of:
// their counts, their levels, and every code with what mapping makes of it.
func (p *proof) coded(h *format.PageHeader, read *encode.Coded, mapping []uint32, page *encode.Page) error {
	made, err := p.opener.Open(*page, p.codec)
	if err != nil {
		return fault.Wrap(fault.Halt, "read a page just written", err)
	}
	g := &page.Header
	if g.Type != h.Type || g.Values != h.Values || g.Rows != h.Rows || g.RepBytes != h.RepBytes || g.DefBytes != h.DefBytes ||
		!bytes.Equal(made.Levels, read.Levels) || !mapped(made.Codes, read.Codes, mapping) {
		return fault.New(fault.Halt, fmt.Sprintf("a page of %d values with other codes has other values", h.Values))
	}
	p.alike(xxh3.HashSeed(made.Values, xxh3.Hash(made.Levels)), int64(h.Values))
	return nil
}

// mapped reports that the codes made are what mapping makes of those read, all of
// which it has.
func mapped(made, read, mapping []uint32) bool {
	if len(made) != len(read) {
		return false
	}
	differ := uint32(0)
	for i := range read { // by index, which is twice as fast
		differ |= mapping[read[i]] ^ made[i]
	}
	return differ == 0
}

// alike counts a page that was compared by itself.
func (p *proof) alike(content uint64, values int64) {
	for _, s := range []*sum{&p.source, &p.written} {
		s.total = bits.RotateLeft64(s.total, 7) + content
		s.values += values
	}
}
