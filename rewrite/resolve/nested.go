package resolve

import (
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// list resolves a list by the rules of parquet-format for lists, the legacy
// layouts included. bare reports that the node is itself the repeated one.
func (r *resolver) list(f *field, m match, steps []step, bare bool) error {
	element := f.children[0]
	node, two, ok := elementOf(m.node, int32(element.id), bare)
	if !ok || bare && r.ids {
		return r.mismatch(f, m.node)
	}
	in, err := r.inner(element, node, m.names, "element")
	if err != nil {
		return err
	}
	return r.present(element, in, extend(steps, step{file: true, target: true, column: f.name}), two)
}

// elementOf finds the element of a list. two reports that it is the repeated
// node itself: lists in two levels have no null elements.
func elementOf(n *format.Node, id int32, bare bool) (element *format.Node, two, ok bool) {
	if bare {
		return n, true, true
	}
	if !n.Group || len(n.Children) != 1 || n.Children[0].Repetition != format.Repeated || notList(n) {
		return nil, false, false
	}
	repeated := n.Children[0]
	if !repeated.Group || len(repeated.Children) != 1 {
		return repeated, true, true
	}
	child := repeated.Children[0]
	switch {
	case repeated.FieldID != nil && *repeated.FieldID == id:
		return repeated, true, true
	case child.Repetition == format.Repeated:
		return repeated, true, true
	case child.FieldID != nil && *child.FieldID == id:
		return child, false, true
	case repeated.Name == "array", repeated.Name == n.Name+"_tuple":
		return repeated, true, true
	}
	return child, false, true
}

// notList reports whether a group is annotated as something else than a list.
func notList(n *format.Node) bool {
	if n.Logical != nil {
		return n.Logical.Kind != format.LogicalList
	}
	return n.Converted != nil && *n.Converted != convertedList
}

// mapping resolves a map: a group of one repeated group of key and value,
// whatever their names.
func (r *resolver) mapping(f *field, m match, steps []step) error {
	n := m.node
	if !n.Group || len(n.Children) != 1 || notMap(n) {
		return r.mismatch(f, n)
	}
	pair := n.Children[0]
	if pair.Repetition != format.Repeated || !pair.Group || len(pair.Children) != 2 {
		return r.mismatch(f, n)
	}
	steps = extend(steps, step{file: true, target: true, column: f.name})
	key, value := pair.Children[0], pair.Children[1]
	if r.ids && fieldID(key) == f.children[1].id && fieldID(value) == f.children[0].id {
		key, value = value, key
	}
	for i, c := range []*format.Node{key, value} {
		in, err := r.inner(f.children[i], c, m.names, [2]string{"key", "value"}[i])
		if err != nil {
			return err
		}
		if err := r.present(f.children[i], in, steps, false); err != nil {
			return err
		}
	}
	return nil
}

func notMap(n *format.Node) bool {
	if n.Logical != nil {
		return n.Logical.Kind != format.LogicalMap
	}
	return n.Converted != nil && *n.Converted != convertedMap && *n.Converted != 2
}

// inner checks that an element, key or value is the one the table means. Its
// place tells which it is; an id that is missing or another one would make
// other readers see something else (F049).
func (r *resolver) inner(f *field, n *format.Node, names []icego.MappedField, name string) (match, error) {
	if r.ids {
		if fieldID(n) != f.id {
			return match{}, fault.New(fault.Unsupported, fmt.Sprintf("column %s should have id %d and has %s in the file", f.name, f.id, idText(n)))
		}
		return match{node: n}, nil
	}
	id, below := mapped(names, name)
	if id != f.id {
		return match{}, fault.New(fault.Unsupported, fmt.Sprintf("the name mapping does not name column %s (id %d)", f.name, f.id))
	}
	return match{node: n, names: below}, nil
}

func idText(n *format.Node) string {
	if n.FieldID == nil {
		return "none"
	}
	return fmt.Sprint(*n.FieldID)
}
