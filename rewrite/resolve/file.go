package resolve

import (
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
)

// Context is what is known of a file besides its footer.
type Context struct {
	FormatVersion int
	// Names gives ids to the columns of files that have none, if HasNames.
	Names    icego.NameMapping
	HasNames bool
	// Type and Partition are the spec and the tuple of the file's entry. A nil
	// Type is no spec.
	Type      *iceberg.PartitionType
	Partition iceberg.Tuple
}

// Mapping says where the leaves of a target are in one file.
type Mapping struct {
	// Leaves has a Source for every leaf of the target.
	Leaves []Source
	// Expected are leaves the file holds although the partition's tuple tells
	// their value. Who rewrites the file proves them equal or refuses it.
	Expected []Expected
}

// File resolves a file. What cannot be read without guessing is
// fault.Unsupported with the column named: a file without ids and mapping, one
// that holds no column of the table, a required column that is absent without
// default, a type that is no lossless promotion (F053, F057, F060).
func File(t *Target, footer *format.Footer, c Context) (*Mapping, error) {
	r := resolver{context: c, out: &Mapping{Leaves: make([]Source, len(t.Leaves))}, target: t}
	if footer.Schema == nil || footer.Schema.Root == nil {
		return nil, fault.New(fault.Corrupt, "the file has no schema")
	}
	r.ids = hasIDs(footer.Schema.Root)
	if !r.ids && !c.HasNames {
		return nil, fault.New(fault.Unsupported, "the file has no field ids and the table no name mapping")
	}
	if err := r.partition(); err != nil {
		return nil, err
	}
	found, err := r.children(footer.Schema.Root, c.Names)
	if err != nil {
		return nil, err
	}
	if !r.known(found) {
		return nil, fault.New(fault.Unsupported, "the file holds no column of the table")
	}
	for _, f := range t.fields {
		if m, ok := found[f.id]; ok {
			err = r.present(f, m, nil, false)
		} else {
			err = r.absent(f, level{leaf: -1})
		}
		if err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

type resolver struct {
	target  *Target
	context Context
	// ids reports that the file has field ids, which then alone count.
	ids bool
	// identity are the values the tuple tells, by column.
	identity map[iceberg.FieldID]iceberg.Value
	out      *Mapping
	// next is the leaf of the target that comes next.
	next int
}

// match is a node of the file with the part of the name mapping below it.
type match struct {
	node  *format.Node
	names []icego.MappedField
}

func fieldID(n *format.Node) iceberg.FieldID {
	if n.FieldID == nil || *n.FieldID < 0 {
		return -1
	}
	return iceberg.FieldID(*n.FieldID)
}

func hasIDs(n *format.Node) bool {
	for _, c := range n.Children {
		if fieldID(c) >= 0 || hasIDs(c) {
			return true
		}
	}
	return false
}

func (r *resolver) partition() error {
	t, tuple := r.context.Type, r.context.Partition
	if t == nil {
		return nil
	}
	if tuple.Len() != len(t.Fields) {
		return fault.New(fault.Corrupt, fmt.Sprintf("the partition tuple has %d values, spec %d has %d", tuple.Len(), t.Spec, len(t.Fields)))
	}
	r.identity = map[iceberg.FieldID]iceberg.Value{}
	for i, f := range t.Fields {
		if _, ok := f.Transform.(icego.IdentityTransform); ok && len(f.SourceIDs) == 1 {
			r.identity[f.SourceIDs[0]] = tuple.At(i)
		}
	}
	return nil
}

// children are the columns directly below a group by id.
func (r *resolver) children(group *format.Node, names []icego.MappedField) (map[iceberg.FieldID]match, error) {
	out := make(map[iceberg.FieldID]match, len(group.Children))
	for _, n := range group.Children {
		m := match{node: n}
		id := fieldID(n)
		if !r.ids {
			if id, m.names = mapped(names, n.Name); id < 0 {
				continue
			}
		}
		if id < 0 {
			continue
		}
		if other, ok := out[id]; ok {
			why := fmt.Sprintf("the columns %s and %s of the file both have id %d", other.node.Name, n.Name, id)
			if r.ids {
				return nil, fault.New(fault.Corrupt, why)
			}
			return nil, fault.New(fault.Unsupported, why+" by the name mapping")
		}
		out[id] = m
	}
	return out, nil
}

// mapped is the id that a mapping gives to a name, or -1.
func mapped(names []icego.MappedField, name string) (iceberg.FieldID, []icego.MappedField) {
	for _, f := range names {
		for _, n := range f.Names {
			if n == name && f.FieldID != nil && *f.FieldID >= 0 {
				return iceberg.FieldID(*f.FieldID), f.Fields
			}
		}
	}
	return -1, nil
}

// known reports whether the file holds a column of the table.
func (r *resolver) known(found map[iceberg.FieldID]match) bool {
	if h := r.target.history; h != nil {
		for id := range found {
			if _, ok := h.Column(id); ok {
				return true
			}
		}
		return false
	}
	for _, f := range r.target.fields {
		if _, ok := found[f.id]; ok && f.lineage == NoLineage {
			return true
		}
	}
	return false
}

// step is a node that may be absent, or repeat, on the way to a column, and
// whether it takes a definition level in the file and in the target.
type step struct {
	file, target bool
	column       string
}

func extend(steps []step, s step) []step { return append(steps[:len(steps):len(steps)], s) }

// present resolves a column that the file holds. defined reports that the
// node's own repetition is that of the list around it.
func (r *resolver) present(f *field, m match, steps []step, defined bool) error {
	n := m.node
	s := step{file: n.Repetition == format.Optional, target: f.node.Repetition == format.Optional, column: f.name}
	if defined {
		s.file = false
	}
	steps = extend(steps, s)
	bare := n.Repetition == format.Repeated && !defined
	if bare && f.kind != listKind {
		return f.unsupported("is repeated in the file and no list in the table")
	}
	switch f.kind {
	case structKind:
		return r.structure(f, m, steps)
	case listKind:
		return r.list(f, m, steps, bare)
	case mapKind:
		return r.mapping(f, m, steps)
	case variantKind:
		return r.variant(f, n, steps)
	}
	return r.leaf(f, n, steps)
}

func (r *resolver) structure(f *field, m match, steps []step) error {
	n := m.node
	if !n.Group || annotated(n) {
		return r.mismatch(f, n)
	}
	found, err := r.children(n, m.names)
	if err != nil {
		return fault.In("resolve column "+f.name, err)
	}
	if r.ids && len(found) == 0 {
		return f.unsupported("has fields without ids in a file with ids (F049)")
	}
	for _, c := range f.children {
		if in, ok := found[c.id]; ok {
			err = r.present(c, in, steps, false)
		} else {
			var l level
			if l, err = levelsOf(f, n, steps); err == nil {
				err = r.absent(c, l)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// annotated reports whether a group is a list, map or variant.
func annotated(n *format.Node) bool {
	if n.Logical != nil {
		switch n.Logical.Kind {
		case format.LogicalList, format.LogicalMap, format.LogicalVariant:
			return true
		}
	}
	return n.Converted != nil && (*n.Converted == convertedList || *n.Converted == convertedMap || *n.Converted == 2)
}

func (r *resolver) mismatch(f *field, n *format.Node) error {
	return f.unsupported(fmt.Sprintf("is %s in the file, which cannot be read as %s", describe(n), f.typ))
}

// leaf resolves a primitive column.
func (r *resolver) leaf(f *field, n *format.Node, steps []step) error {
	if n.Group {
		return r.mismatch(f, n)
	}
	conv, ok := convertible(shapeOf(n), shapeOf(f.node), f.typ, r.context.FormatVersion)
	if !ok {
		return r.mismatch(f, n)
	}
	s, err := r.source(f, n, steps, conv)
	if err != nil {
		return err
	}
	s.Lineage = f.lineage
	if v, ok := r.identity[f.id]; ok && !f.repeatedInTarget() {
		b, err := physical(f, v)
		if err != nil {
			return err
		}
		r.out.Expected = append(r.out.Expected, Expected{Leaf: r.next, Constant: b, name: f.name, typ: f.typ})
	}
	r.add(s)
	return nil
}

func (f *field) repeatedInTarget() bool { return f.node.MaxRep > 0 }

// source is a leaf of the file as the leaf of the target that comes next.
func (r *resolver) source(f *field, n *format.Node, steps []step, conv conversion) (Source, error) {
	out := &r.target.Leaves[r.next]
	s := Source{Leaf: n.Leaf, Convert: conv.op, conv: conv, target: out.Node, name: f.name}
	width := 0
	for _, st := range steps {
		if st.file {
			width++
		}
	}
	if width != n.MaxDef {
		return s, fault.New(fault.Corrupt, fmt.Sprintf("column %s has %d definition levels in the file, its path tells %d", f.name, n.MaxDef, width))
	}
	if n.MaxRep != out.Node.MaxRep {
		return s, fault.New(fault.Corrupt, fmt.Sprintf("column %s has %d repetition levels in the file and %d in the table", f.name, n.MaxRep, out.Node.MaxRep))
	}
	s.Def, s.required = defLevels(steps, n.MaxDef)
	if identity(s.Def, out.Node.MaxDef) {
		s.Def = nil
	}
	s.Copyable = s.Def == nil && conv.op == Keep && sameRepetitions(n, out.Node) && sameMeaning(shapeOf(n), shapeOf(out.Node))
	s.prepare()
	return s, nil
}

func (r *resolver) add(s Source) {
	r.out.Leaves[r.next] = s
	r.next++
}

// variant carries the parts of a variant, which must be laid out alike.
func (r *resolver) variant(f *field, n *format.Node, steps []step) error {
	if !n.Group || !isVariant(n) {
		return r.mismatch(f, n)
	}
	if !sameLayout(n, f.node) {
		return f.unsupported("is a variant that is shredded otherwise in the file (F062)")
	}
	var walk func(file, target *format.Node, steps []step) error
	walk = func(file, target *format.Node, steps []step) error {
		for i, c := range target.Children {
			in := file.Children[i]
			inner := extend(steps, step{file: in.Repetition != format.Required, target: c.Repetition != format.Required, column: f.name})
			if c.Group {
				if err := walk(in, c, inner); err != nil {
					return err
				}
				continue
			}
			s, err := r.source(f, in, inner, conversion{op: Keep, from: shapeOf(in), to: shapeOf(c)})
			if err != nil {
				return err
			}
			r.add(s)
		}
		return nil
	}
	return walk(n, f.node, steps)
}
