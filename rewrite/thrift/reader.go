package thrift

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/seaice/seaice/fault"
)

// Reader goes over values in the compact protocol. After the first error it
// yields zeros and no fields; Err says what was wrong. Slices that it yields are
// parts of the bytes it was given.
type Reader struct {
	b     []byte
	at    int
	depth int
	err   error
	left  int64
	bound int64
}

// NewReader reads b. Lists may need bound bytes of memory at most, as their
// readers state with List.
func NewReader(b []byte, bound int64) Reader { return Reader{b: b, left: bound, bound: bound} }

// Field is the id and the kind of a field of a struct. Its zero value is that
// before the first field.
type Field struct {
	ID   int16
	Kind Kind
}

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// At is the number of bytes read.
func (r *Reader) At() int { return r.at }

// Between is the bytes from one position to another.
func (r *Reader) Between(from, to int) []byte { return r.b[from:to:to] }

// Fail ends the reading with err, if nothing has ended it before.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// In names what was being read, if there is an error.
func (r *Reader) In(doing string) { r.err = fault.In(doing, r.err) }

func (r *Reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.at >= len(r.b) {
		r.err = ErrShort
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *Reader) varint() uint64 {
	if r.err != nil {
		return 0
	}
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint64(r.b[r.at-1])
	}
	n, used := binary.Uvarint(r.b[r.at:])
	if used <= 0 {
		if used < 0 {
			r.err = fault.New(fault.Corrupt, "an integer has more than 64 bits")
		} else {
			r.err = ErrShort
		}
		return 0
	}
	r.at += used
	return n
}

func zigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

func (r *Reader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)-r.at) {
		r.err = ErrShort
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at : r.at]
}

// Begin enters a struct: call it before its first Next.
func (r *Reader) Begin() {
	if r.depth++; r.depth > MaxDepth {
		r.Fail(depthError())
	}
}

// Next reads the header of the next field into f. It is false after the last
// one, when the struct is left, and after an error.
func (r *Reader) Next(f *Field) bool {
	h := r.byte()
	if r.err != nil {
		return false
	}
	if h == 0 {
		r.depth--
		return false
	}
	f.Kind = Kind(h & 0xf)
	if f.Kind == 0 || f.Kind > UUID {
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("there is no kind %d", f.Kind)))
		return false
	}
	if delta := h >> 4; delta > 0 {
		f.ID += int16(delta) // wraps like any id that is not known
		return true
	}
	n := zigzag(r.varint())
	if n < math.MinInt16 || n > math.MaxInt16 {
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("there is no field %d", n)))
	}
	f.ID = int16(n)
	return r.err == nil
}

// Int64 reads an integer of any width.
func (r *Reader) Int64(k Kind) int64 {
	switch k {
	case I16, I32, I64:
		return zigzag(r.varint())
	case I8:
		return int64(int8(r.byte()))
	}
	r.Fail(kindError(k, "an integer"))
	return 0
}

// Int32 reads an integer that must fit into 32 bits.
func (r *Reader) Int32(k Kind) int32 {
	n := r.Int64(k)
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("%d has more than 32 bits", n)))
		return 0
	}
	return int32(n)
}

// Bool reads a boolean field, which lies in its kind.
func (r *Reader) Bool(k Kind) bool {
	if k != True && k != False {
		r.Fail(kindError(k, "a boolean"))
	}
	return k == True
}

// ElementBool reads a boolean of a list. Writers store false as 0 or as 2.
func (r *Reader) ElementBool(k Kind) bool {
	if k != True && k != False {
		r.Fail(kindError(k, "a boolean"))
	}
	return r.byte() == 1
}

// Bytes reads a binary. The result is a part of the Reader's bytes and never nil
// when there was no error.
func (r *Reader) Bytes(k Kind) []byte {
	if k != Binary {
		r.Fail(kindError(k, "a binary"))
		return nil
	}
	b := r.take(r.varint())
	if b == nil && r.err == nil {
		b = []byte{}
	}
	return b
}

// Text reads a binary as text.
func (r *Reader) Text(k Kind) string { return string(r.Bytes(k)) }

// List reads the header of a list whose elements take size bytes of memory each
// once they are read. The count is not greater than the bytes that are left.
func (r *Reader) List(k Kind, size int) (Kind, int) {
	if k != List && k != Set {
		r.Fail(kindError(k, "a list"))
		return 0, 0
	}
	h := r.byte()
	n := uint64(h >> 4)
	if n == 15 {
		n = r.varint()
	}
	if r.err != nil {
		return 0, 0
	}
	r.count(n, size)
	if r.err != nil {
		return 0, 0
	}
	return Kind(h & 0xf), int(n)
}

// count admits n elements of size bytes. Each takes a byte at least.
func (r *Reader) count(n uint64, size int) {
	if n > uint64(len(r.b)-r.at) {
		r.Fail(ErrShort)
		return
	}
	r.Charge(int64(n) * int64(size))
}

// Charge takes n bytes of memory from what the Reader may need.
func (r *Reader) Charge(n int64) {
	if r.left -= n; r.left < 0 {
		r.Fail(fault.New(fault.TooLarge, fmt.Sprintf("read, it takes more than %d bytes of memory", r.bound)))
	}
}

// Struct enters a struct that is a field or an element of kind k.
func (r *Reader) Struct(k Kind) {
	if k != Group {
		r.Fail(kindError(k, "a struct"))
		return
	}
	r.Begin()
}

// Skip goes over a field of kind k.
func (r *Reader) Skip(k Kind) {
	if k != True && k != False {
		r.skip(k)
	}
}

// skip goes over an element of kind k.
func (r *Reader) skip(k Kind) {
	if r.err != nil {
		return
	}
	switch k {
	case True, False, I8:
		r.byte()
	case I16, I32, I64:
		r.varint()
	case Double:
		r.take(8)
	case UUID:
		r.take(16)
	case Binary:
		r.take(r.varint())
	case List, Set:
		e, n := r.List(k, 0)
		r.times(n, e)
	case Map:
		key, value, n := r.table(0)
		r.times(n, key, value)
	case Group:
		r.Begin()
		for f := (Field{}); r.Next(&f); {
			r.Skip(f.Kind)
		}
	default:
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("there is no kind %d", k)))
	}
}

// table reads the header of a map.
func (r *Reader) table(size int) (key, value Kind, n int) {
	count := r.varint()
	if r.err != nil || count == 0 {
		return 0, 0, 0
	}
	h := r.byte()
	if r.count(count, size); r.err != nil {
		return 0, 0, 0
	}
	return Kind(h >> 4), Kind(h & 0xf), int(count)
}

func (r *Reader) times(n int, kinds ...Kind) {
	if r.depth++; r.depth > MaxDepth {
		r.Fail(depthError())
	}
	for range n {
		for _, k := range kinds {
			r.skip(k)
		}
		if r.err != nil {
			return
		}
	}
	r.depth--
}
