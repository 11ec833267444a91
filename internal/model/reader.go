package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	icego "github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// maxMetadata bounds what is read of a metadata file.
const maxMetadata = 256 << 20

// Open loads the table that a catalog record points at with iceberg-go.
func Open(ctx context.Context, fl filer.Reader, id iceberg.TableID) (*icetable.Table, error) {
	e, err := fl.Stat(ctx, filer.BucketPath(id.Bucket).Join(id.Namespace, id.Name))
	if err != nil {
		return nil, fault.In("read the record of "+id.String(), err)
	}
	var rec tableRecord
	if err := json.Unmarshal(e.Extended[iceberg.AttrMetadata], &rec); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "parse the record of "+id.String(), err)
	}
	return OpenMetadata(ctx, fl, rec.MetadataLocation)
}

// OpenMetadata loads the table of a metadata file with iceberg-go.
func OpenMetadata(ctx context.Context, fl filer.Reader, location string) (*icetable.Table, error) {
	at, err := rootOf(location)
	if err != nil {
		return nil, err
	}
	data, _, err := filer.ReadAll(ctx, fl, at, maxMetadata)
	if err != nil {
		return nil, fault.In("read "+location, err)
	}
	meta, err := icetable.ParseMetadataBytes(data)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "parse "+location, err)
	}
	root, err := rootOf(meta.Location())
	if err != nil {
		return nil, err
	}
	files := func(ctx context.Context) (iceio.IO, error) { return readIO{ctx, fl, root}, nil }
	return icetable.New(icetable.Identifier{location}, meta, location, files, nil), nil
}

// ReadRows reads the view with iceberg-go's scanner: no code of this program
// has a part in it.
func ReadRows(ctx context.Context, fl filer.Reader, id iceberg.TableID, v View) (Rows, error) {
	t, err := Open(ctx, fl, id)
	if err != nil {
		return nil, err
	}
	rows, err := scan(ctx, t, v)
	return rows, fault.In(fmt.Sprintf("read %s at %+v with iceberg-go", id, v), err)
}

func scan(ctx context.Context, t *icetable.Table, v View) (Rows, error) {
	var opts []icetable.ScanOption
	if v.Snapshot != 0 {
		opts = append(opts, icetable.WithSnapshotID(int64(v.Snapshot)))
	}
	if v.Lineage {
		opts = append(opts, icetable.WithRowLineage())
	}
	s := t.Scan(opts...)
	if v.Snapshot == 0 && v.Ref != "" && v.Ref != "main" {
		var err error
		if s, err = s.UseRef(v.Ref); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "select ref "+v.Ref, err)
		}
	}
	defer s.Close()
	out := Rows{}
	if v.Snapshot == 0 && s.Snapshot() == nil {
		return out, nil
	}
	schema, err := s.Projection()
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "project", err)
	}
	tasks, err := s.PlanFiles(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "plan", err)
	}
	_, batches, err := s.ReadTasks(ctx, plain(tasks))
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "scan", err)
	}
	for batch, err := range batches {
		if err != nil {
			return nil, fault.Wrap(fault.Unsupported, "scan", err)
		}
		err := out.add(schema, batch)
		batch.Release()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add counts the rows of a batch whose columns are those of the schema.
func (r Rows) add(s *icego.Schema, batch arrow.RecordBatch) error {
	rows := make([]Row, batch.NumRows())
	for i := range rows {
		rows[i] = Row{}
	}
	for c, f := range s.Fields() {
		for i := range rows {
			v, err := valueAt(batch.Column(c), i, f.Type)
			if err != nil {
				return fault.In("column "+f.Name, err)
			}
			rows[i][iceberg.FieldID(f.ID)] = fixUUIDs(f.Type, v)
		}
	}
	var user []icego.NestedField
	lineage := false
	for _, f := range s.Fields() {
		switch f.ID {
		case fieldRowID, fieldUpdated:
			lineage = true
		default:
			user = append(user, f)
		}
	}
	ps := icego.NewSchema(s.ID, user...)
	for _, row := range rows {
		text := CanonicalRow(ps, row)
		if lineage {
			text += lineageText(number64(row[fieldRowID]), number64(row[fieldUpdated]))
		}
		r[text]++
	}
	return nil
}

func number64(v Value) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	return -1
}

// plain spells the formats of the tasks' files as iceberg-go does, which reads
// no other spelling (F089). It plans a vector of another spelling as a position
// delete file; here it becomes one again.
func plain(tasks []icetable.FileScanTask) []icetable.FileScanTask {
	out := slices.Clone(tasks)
	for i := range out {
		t := &out[i]
		t.File = upper(t.File)
		t.EqualityDeleteFiles = upperAll(t.EqualityDeleteFiles)
		vectors := upperAll(t.DeletionVectorFiles)
		var positions []icego.DataFile
		for _, f := range upperAll(t.DeleteFiles) {
			if f.FileFormat() == icego.PuffinFile {
				vectors = append(vectors, f)
			} else {
				positions = append(positions, f)
			}
		}
		if len(vectors) > 0 { // it replaces them
			positions = nil
		}
		t.DeleteFiles, t.DeletionVectorFiles = positions, vectors
	}
	return out
}

func upperAll(files []icego.DataFile) []icego.DataFile {
	var out []icego.DataFile
	for _, f := range files {
		out = append(out, upper(f))
	}
	return out
}

type spelled struct {
	icego.DataFile
	format icego.FileFormat
}

func (s spelled) FileFormat() icego.FileFormat { return s.format }

func upper(f icego.DataFile) icego.DataFile {
	format, err := icego.FileFormatFromString(string(f.FileFormat()))
	if err != nil || format == f.FileFormat() {
		return f
	}
	return spelled{f, format}
}
