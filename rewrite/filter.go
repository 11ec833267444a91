package rewrite

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/resolve"
)

// keepShare is the share of a page's rows that must stay for it to remain a page of
// its own. Of fewer pages of the common length are made.
const keepShare = 0.5

// filterable reports whether rows can be left out of the pages of a part that is
// copied without their values being decoded.
func (m *mover) filterable(p *part) bool {
	if p.node.MaxRep > 0 || p.from.Lineage != resolve.NoLineage || m.blooming() {
		return false
	}
	for _, e := range p.chunk.Encodings {
		// What is said of levels may be said of them alone.
		if e != format.Plain && e != format.RLE && !column.Coded(e) {
			return false
		}
	}
	return true
}

// blooming reports whether the leaf is to have a bloom filter.
func (m *mover) blooming() bool {
	_, ok := m.e.settings.blooms[m.leaf.Name]
	return ok
}

// filterValues is the greatest number of values of a page that is filtered, one part
// in filterBytes of the memory its greatest length: several buffers hold it. Who
// decodes greater ones asks for memory before.
const (
	filterValues = 1 << 22
	filterBytes  = 64
)

// stays reports whether a page of which so many rows stay is filtered.
func (c *copier) stays(page *column.Page, live int64) bool {
	h := &page.Header
	if int64(h.UncompressedSize) > c.m.e.memory()/filterBytes || h.Values > filterValues {
		return false
	}
	return c.m.filterable(c.p) && c.movable(page) && encode.Keepable(c.p.node, h) &&
		float64(live) >= keepShare*float64(page.Rows)
}

// filter moves the live rows of a page, of those from row from up to, and without,
// to of the file, without decoding a value. The page begins at row first.
func (c *copier) filter(page *column.Page, first, from, to int64) error {
	m, p := c.m, c.p
	if err := m.enc.Flush(); err != nil {
		return err
	}
	c.runs = c.runs[:0]
	live := int64(0)
	for from, to := range c.feed.s.Deleted.Kept(from, to) {
		m.moved(c.feed.s, from, to-from)
		c.runs = append(c.runs, encode.Run{From: int(from - first), To: int(to - first)})
		live += to - from
	}
	coded := column.Coded(page.Header.Encoding)
	size := 0
	if coded {
		size = len(p.codes.Codes)
	}
	in := encode.Page{Header: page.Header, Body: page.Body}
	kept, err := m.remapper.Keep(in, p.chunk.Codec, c.runs, size)
	if err != nil {
		return err
	}
	if int64(kept.Header.Values) != live {
		return fault.New(fault.Halt, fmt.Sprintf("%d rows of a page stay where %d should", kept.Header.Values, live))
	}
	var out encode.Page
	before := uint64(0)
	if coded {
		stay := kept
		stay.Codes = slices.Grow(c.mapped[:0], len(kept.Codes))[:len(kept.Codes)]
		c.mapped = stay.Codes
		for i, code := range kept.Codes {
			stay.Codes[i] = p.codes.Codes[code]
		}
		out, err = m.remapper.KeptCodes(&stay, m.union.Values())
	} else {
		if m.proof.on {
			before = xxh3.Hash(kept.Plain)
		}
		out, err = m.remapper.KeptPlain(&kept)
	}
	if err != nil {
		return err
	}
	if m.proof.on {
		m.e.fault(faultMade, out.Body)
		if err := c.filtered(&out, &kept, before); err != nil {
			return err
		}
	}
	c.stated = append(c.stated, m.madeStats(p, &out))
	m.levels += live
	m.e.counts.filtered(int64(len(out.Body)), coded)
	m.inserting = true
	err = m.enc.Insert(out, live)
	m.inserting = false
	return err
}

// filtered counts a page that rows were left out of.
func (c *counters) filtered(size int64, coded bool) {
	if coded {
		c.remapped.Add(size)
		return
	}
	c.recompressed.Add(size)
}

// filtered opens a page that was made of what was kept of another, and compares its
// levels with those that were to be, and its values with their sum before, or every
// code with what the mapping makes of the one that was kept.
func (c *copier) filtered(page *encode.Page, kept *encode.Kept, before uint64) error {
	m := c.m
	if m.proof.opener == nil {
		m.proof.opener = m.e.remapper(m.leaf.Node, encode.Options{})
	}
	def, values, err := m.proof.opener.Content(*page, m.e.codec)
	if err != nil {
		return fault.Wrap(fault.Halt, "read a page just written", err)
	}
	after, same := xxh3.Hash(values), true
	if column.Coded(kept.Header.Encoding) {
		c.codes = slices.Grow(c.codes[:0], len(kept.Codes))[:len(kept.Codes)]
		if err := column.AnyCodes(c.codes, values); err != nil {
			return fault.Wrap(fault.Halt, "read a page just written", err)
		}
		before, same = after, mapped(c.codes, kept.Codes, c.p.codes.Codes)
	}
	if !same || after != before || !bytes.Equal(def, kept.Def) || page.Header.Values != kept.Header.Values {
		return fault.New(fault.Halt, fmt.Sprintf("a page without its deleted rows has other values: their sum was %016x and is %016x", before, after))
	}
	m.proof.alike(xxh3.HashSeed(def, after), int64(kept.Header.Values))
	return nil
}

// madeStats is what is known of a page that was made here.
func (m *mover) madeStats(p *part, page *encode.Page) metrics.Stats {
	x := &page.Index
	st := format.Statistics{NullCount: &x.Nulls, NaNCount: &x.NaNs}
	if x.Bounds == encode.BoundsSet {
		st.Min, st.Max, st.MinExact, st.MaxExact = x.Min, x.Max, &x.MinExact, &x.MaxExact
	}
	return m.measure.Parquet(p.from, p.node, metrics.Chunk{
		Values: int64(page.Header.Values), Statistics: &st, Order: format.OrderByType, Trusted: true,
	})
}
