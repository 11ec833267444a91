package model

import (
	"context"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Append adds rows in new data files.
func (tb *Table) Append(ctx context.Context, rows []Row, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	ids, err := tb.keep(rows)
	if err != nil {
		return 0, err
	}
	files, err := tb.writeData(ctx, ids, o.Layout, nil)
	if err != nil {
		return 0, err
	}
	return tb.commit(ctx, change{Options: o, operation: "append", add: files})
}

// AppendFiles adds one data file for each slice of rows, so that a test decides
// what is in D1 and what in D2. Rows of one file must share a partition.
func (tb *Table) AppendFiles(ctx context.Context, files [][]Row, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	var added []*File
	for _, rows := range files {
		ids, err := tb.keep(rows)
		if err != nil {
			return 0, err
		}
		written, err := tb.writeData(ctx, ids, o.Layout, nil)
		if err != nil {
			return 0, err
		}
		if len(written) > 1 {
			return 0, fault.New(fault.Unsupported, fmt.Sprintf("the rows of one file lie in %d partitions", len(written)))
		}
		added = append(added, written...)
	}
	return tb.commit(ctx, change{Options: o, operation: "append", add: added})
}

// place is where a live row is.
type place struct {
	entry *Entry
	pos   int64
}

// places finds the live rows of a snapshot: in the newest file that has them.
func (tb *Table) places(s *Snapshot) map[RowID]place {
	out := map[RowID]place{}
	if s == nil {
		return out
	}
	for e, alive := range tb.survivors(s) {
		for _, pos := range alive {
			out[e.File.Rows[pos]] = place{e, pos}
		}
	}
	return out
}

// find is places for the given rows; a row that is not live is an error.
func (tb *Table) find(s *Snapshot, rows []RowID) (map[*Entry][]int64, error) {
	all := tb.places(s)
	out := map[*Entry][]int64{}
	for _, r := range rows {
		p, ok := all[r]
		if !ok {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("row %d is not live", r))
		}
		out[p.entry] = append(out[p.entry], p.pos)
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out, nil
}

func byPath(set map[*Entry][]int64) []*Entry {
	out := make([]*Entry, 0, len(set))
	for e := range set {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *Entry) int { return cmpString(a.File.Path, b.File.Path) })
	return out
}

// Scope says how many data files one position delete file covers.
type Scope uint8

const (
	// PerFile writes one delete file for each data file.
	PerFile Scope = iota
	// PerPartition writes one delete file for each partition.
	PerPartition
)

// PositionDelete deletes live rows by position delete files (format v2).
func (tb *Table) PositionDelete(ctx context.Context, rows []RowID, scope Scope, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	if v := tb.Version(); v != 2 {
		return 0, fault.New(fault.Unsupported, fmt.Sprintf("position delete files are not written to v%d tables", v))
	}
	where, err := tb.find(tb.Head(o.Branch), rows)
	if err != nil {
		return 0, err
	}
	type target struct {
		spec      icego.PartitionSpec
		partition Row
		positions map[string][]int64
	}
	var order []string
	targets := map[string]*target{}
	for _, e := range byPath(where) {
		spec, _ := tb.SpecByID(e.File.Spec)
		key := e.File.Path
		if scope == PerPartition {
			key = fmt.Sprint(spec.ID(), " ", tuple(spec, tb.specSchema(spec), e.File.Partition))
		}
		t := targets[key]
		if t == nil {
			t = &target{spec: spec, partition: e.File.Partition, positions: map[string][]int64{}}
			targets[key] = t
			order = append(order, key)
		}
		t.positions[e.File.Path] = where[e]
	}
	var files []*File
	for _, key := range order {
		t := targets[key]
		f, err := tb.writePositions(ctx, t.spec, t.partition, t.positions, o.Layout)
		if err != nil {
			return 0, err
		}
		files = append(files, f)
	}
	return tb.commit(ctx, change{Options: o, operation: "delete", add: files, gone: rows})
}

// VectorDelete deletes live rows by deletion vectors (format v3), all in one
// Puffin file. An older vector of a data file is replaced, and the positions
// that older delete files have for it go into the new one.
func (tb *Table) VectorDelete(ctx context.Context, rows []RowID, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	if v := tb.Version(); v != 3 {
		return 0, fault.New(fault.Unsupported, fmt.Sprintf("deletion vectors are not written to v%d tables", v))
	}
	head := tb.Head(o.Branch)
	where, err := tb.find(head, rows)
	if err != nil {
		return 0, err
	}
	positions := map[*File][]int64{}
	remove := map[*File]bool{}
	for e, list := range where {
		old, files := tb.positionsOf(head, e)
		positions[e.File] = union(old, list)
		for _, f := range files {
			remove[f] = true
		}
	}
	files, err := tb.writeVectors(ctx, positions, o.Layout)
	if err != nil {
		return 0, err
	}
	return tb.commit(ctx, change{Options: o, operation: "delete", add: files, remove: remove, gone: rows})
}

// positionsOf are the positions deleted of a data file, and the delete files
// that are for this file only.
func (tb *Table) positionsOf(s *Snapshot, e *Entry) ([]int64, []*File) {
	var out []int64
	var own []*File
	for _, d := range s.DeleteFiles() {
		if d.File.Content == EqualityDeletes || !tb.applies(s, d, e) {
			continue
		}
		out = union(out, d.File.Positions[e.File.Path])
		if len(d.File.Positions) == 1 {
			own = append(own, d.File)
		}
	}
	return out, own
}

func union(a, b []int64) []int64 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// EqualityDelete deletes every row whose values of the columns by equal those
// of one of the keys. Under a partitioned spec there is a file for each
// partition of the keys, which must have the source columns, and only rows of
// that spec and partition go.
func (tb *Table) EqualityDelete(ctx context.Context, keys []Row, by []iceberg.FieldID, o Options) (iceberg.SnapshotID, error) {
	return tb.Upsert(ctx, keys, by, nil, o)
}

// Upsert deletes by keys and adds rows in one commit, so the new rows are not
// touched by the deletes.
func (tb *Table) Upsert(ctx context.Context, keys []Row, by []iceberg.FieldID, rows []Row, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	if tb.Version() < 2 {
		return 0, fault.New(fault.Unsupported, "delete files are not written to v1 tables")
	}
	deletes, err := tb.writeEqualityDeletes(ctx, keys, by, o.Layout)
	if err != nil {
		return 0, err
	}
	var gone []RowID
	head := tb.Head(o.Branch)
	for r, p := range tb.places(head) {
		for _, d := range deletes {
			if tb.inScope(d, p.entry.File) && tb.matches(d, tb.rows[r]) {
				gone = append(gone, r)
				break
			}
		}
	}
	ids, err := tb.keep(rows)
	if err != nil {
		return 0, err
	}
	files, err := tb.writeData(ctx, ids, o.Layout, nil)
	if err != nil {
		return 0, err
	}
	operation := "delete"
	if len(rows) > 0 {
		operation = "overwrite"
	}
	return tb.commit(ctx, change{Options: o, operation: operation, add: append(files, deletes...), gone: gone})
}

func (tb *Table) writeEqualityDeletes(ctx context.Context, keys []Row, by []iceberg.FieldID, l Layout) ([]*File, error) {
	spec, err := tb.specOf(l)
	if err != nil {
		return nil, err
	}
	index := make([]RowID, len(keys))
	for i := range index {
		index[i] = RowID(i)
	}
	groups, err := tb.partitioned(spec, index, func(r RowID) Row { return keys[r] })
	if err != nil {
		return nil, err
	}
	var out []*File
	for _, g := range groups {
		part := make([]Row, len(g.rows))
		for i, r := range g.rows {
			part[i] = keys[r]
		}
		f, err := tb.writeKeys(ctx, spec, g.partition, part, by, l)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Overwrite ends rows and adds others by copy on write: every data file with a
// row of gone is replaced by one without it. In v3 the rows that stay keep
// their lineage.
func (tb *Table) Overwrite(ctx context.Context, gone []RowID, rows []Row, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	head := tb.Head(o.Branch)
	where, err := tb.find(head, gone)
	if err != nil {
		return 0, err
	}
	entries := map[*Entry]bool{}
	for e := range where {
		entries[e] = true
	}
	dead := newRowSet(gone)
	files, remove, err := tb.rewritten(ctx, head, entries, o.Layout, dead)
	if err != nil {
		return 0, err
	}
	ids, err := tb.keep(rows)
	if err != nil {
		return 0, err
	}
	added, err := tb.writeData(ctx, ids, o.Layout, nil)
	if err != nil {
		return 0, err
	}
	operation := "overwrite"
	if len(rows) == 0 && len(files) == 0 {
		operation = "delete"
	}
	return tb.commit(ctx, change{Options: o, operation: operation, add: append(files, added...), remove: remove, gone: gone})
}

// Rewrite replaces data files by new ones with the rows that live in them, as
// another engine's compaction does: a replace snapshot with explicit sequence
// numbers, keeping lineage. Vectors and delete files of only those files go.
func (tb *Table) Rewrite(ctx context.Context, files []*File, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	head := tb.Head(o.Branch)
	if head == nil {
		return 0, fault.New(fault.Unsupported, "there is nothing to rewrite")
	}
	entries := map[*Entry]bool{}
	for _, e := range head.DataFiles() {
		if slices.Contains(files, e.File) {
			entries[e] = true
		}
	}
	if len(entries) != len(files) {
		return 0, fault.New(fault.Unsupported, "not all files to rewrite are live")
	}
	added, remove, err := tb.rewritten(ctx, head, entries, o.Layout, nil)
	if err != nil {
		return 0, err
	}
	sequence := map[*File]iceberg.SeqNum{}
	for _, f := range added {
		sequence[f] = head.Seq
	}
	return tb.commit(ctx, change{Options: o, operation: "replace", add: added, remove: remove, sequence: sequence})
}

// rewritten writes the live rows of the entries, but for those in dead, into
// new files. It returns them and what goes.
func (tb *Table) rewritten(ctx context.Context, head *Snapshot, entries map[*Entry]bool, l Layout, dead rowSet) ([]*File, map[*File]bool, error) {
	var rows []RowID
	var stored map[RowID]lineage
	if tb.Version() >= 3 {
		stored = map[RowID]lineage{}
	}
	remove := map[*File]bool{}
	alive := tb.survivors(head)
	for _, e := range head.DataFiles() {
		if !entries[e] {
			continue
		}
		remove[e.File] = true
		for _, pos := range alive[e] {
			r := e.File.Rows[pos]
			if dead.has(r) {
				continue
			}
			rows = append(rows, r)
			if stored != nil {
				lin := e.lineage(pos)
				if lin.updated < 0 {
					lin.updated = int64(e.Seq)
				}
				stored[r] = lin
			}
		}
	}
	for _, d := range head.DeleteFiles() {
		if d.File.Content == EqualityDeletes || len(d.File.Positions) != 1 {
			continue
		}
		for e := range entries {
			if _, names := d.File.Positions[e.File.Path]; names {
				remove[d.File] = true
			}
		}
	}
	files, err := tb.writeData(ctx, rows, l, stored)
	return files, remove, err
}

// RemoveFiles takes whole data files out of the table: a delete of metadata
// only. Deletes that named them stay and dangle.
func (tb *Table) RemoveFiles(ctx context.Context, files []*File, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	head := tb.Head(o.Branch)
	var gone []RowID
	for r, p := range tb.places(head) {
		if slices.Contains(files, p.entry.File) {
			gone = append(gone, r)
		}
	}
	return tb.commit(ctx, change{Options: o, operation: "delete", remove: removal(files...), gone: gone})
}

// CherryPick makes the files that a staged snapshot added part of main.
func (tb *Table) CherryPick(ctx context.Context, id iceberg.SnapshotID, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	staged := tb.Snapshot(id)
	if staged == nil || staged.Operation != "append" {
		return 0, fault.New(fault.Unsupported, fmt.Sprintf("snapshot %d is no append that can be picked", id))
	}
	var files []*File
	for _, m := range staged.Manifests {
		for _, e := range m.Entries {
			if e.Status == Added && e.Snapshot == id {
				files = append(files, e.File)
			}
		}
	}
	o.Summary = map[string]string{"source-snapshot-id": fmt.Sprint(id), "published-wap-id": tb.doc.snapshot(id).object("summary").text("wap.id")}
	return tb.commit(ctx, change{Options: o, operation: "append", add: files})
}
