package deletes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/seaice/seaice/fault"
)

// MaxVectorBytes bounds a deletion vector as stored.
const MaxVectorBytes = 256 << 20

// maxParts bounds the bitmaps of a vector that hold something; each is for 4
// billion rows.
const maxParts = 1 << 16

// The frame of a blob deletion-vector-v1 (Puffin spec): the length of magic and
// bitmaps, the magic number, the bitmaps, their checksum.
const (
	vectorHead  = 8
	vectorTail  = 4
	vectorMagic = 0x6439D3D1
)

// Vector is a deletion vector as a manifest entry describes it.
type Vector struct {
	// Offset and Size are content_offset and content_size_in_bytes.
	Offset, Size int64
	// Records is the entry's record_count, which must be the number of positions.
	Records int64
	// Rows is the number of rows of the data file, which all positions must be
	// below.
	Rows int64
}

// ReadVector reads the deletion vector at its place in the Puffin file that in
// holds size bytes of. A length, magic number, checksum or number of positions
// that is wrong, and a position that the data file does not have, is
// fault.Corrupt (F021).
func ReadVector(in io.ReaderAt, size int64, v Vector) (*Positions, error) {
	if v.Size < vectorHead+vectorTail+8 || v.Offset < int64(len(puffinMagic)) || v.Offset > size-v.Size {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("a deletion vector of %d bytes at %d of a file of %d", v.Size, v.Offset, size))
	}
	if v.Size > MaxVectorBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("a deletion vector of %d bytes, of %d", v.Size, MaxVectorBytes))
	}
	blob := make([]byte, v.Size)
	if err := readAt(in, blob, v.Offset); err != nil {
		return nil, fault.In(fmt.Sprintf("read the deletion vector at %d", v.Offset), err)
	}
	p, err := ParseVector(blob, v.Rows)
	if err == nil && p.Len() != v.Records {
		err = fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector has %d positions, its manifest says %d", p.Len(), v.Records))
	}
	if err != nil {
		return nil, fault.In(fmt.Sprintf("read the deletion vector at %d", v.Offset), err)
	}
	return p, nil
}

// ParseVector reads a blob deletion-vector-v1 for a data file of so many rows.
// The blob is not kept.
func ParseVector(blob []byte, rows int64) (p *Positions, err error) {
	defer guard(&err)
	if len(blob) < vectorHead+vectorTail+8 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("%d bytes are no deletion vector", len(blob)))
	}
	if n, want := binary.BigEndian.Uint32(blob), len(blob)-vectorHead+4-vectorTail; int64(n) != int64(want) {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector says %d bytes, it has %d", n, want))
	}
	if m := binary.LittleEndian.Uint32(blob[4:]); m != vectorMagic {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector has the magic number %08x", m))
	}
	end := len(blob) - vectorTail
	if sum := crc32.ChecksumIEEE(blob[4:end]); sum != binary.BigEndian.Uint32(blob[end:]) {
		return nil, fault.New(fault.Corrupt, "the checksum of the deletion vector is wrong")
	}
	return parseParts(blob[vectorHead:end], rows)
}

// parseParts reads the bitmaps of a vector: their number, and each behind its
// key. Java writes empty ones for the keys it skips.
func parseParts(b []byte, rows int64) (*Positions, error) {
	p := &Positions{}
	count := binary.LittleEndian.Uint64(b)
	b = b[8:]
	before := int64(-1)
	for i := range count {
		if len(b) < 4 {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector has %d of %d bitmaps", i, count))
		}
		key := int64(binary.LittleEndian.Uint32(b))
		if key <= before || key > math.MaxInt32 {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("key %d of the deletion vector follows %d", key, before))
		}
		before = key
		bits, s, err := parseBitmap(b[4:])
		if err != nil {
			return nil, fault.In(fmt.Sprintf("read bitmap %d of the deletion vector", key), err)
		}
		b = b[4+s.bytes:]
		if bits == nil {
			continue
		}
		if len(p.parts) == maxParts {
			return nil, fault.New(fault.TooLarge, fmt.Sprintf("the deletion vector has more than %d bitmaps", maxParts))
		}
		p.parts = append(p.parts, part{key: uint32(key), bits: bits})
		if last := p.Max(); last >= rows {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("position %d is deleted in a file of %d rows", last, rows))
		}
	}
	if len(b) > 0 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("%d bytes behind the last bitmap of the deletion vector", len(b)))
	}
	return p, nil
}

// AppendVector appends the positions as a blob deletion-vector-v1 to b, with runs
// where they are shorter. One above MaxVectorBytes is fault.TooLarge.
func (p *Positions) AppendVector(b []byte) ([]byte, error) {
	begin := len(b)
	b = append(b, make([]byte, vectorHead)...)
	binary.LittleEndian.PutUint32(b[begin+4:], vectorMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(p.all())))
	out := bytes.NewBuffer(b)
	for _, x := range p.all() {
		bits := x.bits.Clone() // optimising changes it, and p may be read elsewhere
		bits.RunOptimize()
		if n := int64(out.Len()-begin) + int64(bits.GetSerializedSizeInBytes()) + 4 + vectorTail; n > MaxVectorBytes {
			return nil, fault.New(fault.TooLarge, fmt.Sprintf("the deletion vector takes %d bytes, of %d", n, MaxVectorBytes))
		}
		_, _ = out.Write(binary.LittleEndian.AppendUint32(nil, x.key)) // a Buffer takes everything
		if _, err := bits.WriteTo(out); err != nil {
			return nil, fault.Wrap(fault.Halt, "write a bitmap", err)
		}
	}
	b = out.Bytes()
	binary.BigEndian.PutUint32(b[begin:], uint32(len(b)-begin-4))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[begin+4:])), nil
}

// guard turns a panic of a library into fault.Corrupt.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fault.New(fault.Corrupt, fmt.Sprintf("the input is more than the library can take: %v", p))
	}
}

// readAt fills b. Bytes that the file does not have are fault.Corrupt.
func readAt(in io.ReaderAt, b []byte, off int64) error {
	n, err := in.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	doing := fmt.Sprintf("read %d bytes at %d", len(b), off)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Wrap(fault.Corrupt, doing, io.ErrUnexpectedEOF)
	}
	return fault.In(doing, err)
}
