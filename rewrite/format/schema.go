package format

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

// maxNesting is how deep a schema may be, so that levels fit into seven bits.
const maxNesting = 100

// NewSchema makes the schema of a tree whose nodes have their names, types and
// children: it sets parents, leaf numbers and levels. The root's own repetition
// does not count. A tree that no file can have is fault.Corrupt.
func NewSchema(root *Node) (*Schema, error) {
	s := &Schema{Root: root}
	root.Group, root.Repetition = true, Required
	if err := s.adopt(root, nil, 0); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Schema) adopt(n, parent *Node, depth int) error {
	if depth > maxNesting {
		return fault.New(fault.Corrupt, fmt.Sprintf("the schema is nested deeper than %d", maxNesting))
	}
	n.Parent, n.Leaf, n.MaxDef, n.MaxRep = parent, -1, 0, 0
	if parent != nil {
		n.MaxDef, n.MaxRep = parent.MaxDef, parent.MaxRep
	}
	switch n.Repetition {
	case Required:
	case Optional:
		n.MaxDef++
	case Repeated:
		n.MaxDef++
		n.MaxRep++
	default:
		return fault.New(fault.Corrupt, fmt.Sprintf("column %s has repetition %d", n, n.Repetition))
	}
	if n.Group {
		for _, c := range n.Children {
			if err := s.adopt(c, n, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Type < Boolean || n.Type > FixedLenByteArray {
		return fault.New(fault.Corrupt, fmt.Sprintf("column %s has type %d", n, n.Type))
	}
	if n.Type == FixedLenByteArray && n.TypeLength <= 0 {
		return fault.New(fault.Corrupt, fmt.Sprintf("column %s has values of %d bytes", n, n.TypeLength))
	}
	n.Leaf = len(s.Leaves)
	s.Leaves = append(s.Leaves, n)
	return nil
}

// Path is the names from below the root to n.
func (n *Node) Path() []string {
	depth := 0
	for p := n; p.Parent != nil; p = p.Parent {
		depth++
	}
	out := make([]string, depth)
	for p := n; p.Parent != nil; p = p.Parent {
		depth--
		out[depth] = p.Name
	}
	return out
}

// String is the path with dots, for people.
func (n *Node) String() string {
	if n.Parent == nil {
		return n.Name
	}
	return strings.Join(n.Path(), ".")
}

// Width is the bytes of a value: 1 for booleans, as column.Values has them, and
// 0 for byte arrays.
func (n *Node) Width() int {
	switch n.Type {
	case Boolean:
		return 1
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedLenByteArray:
		return int(n.TypeLength)
	}
	return 0
}

// element is a node as it is stored, with the number of its children.
type element struct {
	Node
	children int32
}

func parseElement(r *thrift.Reader, e *element) {
	e.Group = true
	var named bool
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			e.Type, e.Group = Type(r.Int32(f.Kind)), false
		case 2:
			e.TypeLength = r.Int32(f.Kind)
		case 3:
			e.Repetition = Repetition(r.Int32(f.Kind))
		case 4:
			e.Name, named = r.Text(f.Kind), true
		case 5:
			e.children = r.Int32(f.Kind)
		case 6:
			e.Converted = ptr(r.Int32(f.Kind))
		case 7:
			e.Scale = ptr(r.Int32(f.Kind))
		case 8:
			e.Precision = ptr(r.Int32(f.Kind))
		case 9:
			e.FieldID = ptr(r.Int32(f.Kind))
		case 10:
			e.Logical = parseLogical(r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	if !named {
		r.Fail(missing("a schema element", "name"))
	}
}

// parseSchema reads the list of elements, which is the tree depth first.
func parseSchema(r *thrift.Reader, k thrift.Kind) *Schema {
	kind, n := r.List(k, int(unsafe.Sizeof(element{}))+64)
	elements := make([]element, n)
	for i := range elements {
		r.Struct(kind)
		parseElement(r, &elements[i])
	}
	if r.Err() != nil {
		return nil
	}
	root, rest, err := plant(elements, 0)
	if err == nil && len(rest) > 0 {
		err = fault.New(fault.Corrupt, fmt.Sprintf("%d schema elements are outside of the tree", len(rest)))
	}
	if err == nil && !root.Group {
		err = fault.New(fault.Corrupt, "the schema's root is no group")
	}
	var s *Schema
	if err == nil {
		s, err = NewSchema(root)
	}
	if err != nil {
		r.Fail(err)
	}
	return s
}

// plant makes the tree of the first element, and gives those after it.
func plant(elements []element, depth int) (*Node, []element, error) {
	if len(elements) == 0 {
		return nil, nil, fault.New(fault.Corrupt, "the schema is cut")
	}
	if depth > maxNesting {
		return nil, nil, fault.New(fault.Corrupt, fmt.Sprintf("the schema is nested deeper than %d", maxNesting))
	}
	e := &elements[0]
	rest := elements[1:]
	if e.children < 0 || int64(e.children) > int64(len(rest)) {
		return nil, nil, fault.New(fault.Corrupt, fmt.Sprintf("schema element %q has %d children of %d that follow", e.Name, e.children, len(rest)))
	}
	if !e.Group && e.children > 0 {
		return nil, nil, fault.New(fault.Corrupt, fmt.Sprintf("schema element %q has a type and children", e.Name))
	}
	n := &e.Node
	if e.children > 0 {
		n.Children = make([]*Node, 0, e.children)
	}
	for range e.children {
		var c *Node
		var err error
		if c, rest, err = plant(rest, depth+1); err != nil {
			return nil, nil, err
		}
		n.Children = append(n.Children, c)
	}
	return n, rest, nil
}

// count is the number of nodes of the tree.
func (n *Node) count() int {
	total := 1
	for _, c := range n.Children {
		total += c.count()
	}
	return total
}

// write appends the elements of the tree, n first.
func (n *Node) write(w *thrift.Writer, root bool) {
	w.Begin()
	if !n.Group {
		w.Int32(1, int32(n.Type))
		if n.Type == FixedLenByteArray {
			w.Int32(2, n.TypeLength)
		}
	}
	if !root {
		w.Int32(3, int32(n.Repetition))
	}
	w.Text(4, n.Name)
	if n.Group {
		w.Int32(5, int32(len(n.Children)))
	}
	maybe32(w, 6, n.Converted)
	maybe32(w, 7, n.Scale)
	maybe32(w, 8, n.Precision)
	maybe32(w, 9, n.FieldID)
	if n.Logical != nil {
		w.Field(10, thrift.Group)
		n.Logical.write(w)
	}
	w.End()
	for _, c := range n.Children {
		c.write(w, false)
	}
}
