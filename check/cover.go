package check

import (
	"fmt"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// cover is a list's summary of the partitions of a manifest, decoded.
type cover struct {
	list         string
	fields       []manifests.FieldSummary
	lower, upper []iceberg.Value
	has          []bool
	told         bool
}

// summaries decodes what the lists say about the partitions of the manifest.
func (x *entryCheck) summaries() {
	seen := map[uint64]bool{}
	for _, v := range x.m.variants {
		if v.file.Partitions == nil || seen[v.key.summaries] {
			continue
		}
		seen[v.key.summaries] = true
		if len(v.file.Partitions) != len(x.spec.Fields) {
			x.found(ListSummaries, Error, v.list, "manifest %s has summaries of %d partition fields, its spec has %d",
				v.file.Path, len(v.file.Partitions), len(x.spec.Fields))
			continue
		}
		n := len(x.spec.Fields)
		cv := cover{list: v.list, fields: v.file.Partitions, lower: make([]iceberg.Value, n), upper: make([]iceberg.Value, n), has: make([]bool, n)}
		for i, s := range v.file.Partitions {
			t := x.spec.Fields[i].Result
			if t == nil || s.Lower == nil || s.Upper == nil {
				continue
			}
			var err, err2 error
			cv.lower[i], err = iceberg.DecodeBound(t, s.Lower)
			cv.upper[i], err2 = iceberg.DecodeBound(t, s.Upper)
			if err != nil || err2 != nil {
				x.found(ListSummaries, Error, v.list, "the summary of partition field %q of manifest %s cannot be read", x.spec.Fields[i].Name, v.file.Path)
				continue
			}
			cv.has[i] = true
		}
		x.cover = append(x.cover, cv)
	}
}

// covered checks that the summaries hold the tuple of a live entry. What they do
// not hold, readers skip.
func (x *entryCheck) covered(e *manifests.Entry) {
	if len(x.cover) == 0 || !e.Live() || x.looked && e.Partition.Key() == x.last {
		return
	}
	x.last, x.looked = e.Partition.Key(), true
	if e.Partition.Len() != len(x.spec.Fields) {
		return
	}
	for i := range x.cover {
		c := &x.cover[i]
		if c.told {
			continue
		}
		for f := range x.spec.Fields {
			v := e.Partition.At(f)
			if why := c.misses(f, v); why != "" {
				severity := Error
				if !v.IsNull() && len(v.Bytes()) == 0 {
					// iceberg-go writes empty text as a null bound. Some readers skip such a
					// manifest, others do not.
					severity, why = Warning, "empty text, for which the list has null"
				}
				x.found(ListSummaries, severity, c.list, "the summary of partition field %q of manifest %s does not cover %s, which has %s",
					x.spec.Fields[f].Name, x.m.spelling, e.Path, why)
				c.told = true
				break
			}
		}
	}
}

// misses says what of a value of field f the summary leaves out.
func (c *cover) misses(f int, v iceberg.Value) string {
	s := c.fields[f]
	switch {
	case v.IsNull():
		if !s.ContainsNull {
			return "null"
		}
		return ""
	case isNaN(v):
		if s.ContainsNaN.Is(false) {
			return "NaN"
		}
		return ""
	case s.Lower == nil && s.Upper == nil:
		return fmt.Sprintf("%s, where the list knows of no value", v)
	case !c.has[f]:
		return ""
	}
	low, err := c.lower[f].Compare(v)
	high, err2 := c.upper[f].Compare(v)
	if err == nil && low > 0 || err2 == nil && high < 0 {
		return fmt.Sprintf("%s, not between %s and %s", v, c.lower[f], c.upper[f])
	}
	return ""
}
