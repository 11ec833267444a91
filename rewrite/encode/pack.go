package encode

import (
	"encoding/binary"
	"fmt"

	"github.com/seaice/seaice/fault"
)

// appendMapped appends what mapping makes of codes, in the hybrid of appendHybrid.
// Runs are those of the codes as they were: who maps two of them to one gets two
// runs. A code that has no mapping is fault.Corrupt.
func appendMapped(dst []byte, src, mapping []uint32, width int) ([]byte, error) {
	least := shortestRun(width)
	literal := 0 // begin of the codes that are not written yet
	for i := 0; i < len(src); {
		if i+1 < len(src) && src[i] != src[i+1] {
			i += 8
			continue
		}
		run := runLength(src[i:])
		if run < least && i+run < len(src) || run < 8 {
			i += 8
			continue
		}
		code := src[i]
		if int(code) >= len(mapping) {
			return nil, beyond(src[i:i+1], mapping)
		}
		var err error
		if dst, err = appendMappedPacked(dst, src[literal:i], mapping, width); err != nil {
			return nil, err
		}
		dst = appendRun(dst, mapping[code], run, width)
		i += run
		literal = i
	}
	return appendMappedPacked(dst, src[literal:], mapping, width)
}

// appendMappedPacked appends one bit-packed run, the last group filled up with
// zeros.
func appendMappedPacked(dst []byte, src, mapping []uint32, width int) ([]byte, error) {
	if len(src) == 0 {
		return dst, nil
	}
	groups := (len(src) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	rest := src
	if width < len(mappers) {
		n := len(dst)
		dst = grow(dst, len(src)/8*width+8) // stores of 8 bytes reach past the end
		done, ok := mappers[width](dst[n:], src, mapping)
		if !ok {
			return nil, beyond(src, mapping)
		}
		dst, rest = dst[:n+done/8*width], src[done:]
	}
	for len(rest) > 0 {
		var block [256]uint32
		some := rest[:min(len(rest), len(block))]
		for i, c := range some {
			if int(c) >= len(mapping) {
				return nil, beyond(some, mapping)
			}
			block[i] = mapping[c]
		}
		dst = packGroups(dst, block[:(len(some)+7)&^7], width)
		rest = rest[len(some):]
	}
	return dst, nil
}

// beyond is the error of codes of which one has no mapping.
func beyond(codes, mapping []uint32) error {
	for _, c := range codes {
		if int(c) >= len(mapping) {
			return fault.New(fault.Corrupt, fmt.Sprintf("code %d of a dictionary of %d entries", c, len(mapping)))
		}
	}
	return fault.New(fault.Halt, "codes that have a mapping were refused")
}

// mappedWidth has a type for every width in bits of a dictionary of common size: its
// length is a number the compiler knows, so that every width has a loop of its own
// with shifts that are constant.
type mappedWidth interface {
	[1]byte | [2]byte | [3]byte | [4]byte | [5]byte | [6]byte | [7]byte | [8]byte |
		[9]byte | [10]byte | [11]byte | [12]byte | [13]byte | [14]byte | [15]byte | [16]byte
}

// mappers have a loop for every such width.
var mappers = [17]func(dst []byte, src, mapping []uint32) (int, bool){
	0: func([]byte, []uint32, []uint32) (int, bool) { return 0, true },
	1: mapGroups[[1]byte], 2: mapGroups[[2]byte], 3: mapGroups[[3]byte], 4: mapGroups[[4]byte],
	5: mapGroups[[5]byte], 6: mapGroups[[6]byte], 7: mapGroups[[7]byte], 8: mapGroups[[8]byte],
	9: mapGroups[[9]byte], 10: mapGroups[[10]byte], 11: mapGroups[[11]byte], 12: mapGroups[[12]byte],
	13: mapGroups[[13]byte], 14: mapGroups[[14]byte], 15: mapGroups[[15]byte], 16: mapGroups[[16]byte],
}

// mapGroups packs what mapping makes of the whole groups of eight codes, least
// significant bit first, and answers how many codes those are. dst has eight bytes
// more than they take. It is not ok if a code has no mapping.
func mapGroups[W mappedWidth](dst []byte, src, mapping []uint32) (done int, ok bool) {
	var w W
	n, all, m, size := len(w), len(src), mapping, uint32(len(mapping))
	for len(src) >= 8 && len(dst) >= n+8 {
		s, d := src[:8:8], dst[:n+8:n+8]
		if s[0] >= size || s[1] >= size || s[2] >= size || s[3] >= size ||
			s[4] >= size || s[5] >= size || s[6] >= size || s[7] >= size {
			return 0, false
		}
		low := uint64(m[s[0]]) | uint64(m[s[1]])<<n | uint64(m[s[2]])<<(2*n) | uint64(m[s[3]])<<(3*n)
		high := uint64(m[s[4]]) | uint64(m[s[5]])<<n | uint64(m[s[6]])<<(2*n) | uint64(m[s[7]])<<(3*n)
		binary.LittleEndian.PutUint64(d, low|high<<(4*n))
		if n > 8 {
			binary.LittleEndian.PutUint64(d[8:], high>>(64-4*n))
		}
		dst, src = dst[n:], src[8:]
	}
	return all - len(src), true
}
