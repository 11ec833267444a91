package model

import (
	"fmt"
	"maps"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Rows is a multiset of canonical rows: how often each occurs.
type Rows map[string]int

// Len is the number of rows.
func (r Rows) Len() int {
	n := 0
	for _, c := range r {
		n += c
	}
	return n
}

// Diff lists what want has and got has not as "- row", the reverse as "+ row",
// in order; empty when they are equal.
func Diff(want, got Rows) []string {
	var out []string
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		switch n := want[k] - got[k]; {
		case n > 0:
			out = append(out, fmt.Sprintf("- %d x %s", n, k))
		case n < 0:
			out = append(out, fmt.Sprintf("+ %d x %s", -n, k))
		}
	}
	return out
}

// View says how a snapshot is read.
type View struct {
	// Snapshot to read; 0 is the head of Ref.
	Snapshot iceberg.SnapshotID
	// Ref to read; "" is main.
	Ref string
	// Lineage adds _row_id and _last_updated_sequence_number (v3).
	Lineage bool
}

// resolveView finds the snapshot, nil for an empty table, and the schema: of
// the snapshot when it or a tag was named, else the current one.
func (tb *Table) resolveView(v View) (*Snapshot, *icego.Schema, error) {
	if v.Snapshot != 0 {
		s := tb.Snapshot(v.Snapshot)
		if s == nil {
			return nil, nil, fault.New(fault.Stale, fmt.Sprintf("there is no snapshot %d", v.Snapshot))
		}
		return s, tb.SchemaByID(s.Schema), nil
	}
	name := v.Ref
	if name == "" {
		name = "main"
	}
	r, ok := tb.doc.ref(name)
	if !ok {
		if name != "main" {
			return nil, nil, badRef(name)
		}
		return nil, tb.Schema(), nil
	}
	s := tb.snaps[r.Snapshot]
	if r.Tag {
		return s, tb.SchemaByID(s.Schema), nil
	}
	return s, tb.Schema(), nil
}

// Expect is what reading the view must give, from what the operations mean and
// without a look at any file. Only lineage comes from the files, as no operation
// says it, but for rewrites by somebody else, which must keep their parent's.
func (tb *Table) Expect(v View) (Rows, error) {
	s, schema, err := tb.resolveView(v)
	if err != nil || s == nil {
		return Rows{}, err
	}
	out := Rows{}
	var lineage map[RowID]lineage
	if v.Lineage {
		lineage = tb.expectedLineage(s)
	}
	for _, r := range s.Rows {
		text := CanonicalRow(schema, tb.rows[r])
		if v.Lineage {
			if lin, ok := lineage[r]; ok {
				text += lin.String()
			} else {
				text += " lost"
			}
		}
		out[text]++
	}
	return out, nil
}

// expectedLineage is the files', but after a rewrite by somebody else it is
// what its parent had: a rewrite must leave it as it was, and may only give
// some to rows without.
func (tb *Table) expectedLineage(s *Snapshot) map[RowID]lineage {
	out := map[RowID]lineage{}
	for r, p := range tb.places(s) {
		out[r] = p.entry.lineage(p.pos)
	}
	parent := tb.snaps[s.Parent]
	if !s.Foreign || s.Operation != "replace" || parent == nil {
		return out
	}
	for r, lin := range tb.expectedLineage(parent) {
		if lin.row >= 0 {
			out[r] = lin
		}
	}
	return out
}

// lineageText is the lineage of a row as text. Without a row id there is none,
// although some readers show a sequence number.
func lineageText(row, updated int64) string {
	if row < 0 {
		return " no lineage"
	}
	return fmt.Sprintf(" row %d updated %d", row, updated)
}

func (l lineage) String() string { return lineageText(l.row, l.updated) }

// Physical is what the files of the view say under the delete rules of the
// specification.
func (tb *Table) Physical(v View) (Rows, error) {
	s, schema, err := tb.resolveView(v)
	if err != nil || s == nil {
		return Rows{}, err
	}
	out := Rows{}
	for e, alive := range tb.survivors(s) {
		for _, pos := range alive {
			text := CanonicalRow(schema, tb.physicalRow(e, pos))
			if v.Lineage {
				text += e.lineage(pos).String()
			}
			out[text]++
		}
	}
	return out, nil
}

// physicalRow is a row as its file has it, with columns that are not in the
// file taken from identity partitions.
func (tb *Table) physicalRow(e *Entry, pos int64) Row {
	return tb.physicalRowOf(e, e.File.Written[pos])
}

func (tb *Table) physicalRowOf(e *Entry, row Row) Row {
	spec, ok := tb.SpecByID(e.File.Spec)
	if !ok {
		return row
	}
	for i := range spec.NumFields() {
		pf := spec.Field(i)
		source := iceberg.FieldID(pf.SourceID())
		if _, identity := pf.Transform.(icego.IdentityTransform); !identity {
			continue
		}
		if _, has := row[source]; !has {
			row = maps.Clone(row)
			row[source] = e.File.Partition[iceberg.FieldID(pf.FieldID)]
		}
	}
	return row
}

// Where are the live rows of a branch whose values satisfy pred, ascending.
func (tb *Table) Where(branch string, pred func(Row) bool) []RowID {
	head := tb.Head(branch)
	if head == nil {
		return nil
	}
	var out []RowID
	for _, r := range head.Rows {
		if pred(tb.rows[r]) {
			out = append(out, r)
		}
	}
	return out
}

// RowsAt are the rows at positions of a data file.
func (f *File) RowsAt(positions ...int) []RowID {
	out := make([]RowID, len(positions))
	for i, p := range positions {
		out[i] = f.Rows[p]
	}
	return out
}
