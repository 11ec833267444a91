// Package resolve says which leaf of a file, or which constant, is which leaf
// of a table's schema: by field id over everything schema evolution allows,
// through legacy layouts, never by position.
//
// A Target is what outputs look like. File compares one file with it and gives
// a Source for every leaf: where its levels and values come from, how both are
// converted, and whether pages may be moved as they are.
package resolve

import (
	"encoding/json"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
)

// The reserved ids of the columns of row lineage (Iceberg specification, row
// lineage).
const (
	RowIDField       iceberg.FieldID = 2147483540
	LastUpdatedField iceberg.FieldID = 2147483539
)

// Lineage says that a leaf is one of the columns of row lineage, whose nulls
// the caller completes.
type Lineage uint8

// The lineage columns.
const (
	NoLineage Lineage = iota
	// RowID is _row_id: null means the file's first row id plus the position.
	RowID
	// LastUpdated is _last_updated_sequence_number: null means the file's data
	// sequence number.
	LastUpdated
)

// maxDepth bounds the nesting of columns, so that a hostile schema does not
// exhaust the stack. Package format has a bound for nodes.
const maxDepth = 100

// Target is the schema outputs are written with, or the columns that are asked
// for. It is immutable.
type Target struct {
	Schema *format.Schema
	// Leaves are in the order of Schema.Leaves.
	Leaves []Leaf

	fields []*field
	// history is set for targets of NewFields: a file then belongs to the table
	// if it holds any column the table ever had.
	history *iceberg.History
}

// Leaf is a leaf of a Target.
type Leaf struct {
	// ID is that of the Iceberg column. The leaves of a variant share the
	// variant's.
	ID   iceberg.FieldID
	Type icego.Type
	Node *format.Node
	// Path are the ids from the top level column down to ID. Elements, keys and
	// values have ids of their own.
	Path []iceberg.FieldID
	// Name is the column's full name, with element, key and value as Iceberg
	// spells them.
	Name string
	// Repeated reports that the leaf lies in a list or map.
	Repeated bool
	// Part reports that the leaf is only a part of its column, as in a variant.
	Part    bool
	Lineage Lineage
}

// Options of a Target.
type Options struct {
	// Lineage appends the columns of row lineage (v3).
	Lineage bool
	// Like, if not nil, is a source whose shredding of variants is taken over.
	// Without it variants are not shredded.
	Like *format.Footer
	// Decimals are files whose physical form of a decimal is taken over where
	// they agree.
	Decimals []*format.Footer
}

type kind uint8

const (
	leafKind kind = iota
	structKind
	listKind
	mapKind
	variantKind
)

// field is a column of a target at any depth.
type field struct {
	id   iceberg.FieldID
	name string
	typ  icego.Type
	kind kind
	// must refuses files that lack the column when there is no default.
	must    bool
	initial any
	node    *format.Node
	// children are the fields of a struct that are stored, the element of a
	// list, or the key and the value of a map.
	children []*field
	path     []iceberg.FieldID
	lineage  Lineage
}

// NewTarget makes the target for a schema as Iceberg's own Parquet writer lays
// it out: lists in three levels, decimals in the smallest physical type,
// logical and converted annotations, a field id wherever Iceberg has one, names
// made legal for Avro. Columns of type unknown are not stored.
func NewTarget(s *icego.Schema, o Options) (*Target, error) {
	b := builder{like: o.Like, forms: forms(o.Decimals)}
	fields := s.Fields()
	if o.Lineage {
		fields = append(fields,
			icego.NestedField{ID: int(RowIDField), Name: "_row_id", Type: icego.PrimitiveTypes.Int64},
			icego.NestedField{ID: int(LastUpdatedField), Name: "_last_updated_sequence_number", Type: icego.PrimitiveTypes.Int64})
	}
	t := &Target{}
	var err error
	if t.fields, err = b.fields(fields, nil, 1); err != nil {
		return nil, fault.In("lay out the table's schema", err)
	}
	for _, f := range t.fields {
		switch f.id {
		case RowIDField:
			f.lineage = RowID
		case LastUpdatedField:
			f.lineage = LastUpdated
		}
	}
	return t.finish()
}

// finish builds the tree of nodes and lists the leaves.
func (t *Target) finish() (*Target, error) {
	root := &format.Node{Name: "table", Group: true}
	for _, f := range t.fields {
		root.Children = append(root.Children, f.node)
	}
	if len(root.Children) == 0 {
		return nil, fault.New(fault.Unsupported, "the schema has no column that is stored")
	}
	var err error
	if t.Schema, err = format.NewSchema(root); err != nil {
		return nil, fault.Wrap(fault.Unsupported, "lay out the schema", err)
	}
	for _, f := range t.fields {
		f.leaves(func(f *field, n *format.Node) {
			t.Leaves = append(t.Leaves, Leaf{
				ID: f.id, Type: f.typ, Node: n, Path: f.path, Name: f.name,
				Repeated: n.MaxRep > 0, Part: f.kind == variantKind, Lineage: f.lineage,
			})
		})
	}
	return t, nil
}

// leaves calls do for every leaf at or below f.
func (f *field) leaves(do func(*field, *format.Node)) {
	if f.kind == leafKind || f.kind == variantKind {
		eachLeaf(f.node, func(n *format.Node) { do(f, n) })
		return
	}
	for _, c := range f.children {
		c.leaves(do)
	}
}

func eachLeaf(n *format.Node, do func(*format.Node)) {
	if !n.Group {
		do(n)
		return
	}
	for _, c := range n.Children {
		eachLeaf(c, do)
	}
}

// Leaf is the index of the first leaf of the column with the id, or -1.
func (t *Target) Leaf(id iceberg.FieldID) int {
	for i := range t.Leaves {
		if t.Leaves[i].ID == id {
			return i
		}
	}
	return -1
}

// SchemaJSON is the value of the key iceberg.schema in the key value metadata
// of files with the schema.
func SchemaJSON(s *icego.Schema) (string, error) {
	b, err := json.Marshal(s)
	return string(b), fault.Wrap(fault.Unsupported, "write the schema as JSON", err)
}
