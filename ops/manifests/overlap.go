package rewritemanifests

import (
	"bytes"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// span is what a manifest's summaries say about its partitions: the bounds of
// each field, nil where null comes in.
type span struct {
	lower, upper []bound
}

// bound is the end of an interval. Null is below every value; a bound that is
// not known is beyond every value on its side.
type bound struct {
	null, open bool
	value      iceberg.Value
}

func compare(a, b bound) int {
	switch {
	case a.null || b.null:
		return boolOrder(b.null, a.null)
	}
	c, err := a.value.Compare(b.value)
	if err != nil {
		c = bytes.Compare(a.value.Bytes(), b.value.Bytes())
	}
	return c
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// spanOf reads a manifest's summaries. A manifest without usable ones has an
// open span in every field, which overlaps everything.
func spanOf(t *iceberg.PartitionType, m *manifests.ManifestFile) span {
	s := span{lower: make([]bound, len(t.Fields)), upper: make([]bound, len(t.Fields))}
	sums := m.Summaries(t)
	for i, f := range t.Fields {
		s.lower[i], s.upper[i] = bound{open: true}, bound{open: true}
		if i >= len(sums) || f.Result == nil {
			continue
		}
		sum := sums[i]
		s.lower[i], s.upper[i] = end(f, sum.Lower), end(f, sum.Upper)
		if sum.ContainsNull {
			s.lower[i] = bound{null: true}
			if sum.Upper == nil {
				s.upper[i] = bound{null: true}
			}
		}
	}
	return s
}

func end(f iceberg.PartitionField, raw []byte) bound {
	if raw == nil {
		return bound{open: true}
	}
	v, err := iceberg.DecodeBound(f.Result, raw)
	if err != nil {
		return bound{open: true}
	}
	return bound{value: v}
}

// overlap reports whether two spans hold partitions that sorting would pull
// apart. Spans in partition order that share their border do not.
func overlap(a, b span) bool {
	for i := range a.lower {
		x := order(a.upper[i], b.lower[i])
		y := order(b.upper[i], a.lower[i])
		if x < 0 || y < 0 {
			return false
		}
		if x == 0 && y == 0 && single(a, i) && single(b, i) {
			continue // one and the same value: the next field decides
		}
		return x > 0 && y > 0
	}
	return false // both hold the same single partition
}

func single(s span, i int) bool {
	return !s.lower[i].open && !s.upper[i].open && compare(s.lower[i], s.upper[i]) == 0
}

// order compares an upper with a lower bound; open ones are beyond.
func order(upper, lower bound) int {
	if upper.open || lower.open {
		return 1
	}
	return compare(upper, lower)
}

// spread marks the manifests that overlap, if after the small ones were merged
// more than maxDepth would cover one of them.
func spread(t *iceberg.PartitionType, ms []*manifests.ManifestFile, why []string) {
	spans := make([]span, len(ms))
	for i, m := range ms {
		spans[i] = spanOf(t, m)
	}
	if deepest(spans, why) <= maxDepth {
		return
	}
	for i := range ms {
		for j := range ms {
			if i != j && why[i] == "" && overlap(spans[i], spans[j]) {
				why[i] = whyOverlaps
			}
		}
	}
}

// deepest is how many manifests cover the partition that most cover. All that
// are rewritten for their size count as one that reaches from the first of them
// to the last, because they become one sorted run. Coverage is greatest where a
// manifest begins, so it is enough to look there.
func deepest(spans []span, why []string) int {
	var run *span
	for i := range spans {
		if why[i] == "" {
			continue
		}
		if run == nil {
			run = &span{lower: spans[i].lower, upper: spans[i].upper}
			continue
		}
		if comparePoints(spans[i].lower, run.lower, true) < 0 {
			run.lower = spans[i].lower
		}
		if comparePoints(spans[i].upper, run.upper, false) > 0 {
			run.upper = spans[i].upper
		}
	}
	at := func(p []bound) int {
		n := 0
		for i := range spans {
			if why[i] == "" && covers(spans[i], p) {
				n++
			}
		}
		return n
	}
	most := 0
	for i := range spans {
		if why[i] != "" {
			continue
		}
		n := at(spans[i].lower)
		if run != nil && covers(*run, spans[i].lower) {
			n++
		}
		most = max(most, n)
	}
	if run != nil {
		most = max(most, at(run.lower)+1)
	}
	return most
}

// covers reports whether a span holds partition p, its own end exclusive, so
// that neighbours in a sorted run never both do.
func covers(s span, p []bound) bool {
	for i := range s.lower {
		if p[i].open {
			return true
		}
		if single(s, i) && compare(s.lower[i], p[i]) == 0 {
			continue
		}
		return (s.lower[i].open || compare(s.lower[i], p[i]) <= 0) && (s.upper[i].open || compare(p[i], s.upper[i]) < 0)
	}
	return true
}

// comparePoints orders two ends field by field; an open one is first of lower
// and last of upper ends.
func comparePoints(a, b []bound, lower bool) int {
	for i := range a {
		if a[i].open || b[i].open {
			if c := boolOrder(a[i].open, b[i].open); c != 0 {
				if lower {
					return -c
				}
				return c
			}
			continue
		}
		if c := compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}
