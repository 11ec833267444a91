package filertest

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// piece is one chunk of a file being read, in the order of its writing.
type piece struct {
	chunk *filer_pb.FileChunk
	data  []byte
}

// assemble fills buf with the file's bytes from off on. Later chunks cover
// earlier ones; what no chunk covers is zero, as the filer reads it.
func (s *store) assemble(pb *filer_pb.Entry, off int64, buf []byte) error {
	clear(buf)
	if len(pb.GetChunks()) == 0 {
		if off < int64(len(pb.GetContent())) {
			copy(buf, pb.GetContent()[off:])
		}
		return nil
	}
	var pieces []piece
	for _, c := range pb.GetChunks() {
		if c.GetOffset() >= off+int64(len(buf)) || c.GetOffset()+int64(c.GetSize()) <= off {
			continue
		}
		data, ok := s.chunks.get(c.GetFileIdString())
		if !ok {
			return fault.Wrap(fault.Stale, "read chunk "+c.GetFileIdString(), filer.ErrNotFound)
		}
		if uint64(len(data)) < c.GetSize() {
			return fault.New(fault.Corrupt, fmt.Sprintf("chunk %s has %d bytes, its entry says %d", c.GetFileIdString(), len(data), c.GetSize()))
		}
		pieces = append(pieces, piece{c, data})
	}
	slices.SortStableFunc(pieces, func(a, b piece) int {
		return cmp.Compare(a.chunk.GetModifiedTsNs(), b.chunk.GetModifiedTsNs())
	})
	for _, p := range pieces {
		from := max(off-p.chunk.GetOffset(), 0)
		at := p.chunk.GetOffset() + from - off
		n := copy(buf[at:], p.data[from:p.chunk.GetSize()])
		mask(buf[at:at+int64(n)], p.chunk.GetCipherKey(), from)
	}
	return nil
}

// cipher returns data as the volume holds it. The cipher is a stand-in whose
// only property is that the stored bytes are not the plain ones.
func cipher(data, key []byte) []byte {
	out := slices.Clone(data)
	mask(out, key, 0)
	return out
}

func mask(b, key []byte, at int64) {
	if len(key) == 0 {
		return
	}
	pad := bytes.Repeat(key, 512)
	for i := range pad {
		pad[i] |= 1
	}
	for skip := int(at % int64(len(key))); len(b) > 0; skip = 0 {
		b = b[subtle.XORBytes(b, b, pad[skip:]):]
	}
}

func etag(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}
