package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // s3:// paths
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// stored is a data set in the lake. Tables of several runs share its files:
// compaction removes none.
type stored struct {
	*dataset
	dir     filer.Path
	entries []icego.DataFile
	// numbered are the entries with row ids, as tables of version 3 need.
	numbered []icego.DataFile
}

func location(p filer.Path) string { return "s3://" + p.Rel(filer.BucketsRoot) }

// store uploads the files of a data set.
func (l *lake) store(ctx context.Context, d *dataset) (*stored, error) {
	l.sets++
	s := &stored{dataset: d, dir: filer.BucketPath(lakeBucket).Join(lakeNamespace, fmt.Sprintf("shared-%d-%s", l.sets, d.name), "data")}
	var rows int64
	for _, f := range d.files {
		at := s.dir.Join(filepath.Base(f.path))
		if err := l.upload(ctx, at, f.path); err != nil {
			return nil, err
		}
		b, err := f.entry(location(at))
		if err != nil {
			return nil, err
		}
		s.entries = append(s.entries, b.Build())
		if b, err = f.entry(location(at)); err != nil {
			return nil, err
		}
		s.numbered = append(s.numbered, b.FirstRowID(rows).Build())
		rows += f.rows
	}
	return s, nil
}

func (l *lake) upload(ctx context.Context, at filer.Path, local string) error {
	in, err := os.Open(local)
	if err != nil {
		return err
	}
	defer in.Close()
	return l.write(ctx, at, in)
}

// write makes a file of what in gives, with the checks that Seaice's own files
// have.
func (l *lake) write(ctx context.Context, at filer.Path, in io.Reader) error {
	u, err := l.fl.Create(ctx, at, filer.CreateOptions{})
	if err != nil {
		return err
	}
	defer u.Abort(ctx)
	// Not the whole upload's ReadFrom, if it has one: engines write pages.
	if _, err := io.CopyBuffer(struct{ io.Writer }{u}, struct{ io.Reader }{in}, make([]byte, 1<<20)); err != nil {
		return err
	}
	_, err = u.Commit(ctx)
	return err
}

// put stores a small Parquet file of one record.
func (l *lake) put(ctx context.Context, at filer.Path, rec arrow.RecordBatch) (int64, error) {
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, layout(icego.NewSchema(0)), pqarrow.DefaultWriterProps())
	if err != nil {
		return 0, err
	}
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		return 0, err
	}
	size := int64(buf.Len())
	return size, l.write(ctx, at, &buf)
}

// positionDeletes are one position delete file for each data file, with one in
// a hundred of its rows.
func (l *lake) positionDeletes(ctx context.Context, s *stored) (out []icego.DataFile, err error) {
	for i, f := range s.files {
		path := s.entries[i].FilePath()
		positions := scattered(i, f.rows)
		b := array.NewRecordBuilder(memory.DefaultAllocator, icetable.PositionalDeleteArrowSchema)
		for _, p := range positions {
			b.Field(0).(*array.StringBuilder).Append(path)
			b.Field(1).(*array.Int64Builder).Append(p)
		}
		at := s.dir.Join(fmt.Sprintf("pos-%03d.parquet", i))
		rec := b.NewRecordBatch()
		size, err := l.put(ctx, at, rec)
		rec.Release()
		b.Release()
		if err != nil {
			return nil, err
		}
		d, err := positionDelete(location(at), path, len(positions), size)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// positionDelete is the entry of a position delete file for one data file.
func positionDelete(at, path string, rows int, size int64) (icego.DataFile, error) {
	d, err := icego.NewDataFileBuilder(*icego.UnpartitionedSpec, icego.EntryContentPosDeletes, at, icego.ParquetFile, nil, nil, nil, int64(rows), size)
	if err != nil {
		return nil, err
	}
	// Readers find a file's deletes by the bounds of file_path.
	const pathField = 2147483546
	bound := map[int][]byte{pathField: []byte(path)}
	return d.ReferencedDataFile(path).LowerBoundValues(bound).UpperBoundValues(bound).Build(), nil
}

// equalityDeletes is one file with the keys of one in a hundred of the rows.
func (l *lake) equalityDeletes(ctx context.Context, s *stored) ([]icego.DataFile, error) {
	as, err := icetable.SchemaToArrowSchema(icego.NewSchema(0, s.schema.Field(0)), nil, true, false)
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	keys, first := 0, int64(1)
	for i, f := range s.files {
		for _, p := range scattered(i, f.rows) {
			b.Field(0).(*array.Int64Builder).Append(first + p)
			keys++
		}
		first += f.rows
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	at := s.dir.Join("eq.parquet")
	size, err := l.put(ctx, at, rec)
	if err != nil {
		return nil, err
	}
	d, err := icego.NewDataFileBuilder(*icego.UnpartitionedSpec, icego.EntryContentEqDeletes, location(at), icego.ParquetFile, nil, nil, nil, int64(keys), size)
	if err != nil {
		return nil, err
	}
	return []icego.DataFile{d.EqualityFieldIDs([]int{1}).Build()}, nil
}

// vectors is one Puffin file with a deletion vector for each data file.
func (l *lake) vectors(ctx context.Context, s *stored) ([]icego.DataFile, error) {
	fs, err := l.s3(ctx)
	if err != nil {
		return nil, err
	}
	w := dv.NewDVWriter(fs, func(int32) *icego.PartitionSpec { return icego.UnpartitionedSpec })
	for i, f := range s.files {
		if err := w.Add(s.entries[i].FilePath(), scattered(i, f.rows), 0, nil); err != nil {
			return nil, err
		}
	}
	return w.Flush(ctx, location(s.dir.Join("dv.puffin")))
}

// s3 is iceberg-go's file system on the lake.
func (l *lake) s3(ctx context.Context) (iceio.WriteFileIO, error) {
	fs, err := iceio.LoadFS(ctx, l.client(), "s3://"+lakeBucket+"/")
	if err != nil {
		return nil, err
	}
	w, ok := fs.(iceio.WriteFileIO)
	if !ok {
		return nil, errors.New("iceberg-go cannot write to s3://")
	}
	return w, nil
}

// client are the properties with which iceberg-go reaches the lake.
func (l *lake) client() icego.Properties {
	return icego.Properties{
		"s3.endpoint": l.S3, "s3.region": "us-east-1", "s3.force-virtual-addressing": "false",
		"s3.access-key-id": "any", "s3.secret-access-key": "any",
	}
}

func (l *lake) catalog(ctx context.Context) (*rest.Catalog, error) {
	return rest.NewCatalog(ctx, "bench", l.REST, rest.WithWarehouseLocation("s3://"+lakeBucket+"/"), rest.WithAdditionalProps(l.client()))
}

func ident(id iceberg.TableID) icetable.Identifier {
	return icetable.Identifier{id.Namespace, id.Name}
}

// recipe is a table to be made of stored files, the same each time.
type recipe struct {
	version int
	schema  *icego.Schema
	props   icego.Properties
	commits []func(*icetable.Transaction, context.Context) error
	// rows there are at the end, in how many data files; bytes of those.
	rows, bytes int64
	files       int
}

// add appends the files of s.
func (r *recipe) add(s *stored) *recipe {
	if r.schema == nil {
		r.schema = s.schema
	}
	r.rows, r.bytes, r.files = r.rows+s.rows, r.bytes+s.bytes, r.files+len(s.files)
	r.commits = append(r.commits, func(tx *icetable.Transaction, ctx context.Context) error {
		entries := s.entries
		if r.version >= 3 {
			entries = s.numbered
		}
		return tx.AddDataFiles(ctx, entries, nil, icetable.WithoutAutoNameMapping())
	})
	return r
}

// remove commits deletes of so many rows.
func (r *recipe) remove(deletes []icego.DataFile, rows int64) *recipe {
	r.rows -= rows
	r.commits = append(r.commits, func(tx *icetable.Transaction, ctx context.Context) error {
		return tx.NewRowDelta(nil).AddDeletes(deletes...).Commit(ctx)
	})
	return r
}

// evolve changes the schema as of the data set that evolved.
func (r *recipe) evolve() *recipe {
	r.commits = append(r.commits, func(tx *icetable.Transaction, _ context.Context) error {
		u := tx.UpdateSchema(true, false)
		for name, to := range map[string]icego.Type{"id": icego.PrimitiveTypes.Int64, "val": icego.PrimitiveTypes.Float64, "amt": icego.DecimalTypeOf(12, 2)} {
			u.UpdateColumn([]string{name}, icetable.ColumnUpdate{FieldType: icego.Optional[icego.Type]{Val: to, Valid: true}})
		}
		return u.AddColumn([]string{"s_low"}, icego.PrimitiveTypes.String, "", false, nil).Commit()
	})
	return r
}

// cook makes a table of a recipe.
func (l *lake) cook(ctx context.Context, r *recipe) (iceberg.TableID, error) {
	l.tables++
	id := iceberg.TableID{Bucket: lakeBucket, Namespace: lakeNamespace, Name: fmt.Sprintf("c%03d", l.tables)}
	cat, err := l.catalog(ctx)
	if err != nil {
		return id, err
	}
	props := icego.Properties{"format-version": strconv.Itoa(max(r.version, 2))}
	for k, v := range r.props {
		props[k] = v
	}
	t, err := cat.CreateTable(ctx, ident(id), r.schema, catalog.WithProperties(props))
	if err != nil {
		return id, err
	}
	for i, change := range r.commits {
		tx := t.NewTransaction()
		if err := change(tx, ctx); err != nil {
			return id, fmt.Errorf("commit %d: %w", i, err)
		}
		if t, err = tx.Commit(ctx); err != nil {
			return id, fmt.Errorf("commit %d: %w", i, err)
		}
	}
	return id, nil
}

// merged requires that a table made by r has fewer files and all its rows.
func (l *lake) merged(ctx context.Context, id iceberg.TableID, r *recipe) error {
	cat, err := l.catalog(ctx)
	if err != nil {
		return err
	}
	t, err := cat.LoadTable(ctx, ident(id))
	if err != nil {
		return err
	}
	live, err := liveFiles(ctx, t)
	if err != nil {
		return err
	}
	var rows int64
	for _, f := range live {
		rows += f.Count()
	}
	if rows != r.rows || len(live) > r.files/4 {
		return fmt.Errorf("%d files with %d rows are left of %d with %d that should stay", len(live), rows, r.files, r.rows)
	}
	return nil
}

// liveFiles are the data files of the head by path. A plan may have several
// tasks for a large one.
func liveFiles(ctx context.Context, t *icetable.Table) (map[string]icego.DataFile, error) {
	tasks, err := t.Scan().PlanFiles(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]icego.DataFile{}
	for _, task := range tasks {
		out[task.File.FilePath()] = task.File
	}
	return out, nil
}
