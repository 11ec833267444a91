package column

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// values appends the n values of a page that are not dictionary codes.
func (d *Decoder) values(v *Values, p *Page, src []byte, n int) error {
	t := d.leaf.Type
	switch e := p.Header.Encoding; {
	case e == format.Plain:
		return d.plain(v, src, n)
	case e == format.RLE && t == format.Boolean:
		return d.runs(v, src, n)
	case e == format.DeltaBinaryPacked && (t == format.Int32 || t == format.Int64):
		data, err := d.room(v, n, v.Width)
		if err != nil {
			return err
		}
		v.Data, err = deltas(data[:0], src, n, v.Width)
		return err
	case e == format.DeltaLengthByteArray && t == format.ByteArray:
		return d.lengthPrefixed(v, src, n)
	case e == format.DeltaByteArray && (t == format.ByteArray || t == format.FixedLenByteArray):
		return d.prefixed(v, p, src, n)
	case e == format.ByteStreamSplit && t != format.Boolean && t != format.Int96 && t != format.ByteArray:
		return d.split(v, src, n)
	default:
		return fault.New(fault.Unsupported, fmt.Sprintf("encoding %d of type %d", e, t))
	}
}

// room makes v's data n values long, which are to be written, of a width.
func (d *Decoder) room(v *Values, n, width int) ([]byte, error) {
	if err := d.admit(int64(n) * int64(width)); err != nil {
		return nil, err
	}
	v.Data = slices.Grow(v.Data[:0], n*width)[:n*width]
	return v.Data, nil
}

func (d *Decoder) plain(v *Values, src []byte, n int) error {
	switch v.Type {
	case format.Boolean:
		if len(src) < (n+7)/8 {
			return corrupt("%d booleans in %d bytes", n, len(src))
		}
		data, err := d.room(v, n, 1)
		if err == nil && n > 0 {
			unpackLevels(data, src, 1)
		}
		return err
	case format.ByteArray:
		return d.plainBytes(v, src, n)
	}
	if int64(len(src)) < int64(n)*int64(v.Width) {
		return corrupt("%d values of %d bytes in %d", n, v.Width, len(src))
	}
	data, err := d.room(v, n, v.Width)
	copy(data, src)
	return err
}

// short is the length up to which values are copied as a whole register.
const short = 16

// plainBytes reads values that have a length before each.
func (d *Decoder) plainBytes(v *Values, src []byte, n int) error {
	if int64(len(src)) < 4*int64(n) {
		return corrupt("%d values in %d bytes", n, len(src))
	}
	if err := d.admit(int64(len(src)) + 4*int64(n)); err != nil {
		return err
	}
	most := len(src) - 4*n
	data := slices.Grow(v.Data[:0], most+short)[:most+short]
	offsets := slices.Grow(v.Offsets[:0], n+1)[:n+1]
	offsets[0] = 0
	at := 0
	for i := range n {
		if len(src) < 4 {
			return corrupt("value %d of %d is cut", i, n)
		}
		size := uint(binary.LittleEndian.Uint32(src))
		src = src[4:]
		if size > uint(len(src)) || at+int(size) > most {
			return corrupt("value %d of %d has %d bytes of %d", i, n, size, len(src))
		}
		if size <= short && len(src) >= short {
			*(*[short]byte)(data[at:]) = *(*[short]byte)(src)
		} else {
			copy(data[at:], src[:size])
		}
		at += int(size)
		src = src[size:]
		offsets[i+1] = uint32(at)
	}
	v.Data, v.Offsets = data[:at], offsets
	return nil
}

// runs reads booleans as runs after their length.
func (d *Decoder) runs(v *Values, src []byte, n int) error {
	data, err := d.room(v, n, 1)
	if err != nil {
		return err
	}
	_, err = v1(data, src, format.RLE, 1)
	return err
}

// lengthPrefixed reads DELTA_LENGTH_BYTE_ARRAY.
func (d *Decoder) lengthPrefixed(v *Values, src []byte, n int) error {
	if err := d.admit(4 * int64(n)); err != nil {
		return err
	}
	sizes, sum, rest, err := lengths(d.suffixes[:0], src, n)
	if err != nil {
		return err
	}
	d.suffixes = sizes
	if sum > int64(len(rest)) {
		return corrupt("values of %d bytes in %d", sum, len(rest))
	}
	if err := d.admit(sum + 4*int64(n)); err != nil {
		return err
	}
	v.Data = append(v.Data[:0], rest[:sum]...)
	v.Offsets = slices.Grow(v.Offsets[:0], n+1)[:n+1]
	at := uint32(0)
	v.Offsets[0] = 0
	for i, size := range sizes {
		at += size
		v.Offsets[i+1] = at
	}
	return d.account()
}

// prefixed reads DELTA_BYTE_ARRAY: lengths of what is shared with the value
// before, lengths of what is new, and that.
func (d *Decoder) prefixed(v *Values, p *Page, src []byte, n int) error {
	if err := d.admit(8 * int64(n)); err != nil {
		return err
	}
	prefixes, shared, rest, err := lengths(d.prefixes[:0], src, n)
	if err != nil {
		return err
	}
	d.prefixes = prefixes
	suffixes, sum, rest, err := lengths(d.suffixes[:0], rest, n)
	if err != nil {
		return err
	}
	d.suffixes = suffixes
	if sum > int64(len(rest)) {
		return corrupt("values of %d bytes in %d", sum, len(rest))
	}
	if err := d.admit(shared + sum + 4*int64(n)); err != nil {
		return err
	}
	var before []byte
	if prefixes[0] > 0 && d.lastEnd == p.Offset && p.Offset > 0 {
		before = d.last
	}
	total := int(shared + sum)
	data := slices.Grow(v.Data[:0], total)[:total]
	var offsets []uint32
	if v.Width == 0 {
		offsets = slices.Grow(v.Offsets[:0], n+1)[:n+1]
		offsets[0] = 0
	}
	at := 0
	for i := range n {
		prefix, suffix := int(prefixes[i]), int(suffixes[i])
		if prefix > len(before) {
			return corrupt("value %d shares %d bytes with one of %d", i, prefix, len(before))
		}
		if v.Width != 0 && prefix+suffix != v.Width {
			return corrupt("value %d has %d bytes, not %d", i, prefix+suffix, v.Width)
		}
		value := data[at : at+prefix+suffix]
		copy(value, before[:prefix])
		copy(value[prefix:], rest[:suffix])
		rest = rest[suffix:]
		before = value
		at += len(value)
		if offsets != nil {
			offsets[i+1] = uint32(at)
		}
	}
	v.Data = data
	if v.Width == 0 {
		v.Offsets = offsets
	}
	d.last, d.lastEnd = append(d.last[:0], before...), p.Offset+int64(len(p.Raw)+len(p.Body))
	return d.account()
}

// split reads BYTE_STREAM_SPLIT: all first bytes, then all second ones, and so on.
func (d *Decoder) split(v *Values, src []byte, n int) error {
	if int64(len(src)) != int64(n)*int64(v.Width) {
		return corrupt("%d values of %d bytes in %d", n, v.Width, len(src))
	}
	data, err := d.room(v, n, v.Width)
	if err != nil {
		return err
	}
	switch v.Width {
	case 4:
		a, b, c, e := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
		for i := range a {
			binary.LittleEndian.PutUint32(data[4*i:], uint32(a[i])|uint32(b[i])<<8|uint32(c[i])<<16|uint32(e[i])<<24)
		}
	case 8:
		low, high := src[:4*n], src[4*n:]
		for i := range n {
			x := uint64(low[i]) | uint64(low[n+i])<<8 | uint64(low[2*n+i])<<16 | uint64(low[3*n+i])<<24
			x |= uint64(high[i])<<32 | uint64(high[n+i])<<40 | uint64(high[2*n+i])<<48 | uint64(high[3*n+i])<<56
			binary.LittleEndian.PutUint64(data[8*i:], x)
		}
	default:
		for k := range v.Width {
			stream := src[k*n : (k+1)*n]
			for i, b := range stream {
				data[i*v.Width+k] = b
			}
		}
	}
	return nil
}

// gather appends the dictionary's values of the codes to v, which may have
// values. All codes are less than the dictionary's length.
func (d *Decoder) gather(v *Values, codes []uint32) error {
	if v.Width == 0 {
		return d.gatherBytes(v, codes)
	}
	size := len(codes) * v.Width
	if err := d.admit(int64(len(v.Data)) + int64(size)); err != nil {
		return err
	}
	at := len(v.Data)
	v.Data = slices.Grow(v.Data, size)[:at+size]
	data := v.Data[at:]
	switch v.Width {
	case 4:
		for i, c := range codes {
			binary.LittleEndian.PutUint32(data[4*i:4*i+4], d.words[c])
		}
	case 8:
		for i, c := range codes {
			binary.LittleEndian.PutUint64(data[8*i:8*i+8], d.longs[c])
		}
	default:
		for i, c := range codes {
			copy(data[i*v.Width:(i+1)*v.Width], d.dictionary.Data[int(c)*v.Width:])
		}
	}
	return nil
}

func (d *Decoder) gatherBytes(v *Values, codes []uint32) error {
	size := d.sizeOf(codes)
	if err := d.admit(int64(len(v.Data)) + size + 4*int64(len(v.Offsets)+len(codes))); err != nil {
		return err
	}
	at, n := len(v.Data), len(v.Offsets)
	data := slices.Grow(v.Data, int(size)+short)[:at+int(size)+short]
	v.Offsets = slices.Grow(v.Offsets, len(codes))[:n+len(codes)]
	offsets := v.Offsets[n:]
	from, ends := d.dictionary.Data, d.dictionary.Offsets
	safe := uint32(max(0, len(from)-short))
	for i, c := range codes {
		begin, end := ends[c], ends[c+1]
		if end-begin <= short && begin <= safe && len(from) >= short {
			*(*[short]byte)(data[at:]) = *(*[short]byte)(from[begin:])
		} else {
			copy(data[at:], from[begin:end])
		}
		at += int(end - begin)
		offsets[i] = uint32(at)
	}
	v.Data = data[:at]
	return nil
}

// sizeOf is the bytes of the byte arrays that codes stand for.
func (d *Decoder) sizeOf(codes []uint32) int64 {
	ends := d.dictionary.Offsets
	var size int64
	for _, c := range codes {
		size += int64(ends[c+1] - ends[c])
	}
	return size
}
