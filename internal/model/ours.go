package model

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// byOurs writes the manifest with package manifests. Only this style uses code
// of this program, to have iceberg-go read what it writes.
func (c manifestContext) byOurs(m *Manifest) ([]byte, error) {
	spec := c.spec
	part, err := manifests.NewPartitioning(c.schema, &spec)
	if err != nil {
		return nil, err
	}
	content := manifests.DataManifest
	if m.Deletes {
		content = manifests.DeleteManifest
	}
	var buf bytes.Buffer
	w, err := manifests.NewWriter(&buf, manifests.WriterOptions{
		Path: m.Path, Version: c.version, Content: content, Partitioning: part, SnapshotID: c.snapshot,
	})
	if err != nil {
		return nil, err
	}
	for _, e := range m.Entries {
		ours, err := c.ours(part, e)
		if err != nil {
			return nil, err
		}
		write := map[Status]func(*manifests.Entry) error{Existing: w.Carry, Added: w.Add, Deleted: w.Delete}[e.Status]
		if err := write(ours); err != nil {
			return nil, fault.In("write entry of "+e.File.Path, err)
		}
	}
	if _, err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func (c manifestContext) ours(part *manifests.Partitioning, e *Entry) (*manifests.Entry, error) {
	f := e.File
	values := map[iceberg.FieldID]any{}
	for id, v := range f.Partition {
		values[id] = v
	}
	t, err := part.Type.Tuple(values)
	if err != nil {
		return nil, err
	}
	out := &manifests.Entry{File: manifests.File{
		Content: manifests.Content(min(f.Content, EqualityDeletes)), Path: f.Path, Format: manifests.Format(strings.ToUpper(f.Format)),
		SpecID: f.Spec, Partition: t, Records: f.Records, Bytes: f.Size,
		ColumnSizes: counts(f.Metrics.ColumnSizes), ValueCounts: counts(f.Metrics.Values), NullCounts: counts(f.Metrics.Nulls),
		NaNCounts: counts(f.Metrics.NaNs), Lower: bounds(f.Metrics.Lower), Upper: bounds(f.Metrics.Upper),
		KeyMetadata: f.KeyMetadata, SplitOffsets: f.SplitOffsets, EqualityIDs: f.KeyFields,
	}}
	if f.Content == Vector {
		out.Content = manifests.PositionDeletes
		out.ContentOffset, out.ContentSize = manifests.Some(f.Offset), manifests.Some(f.Length)
	}
	if f.Referenced != "" && c.version >= 3 {
		out.ReferencedDataFile = manifests.Some(f.Referenced)
	}
	if f.SortOrder != nil {
		out.SortOrderID = manifests.Some(*f.SortOrder)
	}
	if e.Status != Added {
		out.Status = manifests.Existing
		out.SnapshotID, out.DataSeq, out.FileSeq = manifests.Some(e.Snapshot), manifests.Some(e.Seq), manifests.Some(e.FileSeq)
		if e.ownRowID && e.FirstRowID != nil {
			out.FirstRowID = manifests.Some(*e.FirstRowID)
		}
	} else if e.explicitSeq {
		out.DataSeq = manifests.Some(e.Seq)
	}
	return out, nil
}

func counts(m map[int]int64) manifests.Counts {
	if m == nil {
		return nil
	}
	out := manifests.Counts{}
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, manifests.Count{Column: iceberg.FieldID(id), N: m[id]})
	}
	return out
}

func bounds(m map[int][]byte) manifests.Bounds {
	if m == nil {
		return nil
	}
	out := manifests.Bounds{}
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, manifests.Bound{Column: iceberg.FieldID(id), Value: m[id]})
	}
	return out
}

// byOurs writes the list with package manifests, which assigns row ids itself;
// it must assign those of the model.
func (c listContext) byOurs(list []*Manifest) ([]byte, error) {
	o := manifests.ListOptions{Version: c.version, SnapshotID: c.snapshot, Seq: c.seq, FirstRowID: c.firstRowID}
	if c.parent != 0 {
		o.Parent = manifests.Some(c.parent)
	}
	var files []*manifests.ManifestFile
	for _, m := range list {
		n := m.Counts()
		f := &manifests.ManifestFile{
			Path: m.Path, Length: m.Length, SpecID: m.Spec, Seq: manifests.Some(m.Seq), MinSeq: manifests.Some(m.MinSeq), SnapshotID: manifests.Some(m.Snapshot),
			AddedFiles: manifests.Some(int64(n.Files[Added])), ExistingFiles: manifests.Some(int64(n.Files[Existing])), DeletedFiles: manifests.Some(int64(n.Files[Deleted])),
			AddedRows: manifests.Some(n.Rows[Added]), ExistingRows: manifests.Some(n.Rows[Existing]), DeletedRows: manifests.Some(n.Rows[Deleted]),
		}
		if m.Deletes {
			f.Content = manifests.DeleteManifest
		}
		for _, s := range m.Summaries {
			f.Partitions = append(f.Partitions, manifests.FieldSummary{ContainsNull: s.ContainsNull, ContainsNaN: manifests.Some(s.ContainsNaN), Lower: s.Lower, Upper: s.Upper})
		}
		if m.FirstRowID != nil && m.numbered != c.snapshot {
			f.FirstRowID = manifests.Some(*m.FirstRowID)
		}
		files = append(files, f)
	}
	var buf bytes.Buffer
	res, err := manifests.WriteList(&buf, o, files)
	if err != nil {
		return nil, fault.In("write manifest list "+c.path, err)
	}
	for i, f := range res.Manifests {
		first, ok := f.FirstRowID.Get()
		if want := list[i].FirstRowID; ok != (want != nil) || ok && first != *want {
			return nil, fault.New(fault.Halt, fmt.Sprintf("manifest %s got first row id %d (%t), the model has %v", f.Path, first, ok, want))
		}
	}
	return buf.Bytes(), nil
}
