package resolve

import (
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// Source says where one leaf of a target comes from in one file. It is
// immutable and safe for concurrent use.
type Source struct {
	// Leaf is the leaf of the file that holds the column or, if Synthetic, whose
	// levels it takes; -1 is none: every row is alike, see Fill.
	Leaf int
	// Synthetic reports that the values are not in the file but Constant.
	Synthetic bool
	// Constant is the value in the target's physical form as PLAIN has it,
	// without a length; nil is null. Booleans are one byte.
	Constant []byte
	// Level is the definition level of a Synthetic leaf where all that encloses
	// it is there. It may be lower than the greatest: null, or an empty list.
	Level byte
	// Def and Rep map the levels of the file's leaf to the target's; nil is
	// identity. A negative Def must not occur: a null where the table requires a
	// value. A negative Rep drops the entry, which is one of a deeper list.
	Def, Rep []int8
	// Convert is what is done to values.
	Convert Conversion
	// Copyable reports that schemas allow pages to be moved as they are: the
	// physical type, what the annotation means (unit, scale, precision, sign) and
	// the repetition of the leaf and of all that encloses it are equal. Codec
	// and writer are for the caller to look at, see TrustedWriter.
	Copyable bool
	// Lineage asks the caller to complete the nulls.
	Lineage Lineage

	conv     conversion
	target   *format.Node
	name     string
	required string
	def, rep *[256]int8
}

const invalid int8 = -2

// prepare makes tables that every byte can be looked up in.
func (s *Source) prepare() {
	s.def, s.rep = table(s.Def), table(s.Rep)
}

func table(m []int8) *[256]int8 {
	if m == nil {
		return nil
	}
	var t [256]int8
	for i := range t {
		t[i] = invalid
	}
	copy(t[:], m)
	return &t
}

// Nulls reports whether every value the source yields is null, or lies in a null
// or empty list.
func (s *Source) Nulls() bool {
	return s.Synthetic && (s.Constant == nil || int(s.Level) < s.target.MaxDef)
}

// Identity reports whether Apply changes nothing.
func (s *Source) Identity() bool {
	return s.Leaf >= 0 && !s.Synthetic && s.Def == nil && s.Rep == nil && s.Convert == Keep
}

// Apply maps the levels of in and converts its values, of whole rows of the leaf
// s.Leaf. It returns the batch that holds the result: in itself if nothing
// changes, else out, which never shares buffers with in. If the source is
// Synthetic only the levels of in are read.
//
// A null where the table requires a value, and a value that the table's type
// does not hold, are fault.Unsupported and name the column.
func (s *Source) Apply(in, out *column.Batch) (*column.Batch, error) {
	if s.Identity() {
		return in, nil
	}
	if s.Leaf < 0 {
		return nil, fault.New(fault.Halt, fmt.Sprintf("column %s has no levels in the file to apply", s.name))
	}
	out.Rows, out.Levels = in.Rows, in.Levels
	if err := s.levels(in, out); err != nil {
		return nil, err
	}
	if s.Synthetic {
		s.constants(out)
		return out, nil
	}
	if in.Values.Type != s.conv.from.typ || in.Values.Width != s.conv.from.width {
		return nil, fault.New(fault.Halt, fmt.Sprintf("column %s has values of type %d and width %d, %d and %d were resolved",
			s.name, in.Values.Type, in.Values.Width, s.conv.from.typ, s.conv.from.width))
	}
	out.Values.Reset(s.target.Type, s.target.Width())
	if err := s.conv.apply(&in.Values, &out.Values); err != nil {
		return nil, fault.In("convert column "+s.name, err)
	}
	return out, nil
}

// Fill makes rows of a source without a leaf.
func (s *Source) Fill(out *column.Batch, rows int) error {
	if s.Leaf >= 0 {
		return fault.New(fault.Halt, fmt.Sprintf("column %s has its levels in leaf %d", s.name, s.Leaf))
	}
	out.Rows, out.Levels = rows, rows
	out.Def = constant(out.Def, s.target.MaxDef, rows, s.Level)
	out.Rep = constant(out.Rep, s.target.MaxRep, rows, 0)
	s.constants(out)
	return nil
}

// constant is n levels that are alike, or nil if the greatest level is 0.
func constant(buffer []byte, greatest, n int, l byte) []byte {
	if greatest == 0 {
		return nil
	}
	buffer = slices.Grow(buffer[:0], n)[:n]
	for i := range buffer {
		buffer[i] = l
	}
	return buffer
}

// constants appends the constant for every entry that has a value.
func (s *Source) constants(out *column.Batch) {
	out.Values.Reset(s.target.Type, s.target.Width())
	if s.Constant == nil {
		return
	}
	n := out.Levels
	if out.Def != nil {
		n = 0
		for _, d := range out.Def {
			if int(d) == s.target.MaxDef {
				n++
			}
		}
	}
	out.Values.Data = slices.Grow(out.Values.Data, n*len(s.Constant))
	for range n {
		out.Values.Append(s.Constant)
	}
}

// levels maps those of in.
func (s *Source) levels(in, out *column.Batch) error {
	if s.Rep != nil && in.Rep != nil {
		return s.thin(in, out)
	}
	switch {
	case s.target.MaxRep == 0:
		out.Rep = nil
	case in.Rep == nil:
		out.Rep = constant(out.Rep, s.target.MaxRep, in.Levels, 0)
	default:
		out.Rep = append(out.Rep[:0], in.Rep...)
	}
	if s.Def == nil {
		if in.Def == nil {
			out.Def = nil
			return nil
		}
		out.Def = append(out.Def[:0], in.Def...)
		return nil
	}
	if in.Def == nil {
		if s.Def[0] < 0 && in.Levels > 0 {
			return s.refuse(s.Def[0])
		}
		out.Def = constant(out.Def, s.target.MaxDef, in.Levels, byte(s.Def[0]))
		return nil
	}
	out.Def = slices.Grow(out.Def[:0], len(in.Def))[:len(in.Def)]
	least := int8(0)
	for i, d := range in.Def {
		t := s.def[d]
		least = min(least, t)
		out.Def[i] = byte(t)
	}
	if least < 0 {
		return s.refuse(least)
	}
	if s.target.MaxDef == 0 {
		out.Def = nil
	}
	return nil
}

// thin maps levels and drops the entries of deeper lists.
func (s *Source) thin(in, out *column.Batch) error {
	out.Rep = slices.Grow(out.Rep[:0], len(in.Rep))
	out.Def = slices.Grow(out.Def[:0], len(in.Rep))
	for i, r := range in.Rep {
		t := s.rep[r]
		if t == dropped {
			continue
		}
		d := byte(0)
		if in.Def != nil {
			d = in.Def[i]
		}
		td := s.def[d]
		if t < 0 || td < 0 {
			return s.refuse(min(t, td))
		}
		out.Rep, out.Def = append(out.Rep, byte(t)), append(out.Def, byte(td))
	}
	out.Levels = len(out.Rep)
	if s.target.MaxRep == 0 {
		out.Rep = nil
	}
	if s.target.MaxDef == 0 {
		out.Def = nil
	}
	return nil
}

func (s *Source) refuse(l int8) error {
	if l == invalid {
		return fault.New(fault.Corrupt, fmt.Sprintf("column %s has a level above the greatest", s.name))
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("column %s is required and null in the file", s.required))
}

// Value converts one value of the file's leaf, such as a bound of its
// statistics. The conversions keep the order of values. An error says that the
// target has no such value.
func (s *Source) Value(b []byte) ([]byte, error) {
	from := s.conv.from
	if s.Synthetic || from.width > 0 && len(b) != from.width {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("column %s has a bound of %d bytes", s.name, len(b)))
	}
	var in, out column.Values
	in.Reset(from.typ, from.width)
	in.Append(b)
	out.Reset(s.target.Type, s.target.Width())
	if err := s.conv.apply(&in, &out); err != nil {
		return nil, fault.In("convert a bound of column "+s.name, err)
	}
	if out.Len() != 1 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("column %s has a bound and no values", s.name))
	}
	return out.At(0), nil
}
