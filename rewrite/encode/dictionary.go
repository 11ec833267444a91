package encode

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Dictionary is a growing set of values with their codes, in the order in which
// they came. Values are equal when their bytes are: NaNs stay as they are and the
// two zeros are two values.
type Dictionary struct {
	leaf   *format.Node
	limit  int
	values column.Values
	// size is the PLAIN length of the values.
	size int
	// table has code+1 at the hash of a value, open addressing; 0 is free.
	table []uint32
	// hashes of the entries, for byte strings only: they spare comparisons.
	hashes []uint32
	seed   maphash.Seed
	// k0, k1 key the hash of numbers, so that input cannot choose collisions.
	k0, k1 uint64
}

// maxDictionaryBytes bounds any dictionary: its page must fit an int32 size, and
// offsets are 32 bits.
const maxDictionaryBytes = 1 << 30

// NewDictionary returns an empty dictionary for a leaf that takes values until
// their PLAIN form would be longer than limit bytes.
func NewDictionary(leaf *format.Node, limit int) (*Dictionary, error) {
	width, err := valueWidth(leaf)
	if err != nil {
		return nil, err
	}
	if leaf.Type == format.Boolean {
		return nil, fault.New(fault.Unsupported, "column "+leaf.Name+": dictionary of booleans")
	}
	d := &Dictionary{
		leaf: leaf, limit: min(limit, maxDictionaryBytes), seed: maphash.MakeSeed(),
		k0: rand.Uint64(), k1: rand.Uint64() | 1,
		table: make([]uint32, 256),
	}
	d.values.Reset(leaf.Type, width)
	return d, nil
}

// Len is the number of entries.
func (d *Dictionary) Len() int { return d.values.Len() }

// Size is the length of the entries in PLAIN form in bytes.
func (d *Dictionary) Size() int { return d.size }

// Memory is what the dictionary takes, in bytes.
func (d *Dictionary) Memory() int {
	return cap(d.values.Data) + 4*(cap(d.values.Offsets)+len(d.table)+cap(d.hashes))
}

// Values are the entries in the order of their codes. They must not be changed.
func (d *Dictionary) Values() *column.Values { return &d.values }

// Code is the code of v and whether it is in the dictionary.
func (d *Dictionary) Code(v []byte) (uint32, bool) {
	slot, hash := d.slot(v)
	code, _ := d.find(v, slot, hash)
	return code, code != missing
}

// missing is what find and put answer for a value without a code.
const missing = ^uint32(0)

func (d *Dictionary) slot(v []byte) (slot, hash uint32) {
	switch d.values.Width {
	case 8:
		h := d.mix(binary.LittleEndian.Uint64(v))
		return uint32(h) & uint32(len(d.table)-1), 0
	case 4:
		h := d.mix(uint64(binary.LittleEndian.Uint32(v)))
		return uint32(h) & uint32(len(d.table)-1), 0
	}
	hash = uint32(maphash.Bytes(d.seed, v))
	return hash & uint32(len(d.table)-1), hash
}

func (d *Dictionary) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^d.k0, d.k1)
	return hi ^ lo
}

// find looks from slot on and answers the code, or missing and the free slot.
func (d *Dictionary) find(v []byte, slot, hash uint32) (code, free uint32) {
	mask := uint32(len(d.table) - 1)
	for {
		c := d.table[slot]
		if c == 0 {
			return missing, slot
		}
		c--
		if (d.hashes == nil || d.hashes[c] == hash) && bytes.Equal(d.values.At(int(c)), v) {
			return c, slot
		}
		slot = (slot + 1) & mask
	}
}

// plainSize is the length of v in PLAIN form.
func (d *Dictionary) plainSize(v []byte) int {
	if d.values.Width == 0 {
		return len(v) + 4
	}
	return len(v)
}

// put finds v or adds it; missing when the limit does not allow it.
func (d *Dictionary) put(v []byte) uint32 {
	slot, hash := d.slot(v)
	code, free := d.find(v, slot, hash)
	if code != missing {
		return code
	}
	return d.insert(v, free, hash)
}

func (d *Dictionary) insert(v []byte, free, hash uint32) uint32 {
	size := d.plainSize(v)
	if d.size+size > d.limit {
		return missing
	}
	code := uint32(d.Len())
	d.size += size
	d.values.Append(v)
	if d.hashed() {
		d.hashes = append(d.hashes, hash)
	}
	d.table[free] = code + 1
	if 2*int(code+1) > len(d.table) {
		d.rehash(2 * len(d.table))
	}
	return code
}

// hashed reports that hashes of entries are kept.
func (d *Dictionary) hashed() bool { return d.values.Width != 4 && d.values.Width != 8 }

func (d *Dictionary) rehash(size int) {
	d.table = make([]uint32, size)
	mask := uint32(size - 1)
	for i := range d.Len() {
		var slot uint32
		if d.hashed() {
			slot = d.hashes[i] & mask
		} else {
			slot, _ = d.slot(d.values.At(i))
		}
		for d.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		d.table[slot] = uint32(i) + 1
	}
}

// truncate takes the entries from n on away again.
func (d *Dictionary) truncate(n int) {
	for i := n; i < d.Len(); i++ {
		d.size -= d.plainSize(d.values.At(i))
	}
	if d.values.Width > 0 {
		d.values.Data = d.values.Data[:n*d.values.Width]
	} else {
		d.values.Data = d.values.Data[:d.values.Offsets[n]]
		d.values.Offsets = d.values.Offsets[:n+1]
	}
	if d.hashed() {
		d.hashes = d.hashes[:n]
	}
	d.rehash(len(d.table))
}

// codes appends the codes of the values [from, to) of v to dst. With grow values
// that are new are added. It stops at the first value without a code and answers
// how many it took.
func (d *Dictionary) codes(dst []uint32, v *column.Values, from, to int, grow bool) ([]uint32, int) {
	switch d.values.Width {
	case 8:
		return d.codes8(dst, v.Data[from*8:to*8], grow)
	case 4:
		return d.codes4(dst, v.Data[from*4:to*4], grow)
	case 0:
		return d.codesBytes(dst, v, from, to, grow)
	}
	for i := from; i < to; i++ {
		value := v.At(i)
		slot, hash := d.slot(value)
		code, free := d.find(value, slot, hash)
		if code == missing {
			if grow {
				code = d.insert(value, free, hash)
			}
			if code == missing {
				return dst, i - from
			}
		}
		dst = append(dst, code)
	}
	return dst, to - from
}

// codesBytes is codes for byte strings of any length.
func (d *Dictionary) codesBytes(dst []uint32, v *column.Values, from, to int, grow bool) ([]uint32, int) {
	for i := from; i < to; i++ {
		value := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		hash := uint32(maphash.Bytes(d.seed, value))
		mask := uint32(len(d.table) - 1)
		slot, code := hash&mask, missing
		for ; d.table[slot] != 0; slot = (slot + 1) & mask {
			c := d.table[slot] - 1
			if d.hashes[c] == hash && string(d.values.Data[d.values.Offsets[c]:d.values.Offsets[c+1]]) == string(value) {
				code = c
				break
			}
		}
		if code == missing {
			if grow {
				code = d.insert(value, slot, hash)
			}
			if code == missing {
				return dst, i - from
			}
		}
		dst = append(dst, code)
	}
	return dst, to - from
}

func (d *Dictionary) codes8(dst []uint32, data []byte, grow bool) ([]uint32, int) {
	n := 0
	mask := uint32(len(d.table) - 1)
	last, lastCode := uint64(0), missing
	for ; len(data) >= 8; data = data[8:] {
		x := binary.LittleEndian.Uint64(data)
		if x == last && lastCode != missing {
			dst = append(dst, lastCode)
			n++
			continue
		}
		slot := uint32(d.mix(x)) & mask
		code := missing
		for {
			c := d.table[slot]
			if c == 0 {
				break
			}
			if binary.LittleEndian.Uint64(d.values.Data[int(c-1)*8:]) == x {
				code = c - 1
				break
			}
			slot = (slot + 1) & mask
		}
		if code == missing {
			if grow {
				code = d.insert(data[:8], slot, 0)
				mask = uint32(len(d.table) - 1)
			}
			if code == missing {
				return dst, n
			}
		}
		last, lastCode = x, code
		dst = append(dst, code)
		n++
	}
	return dst, n
}

func (d *Dictionary) codes4(dst []uint32, data []byte, grow bool) ([]uint32, int) {
	n := 0
	mask := uint32(len(d.table) - 1)
	for ; len(data) >= 4; data = data[4:] {
		x := binary.LittleEndian.Uint32(data)
		slot := uint32(d.mix(uint64(x))) & mask
		code := missing
		for {
			c := d.table[slot]
			if c == 0 {
				break
			}
			if binary.LittleEndian.Uint32(d.values.Data[int(c-1)*4:]) == x {
				code = c - 1
				break
			}
			slot = (slot + 1) & mask
		}
		if code == missing {
			if grow {
				code = d.insert(data[:4], slot, 0)
				mask = uint32(len(d.table) - 1)
			}
			if code == missing {
				return dst, n
			}
		}
		dst = append(dst, code)
		n++
	}
	return dst, n
}

// Mapping says which codes of a dictionary the entries of another one have.
type Mapping struct {
	// Codes has the code of each entry.
	Codes []uint32
	// Identity reports that every entry has its own number as its code, so that
	// pages need not be changed.
	Identity bool
}

// Union adds all entries of another dictionary of the same type. When the limit
// does not allow all of them it adds none, and ok is false.
func (d *Dictionary) Union(entries *column.Values) (m Mapping, ok bool, err error) {
	if entries.Type != d.leaf.Type || entries.Width != d.values.Width {
		return Mapping{}, false, fault.New(fault.Halt, "column "+d.leaf.Name+": union of dictionaries of different types")
	}
	before, n := d.Len(), entries.Len()
	if before == 0 {
		// Dictionaries that are merged mostly have the same entries.
		d.Grow(n, len(entries.Data))
	}
	codes, taken := d.codes(make([]uint32, 0, n), entries, 0, n, true)
	if taken < n {
		d.truncate(before)
		return Mapping{}, false, nil
	}
	m = Mapping{Codes: codes, Identity: true}
	for i, c := range codes {
		if c != uint32(i) {
			m.Identity = false
			break
		}
	}
	return m, true, nil
}

// Grow makes room for n entries of so many bytes in all, without lengths.
func (d *Dictionary) Grow(n, bytes int) {
	d.values.Data = slices.Grow(d.values.Data, min(bytes, d.limit))
	if d.values.Width == 0 {
		d.values.Offsets = slices.Grow(d.values.Offsets, n)
	}
	if d.hashed() {
		d.hashes = slices.Grow(d.hashes, n)
	}
	if size := 1 << bits.Len(uint(2*(d.Len()+n))); size > len(d.table) {
		d.rehash(size)
	}
}

// Put is the code of v, which is added if it is new; ok is false when the limit
// does not allow it.
func (d *Dictionary) Put(v []byte) (code uint32, ok bool) {
	code = d.put(v)
	return code, code != missing
}

// Page is the dictionary page, compressed as the options say.
func (d *Dictionary) Page(o Options) (Page, error) {
	a := assembler{leaf: d.leaf, o: &o}
	return a.dictionary(d)
}
