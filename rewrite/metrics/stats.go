package metrics

import (
	"math"
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// Stats is what is stated of one column in a run of rows. Nil is not stated,
// which is never the same as 0.
type Stats struct {
	// Values counts the entries, nulls and NaNs included; those of a column in
	// lists or maps are the entries of its leaf. Nulls and NaNs are among them.
	Values, Nulls, NaNs *int64
	// Lower and Upper are in the single-value serialisation. All values but
	// nulls and NaNs lie between them.
	Lower, Upper []byte
}

// Column makes the statistics of one leaf of a target.
type Column struct {
	leaf *resolve.Leaf
	mode Mode
	kind kind
}

// kind is how the values of a column are compared.
type kind uint8

const (
	unordered kind = iota // no bounds are kept
	small                 // signed, 4 bytes or less
	large                 // signed, 8 bytes
	float32s
	float64s
	bigDecimal // signed, big endian
	text
	bytewise
	fixed // unsigned bytes that are never cut: fixed and uuid
)

// For makes the Column of a leaf. Bounds are kept neither of columns in lists
// and maps, as Iceberg's writers do, nor of geometry, geography and variant,
// whose bounds are no values of theirs.
func For(leaf *resolve.Leaf, c *Config) *Column {
	out := &Column{leaf: leaf, mode: c.Mode(leaf.ID)}
	if out.mode.Bounds() && !leaf.Repeated && !leaf.Part {
		out.kind = kindOf(leaf)
	}
	return out
}

func kindOf(leaf *resolve.Leaf) kind {
	switch leaf.Type.(type) {
	case icego.BooleanType, icego.Int32Type, icego.DateType:
		return small
	case icego.Int64Type, icego.TimeType, icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		return large
	case icego.Float32Type:
		return float32s
	case icego.Float64Type:
		return float64s
	case icego.DecimalType:
		switch leaf.Node.Type {
		case format.Int32:
			return small
		case format.Int64:
			return large
		}
		return bigDecimal
	case icego.StringType:
		return text
	case icego.BinaryType:
		return bytewise
	case icego.FixedType, icego.UUIDType:
		return fixed
	}
	return unordered
}

// Mode is the column's mode.
func (c *Column) Mode() Mode { return c.mode }

// Reported reports whether the entry of a file states anything of the leaf: not
// under the mode none, and of the parts of a variant only of its metadata, whose
// counts are those of the variant. Column sizes follow it as well.
func (c *Column) Reported() bool {
	return !c.mode.None() && (!c.leaf.Part || c.leaf.Node.Name == "metadata" && c.leaf.Node.Parent.FieldID != nil)
}

func (c *Column) floating() bool {
	switch c.leaf.Type.(type) {
	case icego.Float32Type, icego.Float64Type:
		return true
	}
	return false
}

func count(n int64) *int64 { return &n }

// Merge joins the statistics of runs of rows. A count or bound is stated of the
// whole only if it is of every run; a run known to hold nothing but nulls and
// NaNs needs no bounds. The result is that of the column's mode.
func (c *Column) Merge(parts ...Stats) Stats {
	out := Stats{Values: count(0), Nulls: count(0)}
	if c.floating() {
		out.NaNs = count(0)
	}
	lower, upper := bound{sign: -1}, bound{sign: 1}
	for _, p := range parts {
		bare := p.bare()
		if p.NaNs == nil && bare {
			p.NaNs = count(0)
		}
		out.Values, out.Nulls, out.NaNs = sum(out.Values, p.Values), sum(out.Nulls, p.Nulls), sum(out.NaNs, p.NaNs)
		if !bare {
			lower.add(c.leaf.Type, p.Lower)
			upper.add(c.leaf.Type, p.Upper)
		}
	}
	out.Lower, out.Upper = lower.bytes(), upper.bytes()
	return c.finish(out)
}

// bare reports that a run is known to have no value that is neither null nor
// NaN.
func (s *Stats) bare() bool {
	if s.Values == nil || s.Nulls == nil {
		return false
	}
	empty := *s.Nulls
	if s.NaNs != nil {
		empty += *s.NaNs
	}
	return empty == *s.Values
}

func sum(a, b *int64) *int64 {
	if a == nil || b == nil || *a > math.MaxInt64-*b {
		return nil
	}
	return count(*a + *b)
}

// bound is the least lower or the greatest upper of those added, unless one was
// missing.
type bound struct {
	sign    int
	value   iceberg.Value
	some    bool
	missing bool
}

func (m *bound) add(typ icego.Type, b []byte) {
	if m.missing {
		return
	}
	v, ok := decode(typ, b)
	if !ok {
		m.missing = true
		return
	}
	if m.some {
		order, err := v.Compare(m.value)
		if err != nil {
			m.missing = true
			return
		}
		if order*m.sign <= 0 {
			return
		}
	}
	m.value, m.some = v, true
}

func (m *bound) bytes() []byte {
	if m.missing || !m.some {
		return nil
	}
	return nonNil(m.value.Bytes())
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// decode reads a bound of the column as its type is now, shorter ones of older
// types included, and false for one that cannot be used: NaN, text that is not
// UTF-8 (F045, F058).
func decode(typ icego.Type, b []byte) (iceberg.Value, bool) {
	if b == nil {
		return iceberg.Value{}, false
	}
	v, err := iceberg.DecodeBound(typ, b)
	if err != nil {
		return v, false
	}
	switch x := v.Any().(type) {
	case float32:
		return v, x == x
	case float64:
		return v, x == x
	case string:
		return v, utf8.ValidString(x)
	}
	return v, true
}

// finish keeps what the mode allows: no bounds, or cut ones.
func (c *Column) finish(s Stats) Stats {
	if !c.Reported() {
		return Stats{}
	}
	if c.kind == unordered {
		s.Lower, s.Upper = nil, nil
		return s
	}
	s.Lower, s.Upper = c.lower(s.Lower), c.upper(s.Upper)
	return s
}
