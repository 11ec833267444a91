package rewrite

import (
	"bytes"

	"github.com/seaice/seaice/rewrite/column"
)

// cutter walks over the rows of a batch.
type cutter struct {
	in     *column.Batch
	maxDef byte
	// level and value are where the next row begins, row its number.
	level, value, row int
}

// run is a part of a batch: rows as levels and values.
type run struct{ levelBegin, levelEnd, valueBegin, valueEnd int }

// next gives the levels and values of the next rows.
func (c *cutter) next(rows int) run {
	r := run{levelBegin: c.level, valueBegin: c.value}
	r.levelEnd = c.level + rows
	if c.in.Rep != nil {
		r.levelEnd = c.level
		for left := rows; left > 0; left-- {
			r.levelEnd++
			// The row ends where the next one begins.
			if n := bytes.IndexByte(c.in.Rep[r.levelEnd:c.in.Levels], 0); n >= 0 {
				r.levelEnd += n
			} else {
				r.levelEnd = c.in.Levels
			}
		}
	}
	r.valueEnd = c.value + r.levelEnd - r.levelBegin
	if c.in.Def != nil {
		r.valueEnd = c.value + bytes.Count(c.in.Def[r.levelBegin:r.levelEnd], []byte{c.maxDef})
	}
	c.level, c.value, c.row = r.levelEnd, r.valueEnd, c.row+rows
	return r
}

// appendRun adds a part of in, which has so many rows, to out.
func appendRun(out, in *column.Batch, r run, rows int) {
	if in.Rep != nil {
		out.Rep = append(out.Rep, in.Rep[r.levelBegin:r.levelEnd]...)
	}
	if in.Def != nil {
		out.Def = append(out.Def, in.Def[r.levelBegin:r.levelEnd]...)
	}
	out.Levels += r.levelEnd - r.levelBegin
	out.Rows += rows
	appendValues(&out.Values, &in.Values, r.valueBegin, r.valueEnd)
}

// appendValues adds the values from begin up to, and without, end.
func appendValues(out, in *column.Values, begin, end int) {
	if begin >= end {
		return
	}
	if in.Width > 0 {
		out.Data = append(out.Data, in.Data[begin*in.Width:end*in.Width]...)
		return
	}
	from := in.Offsets[begin]
	shift := uint32(len(out.Data)) - from
	out.Data = append(out.Data, in.Data[from:in.Offsets[end]]...)
	for _, o := range in.Offsets[begin+1 : end+1] {
		out.Offsets = append(out.Offsets, o+shift)
	}
}

// resetLike empties b and makes it hold what in does.
func resetLike(b, in *column.Batch) {
	b.Levels, b.Rows = 0, 0
	b.Rep, b.Def = resetLevels(b.Rep, in.Rep != nil), resetLevels(b.Def, in.Def != nil)
	b.Values.Reset(in.Values.Type, in.Values.Width)
}

// resetLevels empties levels; where there are none they are nil, as a Batch has
// it.
func resetLevels(levels []byte, present bool) []byte {
	switch {
	case !present:
		return nil
	case levels == nil:
		return []byte{}
	}
	return levels[:0]
}
