package inspect

import (
	"encoding/binary"

	icego "github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/seaice/seaice/iceberg"
)

// exactBytes is the length from which text in the statistics of a column may be
// cut.
const exactBytes = 64

// Range is the least and the greatest value of a column over all row groups, as
// the column chunks' statistics say, as values of the Iceberg type t. The other
// answer is false where they do not say, or where the type is stored in a form
// whose statistics are not comparable.
func (f *File) Range(column int, t icego.Type) (low, high iceberg.Value, ok bool) {
	if !comparable(f.Columns[column].element, t) {
		return low, high, false
	}
	for i := range f.meta.RowGroups {
		m := &f.meta.RowGroups[i].Columns[column].MetaData
		s := &m.Statistics
		if m.NumValues == s.NullCount {
			continue // no rows, or all null
		}
		a, ok1 := statistic(m.Type, t, s.MinValue)
		b, ok2 := statistic(m.Type, t, s.MaxValue)
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

// comparable reports whether a Parquet column's statistics are in the unit and
// order of the type.
func comparable(e *format.SchemaElement, t icego.Type) bool {
	if integer, ok := e.LogicalType.Value.(*format.IntType); ok && !integer.IsSigned {
		return false
	}
	unit := func(u format.TimeUnit, micros bool) bool {
		switch u.Value.(type) {
		case *format.MicroSeconds:
			return micros
		case *format.NanoSeconds:
			return !micros
		}
		return false
	}
	switch t := t.(type) {
	case icego.TimeType:
		l, ok := e.LogicalType.Value.(*format.TimeType)
		return ok && unit(l.Unit, true)
	case icego.TimestampType, icego.TimestampTzType:
		l, ok := e.LogicalType.Value.(*format.TimestampType)
		return ok && unit(l.Unit, true)
	case icego.TimestampNsType, icego.TimestampTzNsType:
		l, ok := e.LogicalType.Value.(*format.TimestampType)
		return ok && unit(l.Unit, false)
	case icego.DecimalType:
		l, ok := e.LogicalType.Value.(*format.DecimalType)
		return ok && int(l.Scale) == t.Scale()
	case icego.BooleanType, icego.Int32Type, icego.Int64Type, icego.Float32Type, icego.Float64Type, icego.DateType,
		icego.StringType, icego.UUIDType, icego.FixedType, icego.BinaryType:
		return true
	}
	return false
}

// statistic turns the bytes of a Parquet statistic into a value.
func statistic(physical format.Type, t icego.Type, b []byte) (iceberg.Value, bool) {
	if len(b) == 0 {
		return iceberg.Value{}, false // absent or empty, which cannot be told
	}
	_, decimal := t.(icego.DecimalType)
	switch physical {
	case format.Int32, format.Int64:
		if decimal {
			b = bigEndian(physical, b)
		}
	case format.ByteArray:
		if len(b) >= exactBytes {
			return iceberg.Value{}, false
		}
	case format.Boolean, format.Float, format.Double, format.FixedLenByteArray:
	case format.Int96:
		return iceberg.Value{}, false
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
