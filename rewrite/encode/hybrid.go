package encode

import (
	"encoding/binary"
	"math/bits"
)

// symbol is what the run-length and bit-packing hybrid stores: a level or a
// dictionary code.
type symbol interface{ ~uint8 | ~uint32 }

// appendHybrid appends src in the RLE/bit-packing hybrid of parquet-format
// (Encodings.md, RLE = 3) with the given bit width, 0 to 32, without a length in
// front. No symbol may need more bits than width.
func appendHybrid[T symbol](dst []byte, src []T, width int) []byte {
	if width == 0 {
		if len(src) > 0 {
			dst = binary.AppendUvarint(dst, uint64(len(src))<<1)
		}
		return dst
	}
	least := shortestRun(width)
	literal := 0 // begin of the symbols that are not written yet
	for i := 0; i < len(src); {
		run := runLength(src[i:])
		if run < least && i+run < len(src) || run < 8 {
			i += 8
			continue
		}
		dst = appendPacked(dst, src[literal:i], width)
		dst = appendRun(dst, uint32(src[i]), run, width)
		i += run
		literal = i
	}
	return appendPacked(dst, src[literal:], width)
}

// shortestRun is the run from which on a run beats packed groups of 8, the
// header of the next packed run included.
func shortestRun(width int) int {
	switch {
	case width == 1:
		return 32
	case width < 4:
		return 16
	}
	return 8
}

// runLength is the number of symbols at the begin that equal the first.
func runLength[T symbol](src []T) int {
	v, n := src[0], 1
	if b, ok := any(src).([]uint8); ok {
		// Levels are alike more often than not: 8 of them at once.
		for word := uint64(b[0]) * 0x0101010101010101; n+8 <= len(b) && binary.LittleEndian.Uint64(b[n:]) == word; {
			n += 8
		}
	}
	for n < len(src) && src[n] == v {
		n++
	}
	return n
}

func appendRun(dst []byte, v uint32, n, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for b := width; b > 0; b -= 8 {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}

// appendPacked appends one bit-packed run, the last group filled up with zeros.
func appendPacked[T symbol](dst []byte, src []T, width int) []byte {
	if len(src) == 0 {
		return dst
	}
	groups := (len(src) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	whole := len(src) &^ 7
	dst = packGroups(dst, src[:whole], width)
	if whole < len(src) {
		var last [8]T
		copy(last[:], src[whole:])
		dst = packGroups(dst, last[:], width)
	}
	return dst
}

// packGroups appends whole groups of 8 symbols, least significant bit first.
func packGroups[T symbol](dst []byte, src []T, width int) []byte {
	n := len(dst)
	size := len(src) / 8 * width
	dst = grow(dst, size+8) // stores of 8 bytes may reach past the end
	out := dst[n : n+size+8]
	if width <= 8 {
		w := uint(width)
		for len(src) >= 8 {
			s := src[:8:8]
			acc := uint64(s[0]) | uint64(s[1])<<w | uint64(s[2])<<(2*w) | uint64(s[3])<<(3*w) |
				uint64(s[4])<<(4*w) | uint64(s[5])<<(5*w) | uint64(s[6])<<(6*w) | uint64(s[7])<<(7*w)
			binary.LittleEndian.PutUint64(out, acc)
			out, src = out[width:], src[8:]
		}
		return dst[:n+size]
	}
	var acc uint64
	var have uint
	for _, s := range src {
		acc |= uint64(s) << have
		have += uint(width)
		if have >= 32 {
			binary.LittleEndian.PutUint32(out, uint32(acc))
			out = out[4:]
			acc >>= 32
			have -= 32
		}
	}
	if have > 0 {
		binary.LittleEndian.PutUint32(out, uint32(acc))
	}
	return dst[:n+size]
}

// grow makes room for n more bytes and sets the length to include them.
func grow(dst []byte, n int) []byte {
	if need := len(dst) + n; need <= cap(dst) {
		return dst[:need]
	}
	return append(dst, make([]byte, n)...)
}

// levelWidth is the bit width of levels up to greatest.
func levelWidth(greatest int) int { return bits.Len(uint(greatest)) }

// CodeWidth is the bit width of the codes of a dictionary with n entries. It is
// at least 1: some readers do not take a width of 0 with values.
func CodeWidth(n int) int {
	if n <= 2 {
		return 1
	}
	return bits.Len(uint(n - 1))
}
