package encode

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Bloom is a split block bloom filter with XXH64 that is filled before the number
// of distinct values is known (parquet-format, BloomFilter.md). It is made at its
// greatest size and folded to the size its content needs: with sizes that are
// powers of two the block of a hash is its upper bits, so that two neighbours of a
// filter are one block of a filter of half the size.
type Bloom struct {
	words []uint32 // 8 to a block
	fpp   float64
}

// Bounds of a filter's size, as readers have them (BloomFilter.md).
const (
	bloomBlock    = 32
	minBloomBytes = bloomBlock
	maxBloomBytes = 128 << 20
)

// uselessBloom is the share of false positives above which a filter is not worth
// its bytes.
const uselessBloom = 0.25

// NewBloom returns an empty filter of at most maxBytes, which is rounded down to
// a power of two, for a share of false positives fpp between 0 and 1.
func NewBloom(maxBytes int, fpp float64) (*Bloom, error) {
	if maxBytes < minBloomBytes || maxBytes > maxBloomBytes {
		return nil, fault.New(fault.TooLarge, "bloom filter: between 32 bytes and 128 MiB are possible")
	}
	if !(fpp > 0 && fpp < 1) {
		return nil, fault.New(fault.Unsupported, "bloom filter: the false positive probability must be between 0 and 1")
	}
	size := 1 << (bits.Len(uint(maxBytes)) - 1)
	return &Bloom{words: make([]uint32, size/4), fpp: fpp}, nil
}

// CanBloom reports that a leaf can have a bloom filter.
func CanBloom(n *format.Node) bool {
	return n.Type != format.Boolean && n.Type != format.Int96
}

// salt has the odd constants of BloomFilter.md.
var salt = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// Add adds a value in PLAIN form without length.
func (b *Bloom) Add(v []byte) { b.AddHash(xxhash.Sum64(v)) }

// AddHash adds the XXH64 of a value.
func (b *Bloom) AddHash(h uint64) {
	blocks := uint64(len(b.words) / 8)
	i := (h >> 32) * blocks >> 32 * 8
	block := b.words[i : i+8 : i+8]
	x := uint32(h)
	for j := range block {
		block[j] |= 1 << (x * salt[j] >> 27)
	}
}

// AddValues adds the values [from, to) of v, and of floats what engines take them for
// equal to.
func (b *Bloom) AddValues(v *column.Values, from, to int) {
	floats := v.Type == format.Float || v.Type == format.Double
	for i := from; i < to; i++ {
		b.Add(v.At(i))
		if floats {
			b.addEqual(v.At(i))
		}
	}
}

// addEqual adds the other zero beside a zero, and beside a NaN the one that all write:
// readers look for the bits of what they were asked, and leave rows out without them.
func (b *Bloom) addEqual(v []byte) {
	if len(v) == 4 {
		bits := binary.LittleEndian.Uint32(v)
		switch x := math.Float32frombits(bits); {
		case x == 0:
			b.Add(four(bits ^ 1<<31))
		case x != x:
			b.Add(four(0x7fc0_0000))
		}
		return
	}
	bits := binary.LittleEndian.Uint64(v)
	switch x := math.Float64frombits(bits); {
	case x == 0:
		b.Add(eight(bits ^ 1<<63))
	case x != x:
		b.Add(eight(0x7ff8_0000_0000_0000))
	}
}

// Memory is what the filter takes, in bytes.
func (b *Bloom) Memory() int { return 4 * len(b.words) }

// distinct estimates the number of distinct values from the share of bits that
// are not set: each value sets one bit in each word of a block.
func (b *Bloom) distinct() float64 {
	set := 0
	for _, w := range b.words {
		set += bits.OnesCount32(w)
	}
	total := 32 * len(b.words)
	if set == total {
		return math.Inf(1)
	}
	blocks := float64(len(b.words) / 8)
	return -32 * blocks * math.Log1p(-float64(set)/float64(total))
}

// falsePositives is the share of false positives of a filter of so many bytes
// with n values.
func falsePositives(n float64, size int) float64 {
	return math.Pow(-math.Expm1(-8*n/float64(8*size)), 8)
}

// Bytes is the bitset at the least size that keeps the false positive share, or
// the greatest allowed. It is nil when not even that is of use, or when the
// filter is empty. The filter is used up.
func (b *Bloom) Bytes() []byte {
	n := b.distinct()
	if n == 0 || falsePositives(n, 4*len(b.words)) > uselessBloom {
		return nil
	}
	words := b.words
	for len(words) > 8 && falsePositives(n, 2*len(words)) <= b.fpp {
		half := len(words) / 2
		for i := 0; i < half; i += 8 {
			for j := range 8 {
				words[i+j] = words[2*i+j] | words[2*i+8+j]
			}
		}
		words = words[:half]
	}
	out := make([]byte, 0, 4*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	b.words = nil
	return out
}

// InBloom reports that the bitset of a filter may hold the value with the XXH64
// h. A bitset of a length that no filter has holds everything.
func InBloom(bitset []byte, h uint64) bool {
	blocks := uint64(len(bitset) / bloomBlock)
	if blocks == 0 || len(bitset)%bloomBlock != 0 {
		return true
	}
	block := bitset[(h>>32)*blocks>>32*bloomBlock:]
	x := uint32(h)
	for j := range 8 {
		if binary.LittleEndian.Uint32(block[4*j:])&(1<<(x*salt[j]>>27)) == 0 {
			return false
		}
	}
	return true
}
