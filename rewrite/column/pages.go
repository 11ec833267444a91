package column

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// Page is a page as it is stored.
type Page struct {
	Header format.PageHeader
	// Raw is the header as stored, Body what follows it.
	Raw, Body []byte
	// Memory is what both lie in.
	Memory *Memory
	// Offset is where the header begins in the file.
	Offset int64
	// FirstRow is how many rows of the row group begin before the page, Rows how
	// many begin in it. Rows is -1 where only the repetition levels say: of
	// repeated columns in v1 pages without an offset index, which may also begin
	// within a row; FirstRow is then -1 in the pages after it. Other pages begin
	// with a row. Dictionary pages have no rows.
	FirstRow, Rows int64
}

// Dictionary reports that the page is that of the dictionary.
func (p *Page) Dictionary() bool { return p.Header.Type == format.DictionaryPage }

// Pages goes over the pages of a chunk.
type Pages struct {
	f           *File
	group, leaf int
	chunk       *format.Chunk
	node        *format.Node
	rows        int64
	w           window
	// at is where the next page begins, values and row are what lies before it.
	at, values, row int64
	// pages counts data pages passed, or, after a jump, those before.
	pages      int
	dictionary bool
	jumped     bool
	target     int64
	index      *format.OffsetIndex
	noIndex    bool
	err        error
}

// legacySlack is what the dictionary page's header may take at most, which
// parquet-mr before 1.2.9 left out of a chunk's length (PARQUET-816).
const legacySlack = 100

// Pages returns the pages of a chunk in order. Close must be called unless Next
// has returned an error.
func (f *File) Pages(group, leaf int) (*Pages, error) {
	if group < 0 || group >= len(f.footer.RowGroups) || leaf < 0 || leaf >= len(f.footer.Schema.Leaves) {
		return nil, fault.New(fault.Halt, fmt.Sprintf("there is no column %d in row group %d of %s", leaf, group, f.name))
	}
	g := &f.footer.RowGroups[group]
	c := &g.Columns[leaf]
	p := &Pages{f: f, group: group, leaf: leaf, chunk: c, node: f.footer.Schema.Leaves[leaf], rows: g.Rows, at: c.Begin()}
	end := p.at + c.CompressedSize
	if w := format.ParseWriter(f.footer.CreatedBy); w.App == "parquet-mr" && (!w.Versioned || w.Before(1, 2, 9)) {
		end = min(end+legacySlack, f.end)
	}
	p.w = window{f: f, end: end, at: p.at, held: held{budget: f.o.Budget}}
	return p, nil
}

// Close ends the iteration and gives its memory back. It may be called twice.
func (p *Pages) Close() {
	p.w.close()
	if p.err == nil {
		p.err = io.EOF
	}
}

// SkipTo lets Next leave out data pages that are known to end before a row of
// the row group. An offset index is used to read none of their bytes. Rows must
// be ascending from call to call.
func (p *Pages) SkipTo(row int64) { p.target = max(p.target, row) }

// Next returns the next page: that of the dictionary, if there is one, then data
// pages. Other pages are left out. A CRC is verified. The page's bytes are valid
// until the next call, or as long as somebody holds its memory. The end is io.EOF; after any error Close has been called.
func (p *Pages) Next() (page Page, err error) {
	if p.err != nil {
		return Page{}, p.err
	}
	begin := p.at
	defer func() {
		if err == nil {
			return
		}
		if !errors.Is(err, io.EOF) {
			err = p.f.about(p.group, p.leaf, fault.In(fmt.Sprintf("page at %d", begin), err))
		}
		p.err = err
		p.Close()
	}()
	defer guard(&err)
	for !p.done() {
		begin = p.at
		page, ok, err := p.page()
		if ok || err != nil {
			return page, err
		}
	}
	return Page{}, p.finish()
}

// Begin returns the first page with no more of its body than lies in the first n
// bytes of the chunk, which are all that is read. It is false where not even the
// header does. No CRC is verified. Only Close may be called afterwards.
func (p *Pages) Begin(n int) (page Page, ok bool, err error) {
	defer func() { err = p.f.about(p.group, p.leaf, err) }()
	defer guard(&err)
	p.w.end = min(p.w.end, p.at+int64(n))
	b, memory, err := p.w.bytes(p.at, int(p.w.end-p.at))
	if err != nil {
		return Page{}, false, err
	}
	h, header, err := format.ParsePageHeader(b)
	if errors.Is(err, format.ErrShort) {
		return Page{}, false, nil
	}
	if err != nil {
		return Page{}, false, fault.In("read its header", err)
	}
	body := b[header:]
	body = body[:min(len(body), int(h.CompressedSize))]
	return Page{Header: h, Raw: b[:header:header], Body: body, Memory: memory, Offset: p.at, FirstRow: -1, Rows: -1}, true, p.admit(&h)
}

// done reports that all data pages have been passed.
func (p *Pages) done() bool {
	if p.jumped {
		return p.pages >= len(p.index.Pages)
	}
	return p.values >= p.chunk.Values
}

func (p *Pages) finish() error {
	if p.jumped {
		return io.EOF
	}
	if p.values != p.chunk.Values {
		return fault.New(fault.Corrupt, fmt.Sprintf("its pages have %d values, it has %d", p.values, p.chunk.Values))
	}
	if p.row >= 0 && p.row != p.rows && p.chunk.Values > 0 {
		return fault.New(fault.Corrupt, fmt.Sprintf("its pages have %d rows, the row group has %d", p.row, p.rows))
	}
	return io.EOF
}

// page reads the page at p.at and goes past it. It is false for one to be left
// out.
func (p *Pages) page() (Page, bool, error) {
	raw, h, err := p.header()
	if err != nil {
		return Page{}, false, err
	}
	switch h.Type {
	case format.DictionaryPage:
		if p.dictionary || p.values > 0 || p.pages > 0 {
			return Page{}, false, fault.New(fault.Corrupt, "a dictionary that is not the first page")
		}
		p.dictionary = true
	case format.DataPage, format.DataPageV2:
		if jumped, err := p.jump(); jumped || err != nil {
			return Page{}, false, err
		}
	default:
		p.at += int64(len(raw)) + int64(h.CompressedSize)
		return Page{}, false, nil
	}
	page := Page{Header: h, Offset: p.at, FirstRow: -1, Rows: -1}
	if !page.Dictionary() {
		if err := p.count(&page); err != nil {
			return Page{}, false, err
		}
	}
	size := len(raw) + int(h.CompressedSize)
	p.at += int64(size)
	if page.Rows >= 0 && page.FirstRow >= 0 && page.FirstRow+page.Rows <= p.target && p.target > 0 {
		return Page{}, false, nil
	}
	if err := p.read(&page, len(raw), size); err != nil {
		return Page{}, false, err
	}
	return page, true, nil
}

// header reads the header at p.at.
func (p *Pages) header() ([]byte, format.PageHeader, error) {
	left := p.w.end - p.at
	if left <= 0 {
		return nil, format.PageHeader{}, fault.New(fault.Corrupt, fmt.Sprintf("the column ends after %d values of %d", p.values, p.chunk.Values))
	}
	b := p.w.rest(p.at)
	for {
		if len(b) > 0 {
			h, n, err := format.ParsePageHeader(b[:min(len(b), format.MaxPageHeader)])
			if err == nil {
				return b[:n:n], h, p.admit(&h)
			}
			if !errors.Is(err, format.ErrShort) || int64(len(b)) >= left || len(b) >= format.MaxPageHeader {
				return nil, format.PageHeader{}, fault.In("read its header", err)
			}
		}
		var err error
		if b, _, err = p.w.bytes(p.at, int(min(left, int64(max(2*len(b), 1<<10))))); err != nil {
			return nil, format.PageHeader{}, err
		}
		if more := p.w.rest(p.at); len(more) > len(b) {
			b = more
		}
	}
}

// admit checks the sizes of a page before anything is allocated for it.
func (p *Pages) admit(h *format.PageHeader) error {
	if n := max(int64(h.UncompressedSize), int64(h.CompressedSize), int64(h.Values)); n > p.f.o.MaxPage {
		return fault.New(fault.TooLarge, fmt.Sprintf("it has %d bytes or values, more than %d", n, p.f.o.MaxPage))
	}
	return nil
}

// read fetches header and body, and verifies the CRC.
func (p *Pages) read(page *Page, header, size int) error {
	b, memory, err := p.w.bytes(page.Offset, size)
	if err != nil {
		return err
	}
	page.Memory = memory
	// The header may have moved, and its bounds with it.
	if page.Header.Statistics != nil {
		if page.Header, _, err = format.ParsePageHeader(b[:header]); err != nil {
			return fault.In("read its header", err)
		}
	}
	page.Raw, page.Body = b[:header:header], b[header:]
	if c := page.Header.CRC; c != nil {
		if sum := crc32.ChecksumIEEE(page.Body); sum != *c {
			return fault.New(fault.Corrupt, fmt.Sprintf("its CRC is %08x, not %08x", sum, *c))
		}
	}
	return nil
}

// jump goes to the page of the target by the offset index, if that is further
// on.
func (p *Pages) jump() (bool, error) {
	if p.target == 0 || p.jumped {
		return false, nil
	}
	if err := p.loadIndex(); err != nil || p.index == nil {
		return false, err
	}
	locations := p.index.Pages
	n := sort.Search(len(locations), func(i int) bool { return locations[i].FirstRow > p.target }) - 1
	if n <= p.pages || locations[n].Offset <= p.at {
		return false, nil
	}
	p.jumped, p.pages, p.at = true, n, locations[n].Offset
	return true, nil
}

func (p *Pages) loadIndex() error {
	if p.index != nil || p.noIndex {
		return nil
	}
	x, err := p.f.OffsetIndex(p.group, p.leaf)
	p.index, p.noIndex = x, x == nil || len(x.Pages) == 0 || p.node.MaxRep > 0 && within(x)
	if p.noIndex {
		p.index = nil
	}
	return err
}

// within reports that an offset index has pages in which no row begins: pages that
// have an index must not lie within rows (PageIndex.md), so that it is of no use.
func within(x *format.OffsetIndex) bool {
	for i := 1; i < len(x.Pages); i++ {
		if x.Pages[i].FirstRow == x.Pages[i-1].FirstRow {
			return true
		}
	}
	return false
}

// count says which rows a data page has and adds them and its values up.
func (p *Pages) count(page *Page) error {
	h := &page.Header
	flat := p.node.MaxRep == 0
	v2 := h.Type == format.DataPageV2
	if !flat && !v2 {
		if err := p.loadIndex(); err != nil {
			return err
		}
	}
	page.FirstRow, page.Rows = p.row, -1
	switch {
	case flat:
		page.Rows = int64(h.Values)
	case v2:
		page.Rows = int64(h.Rows)
	}
	if v2 && (h.Rows > h.Values || flat && h.Rows != h.Values || h.Rows == 0 && h.Values > 0) {
		// Pages of version 2 begin with a row (parquet.thrift, DataPageHeaderV2).
		return fault.New(fault.Corrupt, fmt.Sprintf("it has %d rows in %d values", h.Rows, h.Values))
	}
	if p.index != nil {
		if err := p.located(page); err != nil {
			return err
		}
	}
	p.pages++
	if p.values += int64(h.Values); p.values > p.chunk.Values {
		return fault.New(fault.Corrupt, fmt.Sprintf("its pages have %d values or more, it has %d", p.values, p.chunk.Values))
	}
	if page.Rows < 0 || page.FirstRow < 0 {
		p.row = -1
		return nil
	}
	if p.row = page.FirstRow + page.Rows; p.row > p.rows {
		return fault.New(fault.Corrupt, fmt.Sprintf("its rows end at %d, the row group's at %d", p.row, p.rows))
	}
	return nil
}

// located takes the rows of a page from the offset index, which must not
// contradict what else is known.
func (p *Pages) located(page *Page) error {
	locations := p.index.Pages
	if p.pages >= len(locations) || locations[p.pages].Offset != page.Offset {
		return fault.New(fault.Corrupt, fmt.Sprintf("the offset index has no page %d here", p.pages))
	}
	first, end := locations[p.pages].FirstRow, p.rows
	if p.pages+1 < len(locations) {
		end = locations[p.pages+1].FirstRow
	}
	if !p.jumped && page.FirstRow >= 0 && page.FirstRow != first || page.Rows >= 0 && page.Rows != end-first {
		return fault.New(fault.Corrupt, fmt.Sprintf("the offset index says rows %d to %d, the pages say %d from %d", first, end, page.Rows, page.FirstRow))
	}
	page.FirstRow, page.Rows = first, end-first
	return nil
}

// Start begins to read the first pages, so that Next finds them read. Before any
// other call.
func (p *Pages) Start() error { return p.w.start() }
