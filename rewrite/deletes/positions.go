// Package deletes says which rows of a data file are deleted: it reads position
// delete files, deletion vectors and equality deletes into positions, and writes
// positions as either kind of delete.
package deletes

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Positions are rows of one data file by their position in it, from 0. The zero
// value is empty. It is not safe for concurrent writes; a nil *Positions may be
// read and is empty.
//
// Rows below 4 billion are one bitmap; the blob of a deletion vector has the
// same parts (Puffin spec, deletion-vector-v1).
type Positions struct {
	parts []part // by key, none of them empty
}

// part are the positions with the same high 32 bits.
type part struct {
	key  uint32
	bits *roaring.Bitmap
}

// base is the first position a part can have.
func (p part) base() int64 { return int64(p.key) << 32 }

// Of makes positions of single ones, in any order.
func Of(positions ...int64) *Positions {
	p := &Positions{}
	for _, pos := range positions {
		p.Add(pos)
	}
	return p
}

// Add adds a position. It panics if pos is negative: who reads positions from a
// file checks them first.
func (p *Positions) Add(pos int64) { p.part(pos).Add(uint32(pos)) }

// AddRange adds the positions from begin up to, and without, end. It panics if
// begin is negative. It takes memory for every 4 billion rows of the range.
func (p *Positions) AddRange(begin, end int64) {
	for begin < end {
		bits := p.part(begin)
		next := end
		if begin>>32 < (end-1)>>32 {
			next = (begin>>32 + 1) << 32
		}
		low := uint64(uint32(begin))
		bits.AddRange(low, low+uint64(next-begin))
		begin = next
	}
}

// addRun is AddRange, faster for single positions.
func (p *Positions) addRun(begin, end int64) {
	if end == begin+1 {
		p.Add(begin)
		return
	}
	p.AddRange(begin, end)
}

// part is the bitmap that holds pos, made if there is none. The caller adds to it.
func (p *Positions) part(pos int64) *roaring.Bitmap {
	if pos < 0 {
		panic(fmt.Sprintf("position %d", pos))
	}
	key := uint32(pos >> 32)
	if n := len(p.parts); n > 0 && p.parts[n-1].key == key {
		return p.parts[n-1].bits
	}
	i, found := p.find(key)
	if !found {
		p.parts = slices.Insert(p.parts, i, part{key: key, bits: roaring.New()})
	}
	return p.parts[i].bits
}

func (p *Positions) find(key uint32) (int, bool) {
	return slices.BinarySearchFunc(p.parts, key, func(a part, key uint32) int {
		switch {
		case a.key < key:
			return -1
		case a.key > key:
			return 1
		}
		return 0
	})
}

func (p *Positions) all() []part {
	if p == nil {
		return nil
	}
	return p.parts
}

// Contains reports whether pos is one of the positions.
func (p *Positions) Contains(pos int64) bool {
	if p == nil || pos < 0 {
		return false
	}
	i, found := p.find(uint32(pos >> 32))
	return found && p.parts[i].bits.Contains(uint32(pos))
}

// Len is the number of positions.
func (p *Positions) Len() int64 {
	n := int64(0)
	for _, x := range p.all() {
		n += int64(x.bits.GetCardinality())
	}
	return n
}

// Empty reports whether there are no positions.
func (p *Positions) Empty() bool { return len(p.all()) == 0 }

// Count is the number of positions from begin up to, and without, end.
func (p *Positions) Count(begin, end int64) int64 {
	n := int64(0)
	for _, x := range p.all() {
		lo, hi, ok := x.clip(begin, end)
		if ok {
			n += int64(x.bits.CardinalityInRange(lo, hi))
		}
	}
	return n
}

// clip is what of a part lies between begin and end, in the part's own 32 bits.
func (p part) clip(begin, end int64) (lo, hi uint64, ok bool) {
	begin, end = max(begin, 0), max(end, 0)
	if begin>>32 > int64(p.key) || end <= p.base() || begin >= end {
		return 0, 0, false
	}
	if begin > p.base() {
		lo = uint64(begin - p.base())
	}
	return lo, uint64(min(end-p.base(), 1<<32)), true
}

// Max is the greatest position, or -1.
func (p *Positions) Max() int64 {
	parts := p.all()
	if len(parts) == 0 {
		return -1
	}
	last := parts[len(parts)-1]
	return last.base() + int64(last.bits.Maximum())
}

// Min is the least position, or -1.
func (p *Positions) Min() int64 {
	parts := p.all()
	if len(parts) == 0 {
		return -1
	}
	return parts[0].base() + int64(parts[0].bits.Minimum())
}

// Next is the least position that is not below pos, or -1.
func (p *Positions) Next(pos int64) int64 {
	pos = max(pos, 0)
	for _, x := range p.all() {
		if int64(x.key) < pos>>32 {
			continue
		}
		it := x.bits.Iterator()
		if int64(x.key) == pos>>32 {
			it.AdvanceIfNeeded(uint32(pos))
		}
		if it.HasNext() {
			return x.base() + int64(it.PeekNext())
		}
	}
	return -1
}

// All yields the positions in order.
func (p *Positions) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, x := range p.all() {
			for it := x.bits.Iterator(); it.HasNext(); {
				if !yield(x.base() + int64(it.Next())) {
					return
				}
			}
		}
	}
}

// Ranges yields the positions as the fewest ranges, each from its first element
// up to, and without, its second.
func (p *Positions) Ranges() iter.Seq2[int64, int64] { return p.Within(0, math.MaxInt64) }

// Within yields the ranges of the positions from begin up to, and without, end.
func (p *Positions) Within(begin, end int64) iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		from, to := int64(-1), int64(-1)
		for _, x := range p.all() {
			lo, hi, ok := x.clip(begin, end)
			if !ok {
				continue
			}
			for a, b := range x.ranges(lo, hi) {
				if a == to {
					to = b
					continue
				}
				if from >= 0 && !yield(from, to) {
					return
				}
				from, to = a, b
			}
		}
		if from >= 0 {
			yield(from, to)
		}
	}
}

// ranges yields the ranges of a part between lo and hi, in its own 32 bits. All of
// them are taken container by container, some of them position by position.
func (p part) ranges(lo, hi uint64) iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		if lo == 0 && hi > uint64(p.bits.Maximum()) {
			for a, b := range p.bits.Ranges() {
				if !yield(p.base()+int64(a), p.base()+int64(b)) {
					return
				}
			}
			return
		}
		it := p.bits.Iterator()
		it.AdvanceIfNeeded(uint32(lo))
		for it.HasNext() && uint64(it.PeekNext()) < hi {
			a := uint64(it.Next())
			b := a + 1
			for b < hi && it.HasNext() && uint64(it.PeekNext()) == b {
				it.Next()
				b++
			}
			if !yield(p.base()+int64(a), p.base()+int64(b)) {
				return
			}
		}
	}
}

// Kept yields the ranges of rows from begin up to, and without, end that are not
// among the positions.
func (p *Positions) Kept(begin, end int64) iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		begin := max(begin, 0)
		for from, to := range p.Within(begin, end) {
			if begin < from && !yield(begin, from) {
				return
			}
			begin = to
		}
		if begin < end {
			yield(begin, end)
		}
	}
}

// Clone returns a copy that shares nothing.
func (p *Positions) Clone() *Positions {
	out := &Positions{}
	for _, x := range p.all() {
		out.parts = append(out.parts, part{key: x.key, bits: x.bits.Clone()})
	}
	return out
}

// Equal reports whether both hold the same positions.
func (p *Positions) Equal(o *Positions) bool {
	return slices.EqualFunc(p.all(), o.all(), func(a, b part) bool { return a.key == b.key && a.bits.Equals(b.bits) })
}

// Or adds the positions of o.
func (p *Positions) Or(o *Positions) {
	if p == o {
		return
	}
	for _, x := range o.all() {
		p.part(x.base()).Or(x.bits)
	}
}

// And keeps the positions that o has as well.
func (p *Positions) And(o *Positions) {
	if p == o {
		return
	}
	p.each(o, func(mine, theirs *roaring.Bitmap) {
		if theirs == nil {
			mine.Clear()
			return
		}
		mine.And(theirs)
	})
}

// AndNot removes the positions of o.
func (p *Positions) AndNot(o *Positions) {
	if p == o {
		p.parts = nil
		return
	}
	p.each(o, func(mine, theirs *roaring.Bitmap) {
		if theirs != nil {
			mine.AndNot(theirs)
		}
	})
}

// each changes every part in view of the one of o, and drops those that are
// empty then.
func (p *Positions) each(o *Positions, change func(mine, theirs *roaring.Bitmap)) {
	others := map[uint32]*roaring.Bitmap{}
	for _, x := range o.all() {
		others[x.key] = x.bits
	}
	p.parts = slices.DeleteFunc(p.parts, func(x part) bool {
		change(x.bits, others[x.key])
		return x.bits.IsEmpty()
	})
}

// Bytes is about what the positions take in memory.
func (p *Positions) Bytes() int64 {
	n := int64(0)
	for _, x := range p.all() {
		n += int64(x.bits.GetSizeInBytes()) + 128
	}
	return n
}
