package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// counted counts what is read of a source.
type counted struct {
	filer.Object
	read     *atomic.Int64
	progress func(int64)
	// opened are the bytes from openedAt on that were read to open the file; nil
	// once it is open.
	opened   []byte
	openedAt int64
	opening  bool
	// tail are the bytes from tailAt on, which hold the page indexes.
	tail   []byte
	tailAt int64
	// bands are what is read at once of the row group that is moved.
	bands []*band
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	if at := off - c.tailAt; c.tail != nil && at >= 0 && at+int64(len(p)) <= int64(len(c.tail)) {
		return copy(p, c.tail[at:]), nil
	}
	for _, b := range c.bands {
		if !b.holds(off, len(p)) {
			continue
		}
		data, err := b.bytes(c.fetch)
		if err != nil {
			return 0, err
		}
		if data != nil {
			return copy(p, data[off-b.from:]), nil
		}
	}
	return c.fetch(p, off)
}

// Content implements column.InMemory. It counts as one read of the file.
func (c *counted) Content() []byte {
	m, ok := c.Object.(column.InMemory)
	if !ok {
		return nil
	}
	b := m.Content()
	c.progressed(len(b))
	return b
}

// fetch reads from the file.
func (c *counted) fetch(p []byte, off int64) (int, error) {
	n, err := c.Object.ReadAt(p, off)
	if c.opening {
		c.opened, c.openedAt = p[:n], off
	}
	c.progressed(n)
	return n, err
}

// progressed counts bytes that were read.
func (c *counted) progressed(n int) {
	total := c.read.Add(int64(n))
	if c.progress != nil {
		c.progress(total)
	}
}

const (
	// keptShare is the share of the memory, in eighths, that sources take at most
	// that are kept whole.
	keptShare = 3
	// greatestTail is how long page indexes may be to be read at once.
	greatestTail = 1 << 20
	// firstTail is what is read of the end of a file before another one has shown
	// how long its footer is; tailSpare is what footers may differ.
	firstTail = 64 << 10
	tailSpare = 1 << 10
)

// keepWhole decides whether sources are kept whole: a small file costs one read
// then, whatever the number of its columns.
func (e *engine) keepWhole() {
	total := int64(0)
	for i := range e.q.Sources {
		total += e.q.Sources[i].Bytes
	}
	e.whole = -1
	switch {
	case e.workers == 1 && total > e.memory()/8: // there may be too little memory
	case total <= e.memory()*keptShare/8:
		e.whole = wholeBytes
		// No windows are read of what is kept.
		e.reading.Raise(total / 3)
	}
}

// wholeBytes is the greatest file that is kept whole.
const wholeBytes = 4 << 20

// tailGuess is how long the ends of files with indexes and footer are.
type tailGuess struct{ longest atomic.Int64 }

func (t *tailGuess) guess() int64 {
	if n := t.longest.Load(); n > 0 {
		return min(n+n/8+tailSpare, firstTail)
	}
	return firstTail
}

func (t *tailGuess) saw(n int64) {
	for {
		longest := t.longest.Load()
		if n <= longest || t.longest.CompareAndSwap(longest, n) {
			return
		}
	}
}

// keepTail keeps the page indexes of a source, as they are read piece by piece
// later. They are read with one read if opening the file has not read them. Where
// there is no memory for that it is left out.
func (e *engine) keepTail(in *counted, f *format.Footer) error {
	from, to := indexes(f)
	if to > from {
		e.tail.saw(in.Size() - from)
	}
	n := to - from
	if n <= 0 || n > greatestTail || to > in.Size() || e.tails.Add(n) > e.memory()/16 {
		return nil
	}
	if at := from - in.openedAt; at >= 0 && at+n <= int64(len(in.opened)) {
		in.tail, in.tailAt = bytes.Clone(in.opened[at:at+n]), from
		return nil
	}
	tail := make([]byte, n)
	switch got, err := in.ReadAt(tail, from); {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case got < len(tail):
		return fault.New(fault.Corrupt, fmt.Sprintf("the file ends at %d, within its page indexes", from+int64(got)))
	}
	in.tail, in.tailAt = tail, from
	return nil
}

// indexes is where the page indexes of a file lie: from before to.
func indexes(f *format.Footer) (from, to int64) {
	from = math.MaxInt64
	see := func(at *int64, n *int32) {
		if at != nil && n != nil && *n > 0 && *at > 0 {
			from, to = min(from, *at), max(to, *at+int64(*n))
		}
	}
	for i := range f.RowGroups {
		for k := range f.RowGroups[i].Columns {
			c := &f.RowGroups[i].Columns[k]
			see(c.ColumnIndexOffset, c.ColumnIndexLength)
			see(c.OffsetIndexOffset, c.OffsetIndexLength)
		}
	}
	return from, to
}
