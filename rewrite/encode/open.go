package encode

import (
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Coded is a data page of dictionary codes that is open.
type Coded struct {
	// Levels are the levels as stored, Values the codes as encoded.
	Levels, Values []byte
	// Codes are the codes of the values.
	Codes []uint32
	// gain is the share of its length that the page lost by being compressed.
	gain float64
}

// Open decompresses a data page of codes, for Codes to make another of. What it
// gives is valid until the next call. Nobody has looked whether the dictionary has
// all codes.
func (r *Remapper) Open(p Page, from format.Codec) (c Coded, err error) {
	defer func() { err = fault.In("column "+r.asm.leaf.Name, err) }()
	if !column.Coded(p.Header.Encoding) {
		return Coded{}, fault.New(fault.Halt, fmt.Sprintf("open a page of encoding %d for its codes", p.Header.Encoding))
	}
	if c.Levels, c.Values, err = r.open(p, from); err != nil {
		return Coded{}, err
	}
	count, err := r.values(&p.Header, c.Levels)
	if err != nil {
		return Coded{}, err
	}
	r.codes = slices.Grow(r.codes[:0], count)[:count]
	c.Codes = r.codes
	if size := p.Header.UncompressedSize; size > 0 {
		c.gain = 1 - float64(len(p.Body))/float64(size)
	}
	return c, column.AnyCodes(r.codes, c.Values)
}

// OpenOf is Open for a page of a dictionary with size entries: a code beyond those is
// fault.Corrupt.
func (r *Remapper) OpenOf(p Page, from format.Codec, size int) (Coded, error) {
	c, err := r.Open(p, from)
	if err != nil || len(c.Codes) == 0 {
		return c, err
	}
	if most := slices.Max(c.Codes); int64(most) >= int64(size) {
		return c, fault.In("column "+r.asm.leaf.Name, fault.New(fault.Corrupt, fmt.Sprintf("code %d of a dictionary of %d entries", most, size)))
	}
	return c, nil
}

// Codes makes the page that c was opened from anew with mapping applied to its codes,
// for a dictionary of size entries. h is its header. spare is the share of its length
// that may be given up by not compressing it, where the codec is zstd and the level
// its default. A code beyond the mapping is fault.Corrupt.
func (r *Remapper) Codes(h format.PageHeader, c Coded, mapping []uint32, size int, spare float64, x PageIndex) (Page, error) {
	width := CodeWidth(size)
	var err error
	if r.enc, err = appendMapped(append(r.enc[:0], byte(width)), c.Codes, mapping, width); err != nil {
		return Page{}, fault.In("column "+r.asm.leaf.Name, err)
	}
	// Codes that compression hardly shortened will be no better with other numbers,
	// unless they became wider.
	wider := 1 - float64(CodeWidth(len(mapping)))/float64(width)
	if c.gain <= spare && wider <= spare {
		r.asm.spare = spare
	}
	p, err := r.assemble(h, c.Levels, r.enc, format.RLEDictionary, x)
	r.asm.spare = 0
	return p, err
}

// Reset makes r serve another chunk, and keeps its buffers.
func (r *Remapper) Reset(leaf *format.Node, o Options) {
	r.o = o
	r.asm.leaf, r.asm.o = leaf, &r.o
	r.asm.zstd.reset()
	r.asm.gain, r.asm.judged = 1, 0
}
