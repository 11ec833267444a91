// Package column holds the values of one leaf column with their levels, and
// decodes them from pages. Nothing in it knows rows as objects: a nested column
// is its leaves, each a run of repetition levels, definition levels and values
// (Dremel, as parquet-format has it).
package column

import "github.com/seaice/seaice/rewrite/format"

// Values are values of one physical type without nulls, in one buffer.
type Values struct {
	Type format.Type
	// Width is the length in bytes of one value: 1 for booleans (0 or 1), 4, 8,
	// 12, or a fixed length; 0 for byte arrays.
	Width int
	// Data are the values one after another: fixed ones little endian as PLAIN
	// has them (booleans one byte each), byte arrays without lengths.
	Data []byte
	// Offsets are the ends: value i of a byte array column is
	// Data[Offsets[i]:Offsets[i+1]]. Nil for fixed widths.
	Offsets []uint32
}

// Len is the number of values.
func (v *Values) Len() int {
	if v.Width > 0 {
		return len(v.Data) / v.Width
	}
	return max(0, len(v.Offsets)-1)
}

// At is the bytes of value i, valid as long as the buffer.
func (v *Values) At(i int) []byte {
	if v.Width > 0 {
		return v.Data[i*v.Width : (i+1)*v.Width : (i+1)*v.Width]
	}
	return v.Data[v.Offsets[i]:v.Offsets[i+1]:v.Offsets[i+1]]
}

// Reset empties v, keeps its buffers, and sets what it will hold.
func (v *Values) Reset(t format.Type, width int) {
	v.Type, v.Width, v.Data = t, width, v.Data[:0]
	v.Offsets = v.Offsets[:0]
	if width == 0 {
		v.Offsets = append(v.Offsets, 0)
	}
}

// Append adds one value.
func (v *Values) Append(b []byte) {
	v.Data = append(v.Data, b...)
	if v.Width == 0 {
		v.Offsets = append(v.Offsets, uint32(len(v.Data)))
	}
}

// Batch is a run of levels with the values that are not null. A batch that a
// Reader yields begins at the begin of a row and ends at the end of one.
type Batch struct {
	// Rep and Def are the levels, one byte each; nil when the greatest level
	// is 0. Where both are nil every level has a value.
	Rep, Def []byte
	// Levels is the number of levels, nulls and empty lists included.
	Levels int
	// Rows is the number of rows.
	Rows   int
	Values Values
}
