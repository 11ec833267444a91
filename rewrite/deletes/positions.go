// Package deletes says which rows of a data file are deleted: it reads position
// delete files, deletion vectors and equality deletes into positions, and writes
// positions as either kind of delete.
package deletes

import "github.com/RoaringBitmap/roaring/v2/roaring64"

// Positions are rows of one data file by their position in it. The zero value
// is empty. It is not safe for concurrent writes.
type Positions struct {
	bits roaring64.Bitmap
}

// Add adds a position.
func (p *Positions) Add(pos int64) { p.bits.Add(uint64(pos)) }

// AddRange adds the positions from begin up to, and without, end.
func (p *Positions) AddRange(begin, end int64) { p.bits.AddRange(uint64(begin), uint64(end)) }

// Contains reports whether the row at pos is deleted.
func (p *Positions) Contains(pos int64) bool { return p.bits.Contains(uint64(pos)) }

// Len is the number of positions.
func (p *Positions) Len() int64 { return int64(p.bits.GetCardinality()) }

// Bitmap is the positions as a bitmap, which must not be modified.
func (p *Positions) Bitmap() *roaring64.Bitmap { return &p.bits }
