package resolve

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Conversion is what is done to the values of a leaf.
type Conversion uint8

// The conversions. None loses anything; a value that does not fit is an error.
const (
	// Keep leaves values as they are.
	Keep Conversion = iota
	// Int32ToInt64 extends the sign.
	Int32ToInt64
	// Uint32ToInt64 does not.
	Uint32ToInt64
	// CheckSign refuses unsigned values that a signed type of the width lacks.
	CheckSign
	FloatToDouble
	// Multiply changes the unit of time, or days to a timestamp.
	Multiply
	// Divide changes the unit of time and refuses a remainder (F038).
	Divide
	// Int96ToTimestamp refuses what the unit or the range lacks (F037).
	Int96ToTimestamp
	// Decimals changes the physical form of decimals of one scale (F032).
	Decimals
	// FixedToBytes gives up the fixed length.
	FixedToBytes
	// NoValues is for columns that are always null.
	NoValues
)

type conversion struct {
	op       Conversion
	from, to shape
	factor   int64
}

// grow makes room for n values of a fixed width and returns where they go.
func grow(v *column.Values, n int) []byte {
	v.Data = slices.Grow(v.Data[:0], n*v.Width)[:n*v.Width]
	return v.Data
}

// apply converts in to out, which has been reset to the type and is empty.
func (c *conversion) apply(in, out *column.Values) error {
	switch c.op {
	case Keep:
		out.Data = append(out.Data[:0], in.Data...)
		if in.Width == 0 {
			out.Offsets = append(out.Offsets[:0], in.Offsets...)
		}
		return nil
	case Int32ToInt64, Uint32ToInt64, FloatToDouble:
		c.widen(in, out)
		return nil
	case CheckSign:
		return c.sign(in, out)
	case Multiply, Divide:
		return c.scaleTime(in, out)
	case Int96ToTimestamp:
		return c.int96(in, out)
	case Decimals:
		return c.decimals(in, out)
	case FixedToBytes:
		for i := range in.Len() {
			out.Append(in.At(i))
		}
		return nil
	case NoValues:
		if in.Len() > 0 {
			return fault.New(fault.Corrupt, "column is annotated as always null and has values")
		}
		return nil
	}
	return fault.New(fault.Halt, fmt.Sprintf("conversion %d is not known", c.op))
}

func (c *conversion) widen(in, out *column.Values) {
	n := in.Len()
	src, dst := in.Data[:4*n], grow(out, n)
	switch c.op {
	case Int32ToInt64:
		for ; len(src) >= 4 && len(dst) >= 8; src, dst = src[4:], dst[8:] {
			binary.LittleEndian.PutUint64(dst, uint64(int64(int32(binary.LittleEndian.Uint32(src)))))
		}
	case Uint32ToInt64:
		for ; len(src) >= 4 && len(dst) >= 8; src, dst = src[4:], dst[8:] {
			binary.LittleEndian.PutUint64(dst, uint64(binary.LittleEndian.Uint32(src)))
		}
	default:
		for ; len(src) >= 4 && len(dst) >= 8; src, dst = src[4:], dst[8:] {
			f := math.Float32frombits(binary.LittleEndian.Uint32(src))
			binary.LittleEndian.PutUint64(dst, math.Float64bits(float64(f)))
		}
	}
}

func (c *conversion) sign(in, out *column.Values) error {
	out.Data = append(out.Data[:0], in.Data...)
	for i := out.Width - 1; i < len(out.Data); i += out.Width {
		if out.Data[i] < 0x80 {
			continue
		}
		v := out.Data[i+1-out.Width : i+1]
		if out.Width == 4 {
			return outOfRange(fmt.Sprint(binary.LittleEndian.Uint32(v)))
		}
		return outOfRange(fmt.Sprint(binary.LittleEndian.Uint64(v)))
	}
	return nil
}

func outOfRange(value string) error {
	return fault.New(fault.Unsupported, "value "+value+" is out of the range of the table's type")
}

func (c *conversion) scaleTime(in, out *column.Values) error {
	n := in.Len()
	dst := grow(out, n)
	for i := range n {
		v, err := c.time(c.signed(in.Data[i*in.Width:]))
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(v))
	}
	return nil
}

// time converts one number of units.
func (c *conversion) time(v int64) (int64, error) {
	if c.op == Divide {
		if v%c.factor != 0 {
			return 0, fault.New(fault.Unsupported, fmt.Sprintf("value %d has parts finer than the table's unit", v))
		}
		return v / c.factor, nil
	}
	w := v * c.factor
	if w/c.factor != v {
		return 0, outOfRange(fmt.Sprint(v))
	}
	return w, nil
}

func (c *conversion) signed(b []byte) int64 {
	if c.from.width == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// unixEpoch is the Julian day of 1970-01-01.
const unixEpoch = 2440588

// int96 is nanoseconds of the day and the Julian day. The nanoseconds may be
// more than a day's or negative, which means what it says.
func (c *conversion) int96(in, out *column.Values) error {
	n := in.Len()
	dst := grow(out, n)
	perDay := nanosPerDay / c.factor
	for i := range n {
		v := in.Data[12*i : 12*i+12]
		nanos := int64(binary.LittleEndian.Uint64(v))
		days := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - unixEpoch
		if nanos%c.factor != 0 {
			return fault.New(fault.Unsupported, fmt.Sprintf("a time of %d ns on day %d has parts finer than the table's unit", nanos, days))
		}
		// Both parts towards one sign, so that only a sum out of range overflows.
		days += nanos / nanosPerDay
		rest := nanos % nanosPerDay / c.factor
		if days < 0 && rest > 0 {
			days, rest = days+1, rest-perDay
		} else if days > 0 && rest < 0 {
			days, rest = days-1, rest+perDay
		}
		whole := days * perDay
		sum := whole + rest
		if whole/perDay != days || (whole >= 0) == (rest >= 0) && (sum >= 0) != (rest >= 0) {
			return outOfRange(fmt.Sprintf("of day %d and %d ns", days, nanos))
		}
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(sum))
	}
	return nil
}

// decimals changes the physical form. The number must fit the precision.
func (c *conversion) decimals(in, out *column.Values) error {
	n := in.Len()
	dst := grow(out, n)
	for i := range n {
		v, ok := c.number(in.At(i))
		if !ok || !v.fits(c.to.precision) {
			return outOfRange(fmt.Sprintf("%#x", in.At(i)))
		}
		v.put(c.to.typ, dst[i*out.Width:(i+1)*out.Width])
	}
	return nil
}

// wide is a number of 128 bits in two's complement.
type wide struct {
	hi int64
	lo uint64
}

// number reads an unscaled decimal, and false if it has more than 128 bits.
func (c *conversion) number(b []byte) (wide, bool) {
	if c.from.typ == format.Int32 || c.from.typ == format.Int64 {
		v := c.signed(b)
		return wide{v >> 63, uint64(v)}, true
	}
	return bigEndian(b)
}

func bigEndian(b []byte) (wide, bool) {
	if len(b) == 0 {
		return wide{}, false
	}
	fill := byte(int8(b[0]) >> 7)
	for len(b) > 16 && b[0] == fill && (b[1]^fill) < 0x80 {
		b = b[1:]
	}
	if len(b) > 16 {
		return wide{}, false
	}
	var all [16]byte
	for i := range all[:16-len(b)] {
		all[i] = fill
	}
	copy(all[16-len(b):], b)
	return wide{int64(binary.BigEndian.Uint64(all[:8])), binary.BigEndian.Uint64(all[8:])}, true
}

// powers are those of ten that decimals need.
var powers = func() (out [39]wide) {
	out[0] = wide{0, 1}
	for i := 1; i < len(out); i++ {
		p := out[i-1]
		for range 9 {
			out[i] = add(out[i], p)
		}
		out[i] = add(out[i], p)
	}
	return out
}()

func add(a, b wide) wide {
	lo := a.lo + b.lo
	hi := a.hi + b.hi
	if lo < a.lo {
		hi++
	}
	return wide{hi, lo}
}

func (w wide) less(o wide) bool { return w.hi < o.hi || w.hi == o.hi && w.lo < o.lo }

// fits reports whether |w| < 10^precision.
func (w wide) fits(precision int32) bool {
	if w.hi < 0 {
		w = add(wide{^w.hi, ^w.lo}, wide{0, 1})
		if w.hi < 0 {
			return false
		}
	}
	return w.less(powers[precision])
}

// put writes the number in a physical form of decimals, which it fits.
func (w wide) put(t format.Type, dst []byte) {
	switch t {
	case format.Int32:
		binary.LittleEndian.PutUint32(dst, uint32(w.lo))
	case format.Int64:
		binary.LittleEndian.PutUint64(dst, w.lo)
	default:
		var all [16]byte
		binary.BigEndian.PutUint64(all[:], uint64(w.hi))
		binary.BigEndian.PutUint64(all[8:], w.lo)
		for len(dst) > 16 { // cannot be for 38 digits
			dst[0] = byte(w.hi >> 63)
			dst = dst[1:]
		}
		copy(dst, all[16-len(dst):])
	}
}
