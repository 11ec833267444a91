package rewrite

import (
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/seaice/seaice/rewrite/column"
)

// Small sources that do not fit into the memory whole are read in bands: runs of
// columns that lie next to each other in the file are read with one read, by the
// first column that needs a byte of them. Columns are moved in order, a few at a
// time, so that two bands of every source are in memory at once.
const (
	// bandShare is the share of the memory, in eighths, that bands take at most.
	bandShare = 2
	// bandBytes is how large the row groups are on average, in bytes, that are read
	// in bands: the columns of larger ones are worth reads of their own.
	bandBytes = 1 << 20
	// bandGaps is how much longer a band may be than the columns that it is for.
	bandGaps = 1.25
)

// band is a range of a file that is read once and kept until the columns it is for
// have been moved.
type band struct {
	from, to int64
	budget   *column.Budget

	mu   sync.Mutex
	data []byte
	gone bool
}

// holds reports whether n bytes from off on lie in the band.
func (b *band) holds(off int64, n int) bool { return off >= b.from && off+int64(n) <= b.to }

// bytes are those of the band, nil where they are not kept.
func (b *band) bytes(read func(p []byte, off int64) (int, error)) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data != nil || b.gone {
		return b.data, nil
	}
	n := b.to - b.from
	if b.budget.Take(n) != nil {
		return nil, nil // without memory every column reads what it needs
	}
	data := make([]byte, n)
	got, err := read(data, b.from)
	if got < len(data) {
		b.budget.Give(n)
		if err == nil || errors.Is(err, io.EOF) {
			return nil, nil // the reader of a column says where it ends
		}
		return nil, err
	}
	b.data = data
	return data, nil
}

// free gives the memory back. The band is not read again.
func (b *band) free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data != nil {
		b.budget.Give(b.to - b.from)
	}
	b.data, b.gone = nil, true
}

// bands are those of all sources of a row group that is written.
type bands struct {
	// each has as many columns, the last perhaps fewer; left is how many of them
	// are not moved yet.
	each int
	left []atomic.Int64
	all  [][]*band
	of   []*counted
}

// stays is about what a part takes that stays open between its dictionary and its
// pages, and the greatest sum of that for a column. What is in memory anyway is as
// soon read again, and the dictionaries of thousands of small files are decoded into
// many times what they take as stored.
func (m *mover) stays(p *part) (takes, most int64) {
	if m.e.banded || p.src.file.Kept() {
		return p.chunk.CompressedSize + 2*max(0, p.chunk.UncompressedSize), m.e.memory() / 64
	}
	return p.begun(), m.e.memory() / 8
}

// bands begins to read the spans of a row group in bands. It is nil where that
// gains nothing.
func (e *engine) bands(spans []span) *bands {
	e.banded = false
	leaves, total := len(e.target.Leaves), int64(0)
	for i := range spans {
		if s := e.sources[spans[i].source]; !s.file.Kept() {
			total += s.bytes(spans[i].group)
		}
	}
	if e.workers == 1 || total == 0 || total/int64(len(spans)) > bandBytes {
		return nil
	}
	room := e.memory() * bandShare / 8
	count := max(1, (2*total+room-1)/room)
	if total <= room {
		count = 1
	}
	each := int((int64(leaves) + count - 1) / count)
	if each < 2 {
		return nil
	}
	b := &bands{each: each}
	budget := column.NewBudget(room)
	number := (leaves + each - 1) / each
	b.left, b.all = make([]atomic.Int64, number), make([][]*band, number)
	for k := range number {
		b.left[k].Store(int64(min(each, leaves-k*each)))
	}
	for i := range spans {
		s := e.sources[spans[i].source]
		if s.file.Kept() {
			continue
		}
		for k := range number {
			if r := s.band(spans[i].group, k*each, min((k+1)*each, leaves)); r != nil {
				r.budget = budget
				b.all[k] = append(b.all[k], r)
				s.in.bands = append(s.in.bands, r)
			}
		}
		b.of = append(b.of, s.in)
	}
	e.banded = true
	return b
}

// band is the range of the target's leaves from first up to, and without, end in a
// row group, nil if they do not lie together.
func (s *source) band(group, first, end int) *band {
	from, to, sum, n := int64(math.MaxInt64), int64(0), int64(0), 0
	for i := first; i < end; i++ {
		m := &s.mapping.Leaves[i]
		if m.Leaf < 0 || m.Synthetic {
			continue
		}
		c := &s.file.Footer().RowGroups[group].Columns[m.Leaf]
		from, to = min(from, c.Begin()), max(to, c.Begin()+c.CompressedSize)
		sum += c.CompressedSize
		n++
	}
	if n < 2 || from < 0 || to > s.Bytes || float64(to-from) > bandGaps*float64(sum) {
		return nil
	}
	return &band{from: from, to: to}
}

// moved notes that a column was moved.
func (b *bands) moved(leaf int) {
	if b == nil {
		return
	}
	if k := leaf / b.each; b.left[k].Add(-1) == 0 {
		for _, r := range b.all[k] {
			r.free()
		}
	}
}

// close gives back what is left. Nothing may be reading any more.
func (b *bands) close() {
	if b == nil {
		return
	}
	for _, all := range b.all {
		for _, r := range all {
			r.free()
		}
	}
	for _, in := range b.of {
		in.bands = nil
	}
}
