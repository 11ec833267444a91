package column

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/seaice/seaice/fault"
)

func corrupt(format string, a ...any) error {
	return fault.New(fault.Corrupt, fmt.Sprintf(format, a...))
}

// run reads the header of a run of the RLE and bit-packing hybrid: either count
// values of one value, or count values that are packed.
func run(src []byte) (count uint64, packed bool, rest []byte, err error) {
	var h uint64
	n := 1
	if len(src) > 0 && src[0] < 0x80 {
		h = uint64(src[0])
	} else if h, n = binary.Uvarint(src); n <= 0 {
		return 0, false, nil, corrupt("runs end early")
	}
	if h>>1 > 1<<32 {
		return 0, false, nil, corrupt("a run of %d values", h>>1)
	}
	if h&1 == 1 {
		return h >> 1 * 8, true, src[n:], nil
	}
	return h >> 1, false, src[n:], nil
}

// hybridLevels fills dst with levels up to greatest.
func hybridLevels(dst, src []byte, greatest int) error {
	width := bits.Len(uint(greatest))
	check := greatest+1 != 1<<width
	for len(dst) > 0 {
		count, packed, rest, err := run(src)
		if err != nil {
			return err
		}
		n := int(min(count, uint64(len(dst))))
		if packed {
			// The last group may be cut where nothing is needed of it.
			size := min(int(count/8)*width, len(rest))
			if size*8 < n*width {
				return corrupt("packed levels end early")
			}
			unpackLevels(dst[:n], rest[:size], width)
			if check && n > 0 && int(slices.Max(dst[:n])) > greatest {
				return corrupt("there is a level above %d", greatest)
			}
			src = rest[size:]
		} else {
			if len(rest) == 0 {
				return corrupt("runs end early")
			}
			if int(rest[0]) > greatest {
				return corrupt("there is level %d above %d", rest[0], greatest)
			}
			fill(dst[:n], rest[0])
			src = rest[1:]
		}
		dst = dst[n:]
	}
	return nil
}

// fill sets all of dst.
func fill(dst []byte, v byte) {
	if len(dst) > 64 {
		if v == 0 {
			clear(dst)
			return
		}
		dst[0] = v
		for n := 1; n < len(dst); n *= 2 {
			copy(dst[n:], dst[:n])
		}
		return
	}
	for x := uint64(v) * 0x0101010101010101; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, x)
	}
	for i := range dst {
		dst[i] = v
	}
}

// spread has the bits of a byte as bytes.
var spread = func() (t [256]uint64) {
	for b := range t {
		for i := range 8 {
			t[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return t
}()

// unpackLevels unpacks values of up to eight bits, least significant bit first.
// src has at least as many as dst.
func unpackLevels(dst, src []byte, width int) {
	if width == 1 {
		for len(dst) >= 8 {
			binary.LittleEndian.PutUint64(dst, spread[src[0]])
			dst, src = dst[8:], src[1:]
		}
	} else {
		mask := uint64(1)<<width - 1
		for len(dst) >= 8 && len(src) >= 8 {
			x := binary.LittleEndian.Uint64(src)
			d := dst[:8]
			for i := range d {
				d[i] = byte(x & mask)
				x >>= width
			}
			dst, src = dst[8:], src[width:]
		}
	}
	for i := range dst {
		bit := i * width
		x := uint(src[bit>>3])
		if next := bit>>3 + 1; next < len(src) {
			x |= uint(src[next]) << 8
		}
		dst[i] = byte(x >> (bit & 7) & (1<<width - 1))
	}
}

// packedLevels fills dst from the deprecated BIT_PACKED encoding, most significant
// bit first, and says how many bytes it took.
func packedLevels(dst, src []byte, greatest int) (int, error) {
	width := bits.Len(uint(greatest))
	size := (len(dst)*width + 7) / 8
	if size > len(src) {
		return 0, corrupt("packed levels end early")
	}
	bit := 0
	for i := range dst {
		v := 0
		for range width {
			v = v<<1 | int(src[bit>>3]>>(7-bit&7)&1)
			bit++
		}
		if v > greatest {
			return 0, corrupt("there is level %d above %d", v, greatest)
		}
		dst[i] = byte(v)
	}
	return size, nil
}

// Codes fills dst with dictionary codes as a page has them: a byte with their
// width, and runs. One that is not less than size is fault.Corrupt.
func Codes(dst []uint32, src []byte, size int) error {
	if err := AnyCodes(dst, src); err != nil || len(dst) == 0 {
		return err
	}
	if greatest := slices.Max(dst); uint64(greatest) >= uint64(max(size, 0)) {
		return corrupt("there is dictionary code %d, the dictionary has %d entries", greatest, size)
	}
	return nil
}

// AnyCodes is Codes for who looks himself whether the dictionary has every code.
func AnyCodes(dst []uint32, src []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if len(src) == 0 {
		return corrupt("there are no dictionary codes")
	}
	width := int(src[0])
	if width > 32 {
		return corrupt("dictionary codes of %d bits", width)
	}
	for src = src[1:]; len(dst) > 0; {
		count, packed, rest, err := run(src)
		if err != nil {
			return err
		}
		n := int(min(count, uint64(len(dst))))
		if packed {
			most := min(count/8*uint64(width), uint64(len(rest)))
			if most*8 < uint64(n)*uint64(width) {
				return corrupt("packed dictionary codes end early")
			}
			unpack32(dst[:n], rest, width)
			src = rest[most:]
		} else {
			size := (width + 7) / 8
			if len(rest) < size {
				return corrupt("runs end early")
			}
			var v uint32
			for i := range size {
				v |= uint32(rest[i]) << (8 * i)
			}
			fill32(dst[:n], v)
			src = rest[size:]
		}
		dst = dst[n:]
	}
	return nil
}

// DefinitionLevels fills dst with levels up to greatest, in runs as a page has them,
// without a length in front. A greater one is fault.Corrupt.
func DefinitionLevels(dst, src []byte, greatest int) error {
	return hybridLevels(dst, src, greatest)
}

// CountLevels is how many of so many levels up to greatest are as great as that.
// They are in runs as a page has them, without a length in front; a greater one is
// fault.Corrupt.
func CountLevels(src []byte, levels, greatest int) (int, error) {
	width := bits.Len(uint(greatest))
	most := []byte{byte(greatest)}
	var block [512]byte
	found := 0
	for levels > 0 {
		count, packed, rest, err := run(src)
		if err != nil {
			return 0, err
		}
		n := int(min(count, uint64(levels)))
		levels -= n
		if !packed {
			if len(rest) == 0 {
				return 0, corrupt("runs end early")
			}
			if int(rest[0]) > greatest {
				return 0, corrupt("there is level %d above %d", rest[0], greatest)
			}
			if int(rest[0]) == greatest {
				found += n
			}
			src = rest[1:]
			continue
		}
		size := int(min(count/8*uint64(width), uint64(len(rest))))
		if size*8 < n*width {
			return 0, corrupt("packed levels end early")
		}
		for at := 0; n > 0; at += len(block) / 8 * width {
			some := block[:min(n, len(block))]
			unpackLevels(some, rest[at:size], width)
			if int(slices.Max(some)) > greatest {
				return 0, corrupt("there is a level above %d", greatest)
			}
			found += bytes.Count(some, most)
			n -= len(some)
		}
		src = rest[size:]
	}
	return found, nil
}
