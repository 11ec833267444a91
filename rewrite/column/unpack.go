package column

import "encoding/binary"

// bitWidth has a type for every width in bits: its length is a number the compiler
// knows, so that every width has a loop of its own with shifts and places that are
// constant.
type bitWidth interface {
	[1]byte | [2]byte | [3]byte | [4]byte | [5]byte | [6]byte | [7]byte | [8]byte |
		[9]byte | [10]byte | [11]byte | [12]byte | [13]byte | [14]byte | [15]byte | [16]byte |
		[17]byte | [18]byte | [19]byte | [20]byte | [21]byte | [22]byte | [23]byte | [24]byte |
		[25]byte | [26]byte | [27]byte | [28]byte | [29]byte | [30]byte | [31]byte | [32]byte
}

// unpackers have a loop for every width.
var unpackers = [33]func([]uint32, []byte) int{
	1: unpackGroups[[1]byte], 2: unpackGroups[[2]byte], 3: unpackGroups[[3]byte], 4: unpackGroups[[4]byte],
	5: unpackGroups[[5]byte], 6: unpackGroups[[6]byte], 7: unpackGroups[[7]byte], 8: unpackGroups[[8]byte],
	9: unpackGroups[[9]byte], 10: unpackGroups[[10]byte], 11: unpackGroups[[11]byte], 12: unpackGroups[[12]byte],
	13: unpackGroups[[13]byte], 14: unpackGroups[[14]byte], 15: unpackGroups[[15]byte], 16: unpackGroups[[16]byte],
	17: unpackGroups[[17]byte], 18: unpackGroups[[18]byte], 19: unpackGroups[[19]byte], 20: unpackGroups[[20]byte],
	21: unpackGroups[[21]byte], 22: unpackGroups[[22]byte], 23: unpackGroups[[23]byte], 24: unpackGroups[[24]byte],
	25: unpackGroups[[25]byte], 26: unpackGroups[[26]byte], 27: unpackGroups[[27]byte], 28: unpackGroups[[28]byte],
	29: unpackGroups[[29]byte], 30: unpackGroups[[30]byte], 31: unpackGroups[[31]byte], 32: unpackGroups[[32]byte],
}

// unpackGroups unpacks groups of eight values as long as there are eight bytes
// behind a group, and answers how many values that were.
func unpackGroups[W bitWidth](dst []uint32, src []byte) int {
	var w W
	n, all := len(w), len(dst)
	for len(dst) >= 8 && len(src) >= n+8 {
		d, s := dst[:8:8], src[:n+8:n+8]
		d[0], d[1] = packedAt(s, 0, n), packedAt(s, n, n)
		d[2], d[3] = packedAt(s, 2*n, n), packedAt(s, 3*n, n)
		d[4], d[5] = packedAt(s, 4*n, n), packedAt(s, 5*n, n)
		d[6], d[7] = packedAt(s, 6*n, n), packedAt(s, 7*n, n)
		dst, src = dst[8:], src[n:]
	}
	return all - len(dst)
}

// packedAt is the value of a width that begins at a bit.
func packedAt(b []byte, bit, width int) uint32 {
	return uint32(binary.LittleEndian.Uint64(b[bit>>3:])>>(bit&7)) & (1<<width - 1)
}

// unpack32 unpacks values of up to 32 bits. src has at least as many as dst.
func unpack32(dst []uint32, src []byte, width int) {
	if width == 0 {
		clear(dst)
		return
	}
	done := unpackers[width](dst, src)
	dst, src = dst[done:], src[done/8*width:]
	for len(dst) > 0 {
		var last [40]byte // of a group, and eight bytes behind it
		copy(last[:width], src)
		var group [8]uint32
		unpackers[width](group[:], last[:width+8])
		n := copy(dst, group[:])
		dst, src = dst[n:], src[min(width, len(src)):]
	}
}

// fill32 sets all of dst.
func fill32(dst []uint32, v uint32) {
	const first = 32
	for i := range dst[:min(len(dst), first)] {
		dst[i] = v
	}
	for n := first; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
