package encode

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/delta"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// appendPlain appends the values [from, to) of v in PLAIN form. Booleans stay one
// byte each; packBooleans makes bits of them.
func appendPlain(dst []byte, v *column.Values, from, to int) []byte {
	if v.Width > 0 {
		return append(dst, v.Data[from*v.Width:to*v.Width]...)
	}
	if from == to {
		return dst
	}
	n := len(dst)
	dst = grow(dst, int(v.Offsets[to]-v.Offsets[from])+4*(to-from))
	out := dst[n:]
	start := v.Offsets[from]
	for _, end := range v.Offsets[from+1 : to+1] {
		value := v.Data[start:end]
		binary.LittleEndian.PutUint32(out, uint32(len(value)))
		out = out[4+copy(out[4:], value):]
		start = end
	}
	return dst
}

// plainSize is the length of appendPlain's result.
func plainSize(v *column.Values, from, to int) int {
	if v.Width > 0 {
		return (to - from) * v.Width
	}
	if from == to {
		return 0
	}
	return int(v.Offsets[to]-v.Offsets[from]) + 4*(to-from)
}

// gather appends the values of codes in PLAIN form.
func gather(dst []byte, d *column.Values, codes []uint32) []byte {
	switch d.Width {
	case 8:
		n := len(dst)
		dst = grow(dst, 8*len(codes))
		for i, c := range codes {
			copy(dst[n+8*i:n+8*i+8], d.Data[8*int(c):8*int(c)+8])
		}
	case 0:
		for _, c := range codes {
			value := d.At(int(c))
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
			dst = append(dst, value...)
		}
	default:
		for _, c := range codes {
			dst = append(dst, d.At(int(c))...)
		}
	}
	return dst
}

// packBooleans appends booleans of one byte each as bits, PLAIN. Version 2 pages
// have them so, too: parquet-go v0.32 reads a run of true in RLE as mostly false.
func packBooleans(dst, values []byte) []byte {
	for len(values) > 0 {
		var b byte
		n := min(8, len(values))
		for i, v := range values[:n] {
			b |= v & 1 << i
		}
		dst = append(dst, b)
		values = values[n:]
	}
	return dst
}

// deltas encodes PLAIN integers as DELTA_BINARY_PACKED. Its buffers are used
// again.
type deltas struct {
	out []byte
	i32 []int32
	i64 []int64
}

func (d *deltas) encode(plain []byte, t format.Type) ([]byte, error) {
	var err error
	switch t {
	case format.Int32:
		d.i32 = d.i32[:0]
		for ; len(plain) >= 4; plain = plain[4:] {
			d.i32 = append(d.i32, int32(binary.LittleEndian.Uint32(plain)))
		}
		d.out, err = new(delta.BinaryPackedEncoding).EncodeInt32(d.out, d.i32)
	case format.Int64:
		d.i64 = d.i64[:0]
		for ; len(plain) >= 8; plain = plain[8:] {
			d.i64 = append(d.i64, int64(binary.LittleEndian.Uint64(plain)))
		}
		d.out, err = new(delta.BinaryPackedEncoding).EncodeInt64(d.out, d.i64)
	default:
		return nil, fault.New(fault.Halt, "DELTA_BINARY_PACKED of values that are not integers")
	}
	return d.out, fault.Wrap(fault.Halt, "encode DELTA_BINARY_PACKED", err)
}
