// Package encode turns levels and values into the pages of a column chunk:
// dictionaries, encodings, compression, and what the page index and the
// statistics of a file say about each page. It writes no file; finished pages
// go to a Sink, in order, the dictionary page first (parquet-format, README and
// Encodings.md).
package encode

import "github.com/seaice/seaice/rewrite/format"

// Page is a finished page, as it will lie in a file.
type Page struct {
	Header format.PageHeader
	// Raw is the header as it is to be stored, for pages that are moved as they
	// are. When nil the header is written from Header.
	Raw []byte
	// Body are the bytes after the header, as stored. They and Raw are valid
	// until the call that was given the page returns.
	Body []byte
	// Index says what is known of a data page. It is not used for
	// dictionary pages.
	Index PageIndex
}

// Bounds says what is known of the least and greatest value of a page.
type Bounds uint8

// The states of bounds.
const (
	// BoundsUnknown: nothing may be concluded. The chunk then has no bounds.
	BoundsUnknown Bounds = iota
	// BoundsNone: there is no value that is neither null nor NaN.
	BoundsNone
	// BoundsSet: Min and Max bound all values that are neither null nor NaN.
	BoundsSet
)

// PageIndex is what is known of one data page beyond its header. What is not
// known stays unknown through everything that is computed from it. The zero
// value states 0 rows and 0 nulls; UnknownIndex states nothing.
type PageIndex struct {
	// Rows begin in the page, or -1: not known, or the page does not begin at
	// a row.
	Rows int64
	// Nulls counts the levels without a value, NaNs the values that are NaN; -1
	// is not known. NaNs is 0 for columns that are not floating point.
	Nulls, NaNs int64
	Bounds      Bounds
	// Min and Max are as Statistics has them (PLAIN without lengths), owned by
	// the index. They may be shortened where Exact says so.
	Min, Max           []byte
	MinExact, MaxExact bool
	// Rep and Def count the levels by their value; nil is not known, or not
	// needed because the greatest level is 0 (Rep) or at most 1 (Def).
	Rep, Def []int64
	// Unencoded is the sum of the lengths of the values of a byte array column,
	// -1 when not known.
	Unencoded int64
}

// UnknownIndex is the index of a page of which nothing is known.
func UnknownIndex() PageIndex {
	return PageIndex{Rows: -1, Nulls: -1, NaNs: -1, Unencoded: -1}
}

// Sink takes the pages of one chunk in the order of the file.
type Sink interface {
	// Dictionary takes the dictionary page. It is called at most once, before
	// any data page.
	Dictionary(p Page) error
	// Page takes a data page.
	Page(p Page) error
}

// Buffer is a Sink that keeps pages, for chunks that are made before their turn
// in the file.
type Buffer struct {
	dictionary *Page
	pages      []Page
	bytes      int
}

// Dictionary keeps the dictionary page.
func (b *Buffer) Dictionary(p Page) error {
	p = b.own(p)
	b.dictionary = &p
	return nil
}

// Page keeps a data page.
func (b *Buffer) Page(p Page) error {
	b.pages = append(b.pages, b.own(p))
	return nil
}

func (b *Buffer) own(p Page) Page {
	p.Body = append(make([]byte, 0, len(p.Body)), p.Body...)
	if p.Raw != nil {
		p.Raw = append(make([]byte, 0, len(p.Raw)), p.Raw...)
	}
	b.bytes += len(p.Body) + len(p.Raw) + len(p.Index.Min) + len(p.Index.Max) + 8*(len(p.Index.Rep)+len(p.Index.Def)) + pageOverhead
	return p
}

// pageOverhead is what a kept page takes beside its slices.
const pageOverhead = 320

// Bytes is the memory the kept pages take.
func (b *Buffer) Bytes() int { return b.bytes }

// Len is the number of data pages kept.
func (b *Buffer) Len() int { return len(b.pages) }

// Drain gives the kept pages to s, in order, and forgets them.
func (b *Buffer) Drain(s Sink) error {
	d, pages := b.dictionary, b.pages
	b.dictionary, b.pages, b.bytes = nil, nil, 0
	if d != nil {
		if err := s.Dictionary(*d); err != nil {
			return err
		}
	}
	for i := range pages {
		if err := s.Page(pages[i]); err != nil {
			return err
		}
		pages[i] = Page{}
	}
	return nil
}
