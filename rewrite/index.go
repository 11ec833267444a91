package rewrite

import (
	"slices"
	"sort"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// index is what is known of a page that is moved.
func (p *part) index(page *column.Page) encode.PageIndex {
	x := encode.UnknownIndex()
	x.Rows = page.Rows
	n := p.passed
	p.passed++
	if p.offsets != nil {
		at := p.offsets.Pages
		n = sort.Search(len(at), func(i int) bool { return at[i].Offset >= page.Offset })
		if n == len(at) || at[n].Offset != page.Offset {
			return x
		}
		if n < len(p.offsets.UnencodedBytes) {
			x.Unencoded = p.offsets.UnencodedBytes[n]
		}
	} else if !p.whole {
		return x
	}
	if p.columns == nil || n >= len(p.columns.NullPages) {
		p.headerIndex(&x, page)
		return x
	}
	c := p.columns
	if n < len(c.NullCounts) {
		x.Nulls = c.NullCounts[n]
	}
	if n < len(c.NaNCounts) {
		x.NaNs = c.NaNCounts[n]
	}
	switch {
	case c.NullPages[n] && len(c.NullCounts) > 0 && x.Nulls != int64(page.Header.Values):
		// parquet-rs takes a page of lists with as many nulls as rows for one of nulls;
		// others do so of pages without any (parquet-java 3457).
		x.Nulls = -1
	case c.NullPages[n]:
		x.Bounds = encode.BoundsNone
		x.Nulls = int64(page.Header.Values)
	case n < len(c.Min) && n < len(c.Max) && p.told(c.Max[n]):
		x.Bounds, x.Min, x.Max = encode.BoundsSet, c.Min[n], c.Max[n]
	}
	x.Rep, x.Def = histogramOf(c.RepHistograms, n, p.node.MaxRep), histogramOf(c.DefHistograms, n, p.node.MaxDef)
	return x
}

// headerIndex takes what the page's header says.
func (p *part) headerIndex(x *encode.PageIndex, page *column.Page) {
	s := page.Header.Statistics
	if s == nil {
		return
	}
	if s.NullCount != nil && p.trusted.Nulls {
		x.Nulls = *s.NullCount
	}
	if s.NaNCount != nil {
		x.NaNs = *s.NaNCount
	}
	if p.bounded() && s.Min != nil && s.Max != nil && p.told(s.Max) {
		x.Bounds, x.Min, x.Max = encode.BoundsSet, slices.Clone(s.Min), slices.Clone(s.Max)
		x.MinExact, x.MaxExact = s.MinExact != nil && *s.MinExact, s.MaxExact != nil && *s.MaxExact
	}
}

// told reports that the greatest value of a page says something: ClickHouse states the
// empty text for one that is long (ClickHouse 103334).
func (p *part) told(greatest []byte) bool {
	return p.node.Type != format.ByteArray || len(greatest) > 0
}

// histogramOf is the part of a page in histograms of all pages.
func histogramOf(all []int64, page, greatest int) []int64 {
	n := greatest + 1
	if len(all) < (page+1)*n {
		return nil
	}
	return all[page*n : (page+1)*n]
}
