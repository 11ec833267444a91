package config

import (
	"fmt"
	"strings"
)

// Line explains one setting of a table.
type Line struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Unit    Unit   `json:"unit,omitempty"`
	Origin  Origin `json:"origin"`
	// Overridden are values of lower layers that were given in vain, the
	// default among them, lowest first.
	Overridden []Layer `json:"overridden,omitempty"`
}

// Explain says for every setting which value holds, where it came from and
// what it overrode, in the order of the documents.
func (s *Settings) Explain() []Line {
	var out []Line
	for i := range table {
		d := &table[i]
		layers := s.layers[d.Name]
		if len(layers) == 0 {
			continue
		}
		top := layers[len(layers)-1]
		line := Line{Setting: d.Name, Value: top.Value, Unit: d.Unit, Origin: top.Origin}
		if len(layers) > 1 {
			line.Overridden = append(line.Overridden, layers[:len(layers)-1]...)
		}
		out = append(out, line)
	}
	return out
}

// String is the line for people: "target_file_size_mb = 512 MB, from table
// property write.target-file-size-bytes (over 256 from default)".
func (l Line) String() string {
	var b strings.Builder
	value := l.Value
	if value == "" {
		value = `""`
	}
	fmt.Fprintf(&b, "%s = %s", l.Setting, value)
	if l.Unit != UnitNone && l.Value != "forever" {
		b.WriteString(" " + string(l.Unit))
	}
	fmt.Fprintf(&b, ", from %s", l.Origin)
	for i := len(l.Overridden) - 1; i >= 0; i-- {
		o := l.Overridden[i]
		word := ", "
		if i == len(l.Overridden)-1 {
			word = " (over "
		}
		text := o.Value
		if text == "" {
			text = `""`
		}
		fmt.Fprintf(&b, "%s%s from %s", word, text, o.Origin)
	}
	if len(l.Overridden) > 0 {
		b.WriteString(")")
	}
	return b.String()
}
