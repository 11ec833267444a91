package inspect

import (
	"encoding/binary"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/resolve"
)

// exactBytes is the length from which text in the statistics of a column may be
// cut.
const exactBytes = 64

// Range is the least and the greatest value of a leaf over all row groups, as the
// statistics of its chunks say, as values of the Iceberg type t. The other answer
// is false where they do not say or might be wrong: their order or their writer is
// not known, or the type is stored in another unit.
func Range(f *format.Footer, leaf int, t icego.Type) (low, high iceberg.Value, ok bool) {
	n := f.Schema.Leaves[leaf]
	if leaf >= len(f.Orders) || !metrics.Ordered(n, f.Orders[leaf]) || !resolve.TrustedWriter(f.CreatedBy, n).Statistics || !comparable(n, t) {
		return low, high, false
	}
	for i := range f.RowGroups {
		c := &f.RowGroups[i].Columns[leaf]
		s := c.Statistics
		if c.Values == 0 || s != nil && s.NullCount != nil && *s.NullCount == c.Values {
			continue // no rows, or all null
		}
		if s == nil {
			return low, high, false
		}
		a, ok1 := statistic(n.Type, t, s.Min, s.MinExact)
		b, ok2 := statistic(n.Type, t, s.Max, s.MaxExact)
		if !ok1 || !ok2 {
			return low, high, false
		}
		if !ok {
			low, high, ok = a, b, true
			continue
		}
		if n, err := a.Compare(low); err != nil {
			return low, high, false
		} else if n < 0 {
			low = a
		}
		if n, err := b.Compare(high); err != nil {
			return low, high, false
		} else if n > 0 {
			high = b
		}
	}
	return low, high, ok
}

// comparable reports whether a leaf's statistics are in the unit and order of the
// type.
func comparable(n *format.Node, t icego.Type) bool {
	l := n.Logical
	if l == nil {
		l = &format.Logical{}
	}
	if l.Kind == format.LogicalInteger && !l.Signed {
		return false
	}
	switch t := t.(type) {
	case icego.TimeType:
		return l.Kind == format.LogicalTime && l.Unit == format.Micros
	case icego.TimestampType, icego.TimestampTzType:
		return l.Kind == format.LogicalTimestamp && l.Unit == format.Micros
	case icego.TimestampNsType, icego.TimestampTzNsType:
		return l.Kind == format.LogicalTimestamp && l.Unit == format.Nanos
	case icego.DecimalType:
		return l.Kind == format.LogicalDecimal && int(l.Scale) == t.Scale()
	case icego.BooleanType, icego.Int32Type, icego.Int64Type, icego.Float32Type, icego.Float64Type, icego.DateType,
		icego.StringType, icego.UUIDType, icego.FixedType, icego.BinaryType:
		return true
	}
	return false
}

// statistic turns the bytes of a Parquet statistic into a value.
func statistic(physical format.Type, t icego.Type, b []byte, exact *bool) (iceberg.Value, bool) {
	if len(b) == 0 || exact != nil && !*exact {
		return iceberg.Value{}, false // absent or empty, which cannot be told, or cut
	}
	if physical == format.ByteArray && len(b) >= exactBytes && exact == nil {
		return iceberg.Value{}, false
	}
	if _, decimal := t.(icego.DecimalType); decimal && (physical == format.Int32 || physical == format.Int64) {
		b = bigEndian(physical, b)
	}
	v, err := iceberg.DecodeBound(t, b)
	if err != nil {
		return iceberg.Value{}, false
	}
	switch f := v.Any().(type) {
	case float32:
		return v, f == f
	case float64:
		return v, f == f
	}
	return v, true
}

// bigEndian is a little-endian integer the other way round, or nil if it has not
// its length.
func bigEndian(physical format.Type, b []byte) []byte {
	switch {
	case physical == format.Int32 && len(b) == 4:
		return binary.BigEndian.AppendUint32(nil, binary.LittleEndian.Uint32(b))
	case physical == format.Int64 && len(b) == 8:
		return binary.BigEndian.AppendUint64(nil, binary.LittleEndian.Uint64(b))
	}
	return nil
}
