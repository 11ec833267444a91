package output

import (
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// summary is what is known of many values of a leaf. Merging keeps only what both
// sides know.
type summary struct {
	leaf                   *format.Node
	order                  encode.Ordering
	nulls, nans, unencoded int64 // -1 is not known
	bounds                 encode.Bounds
	min, max               []byte
	minExact, maxExact     bool
	rep, def               []int64 // nil is not known
}

// newSummary is the summary of no values.
func newSummary(leaf *format.Node) summary {
	return summary{
		leaf: leaf, order: encode.OrderingOf(leaf), bounds: encode.BoundsNone, minExact: true, maxExact: true,
		rep: make([]int64, leaf.MaxRep+1), def: make([]int64, leaf.MaxDef+1),
	}
}

// addPage merges the index of a page.
func (s *summary) addPage(l *location) {
	x := &l.index
	s.merge(&summary{
		nulls: x.Nulls, nans: x.NaNs, unencoded: x.Unencoded, bounds: x.Bounds,
		min: x.Min, max: x.Max, minExact: x.MinExact, maxExact: x.MaxExact, rep: x.Rep, def: x.Def,
	})
}

func (s *summary) merge(o *summary) {
	s.nulls, s.nans, s.unencoded = both(s.nulls, o.nulls), both(s.nans, o.nans), both(s.unencoded, o.unencoded)
	s.rep, s.def = sum(s.rep, o.rep), sum(s.def, o.def)
	switch {
	case s.bounds == encode.BoundsUnknown || o.bounds == encode.BoundsNone:
	case o.bounds == encode.BoundsUnknown:
		s.bounds, s.min, s.max = encode.BoundsUnknown, nil, nil
	case s.bounds == encode.BoundsNone:
		s.bounds, s.min, s.max = encode.BoundsSet, own(o.min), own(o.max)
		s.minExact, s.maxExact = o.minExact, o.maxExact
	default:
		if c := s.order.Compare(o.min, s.min); c < 0 {
			s.min, s.minExact = own(o.min), o.minExact
		} else if c == 0 {
			s.minExact = s.minExact || o.minExact
		}
		if c := s.order.Compare(o.max, s.max); c > 0 {
			s.max, s.maxExact = own(o.max), o.maxExact
		} else if c == 0 {
			s.maxExact = s.maxExact || o.maxExact
		}
	}
}

// own is a copy of a bound, which is not nil: an empty bound is a bound.
func own(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

func both(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

func sum(a, b []int64) []int64 {
	if a == nil || len(a) != len(b) {
		return nil
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// stated is what the footer of another file says of a whole chunk.
func stated(leaf *format.Node, st *format.Statistics, z *format.SizeStatistics) summary {
	s := summary{leaf: leaf, order: encode.OrderingOf(leaf), nulls: -1, nans: -1, unencoded: -1}
	if st != nil {
		if st.NullCount != nil && *st.NullCount >= 0 {
			s.nulls = *st.NullCount
		}
		if st.NaNCount != nil && *st.NaNCount >= 0 {
			s.nans = *st.NaNCount
		}
		if st.Min != nil && st.Max != nil && encode.IsBound(leaf, st.Min) && encode.IsBound(leaf, st.Max) && s.order.Compare(st.Min, st.Max) <= 0 {
			least, greatest := s.order.CoverZeros(st.Min, st.Max)
			s.bounds, s.min, s.max = encode.BoundsSet, own(least), own(greatest)
			s.minExact = st.MinExact != nil && *st.MinExact
			s.maxExact = st.MaxExact != nil && *st.MaxExact
		}
	}
	if z != nil {
		if z.UnencodedBytes != nil && *z.UnencodedBytes >= 0 {
			s.unencoded = *z.UnencodedBytes
		}
		if len(z.RepHistogram) == leaf.MaxRep+1 {
			s.rep = z.RepHistogram
		}
		if len(z.DefHistogram) == leaf.MaxDef+1 {
			s.def = z.DefHistogram
		}
	}
	return s
}

// complete fills in from the pages what the footer did not say.
func (s *summary) complete(pages *summary) {
	fill := func(v *int64, other int64) {
		if *v < 0 {
			*v = other
		}
	}
	fill(&s.nulls, pages.nulls)
	fill(&s.nans, pages.nans)
	fill(&s.unencoded, pages.unencoded)
	if s.bounds == encode.BoundsUnknown {
		s.bounds, s.min, s.max, s.minExact, s.maxExact = pages.bounds, pages.min, pages.max, pages.minExact, pages.maxExact
	}
	if s.rep == nil {
		s.rep = pages.rep
	}
	if s.def == nil {
		s.def = pages.def
	}
}

// statistics are those of the chunk: what is known of all its values.
func (s *summary) statistics() *format.Statistics {
	st := new(format.Statistics)
	if s.nulls >= 0 {
		st.NullCount = &s.nulls
	}
	if (s.order == encode.Floats || s.order == encode.Doubles) && s.nans >= 0 {
		st.NaNCount = &s.nans
	}
	if s.bounds == encode.BoundsSet {
		s.state(st)
	}
	if st.NullCount == nil && st.NaNCount == nil && st.Min == nil {
		return nil
	}
	return st
}

// state puts the bounds, shortened if they are long, into st.
func (s *summary) state(st *format.Statistics) {
	least, greatest, minExact, maxExact := s.min, s.max, s.minExact, s.maxExact
	if len(least) > encode.StatisticsBoundBytes || len(greatest) > encode.StatisticsBoundBytes {
		if !encode.Truncatable(s.leaf) {
			return
		}
		short, exact, ok := encode.TruncateMax(s.leaf, greatest, encode.IndexBoundBytes)
		if !ok {
			return
		}
		greatest, maxExact = short, maxExact && exact
		least, exact = encode.TruncateMin(s.leaf, least, encode.IndexBoundBytes)
		minExact = minExact && exact
	}
	st.Min, st.Max, st.MinExact, st.MaxExact = least, greatest, &minExact, &maxExact
}

// sizes are the size statistics of the chunk, nil when nothing is known. What
// follows from the null count (greatest levels up to 1) is left out.
func (s *summary) sizes() *format.SizeStatistics {
	z := new(format.SizeStatistics)
	if s.leaf.Type == format.ByteArray && s.unencoded >= 0 {
		z.UnencodedBytes = &s.unencoded
	}
	if s.leaf.MaxRep > 0 {
		z.RepHistogram = s.rep
	}
	if s.leaf.MaxDef > 1 {
		z.DefHistogram = s.def
	}
	if z.UnencodedBytes == nil && z.RepHistogram == nil && z.DefHistogram == nil {
		return nil
	}
	return z
}
