package encode

import (
	"bytes"
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// The defaults of Iceberg's write.parquet properties.
const (
	DefaultPageBytes       = 1 << 20
	DefaultPageRows        = 20_000
	DefaultDictionaryBytes = 2 << 20
	// DefaultHoldBytes bounds the pages that wait for the dictionary to be
	// complete.
	DefaultHoldBytes = 32 << 20
)

// Options say how the pages of a chunk are made. The zero value of a number is
// its default.
type Options struct {
	Codec format.Codec
	// Level is the codec's; 0 is its default.
	Level int
	// Version of data pages, 1 or 2; 0 is 1, as Java writes.
	Version int
	// PageBytes and PageRows end a page. Pages end at rows, so that one row may
	// make a page longer than PageBytes.
	PageBytes int
	PageRows  int
	// DictionaryBytes is the greatest length of the dictionary in PLAIN form;
	// negative is no dictionary.
	DictionaryBytes int
	// Encoding is that of values without a dictionary: Plain, or
	// DeltaBinaryPacked for integers that old readers need not read.
	Encoding format.Encoding
	// Dictionary, when not nil, is a dictionary that is complete and whose page
	// the caller writes. Pages use it when it has all their values.
	Dictionary *Dictionary
	// HoldBytes bounds the pages held back for the dictionary. When it is
	// passed the dictionary is complete.
	HoldBytes int
	// CRC adds the checksum of each page to its header.
	CRC bool
	// Bloom, when not nil, is given every distinct value.
	Bloom *Bloom
}

func (o *Options) setDefaults() {
	def := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def(&o.Version, 1)
	def(&o.PageBytes, DefaultPageBytes)
	def(&o.PageRows, DefaultPageRows)
	def(&o.DictionaryBytes, DefaultDictionaryBytes)
	def(&o.HoldBytes, DefaultHoldBytes)
}

func (o *Options) check(leaf *format.Node) error {
	switch {
	case o.Version != 1 && o.Version != 2:
		return fault.New(fault.Unsupported, fmt.Sprintf("data page version %d", o.Version))
	case o.PageBytes < 0 || o.PageRows < 0 || o.HoldBytes < 0:
		return fault.New(fault.Unsupported, "negative page limit")
	case o.Encoding == format.DeltaBinaryPacked && leaf.Type != format.Int32 && leaf.Type != format.Int64:
		return fault.New(fault.Unsupported, "column "+leaf.Name+": DELTA_BINARY_PACKED is for integers")
	case o.Encoding != format.Plain && o.Encoding != format.DeltaBinaryPacked:
		return fault.New(fault.Unsupported, fmt.Sprintf("column %s: encoding %d for values without a dictionary", leaf.Name, o.Encoding))
	}
	return nil
}

// coding is the state of a chunk's dictionary.
type coding uint8

const (
	// codingNone: values are not coded.
	codingNone coding = iota
	// codingGrows: new values are added, finished pages are held back.
	codingGrows
	// codingFixed: the dictionary is written; pages whose values it has use it.
	codingFixed
)

// Encoder makes the pages of one column chunk of one leaf. Errors leave it
// unusable.
type Encoder struct {
	leaf  *format.Node
	o     Options
	sink  Sink
	width int
	asm   assembler

	dict   *Dictionary
	coding coding
	// misses counts the pages that found values missing in a fixed dictionary.
	misses int
	held   Buffer
	// coded counts the pages that use the dictionary; codedPlain and codedBytes
	// are the length their values would have in PLAIN, and have.
	coded                  int
	codedPlain, codedBytes int64

	// The page at hand. Either codes or vals has its values; vals are PLAIN,
	// booleans one byte each.
	rep, def  []byte
	plain     bool
	codes     []uint32
	vals      []byte
	n         counts
	plainLen  int // PLAIN length of the values
	unencoded int64
	bounds    bounds
	// seen has, by code, the number of the page that last had it.
	seen []uint32
	page uint32

	enc   []byte // encoded values
	delta deltas
	rows  int64
}

// NewEncoder returns an encoder whose pages go to sink.
func NewEncoder(leaf *format.Node, o Options, sink Sink) (*Encoder, error) {
	e := new(Encoder)
	if err := e.Reset(leaf, o, sink); err != nil {
		return nil, err
	}
	return e, nil
}

// Reset makes e ready for another chunk, and keeps its buffers.
func (e *Encoder) Reset(leaf *format.Node, o Options, sink Sink) error {
	width, err := valueWidth(leaf)
	if err != nil {
		return err
	}
	o.setDefaults()
	if err := o.check(leaf); err != nil {
		return err
	}
	*e = Encoder{
		leaf: leaf, o: o, sink: sink, width: width,
		rep: e.rep[:0], def: e.def[:0], codes: e.codes[:0], vals: e.vals[:0], enc: e.enc[:0], delta: e.delta,
		asm:    assembler{leaf: leaf, levels: e.asm.levels, raw: e.asm.raw, body: e.asm.body, zstd: zstdChoice{trial: e.asm.zstd.trial}},
		bounds: bounds{order: OrderingOf(leaf), min: e.bounds.min, max: e.bounds.max},
	}
	e.asm.o = &e.o
	e.asm.zstd.reset()
	switch {
	case o.Dictionary != nil:
		e.dict, e.coding = o.Dictionary, codingFixed
	case o.DictionaryBytes > 0 && leaf.Type != format.Boolean:
		if e.dict, err = NewDictionary(leaf, o.DictionaryBytes); err != nil {
			return err
		}
		e.coding = codingGrows
	}
	e.begin()
	return nil
}

// begin empties the page at hand.
func (e *Encoder) begin() {
	e.rep, e.def, e.codes, e.vals = e.rep[:0], e.def[:0], e.codes[:0], e.vals[:0]
	e.plain = e.coding == codingNone
	e.n, e.plainLen, e.unencoded = counts{}, 0, 0
	e.page++
	e.bounds.reset()
}

// Rows is the number of rows given so far.
func (e *Encoder) Rows() int64 { return e.rows }

// Buffered is the memory, in bytes, of what was given and is not with the sink
// yet: held pages, the dictionary and the page at hand.
func (e *Encoder) Buffered() int {
	n := e.held.Bytes() + cap(e.rep) + cap(e.def) + 4*cap(e.codes) + cap(e.vals) + cap(e.enc) + 4*cap(e.seen)
	n += cap(e.asm.levels) + cap(e.asm.raw) + cap(e.asm.body) + cap(e.asm.zstd.trial) + cap(e.delta.out) + 4*cap(e.delta.i32) + 8*cap(e.delta.i64)
	if e.dict != nil && e.dict != e.o.Dictionary {
		n += e.dict.Memory()
	}
	return n
}

// Write adds whole rows. b is not kept.
func (e *Encoder) Write(b *column.Batch) error {
	if err := e.check(b); err != nil {
		return err
	}
	e.rows += int64(b.Rows)
	for at := (span{}); at.level < b.Levels; {
		if e.n.rows >= e.o.PageRows || e.cost() >= e.o.PageBytes {
			if err := e.cut(false); err != nil {
				return err
			}
		}
		s, fits := e.fit(b, at)
		if !fits && e.n.rows > 0 {
			if err := e.cut(false); err != nil {
				return err
			}
			continue
		}
		if err := e.take(b, s); err != nil {
			return err
		}
		at = span{level: s.level + s.levels, value: s.value + s.values}
	}
	return nil
}

// check refuses a batch that contradicts itself or the leaf.
func (e *Encoder) check(b *column.Batch) error {
	v := &b.Values
	bad := ""
	switch {
	case b.Levels == 0 && b.Rows == 0:
	case e.leaf.MaxDef > 0 && len(b.Def) != b.Levels:
		bad = "definition levels"
	case e.leaf.MaxRep > 0 && len(b.Rep) != b.Levels:
		bad = "repetition levels"
	case e.leaf.MaxRep > 0 && (b.Rep[0] != 0 || bytes.Count(b.Rep, []byte{0}) != b.Rows):
		bad = "rows"
	case e.leaf.MaxRep == 0 && b.Rows != b.Levels:
		bad = "rows"
	case e.leaf.MaxDef == 0 && v.Len() != b.Levels,
		e.leaf.MaxDef > 0 && v.Len() != bytes.Count(b.Def, []byte{byte(e.leaf.MaxDef)}):
		bad = "values"
	case v.Len() > 0 && (v.Type != e.leaf.Type || v.Width != e.width):
		bad = "type of values"
	}
	if bad != "" {
		return fault.New(fault.Halt, fmt.Sprintf("encode column %s: %s of a batch do not agree with the rest", e.leaf.Name, bad))
	}
	return nil
}

// span is a part of a batch: whole rows.
type span struct {
	level, value         int // begins
	levels, values, rows int
}

// fit is the longest span from at on that leaves the page within its limits; when
// not even one row does, it is that row and fits is false.
func (e *Encoder) fit(b *column.Batch, at span) (s span, fits bool) {
	room := e.o.PageBytes - e.cost()
	for rows := e.o.PageRows - e.n.rows; ; rows = s.rows / 2 {
		s = e.span(b, at, max(rows, 1))
		if e.spanCost(&b.Values, s) <= room {
			return s, true
		}
		if s.rows <= 1 {
			return s, false
		}
	}
}

// span is up to so many rows from at on.
func (e *Encoder) span(b *column.Batch, at span, rows int) span {
	s := span{level: at.level, value: at.value}
	if e.leaf.MaxRep == 0 {
		s.levels = min(rows, b.Levels-at.level)
		s.rows = s.levels
	} else {
		end := at.level
		for ; s.rows < rows && end < b.Levels; s.rows++ {
			next := bytes.IndexByte(b.Rep[end+1:], 0)
			if next < 0 {
				end = b.Levels
			} else {
				end += 1 + next
			}
		}
		s.levels = end - at.level
	}
	s.values = s.levels
	if e.leaf.MaxDef > 0 {
		s.values = bytes.Count(b.Def[s.level:s.level+s.levels], []byte{byte(e.leaf.MaxDef)})
	}
	return s
}

// cost is the length the page at hand is taken to have.
func (e *Encoder) cost() int {
	if e.coded > 0 && !e.plain {
		return (len(e.codes)*CodeWidth(e.dict.Len()) + e.n.levels) / 8
	}
	return e.plainLen + e.n.levels/8
}

// spanCost is what a span would add to cost.
func (e *Encoder) spanCost(v *column.Values, s span) int {
	if e.coded > 0 && !e.plain {
		return (s.values*CodeWidth(e.dict.Len()) + s.levels) / 8
	}
	return plainSize(v, s.value, s.value+s.values) + s.levels/8
}
