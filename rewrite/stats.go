package rewrite

import (
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/output"
	"github.com/seaice/seaice/rewrite/resolve"
)

// statement is what is known of a leaf in some rows of a source that went to an
// output.
type statement struct {
	source int
	rows   int64
	// copied reports that not all of their values were decoded.
	copied bool
	stats  metrics.Stats
}

// state notes what is known of the rows of a part that were decoded and of pages
// that were copied.
func (m *mover) state(p *part, decoded *metrics.Collector, copied []metrics.Stats) {
	st := statement{source: p.source, rows: p.live, copied: len(copied) > 0}
	switch {
	case !m.measure.Reported():
		return
	case !st.copied:
		st.stats = decoded.Stats()
	case p.whole:
		st.stats = m.measure.Parquet(p.from, p.node, metrics.Chunk{
			Values: p.chunk.Values, Statistics: p.stated(), Order: p.order(), Trusted: p.trusted.Statistics,
		})
	default:
		st.stats = m.measure.Merge(append(copied, decoded.Stats())...)
	}
	m.stated = append(m.stated, st)
}

// order is that of the bounds of the file's leaf.
func (p *part) order() format.Order {
	if orders := p.src.file.Footer().Orders; p.from.Leaf < len(orders) {
		return orders[p.from.Leaf]
	}
	return format.OrderUnknown
}

// pageStats is what the file's indexes state of a page.
func (m *mover) pageStats(p *part, page *column.Page, x *encode.PageIndex) metrics.Stats {
	st := format.Statistics{}
	if x.Nulls >= 0 {
		st.NullCount = &x.Nulls
	}
	if x.NaNs >= 0 {
		st.NaNCount = &x.NaNs
	}
	if x.Bounds == encode.BoundsSet {
		st.Min, st.Max = x.Min, x.Max
	}
	return m.measure.Parquet(p.from, p.node, metrics.Chunk{
		Values: int64(page.Header.Values), Statistics: &st, Order: p.order(), Trusted: p.trusted.Statistics,
	})
}

// describe sets the metrics of the output's entry.
func (o *outFile) describe(res output.Result) {
	r := &o.result.Metrics
	r.ColumnSizes, r.Values, r.Nulls, r.NaNs = map[iceberg.FieldID]int64{}, map[iceberg.FieldID]int64{}, map[iceberg.FieldID]int64{}, map[iceberg.FieldID]int64{}
	r.Lower, r.Upper = map[iceberg.FieldID][]byte{}, map[iceberg.FieldID][]byte{}
	for i := range o.e.target.Leaves {
		leaf, c := &o.e.target.Leaves[i], o.e.measures[i]
		if !c.Mode().None() {
			r.ColumnSizes[leaf.ID] += res.LeafBytes[i]
		}
		if !c.Reported() {
			continue
		}
		s := o.merged(i, c)
		set(r.Values, leaf.ID, s.Values)
		set(r.Nulls, leaf.ID, s.Nulls)
		set(r.NaNs, leaf.ID, s.NaNs)
		if s.Lower != nil {
			r.Lower[leaf.ID] = s.Lower
		}
		if s.Upper != nil {
			r.Upper[leaf.ID] = s.Upper
		}
	}
}

func set(m map[iceberg.FieldID]int64, id iceberg.FieldID, n *int64) {
	if n != nil {
		m[id] = *n
	}
}

// merged joins what is known of a leaf, source by source. Where pages were copied
// the source's entry says what they do not.
func (o *outFile) merged(leaf int, c *metrics.Column) metrics.Stats {
	var all []metrics.Stats
	for rest := o.stated[leaf]; len(rest) > 0; {
		n, rows, copied := 0, int64(0), false
		var parts []metrics.Stats
		for n < len(rest) && rest[n].source == rest[0].source {
			rows += rest[n].rows
			copied = copied || rest[n].copied
			parts = append(parts, rest[n].stats)
			n++
		}
		s := c.Merge(parts...)
		if copied {
			s = o.entry(leaf, c, rest[0].source, rows, s)
		}
		all = append(all, s)
		rest = rest[n:]
	}
	return c.Merge(all...)
}

// entry completes what pages state of rows of a source.
func (o *outFile) entry(leaf int, c *metrics.Column, source int, rows int64, pages metrics.Stats) metrics.Stats {
	src := o.e.sources[source]
	if src.mapping.Leaves[leaf].Lineage != resolve.NoLineage {
		return pages // some rows may have got what they lacked, of which the entry knows nothing
	}
	id := o.e.target.Leaves[leaf].ID
	m := &src.Metrics
	known := metrics.Stats{Values: find(m.Values, id), Nulls: find(m.Nulls, id), NaNs: find(m.NaNs, id)}
	trust := src.trusted(leaf)
	if trust.Statistics {
		known.Lower, known.Upper = m.Lower[id], m.Upper[id]
	}
	if !trust.Nulls {
		known.Nulls = nil
	}
	entry := c.Entry(&src.mapping.Leaves[leaf], known, src.Records)
	if rows == src.Records {
		return filled(entry, pages)
	}
	return filled(pages, c.Some(entry, rows))
}

// trusted is what may be taken from the source's entry of a leaf of the table: who wrote
// the file most often has it from its statistics.
func (s *source) trusted(leaf int) resolve.Trust {
	f, at := s.file.Footer(), s.mapping.Leaves[leaf].Leaf
	if at < 0 {
		return resolve.Trust{Statistics: true, Nulls: true}
	}
	return resolve.TrustedWriter(f.CreatedBy, f.Schema.Leaves[at])
}

func find(m map[iceberg.FieldID]int64, id iceberg.FieldID) *int64 {
	if n, ok := m[id]; ok {
		return &n
	}
	return nil
}

// filled is a with what it does not state taken from b.
func filled(a, b metrics.Stats) metrics.Stats {
	if a.Values == nil {
		a.Values = b.Values
	}
	if a.Nulls == nil {
		a.Nulls = b.Nulls
	}
	if a.NaNs == nil {
		a.NaNs = b.NaNs
	}
	if a.Lower == nil {
		a.Lower = b.Lower
	}
	if a.Upper == nil {
		a.Upper = b.Upper
	}
	return a
}
