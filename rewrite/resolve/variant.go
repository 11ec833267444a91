package resolve

import (
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
)

// variantOf lays a variant out as metadata and value, or shredded as the source
// does that the target is like.
func (b *builder) variantOf(f *field) error {
	version := int8(1)
	f.node.Group = true
	f.node.Logical = &format.Logical{Kind: format.LogicalVariant, SpecVersion: &version}
	if b.like != nil {
		if n := findVariant(b.like.Schema.Root, f.id, 0); n != nil {
			for _, c := range n.Children {
				f.node.Children = append(f.node.Children, clone(c))
			}
			return nil
		}
	}
	for _, name := range []string{"metadata", "value"} {
		f.node.Children = append(f.node.Children, &format.Node{Name: name, Type: format.ByteArray, Repetition: format.Required})
	}
	return nil
}

// findVariant looks for the group of a variant by its id.
func findVariant(n *format.Node, id iceberg.FieldID, depth int) *format.Node {
	if fieldID(n) == id && n.Group && isVariant(n) {
		return n
	}
	if depth > maxDepth {
		return nil
	}
	for _, c := range n.Children {
		if found := findVariant(c, id, depth+1); found != nil {
			return found
		}
	}
	return nil
}

// isVariant reports whether a group looks like a variant: annotated, or with
// the binary leaves metadata and value that every variant has.
func isVariant(n *format.Node) bool {
	if n.Logical != nil && n.Logical.Kind == format.LogicalVariant {
		return true
	}
	binary := 0
	for _, c := range n.Children {
		if !c.Group && c.Type == format.ByteArray && (c.Name == "metadata" || c.Name == "value") {
			binary++
		}
	}
	return binary == 2 && n.Logical == nil && n.Converted == nil
}

func clone(n *format.Node) *format.Node {
	c := *n
	c.Parent, c.Children = nil, nil
	for _, child := range n.Children {
		c.Children = append(c.Children, clone(child))
	}
	return &c
}

// sameLayout reports whether two groups of a variant have the same parts. The
// parts of a variant are found by their names, which the format fixes.
func sameLayout(a, b *format.Node) bool {
	if a.Group != b.Group || len(a.Children) != len(b.Children) {
		return false
	}
	if !a.Group && !(a.Type == b.Type && a.TypeLength == b.TypeLength && sameMeaning(shapeOf(a), shapeOf(b))) {
		return false
	}
	for i := range a.Children {
		c, d := a.Children[i], b.Children[i]
		if c.Name != d.Name || c.Repetition != d.Repetition || !sameLayout(c, d) {
			return false
		}
	}
	return true
}
