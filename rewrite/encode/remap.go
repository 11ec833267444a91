package encode

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// Remapper makes pages that differ from given ones in their dictionary codes and
// their compression only: the levels are the same bytes. It serves one chunk;
// pages it makes are valid until the next one.
type Remapper struct {
	asm   assembler
	o     Options
	plain []byte
	codes []uint32
	enc   []byte

	// What Keep needs: levels, those that stay, runs of values, booleans of one byte
	// each, and the page of the last Keep that had a code.
	def, kept []byte
	runs      []Run
	bits      []byte
	seen      []uint32
	page      uint32
	bounds    bounds
}

// NewRemapper returns a remapper for pages of a leaf. Of the options it uses
// Codec, Level and CRC.
func NewRemapper(leaf *format.Node, o Options) *Remapper {
	r := &Remapper{o: o}
	r.asm = assembler{leaf: leaf, o: &r.o}
	r.asm.zstd.reset()
	return r
}

// maxPlainPage bounds the length a page may have without compression.
const maxPlainPage = 1 << 30

// Page makes p anew with mapping applied to its codes, for a dictionary of size
// entries. from is the codec p is compressed with. p is a data page in a
// dictionary encoding, as stored; a code beyond the mapping is fault.Corrupt.
func (r *Remapper) Page(p Page, from format.Codec, mapping []uint32, size int) (Page, error) {
	if enc := p.Header.Encoding; enc != format.RLEDictionary && enc != format.PlainDictionary {
		return Page{}, fault.New(fault.Halt, fmt.Sprintf("column %s: remap a page of encoding %d", r.asm.leaf.Name, enc))
	}
	lv, values, err := r.open(p, from)
	if err != nil {
		return Page{}, fault.In("column "+r.asm.leaf.Name, err)
	}
	count, err := r.values(&p.Header, lv)
	if err != nil {
		return Page{}, fault.In("column "+r.asm.leaf.Name, err)
	}
	if r.codes, err = decodeCodes(r.codes[:0], values, count, mapping); err != nil {
		return Page{}, fault.In("column "+r.asm.leaf.Name, err)
	}
	return r.build(p.Header, lv, r.codes, size, p.Index)
}

// Recompress makes p anew with the remapper's codec and level. Its values are not
// decoded.
func (r *Remapper) Recompress(p Page, from format.Codec) (Page, error) {
	lv, values, err := r.open(p, from)
	if err != nil {
		return Page{}, fault.In("column "+r.asm.leaf.Name, err)
	}
	return r.assemble(p.Header, lv, values, p.Header.Encoding, p.Index)
}

// Dictionary makes a dictionary page anew with the remapper's codec and level.
func (r *Remapper) Dictionary(p Page, from format.Codec) (Page, error) {
	plain, err := r.decompress(p.Body, int(p.Header.UncompressedSize), from, true)
	if err != nil {
		return Page{}, fault.In("column "+r.asm.leaf.Name, err)
	}
	h := p.Header
	h.CRC = nil
	if r.asm.body, err = r.asm.compress(r.asm.body[:0], plain); err != nil {
		return Page{}, err
	}
	return r.asm.finish(h, r.asm.body, p.Index)
}

// Codes makes a page with the header's counts and the given levels and codes.
// lv are the levels as a page of the header's version has them: with their
// lengths in front in version 1, without in version 2. size is the number of
// entries of the dictionary.
func (r *Remapper) Codes(h format.PageHeader, lv []byte, codes []uint32, size int, x PageIndex) (Page, error) {
	return r.build(h, lv, codes, size, x)
}

func (r *Remapper) build(h format.PageHeader, lv []byte, codes []uint32, size int, x PageIndex) (Page, error) {
	width := CodeWidth(size)
	r.enc = appendHybrid(append(r.enc[:0], byte(width)), codes, width)
	return r.assemble(h, lv, r.enc, format.RLEDictionary, x)
}

// assemble builds a page of the version of h.
func (r *Remapper) assemble(h format.PageHeader, lv, values []byte, enc format.Encoding, x PageIndex) (Page, error) {
	c := counts{levels: int(h.Values)}
	l := levels{bytes: lv}
	r.o.Version = 1
	if h.Type == format.DataPageV2 {
		r.o.Version = 2
		c.rows, c.values = int(h.Rows), int(h.Values-h.Nulls)
		l.rep, l.def = int(h.RepBytes), int(h.DefBytes)
	}
	p, err := r.asm.data(l, values, enc, c, x)
	if h.Type == format.DataPage {
		p.Header.DefEncoding, p.Header.RepEncoding = h.DefEncoding, h.RepEncoding
	}
	return p, err
}

// open decompresses a data page and splits it into levels and values.
func (r *Remapper) open(p Page, from format.Codec) (lv, values []byte, err error) {
	h := &p.Header
	size := int(h.UncompressedSize)
	if h.Type == format.DataPageV2 {
		n := int(h.RepBytes) + int(h.DefBytes)
		if h.RepBytes < 0 || h.DefBytes < 0 || n > len(p.Body) || n > size {
			return nil, nil, fault.New(fault.Corrupt, "levels longer than their page")
		}
		values, err = r.decompress(p.Body[n:], size-n, from, h.Compressed)
		return p.Body[:n], values, err
	}
	if h.Type != format.DataPage {
		return nil, nil, fault.New(fault.Halt, fmt.Sprintf("a page of type %d is no data page", h.Type))
	}
	plain, err := r.decompress(p.Body, size, from, true)
	if err != nil {
		return nil, nil, err
	}
	n, err := LevelsLength(r.asm.leaf, h, plain)
	if err != nil {
		return nil, nil, err
	}
	return plain[:n], plain[n:], nil
}

func (r *Remapper) decompress(body []byte, size int, from format.Codec, compressed bool) ([]byte, error) {
	if !compressed || from == format.Uncompressed {
		if len(body) != size {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("a page has %d bytes where its header says %d", len(body), size))
		}
		return body, nil
	}
	if size < 0 || size > maxPlainPage {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("a page of %d bytes", size))
	}
	r.plain = grow(r.plain[:0], size)
	return r.plain, codec.Decompress(r.plain, body, from)
}

// LevelsLength is the number of bytes the levels take at the begin of the plain
// body of a version 1 page, lengths included. Levels that are BIT_PACKED, which
// have no length, are fault.Unsupported.
func LevelsLength(leaf *format.Node, h *format.PageHeader, plain []byte) (int, error) {
	n := 0
	section := func(greatest int, enc format.Encoding) error {
		if greatest == 0 {
			return nil
		}
		if enc != format.RLE {
			return fault.New(fault.Unsupported, fmt.Sprintf("levels in encoding %d", enc))
		}
		if len(plain)-n < 4 {
			return fault.New(fault.Corrupt, "a page ends within its levels")
		}
		length := int(binary.LittleEndian.Uint32(plain[n:]))
		if length > len(plain)-n-4 {
			return fault.New(fault.Corrupt, "levels longer than their page")
		}
		n += 4 + length
		return nil
	}
	if err := section(leaf.MaxRep, h.RepEncoding); err != nil {
		return 0, err
	}
	return n, section(leaf.MaxDef, h.DefEncoding)
}

// values is the number of values of a page that are not null: its definition levels
// are counted, whatever the header of version 2 says.
func (r *Remapper) values(h *format.PageHeader, lv []byte) (int, error) {
	leaf := r.asm.leaf
	if leaf.MaxDef == 0 {
		return int(h.Values), nil
	}
	if h.Type == format.DataPageV2 {
		if h.Nulls < 0 || h.Nulls > h.Values {
			return 0, fault.New(fault.Corrupt, fmt.Sprintf("%d nulls of %d values", h.Nulls, h.Values))
		}
		return countLevels(lv[h.RepBytes:], leaf.MaxDef, int(h.Values))
	}
	if leaf.MaxRep > 0 {
		lv = lv[4+binary.LittleEndian.Uint32(lv):]
	}
	return countLevels(lv[4:], leaf.MaxDef, int(h.Values))
}

// countLevels counts the levels that equal want among the first total of b.
func countLevels(b []byte, want, total int) (int, error) {
	width, found := levelWidth(want), 0
	mapping := make([]uint32, 1<<width)
	mapping[want] = 1
	var scratch []uint32
	for left := total; left > 0; {
		head, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, fault.New(fault.Corrupt, "a page has fewer levels than its header says")
		}
		if head&1 == 0 && len(b) > n {
			run := int(min(head>>1, uint64(left)))
			if int(b[n]) == want {
				found += run
			}
			b, left = b[n+1:], left-run
			continue
		}
		if head&1 == 0 {
			return 0, fault.New(fault.Corrupt, "a page ends within a run of levels")
		}
		var err error
		if scratch, b, err = mapPacked(scratch[:0], b[n:], width, head>>1, left, mapping); err != nil {
			return 0, err
		}
		for _, is := range scratch {
			found += int(is)
		}
		left -= len(scratch)
	}
	return found, nil
}

// decodeCodes appends the codes of the want values of a page, each replaced by
// its mapping.
func decodeCodes(dst []uint32, b []byte, want int, mapping []uint32) ([]uint32, error) {
	if want == 0 {
		return dst, nil
	}
	if len(b) == 0 || b[0] > 32 {
		return nil, fault.New(fault.Corrupt, "a page without the width of its codes")
	}
	width := int(b[0])
	b = b[1:]
	var err error
	for len(dst) < want {
		head, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("a page has %d codes, not %d", len(dst), want))
		}
		b = b[n:]
		room := want - len(dst)
		if head&1 == 0 {
			dst, b, err = mapRun(dst, b, width, head>>1, room, mapping)
		} else {
			dst, b, err = mapPacked(dst, b, width, head>>1, room, mapping)
		}
		if err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func mapRun(dst []uint32, b []byte, width int, length uint64, room int, mapping []uint32) ([]uint32, []byte, error) {
	size := (width + 7) / 8
	if len(b) < size {
		return nil, nil, fault.New(fault.Corrupt, "a page ends within a run of codes")
	}
	var code uint32
	for i := size - 1; i >= 0; i-- {
		code = code<<8 | uint32(b[i])
	}
	n := int(min(length, uint64(room)))
	if n > 0 {
		if uint64(code) >= uint64(len(mapping)) {
			return nil, nil, beyond(code, mapping)
		}
		code = mapping[code]
		for range n {
			dst = append(dst, code)
		}
	}
	return dst, b[size:], nil
}

func mapPacked(dst []uint32, b []byte, width int, groups uint64, room int, mapping []uint32) ([]uint32, []byte, error) {
	if groups > uint64(len(b)) && width > 0 {
		return nil, nil, fault.New(fault.Corrupt, "a page ends within packed codes")
	}
	n := int(min(groups, uint64(room+7)/8)) * 8
	size := n / 8 * width
	if size > len(b) {
		return nil, nil, fault.New(fault.Corrupt, "a page ends within packed codes")
	}
	n = min(n, room)
	dst = slices.Grow(dst, n)
	mask := uint64(1)<<width - 1
	i, limit := 0, uint64(len(mapping))
	// A load of 8 bytes at the byte a code begins in holds all of it.
	for bit := 0; i < n && bit>>3+8 <= len(b) && width <= 32; i, bit = i+1, bit+width {
		code := binary.LittleEndian.Uint64(b[bit>>3:]) >> (bit & 7) & mask
		if code >= limit {
			return nil, nil, beyond(uint32(code), mapping)
		}
		dst = append(dst, mapping[code])
	}
	for ; i < n; i++ {
		code, bit := uint64(0), i*width
		for k := range width {
			at := bit + k
			code |= uint64(b[at>>3]>>(at&7)&1) << k
		}
		if code >= limit {
			return nil, nil, beyond(uint32(code), mapping)
		}
		dst = append(dst, mapping[code])
	}
	return dst, b[int(min(groups*uint64(width), uint64(len(b)))):], nil
}

func beyond(code uint32, mapping []uint32) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("code %d of a dictionary of %d entries", code, len(mapping)))
}
