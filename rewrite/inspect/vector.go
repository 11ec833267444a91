package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/seaice/seaice/fault"
)

// MaxVectorBytes bounds a deletion vector as stored.
const MaxVectorBytes = 256 << 20

// Vector is what a deletion vector holds.
type Vector struct {
	// Deleted is the number of positions, Last the greatest or -1.
	Deleted, Last int64
}

// ParseVector reads a blob deletion-vector-v1 (Puffin spec): its length and
// magic, a bitmap for each key of 32 high bits, and a checksum. Anything wrong
// with it is fault.Corrupt. Positions are not unpacked: a few bytes may stand for
// billions.
func ParseVector(blob []byte) (v Vector, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Corrupt, fmt.Sprintf("read a deletion vector: %v", p))
		}
	}()
	const (
		head  = 8 // length and magic
		tail  = 4 // checksum
		magic = 0x6439D3D1
	)
	v.Last = -1
	if len(blob) < head+tail+8 {
		return v, fault.New(fault.Corrupt, fmt.Sprintf("%d bytes are no deletion vector", len(blob)))
	}
	if n := binary.BigEndian.Uint32(blob); int64(n) != int64(len(blob)-head+4-tail) {
		return v, fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector says %d bytes, it has %d", n, len(blob)-head+4-tail))
	}
	if m := binary.LittleEndian.Uint32(blob[4:]); m != magic {
		return v, fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector has the magic number %08x", m))
	}
	end := len(blob) - tail
	if sum := crc32.ChecksumIEEE(blob[4:end]); sum != binary.BigEndian.Uint32(blob[end:]) {
		return v, fault.New(fault.Corrupt, "the checksum of the deletion vector is wrong")
	}
	return v, v.bitmaps(blob[head:end])
}

func (v *Vector) bitmaps(b []byte) error {
	count := binary.LittleEndian.Uint64(b)
	in := bytes.NewReader(b[8:])
	before := int64(-1)
	for i := range count {
		var raw [4]byte
		if n, _ := in.Read(raw[:]); n < len(raw) {
			return fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector has %d of %d bitmaps", i, count))
		}
		key := int64(binary.LittleEndian.Uint32(raw[:]))
		if key <= before || key > math.MaxInt32 {
			return fault.New(fault.Corrupt, fmt.Sprintf("key %d of the deletion vector follows %d", key, before))
		}
		before = key
		bm := roaring.New()
		if _, err := bm.ReadFrom(in); err != nil {
			return fault.Wrap(fault.Corrupt, fmt.Sprintf("read bitmap %d of the deletion vector", key), err)
		}
		if err := bm.Validate(); err != nil {
			return fault.Wrap(fault.Corrupt, fmt.Sprintf("read bitmap %d of the deletion vector", key), err)
		}
		if n := bm.GetCardinality(); n > 0 {
			if int64(n) > math.MaxInt64-v.Deleted {
				return fault.New(fault.Corrupt, "the deletion vector has more positions than can be")
			}
			v.Deleted += int64(n)
			v.Last = key<<32 | int64(bm.Maximum())
		}
	}
	if in.Len() > 0 {
		return fault.New(fault.Corrupt, fmt.Sprintf("%d bytes behind the last bitmap", in.Len()))
	}
	return nil
}
