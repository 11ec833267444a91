package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	iceio "github.com/apache/iceberg-go/io"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // s3:// paths
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/seaice/seaice/internal/cluster"
)

const (
	rowsPerCommit = 20
	// deleteEvery is after how many commits rows are deleted, by each of the
	// means that the format has.
	deleteEvery = 25
)

// regions are the partitions of orders, each with a file in every commit.
var regions = []string{"north", "south"}

const regionField = 1000

// writer writes one table of the demonstration.
type writer struct {
	name    string
	version int
	// share is its part of the commits, as a divisor.
	share int
	spec  icego.PartitionSpec
	// remove deletes rows after commit number n.
	remove func(ctx context.Context, t *icetable.Table, n int) (*icetable.Table, error)
}

// writers are the tables: one of format 2 with two partitions, position and
// equality deletes, and one of format 3 with deletion vectors.
func writers() []writer {
	byRegion := icego.NewPartitionSpec(icego.PartitionField{SourceIDs: []int{2}, FieldID: regionField, Name: "region", Transform: icego.IdentityTransform{}})
	return []writer{
		{name: "orders", version: 2, share: 1, spec: byRegion, remove: removeOrders},
		{name: "events", version: 3, share: 4, spec: *icego.UnpartitionedSpec, remove: removeEvents},
	}
}

func open(ctx context.Context, c *cluster.Cluster) (*rest.Catalog, error) {
	return rest.NewCatalog(ctx, "demo", c.REST, rest.WithWarehouseLocation("s3://"+bucket+"/"),
		rest.WithAdditionalProps(icego.Properties{
			"s3.endpoint": c.S3, "s3.region": "us-east-1", "s3.force-virtual-addressing": "false",
			"s3.access-key-id": "any", "s3.secret-access-key": "any",
		}))
}

func ident(name string) icetable.Identifier { return icetable.Identifier{namespace, name} }

// write makes the table as a streaming writer does: small files, a manifest and
// a snapshot a commit, and deletes now and then.
func (w writer) write(ctx context.Context, cat *rest.Catalog, commits int) error {
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 2, Name: "region", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 3, Name: "customer", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 4, Name: "amount", Type: icego.PrimitiveTypes.Float64})
	t, err := cat.CreateTable(ctx, ident(w.name), schema, catalog.WithPartitionSpec(&w.spec), catalog.WithProperties(icego.Properties{
		"format-version": strconv.Itoa(w.version), "commit.retry.num-retries": "4",
		// The demonstration cannot wait a week until snapshots are old.
		"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "3",
	}))
	if err != nil {
		return err
	}
	as, err := icetable.SchemaToArrowSchema(t.Schema(), nil, true, false)
	if err != nil {
		return err
	}
	for i := range commits / w.share {
		tx := t.NewTransaction()
		rows := batch(as, i)
		if err := tx.AppendTable(ctx, rows, rowsPerCommit, nil); err != nil {
			return err
		}
		if t, err = tx.Commit(ctx); err != nil {
			return err
		}
		rows.Release()
		if (i+1)%deleteEvery == 0 {
			if t, err = w.remove(ctx, t, i); err != nil {
				return fmt.Errorf("delete after commit %d: %w", i, err)
			}
		}
		if (i+1)%100 == 0 {
			say("  %s: %d commits", w.name, i+1)
		}
	}
	return nil
}

func batch(as *arrow.Schema, commit int) arrow.Table {
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for j := range rowsPerCommit {
		n := int64(commit*rowsPerCommit + j)
		b.Field(0).(*array.Int64Builder).Append(n)
		b.Field(1).(*array.StringBuilder).Append(regions[j%len(regions)])
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("customer %d", n%97))
		b.Field(3).(*array.Float64Builder).Append(float64(n) / 7)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return array.NewTableFromRecords(as, []arrow.RecordBatch{rec})
}

// newest are the data files of a table's last append, and its file system.
func newest(ctx context.Context, t *icetable.Table) ([]icego.DataFile, iceio.WriteFileIO, error) {
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, nil, err
	}
	out, ok := fs.(iceio.WriteFileIO)
	if !ok {
		return nil, nil, errors.New("iceberg-go cannot write to s3://")
	}
	list, err := t.CurrentSnapshot().Manifests(fs)
	if err != nil {
		return nil, nil, err
	}
	var files []icego.DataFile
	for _, m := range list {
		if m.SnapshotID() != t.CurrentSnapshot().SnapshotID {
			continue
		}
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, nil, err
			}
			files = append(files, e.DataFile())
		}
	}
	if len(files) == 0 {
		return nil, nil, errors.New("the last commit added no files")
	}
	return files, out, nil
}

// removeOrders deletes two rows of the newest file by their positions and rows
// of older files of one region by their ids.
func removeOrders(ctx context.Context, t *icetable.Table, n int) (*icetable.Table, error) {
	files, fs, err := newest(ctx, t)
	if err != nil {
		return nil, err
	}
	f := files[0]
	positions := array.NewRecordBuilder(memory.DefaultAllocator, icetable.PositionalDeleteArrowSchema)
	defer positions.Release()
	for _, pos := range []int64{1, 4} {
		positions.Field(0).(*array.StringBuilder).Append(f.FilePath())
		positions.Field(1).(*array.Int64Builder).Append(pos)
	}
	name := fmt.Sprintf("%s/data/pos-%d.parquet", t.Location(), n)
	size, err := put(fs, name, positions)
	if err != nil {
		return nil, err
	}
	byPosition, err := icego.NewDataFileBuilder(t.Spec(), icego.EntryContentPosDeletes, name, icego.ParquetFile, f.Partition(), nil, nil, 2, size)
	if err != nil {
		return nil, err
	}
	tx := t.NewTransaction()
	if err := tx.NewRowDelta(nil).AddDeletes(byPosition.ReferencedDataFile(f.FilePath()).Build()).Commit(ctx); err != nil {
		return nil, err
	}
	if t, err = tx.Commit(ctx); err != nil {
		return nil, err
	}

	as, err := icetable.SchemaToArrowSchema(icego.NewSchema(0, t.Schema().Field(0)), nil, true, false)
	if err != nil {
		return nil, err
	}
	keys := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer keys.Release()
	// Even ids are the region's at index 0.
	for _, id := range []int{(n / 2) * rowsPerCommit, (n/3)*rowsPerCommit + 2, 1_000_000_000} {
		keys.Field(0).(*array.Int64Builder).Append(int64(id))
	}
	name = fmt.Sprintf("%s/data/eq-%d.parquet", t.Location(), n)
	if size, err = put(fs, name, keys); err != nil {
		return nil, err
	}
	byKey, err := icego.NewDataFileBuilder(t.Spec(), icego.EntryContentEqDeletes, name, icego.ParquetFile, map[int]any{regionField: regions[0]}, nil, nil, 3, size)
	if err != nil {
		return nil, err
	}
	tx = t.NewTransaction()
	if err := tx.NewRowDelta(nil).AddDeletes(byKey.EqualityFieldIDs([]int{1}).Build()).Commit(ctx); err != nil {
		return nil, err
	}
	return tx.Commit(ctx)
}

// removeEvents deletes rows of the newest file by a deletion vector.
func removeEvents(ctx context.Context, t *icetable.Table, n int) (*icetable.Table, error) {
	files, fs, err := newest(ctx, t)
	if err != nil {
		return nil, err
	}
	spec := t.Spec()
	w := dv.NewDVWriter(fs, func(int32) *icego.PartitionSpec { return &spec })
	for _, f := range files {
		if err := w.Add(f.FilePath(), []int64{0, 3, 5}, 0, nil); err != nil {
			return nil, err
		}
	}
	vectors, err := w.Flush(ctx, fmt.Sprintf("%s/data/dv-%d.puffin", t.Location(), n))
	if err != nil {
		return nil, err
	}
	tx := t.NewTransaction()
	if err := tx.NewRowDelta(nil).AddDeletes(vectors...).Commit(ctx); err != nil {
		return nil, err
	}
	return tx.Commit(ctx)
}

// put writes the rows of a builder as a Parquet file.
func put(fs iceio.WriteFileIO, name string, b *array.RecordBuilder) (int64, error) {
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		return 0, err
	}
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		return 0, err
	}
	return int64(buf.Len()), fs.WriteFile(name, buf.Bytes())
}
