package thrift

import "encoding/binary"

// Writer appends values in the compact protocol. Fields of a struct must come in
// ascending order of their ids to be small, but need not.
type Writer struct {
	// B is what has been written.
	B     []byte
	last  int16
	outer []int16
}

func zag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

// Field begins a field; its value follows. Booleans have none.
func (w *Writer) Field(id int16, k Kind) {
	if d := int(id) - int(w.last); d > 0 && d < 16 {
		w.B = append(w.B, byte(d)<<4|byte(k))
	} else {
		w.B = append(w.B, byte(k))
		w.B = binary.AppendUvarint(w.B, zag(int64(id)))
	}
	w.last = id
}

// Begin enters a struct: the outermost one, an element of a list, or a field
// after Field.
func (w *Writer) Begin() {
	w.outer = append(w.outer, w.last)
	w.last = 0
}

// End ends the struct that Begin began last.
func (w *Writer) End() {
	w.B = append(w.B, 0)
	n := len(w.outer) - 1
	w.last, w.outer = w.outer[n], w.outer[:n]
}

// Struct begins a field that is a struct; End ends it.
func (w *Writer) Struct(id int16) {
	w.Field(id, Group)
	w.Begin()
}

// Int writes the value of an integer of 16, 32 or 64 bits.
func (w *Writer) Int(n int64) { w.B = binary.AppendUvarint(w.B, zag(n)) }

// Int16 writes a field.
func (w *Writer) Int16(id, n int16) {
	w.Field(id, I16)
	w.Int(int64(n))
}

// Int32 writes a field.
func (w *Writer) Int32(id int16, n int32) {
	w.Field(id, I32)
	w.Int(int64(n))
}

// Int64 writes a field.
func (w *Writer) Int64(id int16, n int64) {
	w.Field(id, I64)
	w.Int(n)
}

// Int8 writes a field.
func (w *Writer) Int8(id int16, n int8) {
	w.Field(id, I8)
	w.B = append(w.B, byte(n))
}

// Bool writes a field.
func (w *Writer) Bool(id int16, v bool) {
	k := False
	if v {
		k = True
	}
	w.Field(id, k)
}

// ElementBool writes a boolean of a list.
func (w *Writer) ElementBool(v bool) {
	k := False
	if v {
		k = True
	}
	w.B = append(w.B, byte(k))
}

// Binary writes the value of a binary.
func (w *Writer) Binary(b []byte) {
	w.B = binary.AppendUvarint(w.B, uint64(len(b)))
	w.B = append(w.B, b...)
}

// Bytes writes a field.
func (w *Writer) Bytes(id int16, b []byte) {
	w.Field(id, Binary)
	w.Binary(b)
}

// Text writes a field.
func (w *Writer) Text(id int16, s string) {
	w.Field(id, Binary)
	w.ElementText(s)
}

// ElementText writes text that is an element of a list.
func (w *Writer) ElementText(s string) {
	w.B = binary.AppendUvarint(w.B, uint64(len(s)))
	w.B = append(w.B, s...)
}

// List begins a field that is a list of n elements of a kind.
func (w *Writer) List(id int16, k Kind, n int) {
	w.Field(id, List)
	w.list(k, n)
}

func (w *Writer) list(k Kind, n int) {
	if n < 15 {
		w.B = append(w.B, byte(n)<<4|byte(k))
		return
	}
	w.B = append(w.B, 0xf0|byte(k))
	w.B = binary.AppendUvarint(w.B, uint64(n))
}

// Raw writes the stored form of a value.
func (w *Writer) Raw(b []byte) { w.B = append(w.B, b...) }
