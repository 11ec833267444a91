package resolve

import (
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// NewFields makes a target of single columns, as equality deletes name them: of
// any schema the table had, dropped ones included, each with the newest of its
// types, and at any depth inside structs. Everything in it is optional; a
// required column of the current schema must still be in the file or have a
// default. Leaves are grouped by struct: find one with Leaf.
//
// A column that no schema has is fault.Corrupt; one in a list or map, or one
// that is not primitive, is fault.Unsupported.
func NewFields(h *iceberg.History, ids []iceberg.FieldID) (*Target, error) {
	t := &Target{history: h}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		chain, err := chainOf(h, id)
		if err != nil {
			return nil, err
		}
		if t.fields, err = graft(t.fields, chain, nil); err != nil {
			return nil, err
		}
	}
	return t.finish()
}

// chainOf are the columns from the top down to the one with the id.
func chainOf(h *iceberg.History, id iceberg.FieldID) ([]iceberg.Column, error) {
	var chain []iceberg.Column
	for at := id; at != 0 || len(chain) == 0; {
		c, ok := h.Column(at)
		if !ok {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("no schema of the table has a column with id %d", at))
		}
		if len(chain) > maxDepth {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("column with id %d is nested more than %d deep", id, maxDepth))
		}
		chain = append(chain, c)
		if at = c.Parent; at == 0 {
			break
		}
	}
	slices.Reverse(chain)
	for i, c := range chain {
		_, group := c.Field.Type.(*icego.StructType)
		if last := i == len(chain)-1; group == last {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("column with id %d is a %s and no key", id, c.Field.Type.Type()))
		}
	}
	switch c := chain[len(chain)-1]; c.Field.Type.(type) {
	case *icego.ListType, *icego.MapType, icego.VariantType, icego.UnknownType, icego.GeometryType, icego.GeographyType:
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("column with id %d is a %s and no key", id, c.Field.Type.Type()))
	}
	return chain, nil
}

// graft puts a chain of columns into a forest.
func graft(fields []*field, chain []iceberg.Column, parent *field) ([]*field, error) {
	c := chain[0]
	i := slices.IndexFunc(fields, func(f *field) bool { return int(f.id) == c.Field.ID })
	if i < 0 {
		b := builder{keys: true}
		nf := c.Field
		if len(chain) > 1 {
			// The struct without its fields, which are grafted one by one.
			nf.Type = icego.PrimitiveTypes.Bool
		}
		f, err := b.field(nf, parent, len(c.Path))
		if err != nil {
			return nil, err
		}
		f.typ = c.Field.Type
		f.must = c.Field.Required && c.Current
		f.node.Name = fmt.Sprintf("%s_%d", f.node.Name, f.id) // dropped columns may share names
		if len(chain) > 1 {
			f.kind, f.node.Group, f.node.Type = structKind, true, 0
		}
		if parent != nil {
			parent.node.Children = append(parent.node.Children, f.node)
		}
		fields, i = append(fields, f), len(fields)
	}
	if len(chain) == 1 {
		return fields, nil
	}
	var err error
	f := fields[i]
	f.children, err = graft(f.children, chain[1:], f)
	return fields, err
}
