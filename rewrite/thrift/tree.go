package thrift

import (
	"encoding/binary"
	"unsafe"
)

// Struct is a struct with its fields in the order they were stored.
type Struct struct {
	Fields []Member
}

// Member is a field of a Struct.
type Member struct {
	ID    int16
	Value Value
}

// Value is a value of any kind. What is not of its kind is zero.
type Value struct {
	Kind Kind
	// Int is the value of an integer. Booleans of lists have 1 or 0 and kind
	// True; those of fields have only their kind.
	Int int64
	// Bytes are those of a binary, a UUID (16) or a double (8, little endian).
	Bytes []byte
	// Element is the kind of a list's elements, and of a map's values; Key is that
	// of a map's keys.
	Element, Key Kind
	// List are a list's elements, or a map's keys and values by turns.
	List   []Value
	Struct *Struct
}

// treeBound is the memory that a tree may take.
const treeBound = 64 << 20

// Parse reads the struct that b begins with, and says how many bytes it takes.
// Binaries are parts of b. Struct that end too early are ErrShort, ones that
// take more than 64 MiB as a tree are fault.TooLarge.
func Parse(b []byte) (*Struct, int, error) {
	r := NewReader(b, treeBound)
	s := r.tree()
	if r.err != nil {
		return nil, 0, r.err
	}
	return s, r.at, nil
}

func (r *Reader) tree() *Struct {
	s := new(Struct)
	r.Begin()
	for f := (Field{}); r.Next(&f); {
		r.Charge(int64(unsafe.Sizeof(Member{})) * 2) // append may double
		m := Member{ID: f.ID, Value: Value{Kind: f.Kind}}
		if f.Kind != True && f.Kind != False {
			r.value(&m.Value)
		}
		if r.err != nil {
			break
		}
		s.Fields = append(s.Fields, m)
	}
	return s
}

func (r *Reader) value(v *Value) {
	size := int(unsafe.Sizeof(Value{}))
	switch v.Kind {
	case True, False:
		if v.Kind = True; r.byte() == 1 {
			v.Int = 1
		}
	case I8, I16, I32, I64:
		v.Int = r.Int64(v.Kind)
	case Double:
		v.Bytes = r.take(8)
	case UUID:
		v.Bytes = r.take(16)
	case Binary:
		v.Bytes = r.Bytes(Binary)
	case List, Set:
		e, n := r.List(v.Kind, size)
		v.Element = e
		r.elements(v, n, e)
	case Map:
		key, value, n := r.table(2 * size)
		v.Key, v.Element = key, value
		r.elements(v, n, key, value)
	case Group:
		v.Struct = r.tree()
	default:
		r.Fail(kindError(v.Kind, "a known kind"))
	}
}

func (r *Reader) elements(v *Value, n int, kinds ...Kind) {
	if r.depth++; r.depth > MaxDepth {
		r.Fail(depthError())
	}
	if r.err != nil {
		return
	}
	v.List = make([]Value, 0, n*len(kinds))
	for range n {
		for _, k := range kinds {
			e := Value{Kind: k}
			r.value(&e)
			if r.err != nil {
				return
			}
			v.List = append(v.List, e)
		}
	}
	r.depth--
}

// Get returns the field of an id, or nil.
func (s *Struct) Get(id int16) *Value {
	for i := range s.Fields {
		if s.Fields[i].ID == id {
			return &s.Fields[i].Value
		}
	}
	return nil
}

// Set gives a field a value, in place or at the end of the smaller ids.
func (s *Struct) Set(id int16, v Value) {
	at := 0
	for i := range s.Fields {
		if s.Fields[i].ID == id {
			s.Fields[i].Value = v
			return
		}
		if s.Fields[i].ID < id {
			at = i + 1
		}
	}
	s.Fields = append(s.Fields, Member{})
	copy(s.Fields[at+1:], s.Fields[at:])
	s.Fields[at] = Member{id, v}
}

// Remove takes a field away, if it is there.
func (s *Struct) Remove(id int16) {
	kept := s.Fields[:0]
	for _, m := range s.Fields {
		if m.ID != id {
			kept = append(kept, m)
		}
	}
	s.Fields = kept
}

// Append appends the stored form of s to b.
func (s *Struct) Append(b []byte) []byte {
	w := Writer{B: b}
	s.write(&w)
	return w.B
}

func (s *Struct) write(w *Writer) {
	w.Begin()
	for i := range s.Fields {
		v := &s.Fields[i].Value
		w.Field(s.Fields[i].ID, v.Kind)
		if v.Kind != True && v.Kind != False {
			v.write(w)
		}
	}
	w.End()
}

func (v *Value) write(w *Writer) {
	switch v.Kind {
	case True, False:
		w.ElementBool(v.Int == 1)
	case I8:
		w.B = append(w.B, byte(v.Int))
	case I16, I32, I64:
		w.Int(v.Int)
	case Double, UUID:
		w.Raw(v.Bytes)
	case Binary:
		w.Binary(v.Bytes)
	case List, Set:
		w.list(v.Element, len(v.List))
		for i := range v.List {
			v.List[i].write(w)
		}
	case Map:
		w.B = binary.AppendUvarint(w.B, uint64(len(v.List)/2))
		if len(v.List) > 0 {
			w.B = append(w.B, byte(v.Key)<<4|byte(v.Element))
		}
		for i := range v.List {
			v.List[i].write(w)
		}
	case Group:
		v.Struct.write(w)
	}
}
