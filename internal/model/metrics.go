package model

import (
	"bytes"
	"math"
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// boundLength is the length bounds of strings and bytes are cut to.
const boundLength = 16

// literal is v as iceberg-go's literal, nil for null and nested values.
func literal(t icego.Type, v Value) icego.Literal {
	switch v := promote(t, v).(type) {
	case bool:
		return icego.NewLiteral(v)
	case int32:
		return icego.NewLiteral(v)
	case int64:
		return icego.NewLiteral(v)
	case float32:
		return icego.NewLiteral(v)
	case float64:
		return icego.NewLiteral(v)
	case icego.Date:
		return icego.NewLiteral(v)
	case icego.Time:
		return icego.NewLiteral(v)
	case icego.Timestamp:
		return icego.NewLiteral(v)
	case icego.TimestampNano:
		return icego.NewLiteral(v)
	case string:
		return icego.NewLiteral(v)
	case uuid.UUID:
		return icego.NewLiteral(v)
	case icego.Decimal:
		return icego.NewLiteral(v)
	case []byte:
		if _, fixed := t.(icego.FixedType); fixed {
			return icego.FixedLiteral(v)
		}
		return icego.NewLiteral(v)
	}
	return nil
}

// less orders two values of one type as bounds are ordered.
func less(a, b Value) bool {
	switch a := a.(type) {
	case bool:
		return !a && b.(bool)
	case int32:
		return a < b.(int32)
	case int64:
		return a < b.(int64)
	case float32:
		return a < b.(float32) || a == b.(float32) && math.Signbit(float64(a)) && !math.Signbit(float64(b.(float32)))
	case float64:
		return a < b.(float64) || a == b.(float64) && math.Signbit(a) && !math.Signbit(b.(float64))
	case icego.Date:
		return a < b.(icego.Date)
	case icego.Time:
		return a < b.(icego.Time)
	case icego.Timestamp:
		return a < b.(icego.Timestamp)
	case icego.TimestampNano:
		return a < b.(icego.TimestampNano)
	case string:
		return a < b.(string)
	case []byte:
		return bytes.Compare(a, b.([]byte)) < 0
	case uuid.UUID:
		other := b.(uuid.UUID)
		return bytes.Compare(a[:], other[:]) < 0
	case icego.Decimal:
		return a.Val.Less(b.(icego.Decimal).Val)
	}
	return false
}

// column gathers the statistics of one leaf.
type column struct {
	values, nulls, nans int64
	low, high           Value
	bounded             bool
}

func (c *column) see(t icego.Type, v Value) {
	c.values++
	v = promote(t, v)
	if v == nil {
		c.nulls++
		return
	}
	switch f := v.(type) {
	case float32:
		if math.IsNaN(float64(f)) {
			c.nans++
			return
		}
	case float64:
		if math.IsNaN(f) {
			c.nans++
			return
		}
	}
	if c.low == nil || less(v, c.low) {
		c.low = v
	}
	if c.high == nil || less(c.high, v) {
		c.high = v
	}
}

// measure computes the statistics of rows written under schema s.
func measure(s *icego.Schema, rows []Row) Metrics {
	columns := map[int]*column{}
	types := map[int]icego.Type{}
	for _, row := range rows {
		for _, f := range s.Fields() {
			measureValue(columns, types, f.ID, f.Type, resolve(f, row), true)
		}
	}
	m := Metrics{Values: map[int]int64{}, Nulls: map[int]int64{}, NaNs: map[int]int64{}, Lower: map[int][]byte{}, Upper: map[int][]byte{}}
	for id, c := range columns {
		m.Values[id], m.Nulls[id] = c.values, c.nulls
		switch types[id].(type) {
		case icego.Float32Type, icego.Float64Type:
			m.NaNs[id] = c.nans
		}
		if !c.bounded || c.low == nil {
			continue
		}
		if low := bound(types[id], c.low); low != nil {
			m.Lower[id] = truncateBytes(types[id], low)
		}
		if high := upperBound(types[id], c.high); high != nil {
			m.Upper[id] = high
		}
	}
	return m
}

func measureValue(columns map[int]*column, types map[int]icego.Type, id int, t icego.Type, v Value, bounded bool) {
	switch t := t.(type) {
	case *icego.StructType:
		row, _ := v.(Row)
		for _, f := range t.FieldList {
			var x Value
			if row != nil {
				x = resolve(f, row)
			}
			measureValue(columns, types, f.ID, f.Type, x, bounded)
		}
		return
	case *icego.ListType:
		list, _ := v.([]Value)
		for _, e := range list {
			measureValue(columns, types, t.ElementID, t.Element, e, false)
		}
		return
	case *icego.MapType:
		pairs, _ := v.([]Pair)
		for _, p := range pairs {
			measureValue(columns, types, t.KeyID, t.KeyType, p.Key, false)
			measureValue(columns, types, t.ValueID, t.ValueType, p.Value, false)
		}
		return
	}
	c := columns[id]
	if c == nil {
		c = &column{bounded: bounded}
		columns[id], types[id] = c, t
	}
	c.see(t, v)
}

func bound(t icego.Type, v Value) []byte {
	switch t.(type) {
	case icego.GeometryType, icego.GeographyType, icego.UnknownType:
		return nil
	}
	l := literal(t, v)
	if l == nil {
		return nil
	}
	b, err := l.MarshalBinary()
	if err != nil {
		return nil
	}
	return b
}

// truncateBytes cuts a lower bound of a string or of bytes.
func truncateBytes(t icego.Type, b []byte) []byte {
	switch t.(type) {
	case icego.StringType:
		return []byte(cutRunes(string(b)))
	case icego.BinaryType:
		return b[:min(len(b), boundLength)]
	}
	return b
}

func cutRunes(s string) string {
	n := 0
	for i := range s {
		if n == boundLength {
			return s[:i]
		}
		n++
	}
	return s
}

// upperBound is the bound of v, for strings and bytes cut and then raised so
// that it is not below v. It is nil when there is no such value.
func upperBound(t icego.Type, v Value) []byte {
	b := bound(t, v)
	switch t.(type) {
	case icego.StringType:
		cut := cutRunes(string(b))
		if len(cut) == len(b) {
			return b
		}
		runes := []rune(cut)
		for i := len(runes) - 1; i >= 0; i-- {
			if next, ok := nextRune(runes[i]); ok {
				runes[i] = next
				return []byte(string(runes[:i+1]))
			}
		}
		return nil
	case icego.BinaryType:
		if len(b) <= boundLength {
			return b
		}
		up := bytes.Clone(b[:boundLength])
		for i := len(up) - 1; i >= 0; i-- {
			if up[i] < 0xff {
				up[i]++
				return up[:i+1]
			}
		}
		return nil
	}
	return b
}

func nextRune(r rune) (rune, bool) {
	if r == utf8.MaxRune {
		return 0, false
	}
	r++
	if r == 0xD800 {
		r = 0xE000
	}
	return r, true
}
