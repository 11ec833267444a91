package compact

import (
	"context"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/movement"
)

// movedRows are rows of the outputs of a unit, by output.
type movedRows map[int]*deletes.Positions

// translate adds the rows that were deleted in an input since planning. Rows that
// the unit dropped need nothing.
func (s *standing) translate(m *movement.Map, input int, fresh *deletes.Positions) error {
	moved, gone, err := m.Translate(input, fresh)
	if err != nil {
		return fault.In("follow the rows of "+s.Unit.Inputs[input].Path, err)
	}
	total := gone.Len()
	for n, rows := range moved {
		total += rows.Len()
		if s.moved == nil {
			s.moved = movedRows{}
		}
		if s.moved[n] == nil {
			s.moved[n] = &deletes.Positions{}
		}
		s.moved[n].Or(rows)
	}
	if total != fresh.Len() {
		return fault.New(fault.Halt, fmt.Sprintf("%d rows of %s were followed, of %d", total, s.Unit.Inputs[input].Path, fresh.Len()))
	}
	return nil
}

// translated is the number of rows that are to be deleted in the outputs.
func (s *standing) translated() int64 {
	n := int64(0)
	for _, rows := range s.moved {
		n += rows.Len()
	}
	return n
}

// mark writes the deletes for rows of outputs that others deleted in the inputs:
// in v2 a position delete file for each output, in v3 a vector for each, and
// never a position delete file. Each has the spec and the tuple of its output
// (Java takes anything else for corrupt) and inherits its sequence number from
// this commit.
func (a *attempt) mark(ctx context.Context) error {
	var all []marking
	for _, u := range a.units {
		for _, n := range sortedKeys(u.moved) {
			all = append(all, marking{
				file: u.entry(n, a.head.Metadata.FormatVersion), rows: u.moved[n],
				properties: a.head.Metadata.Properties, version: a.head.Metadata.FormatVersion,
			})
		}
	}
	if len(all) == 0 {
		return nil
	}
	version := a.head.Metadata.FormatVersion
	var files []manifests.File
	var err error
	switch {
	case version >= 3:
		files, err = a.markVectors(ctx, all)
	case version == 2:
		files, err = a.markPositions(ctx, all)
	default:
		err = fault.New(fault.Halt, "a table of format version 1 has deletes")
	}
	if err != nil {
		return fault.In("write the deletes that came in since planning", err)
	}
	for i, f := range files {
		q := &all[i]
		target := f.ReferencedDataFile.Or("")
		if f.SpecID != q.file.SpecID || f.Partition.Key() != q.file.Partition.Key() || f.Records != q.rows.Len() || target != q.file.Path {
			return fault.New(fault.Halt, fmt.Sprintf("the delete %s of %d rows of %s is not what it should be", f.Path, q.rows.Len(), q.file.Path))
		}
		a.marks = append(a.marks, &manifests.Entry{Status: manifests.Added, File: f})
	}
	return nil
}

func (a *attempt) markVectors(ctx context.Context, all []marking) ([]manifests.File, error) {
	to, err := a.deleteSink(ctx, nil, iceberg.Tuple{}, ".puffin")
	if err != nil {
		return nil, err
	}
	defer to.Abort()
	files, err := a.x.tools.vectors(ctx, to, all)
	if err == nil && len(files) != len(all) {
		err = fault.New(fault.Halt, fmt.Sprintf("%d vectors were written, of %d", len(files), len(all)))
	}
	return files, err
}

func (a *attempt) markPositions(ctx context.Context, all []marking) ([]manifests.File, error) {
	var files []manifests.File
	for _, q := range all {
		t, err := a.head.Metadata.PartitionType(q.file.SpecID)
		if err != nil {
			return nil, err
		}
		f, err := a.markFile(ctx, t, q)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (a *attempt) markFile(ctx context.Context, t *iceberg.PartitionType, q marking) (manifests.File, error) {
	to, err := a.deleteSink(ctx, t, q.file.Partition, "-deletes.parquet")
	if err != nil {
		return manifests.File{}, err
	}
	defer to.Abort()
	return a.x.tools.positions(ctx, to, q)
}

func (a *attempt) deleteSink(ctx context.Context, t *iceberg.PartitionType, tuple iceberg.Tuple, suffix string) (*sink, error) {
	name := a.x.dataName(t, tuple, suffix)
	if err := a.st.Record(ctx, name); err != nil {
		return nil, err
	}
	return newSink(ctx, a.st, name)
}

func sortedKeys(m movedRows) []int {
	out := make([]int, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
