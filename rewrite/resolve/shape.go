package resolve

import (
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/rewrite/format"
)

// meaning is what the values of a leaf are, whichever annotation says so.
type meaning uint8

const (
	plain meaning = iota // the physical type alone
	integer
	decimal
	date
	timeOfDay
	timestamp
	text
	enumeration
	jsonText
	bson
	uuid
	geometry
	geography
	nothing // always null
	foreign // not known, or without an Iceberg type
)

// shape is the type of a leaf without its repetition.
type shape struct {
	typ              format.Type
	width            int
	meaning          meaning
	unit             format.TimeUnit
	precision, scale int32
	bits             int8
	unsigned         bool
	crs              string
	algorithm        int32
}

// shapeOf reads the logical type, or where there is none the converted type.
// Whether timestamps are adjusted to UTC is left to the table's type, because
// converted types, INT96 and many writers cannot say it.
func shapeOf(n *format.Node) shape {
	s := shape{typ: n.Type, width: n.Width()}
	switch {
	case n.Logical != nil:
		s.logical(n.Logical)
	case n.Converted != nil:
		s.converted(n, *n.Converted)
	case n.Type == format.Int32:
		s.meaning, s.bits = integer, 32
	case n.Type == format.Int64:
		s.meaning, s.bits = integer, 64
	}
	if !s.valid() {
		s.meaning = foreign
	}
	return s
}

func (s *shape) logical(l *format.Logical) {
	switch l.Kind {
	case format.LogicalString:
		s.meaning = text
	case format.LogicalEnum:
		s.meaning = enumeration
	case format.LogicalJSON:
		s.meaning = jsonText
	case format.LogicalBSON:
		s.meaning = bson
	case format.LogicalUUID:
		s.meaning = uuid
	case format.LogicalDecimal:
		s.meaning, s.precision, s.scale = decimal, l.Precision, l.Scale
	case format.LogicalDate:
		s.meaning = date
	case format.LogicalTime:
		s.meaning, s.unit = timeOfDay, l.Unit
	case format.LogicalTimestamp:
		s.meaning, s.unit = timestamp, l.Unit
	case format.LogicalInteger:
		s.meaning, s.bits, s.unsigned = integer, l.BitWidth, !l.Signed
	case format.LogicalUnknown:
		s.meaning = nothing
	case format.LogicalGeometry:
		s.meaning, s.crs = geometry, storedCRS(l.CRS)
	case format.LogicalGeography:
		s.meaning, s.crs = geography, storedCRS(l.CRS)
		if l.Algorithm != nil {
			s.algorithm = *l.Algorithm
		}
	default:
		s.meaning = foreign
	}
}

func (s *shape) converted(n *format.Node, c int32) {
	switch {
	case c == convertedUTF8:
		s.meaning = text
	case c == convertedEnum:
		s.meaning = enumeration
	case c == convertedJSON:
		s.meaning = jsonText
	case c == convertedBSON:
		s.meaning = bson
	case c == convertedDecimal:
		s.meaning = decimal
		if n.Precision != nil {
			s.precision = *n.Precision
		}
		if n.Scale != nil {
			s.scale = *n.Scale
		}
	case c == convertedDate:
		s.meaning = date
	case c == convertedTimeMillis, c == convertedTimeMicros:
		s.meaning, s.unit = timeOfDay, format.Millis+format.TimeUnit(c-convertedTimeMillis)
	case c == convertedTimestampMillis, c == convertedTimestampMicros:
		s.meaning, s.unit = timestamp, format.Millis+format.TimeUnit(c-convertedTimestampMillis)
	case c >= convertedUint8 && c <= convertedInt64:
		s.meaning, s.bits, s.unsigned = integer, 8<<((c-convertedUint8)%4), c-convertedUint8 < 4
	default:
		s.meaning = foreign
	}
}

// valid reports whether parquet-format allows the meaning for the physical type.
func (s *shape) valid() bool {
	switch s.meaning {
	case integer:
		return s.typ == format.Int32 && (s.bits == 8 || s.bits == 16 || s.bits == 32) || s.typ == format.Int64 && s.bits == 64
	case decimal:
		switch s.typ {
		case format.Int32, format.Int64, format.FixedLenByteArray, format.ByteArray:
			return s.precision > 0 && s.scale >= 0 && s.scale <= s.precision
		}
		return false
	case date:
		return s.typ == format.Int32
	case timeOfDay:
		return s.typ == format.Int32 && s.unit == format.Millis || s.typ == format.Int64 && (s.unit == format.Micros || s.unit == format.Nanos)
	case timestamp:
		return s.typ == format.Int64 && s.unit >= format.Millis && s.unit <= format.Nanos
	case text, enumeration, jsonText, bson, geometry, geography:
		return s.typ == format.ByteArray
	case uuid:
		return s.typ == format.FixedLenByteArray && s.width == 16
	}
	return s.typ != format.FixedLenByteArray || s.width > 0
}

// sameMeaning reports whether bytes of one shape are the same values, in the
// same order, of the other. Text, enumerations and bytes without annotation
// are: all are compared as unsigned bytes.
func sameMeaning(a, b shape) bool {
	if a.meaning == foreign || b.meaning == foreign || a.meaning == nothing || b.meaning == nothing {
		return false
	}
	if a.textual() && b.textual() {
		return true
	}
	if a.typ == format.Int32 && b.typ == format.Int32 && a.meaning == integer && b.meaning == integer {
		return a.unsigned == b.unsigned // INT_8 and INT_16 are values of INT_32
	}
	return a == b
}

func (s shape) textual() bool {
	switch s.meaning {
	case text, enumeration, jsonText, bson:
		return true
	}
	return s.meaning == plain && s.typ == format.ByteArray
}

var typeNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// describe names the type of a node for people.
func describe(n *format.Node) string {
	if n.Group {
		switch {
		case n.Logical != nil:
			return fmt.Sprintf("a group (logical type %d)", n.Logical.Kind)
		case n.Converted != nil:
			return fmt.Sprintf("a group (converted type %d)", *n.Converted)
		}
		return "a group"
	}
	s := shapeOf(n)
	out := fmt.Sprintf("type %d", n.Type)
	if n.Type >= 0 && int(n.Type) < len(typeNames) {
		out = typeNames[n.Type]
	}
	if n.Type == format.FixedLenByteArray {
		out += fmt.Sprintf("(%d)", n.TypeLength)
	}
	switch {
	case s.meaning == decimal:
		return fmt.Sprintf("%s decimal(%d, %d)", out, s.precision, s.scale)
	case s.meaning == integer && s.unsigned:
		return fmt.Sprintf("%s uint%d", out, s.bits)
	case n.Logical != nil:
		return fmt.Sprintf("%s (logical type %d)", out, n.Logical.Kind)
	case n.Converted != nil:
		return fmt.Sprintf("%s (converted type %d)", out, *n.Converted)
	}
	return out
}

// convertible finds how values of one shape become those of an Iceberg type, and
// false if they cannot without loss.
func convertible(from, to shape, typ icego.Type, formatVersion int) (conversion, bool) {
	c := conversion{from: from, to: to}
	if from.meaning == foreign {
		return c, false
	}
	if from.meaning == nothing {
		c.op = NoValues
		return c, true
	}
	ok := false
	switch typ.(type) {
	case icego.BooleanType, icego.Float32Type:
		ok = from.typ == to.typ && from.meaning == plain
	case icego.Int32Type, icego.Int64Type:
		c.op, ok = integers(from, to)
	case icego.Float64Type:
		ok = from.meaning == plain && (from.typ == format.Double || from.typ == format.Float)
		if from.typ == format.Float {
			c.op = FloatToDouble
		}
	case icego.DateType:
		ok = from.meaning == date
	case icego.TimeType:
		ok = from.meaning == timeOfDay
		c.unit(from, to)
	case icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		ok = c.timestamp(typ, formatVersion)
	case icego.StringType:
		ok = from.textual() && from.meaning != bson
	case icego.BinaryType:
		ok = from.textual() || from.typ == format.FixedLenByteArray && from.meaning == plain
		if ok && from.typ == format.FixedLenByteArray {
			c.op = FixedToBytes
		}
	case icego.FixedType, icego.UUIDType:
		ok = from.typ == format.FixedLenByteArray && from.width == to.width && (from.meaning == plain || from.meaning == uuid)
	case icego.DecimalType:
		ok = from.meaning == decimal && from.scale == to.scale && from.precision <= to.precision
		if from.typ != to.typ || from.width != to.width {
			c.op = Decimals
		}
	case icego.GeometryType, icego.GeographyType:
		ok = from == to
	}
	return c, ok
}

func integers(from, to shape) (Conversion, bool) {
	if from.meaning != integer {
		return Keep, false
	}
	small := from.bits < 32
	switch {
	case from.typ == format.Int32 && to.typ == format.Int64 && from.unsigned && !small:
		return Uint32ToInt64, true
	case from.typ == format.Int32 && to.typ == format.Int64:
		return Int32ToInt64, true
	case from.typ == to.typ && from.unsigned && !small:
		return CheckSign, true
	}
	return Keep, from.typ == to.typ
}

const (
	nanosPerDay  = int64(86_400_000_000_000)
	microsPerDay = nanosPerDay / 1000
)

var perSecond = map[format.TimeUnit]int64{format.Millis: 1000, format.Micros: 1_000_000, format.Nanos: 1_000_000_000}

// unit scales between units of time.
func (c *conversion) unit(from, to shape) {
	f, t := perSecond[from.unit], perSecond[to.unit]
	switch {
	case f == 0 || t == 0 || f == t:
	case f < t:
		c.op, c.factor = Multiply, t/f
	default:
		c.op, c.factor = Divide, f/t
	}
}

func (c *conversion) timestamp(typ icego.Type, formatVersion int) bool {
	switch {
	case c.from.meaning == timestamp:
		c.unit(c.from, c.to)
		return true
	case c.from.typ == format.Int96 && c.from.meaning == plain:
		c.op, c.factor = Int96ToTimestamp, 1000
		if c.to.unit == format.Nanos {
			c.factor = 1
		}
		return true
	case c.from.meaning == date && formatVersion >= 3:
		c.op, c.factor = Multiply, microsPerDay
		if c.to.unit == format.Nanos {
			c.factor = nanosPerDay
		}
		switch typ.(type) {
		case icego.TimestampType, icego.TimestampNsType:
			return true
		}
	}
	return false
}
