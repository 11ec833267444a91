package metrics

import (
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// Entry is what the manifest entry of a file states of the column, of all its
// rows: bounds decoded by length and promoted (F058), with what cannot be right
// left out. s is what the entry has under the column's id; records are its
// rows. A column the file lacks has its constant.
//
// Bounds of uuid are not taken over: writers have compared them as signed. Of a
// lineage column with nulls, which are completed, nothing is stated.
func (c *Column) Entry(src *resolve.Source, s Stats, records int64) Stats {
	if !c.Reported() {
		return Stats{}
	}
	if src.Synthetic {
		if src.Lineage != resolve.NoLineage {
			return Stats{}
		}
		return c.absent(src, records)
	}
	if !c.leaf.Repeated {
		s.Values = count(records)
	}
	if !within(s.Values, nil) {
		s.Values = nil
	}
	if !within(s.Nulls, s.Values) {
		s.Nulls = nil
	}
	if !within(s.NaNs, s.Values) || !c.floating() {
		s.NaNs = nil
	}
	if s.Nulls == nil && c.leaf.Node.MaxDef == 0 {
		s.Nulls = count(0) // what is null is refused
	}
	if s.Values != nil && s.Nulls != nil && s.NaNs != nil && *s.Nulls > *s.Values-*s.NaNs {
		s.Nulls, s.NaNs = nil, nil
	}
	if src.Lineage != resolve.NoLineage && (s.Nulls == nil || *s.Nulls > 0) {
		return Stats{} // nulls are completed
	}
	if _, ok := c.leaf.Type.(icego.UUIDType); ok {
		s.Lower, s.Upper = nil, nil
	}
	s.Lower, s.Upper = c.usable(s.Lower, s.Upper)
	return c.finish(s)
}

// within reports that a count is stated and possible among others.
func within(n, all *int64) bool {
	return n != nil && *n >= 0 && (all == nil || *n <= *all)
}

// usable decodes a pair of bounds. A pair out of order is no pair.
func (c *Column) usable(lower, upper []byte) (l, u []byte) {
	low, hasLow := decode(c.leaf.Type, lower)
	high, hasHigh := decode(c.leaf.Type, upper)
	if hasLow {
		l = c.widen(nonNil(low.Bytes()), true)
	}
	if hasHigh {
		u = c.widen(nonNil(high.Bytes()), false)
	}
	if hasLow && hasHigh {
		low, _ = decode(c.leaf.Type, l)
		high, _ = decode(c.leaf.Type, u)
		if order, err := low.Compare(high); err != nil || order > 0 {
			return nil, nil
		}
	}
	return l, u
}

// absent is a column the file lacks.
func (c *Column) absent(src *resolve.Source, records int64) Stats {
	s := Stats{}
	if src.Leaf < 0 || !c.leaf.Repeated {
		s.Values = count(records)
	}
	switch {
	case src.Nulls():
		s.Nulls = s.Values
	case src.Leaf < 0 || c.leaf.Node.MaxDef == 0:
		s.Nulls = count(0)
	}
	if c.floating() && s.Nulls != nil {
		s.NaNs = count(0)
	}
	if src.Nulls() {
		return c.finish(s)
	}
	v, ok := c.value(src.Constant)
	if !ok {
		if c.floating() && s.Nulls != nil {
			s.NaNs = count(*s.Values - *s.Nulls) // the constant is NaN
		}
		return c.finish(s)
	}
	if src.Leaf < 0 || c.leaf.Node.MaxDef == 0 {
		// Below a column that may be null there may be no value at all.
		s.Lower, s.Upper = v, v
	}
	return c.finish(s)
}

// value is a value of the target's physical form as a bound, and false for NaN,
// text that is not UTF-8, and types without bounds.
func (c *Column) value(physical []byte) ([]byte, bool) {
	b := physical
	if _, ok := c.leaf.Type.(icego.DecimalType); ok {
		b = bigEndian(c.leaf.Node, physical)
	}
	v, ok := decode(c.leaf.Type, b)
	return nonNil(v.Bytes()), ok
}

func bigEndian(n *format.Node, physical []byte) []byte {
	if n.Type == format.FixedLenByteArray || n.Type == format.ByteArray {
		return physical
	}
	out := make([]byte, 0, len(physical))
	for i := len(physical) - 1; i >= 0; i-- {
		out = append(out, physical[i])
	}
	return out
}

// Some is what remains of the statistics of a file's rows if only some of them,
// rows in number, are taken. Engines answer MIN, MAX and COUNT from entries, so
// nothing is stated that might not be exact: counts only where they are none or
// all, bounds only of text that is cut anyway.
func (c *Column) Some(s Stats, rows int64) Stats {
	out := Stats{}
	if !c.leaf.Repeated {
		out.Values = count(rows)
	}
	out.Nulls = part(s.Nulls, s.Values, out.Values)
	out.NaNs = part(s.NaNs, s.Values, out.Values)
	if c.kind == text && !c.mode.Exact() {
		out.Lower, out.Upper = s.Lower, s.Upper
	}
	return out
}

// part is a count that is none or all of what it counts.
func part(n, all, rows *int64) *int64 {
	switch {
	case n == nil:
		return nil
	case *n == 0:
		return count(0)
	case all != nil && *n == *all:
		return rows
	}
	return nil
}

// Chunk is what Parquet states of a page or a column chunk of a file.
type Chunk struct {
	// Values are its entries, nulls included.
	Values     int64
	Statistics *format.Statistics
	Order      format.Order
	// Trusted is Trust.Statistics of the writer.
	Trusted bool
}

// Parquet reads the statistics of a page or chunk of the file's leaf, converted
// as its values are (F033). Legacy bounds, those without a known order, those of
// INT96 and of decimals as byte arrays, and those of untrusted writers are not
// read; inexact ones only for text and bytes that are cut anyway.
func (c *Column) Parquet(src *resolve.Source, file *format.Node, p Chunk) Stats {
	if !c.Reported() {
		return Stats{}
	}
	s := Stats{Values: count(p.Values)}
	if p.Values < 0 {
		s.Values = nil
	}
	if file.MaxDef == 0 {
		s.Nulls = count(0)
	}
	st := p.Statistics
	if st == nil {
		st = &format.Statistics{}
	}
	if within(st.NullCount, s.Values) {
		s.Nulls = count(*st.NullCount)
	}
	if c.floating() && within(st.NaNCount, s.Values) {
		s.NaNs = count(*st.NaNCount)
	}
	if src.Lineage != resolve.NoLineage && (s.Nulls == nil || *s.Nulls > 0) {
		return Stats{} // nulls are completed
	}
	if src.Synthetic || !p.Trusted || c.kind == unordered || !Ordered(file, p.Order) {
		return c.finish(s)
	}
	s.Lower = c.converted(src, st.Min, st.MinExact)
	s.Upper = c.converted(src, st.Max, st.MaxExact)
	s.Lower, s.Upper = c.usable(s.Lower, s.Upper)
	return c.finish(s)
}

// Ordered reports whether the bounds of a leaf are compared as its values are.
func Ordered(n *format.Node, o format.Order) bool {
	switch n.Type {
	case format.Int96:
		return false
	case format.ByteArray:
		if n.Logical != nil && n.Logical.Kind == format.LogicalDecimal || n.Converted != nil && *n.Converted == 5 {
			return false // compared as unsigned by some (F032)
		}
	case format.Float, format.Double:
		return o == format.OrderByType || o == format.OrderIEEE
	}
	return o == format.OrderByType
}

func (c *Column) converted(src *resolve.Source, b []byte, exact *bool) []byte {
	if b == nil {
		return nil
	}
	inexact := exact != nil && !*exact
	switch c.kind {
	case text:
		// Only Parquet's flag says that a bound of text was not cut.
		inexact = c.mode.Exact() && (exact == nil || inexact)
	case bytewise:
		inexact = exact == nil || inexact
		if c.mode.kind == truncate && len(b) > c.mode.length {
			inexact = false // is cut here as well
		}
	}
	if inexact {
		return nil
	}
	v, err := src.Value(b)
	if err != nil {
		return nil
	}
	out, ok := c.value(v)
	if !ok || c.kind == text && !utf8.Valid(out) {
		return nil
	}
	return out
}
