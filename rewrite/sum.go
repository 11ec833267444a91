package rewrite

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/rewrite/column"
)

// sum is the content of a column as a number that does not depend on how it is
// stored: the sum of a hash of every level, with the row of the output it is in,
// its place in the row, its repetition and definition level, and its value. Two
// columns with the same rows in the same places have the same sum, whatever
// their dictionaries, encodings and pages are.
type sum struct {
	// row is the number of rows seen, place the next place in the row begun.
	row   uint64
	place uint64
	// total and values are what was summed up.
	total  uint64
	values int64
}

const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0xd6e8feb86659fd93
	mixC = 0xa0761d6478bd642f
	mixD = 0xe7037ed1a0b428db
)

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hashValue is the hash of one value.
func hashValue(v []byte) uint64 {
	switch len(v) {
	case 8:
		x := binary.LittleEndian.Uint64(v)
		return fold(x^mixC, 8^mixD)
	case 4:
		x := uint64(binary.LittleEndian.Uint32(v))
		return fold(x^mixC, 4^mixD)
	}
	return xxh3.Hash(v)
}

// level adds one level. The value's hash is 0 where there is none.
func (s *sum) level(rep, def byte, value uint64) {
	if rep == 0 {
		s.row++
		s.place = 0
	} else {
		s.place++
	}
	at := s.row*mixA + s.place*mixB + uint64(rep)<<8 + uint64(def)
	s.total += fold(at^mixD, value^mixC^bits.RotateLeft64(at, 32))
}

// add adds a batch, which begins at the begin of a row or goes on in the row
// that the last one ended in.
func (s *sum) add(b *column.Batch, maxDef int) {
	s.values += int64(b.Levels)
	v := 0
	at := func(i int) uint64 { return hashValue(b.Values.At(i)) }
	switch b.Values.Width {
	case 8:
		at = func(i int) uint64 {
			return fold(binary.LittleEndian.Uint64(b.Values.Data[i*8:])^mixC, 8^mixD)
		}
	case 4:
		at = func(i int) uint64 {
			return fold(uint64(binary.LittleEndian.Uint32(b.Values.Data[i*4:]))^mixC, 4^mixD)
		}
	}
	for i := range b.Levels {
		rep, def := byte(0), byte(maxDef)
		if b.Rep != nil {
			rep = b.Rep[i]
		}
		if b.Def != nil {
			def = b.Def[i]
		}
		h := uint64(0)
		if int(def) == maxDef {
			h = at(v)
			v++
		}
		s.level(rep, def, h)
	}
}
