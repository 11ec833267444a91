package model

import (
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
)

// applies says whether a delete file applies to a data file, by the rules of
// the specification.
func (tb *Table) applies(s *Snapshot, d, e *Entry) bool {
	switch d.File.Content {
	case EqualityDeletes:
		return e.Seq < d.Seq && tb.inScope(d.File, e.File)
	case Vector:
		return e.Seq <= d.Seq && d.File.Referenced == e.File.Path && tb.samePartition(d.File, e.File)
	case PositionDeletes:
		if _, names := d.File.Positions[e.File.Path]; !names || e.Seq > d.Seq || !tb.samePartition(d.File, e.File) {
			return false
		}
		for _, other := range s.DeleteFiles() { // a vector replaces position deletes
			if other.File.Content == Vector && tb.applies(s, other, e) {
				return false
			}
		}
		return true
	}
	return false
}

func (tb *Table) samePartition(a, b *File) bool {
	if a.Spec != b.Spec {
		return false
	}
	spec, ok := tb.SpecByID(a.Spec)
	if !ok {
		return false
	}
	s := tb.specSchema(spec)
	return tuple(spec, s, a.Partition) == tuple(spec, s, b.Partition)
}

// inScope says whether an equality delete reaches a data file: all of the
// table when its spec is unpartitioned, else its own spec and partition.
func (tb *Table) inScope(d, f *File) bool {
	spec, ok := tb.SpecByID(d.Spec)
	if ok && unpartitioned(spec) {
		return true
	}
	return tb.samePartition(d, f)
}

// matches says whether one of the keys of an equality delete equals the row.
func (tb *Table) matches(d *File, row Row) bool {
	for _, key := range d.Keys {
		equal := true
		for _, id := range d.KeyFields {
			f := tb.fieldByID(id)
			if Canonical(f.Type, resolve(f, row)) != Canonical(f.Type, key[id]) {
				equal = false
				break
			}
		}
		if equal {
			return true
		}
	}
	return false
}

// fieldByID is a top-level field in its newest form, dropped ones included.
func (tb *Table) fieldByID(id iceberg.FieldID) icego.NestedField {
	for _, s := range slices.Backward(append(slices.Clone(tb.schemas), tb.Schema())) {
		if f, ok := s.FindFieldByID(int(id)); ok {
			return f
		}
	}
	return icego.NestedField{ID: int(id), Type: icego.UnknownType{}}
}

// survivors are, for every live data file, the positions that no delete hits.
func (tb *Table) survivors(s *Snapshot) map[*Entry][]int64 {
	out := map[*Entry][]int64{}
	deletes := s.DeleteFiles()
	for _, e := range s.DataFiles() {
		dead := map[int64]bool{}
		for _, d := range deletes {
			if !tb.applies(s, d, e) {
				continue
			}
			for _, pos := range d.File.Positions[e.File.Path] {
				dead[pos] = true
			}
			if d.File.Content != EqualityDeletes {
				continue
			}
			for pos := range e.File.Written {
				if tb.matches(d.File, tb.physicalRow(e, int64(pos))) {
					dead[int64(pos)] = true
				}
			}
		}
		alive := []int64{}
		for pos := range e.File.Written {
			if !dead[int64(pos)] {
				alive = append(alive, int64(pos))
			}
		}
		out[e] = alive
	}
	return out
}

// lineage is what a v3 reader shows for the row at pos; negative is null.
func (e *Entry) lineage(pos int64) lineage {
	out := lineage{-1, -1}
	if e.File.RowIDs != nil && e.File.RowIDs[pos] >= 0 {
		out.row = e.File.RowIDs[pos]
	} else if e.FirstRowID != nil {
		out.row = *e.FirstRowID + pos
	}
	switch {
	case e.File.Updated != nil && e.File.Updated[pos] >= 0:
		out.updated = e.File.Updated[pos]
	case out.row >= 0:
		out.updated = int64(e.Seq)
	}
	return out
}
