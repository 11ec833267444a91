package encode

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/seaice/seaice/rewrite/column"
)

// bounds finds the least and greatest value of a page, as parquet-format wants
// them: NaN is left out, a zero bound of floating point is -0.0 below and +0.0
// above (parquet.thrift, Statistics).
type bounds struct {
	order Ordering
	// any: a value that is not NaN was seen. bad: a value was seen that cannot
	// be compared.
	any, bad bool
	nans     int64
	// Numbers, as order has them; only those of its kind are used.
	minI, maxI int64
	minU, maxU uint64
	minF, maxF float64
	// Byte strings. The buffers are kept from page to page.
	min, max []byte
	// shared is the length of what min and max begin with alike; minP and maxP are
	// the 8 bytes after that, big-endian.
	shared     int
	minP, maxP uint64
}

func (b *bounds) reset() {
	b.any, b.bad, b.nans = false, false, 0
}

// add takes the values [from, to) of v.
func (b *bounds) add(v *column.Values, from, to int) {
	if from == to {
		return
	}
	switch b.order {
	case NoOrder:
		return
	case UnsignedBytes, SignedBytes:
		for i := from; i < to; i++ {
			b.bytes(v.At(i))
		}
		return
	}
	w := b.order.Width()
	data := v.Data[from*w : to*w]
	switch b.order {
	case Booleans:
		if bytes.IndexByte(data, 0) >= 0 {
			b.unsigned(0, 0)
		}
		if bytes.IndexByte(data, 1) >= 0 {
			b.unsigned(1, 1)
		}
	case SignedInt32:
		least, greatest := int32(math.MaxInt32), int32(math.MinInt32)
		for ; len(data) >= 4; data = data[4:] {
			x := int32(binary.LittleEndian.Uint32(data))
			least, greatest = min(least, x), max(greatest, x)
		}
		b.signed(int64(least), int64(greatest))
	case SignedInt64:
		least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
		for ; len(data) >= 8; data = data[8:] {
			x := int64(binary.LittleEndian.Uint64(data))
			least, greatest = min(least, x), max(greatest, x)
		}
		b.signed(least, greatest)
	case UnsignedInt32:
		least, greatest := uint32(math.MaxUint32), uint32(0)
		for ; len(data) >= 4; data = data[4:] {
			x := binary.LittleEndian.Uint32(data)
			least, greatest = min(least, x), max(greatest, x)
		}
		b.unsigned(uint64(least), uint64(greatest))
	case UnsignedInt64:
		least, greatest := uint64(math.MaxUint64), uint64(0)
		for ; len(data) >= 8; data = data[8:] {
			x := binary.LittleEndian.Uint64(data)
			least, greatest = min(least, x), max(greatest, x)
		}
		b.unsigned(least, greatest)
	case Floats:
		for ; len(data) >= 4; data = data[4:] {
			b.float(float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
		}
	case Doubles:
		for ; len(data) >= 8; data = data[8:] {
			b.float(math.Float64frombits(binary.LittleEndian.Uint64(data)))
		}
	}
}

func (b *bounds) signed(least, greatest int64) {
	if !b.any {
		b.any, b.minI, b.maxI = true, least, greatest
		return
	}
	b.minI, b.maxI = min(b.minI, least), max(b.maxI, greatest)
}

func (b *bounds) unsigned(least, greatest uint64) {
	if !b.any {
		b.any, b.minU, b.maxU = true, least, greatest
		return
	}
	b.minU, b.maxU = min(b.minU, least), max(b.maxU, greatest)
}

func (b *bounds) float(x float64) {
	switch {
	case x != x:
		b.nans++
	case !b.any:
		b.any, b.minF, b.maxF = true, x, x
	case x < b.minF:
		b.minF = x
	case x > b.maxF:
		b.maxF = x
	}
}

// bytes takes one byte string. Most values are seen to lie between the bounds by
// the 8 bytes after what all have in common.
func (b *bounds) bytes(v []byte) {
	if b.order == SignedBytes {
		b.number(v)
		return
	}
	if !b.any {
		b.any = true
		b.min, b.max = append(b.min[:0], v...), append(b.max[:0], v...)
		b.share()
		return
	}
	if len(v) >= b.shared+8 && string(v[:b.shared]) == string(b.min[:b.shared]) {
		if p := binary.BigEndian.Uint64(v[b.shared:]); p > b.minP && p < b.maxP {
			return
		}
	}
	switch {
	case bytes.Compare(v, b.min) < 0:
		b.min = append(b.min[:0], v...)
	case bytes.Compare(v, b.max) > 0:
		b.max = append(b.max[:0], v...)
	default:
		return
	}
	b.share()
}

// share finds what min and max begin with alike, and what comes next.
func (b *bounds) share() {
	n := 0
	for n < len(b.min) && n < len(b.max) && b.min[n] == b.max[n] {
		n++
	}
	b.shared, b.minP, b.maxP = n, prefix(b.min[n:]), prefix(b.max[n:])
}

func (b *bounds) number(v []byte) {
	switch {
	case len(v) == 0:
		b.bad = true
	case !b.any:
		b.any = true
		b.min, b.max = append(b.min[:0], v...), append(b.max[:0], v...)
	default:
		if compareSigned(v, b.min) < 0 {
			b.min = append(b.min[:0], v...)
		}
		if compareSigned(v, b.max) > 0 {
			b.max = append(b.max[:0], v...)
		}
	}
}

// prefix is the first 8 bytes of v as a number that compares as they do; shorter
// values are filled up with zeros.
func prefix(v []byte) uint64 {
	if len(v) >= 8 {
		return binary.BigEndian.Uint64(v)
	}
	var p uint64
	for i, c := range v {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}

// result is the state of the bounds and owned copies of them.
func (b *bounds) result() (state Bounds, least, greatest []byte) {
	if b.order == NoOrder || b.bad {
		return BoundsUnknown, nil, nil
	}
	if !b.any {
		return BoundsNone, nil, nil
	}
	switch b.order {
	case Booleans:
		return BoundsSet, []byte{byte(b.minU)}, []byte{byte(b.maxU)}
	case SignedInt32:
		return BoundsSet, four(uint32(b.minI)), four(uint32(b.maxI))
	case UnsignedInt32:
		return BoundsSet, four(uint32(b.minU)), four(uint32(b.maxU))
	case SignedInt64:
		return BoundsSet, eight(uint64(b.minI)), eight(uint64(b.maxI))
	case UnsignedInt64:
		return BoundsSet, eight(b.minU), eight(b.maxU)
	case Floats:
		lo, hi := zeros(b.minF, b.maxF)
		return BoundsSet, four(math.Float32bits(float32(lo))), four(math.Float32bits(float32(hi)))
	case Doubles:
		lo, hi := zeros(b.minF, b.maxF)
		return BoundsSet, eight(math.Float64bits(lo)), eight(math.Float64bits(hi))
	}
	return BoundsSet, own(b.min), own(b.max)
}

// own is a copy of b that is not nil: an empty bound is a bound.
func own(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// zeros gives a zero bound the sign that covers both zeros.
func zeros(lo, hi float64) (float64, float64) {
	if lo == 0 {
		lo = math.Copysign(0, -1)
	}
	if hi == 0 {
		hi = 0
	}
	return lo, hi
}

func four(x uint32) []byte  { return binary.LittleEndian.AppendUint32(make([]byte, 0, 4), x) }
func eight(x uint64) []byte { return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), x) }
