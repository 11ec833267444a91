package encode

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// Ordering is how the values of a leaf compare under TypeDefinedOrder
// (parquet.thrift, ColumnOrder).
type Ordering uint8

// The orderings. Bounds of a column without one are neither made nor merged.
const (
	// NoOrder: INT96, intervals, geometry, variant, float16, and annotations that
	// are not known.
	NoOrder Ordering = iota
	Booleans
	SignedInt32
	SignedInt64
	UnsignedInt32
	UnsignedInt64
	Floats
	Doubles
	// UnsignedBytes compares lexicographically byte by byte.
	UnsignedBytes
	// SignedBytes compares big-endian two's complement numbers, of any lengths.
	SignedBytes
)

// The numbers of ConvertedType that change how values compare.
const (
	convertedUTF8     = 0
	convertedEnum     = 4
	convertedDecimal  = 5
	convertedUint8    = 11
	convertedUint64   = 14
	convertedJSON     = 19
	convertedBSON     = 20
	convertedInterval = 21
)

// OrderingOf is the ordering of a leaf, from its type and annotation.
func OrderingOf(n *format.Node) Ordering {
	switch n.Type {
	case format.Boolean:
		return Booleans
	case format.Int32:
		return integers(n, SignedInt32, UnsignedInt32)
	case format.Int64:
		return integers(n, SignedInt64, UnsignedInt64)
	case format.Float:
		return Floats
	case format.Double:
		return Doubles
	case format.ByteArray, format.FixedLenByteArray:
		return byteStrings(n)
	}
	return NoOrder
}

func integers(n *format.Node, signed, unsigned Ordering) Ordering {
	if n.Logical != nil {
		switch n.Logical.Kind {
		case format.LogicalInteger:
			if n.Logical.Signed {
				return signed
			}
			return unsigned
		case format.LogicalDecimal, format.LogicalDate, format.LogicalTime, format.LogicalTimestamp:
			return signed
		}
		return NoOrder
	}
	if n.Converted == nil {
		return signed
	}
	switch c := *n.Converted; {
	case c >= convertedUint8 && c <= convertedUint64:
		return unsigned
	case c == convertedDecimal || c > convertedDecimal && c < convertedUint8 || c > convertedUint64 && c < convertedJSON:
		return signed
	}
	return NoOrder
}

func byteStrings(n *format.Node) Ordering {
	if n.Logical != nil {
		switch n.Logical.Kind {
		case format.LogicalString, format.LogicalEnum, format.LogicalJSON, format.LogicalBSON, format.LogicalUUID:
			return UnsignedBytes
		case format.LogicalDecimal:
			return SignedBytes
		}
		return NoOrder
	}
	if n.Converted == nil {
		return UnsignedBytes
	}
	switch *n.Converted {
	case convertedUTF8, convertedEnum, convertedJSON, convertedBSON:
		return UnsignedBytes
	case convertedDecimal:
		return SignedBytes
	}
	return NoOrder
}

// Width is the length of a value in bytes, 0 for none or for byte arrays.
func (o Ordering) Width() int {
	switch o {
	case Booleans:
		return 1
	case SignedInt32, UnsignedInt32, Floats:
		return 4
	case SignedInt64, UnsignedInt64, Doubles:
		return 8
	}
	return 0
}

// Check reports whether b can be a bound under o: right length, not NaN. A bound
// that cannot is worthless and must be treated as unknown.
func (o Ordering) Check(b []byte) bool {
	if w := o.Width(); w > 0 && len(b) != w {
		return false
	}
	switch o {
	case NoOrder:
		return false
	case Floats:
		return !math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case Doubles:
		return !math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case SignedBytes:
		return len(b) > 0
	}
	return true
}

// IsBound reports whether b can be a bound of the leaf: Check accepts it, and it has
// the length of the values if that is fixed.
func IsBound(n *format.Node, b []byte) bool {
	return OrderingOf(n).Check(b) && (n.Type != format.FixedLenByteArray || len(b) == int(n.TypeLength))
}

// CoverZeros gives bounds that are zeros of floating point the sign that covers
// both zeros, -0.0 below and +0.0 above. Other bounds are answered as they are.
func (o Ordering) CoverZeros(least, greatest []byte) (newLeast, newGreatest []byte) {
	if o != Floats && o != Doubles {
		return least, greatest
	}
	zero := make([]byte, o.Width())
	if o.Compare(greatest, zero) == 0 {
		greatest = zero
	}
	if o.Compare(least, zero) == 0 {
		least = append(zero[:len(zero)-1:len(zero)-1], 0x80)
	}
	return least, greatest
}

// Compare compares two bounds that Check accepts. -0.0 and +0.0 are equal.
func (o Ordering) Compare(a, b []byte) int {
	switch o {
	case SignedInt32:
		return cmp.Compare(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	case SignedInt64:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case UnsignedInt32:
		return cmp.Compare(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b))
	case UnsignedInt64:
		return cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
	case Floats:
		return cmp.Compare(math.Float32frombits(binary.LittleEndian.Uint32(a)), math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case Doubles:
		return cmp.Compare(math.Float64frombits(binary.LittleEndian.Uint64(a)), math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case SignedBytes:
		return compareSigned(a, b)
	}
	return bytes.Compare(a, b)
}

// compareSigned compares two big-endian two's complement numbers.
func compareSigned(a, b []byte) int {
	negative := a[0]&0x80 != 0
	if other := b[0]&0x80 != 0; negative != other {
		if negative {
			return -1
		}
		return 1
	}
	fill := byte(0)
	if negative {
		fill = 0xff
	}
	if n := len(a) - len(b); n > 0 {
		if c := comparePadding(a[:n], fill); c != 0 {
			return c
		}
		a = a[n:]
	} else if n < 0 {
		if c := comparePadding(b[:-n], fill); c != 0 {
			return -c
		}
		b = b[-n:]
	}
	return bytes.Compare(a, b)
}

// comparePadding compares the leading bytes of a longer number with the sign
// extension of a shorter one of the same sign.
func comparePadding(lead []byte, fill byte) int {
	for _, c := range lead {
		if c != fill {
			return cmp.Compare(c, fill)
		}
	}
	return 0
}

// valueWidth is column.Values' Width for a leaf.
func valueWidth(n *format.Node) (int, error) {
	switch n.Type {
	case format.Boolean:
		return 1, nil
	case format.Int32, format.Float:
		return 4, nil
	case format.Int64, format.Double:
		return 8, nil
	case format.Int96:
		return 12, nil
	case format.ByteArray:
		return 0, nil
	case format.FixedLenByteArray:
		if n.TypeLength > 0 {
			return int(n.TypeLength), nil
		}
		return 0, fault.New(fault.Corrupt, "column "+n.Name+": fixed length of 0 bytes")
	}
	return 0, fault.New(fault.Unsupported, "column "+n.Name+": unknown physical type")
}
