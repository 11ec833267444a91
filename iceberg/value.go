package iceberg

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
)

// Value is one partition value or column bound in canonical form. Values of one
// type are equal, as the specification says, exactly if they are equal to ==:
// every NaN is one value, -0.0 and +0.0 are two, and null is a value of its own
// (F072).
type Value struct {
	typ   icego.Type
	valid bool
	bits  string
}

// Null is the null of a type.
func Null(typ icego.Type) Value { return Value{typ: typ} }

// Type is the type of the value.
func (v Value) Type() icego.Type { return v.typ }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return !v.valid }

// Bytes is the value in the single-value serialisation of the specification
// (appendix D), or nil for null.
func (v Value) Bytes() []byte {
	if !v.valid {
		return nil
	}
	return []byte(v.bits)
}

const (
	microsPerDay = int64(24 * time.Hour / time.Microsecond)
	nanosPerDay  = int64(24 * time.Hour)
)

// DecodeBound reads a value of a column that has the type typ now from the
// single-value serialisation. Bounds written before the column was promoted are
// shorter and are promoted (F058); fixed values that were cut are filled up with
// zeros. Anything else that does not fit the type is fault.Corrupt; types
// without single-value serialisation are fault.Unsupported.
func DecodeBound(typ icego.Type, b []byte) (Value, error) {
	bits, err := boundBits(typ, b)
	if err != nil {
		return Value{}, fault.In(fmt.Sprintf("decode %d bytes as %s", len(b), typ), err)
	}
	return Value{typ: typ, valid: true, bits: bits}, nil
}

var errLength = fault.New(fault.Corrupt, "length does not fit the type")

func boundBits(typ icego.Type, b []byte) (string, error) {
	switch t := typ.(type) {
	case icego.BooleanType:
		if len(b) != 1 || b[0] > 1 {
			return "", errLength
		}
		return string(b), nil
	case icego.Int32Type, icego.DateType:
		return exactly(b, 4)
	case icego.Int64Type, icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		return wideBits(typ, b)
	case icego.TimeType:
		return exactly(b, 8)
	case icego.Float32Type:
		if len(b) != 4 {
			return "", errLength
		}
		return float32Bits(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	case icego.Float64Type:
		switch len(b) {
		case 4:
			return float64Bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), nil
		case 8:
			return float64Bits(math.Float64frombits(binary.LittleEndian.Uint64(b))), nil
		}
		return "", errLength
	case icego.UUIDType:
		return exactly(b, 16)
	case icego.FixedType:
		if len(b) > t.Len() {
			return "", errLength
		}
		return string(append(bytes.Clone(b), make([]byte, t.Len()-len(b))...)), nil
	case icego.StringType, icego.BinaryType:
		return string(b), nil
	case icego.DecimalType:
		return decimalBits(b)
	case icego.GeometryType, icego.GeographyType:
		switch len(b) {
		case 16, 24, 32:
			return string(b), nil
		}
		return "", errLength
	}
	return "", fault.New(fault.Unsupported, "type has no single-value serialisation")
}

func exactly(b []byte, n int) (string, error) {
	if len(b) != n {
		return "", errLength
	}
	return string(b), nil
}

// wideBits reads the types of 8 bytes that a type of 4 bytes can be promoted
// to: int to long, date to a timestamp without zone.
func wideBits(typ icego.Type, b []byte) (string, error) {
	if len(b) != 4 {
		return exactly(b, 8)
	}
	n := int64(int32(binary.LittleEndian.Uint32(b)))
	switch typ.(type) {
	case icego.Int64Type:
		return int64Bits(n), nil
	case icego.TimestampType:
		return int64Bits(n * microsPerDay), nil // cannot overflow
	case icego.TimestampNsType:
		if n > math.MaxInt64/nanosPerDay || n < math.MinInt64/nanosPerDay {
			return "", fault.New(fault.Corrupt, "date is out of the range of timestamps in nanoseconds")
		}
		return int64Bits(n * nanosPerDay), nil
	}
	return "", errLength
}

func int32Bits(n int32) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
func int64Bits(n int64) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

func float32Bits(f float32) string {
	if f != f {
		f = float32(math.NaN())
	}
	return string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
}

func float64Bits(f float64) string {
	if f != f {
		f = math.NaN()
	}
	return string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
}

// decimalBits is a big-endian two's complement number in its shortest form. The
// scale is the type's; more than 128 bits are no decimal.
func decimalBits(b []byte) (string, error) {
	if len(b) == 0 {
		return "", errLength
	}
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	if len(b) > 16 {
		return "", errLength
	}
	return string(b), nil
}

func (v Value) int() int64 {
	if len(v.bits) == 4 {
		return int64(int32(binary.LittleEndian.Uint32([]byte(v.bits))))
	}
	return int64(binary.LittleEndian.Uint64([]byte(v.bits)))
}

func (v Value) float() float64 {
	if len(v.bits) == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(v.bits))))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(v.bits)))
}

func (v Value) unscaled() decimal128.Num {
	fill := byte(0)
	if v.bits[0] >= 0x80 {
		fill = 0xff
	}
	var b [16]byte
	for i := range b[:16-len(v.bits)] {
		b[i] = fill
	}
	copy(b[16-len(v.bits):], v.bits)
	return decimal128.New(int64(binary.BigEndian.Uint64(b[:8])), binary.BigEndian.Uint64(b[8:]))
}

// Any is the value as iceberg-go has it: bool, int32, int64, float32, float64,
// icego.Date, icego.Time, icego.Timestamp, icego.TimestampNano, string, []byte,
// uuid.UUID, icego.Decimal, or nil for null.
func (v Value) Any() any {
	if !v.valid {
		return nil
	}
	switch t := v.typ.(type) {
	case icego.BooleanType:
		return v.bits[0] != 0
	case icego.Int32Type:
		return int32(v.int())
	case icego.Int64Type:
		return v.int()
	case icego.Float32Type:
		return float32(v.float())
	case icego.Float64Type:
		return v.float()
	case icego.DateType:
		return icego.Date(v.int())
	case icego.TimeType:
		return icego.Time(v.int())
	case icego.TimestampType, icego.TimestampTzType:
		return icego.Timestamp(v.int())
	case icego.TimestampNsType, icego.TimestampTzNsType:
		return icego.TimestampNano(v.int())
	case icego.StringType:
		return v.bits
	case icego.UUIDType:
		return uuid.UUID([]byte(v.bits))
	case icego.DecimalType:
		return icego.Decimal{Val: v.unscaled(), Scale: t.Scale()}
	}
	return []byte(v.bits)
}

// String shows the value to people, as in partition paths but not escaped.
func (v Value) String() string {
	return icego.IdentityTransform{}.ToHumanStrType(v.typ, v.Any())
}

// Compare orders two values of one type as the specification orders bounds:
// numbers by size with -0.0 before +0.0 and NaN last, text and bytes by unsigned
// bytes, null before everything. Values of different types, and of types without
// an order, are fault.Unsupported.
func (v Value) Compare(o Value) (int, error) {
	if v.typ == nil || o.typ == nil || !v.typ.Equals(o.typ) {
		return 0, fault.New(fault.Unsupported, fmt.Sprintf("compare %v with %v", v.typ, o.typ))
	}
	if !v.valid || !o.valid {
		return compareBool(v.valid, o.valid), nil
	}
	switch v.typ.(type) {
	case icego.BooleanType, icego.StringType, icego.BinaryType, icego.FixedType, icego.UUIDType:
		return cmp.Compare(v.bits, o.bits), nil
	case icego.Int32Type, icego.Int64Type, icego.DateType, icego.TimeType, icego.TimestampType, icego.TimestampTzType,
		icego.TimestampNsType, icego.TimestampTzNsType:
		return cmp.Compare(v.int(), o.int()), nil
	case icego.Float32Type, icego.Float64Type:
		return compareFloat(v.float(), o.float()), nil
	case icego.DecimalType:
		return v.unscaled().Cmp(o.unscaled()), nil
	}
	return 0, fault.New(fault.Unsupported, fmt.Sprintf("values of type %s have no order", v.typ))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareFloat(a, b float64) int {
	switch aNaN, bNaN := a != a, b != b; {
	case aNaN || bNaN:
		return compareBool(aNaN, bNaN)
	case a == 0 && b == 0:
		return -compareBool(math.Signbit(a), math.Signbit(b))
	}
	return cmp.Compare(a, b)
}

func bigBits(n *big.Int) (string, error) {
	if n.BitLen() > 127 {
		return "", errLength
	}
	d := decimal128.FromBigInt(n)
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(d.HighBits())), d.LowBits())
	return decimalBits(b)
}
