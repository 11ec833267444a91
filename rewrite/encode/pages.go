package encode

import (
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// When a dictionary is worth its bytes.
const (
	// A dictionary and its codes must be shorter than this share of the PLAIN
	// values: in the first page, or else none is made; later, or else it grows
	// no more.
	keepNumerator, keepDenominator = 3, 4
	growNumerator, growDenominator = 9, 10
	// judgeable is the PLAIN length from which on a first page shows what the
	// chunk will be like.
	judgeable = 16 << 10
	// maxMisses is how many pages may try a fixed dictionary in vain.
	maxMisses = 4
)

// take adds a span to the page at hand.
func (e *Encoder) take(b *column.Batch, s span) error {
	if !e.plain {
		ok, err := e.takeCodes(&b.Values, s)
		if err != nil {
			return err
		}
		if !ok {
			// The page became PLAIN, or was cut before this span.
			if err := e.takePlain(b, s); err != nil {
				return err
			}
		}
	} else if err := e.takePlain(b, s); err != nil {
		return err
	}
	if e.leaf.MaxRep > 0 {
		e.rep = append(e.rep, b.Rep[s.level:s.level+s.levels]...)
	}
	if e.leaf.MaxDef > 0 {
		e.def = append(e.def, b.Def[s.level:s.level+s.levels]...)
	}
	e.n.levels += s.levels
	e.n.rows += s.rows
	e.n.values += s.values
	size := plainSize(&b.Values, s.value, s.value+s.values)
	e.plainLen += size
	if e.leaf.Type == format.ByteArray {
		e.unencoded += int64(size - 4*s.values)
	}
	return nil
}

// takeCodes adds the codes of a span. ok is false when the dictionary does not
// have them all; the page at hand is then PLAIN, and none of the span is in it.
func (e *Encoder) takeCodes(v *column.Values, s span) (ok bool, err error) {
	have, entries := len(e.codes), e.dict.Len()
	var taken int
	e.codes, taken = e.dict.codes(e.codes, v, s.value, s.value+s.values, e.coding == codingGrows)
	if e.o.Bloom != nil && e.coding == codingGrows {
		e.o.Bloom.AddValues(&e.dict.values, entries, e.dict.Len())
	}
	if taken == s.values {
		if e.numeric() {
			e.bounds.add(v, s.value, s.value+s.values)
		}
		return true, nil
	}
	e.codes = e.codes[:have]
	if e.coding == codingGrows { // the limit is reached
		if e.coded == 0 && (len(e.codes) == 0 || !e.worth(keepNumerator, keepDenominator)) {
			return false, e.drop()
		}
		if err := e.fix(); err != nil {
			return false, err
		}
	}
	e.misses++
	if e.plainLen > e.o.PageBytes {
		// Its values take little as codes; as PLAIN they would be a page too long.
		if err := e.cut(false); err != nil {
			return false, err
		}
	}
	e.unfold()
	if e.misses > maxMisses {
		e.coding = codingNone
	}
	return false, nil
}

// numeric reports that bounds are found from values rather than from the codes
// of a page.
func (e *Encoder) numeric() bool { return e.bounds.order.Width() > 0 }

func (e *Encoder) takePlain(b *column.Batch, s span) error {
	from, to := s.value, s.value+s.values
	if e.plainLen > maxPageBytes-plainSize(&b.Values, from, to) {
		return e.asm.tooLarge(e.plainLen + plainSize(&b.Values, from, to))
	}
	e.vals = appendPlain(e.vals, &b.Values, from, to)
	e.bounds.add(&b.Values, from, to)
	if e.o.Bloom != nil {
		e.o.Bloom.AddValues(&b.Values, from, to)
	}
	return nil
}

// maxPageBytes is less than an int32, so that compression has room.
const maxPageBytes = 2_000_000_000

// unfold makes the page at hand PLAIN.
func (e *Encoder) unfold() {
	if e.plain {
		return
	}
	e.foldBounds()
	e.vals = gather(e.vals, &e.dict.values, e.codes)
	e.codes, e.plain = e.codes[:0], true
}

// foldBounds finds the bounds of byte strings from the distinct codes of the page.
func (e *Encoder) foldBounds() {
	if e.numeric() || e.bounds.order == NoOrder {
		return
	}
	if n := e.dict.Len(); len(e.seen) < n {
		e.seen = append(e.seen, make([]uint32, n-len(e.seen))...)
	}
	for _, c := range e.codes {
		if e.seen[c] != e.page {
			e.seen[c] = e.page
			e.bounds.bytes(e.dict.values.At(int(c)))
		}
	}
}

// worth reports that the dictionary and all codes so far, the page at hand
// included, are shorter than a share of the PLAIN values.
func (e *Encoder) worth(numerator, denominator int64) bool {
	used := int64(e.dict.Size()) + e.codedBytes + int64(len(e.codes)*CodeWidth(e.dict.Len())/8)
	return denominator*used <= numerator*(e.codedPlain+int64(e.plainLen))
}

// drop gives the dictionary up before any page used it.
func (e *Encoder) drop() error {
	e.unfold()
	e.coding, e.dict = codingNone, nil
	return e.held.Drain(e.sink)
}

// fix completes the dictionary: its page and all pages held back go to the sink.
func (e *Encoder) fix() error {
	e.coding = codingFixed
	p, err := e.dictionaryPage()
	if err != nil {
		return err
	}
	if err := e.sink.Dictionary(p); err != nil {
		return err
	}
	return e.held.Drain(e.sink)
}

func (e *Encoder) dictionaryPage() (Page, error) { return e.asm.dictionary(e.dict) }

// cut finishes the page at hand, if it has rows.
func (e *Encoder) cut(last bool) error {
	if e.n.rows == 0 {
		return nil
	}
	if e.coding == codingGrows && e.coded == 0 && !e.plain && (last || e.plainLen >= judgeable) &&
		len(e.codes) > 0 && !e.worth(keepNumerator, keepDenominator) {
		if err := e.drop(); err != nil {
			return err
		}
	}
	values, enc, err := e.encodeValues()
	if err != nil {
		return err
	}
	coded := enc == format.RLEDictionary
	page, err := e.asm.data(e.asm.encodeLevels(e.rep, e.def), values, enc, e.n, e.index())
	if err != nil {
		return err
	}
	if coded {
		e.coded++
		e.codedBytes += int64(len(values))
		e.codedPlain += int64(e.plainLen)
	}
	e.begin()
	return e.emit(page)
}

// emit gives a finished page on, or holds it back.
func (e *Encoder) emit(p Page) error {
	if e.coding != codingGrows {
		return e.sink.Page(p)
	}
	if err := e.held.Page(p); err != nil {
		return err
	}
	if e.held.Bytes() <= e.o.HoldBytes && (e.coded == 0 || e.worth(growNumerator, growDenominator)) {
		return nil
	}
	if e.coded == 0 {
		return e.drop()
	}
	return e.fix()
}

// encodeValues encodes the values of the page at hand.
func (e *Encoder) encodeValues() ([]byte, format.Encoding, error) {
	switch {
	case !e.plain && e.dict.Len() > 0:
		e.foldBounds()
		width := CodeWidth(e.dict.Len())
		e.enc = appendHybrid(append(e.enc[:0], byte(width)), e.codes, width)
		return e.enc, format.RLEDictionary, nil
	case e.leaf.Type == format.Boolean:
		e.enc = packBooleans(e.enc[:0], e.vals)
		return e.enc, format.Plain, nil
	case e.o.Encoding == format.DeltaBinaryPacked:
		b, err := e.delta.encode(e.vals, e.leaf.Type)
		return b, format.DeltaBinaryPacked, err
	}
	return e.vals, format.Plain, nil
}

// index is what is known of the page at hand.
func (e *Encoder) index() PageIndex {
	x := PageIndex{Rows: int64(e.n.rows), Nulls: int64(e.n.levels - e.n.values), NaNs: e.bounds.nans, Unencoded: e.unencoded}
	x.Bounds, x.Min, x.Max = e.bounds.result()
	x.bind(e.leaf)
	if e.leaf.MaxRep > 0 {
		x.Rep = histogram(e.rep, e.leaf.MaxRep)
	}
	if e.leaf.MaxDef > 1 {
		x.Def = histogram(e.def, e.leaf.MaxDef)
	}
	return x
}

func histogram(levels []byte, greatest int) []int64 {
	var counts [256]int64
	for _, l := range levels {
		counts[l]++
	}
	return append(make([]int64, 0, greatest+1), counts[:greatest+1]...)
}

// Flush finishes the page at hand, so that what comes next begins a page.
func (e *Encoder) Flush() error { return e.cut(false) }

// Insert adds a page that was made elsewhere, of so many rows, after the rows
// given so far. A page that uses a dictionary must use the one of Options.
func (e *Encoder) Insert(p Page, rows int64) error {
	enc := p.Header.Encoding
	if (enc == format.RLEDictionary || enc == format.PlainDictionary) && e.o.Dictionary == nil {
		return fault.New(fault.Halt, "column "+e.leaf.Name+": a page of another dictionary")
	}
	if err := e.cut(false); err != nil {
		return err
	}
	e.rows += rows
	return e.emit(p)
}

// Close finishes the chunk. All pages are with the sink then.
func (e *Encoder) Close() error {
	if err := e.cut(true); err != nil {
		return err
	}
	if e.coding == codingGrows {
		if e.coded == 0 {
			return e.held.Drain(e.sink)
		}
		return e.fix()
	}
	return nil
}
