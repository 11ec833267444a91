package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // s3:// paths
	icetable "github.com/apache/iceberg-go/table"

	"github.com/seaice/seaice/internal/cluster"
)

const rowsPerCommit = 20

func open(ctx context.Context, c *cluster.Cluster) (*rest.Catalog, error) {
	return rest.NewCatalog(ctx, "demo", c.REST, rest.WithWarehouseLocation("s3://"+bucket+"/"),
		rest.WithAdditionalProps(icego.Properties{
			"s3.endpoint": c.S3, "s3.region": "us-east-1", "s3.force-virtual-addressing": "false",
			"s3.access-key-id": "any", "s3.secret-access-key": "any",
		}))
}

func ident() icetable.Identifier { return icetable.Identifier{namespace, tableName} }

// write makes the table as a streaming writer does: one small file, one
// manifest and one snapshot a commit.
func write(ctx context.Context, cat *rest.Catalog, commits int) error {
	if err := cat.CreateNamespace(ctx, icetable.Identifier{namespace}, nil); err != nil {
		return err
	}
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 2, Name: "customer", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 3, Name: "amount", Type: icego.PrimitiveTypes.Float64})
	t, err := cat.CreateTable(ctx, ident(), schema, catalog.WithProperties(icego.Properties{
		"format-version": "2", "commit.retry.num-retries": "4",
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
	for i := range commits {
		tx := t.NewTransaction()
		rows := batch(as, i)
		if err := tx.AppendTable(ctx, rows, rowsPerCommit, nil); err != nil {
			return err
		}
		if t, err = tx.Commit(ctx); err != nil {
			return err
		}
		rows.Release()
		if (i+1)%100 == 0 {
			say("  %d commits", i+1)
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
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("customer %d", n%97))
		b.Field(2).(*array.Float64Builder).Append(float64(n) / 7)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return array.NewTableFromRecords(as, []arrow.RecordBatch{rec})
}

// state is what a reader sees of the table.
type state struct {
	snapshots, manifests, files int
	rows                        int64
	// digest is over the multiset of rows.
	digest   [32]byte
	planning time.Duration
}

// look reads the table at its head through the REST catalog.
func look(ctx context.Context, cat *rest.Catalog) (state, error) {
	var s state
	t, err := cat.LoadTable(ctx, ident())
	if err != nil {
		return s, err
	}
	s.snapshots = len(t.Metadata().Snapshots())
	fs, err := t.FS(ctx)
	if err != nil {
		return s, err
	}
	list, err := t.CurrentSnapshot().Manifests(fs)
	if err != nil {
		return s, err
	}
	s.manifests = len(list)
	start := time.Now()
	tasks, err := t.Scan().PlanFiles(ctx)
	if err != nil {
		return s, err
	}
	s.planning, s.files = time.Since(start), len(tasks)
	_, records, err := t.Scan().ToArrowRecords(ctx)
	if err != nil {
		return s, err
	}
	for rec, err := range records {
		if err != nil {
			return s, err
		}
		s.rows += rec.NumRows()
		for i := range int(rec.NumRows()) {
			add(&s.digest, rec, i)
		}
		rec.Release()
	}
	return s, nil
}

// add sums the hash of a row into d, so that the order of rows does not matter
// and their number does.
func add(d *[32]byte, rec arrow.RecordBatch, row int) {
	var text []byte
	for c := range int(rec.NumCols()) {
		v := rec.Column(c).ValueStr(row)
		text = binary.BigEndian.AppendUint32(text, uint32(len(v)))
		text = append(text, v...)
	}
	h := sha256.Sum256(text)
	carry := uint16(0)
	for i := range d {
		sum := uint16(d[i]) + uint16(h[i]) + carry
		d[i], carry = byte(sum), sum>>8
	}
}
