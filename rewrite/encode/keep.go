package encode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Run is a run of rows of a page: those from From up to, and without, To.
type Run struct{ From, To int }

// Kept is what stays of a page of a flat leaf when some of its rows go. Its slices
// are valid until the remapper's next call.
type Kept struct {
	// Header is that of the page, with the counts of what stays.
	Header format.PageHeader
	// Def are the definition levels, one byte each; nil where the greatest is 0.
	Def []byte
	// Plain are the values as a PLAIN page has them, or else Codes are their codes.
	Plain []byte
	Codes []uint32

	counts counts
}

// Keepable reports whether Keep takes a page with this header.
func Keepable(leaf *format.Node, h *format.PageHeader) bool {
	if leaf.MaxRep > 0 || h.Type == format.DataPage && leaf.MaxDef > 0 && h.DefEncoding != format.RLE {
		return false
	}
	return h.Encoding == format.Plain || column.Coded(h.Encoding)
}

// Keep opens a page of a flat leaf and leaves rows out. The runs ascend and do not
// touch; size is the number of entries of the dictionary of a page of codes.
func (r *Remapper) Keep(p Page, from format.Codec, runs []Run, size int) (k Kept, err error) {
	defer func() { err = fault.In("column "+r.asm.leaf.Name, err) }()
	h := &p.Header
	if !Keepable(r.asm.leaf, h) {
		return Kept{}, fault.New(fault.Halt, "leave rows out of a page that is not kept so")
	}
	if h.Values < 0 || len(runs) > 0 && (runs[0].From < 0 || runs[len(runs)-1].To > int(h.Values)) {
		return Kept{}, fault.New(fault.Corrupt, fmt.Sprintf("a page has %d values, and rows behind them", h.Values))
	}
	lv, values, err := r.open(p, from)
	if err != nil {
		return Kept{}, err
	}
	count, err := r.keepLevels(h, lv, runs)
	if err != nil {
		return Kept{}, err
	}
	k = Kept{Header: *h}
	for _, run := range runs {
		k.counts.levels += run.To - run.From
	}
	k.counts.rows = k.counts.levels
	if r.asm.leaf.MaxDef > 0 {
		k.Def = r.kept
	}
	if column.Coded(h.Encoding) {
		r.codes = slices.Grow(r.codes[:0], count)[:count]
		if err := column.Codes(r.codes, values, size); err != nil {
			return Kept{}, err
		}
		n := 0
		for _, run := range r.runs {
			n += copy(r.codes[n:], r.codes[run.From:run.To])
		}
		r.codes = r.codes[:n]
		k.Codes, k.counts.values = r.codes, n
	} else if k.counts.values, err = r.keepPlain(values, count); err != nil {
		return Kept{}, err
	} else {
		k.Plain = r.enc
	}
	k.Header.Values = int32(k.counts.levels)
	if h.Type == format.DataPageV2 {
		k.Header.Rows, k.Header.Nulls = k.Header.Values, int32(k.counts.levels-k.counts.values)
	}
	return k, nil
}

// keepLevels leaves levels out, and finds the runs of values that stay. count is
// the number of values of the page.
func (r *Remapper) keepLevels(h *format.PageHeader, lv []byte, runs []Run) (count int, err error) {
	most := r.asm.leaf.MaxDef
	r.runs = append(r.runs[:0], runs...)
	if most == 0 {
		return int(h.Values), nil
	}
	if r.def, err = r.levels(h, lv, r.def); err != nil {
		return 0, err
	}
	r.kept = r.kept[:0]
	for _, run := range runs {
		r.kept = append(r.kept, r.def[run.From:run.To]...)
	}
	want := []byte{byte(most)}
	if count = bytes.Count(r.def, want); count == len(r.def) {
		return count, nil
	}
	at, value := 0, 0
	for i, run := range runs {
		from := value + bytes.Count(r.def[at:run.From], want)
		value = from + bytes.Count(r.def[run.From:run.To], want)
		at = run.To
		r.runs[i] = Run{From: from, To: value}
	}
	return count, nil
}

// levels decodes the definition levels of a page of a flat leaf.
func (r *Remapper) levels(h *format.PageHeader, lv, dst []byte) ([]byte, error) {
	dst = slices.Grow(dst[:0], int(h.Values))[:h.Values]
	if h.Type != format.DataPageV2 {
		if len(lv) < 4 {
			return nil, fault.New(fault.Corrupt, "a page ends within its levels")
		}
		lv = lv[4:]
	} else if h.RepBytes != 0 {
		return nil, fault.New(fault.Corrupt, "repetition levels of a column that does not repeat")
	}
	return dst, column.DefinitionLevels(dst, lv, r.asm.leaf.MaxDef)
}

// keepPlain leaves PLAIN values out of the count there are.
func (r *Remapper) keepPlain(values []byte, count int) (n int, err error) {
	width, err := valueWidth(r.asm.leaf)
	if err != nil {
		return 0, err
	}
	r.enc = r.enc[:0]
	for _, run := range r.runs {
		n += run.To - run.From
	}
	switch {
	case r.asm.leaf.Type == format.Boolean:
		if len(values) < (count+7)/8 {
			return 0, short(len(values), count)
		}
		r.bits = r.bits[:0]
		for _, run := range r.runs {
			for i := run.From; i < run.To; i++ {
				r.bits = append(r.bits, values[i>>3]>>(i&7)&1)
			}
		}
		r.enc = packBooleans(r.enc, r.bits)
	case width > 0:
		if len(values)/width < count {
			return 0, short(len(values), count)
		}
		for _, run := range r.runs {
			r.enc = append(r.enc, values[run.From*width:run.To*width]...)
		}
	default:
		return n, r.keepBytes(values, count)
	}
	return n, nil
}

// keepBytes leaves byte arrays out, which have their lengths in front. All lengths
// are looked at, those behind the last run too.
func (r *Remapper) keepBytes(values []byte, count int) error {
	at, value := 0, 0
	skip := func(to int) error {
		for ; value < to; value++ {
			if len(values)-at < 4 {
				return short(len(values), count)
			}
			n := binary.LittleEndian.Uint32(values[at:])
			if uint64(n) > uint64(len(values)-at-4) {
				return short(len(values), count)
			}
			at += 4 + int(n)
		}
		return nil
	}
	for _, run := range r.runs {
		if err := skip(run.From); err != nil {
			return err
		}
		from := at
		if err := skip(run.To); err != nil {
			return err
		}
		r.enc = append(r.enc, values[from:at]...)
	}
	return skip(count)
}

func short(have, count int) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("%d values end in %d bytes", count, have))
}

// KeptPlain makes a page of what was kept of a PLAIN one.
func (r *Remapper) KeptPlain(k *Kept) (Page, error) {
	b := r.begin()
	x, leaf := PageIndex{}, r.asm.leaf
	switch width, _ := valueWidth(leaf); {
	case leaf.Type == format.Boolean:
		b.add(&column.Values{Type: leaf.Type, Width: 1, Data: r.bits}, 0, len(r.bits))
	case width > 0:
		b.add(&column.Values{Type: leaf.Type, Width: width, Data: k.Plain}, 0, len(k.Plain)/width)
	default:
		x.Unencoded = int64(len(k.Plain) - 4*k.counts.values)
		for rest := k.Plain; b.order != NoOrder && len(rest) > 0; {
			n := 4 + binary.LittleEndian.Uint32(rest)
			b.bytes(rest[4:n])
			rest = rest[n:]
		}
	}
	return r.keptPage(k, k.Plain, format.Plain, x)
}

// KeptCodes makes a page of what was kept of one of codes, which are those of
// entries now.
func (r *Remapper) KeptCodes(k *Kept, entries *column.Values) (Page, error) {
	b := r.begin()
	x, leaf := PageIndex{}, r.asm.leaf
	size := entries.Len()
	if leaf.Type == format.ByteArray {
		for _, c := range k.Codes {
			x.Unencoded += int64(entries.Offsets[c+1] - entries.Offsets[c])
		}
	}
	if len(r.seen) < size {
		r.seen = make([]uint32, size+size/4)
		r.page = 0
	}
	if r.page++; r.page == 0 {
		clear(r.seen)
		r.page = 1
	}
	each := b.order == Floats || b.order == Doubles // NaNs are counted
	for _, c := range k.Codes {
		if each || r.seen[c] != r.page {
			r.seen[c] = r.page
			b.add(entries, int(c), int(c)+1)
		}
	}
	width := CodeWidth(size)
	r.enc = appendHybrid(append(r.enc[:0], byte(width)), k.Codes, width)
	return r.keptPage(k, r.enc, format.RLEDictionary, x)
}

// begin empties the bounds.
func (r *Remapper) begin() *bounds {
	r.bounds.order = OrderingOf(r.asm.leaf)
	r.bounds.reset()
	return &r.bounds
}

// keptPage makes a page and says what is known of it.
func (r *Remapper) keptPage(k *Kept, values []byte, enc format.Encoding, x PageIndex) (Page, error) {
	r.o.Version = 1
	if k.Header.Type == format.DataPageV2 {
		r.o.Version = 2
	}
	x.Rows, x.Nulls, x.NaNs = int64(k.counts.rows), int64(k.counts.levels-k.counts.values), r.bounds.nans
	x.Bounds, x.Min, x.Max = r.bounds.result()
	x.bind(r.asm.leaf)
	if r.asm.leaf.MaxDef > 1 {
		x.Def = histogram(k.Def, r.asm.leaf.MaxDef)
	}
	return r.asm.data(r.asm.encodeLevels(nil, k.Def), values, enc, k.counts, x)
}

// Content opens a data page of a flat leaf, as it was made, and gives its
// definition levels and its values as encoded.
func (r *Remapper) Content(p Page, from format.Codec) (def, values []byte, err error) {
	defer func() { err = fault.In("column "+r.asm.leaf.Name, err) }()
	lv, values, err := r.open(p, from)
	if err != nil || r.asm.leaf.MaxDef == 0 {
		return nil, values, err
	}
	r.def, err = r.levels(&p.Header, lv, r.def)
	return r.def, values, err
}
