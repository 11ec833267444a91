package encode

import (
	"encoding/binary"
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/column"
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
	r.asm = assembler{leaf: leaf, o: &r.o, gain: 1}
	r.asm.zstd.reset()
	return r
}

// maxPlainPage bounds the length a page may have without compression.
const maxPlainPage = 1 << 30

// Page makes p anew with mapping applied to its codes, for a dictionary of size
// entries. from is the codec p is compressed with. p is a data page in a
// dictionary encoding, as stored; a code beyond the mapping is fault.Corrupt.
func (r *Remapper) Page(p Page, from format.Codec, mapping []uint32, size int) (Page, error) {
	c, err := r.Open(p, from)
	if err != nil {
		return Page{}, err
	}
	return r.Codes(p.Header, c, mapping, size, 0, p.Index)
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
		return column.CountLevels(lv[h.RepBytes:], int(h.Values), leaf.MaxDef)
	}
	if leaf.MaxRep > 0 {
		lv = lv[4+binary.LittleEndian.Uint32(lv):]
	}
	return column.CountLevels(lv[4:], int(h.Values), leaf.MaxDef)
}
