package resolve

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	icego "github.com/apache/iceberg-go"
	guid "github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
)

// physical is a value as the leaf of a target stores it, or nil for null. A
// value of an older type of the column is promoted.
func physical(f *field, v iceberg.Value) ([]byte, error) {
	if v.IsNull() {
		return nil, nil
	}
	if !v.Type().Equals(f.typ) {
		var err error
		if v, err = iceberg.DecodeBound(f.typ, v.Bytes()); err != nil {
			return nil, fault.In("read the constant of column "+f.name, err)
		}
	}
	b := v.Bytes()
	t, ok := f.typ.(icego.DecimalType)
	if !ok {
		if b == nil {
			b = []byte{}
		}
		return b, nil
	}
	w, ok := bigEndian(b)
	if !ok || !w.fits(int32(t.Precision())) {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the constant of column %s does not fit %s", f.name, t))
	}
	out := make([]byte, f.node.Width())
	w.put(f.node.Type, out)
	return out, nil
}

// Expected is a leaf whose values the partition's tuple tells.
type Expected struct {
	// Leaf is the leaf of the target.
	Leaf int
	// Constant is as in Source.
	Constant []byte

	name string
	typ  icego.Type
}

// Holds reports whether one value, in the target's physical form, is the
// expected one. Floats are compared by bits with every NaN alike, as partition
// values are.
func (e *Expected) Holds(value []byte) bool {
	if e.Constant == nil {
		return false
	}
	return bytes.Equal(value, e.Constant) || e.nan(value) && e.nan(e.Constant)
}

func (e *Expected) nan(b []byte) bool {
	v, err := iceberg.DecodeBound(e.typ, b)
	if err != nil {
		return false
	}
	switch f := v.Any().(type) {
	case float32:
		return f != f
	case float64:
		return f != f
	}
	return false
}

// Check returns fault.Unsupported if a batch, as Source.Apply gave it, holds
// anything but the expected value.
func (e *Expected) Check(b *column.Batch) error {
	n := b.Values.Len()
	if e.Constant == nil && n > 0 || e.Constant != nil && n != b.Levels {
		return e.Refused()
	}
	for i := range n {
		if !e.Holds(b.Values.At(i)) {
			return e.Refused()
		}
	}
	return nil
}

// Refused is the error of a file whose values differ from its partition.
func (e *Expected) Refused() error {
	return fault.New(fault.Unsupported, fmt.Sprintf("column %s holds values that differ from the partition the file is in", e.name))
}

// defaultValue reads a default as metadata has it: the JSON form of single
// values (Iceberg specification, appendix D), or a value of Go.
func defaultValue(typ icego.Type, v any) (iceberg.Value, error) {
	if l, ok := v.(icego.Literal); ok {
		v = l.Any()
	}
	bad := fault.New(fault.Unsupported, fmt.Sprintf("default %v does not fit %s", v, typ))
	switch x := v.(type) {
	case json.Number:
		if n, ok := new(big.Int).SetString(x.String(), 10); ok && n.IsInt64() {
			return number(typ, n.Int64(), 0, bad)
		}
		f, err := x.Float64()
		if err != nil {
			return iceberg.Value{}, bad
		}
		return number(typ, 0, f, bad)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 && !(x == 0 && math.Signbit(x)) {
			return number(typ, int64(x), 0, bad)
		}
		return number(typ, 0, x, bad)
	case string:
		return defaultText(typ, x, bad)
	}
	out, err := iceberg.NewValue(typ, v)
	return out, fault.Wrap(fault.Unsupported, fmt.Sprintf("default does not fit %s", typ), err)
}

// number makes a number of a whole one, or else of a fraction. A whole number
// that JSON readers may have rounded is none.
func number(typ icego.Type, whole int64, fraction float64, bad error) (iceberg.Value, error) {
	var v any = whole
	switch typ.(type) {
	case icego.Float32Type, icego.Float64Type:
		if fraction == 0 && !math.Signbit(fraction) {
			fraction = float64(whole)
		}
		v = fraction
		if _, ok := typ.(icego.Float32Type); ok {
			v = float32(fraction)
		}
	case icego.Int32Type, icego.Int64Type:
		if fraction != 0 || math.Signbit(fraction) {
			return iceberg.Value{}, bad
		}
		if _, ok := typ.(icego.Int32Type); ok && whole != int64(int32(whole)) {
			return iceberg.Value{}, bad
		}
	default:
		return iceberg.Value{}, bad
	}
	out, err := iceberg.NewValue(typ, v)
	if err != nil {
		return out, bad
	}
	return out, nil
}

func defaultText(typ icego.Type, text string, bad error) (iceberg.Value, error) {
	var v any = text
	var err error
	switch t := typ.(type) {
	case icego.StringType:
	case icego.UUIDType:
		v, err = guid.Parse(text)
	case icego.FixedType:
		var b []byte
		if b, err = hex.DecodeString(text); err == nil && len(b) != t.Len() {
			err = bad
		}
		v = b
	case icego.BinaryType:
		v, err = hex.DecodeString(text)
	case icego.DecimalType:
		v, err = unscaled(t, text, bad)
	case icego.DateType:
		var at time.Time
		at, err = time.Parse("2006-01-02", text)
		v = icego.Date(at.Unix() / 86400)
		if at.Unix()%86400 != 0 {
			err = bad
		}
	case icego.TimeType:
		var at time.Time
		at, err = time.Parse("15:04:05.999999999", text)
		nanos := int64(at.Nanosecond())
		if nanos%1000 != 0 {
			err = bad
		}
		v = icego.Time(int64(at.Hour()*3600+at.Minute()*60+at.Second())*1_000_000 + nanos/1000)
	case icego.TimestampType, icego.TimestampNsType:
		v, err = moment(typ, "2006-01-02T15:04:05.999999999", text, bad)
	case icego.TimestampTzType, icego.TimestampTzNsType:
		v, err = moment(typ, "2006-01-02T15:04:05.999999999Z07:00", text, bad)
	default:
		err = bad
	}
	if err != nil {
		return iceberg.Value{}, bad
	}
	out, err := iceberg.NewValue(typ, v)
	if err != nil {
		return iceberg.Value{}, bad
	}
	return out, nil
}

func moment(typ icego.Type, layout, text string, bad error) (any, error) {
	at, err := time.Parse(layout, text)
	if err != nil {
		return nil, err
	}
	nanos := int64(at.Nanosecond())
	switch typ.(type) {
	case icego.TimestampNsType, icego.TimestampTzNsType:
		n := at.UnixNano()
		if !time.Unix(0, n).Equal(at) {
			return nil, bad
		}
		return icego.TimestampNano(n), nil
	}
	if nanos%1000 != 0 {
		return nil, bad
	}
	return icego.Timestamp(at.Unix()*1_000_000 + nanos/1000), nil
}

// unscaled reads a decimal whose digits behind the point are those of the scale.
func unscaled(t icego.DecimalType, text string, bad error) (*big.Int, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > t.Scale() || len(text) > 64 {
		return nil, bad
	}
	n, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", t.Scale()-len(fraction)), 10)
	if !ok || n.CmpAbs(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision())), nil)) >= 0 {
		return nil, bad
	}
	return n, nil
}
