package encode

import (
	"github.com/seaice/seaice/fault"
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
	for n := len(r.same); n < size; n++ {
		r.same = append(r.same, uint32(n))
	}
	r.codes, err = decodeCodes(r.codes[:0], values, count, r.same[:size])
	return lv, r.codes, fault.In("column "+r.asm.leaf.Name, err)
}
