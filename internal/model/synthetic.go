package model

import (
	"context"
	"fmt"
	"strconv"
	"time"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
)

// SyntheticOptions describe a large table of metadata only: its entries name
// data files that need not exist.
type SyntheticOptions struct {
	ID    iceberg.TableID
	Clock clock.Clock
	Seed  uint64
	// Version is the format version, 2 or 3; 0 is 2.
	Version int
	// Manifests are written by the first snapshot and are in every one; 0 is 1.
	Manifests int
	// EntriesPerManifest is the number of data files in each; 0 is 1.
	EntriesPerManifest int
	// Snapshots is the length of history; 0 is 1.
	Snapshots int
	// Churn is the number of files that each snapshot after the first adds in a
	// manifest of its own, where it also removes those of its predecessor; 0
	// is 1, negative is none, and then all snapshots have the same manifests.
	Churn int
	// DeleteManifests are written by the first snapshot, with as many position
	// delete files (vectors in v3) as a data manifest has entries; they name
	// data files in order.
	DeleteManifests int
	// Every is the time between snapshots; 0 is a minute. The last one is made
	// at the clock's time.
	Every time.Duration
	// Partitions is the number of values of the partition column; 0 is an
	// unpartitioned table.
	Partitions int
	// Clustered gives each manifest a range of partitions and not all of them.
	Clustered bool
	// Columns is the number of long columns with statistics; 0 is 8, negative
	// is none with statistics.
	Columns int
	// Bytes is the mean size of a data file; 0 is 32 MiB. Sizes are spread
	// evenly from 0 to twice the mean.
	Bytes int64
	// Records is the number of rows of each data file; 0 is 1000.
	Records int64
	// Codec of the Avro files; "" is deflate.
	Codec string
	// Placeholders creates every data and delete file with a few bytes in it.
	Placeholders bool
	// Tags is the number of tags, spread over the history.
	Tags int
	// Properties of the table.
	Properties map[string]string
}

func (o SyntheticOptions) withDefaults() SyntheticOptions {
	set := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	set(&o.Version, 2)
	set(&o.Manifests, 1)
	set(&o.EntriesPerManifest, 1)
	set(&o.Snapshots, 1)
	set(&o.Churn, 1)
	set(&o.Columns, 8)
	o.Churn, o.Columns = max(o.Churn, 0), max(o.Columns, 0)
	if o.Every == 0 {
		o.Every = time.Minute
	}
	if o.Bytes == 0 {
		o.Bytes = 32 << 20
	}
	if o.Records == 0 {
		o.Records = 1000
	}
	return o
}

// SyntheticTable is a table made by Synthetic.
type SyntheticTable struct {
	ID   iceberg.TableID
	Root filer.Path
	// Record is the directory with the catalog record.
	Record filer.Path
	// MetadataLocation is what the record points at.
	MetadataLocation string
	// Snapshots from the oldest to the newest.
	Snapshots []iceberg.SnapshotID
	// Times are when they were made.
	Times []time.Time
	// Live is the number of live data files at the head.
	Live int

	o SyntheticOptions
}

// DataFile is where file i of shared manifest m lies.
func (t *SyntheticTable) DataFile(m, i int) filer.Path {
	return t.Root.Join(t.data(m*t.o.EntriesPerManifest+i, "d"))
}

// ChurnFile is where file i of snapshot s lies, s counted from 1 for the second.
func (t *SyntheticTable) ChurnFile(s, i int) filer.Path { return t.Root.Join(t.churned(s, i)) }

func (t *SyntheticTable) data(n int, kind string) string {
	return fmt.Sprintf("data/%s%03x/%08d.parquet", kind, n%4096, n)
}

func (t *SyntheticTable) churned(s, i int) string { return fmt.Sprintf("data/c/%06d-%d.parquet", s, i) }

// Synthetic writes the table and its record. The same options give the same
// bytes.
func Synthetic(ctx context.Context, fl filer.Filer, o SyntheticOptions) (*SyntheticTable, error) {
	o = o.withDefaults()
	if o.Version < 2 || o.Version > 3 || o.Clock == nil || o.ID.Name == "" {
		return nil, fault.New(fault.Unsupported, "a synthetic table needs an id, a clock and format v2 or v3")
	}
	b, err := newSynth(ctx, fl, o)
	if err != nil {
		return nil, err
	}
	if err := b.shared(); err != nil {
		return nil, err
	}
	for s := range o.Snapshots {
		if err := b.snapshot(s); err != nil {
			return nil, err
		}
	}
	return b.t, b.finish()
}

// synth is a synthetic table in the making.
type synth struct {
	ctx       context.Context //nolint:containedctx // lives for one call of Synthetic
	fl        filer.Filer
	o         SyntheticOptions
	t         *SyntheticTable
	doc       document
	cat       catalog
	schema    *icego.Schema
	spec      icego.PartitionSpec
	partition *icego.StructType
	avro      string // schema of manifests
	header    map[string][]byte
	manifests []synthManifest
	start     time.Time
	nextRow   int64
	churnRow  int64 // first row id of the manifest written last
	snapshots []any
	log       []any
}

// synthManifest is one line of the manifest lists.
type synthManifest struct {
	path     string
	length   int64
	deletes  bool
	seq      int64
	snapshot int64
	files    [3]int64 // by Status
	rows     [3]int64
	firstRow *int64
	low, up  int64 // partitions
}

func newSynth(ctx context.Context, fl filer.Filer, o SyntheticOptions) (*synth, error) {
	fields := []icego.NestedField{{ID: 1, Name: "id", Type: icego.Int64Type{}}, {ID: 2, Name: "part", Type: icego.Int64Type{}}}
	for i := range o.Columns {
		fields = append(fields, icego.NestedField{ID: 3 + i, Name: fmt.Sprintf("c%d", i), Type: icego.Int64Type{}})
	}
	cfg := Config{ID: o.ID, Version: o.Version, Schema: icego.NewSchema(0, fields...), Seed: o.Seed, Clock: o.Clock, Properties: o.Properties}
	if o.Partitions > 0 {
		cfg.Spec = "part"
	}
	tb := &Table{ID: o.ID, cfg: cfg, fl: fl, clk: o.Clock}
	tb.seed(newSource(o.Seed, o.ID))
	id := tb.uuid()
	location := fmt.Sprintf("s3://%s/%s/%s-%s", o.ID.Bucket, o.ID.Namespace, o.ID.Name, id)
	root, err := rootOf(location)
	if err != nil {
		return nil, err
	}
	b := &synth{
		ctx: ctx, fl: fl, o: o, schema: cfg.Schema, start: o.Clock.Now().Add(-time.Duration(o.Snapshots-1) * o.Every),
		t: &SyntheticTable{ID: o.ID, Root: root, o: o, Live: o.Manifests * o.EntriesPerManifest},
	}
	if b.doc, err = tb.firstDocument(id, location); err != nil {
		return nil, err
	}
	if b.spec, err = ParseSpec(cfg.Schema, 0, 999, cfg.Spec); err != nil {
		return nil, err
	}
	b.partition = b.spec.PartitionType(cfg.Schema)
	b.cat = catalog{fl: fl, id: o.ID, clk: o.Clock, rng: tb.rng}
	b.t.Record = b.cat.path()
	for s := range o.Snapshots {
		b.t.Snapshots = append(b.t.Snapshots, iceberg.SnapshotID(tb.rng.Int64N(1<<62)+1))
		b.t.Times = append(b.t.Times, b.start.Add(time.Duration(s)*o.Every))
	}
	return b, b.prepare()
}

// prepare makes what is the same in every manifest.
func (b *synth) prepare() error {
	var err error
	if b.avro, err = entrySchema(b.o.Version, Style{}, b.partition); err != nil {
		return err
	}
	fields, err := specJSON(b.spec)
	if err != nil {
		return fault.Wrap(fault.Halt, "encode spec", err)
	}
	schema, err := b.schema.MarshalJSON()
	if err != nil {
		return fault.Wrap(fault.Halt, "encode schema", err)
	}
	b.header = map[string][]byte{
		"schema": schema, "schema-id": []byte("0"), "partition-spec": fields, "partition-spec-id": []byte("0"),
		"format-version": strconv.AppendInt(nil, int64(b.o.Version), 10), "content": []byte("data"),
	}
	return nil
}

// shared writes the manifests of the first snapshot.
func (b *synth) shared() error {
	for m := range b.o.Manifests {
		var e avroBytes
		line := synthManifest{low: -1}
		for i := range b.o.EntriesPerManifest {
			n := m*b.o.EntriesPerManifest + i
			b.entry(&e, &line, Added, 0, 0, n, b.t.data(n, "d"), n)
		}
		if err := b.write(fmt.Sprintf("m-%06d.avro", m), e, line, 0); err != nil {
			return err
		}
	}
	for m := range b.o.DeleteManifests {
		var e avroBytes
		line := synthManifest{low: -1, deletes: true}
		for i := range b.o.EntriesPerManifest {
			n := m*b.o.EntriesPerManifest + i
			b.deleteEntry(&e, &line, n)
		}
		if err := b.write(fmt.Sprintf("x-%06d.avro", m), e, line, 0); err != nil {
			return err
		}
	}
	return nil
}

// snapshot writes the list of snapshot s and, after the first, its manifest.
func (b *synth) snapshot(s int) error {
	keep := len(b.manifests)
	if s > 0 && b.o.Churn > 0 {
		if s > 1 {
			keep-- // the predecessor's own manifest
		}
		var e avroBytes
		line := synthManifest{low: -1}
		for i := range b.o.Churn {
			b.entry(&e, &line, Added, s, s, -1, b.t.churned(s, i), s*b.o.Churn+i)
		}
		if s > 1 {
			for i := range b.o.Churn {
				b.entry(&e, &line, Deleted, s, s-1, -1, b.t.churned(s-1, i), (s-1)*b.o.Churn+i)
			}
		}
		b.manifests = b.manifests[:keep:keep]
		if err := b.write(fmt.Sprintf("c-%06d.avro", s), e, line, s); err != nil {
			return err
		}
	}
	return b.list(s)
}

// write stores a manifest of snapshot s and adds it to the next lists.
func (b *synth) write(name string, entries avroBytes, line synthManifest, s int) error {
	at := b.t.Root.Join("metadata", name)
	header := b.header
	if line.deletes {
		header = map[string][]byte{}
		for k, v := range b.header {
			header[k] = v
		}
		header["content"] = []byte("deletes")
	}
	c, err := newContainer(header, b.avro, Style{Codec: b.o.Codec}.codec(), at.String())
	if err != nil {
		return err
	}
	if err := c.block(int(line.files[0]+line.files[1]+line.files[2]), entries); err != nil {
		return err
	}
	line.path, line.length, line.seq, line.snapshot = s3Path(at), int64(c.out.Len()), int64(s)+1, int64(b.t.Snapshots[s])
	if b.o.Version >= 3 && !line.deletes {
		first := b.nextRow
		line.firstRow, b.churnRow = &first, first
		b.nextRow += line.rows[Added]
	}
	b.manifests = append(b.manifests, line)
	_, err = b.fl.Put(b.ctx, at, c.out.Bytes(), filer.CreateOptions{})
	return fault.In("write "+at.String(), err)
}

// list writes the manifest list and the metadata's lines of snapshot s.
func (b *synth) list(s int) error {
	at := b.t.Root.Join("metadata", fmt.Sprintf("snap-%d-1-%06d.avro", b.t.Snapshots[s], s))
	parent := "null"
	if s > 0 {
		parent = strconv.FormatInt(int64(b.t.Snapshots[s-1]), 10)
	}
	header := map[string][]byte{
		"format-version": b.header["format-version"], "snapshot-id": strconv.AppendInt(nil, int64(b.t.Snapshots[s]), 10),
		"parent-snapshot-id": []byte(parent), "sequence-number": strconv.AppendInt(nil, int64(s)+1, 10),
	}
	c, err := newContainer(header, listSchema(b.o.Version, Style{}), Style{Codec: b.o.Codec}.codec(), at.String())
	if err != nil {
		return err
	}
	var e avroBytes
	for _, m := range b.manifests {
		b.listLine(&e, m)
	}
	if err := c.block(len(b.manifests), e); err != nil {
		return err
	}
	if _, err := b.fl.Put(b.ctx, at, c.out.Bytes(), filer.CreateOptions{}); err != nil {
		return fault.In("write "+at.String(), err)
	}
	b.describe(s, s3Path(at))
	return nil
}

func (b *synth) listLine(e *avroBytes, m synthManifest) {
	e.str(m.path)
	e.long(m.length)
	e.long(0)
	e.long(int64(b2i(m.deletes)))
	e.long(m.seq)
	e.long(m.seq)
	e.long(m.snapshot)
	for _, s := range []Status{Added, Existing, Deleted} {
		e.long(m.files[s])
	}
	for _, s := range []Status{Added, Existing, Deleted} {
		e.long(m.rows[s])
	}
	var summaries []Summary
	if b.o.Partitions > 0 {
		summaries = []Summary{{Lower: bound(icego.Int64Type{}, m.low), Upper: bound(icego.Int64Type{}, m.up)}}
	} else {
		summaries = []Summary{}
	}
	encodeSummaries(e, summaries)
	e.null()
	if b.o.Version >= 3 {
		e.optLong(m.firstRow)
	}
}

// describe adds snapshot s to the metadata.
func (b *synth) describe(s int, list string) {
	id, ms := int64(b.t.Snapshots[s]), b.t.Times[s].UnixMilli()
	files := b.o.Manifests * b.o.EntriesPerManifest
	operation, added := "append", files
	if s > 0 {
		files += b.o.Churn
		added = b.o.Churn
		operation = "overwrite"
	}
	b.t.Live = files
	deletes := b.o.DeleteManifests * b.o.EntriesPerManifest
	snap := map[string]any{
		"snapshot-id": id, "sequence-number": int64(s) + 1, "timestamp-ms": ms, "manifest-list": list, "schema-id": int64(0),
		"summary": map[string]any{
			"operation": operation, "added-data-files": strconv.Itoa(added), "added-records": strconv.FormatInt(int64(added)*b.o.Records, 10),
			"total-data-files": strconv.Itoa(files), "total-records": strconv.FormatInt(int64(files)*b.o.Records, 10),
			"total-delete-files": strconv.Itoa(deletes), "total-position-deletes": strconv.Itoa(deletes), "total-equality-deletes": "0",
		},
	}
	if s > 0 {
		snap["parent-snapshot-id"] = int64(b.t.Snapshots[s-1])
	}
	if b.o.Version >= 3 {
		rows := int64(added) * b.o.Records
		snap["first-row-id"], snap["added-rows"] = b.nextRow-rows, rows
	}
	b.snapshots = append(b.snapshots, snap)
	b.log = append(b.log, map[string]any{"snapshot-id": id, "timestamp-ms": ms})
}

// maxRecord is the size of metadata up to which the catalog keeps it inside
// the record.
const maxRecord = 9 << 20

// finish writes the metadata, the record and the placeholders.
func (b *synth) finish() error {
	d := b.doc
	last := len(b.t.Snapshots) - 1
	d["snapshots"], d["snapshot-log"], d["current-snapshot-id"] = b.snapshots, b.log, int64(b.t.Snapshots[last])
	d["last-sequence-number"], d["last-updated-ms"] = int64(last)+1, b.t.Times[last].UnixMilli()
	if b.o.Version >= 3 {
		d["next-row-id"] = b.nextRow
	}
	d.setRef("main", b.t.Snapshots[last], "branch")
	for i := range b.o.Tags {
		d.setRef(fmt.Sprintf("tag-%04d", i), b.t.Snapshots[i*len(b.t.Snapshots)/b.o.Tags], "tag")
	}
	data, err := d.encode()
	if err != nil {
		return err
	}
	at := b.t.Root.Join("metadata", "v1.metadata.json")
	if _, err := b.fl.Put(b.ctx, at, data, filer.CreateOptions{Mime: "application/json"}); err != nil {
		return fault.In("write "+at.String(), err)
	}
	b.t.MetadataLocation = s3Path(at)
	b.cat.locationOnly = len(data) > maxRecord
	if err := b.cat.create(b.ctx, b.t.MetadataLocation, s3Path(b.t.Root), data); err != nil {
		return err
	}
	if b.o.Placeholders {
		return b.placeholders()
	}
	return nil
}

func (b *synth) placeholders() error {
	put := func(path string) error {
		_, err := b.fl.Put(b.ctx, b.t.Root.Join(path), []byte("PAR1"), filer.CreateOptions{})
		return fault.In("write "+path, err)
	}
	for n := range b.o.Manifests * b.o.EntriesPerManifest {
		if err := put(b.t.data(n, "d")); err != nil {
			return err
		}
	}
	for n := range b.o.DeleteManifests * b.o.EntriesPerManifest {
		path := b.t.data(n, "x")
		if b.o.Version >= 3 {
			if n%100 != 0 {
				continue
			}
			path = fmt.Sprintf("data/x/%06d.puffin", n/100)
		}
		if err := put(path); err != nil {
			return err
		}
	}
	for s := 1; s < b.o.Snapshots; s++ {
		for i := range b.o.Churn {
			if err := put(b.t.churned(s, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
