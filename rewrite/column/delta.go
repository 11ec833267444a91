package column

import (
	"encoding/binary"
	"math/bits"
)

// delta reads DELTA_BINARY_PACKED integers. They are modulo 2^64; those of 32
// bits are their low halves.
type delta struct {
	src []byte
	// perMini values are in a miniblock, minis miniblocks in a block.
	perMini, minis int
	// left is how many values are still to come, inMini of them in the miniblock.
	left, inMini int
	last, least  uint64
	widths       []byte
	width        int
	first        bool
}

// maxMini is the greatest miniblock that is read; writers have 32 to 512 values.
const maxMini = 1 << 20

// newDelta reads the header of a sequence of n values.
func newDelta(src []byte, n int) (*delta, error) {
	var header [3]uint64
	for i := range header {
		v, used := binary.Uvarint(src)
		if used <= 0 {
			return nil, corrupt("the header of deltas ends early")
		}
		header[i], src = v, src[used:]
	}
	first, used := binary.Varint(src)
	if used <= 0 {
		return nil, corrupt("the header of deltas ends early")
	}
	block, minis, total := header[0], header[1], header[2]
	if total != uint64(n) {
		return nil, corrupt("there are deltas of %d values, not %d", total, n)
	}
	if minis == 0 || block == 0 || block%minis != 0 || block/minis%8 != 0 || block/minis > maxMini || minis > maxMini {
		return nil, corrupt("blocks of %d deltas in %d parts", block, minis)
	}
	return &delta{src: src[used:], perMini: int(block / minis), minis: int(minis), left: n, last: uint64(first), first: true}, nil
}

// next fills a part of out, which has a multiple of eight elements, and says how
// many it filled: none at the end.
func (d *delta) next(out []uint64) (int, error) {
	if d.left == 0 {
		return 0, nil
	}
	if d.first {
		d.first = false
		d.left--
		out[0] = d.last
		return 1, nil
	}
	if d.inMini == 0 {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	n := min(len(out), d.inMini, d.left)
	packed := min(len(out), d.inMini)
	size := packed / 8 * d.width
	if size > len(d.src) { // the last one may be cut where nothing is needed of it
		if n*d.width > len(d.src)*8 {
			return 0, corrupt("deltas end early")
		}
		size = len(d.src)
	}
	unpack64(out[:n], d.src, d.width)
	d.src = d.src[size:]
	d.inMini -= packed
	d.left -= n
	if d.left == 0 { // the rest of the miniblock is there, too
		rest := d.inMini / 8 * d.width
		d.src = d.src[min(rest, len(d.src)):]
	}
	last, least := d.last, d.least
	for i, v := range out[:n] {
		last += v + least
		out[i] = last
	}
	d.last = last
	return n, nil
}

// begin enters the next miniblock, and the next block before its first.
func (d *delta) begin() error {
	if len(d.widths) == 0 {
		least, used := binary.Varint(d.src)
		if used <= 0 || len(d.src)-used < d.minis {
			return corrupt("a block of deltas ends early")
		}
		d.least = uint64(least)
		d.widths, d.src = d.src[used:used+d.minis], d.src[used+d.minis:]
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return corrupt("deltas of %d bits", d.width)
	}
	d.inMini = d.perMini
	return nil
}

// unpack64 unpacks values of up to 64 bits. src has at least as many as dst.
func unpack64(dst []uint64, src []byte, width int) {
	if width == 0 {
		clear(dst)
		return
	}
	mask := ^uint64(0) >> (64 - width)
	var tail [80]byte
	for len(dst) > 0 {
		n := min(len(dst), 8)
		in := src
		if len(src) < width+16 {
			copy(tail[:64], src)
			in = tail[:]
		}
		bit := uint(0)
		for i := range dst[:n] {
			at := bit >> 3
			shift := bit & 7
			v := binary.LittleEndian.Uint64(in[at:]) >> shift
			if width > 56 {
				v |= uint64(in[at+8]) << (64 - shift)
			}
			dst[i] = v & mask
			bit += uint(width)
		}
		dst, src = dst[n:], src[min(width, len(src)):]
	}
}

// deltas appends n integers of a width of 4 or 8 bytes to dst.
func deltas(dst, src []byte, n, width int) ([]byte, error) {
	d, err := newDelta(src, n)
	if err != nil {
		return nil, err
	}
	var buf [128]uint64
	for {
		n, err := d.next(buf[:])
		if n == 0 || err != nil {
			return dst, err
		}
		if width == 4 {
			for _, v := range buf[:n] {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
			}
			continue
		}
		for _, v := range buf[:n] {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
	}
}

// lengths appends n lengths to dst, and gives their sum and the bytes after them.
func lengths(dst []uint32, src []byte, n int) (out []uint32, sum int64, rest []byte, err error) {
	d, err := newDelta(src, n)
	if err != nil {
		return nil, 0, nil, err
	}
	var buf [128]uint64
	for {
		n, err := d.next(buf[:])
		if err != nil {
			return nil, 0, nil, err
		}
		if n == 0 {
			return dst, sum, d.src, nil
		}
		for _, v := range buf[:n] {
			if bits.Len32(uint32(v)) > 31 {
				return nil, 0, nil, corrupt("a value has length %d", int32(v))
			}
			sum += int64(uint32(v))
			dst = append(dst, uint32(v))
		}
	}
}
