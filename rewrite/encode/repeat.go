package encode

import (
	"bytes"
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// writeRows is the number of rows up to which repeated rows are written as
// values: a page for fewer of them costs more than it saves.
const writeRows = 1024

// Repeat adds rows that are all alike and have one level each: definition level
// def, and value where that is the greatest. Nothing is made per row.
func (e *Encoder) Repeat(rows int64, def int, value []byte) error {
	full := def == e.leaf.MaxDef
	if rows < 0 || def < 0 || def > e.leaf.MaxDef || full != (value != nil) || full && e.width > 0 && len(value) != e.width {
		return fault.New(fault.Halt, fmt.Sprintf("encode column %s: repeat a value of %d bytes at definition level %d of %d", e.leaf.Name, len(value), def, e.leaf.MaxDef))
	}
	if rows <= writeRows {
		return e.repeatRows(int(rows), def, value)
	}
	if err := e.cut(false); err != nil {
		return err
	}
	code := missing
	if full && e.coding != codingNone {
		code = e.codeOf(value)
	}
	if full && code == missing {
		step := int64(min(e.o.PageRows, max(1, e.o.PageBytes/(len(value)+4))))
		for ; rows > 0; rows -= step {
			if err := e.repeatRows(int(min(rows, step)), def, value); err != nil {
				return err
			}
		}
		return nil
	}
	e.rows += rows
	var page Page
	var kept Buffer
	for rows > 0 {
		n := int(min(rows, int64(e.o.PageRows)))
		if int64(n) == rows || page.Body == nil {
			var err error
			if page, err = e.repeatPage(n, def, value, code); err != nil {
				return err
			}
			page = kept.own(page)
		}
		if page.Header.Encoding == format.RLEDictionary {
			e.coded++
		}
		if code != missing {
			e.codedPlain += int64(n * e.dict.plainSize(value))
		}
		if err := e.emit(page); err != nil {
			return err
		}
		rows -= int64(n)
	}
	e.begin()
	return nil
}

// codeOf is the code of a value that is repeated, or missing.
func (e *Encoder) codeOf(value []byte) uint32 {
	if e.coding == codingFixed {
		code, _ := e.dict.Code(value)
		return code
	}
	before := e.dict.Len()
	code := e.dict.put(value)
	if e.o.Bloom != nil {
		e.o.Bloom.AddValues(&e.dict.values, before, e.dict.Len())
	}
	return code
}

// repeatRows writes repeated rows as a batch.
func (e *Encoder) repeatRows(n, def int, value []byte) error {
	b := column.Batch{Levels: n, Rows: n}
	if e.leaf.MaxRep > 0 {
		b.Rep = make([]byte, n)
	}
	if e.leaf.MaxDef > 0 {
		b.Def = bytes.Repeat([]byte{byte(def)}, n)
	}
	b.Values.Reset(e.leaf.Type, e.width)
	if value != nil {
		b.Values.Data = bytes.Repeat(value, n)
		if e.width == 0 {
			for i := range n {
				b.Values.Offsets = append(b.Values.Offsets, uint32((i+1)*len(value)))
			}
		}
	}
	return e.Write(&b)
}

// repeatPage makes a page of n rows that are alike.
func (e *Encoder) repeatPage(n, def int, value []byte, code uint32) (Page, error) {
	c := counts{levels: n, rows: n}
	x := PageIndex{Rows: int64(n), Nulls: int64(n)}
	if e.leaf.MaxRep > 0 {
		x.Rep = make([]int64, e.leaf.MaxRep+1)
		x.Rep[0] = int64(n)
	}
	if e.leaf.MaxDef > 1 {
		x.Def = make([]int64, e.leaf.MaxDef+1)
		x.Def[def] = int64(n)
	}
	e.bounds.reset()
	var values []byte
	var enc format.Encoding
	var err error
	switch {
	case code != missing:
		c.values, x.Nulls = n, 0
		one := column.Values{Type: e.leaf.Type, Width: e.width, Data: value, Offsets: []uint32{0, uint32(len(value))}}
		e.bounds.add(&one, 0, 1)
		x.NaNs = e.bounds.nans * int64(n)
		if e.leaf.Type == format.ByteArray {
			x.Unencoded = int64(n) * int64(len(value))
		}
		width := CodeWidth(e.dict.Len())
		values, enc = appendRun([]byte{byte(width)}, code, n, width), format.RLEDictionary
	case e.coding != codingNone && e.dict.Len() > 0:
		values, enc = []byte{byte(CodeWidth(e.dict.Len()))}, format.RLEDictionary
	default:
		e.begin()
		e.plain = true
		values, enc, err = e.encodeValues()
	}
	if err != nil {
		return Page{}, err
	}
	x.Bounds, x.Min, x.Max = e.bounds.result()
	x.bind(e.leaf)
	return e.asm.data(e.asm.repeatLevels(n, def), values, enc, c, x)
}
