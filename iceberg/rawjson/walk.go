package rawjson

import (
	"bytes"
	"fmt"

	"github.com/seaice/seaice/fault"
)

// EachMember calls see with the name and the value of every member of the
// object raw, in order, and ends with the first error. The slices point into
// raw. A key that occurs twice is an error.
func EachMember(raw []byte, see func(key, value []byte) error) error {
	var seen keySet
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return mismatch("an object", raw)
	}
	i = skipSpace(raw, i+1)
	if i < len(raw) && raw[i] == '}' {
		return atEnd(raw, i+1)
	}
	for {
		start := i
		value, err := skipKey(raw, i)
		if err != nil {
			return err
		}
		key, err := keyOf(raw[start:value])
		if err != nil {
			return err
		}
		if !seen.add(key) {
			return duplicate(key)
		}
		if i, err = skipValue(raw, value, 1); err != nil {
			return err
		}
		if err := see(key, raw[value:i]); err != nil {
			return err
		}
		i = skipSpace(raw, i)
		if i >= len(raw) {
			return syntax(i, "unexpected end")
		}
		switch raw[i] {
		case '}':
			return atEnd(raw, i+1)
		case ',':
			i = skipSpace(raw, i+1)
		default:
			return syntax(i, "expected a comma or the end")
		}
	}
}

// EachElement calls see with every element of the array raw, in order, and ends
// with the first error. The slices point into raw.
func EachElement(raw []byte, see func(n int, value []byte) error) error {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return mismatch("an array", raw)
	}
	i = skipSpace(raw, i+1)
	if i < len(raw) && raw[i] == ']' {
		return atEnd(raw, i+1)
	}
	for n := 0; ; n++ {
		end, err := skipValue(raw, i, 1)
		if err != nil {
			return err
		}
		if err := see(n, raw[i:end]); err != nil {
			return err
		}
		i = skipSpace(raw, end)
		if i >= len(raw) {
			return syntax(i, "unexpected end")
		}
		switch raw[i] {
		case ']':
			return atEnd(raw, i+1)
		case ',':
			i = skipSpace(raw, i+1)
		default:
			return syntax(i, "expected a comma or the end")
		}
	}
}

func atEnd(raw []byte, i int) error {
	if i = skipSpace(raw, i); i != len(raw) {
		return syntax(i, "text behind the end")
	}
	return nil
}

// keyOf is the name in text, which is a quoted key and what follows it up to
// the value.
func keyOf(text []byte) ([]byte, error) {
	end, err := skipString(text, 0)
	if err != nil {
		return nil, err
	}
	in := text[1 : end-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return in, nil
	}
	key, err := unescape(in)
	return []byte(key), err
}

func duplicate(key []byte) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("json key %q occurs twice", key))
}

// keySet remembers keys; small objects, which most are, cost no allocation.
type keySet struct {
	few  [24][]byte
	n    int
	many map[string]struct{}
}

// add reports whether key is new.
func (s *keySet) add(key []byte) bool {
	if s.many != nil {
		if _, ok := s.many[string(key)]; ok {
			return false
		}
		s.many[string(key)] = struct{}{}
		return true
	}
	for _, k := range s.few[:s.n] {
		if string(k) == string(key) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = key
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 2*len(s.few))
	for _, k := range s.few {
		s.many[string(k)] = struct{}{}
	}
	s.many[string(key)] = struct{}{}
	return true
}
