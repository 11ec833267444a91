package rawjson

import (
	"bytes"
	"slices"
)

// Object is an object being edited. Members keep their order; what is not
// edited keeps its bytes.
type Object struct {
	before, inside, after []byte
	members               []member
	index                 map[string]int
}

// member is one member with the text around it: lead key sep value trail.
type member struct {
	name                         string
	lead, key, sep, value, trail []byte
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{index: map[string]int{}} }

// ParseObject reads raw, which must hold one object and nothing else.
func ParseObject(raw []byte) (*Object, error) {
	o := &Object{index: map[string]int{}}
	open := skipSpace(raw, 0)
	pos := open + 1 // behind the brace or the last comma
	err := EachMember(raw, func(key, value []byte) error {
		start := skipSpace(raw, pos)
		keyEnd, err := skipString(raw, start)
		if err != nil {
			return err
		}
		from := skipSpace(raw, skipSpace(raw, keyEnd)+1)
		end := from + len(value)
		next := skipSpace(raw, end)
		o.index[string(key)] = len(o.members)
		o.members = append(o.members, member{
			name: string(key), lead: raw[pos:start], key: raw[start:keyEnd], sep: raw[keyEnd:from],
			value: raw[from:end], trail: raw[end:next],
		})
		pos = next + 1
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.before = raw[:open]
	if len(o.members) == 0 {
		closing := skipSpace(raw, open+1)
		o.inside, pos = raw[open+1:closing], closing+1
	}
	o.after = raw[pos:]
	return o, nil
}

// Get returns the raw value of key.
func (o *Object) Get(key string) ([]byte, bool) {
	i, ok := o.index[key]
	if !ok {
		return nil, false
	}
	return o.members[i].value, true
}

// Keys are the names of the members in order.
func (o *Object) Keys() []string {
	out := make([]string, len(o.members))
	for i, m := range o.members {
		out[i] = m.name
	}
	return out
}

// Len is the number of members.
func (o *Object) Len() int { return len(o.members) }

// Set gives key the raw value, in place where the key exists, else at the end.
func (o *Object) Set(key string, value []byte) {
	if i, ok := o.index[key]; ok {
		o.members[i].value = value
		return
	}
	m := member{name: key, key: Quote(key), sep: []byte(":"), value: value, lead: o.inside}
	if n := len(o.members); n > 0 {
		last := &o.members[n-1]
		m.lead, m.sep, m.trail = last.lead, last.sep, last.trail
		last.trail = nil
	}
	o.index[key] = len(o.members)
	o.members = append(o.members, m)
}

// Delete removes key and reports whether it was there.
func (o *Object) Delete(key string) bool {
	i, ok := o.index[key]
	if !ok {
		return false
	}
	if i == len(o.members)-1 && i > 0 {
		o.members[i-1].trail = o.members[i].trail
	}
	o.members = slices.Delete(o.members, i, i+1)
	delete(o.index, key)
	for j := i; j < len(o.members); j++ {
		o.index[o.members[j].name] = j
	}
	return true
}

// Bytes is the object as edited.
func (o *Object) Bytes() []byte {
	size := len(o.before) + len(o.inside) + len(o.after) + 2
	for _, m := range o.members {
		size += len(m.lead) + len(m.key) + len(m.sep) + len(m.value) + len(m.trail) + 1
	}
	out := make([]byte, 0, size)
	out = append(append(out, o.before...), '{')
	for i, m := range o.members {
		if i > 0 {
			out = append(out, ',')
		}
		for _, part := range [...][]byte{m.lead, m.key, m.sep, m.value, m.trail} {
			out = append(out, part...)
		}
	}
	if len(o.members) == 0 {
		out = append(out, o.inside...)
	}
	return append(append(out, '}'), o.after...)
}

// Array is an array being edited.
type Array struct {
	before, inside, after []byte
	elements              []element
}

type element struct{ lead, value, trail []byte }

// ParseArray reads raw, which must hold one array and nothing else.
func ParseArray(raw []byte) (*Array, error) {
	a := &Array{}
	open := skipSpace(raw, 0)
	pos := open + 1
	err := EachElement(raw, func(_ int, value []byte) error {
		start := skipSpace(raw, pos)
		end := start + len(value)
		next := skipSpace(raw, end)
		a.elements = append(a.elements, element{lead: raw[pos:start], value: raw[start:end], trail: raw[end:next]})
		pos = next + 1
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.before = raw[:open]
	if len(a.elements) == 0 {
		closing := skipSpace(raw, open+1)
		a.inside, pos = raw[open+1:closing], closing+1
	}
	a.after = raw[pos:]
	return a, nil
}

// Len is the number of elements.
func (a *Array) Len() int { return len(a.elements) }

// At is the raw value of element i.
func (a *Array) At(i int) []byte { return a.elements[i].value }

// Append adds a raw value at the end.
func (a *Array) Append(value []byte) {
	e := element{value: value, lead: a.inside}
	if n := len(a.elements); n > 0 {
		last := &a.elements[n-1]
		e.lead, e.trail = last.lead, last.trail
		last.trail = nil
	}
	a.elements = append(a.elements, e)
}

// Keep removes the elements for which keep is false.
func (a *Array) Keep(keep func(i int, value []byte) bool) {
	var end []byte
	if n := len(a.elements); n > 0 {
		end = a.elements[n-1].trail
	}
	kept := make([]element, 0, len(a.elements))
	for i, e := range a.elements {
		if keep(i, e.value) {
			kept = append(kept, e)
		}
	}
	if n := len(kept); n > 0 && n < len(a.elements) {
		kept[n-1].trail = end
	}
	a.elements = kept
}

// Bytes is the array as edited.
func (a *Array) Bytes() []byte {
	var b bytes.Buffer
	b.Write(a.before)
	b.WriteByte('[')
	for i, e := range a.elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(e.lead)
		b.Write(e.value)
		b.Write(e.trail)
	}
	if len(a.elements) == 0 {
		b.Write(a.inside)
	}
	b.WriteByte(']')
	b.Write(a.after)
	return b.Bytes()
}
