package iceberg

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
)

// NewValue makes a Value of type typ from what Avro readers and iceberg-go give:
// any integer kind, floats, bool, string, []byte, byte arrays, time.Time,
// time.Duration, uuid.UUID, *big.Int and []byte (unscaled), *big.Rat and icego's
// own types. Narrower values are promoted; a value that does not fit the type is
// fault.Corrupt. nil, and a nil pointer, is null.
func NewValue(typ icego.Type, v any) (Value, error) {
	v = deref(v)
	if v == nil {
		return Null(typ), nil
	}
	bits, ok, err := valueBits(typ, v)
	if err == nil && !ok {
		err = fault.New(fault.Corrupt, "value does not fit the type")
	}
	if err != nil {
		return Value{}, fault.In(fmt.Sprintf("take a %T as %s", v, typ), err)
	}
	return Value{typ: typ, valid: true, bits: bits}, nil
}

// deref follows pointers, except to the numbers of math/big.
func deref(v any) any {
	switch v.(type) {
	case nil, *big.Int, *big.Rat:
		return v
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return nil
		}
		r = r.Elem()
	}
	return r.Interface()
}

func valueBits(typ icego.Type, v any) (string, bool, error) {
	switch t := typ.(type) {
	case icego.BooleanType:
		b := reflect.ValueOf(v)
		if b.Kind() != reflect.Bool {
			return "", false, nil
		}
		if b.Bool() {
			return "\x01", true, nil
		}
		return "\x00", true, nil
	case icego.Int32Type, icego.DateType:
		if d, ok := v.(time.Time); ok {
			v = floorDiv(d.Unix(), 24*60*60)
		}
		n, ok := integer(v)
		return int32Bits(int32(n)), ok && n == int64(int32(n)), nil
	case icego.Int64Type:
		n, ok := integer(v)
		return int64Bits(n), ok, nil
	case icego.TimeType, icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		n, ok := instant(typ, v)
		return int64Bits(n), ok, nil
	case icego.Float32Type:
		f, ok := float(v)
		return float32Bits(float32(f)), ok && (f != f || float64(float32(f)) == f), nil
	case icego.Float64Type:
		f, ok := float(v)
		return float64Bits(f), ok, nil
	case icego.StringType:
		s, ok := text(v)
		return s, ok, nil
	case icego.BinaryType:
		s, ok := text(v)
		return s, ok, nil
	case icego.FixedType:
		s, ok := text(v)
		return s, ok && len(s) == t.Len(), nil
	case icego.UUIDType:
		return uuidBits(v)
	case icego.DecimalType:
		return decimalValue(t, v)
	}
	return "", false, fault.New(fault.Unsupported, "type is none of partition values")
}

func integer(v any) (int64, bool) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int(), true
	case r.CanUint() && r.Uint() <= math.MaxInt64:
		return int64(r.Uint()), true
	}
	return 0, false
}

func float(v any) (float64, bool) {
	r := reflect.ValueOf(v)
	if !r.CanFloat() {
		return 0, false
	}
	return r.Float(), true
}

// instant is a time of day or a timestamp in the unit of typ. Integers are in
// that unit already, but for icego's types and dates, which know theirs.
func instant(typ icego.Type, v any) (int64, bool) {
	nanos := false
	switch typ.(type) {
	case icego.TimestampNsType, icego.TimestampTzNsType:
		nanos = true
	}
	switch t := v.(type) {
	case time.Duration:
		if _, ok := typ.(icego.TimeType); !ok {
			return 0, false
		}
		return int64(t / time.Microsecond), true
	case time.Time:
		if nanos {
			return t.UnixNano(), t.Year() >= 1678 && t.Year() <= 2261
		}
		if _, ok := typ.(icego.TimeType); ok {
			t = t.UTC()
			return int64(t.Sub(t.Truncate(24*time.Hour)) / time.Microsecond), true
		}
		return t.UnixMicro(), true
	case icego.Date:
		if nanos {
			n := int64(t)
			return n * nanosPerDay, n <= math.MaxInt64/nanosPerDay && n >= math.MinInt64/nanosPerDay
		}
		return int64(t) * microsPerDay, true
	case icego.Timestamp:
		if nanos {
			n := int64(t)
			return n * 1000, n <= math.MaxInt64/1000 && n >= math.MinInt64/1000
		}
		return int64(t), true
	case icego.TimestampNano:
		if !nanos {
			return floorDiv(int64(t), 1000), int64(t)%1000 == 0
		}
		return int64(t), true
	}
	return integer(v)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// text is the content of a string, a byte slice or a byte array.
func text(v any) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case []byte:
		return string(t), true
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.String:
		return r.String(), true
	case r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return string(r.Bytes()), true
	case r.Kind() == reflect.Array && r.Type().Elem().Kind() == reflect.Uint8:
		b := make([]byte, r.Len())
		reflect.Copy(reflect.ValueOf(b), r)
		return string(b), true
	}
	return "", false
}

func uuidBits(v any) (string, bool, error) {
	if s, ok := v.(string); ok && len(s) != 16 {
		id, err := uuid.Parse(s)
		return string(id[:]), err == nil, nil
	}
	s, ok := text(v)
	return s, ok && len(s) == 16, nil
}

func decimalValue(t icego.DecimalType, v any) (string, bool, error) {
	switch d := v.(type) {
	case icego.Decimal:
		return unscaledBits(d.Val, d.Scale == t.Scale())
	case icego.DecimalLiteral:
		return unscaledBits(d.Val, d.Scale == t.Scale())
	case decimal128.Num:
		return unscaledBits(d, true)
	case *big.Int:
		bits, err := bigBits(d)
		return bits, true, err
	case *big.Rat:
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale())), nil)
		n := new(big.Rat).Mul(d, new(big.Rat).SetInt(scale))
		if !n.IsInt() {
			return "", false, nil
		}
		bits, err := bigBits(n.Num())
		return bits, true, err
	}
	s, ok := text(v)
	if !ok {
		return "", false, nil
	}
	bits, err := decimalBits([]byte(s))
	return bits, true, err
}

func unscaledBits(d decimal128.Num, scaled bool) (string, bool, error) {
	bits, err := bigBits(d.BigInt())
	return bits, scaled, err
}

// inferValue makes a Value where the metadata does not tell the type. The type
// is the widest of its kind, so that values from before and after a promotion
// are equal.
func inferValue(v any) (Value, error) {
	v = deref(v)
	if v == nil {
		return Null(icego.UnknownType{}), nil
	}
	var typ icego.Type = icego.BinaryType{}
	switch d := v.(type) {
	case time.Time, icego.Timestamp, icego.TimestampNano:
		typ = icego.TimestampTzNsType{}
	case time.Duration:
		typ = icego.TimeType{}
	case uuid.UUID:
		typ = icego.UUIDType{}
	case icego.Decimal:
		typ = icego.DecimalTypeOf(38, d.Scale)
	case *big.Rat:
		return NewValue(icego.StringType{}, d.RatString())
	case string:
		typ = icego.StringType{}
	default:
		r := reflect.ValueOf(v)
		switch {
		case r.Kind() == reflect.Bool:
			typ = icego.BooleanType{}
		case r.CanInt() || r.CanUint():
			typ = icego.Int64Type{}
		case r.CanFloat():
			typ = icego.Float64Type{}
		}
	}
	return NewValue(typ, v)
}
