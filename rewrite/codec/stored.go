package codec

import "encoding/binary"

const (
	zstdMagic = 0xfd2fb528
	// maxBlock is the greatest length of a block of any frame.
	maxBlock = 128 << 10
	// A frame of one segment needs a window as long as its content, which not every
	// reader grants above this.
	maxSegment = 8 << 20
)

// AppendStored appends a zstd frame to dst whose blocks are src as it is, not
// compressed (RFC 8878, section 3.1.1). src is shorter than 4 GiB.
func AppendStored(dst, src []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	// The descriptor: the length of the content has 1, 2 or 4 bytes, there is no
	// checksum, and no dictionary.
	const single = 1 << 5
	switch n := len(src); {
	case n < 256:
		dst = append(dst, single, byte(n))
	case n < 256+1<<16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 1<<6|single), uint16(n-256))
	case n <= maxSegment:
		dst = binary.LittleEndian.AppendUint32(append(dst, 2<<6|single), uint32(n))
	default:
		const window = 7 << 3 // 128 KiB
		dst = binary.LittleEndian.AppendUint32(append(dst, 2<<6, window), uint32(n))
	}
	for {
		block := src[:min(len(src), maxBlock)]
		src = src[len(block):]
		head := uint32(len(block)) << 3 // type 0: raw
		if len(src) == 0 {
			head |= 1
		}
		dst = append(dst, byte(head), byte(head>>8), byte(head>>16))
		dst = append(dst, block...)
		if len(src) == 0 {
			return dst
		}
	}
}
