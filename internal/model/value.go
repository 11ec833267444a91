package model

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Value is the value of a field; nil is null. By Iceberg type:
//
//	boolean bool            int int32               long int64
//	float float32           double float64          decimal icego.Decimal
//	date icego.Date         time icego.Time         timestamp(tz) icego.Timestamp
//	timestamp(tz)_ns icego.TimestampNano            string string
//	uuid uuid.UUID          fixed, binary, geometry []byte
//	struct Row              list []Value            map []Pair
//
// A field may hold the value of the type it was written with before a
// promotion.
type Value = any

// Pair is one entry of a map value.
type Pair struct {
	Key   Value
	Value Value
}

// Row holds a row's or a struct's values by field id. A field id that is absent
// was not in the schema the row was written with; a nil value is null.
type Row map[iceberg.FieldID]Value

// Canonical is the value as text, the same for every two values that Iceberg
// calls equal under type t: promoted to t, NaN is one value, -0.0 and 0.0 are
// two.
func Canonical(t icego.Type, v Value) string {
	var b strings.Builder
	canonical(&b, t, v)
	return b.String()
}

func canonical(b *strings.Builder, t icego.Type, v Value) {
	if v == nil {
		b.WriteString("null")
		return
	}
	switch t := t.(type) {
	case *icego.StructType:
		row, _ := v.(Row)
		b.WriteByte('{')
		for i, f := range t.FieldList {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(b, "%d:", f.ID)
			canonical(b, f.Type, resolve(f, row))
		}
		b.WriteByte('}')
	case *icego.ListType:
		list, _ := v.([]Value)
		b.WriteByte('[')
		for i, e := range list {
			if i > 0 {
				b.WriteByte(' ')
			}
			canonical(b, t.Element, e)
		}
		b.WriteByte(']')
	case *icego.MapType:
		pairs, _ := v.([]Pair)
		b.WriteByte('(')
		for i, p := range pairs {
			if i > 0 {
				b.WriteByte(' ')
			}
			canonical(b, t.KeyType, p.Key)
			b.WriteByte('=')
			canonical(b, t.ValueType, p.Value)
		}
		b.WriteByte(')')
	default:
		b.WriteString(canonicalPrimitive(t, promote(t, v)))
	}
}

func canonicalPrimitive(t icego.Type, v Value) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case float32:
		return canonicalFloat(float64(v), 32)
	case float64:
		return canonicalFloat(v, 64)
	case icego.Decimal:
		return v.Val.BigInt().String() + "e-" + strconv.Itoa(v.Scale)
	case icego.Date:
		return "d" + strconv.FormatInt(int64(v), 10)
	case icego.Time:
		return "t" + strconv.FormatInt(int64(v), 10)
	case icego.Timestamp:
		return "us" + strconv.FormatInt(int64(v), 10)
	case icego.TimestampNano:
		return "ns" + strconv.FormatInt(int64(v), 10)
	case string:
		return strconv.Quote(v)
	case uuid.UUID:
		return v.String()
	case []byte:
		return "x" + hex.EncodeToString(v)
	default:
		return fmt.Sprintf("!%T for %s", v, t)
	}
}

func canonicalFloat(v float64, bits int) string {
	if math.IsNaN(v) {
		return "NaN"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

// promote converts a value written with an older type of its field to type t,
// by the lossless promotions of the specification. Other values are returned
// as they are.
func promote(t icego.Type, v Value) Value {
	switch t.(type) {
	case icego.Int64Type:
		if x, ok := v.(int32); ok {
			return int64(x)
		}
	case icego.Float64Type:
		if x, ok := v.(float32); ok {
			return float64(x)
		}
	case icego.TimestampType:
		if x, ok := v.(icego.Date); ok {
			return icego.Timestamp(int64(x) * 86_400_000_000)
		}
	case icego.TimestampNsType:
		if x, ok := v.(icego.Date); ok {
			return icego.TimestampNano(int64(x) * 86_400_000_000_000)
		}
	}
	return v
}

// resolve is the value of field f in row: what was written, else the initial
// default, else null.
func resolve(f icego.NestedField, row Row) Value {
	if v, ok := row[iceberg.FieldID(f.ID)]; ok {
		return v
	}
	if f.InitialDefault == nil {
		return nil
	}
	v, err := valueFromJSON(f.Type, f.InitialDefault)
	if err != nil {
		return fmt.Sprintf("!%v", err)
	}
	return v
}

// CanonicalRow is the row as read under schema s: one text per column in the
// order of the schema.
func CanonicalRow(s *icego.Schema, row Row) string {
	return Canonical(&icego.StructType{FieldList: s.Fields()}, row)
}

// Coerce makes a Value of type t from convenient Go: any integer or float that
// fits, a string for dates ("2024-02-29"), times ("15:04:05.000001"), timestamps
// (RFC 3339 without or with zone), decimals ("12.30") and uuids.
func Coerce(t icego.Type, v any) (Value, error) {
	if v == nil {
		return nil, nil
	}
	var out Value
	switch t := t.(type) {
	case icego.BooleanType:
		out = asType[bool](v)
	case icego.Int32Type:
		if n, ok := asInt(v); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			out = int32(n)
		}
	case icego.Int64Type:
		if n, ok := asInt(v); ok {
			out = n
		}
	case icego.Float32Type:
		if f, ok := asFloat(v); ok {
			out = float32(f)
		}
	case icego.Float64Type:
		if f, ok := asFloat(v); ok {
			out = f
		}
	case icego.DecimalType:
		out = coerceDecimal(t, v)
	case icego.DateType, icego.TimeType, icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		out = coerceTime(t, v)
	case icego.StringType:
		out = asType[string](v)
	case icego.UUIDType:
		if s, ok := v.(string); ok {
			if id, err := uuid.Parse(s); err == nil {
				out = id
			}
		} else {
			out = asType[uuid.UUID](v)
		}
	case icego.FixedType:
		if b, ok := asBytes(v); ok && len(b) == t.Len() {
			out = b
		}
	case icego.BinaryType, icego.GeometryType, icego.GeographyType:
		if b, ok := asBytes(v); ok {
			out = b
		}
	default:
		return coerceNested(t, v)
	}
	if out == nil {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("value %v (%T) is no %s", v, v, t))
	}
	return out, nil
}

func coerceNested(t icego.Type, v any) (Value, error) {
	switch t := t.(type) {
	case *icego.StructType:
		row, ok := v.(Row)
		if !ok {
			break
		}
		out := make(Row, len(row))
		for _, f := range t.FieldList {
			x, err := Coerce(f.Type, row[iceberg.FieldID(f.ID)])
			if err != nil {
				return nil, err
			}
			out[iceberg.FieldID(f.ID)] = x
		}
		return out, nil
	case *icego.ListType:
		list, ok := v.([]Value)
		if !ok {
			break
		}
		out := make([]Value, len(list))
		for i, e := range list {
			x, err := Coerce(t.Element, e)
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return out, nil
	case *icego.MapType:
		pairs, ok := v.([]Pair)
		if !ok {
			break
		}
		out := make([]Pair, len(pairs))
		for i, p := range pairs {
			key, err := Coerce(t.KeyType, p.Key)
			if err != nil {
				return nil, err
			}
			val, err := Coerce(t.ValueType, p.Value)
			if err != nil {
				return nil, err
			}
			out[i] = Pair{key, val}
		}
		return out, nil
	}
	return nil, fault.New(fault.Unsupported, fmt.Sprintf("value %v (%T) is no %s", v, v, t))
}

func asType[T any](v any) Value {
	if x, ok := v.(T); ok {
		return x
	}
	return nil
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	n, ok := asInt(v)
	return float64(n), ok
}

func asBytes(v any) ([]byte, bool) {
	switch v := v.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}

func coerceDecimal(t icego.DecimalType, v any) Value {
	switch v := v.(type) {
	case icego.Decimal:
		if v.Scale == t.Scale() {
			return v
		}
	case string:
		r, ok := new(big.Rat).SetString(v)
		if !ok {
			return nil
		}
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale())), nil)))
		if r.IsInt() {
			return icego.Decimal{Val: decimal128.FromBigInt(r.Num()), Scale: t.Scale()}
		}
	default:
		if n, ok := asInt(v); ok {
			return coerceDecimal(t, strconv.FormatInt(n, 10))
		}
	}
	return nil
}

var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999", "2006-01-02", "15:04:05.999999999",
}

func coerceTime(t icego.Type, v any) Value {
	switch v := v.(type) {
	case icego.Date, icego.Time, icego.Timestamp, icego.TimestampNano:
		return v
	case time.Time:
		return timeValue(t, v.UTC())
	case string:
		for _, layout := range timeLayouts {
			if at, err := time.Parse(layout, v); err == nil {
				return timeValue(t, at.UTC())
			}
		}
	default:
		n, ok := asInt(v)
		if !ok {
			return nil
		}
		switch t.(type) {
		case icego.DateType:
			return icego.Date(n)
		case icego.TimeType:
			return icego.Time(n)
		case icego.TimestampType, icego.TimestampTzType:
			return icego.Timestamp(n)
		default:
			return icego.TimestampNano(n)
		}
	}
	return nil
}

func timeValue(t icego.Type, at time.Time) Value {
	switch t.(type) {
	case icego.DateType:
		return icego.Date(floorDiv(at.Unix(), 86_400))
	case icego.TimeType:
		midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		return icego.Time(at.Sub(midnight).Microseconds())
	case icego.TimestampType, icego.TimestampTzType:
		return icego.Timestamp(at.UnixMicro())
	default:
		return icego.TimestampNano(at.UnixNano())
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
