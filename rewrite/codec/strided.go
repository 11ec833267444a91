package codec

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/huff0"

	"github.com/seaice/seaice/fault"
)

// A general compressor of zstd looks for repetitions everywhere. In values of one
// length, as PLAIN pages have them, the repetitions that matter are known: the
// leading bytes of a value (its length, its sign, what is common to neighbours) or
// the trailing ones of little-endian numbers are those of the value before. What
// follows makes a frame (RFC 8878) that has these repetitions alone: blocks whose
// sequences are all alike, so many literals and so many bytes that repeat those one
// value before. Their codes need no bits; literals have a Huffman code.

// Side is where values of one length are like the one before.
type Side uint8

const (
	// Leading bytes repeat: big-endian numbers, text, lengths.
	Leading Side = iota
	// Trailing bytes repeat: little-endian numbers.
	Trailing
)

const (
	// zstdBlock is the greatest content of a block (RFC 8878, section 3.1.1.2.4).
	zstdBlock = 128 << 10
	// Types of blocks and of literals (sections 3.1.1.2.2 and 3.1.1.3.1.1).
	blockRaw, blockCompressed                                 = 0, 2
	literalsRaw, literalsRLE, literalsHuffman, literalsReused = 0, 1, 2, 3
	// MaxStride is the greatest length of values that AppendStrided takes.
	MaxStride = 255
	// repeatLeast is the shortest repetition a sequence can have.
	repeatLeast = 3
	// A tile that is no repetition ends a block. Such an exception costs about
	// exceptionCost bytes; of more than one in exceptionShare tiles another compressor
	// makes more.
	exceptionCost  = 24
	exceptionShare = 128
	// huffmanLeast is the number of literals that a table pays for.
	huffmanLeast = 1 << 10
	// stridedLeast is the shortest content. The window, which bounds blocks, is as long.
	stridedLeast = 1 << 10
)

// strider compresses one frame after the other.
type strider struct {
	huffman  huff0.Scratch
	shared   []uint8 // of each tile, how many bytes repeat
	literals []byte
}

var striders = sync.Pool{New: func() any { return new(strider) }}

// AppendStrided appends a zstd frame of src, of which values of stride bytes each
// begin at head and go on to the end. It reports false, and appends nothing, if the
// values do not repeat enough of each other for this to be worth anything.
func AppendStrided(dst, src []byte, head, stride int, side Side) ([]byte, bool, error) {
	if len(src) < stridedLeast || head < 0 || stride <= repeatLeast || stride > MaxStride || head > len(src) || (len(src)-head)%stride != 0 {
		return dst, false, nil
	}
	s := striders.Get().(*strider)
	defer striders.Put(s)
	t := tiling{src: src, base: head + stride, stride: stride, tiles: (len(src)-head)/stride - 1}
	if t.tiles < 2 {
		return dst, false, nil
	}
	s.share(src[head:], stride, side)
	if t.repeat = s.choose(stride); t.repeat == 0 {
		return dst, false, nil
	}
	if side == Leading {
		// The tiles are moved so that what repeats comes last.
		t.base += t.repeat - stride
	}
	out, err := s.frame(dst, t)
	return out, err == nil, err
}

// tiling cuts the content into tiles of stride bytes of which the last ones repeat
// those a stride before.
type tiling struct {
	src                         []byte
	base, stride, tiles, repeat int
}

// share counts how many bytes each value but the first has in common with the one
// before.
func (s *strider) share(values []byte, stride int, side Side) {
	s.shared = s.shared[:0]
	switch {
	case side == Trailing && stride == 8:
		before := binary.LittleEndian.Uint64(values)
		for b := values[8:]; len(b) >= 8; b = b[8:] {
			v := binary.LittleEndian.Uint64(b)
			s.shared = append(s.shared, uint8(bits.LeadingZeros64(v^before)>>3))
			before = v
		}
	case side == Trailing && stride == 4:
		before := binary.LittleEndian.Uint32(values)
		for b := values[4:]; len(b) >= 4; b = b[4:] {
			v := binary.LittleEndian.Uint32(b)
			s.shared = append(s.shared, uint8(bits.LeadingZeros32(v^before)>>3))
			before = v
		}
	case side == Trailing:
		for at := stride; at < len(values); at += stride {
			n := 0
			for n < stride && values[at+stride-1-n] == values[at-1-n] {
				n++
			}
			s.shared = append(s.shared, uint8(n))
		}
	default:
		for at := stride; at < len(values); at += stride {
			s.shared = append(s.shared, uint8(common(values[at-stride:at], values[at:at+stride])))
		}
	}
}

// common is the number of leading bytes that two slices of one length share.
func common(a, b []byte) int {
	n := 0
	for ; len(a)-n >= 8; n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// choose finds how many bytes are best taken as repeated, 0 if none are.
func (s *strider) choose(stride int) int {
	var have [MaxStride + 1]int
	for _, n := range s.shared {
		have[n]++
	}
	best, gain := 0, 0
	for n, at := stride, 0; n >= repeatLeast; n-- {
		at += have[n]
		others := len(s.shared) - at
		if n == stride || others > len(s.shared)/exceptionShare {
			continue // a sequence has at least a literal here
		}
		if g := at*n - others*exceptionCost; g > gain {
			best, gain = n, g
		}
	}
	return best
}

// frame appends the whole frame.
func (s *strider) frame(dst []byte, t tiling) ([]byte, error) {
	s.huffman.Reuse = huff0.ReusePolicyNone // of another frame
	dst = appendFrameHeader(dst, len(t.src))
	at, known := 0, false // at is where the content not yet in a block begins
	var err error
	most := zstdBlock / t.stride
	for i := 0; i < t.tiles; {
		n := 0
		for i+n < t.tiles && n < most && int(s.shared[i+n]) >= t.repeat {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		from := t.base + i*t.stride
		if dst, err = s.plain(dst, t.src[at:from], false); err != nil {
			return nil, err
		}
		if !known {
			// The first repetition says how far back it is, the others that it is the same.
			known = true
			n = 1
			dst, err = s.block(dst, t, from, 1, true)
		} else {
			dst, err = s.block(dst, t, from, n, false)
		}
		if err != nil {
			return nil, err
		}
		i += n
		at = t.base + i*t.stride
	}
	return s.plain(dst, t.src[at:], true)
}

// plain appends blocks without sequences.
func (s *strider) plain(dst, content []byte, last bool) ([]byte, error) {
	if len(content) == 0 && !last {
		return dst, nil
	}
	for len(content) > zstdBlock {
		dst = append(appendBlockHeader(dst, blockRaw, zstdBlock, false), content[:zstdBlock]...)
		content = content[zstdBlock:]
	}
	if len(content) < huffmanLeast {
		return append(appendBlockHeader(dst, blockRaw, len(content), last), content...), nil
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0)
	dst, err := s.section(dst, content)
	if err != nil {
		return nil, err
	}
	dst = append(dst, 0) // no sequences
	if size := len(dst) - at - 3; size < len(content) {
		appendBlockHeader(dst[:at], blockCompressed, size, last)
		return dst, nil
	}
	s.huffman.Reuse = huff0.ReusePolicyNone // the table may have been in it
	return append(appendBlockHeader(dst[:at], blockRaw, len(content), last), content...), nil
}

// block appends a block of n tiles that begin at from. Far says that their
// repetitions state their distance.
func (s *strider) block(dst []byte, t tiling, from, n int, far bool) ([]byte, error) {
	literal := t.stride - t.repeat
	s.literals = s.literals[:0]
	for p := from; p < from+n*t.stride; p += t.stride {
		s.literals = append(s.literals, t.src[p:p+literal]...)
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0)
	dst, err := s.section(dst, s.literals)
	if err != nil {
		return nil, err
	}
	dst = appendSequences(dst, n, literal, t.repeat, t.stride, far)
	size := len(dst) - at - 3
	if size >= n*t.stride && !far {
		s.huffman.Reuse = huff0.ReusePolicyNone // the table may have been in it
		return append(appendBlockHeader(dst[:at], blockRaw, n*t.stride, false), t.src[from:from+n*t.stride]...), nil
	}
	appendBlockHeader(dst[:at], blockCompressed, size, false)
	return dst, nil
}

// section appends literals (section 3.1.1.3.1).
func (s *strider) section(dst, literals []byte) ([]byte, error) {
	raw := func(kind, size int) []byte {
		switch {
		case size < 32:
			return append(dst, byte(kind|size<<3))
		case size < 4096:
			return binary.LittleEndian.AppendUint16(dst, uint16(kind|1<<2|size<<4))
		}
		h := uint32(kind | 3<<2 | size<<4)
		return append(dst, byte(h), byte(h>>8), byte(h>>16))
	}
	if len(literals) < huffmanLeast {
		return append(raw(literalsRaw, len(literals)), literals...), nil
	}
	s.huffman.WantLogLess = 6
	out, reused, err := huff0.Compress4X(literals, &s.huffman)
	switch {
	case errors.Is(err, huff0.ErrUseRLE):
		return append(raw(literalsRLE, len(literals)), literals[0]), nil
	case errors.Is(err, huff0.ErrIncompressible):
		return append(raw(literalsRaw, len(literals)), literals...), nil
	case err != nil:
		return nil, fault.Wrap(fault.Halt, "compress zstd literals", err)
	}
	s.huffman.Reuse = huff0.ReusePolicyAllow
	kind := uint64(literalsHuffman)
	if reused {
		kind = literalsReused
	}
	// Four streams, and 18 bits for each size.
	h := kind | 3<<2 | uint64(len(literals))<<4 | uint64(len(out))<<22
	dst = append(dst, byte(h), byte(h>>8), byte(h>>16), byte(h>>24), byte(h>>32))
	return append(dst, out...), nil
}

// appendSequences appends n sequences that are all alike (section 3.1.1.3.2).
func appendSequences(dst []byte, n, literal, repeat, distance int, far bool) []byte {
	switch {
	case n < 128:
		dst = append(dst, byte(n))
	case n < 0x7f00:
		dst = append(dst, byte(n>>8+128), byte(n))
	default:
		dst = binary.LittleEndian.AppendUint16(append(dst, 255), uint16(n-0x7f00))
	}
	l, m := code(literalCodes[:], literal), code(repeatCodes[:], repeat)
	offset, extra := 0, 0 // the distance of the sequence before
	if far {
		offset = bits.Len(uint(distance+3)) - 1
		extra = distance + 3 - 1<<offset
	}
	// Every table has one code only, which takes no bits.
	dst = append(dst, 1<<6|1<<4|1<<2, byte(l), byte(offset), byte(m))
	// The bits are read from the end: of the distance, the repetition, the literals.
	var acc uint64
	have := 0
	put := func(v, width int) {
		acc |= uint64(v) << have
		for have += width; have >= 8; have -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	lv, lw := literal-literalCodes[l].least, literalCodes[l].width
	mv, mw := repeat-repeatCodes[m].least, repeatCodes[m].width
	for range n {
		put(lv, lw)
		put(mv, mw)
		put(extra, offset)
	}
	put(1, 1) // marks the end
	if have > 0 {
		dst = append(dst, byte(acc))
	}
	return dst
}

// lengthCode is the least length of a code, and the bits that are added to it.
type lengthCode struct{ least, width int }

// code finds the code of a length.
func code(codes []lengthCode, length int) int {
	c := len(codes) - 1
	for codes[c].least > length {
		c--
	}
	return c
}

// Codes of lengths as far as a stride can need them (section 3.1.1.3.2.1.1).
var (
	literalCodes = lengths(0, [][2]int{{16, 0}, {4, 1}, {2, 2}, {2, 3}, {1, 4}, {1, 6}, {1, 7}, {1, 8}})
	repeatCodes  = lengths(3, [][2]int{{32, 0}, {4, 1}, {2, 2}, {2, 3}, {2, 4}, {1, 5}, {1, 7}, {1, 8}})
)

// lengths lays codes out one behind the other: so many of so many bits each.
func lengths(from int, runs [][2]int) []lengthCode {
	var out []lengthCode
	for _, r := range runs {
		for range r[0] {
			out = append(out, lengthCode{from, r[1]})
			from += 1 << r[1]
		}
	}
	return out
}

// appendFrameHeader begins a frame that states its size, without a checksum
// (section 3.1.1.1).
func appendFrameHeader(dst []byte, size int) []byte {
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd)
	const single = 1 << 5 // the window is the content
	switch {
	case size > zstdWindow:
		// The window is 1 MiB: 2 to the power of 10 + 10.
		return binary.LittleEndian.AppendUint32(append(dst, 2<<6, 10<<3), uint32(size))
	case size < 256:
		return append(dst, single, byte(size))
	case size < 256+1<<16:
		return binary.LittleEndian.AppendUint16(append(dst, 1<<6|single), uint16(size-256))
	}
	return binary.LittleEndian.AppendUint32(append(dst, 2<<6|single), uint32(size))
}

// appendBlockHeader appends the header of a block (section 3.1.1.2).
func appendBlockHeader(dst []byte, kind, size int, last bool) []byte {
	h := uint32(size)<<3 | uint32(kind)<<1
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16))
}
