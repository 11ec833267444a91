package column

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// Decoder decodes the pages of one chunk. It is not safe for concurrent use.
type Decoder struct {
	leaf  *format.Node
	codec format.Codec
	o     DecoderOptions
	limit int64
	held  held
	// f is the file, where its chunk is decoded of that row group.
	f     *File
	group int

	hasDictionary bool
	dictionary    Values
	words         []uint32 // the dictionary, where its values have 4 bytes
	longs         []uint64 // where they have 8

	body     []byte // decompressed
	codes    []uint32
	prefixes []uint32
	suffixes []uint32

	// last is the last value of the DELTA_BYTE_ARRAY page that ended at lastEnd:
	// parquet-mr before 1.8.0 went on from it in the next page (PARQUET-246).
	last    []byte
	lastEnd int64
}

// DecoderOptions say what a Decoder may take. Zeros are the defaults.
type DecoderOptions struct {
	// Name is what errors call the chunk.
	Name string
	// MaxBytes is the greatest size of what is decoded from a page; 256 MiB by
	// default and 4 GiB at most. More is fault.TooLarge.
	MaxBytes int64
	// Budget is what the Decoder's own buffers are taken from, nil for no bound.
	Budget *Budget
}

// NewDecoder returns a decoder of pages of a leaf.
func NewDecoder(leaf *format.Node, c format.Codec, o DecoderOptions) *Decoder {
	d := new(Decoder)
	d.begin(leaf, c, o)
	return d
}

func (d *Decoder) begin(leaf *format.Node, c format.Codec, o DecoderOptions) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxPage
	}
	d.leaf, d.codec, d.o, d.limit = leaf, c, o, min(o.MaxBytes, math.MaxUint32)
	d.f, d.hasDictionary, d.lastEnd = nil, false, 0
	d.held.budget = o.Budget
}

// Decoder returns a decoder of the pages of a chunk.
func (f *File) Decoder(group, leaf int) *Decoder {
	d := new(Decoder)
	f.begin(d, group, leaf)
	return d
}

// Reuse makes d a decoder of the pages of another chunk, which may be that of another
// file with the same budget. It keeps its buffers, and forgets what it decoded.
func (f *File) Reuse(d *Decoder, group, leaf int) error {
	f.begin(d, group, leaf)
	return d.account()
}

func (f *File) begin(d *Decoder, group, leaf int) {
	d.begin(f.footer.Schema.Leaves[leaf], f.footer.RowGroups[group].Columns[leaf].Codec, DecoderOptions{Budget: f.o.Budget, MaxBytes: f.o.MaxPage})
	d.f, d.group = f, group
}

// Close gives the memory of the decoder back.
func (d *Decoder) Close() { d.held.release() }

// in names the page that an error is about.
func (d *Decoder) in(p *Page, err *error) {
	if *err == nil {
		return
	}
	name := d.o.Name
	if d.f != nil {
		name = fmt.Sprintf("column %s of row group %d of %s", d.leaf, d.group, d.f.name)
	}
	*err = fault.In(fmt.Sprintf("decode the page at %d of %s", p.Offset, name), *err)
}

// Dictionary decodes the dictionary page of the chunk, which the pages that are
// coded with it need.
func (d *Decoder) Dictionary(p Page) (err error) {
	defer d.in(&p, &err)
	defer guard(&err)
	h := &p.Header
	if h.Type != format.DictionaryPage || h.Encoding != format.Plain && h.Encoding != format.PlainDictionary {
		return corrupt("a dictionary page of type %d and encoding %d", h.Type, h.Encoding)
	}
	body, err := d.decompress(p.Body, int(h.UncompressedSize), true)
	if err != nil {
		return err
	}
	v := &d.dictionary
	v.Reset(d.leaf.Type, d.leaf.Width())
	if err := d.plain(v, body, int(h.Values)); err != nil {
		return err
	}
	d.hasDictionary = true
	d.words, d.longs = d.words[:0], d.longs[:0]
	switch v.Width {
	case 4:
		for i := 0; i < len(v.Data); i += 4 {
			d.words = append(d.words, binary.LittleEndian.Uint32(v.Data[i:]))
		}
	case 8:
		for i := 0; i < len(v.Data); i += 8 {
			d.longs = append(d.longs, binary.LittleEndian.Uint64(v.Data[i:]))
		}
	}
	return d.account()
}

// Entries are the values of the dictionary, or nil if Dictionary was not called.
// They must not be changed.
func (d *Decoder) Entries() *Values {
	if !d.hasDictionary {
		return nil
	}
	return &d.dictionary
}

// account takes what the decoder's buffers have.
func (d *Decoder) account() error {
	return d.held.grow(int64(cap(d.body)+cap(d.dictionary.Data)+cap(d.last)) +
		4*int64(cap(d.dictionary.Offsets)+cap(d.words)+2*cap(d.longs)+cap(d.codes)+cap(d.prefixes)+cap(d.suffixes)))
}

// admit refuses n bytes above the limit.
func (d *Decoder) admit(n int64) error {
	if n < 0 || n > d.limit {
		return fault.New(fault.TooLarge, fmt.Sprintf("a page of %d bytes when decoded, more than %d", n, d.limit))
	}
	return nil
}

// decompress yields size bytes of content.
func (d *Decoder) decompress(b []byte, size int, compressed bool) ([]byte, error) {
	if !compressed || d.codec == format.Uncompressed {
		if len(b) != size {
			return nil, corrupt("it has %d bytes, not %d", len(b), size)
		}
		return b, nil
	}
	if err := d.admit(int64(size)); err != nil {
		return nil, err
	}
	if cap(d.body) < size {
		if err := d.held.grow(d.held.n + int64(size-cap(d.body))); err != nil {
			return nil, err
		}
		d.body = make([]byte, size)
	}
	d.body = d.body[:size]
	return d.body, codec.Decompress(d.body, b, d.codec)
}

// Levels decodes the levels of a data page into b, whose values become none.
// Rows is the number of rows that begin in the page.
func (d *Decoder) Levels(p Page, b *Batch) (err error) {
	defer d.in(&p, &err)
	defer guard(&err)
	b.Values.Reset(d.leaf.Type, d.leaf.Width())
	if d.leaf.MaxDef == 0 && d.leaf.MaxRep == 0 {
		_, err = d.header(&p, b)
		return err
	}
	_, _, err = d.levels(&p, b, false)
	return err
}

// Decode decodes a data page into b. Codes are resolved with the dictionary. Rows
// is the number of rows that begin in the page.
func (d *Decoder) Decode(p Page, b *Batch) (err error) {
	defer d.in(&p, &err)
	defer guard(&err)
	body, n, err := d.levels(&p, b, true)
	if err != nil {
		return err
	}
	v := &b.Values
	v.Reset(d.leaf.Type, d.leaf.Width())
	if n == 0 {
		return nil
	}
	if !Coded(p.Header.Encoding) {
		return d.values(v, &p, body, n)
	}
	if d.codes, err = d.resolve(d.codes[:0], body, n); err != nil {
		return err
	}
	return d.gather(v, d.codes)
}

// Coded reports that an encoding is that of dictionary codes.
func Coded(e format.Encoding) bool { return e == format.RLEDictionary || e == format.PlainDictionary }

// Indices decodes the levels of a page of dictionary codes into b, whose values
// become none, and appends the codes to codes, one for each value that is not
// null. All are less than the dictionary's length. A page that has values, not
// codes, is fault.Unsupported.
func (d *Decoder) Indices(p Page, b *Batch, codes []uint32) (out []uint32, err error) {
	defer d.in(&p, &err)
	defer guard(&err)
	if !Coded(p.Header.Encoding) {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("encoding %d has no dictionary codes", p.Header.Encoding))
	}
	body, n, err := d.levels(&p, b, true)
	if err != nil {
		return nil, err
	}
	b.Values.Reset(d.leaf.Type, d.leaf.Width())
	return d.resolve(codes, body, n)
}

// resolve appends the n codes of body to out.
func (d *Decoder) resolve(out []uint32, body []byte, n int) ([]uint32, error) {
	if n == 0 {
		return out, nil
	}
	if !d.hasDictionary {
		return nil, corrupt("it has dictionary codes, the column has no dictionary")
	}
	at := len(out)
	if err := d.admit(4 * int64(at+n)); err != nil {
		return nil, err
	}
	out = slices.Grow(out, n)[:at+n]
	if err := Codes(out[at:], body, d.dictionary.Len()); err != nil {
		return nil, err
	}
	return out, d.account()
}

// header checks the header of a data page, and prepares b for its levels.
func (d *Decoder) header(p *Page, b *Batch) (n int, err error) {
	h := &p.Header
	if h.Type != format.DataPage && h.Type != format.DataPageV2 {
		return 0, corrupt("a page of type %d is no data page", h.Type)
	}
	if h.Values < 0 || h.UncompressedSize < 0 {
		return 0, corrupt("it has %d values in %d bytes", h.Values, h.UncompressedSize)
	}
	n = int(h.Values)
	if err := d.admit(int64(n) * d.perLevel()); err != nil {
		return 0, err
	}
	b.Levels, b.Rows = n, n
	b.Rep, b.Def = b.Rep[:0], b.Def[:0]
	if d.leaf.MaxRep == 0 {
		b.Rep = nil
	}
	if d.leaf.MaxDef == 0 {
		b.Def = nil
	}
	return n, nil
}

// perLevel is the bytes that a level of the leaf takes in a batch.
func (d *Decoder) perLevel() int64 { return int64(min(d.leaf.MaxDef, 1) + min(d.leaf.MaxRep, 1)) }

// levels decodes the levels of a data page. It yields what follows them, if that
// is wanted, and the number of values in it.
func (d *Decoder) levels(p *Page, b *Batch, wanted bool) (rest []byte, values int, err error) {
	n, err := d.header(p, b)
	if err != nil {
		return nil, 0, err
	}
	if p.Header.Type == format.DataPage {
		rest, err = d.levelsV1(p, b, n)
	} else {
		rest, err = d.levelsV2(p, b, n, wanted)
	}
	if err != nil {
		return nil, 0, err
	}
	if b.Rep != nil {
		b.Rows = bytes.Count(b.Rep, []byte{0})
	}
	if p.Header.Type == format.DataPageV2 && b.Rows != int(p.Header.Rows) {
		return nil, 0, corrupt("it has %d rows, its header says %d", b.Rows, p.Header.Rows)
	}
	values = n
	if b.Def != nil {
		values = bytes.Count(b.Def, []byte{byte(d.leaf.MaxDef)})
	}
	return rest, values, nil
}

func (d *Decoder) levelsV1(p *Page, b *Batch, n int) ([]byte, error) {
	h := &p.Header
	rest, err := d.decompress(p.Body, int(h.UncompressedSize), true)
	if err != nil {
		return nil, err
	}
	if d.leaf.MaxRep > 0 {
		b.Rep = slices.Grow(b.Rep, n)[:n]
		if rest, err = v1(b.Rep, rest, h.RepEncoding, d.leaf.MaxRep); err != nil {
			return nil, fault.In("read repetition levels", err)
		}
	}
	if d.leaf.MaxDef > 0 {
		b.Def = slices.Grow(b.Def, n)[:n]
		if rest, err = v1(b.Def, rest, h.DefEncoding, d.leaf.MaxDef); err != nil {
			return nil, fault.In("read definition levels", err)
		}
	}
	return rest, nil
}

// v1 reads levels that say how long they are.
func v1(dst, src []byte, e format.Encoding, greatest int) ([]byte, error) {
	switch e {
	case format.RLE:
		if len(dst) == 0 && len(src) == 0 {
			return src, nil
		}
		if len(src) < 4 {
			return nil, corrupt("their length is cut")
		}
		size := binary.LittleEndian.Uint32(src)
		if src = src[4:]; uint64(size) > uint64(len(src)) {
			return nil, corrupt("they have %d bytes of %d", size, len(src))
		}
		return src[size:], hybridLevels(dst, src[:size], greatest)
	case format.BitPacked:
		size, err := packedLevels(dst, src, greatest)
		return src[size:], err
	}
	return nil, fault.New(fault.Unsupported, fmt.Sprintf("encoding %d of levels", e))
}

func (d *Decoder) levelsV2(p *Page, b *Batch, n int, wanted bool) ([]byte, error) {
	h := &p.Header
	rep, def := int64(h.RepBytes), int64(h.DefBytes)
	if rep < 0 || def < 0 || rep+def > int64(len(p.Body)) || rep+def > int64(h.UncompressedSize) {
		return nil, corrupt("it has levels of %d and %d bytes in %d", rep, def, len(p.Body))
	}
	if d.leaf.MaxRep > 0 {
		b.Rep = slices.Grow(b.Rep, n)[:n]
		if err := hybridLevels(b.Rep, p.Body[:rep], d.leaf.MaxRep); err != nil {
			return nil, fault.In("read repetition levels", err)
		}
	}
	if d.leaf.MaxDef > 0 {
		b.Def = slices.Grow(b.Def, n)[:n]
		if err := hybridLevels(b.Def, p.Body[rep:rep+def], d.leaf.MaxDef); err != nil {
			return nil, fault.In("read definition levels", err)
		}
	}
	if !wanted {
		return nil, nil
	}
	return d.decompress(p.Body[rep+def:], int(int64(h.UncompressedSize)-rep-def), h.Compressed)
}
