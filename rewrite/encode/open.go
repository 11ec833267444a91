package encode

import (
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Open decompresses a data page of codes of a dictionary with size entries, and
// gives its levels as stored and the codes of its values, for Codes to make a page
// of. Both are valid until the next call.
func (r *Remapper) Open(p Page, from format.Codec, size int) (lv []byte, codes []uint32, err error) {
	lv, values, err := r.open(p, from)
	if err != nil {
		return nil, nil, fault.In("column "+r.asm.leaf.Name, err)
	}
	count, err := r.values(&p.Header, lv)
	if err != nil {
		return nil, nil, fault.In("column "+r.asm.leaf.Name, err)
	}
	r.codes = slices.Grow(r.codes[:0], count)[:count]
	err = column.Codes(r.codes, values, size)
	return lv, r.codes, fault.In("column "+r.asm.leaf.Name, err)
}

// Reset makes r serve another chunk, and keeps its buffers.
func (r *Remapper) Reset(leaf *format.Node, o Options) {
	r.o = o
	r.asm.leaf, r.asm.o = leaf, &r.o
	r.asm.zstd.reset()
}
