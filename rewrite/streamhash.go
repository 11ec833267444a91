package rewrite

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// hashBlock is how many bytes a streamHash hashes at once.
const hashBlock = 16 << 10

// streamHash is a hash of the bytes it is given, in whatever pieces they come. It
// hashes blocks where they lie, of which a streaming xxh3 would copy every byte.
type streamHash struct {
	// blocks is the hash of the blocks that are full, open that of the bytes in the next
	// one, of which there are opened; bytes counts all.
	blocks, bytes uint64
	open          xxh3.Hasher
	opened        int
}

func (h *streamHash) write(b []byte) {
	h.bytes += uint64(len(b))
	for len(b) > 0 {
		if h.opened == 0 && len(b) >= hashBlock {
			h.add(xxh3.Hash(b[:hashBlock]))
			b = b[hashBlock:]
			continue
		}
		n := min(hashBlock-h.opened, len(b))
		_, _ = h.open.Write(b[:n])
		b = b[n:]
		if h.opened += n; h.opened == hashBlock {
			h.add(h.open.Sum64())
			h.open.Reset()
			h.opened = 0
		}
	}
}

func (h *streamHash) add(block uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], block)
	h.blocks = xxh3.HashSeed(b[:], h.blocks)
}

// sum is the hash of all bytes so far.
func (h *streamHash) sum() uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], h.open.Sum64())
	binary.LittleEndian.PutUint64(b[8:], h.bytes)
	return xxh3.HashSeed(b[:], h.blocks)
}
