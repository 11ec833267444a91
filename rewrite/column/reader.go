package column

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/seaice/seaice/fault"
)

// Reader reads a leaf in batches of whole rows, over pages and row groups. It is
// not safe for concurrent use.
type Reader struct {
	f    *File
	leaf int

	group   int
	pages   *Pages // nil when the group is not open
	decoder *Decoder
	held    held

	// page is the current page, with codes in place of values when coded.
	page  Batch
	coded bool
	// ends reports that the current page ends with a row.
	ends  bool
	codes []uint32
	// level and value are the position in page.
	level, value int
	// begun is how many rows of the group begin before the position.
	begun int64
	// target is the row to go on with while seeking.
	target  int64
	seeking bool
	err     error
}

// Reader returns a reader of a leaf from the first row. Close must be called when
// Next has not returned an error.
func (f *File) Reader(leaf int) *Reader {
	return &Reader{f: f, leaf: leaf, held: held{budget: f.o.Budget}}
}

// Close gives memory back. It may be called twice.
func (r *Reader) Close() {
	r.shut()
	r.held.release()
	if r.err == nil {
		r.err = io.EOF
	}
}

func (r *Reader) shut() {
	if r.pages != nil {
		r.pages.Close()
		r.decoder.Close()
		r.pages, r.decoder = nil, nil
	}
	r.page.Levels, r.level, r.value = 0, 0, 0
	r.seeking, r.target, r.begun = false, 0, 0
}

// Next reads rows into b, whose content it replaces: all up to the row with which
// b has maxBytes or more, and at least one. A batch may hold rows of several row
// groups. The end is io.EOF; after any error the Reader is closed.
func (r *Reader) Next(b *Batch, maxBytes int) error {
	return r.NextRows(b, maxBytes, math.MaxInt64)
}

// NextRows is Next with no more than so many rows, which are 1 at least.
func (r *Reader) NextRows(b *Batch, maxBytes int, rows int64) (err error) {
	if r.err != nil {
		return r.err
	}
	defer func() {
		if err == nil {
			return
		}
		if r.err = err; !errors.Is(err, io.EOF) {
			r.err = r.about(err)
		}
		err = r.err
		r.Close()
	}()
	defer guard(&err)
	r.clear(b)
	rows = max(rows, 1)
	full := func() bool { return int64(b.Rows) >= rows || b.Rows > 0 && b.Bytes() >= maxBytes }
	for {
		if r.atEnd() && full() {
			return nil
		}
		more, err := r.load()
		if err != nil {
			return err
		}
		if !more {
			if b.Rows > 0 {
				return nil
			}
			return io.EOF
		}
		if r.atRow() && full() {
			return nil
		}
		if err := r.move(b, maxBytes-b.Bytes(), rows-int64(b.Rows)); err != nil {
			return err
		}
	}
}

// atEnd reports that a row has ended at the end of the current page, so that
// there is no need for the next one to know.
func (r *Reader) atEnd() bool {
	return r.pages != nil && r.level >= r.page.Levels && (r.ends || r.pages.done())
}

func (r *Reader) about(err error) error {
	if r.group < len(r.f.footer.RowGroups) {
		return r.f.about(r.group, r.leaf, err)
	}
	return fault.In("read "+r.f.name, err)
}

func (r *Reader) clear(b *Batch) {
	n := r.f.footer.Schema.Leaves[r.leaf]
	b.Levels, b.Rows = 0, 0
	b.Rep, b.Def = b.Rep[:0], b.Def[:0]
	if n.MaxRep == 0 {
		b.Rep = nil
	}
	if n.MaxDef == 0 {
		b.Def = nil
	}
	b.Values.Reset(n.Type, n.Width())
}

// Bytes is what the batch's levels and values take.
func (b *Batch) Bytes() int {
	return len(b.Rep) + len(b.Def) + len(b.Values.Data) + 4*max(0, len(b.Values.Offsets)-1)
}

// atRow reports that the position is at the begin of a row.
func (r *Reader) atRow() bool { return len(r.page.Rep) == 0 || r.page.Rep[r.level] == 0 }

// load makes sure that there is a level at the position. It is false at the end
// of the file.
func (r *Reader) load() (bool, error) {
	for {
		if r.pages == nil {
			if r.group >= len(r.f.footer.RowGroups) {
				return false, nil
			}
			if err := r.open(); err != nil {
				return false, err
			}
		}
		if r.seeking {
			r.skip()
		}
		if r.level < r.page.Levels {
			return true, nil
		}
		p, err := r.pages.Next()
		switch {
		case errors.Is(err, io.EOF):
			if rows := r.f.footer.RowGroups[r.group].Rows; r.begun != rows || r.seeking {
				return false, corrupt("its pages have %d rows, the row group has %d", r.begun, rows)
			}
			r.shut()
			r.group++
		case err != nil:
			return false, err
		case p.Dictionary():
			err = r.decoder.Dictionary(p)
		default:
			err = r.decode(&p)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
	}
}

func (r *Reader) open() error {
	pages, err := r.f.Pages(r.group, r.leaf)
	if err != nil {
		return err
	}
	r.pages, r.decoder = pages, r.f.Decoder(r.group, r.leaf)
	r.begun = 0
	if r.seeking {
		pages.SkipTo(r.target)
	}
	return nil
}

// decode makes p the current page, once there is memory for what its header
// says.
func (r *Reader) decode(p *Page) (err error) {
	r.level, r.value = 0, 0
	h := &p.Header
	each, values := r.decoder.perLevel()+4, int64(h.UncompressedSize)
	if w := r.decoder.leaf.Width(); w > 0 && !Coded(h.Encoding) {
		each, values = each-4, int64(h.Values)*int64(w)
	}
	if err := r.held.grow(int64(h.Values)*each + values); err != nil {
		return err
	}
	if r.coded = Coded(p.Header.Encoding); r.coded {
		if r.codes, err = r.decoder.Indices(*p, &r.page, r.codes[:0]); err != nil {
			return err
		}
	} else if err := r.decoder.Decode(*p, &r.page); err != nil {
		return err
	}
	if p.FirstRow >= 0 {
		r.begun = p.FirstRow
	}
	if p.Rows >= 0 && (int64(r.page.Rows) != p.Rows || r.page.Levels > 0 && !r.atRow()) {
		return corrupt("the page at %d has %d rows, not %d from the begin of one", p.Offset, r.page.Rows, p.Rows)
	}
	if r.page.Levels > 0 && r.begun == 0 && !r.atRow() {
		return corrupt("the page at %d begins within a row, there is none before", p.Offset)
	}
	r.ends = p.Rows >= 0
	v := &r.page.Values
	return r.held.grow(int64(cap(r.page.Rep) + cap(r.page.Def) + cap(v.Data) + 4*cap(v.Offsets) + 4*cap(r.codes)))
}

// skip moves the position towards the target.
func (r *Reader) skip() {
	from := r.level
	if len(r.page.Rep) == 0 {
		n := int(min(int64(r.page.Levels-r.level), r.target-r.begun))
		r.level += n
		r.begun += int64(n)
	} else {
		for ; r.level < r.page.Levels; r.level++ {
			if r.page.Rep[r.level] != 0 {
				continue
			}
			if r.begun == r.target {
				break
			}
			r.begun++
		}
	}
	r.value += r.present(from, r.level)
	if r.level < r.page.Levels {
		r.seeking = false
	}
}

// present counts the values of the levels from one to another of the page.
func (r *Reader) present(from, to int) int {
	if r.page.Def == nil {
		return to - from
	}
	return bytes.Count(r.page.Def[from:to], []byte{byte(r.decoder.leaf.MaxDef)})
}

// SeekRow makes Next go on with a row of the file, by an offset index where the file
// has one. The row after the last is allowed.
func (r *Reader) SeekRow(row int64) error {
	if r.err != nil && !errors.Is(r.err, io.EOF) {
		return r.err
	}
	groups := r.f.footer.RowGroups
	if row < 0 || row > r.f.footer.Rows {
		return corrupt("row %d of %s, which has %d", row, r.f.name, r.f.footer.Rows)
	}
	r.err = nil
	g := 0
	for ; g < len(groups) && row >= groups[g].Rows; g++ {
		row -= groups[g].Rows
	}
	if r.pages == nil || g != r.group || row < r.begun {
		r.shut()
		r.group = g
	} else {
		r.pages.SkipTo(row)
	}
	if g < len(groups) {
		r.seeking, r.target = row > 0 || r.pages != nil, row
	}
	return nil
}

// move appends levels and values from the position on to b: up to the row with
// which it has left bytes more, and no more than so many rows.
func (r *Reader) move(b *Batch, left int, rows int64) error {
	page := &r.page
	levels, values := r.take(left, r.endOf(rows), b.Rows > 0)
	whole := r.level == 0 && levels == page.Levels
	begins := levels
	if page.Rep != nil {
		begins = bytes.Count(page.Rep[r.level:r.level+levels], []byte{0})
	}
	if whole && b.Levels == 0 && !r.coded {
		*b, *page = *page, *b // what b had is the page's buffer from now on
		page.Levels, r.level, r.value = 0, 0, 0
		r.begun += int64(begins)
		b.Rows = begins
		return nil
	}
	if page.Rep != nil {
		b.Rep = append(b.Rep, page.Rep[r.level:r.level+levels]...)
	}
	if page.Def != nil {
		b.Def = append(b.Def, page.Def[r.level:r.level+levels]...)
	}
	if err := r.decoder.admit(int64(b.Bytes())); err != nil {
		return err
	}
	if r.coded {
		if err := r.decoder.gather(&b.Values, r.codes[r.value:r.value+values]); err != nil {
			return err
		}
	} else if err := r.append(&b.Values, values); err != nil {
		return err
	}
	b.Levels += levels
	b.Rows += begins
	r.begun += int64(begins)
	r.level += levels
	r.value += values
	return nil
}

// append appends the next n values of the page to v.
func (r *Reader) append(v *Values, n int) error {
	from := &r.page.Values
	if v.Width > 0 {
		data := from.Data[r.value*v.Width : (r.value+n)*v.Width]
		if err := r.decoder.admit(int64(len(v.Data)) + int64(len(data))); err != nil {
			return err
		}
		v.Data = append(v.Data, data...)
		return nil
	}
	ends := from.Offsets[r.value : r.value+n+1]
	data := from.Data[ends[0]:ends[n]]
	if err := r.decoder.admit(int64(len(v.Data)) + int64(len(data)) + 4*int64(len(v.Offsets)+n)); err != nil {
		return err
	}
	shift := uint32(len(v.Data)) - ends[0]
	v.Data = append(v.Data, data...)
	at := len(v.Offsets)
	v.Offsets = slices.Grow(v.Offsets, n)[:at+n]
	for i, end := range ends[1:] {
		v.Offsets[at+i] = end + shift
	}
	return nil
}

// endOf is the level of the page up to which no more than so many rows begin.
func (r *Reader) endOf(rows int64) int {
	page := &r.page
	if int64(page.Levels-r.level) <= rows {
		return page.Levels
	}
	if page.Rep == nil {
		return r.level + int(rows)
	}
	for i := r.level; i < page.Levels; i++ {
		if page.Rep[i] != 0 {
			continue
		}
		if rows--; rows < 0 {
			return i
		}
	}
	return page.Levels
}

// take says how many levels and values of the page before end come up to the
// begin of the row after left bytes. The row at the position is not left out
// unless some says that there is one before.
func (r *Reader) take(left, end int, some bool) (levels, values int) {
	page := &r.page
	width := page.Values.Width
	rest := end - r.level
	each := 0
	if page.Rep != nil {
		each++
	}
	if page.Def != nil {
		each++
	}
	most := r.present(r.level, end)
	if r.fits(rest*each, most, left) {
		return rest, most
	}
	if each == 0 && width > 0 {
		n := min(rest, max(1, (left+width-1)/width))
		return n, n
	}
	greatest := byte(r.decoder.leaf.MaxDef)
	cost := 0
	for i := r.level; i < end; i++ {
		if cost >= left && (levels > 0 || some) && (page.Rep == nil || page.Rep[i] == 0) {
			break
		}
		levels++
		cost += each
		if page.Def == nil || page.Def[i] == greatest {
			cost += r.size(r.value + values)
			values++
		}
	}
	return levels, values
}

// size is the bytes of a value of the page.
func (r *Reader) size(i int) int {
	v := &r.page.Values
	switch {
	case v.Width > 0:
		return v.Width
	case r.coded:
		ends := r.decoder.dictionary.Offsets
		return 4 + int(ends[r.codes[i]+1]-ends[r.codes[i]])
	}
	return 4 + int(v.Offsets[i+1]-v.Offsets[i])
}

// fits reports that levels of so many bytes and the next n values of the page
// take no more than left bytes.
func (r *Reader) fits(levels, n, left int) bool {
	v := &r.page.Values
	switch {
	case v.Width > 0:
		return levels+n*v.Width <= left
	case r.coded:
		return levels+4*n <= left && int64(levels+4*n)+r.decoder.sizeOf(r.codes[r.value:r.value+n]) <= int64(left)
	}
	return levels+4*n+int(v.Offsets[r.value+n]-v.Offsets[r.value]) <= left
}
