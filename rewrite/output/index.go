package output

import (
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// shorten cuts the bounds of a page to what a column index has, so that no more
// is kept of it. Bounds for which there is no shorter upper one stay as they are.
func (l *location) shorten(leaf *format.Node) {
	x := &l.index
	if !encode.Truncatable(leaf) && max(len(x.Min), len(x.Max)) > encode.StatisticsBoundBytes {
		x.Bounds = encode.BoundsUnknown
	}
	if x.Bounds != encode.BoundsSet {
		x.Min, x.Max = nil, nil
		return
	}
	least, greatest := x.Min, x.Max
	if encode.Truncatable(leaf) {
		least, _ = encode.TruncateMin(leaf, least, encode.IndexBoundBytes)
		if short, _, ok := encode.TruncateMax(leaf, greatest, encode.IndexBoundBytes); ok {
			greatest = short
		}
	}
	x.Min, x.Max = own(least), own(greatest)
}

func (c *Chunk) offsetIndex() *format.OffsetIndex {
	x := &format.OffsetIndex{Pages: make([]format.PageLocation, len(c.pages))}
	sized := c.leaf.Type == format.ByteArray
	row := int64(0)
	for i := range c.pages {
		p := &c.pages[i]
		x.Pages[i] = format.PageLocation{Offset: p.offset, Size: p.size, FirstRow: row}
		row += p.index.Rows
		sized = sized && p.index.Unencoded >= 0
	}
	if sized {
		x.UnencodedBytes = make([]int64, len(c.pages))
		for i := range c.pages {
			x.UnencodedBytes[i] = c.pages[i].index.Unencoded
		}
	}
	return x
}

// columnIndex is the column index, or nil: it needs the null count and the bounds
// of every page, and has no way to say that a page holds nothing but NaN and
// nulls.
func (c *Chunk) columnIndex() *format.ColumnIndex {
	n := len(c.pages)
	x := &format.ColumnIndex{
		NullPages: make([]bool, n), Min: make([][]byte, n), Max: make([][]byte, n), NullCounts: make([]int64, n),
	}
	nans, rep, def := encode.OrderingOf(c.leaf) == encode.Floats || encode.OrderingOf(c.leaf) == encode.Doubles, c.leaf.MaxRep > 0, c.leaf.MaxDef > 1
	for i := range c.pages {
		p := &c.pages[i]
		switch {
		case p.index.Nulls < 0 || p.index.Bounds == encode.BoundsUnknown:
			return nil
		case p.index.Nulls == p.values:
			x.NullPages[i], x.Min[i], x.Max[i] = true, []byte{}, []byte{}
		case p.index.Bounds == encode.BoundsNone:
			return nil
		default:
			x.Min[i], x.Max[i] = p.index.Min, p.index.Max
		}
		x.NullCounts[i] = p.index.Nulls
		nans = nans && p.index.NaNs >= 0
		rep = rep && p.index.Rep != nil
		def = def && p.index.Def != nil
	}
	for i := range c.pages {
		p := &c.pages[i].index
		if nans {
			x.NaNCounts = append(x.NaNCounts, p.NaNs)
		}
		if rep {
			x.RepHistograms = append(x.RepHistograms, p.Rep...)
		}
		if def {
			x.DefHistograms = append(x.DefHistograms, p.Def...)
		}
	}
	x.Order = boundaryOrder(encode.OrderingOf(c.leaf), x)
	return x
}

// boundaryOrder is the order of the bounds as written; null pages have none.
func boundaryOrder(o encode.Ordering, x *format.ColumnIndex) format.BoundaryOrder {
	ascending, descending := true, true
	last := -1
	for i, null := range x.NullPages {
		if null {
			continue
		}
		if last >= 0 {
			low, high := o.Compare(x.Min[last], x.Min[i]), o.Compare(x.Max[last], x.Max[i])
			ascending = ascending && low <= 0 && high <= 0
			descending = descending && low >= 0 && high >= 0
		}
		last = i
	}
	switch {
	case ascending:
		return format.Ascending
	case descending:
		return format.Descending
	}
	return format.Unordered
}
