package model

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/puffin"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// Layout says how the files of one commit are written. The zero value is the
// table's own way.
type Layout struct {
	// Spec to write under; nil is the current one.
	Spec *iceberg.SpecID
	// Files is the number of data files per partition; 0 is 1.
	Files int
	// RowGroupRows cuts files into row groups; 0 is one.
	RowGroupRows int
	// Codec is zstd, snappy, gzip, brotli or uncompressed; "" is zstd.
	Codec string
	// Plain turns dictionary encoding off.
	Plain bool
	// PageRows cuts columns into pages of about so many rows; 0 is one page.
	PageRows int
	// PageV2 writes data pages of version 2.
	PageV2 bool
	// PageIndex writes column and offset indexes.
	PageIndex bool
	// Format is how manifests spell the format; "" is PARQUET.
	Format string
	// NoFieldIDs leaves the field ids out of the data files; the table needs a
	// name mapping.
	NoFieldIDs bool
	// Omit leaves columns out of the data files, as Hive does with identity
	// partition columns.
	Omit []iceberg.FieldID
	// NoMetrics leaves all statistics out of the entries.
	NoMetrics bool
	// SortOrder is put into the entries as it is.
	SortOrder *iceberg.SortOrderID
	// Spelling of the paths; nil is the table's.
	Spelling *Spelling
	// Name replaces the made-up file name, without the directory; only for a
	// single file.
	Name string
	// KeyMetadata is put into the entries, as encrypting writers do.
	KeyMetadata []byte
}

func (tb *Table) spell(l Layout, at filer.Path) string {
	s := tb.cfg.Spelling
	if l.Spelling != nil {
		s = *l.Spelling
	}
	return s.Spell(tb.Root, at)
}

func (tb *Table) specOf(l Layout) (icego.PartitionSpec, error) {
	if l.Spec == nil {
		return tb.Spec(), nil
	}
	spec, ok := tb.SpecByID(*l.Spec)
	if !ok {
		return icego.PartitionSpec{}, fault.New(fault.Unsupported, fmt.Sprintf("there is no spec %d", *l.Spec))
	}
	return spec, nil
}

func (l Layout) format() string {
	if l.Format == "" {
		return "PARQUET"
	}
	return l.Format
}

func (l Layout) parquet() parquetOptions {
	return parquetOptions{
		codec: l.Codec, rowGroupRows: l.RowGroupRows, fieldIDs: !l.NoFieldIDs, dictionary: !l.Plain,
		pageRows: l.PageRows, pageV2: l.PageV2, pageIndex: l.PageIndex,
	}
}

// keep stores new rows and names them.
func (tb *Table) keep(rows []Row) ([]RowID, error) {
	s := tb.Schema()
	out := make([]RowID, len(rows))
	for i, row := range rows {
		full, err := complete(s, row)
		if err != nil {
			return nil, err
		}
		out[i] = RowID(len(tb.rows))
		tb.rows[out[i]] = full
	}
	return out, nil
}

// group is the rows of one partition.
type group struct {
	partition Row
	rows      []RowID
}

// partitioned groups rows by their partition, in the order of first sight.
func (tb *Table) partitioned(spec icego.PartitionSpec, rows []RowID, values func(RowID) Row) ([]group, error) {
	s := tb.specSchema(spec)
	index := map[string]int{}
	var out []group
	for _, r := range rows {
		p, err := partitionOf(spec, s, values(r))
		if err != nil {
			return nil, err
		}
		key := tuple(spec, s, p)
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, group{partition: p})
		}
		out[i].rows = append(out[i].rows, r)
	}
	return out, nil
}

// lineage is what the lineage columns of one row hold; negative is null.
type lineage struct{ row, updated int64 }

// writeData writes data files with the rows. With stored, the files get the
// lineage columns.
func (tb *Table) writeData(ctx context.Context, rows []RowID, l Layout, stored map[RowID]lineage) ([]*File, error) {
	spec, err := tb.specOf(l)
	if err != nil {
		return nil, err
	}
	groups, err := tb.partitioned(spec, rows, func(r RowID) Row { return tb.rows[r] })
	if err != nil {
		return nil, err
	}
	var out []*File
	for _, g := range groups {
		n := max(1, min(l.Files, len(g.rows)))
		for _, part := range split(len(g.rows), (len(g.rows)+n-1)/n) {
			f, err := tb.writeDataFile(ctx, spec, g.partition, g.rows[part[0]:part[1]], l, stored)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// fileSchema is what a data file holds: the current schema without unknown
// columns, which are never stored, and without what l omits.
func (tb *Table) fileSchema(l Layout) *icego.Schema {
	s := tb.Schema()
	fields := slices.DeleteFunc(slices.Clone(s.Fields()), func(f icego.NestedField) bool {
		_, unknown := f.Type.(icego.UnknownType)
		return unknown || slices.Contains(l.Omit, iceberg.FieldID(f.ID))
	})
	return icego.NewSchema(s.ID, fields...)
}

func (tb *Table) writeDataFile(ctx context.Context, spec icego.PartitionSpec, partition Row, rows []RowID, l Layout, stored map[RowID]lineage) (*File, error) {
	s := tb.fileSchema(l)
	f := &File{
		Content: Data, Format: l.format(), Spec: iceberg.SpecID(spec.ID()), Partition: partition, Records: int64(len(rows)),
		Rows: slices.Clone(rows), SortOrder: l.SortOrder, KeyMetadata: l.KeyMetadata, schema: s,
	}
	for _, r := range rows {
		written := Row{}
		for _, field := range s.Fields() {
			written[iceberg.FieldID(field.ID)] = promote(field.Type, resolve(field, tb.rows[r]))
		}
		f.Written = append(f.Written, written)
	}
	physical, values := s, f.Written
	if stored != nil {
		physical = icego.NewSchema(s.ID, append(slices.Clone(s.Fields()), icego.RowID(), icego.LastUpdatedSequenceNumber())...)
		values = make([]Row, len(rows))
		for i, r := range rows {
			lin := stored[r]
			values[i] = maps.Clone(f.Written[i])
			values[i][fieldRowID], values[i][fieldUpdated] = nullable64(lin.row), nullable64(lin.updated)
			f.RowIDs, f.Updated = append(f.RowIDs, lin.row), append(f.Updated, lin.updated)
		}
	}
	p, err := encodeParquet(physical, values, l.parquet())
	if err != nil {
		return nil, fault.In("write data file", err)
	}
	if !l.NoMetrics {
		f.Metrics = measure(s, f.Written)
		f.Metrics.ColumnSizes = p.columnSizes
		if l.NoFieldIDs {
			f.Metrics.ColumnSizes = nil
		}
		delete(f.Metrics.ColumnSizes, fieldRowID)
		delete(f.Metrics.ColumnSizes, fieldUpdated)
	}
	f.SplitOffsets, f.Size = p.splits, int64(len(p.data))
	dir := tb.dataDir(l, spec, partition)
	name := l.Name
	if name == "" {
		name = tb.fileName("data") + ".parquet"
	}
	return f, tb.store(ctx, f, dir.Join(name), l, p.data)
}

func nullable64(n int64) Value {
	if n < 0 {
		return nil
	}
	return n
}

// dataDir is where the files of a partition lie. Under the spelling Escaped the
// directory has its plain name.
func (tb *Table) dataDir(l Layout, spec icego.PartitionSpec, partition Row) filer.Path {
	dir := tb.Root.Join("data")
	if path := tb.Property("write.data.path"); path != "" {
		if root, err := rootOf(path); err == nil {
			dir = root
		}
	}
	escaped := true
	if s := tb.cfg.Spelling; l.Spelling == nil && s == Escaped || l.Spelling != nil && *l.Spelling == Escaped {
		escaped = false
	}
	if path := partitionPath(spec, spec.PartitionType(tb.specSchema(spec)), partition, escaped); path != "" {
		dir = dir.Join(path)
	}
	return dir
}

func (tb *Table) fileName(kind string) string {
	tb.number++
	return fmt.Sprintf("%05d-%s-%s", tb.number, kind, tb.uuid())
}

// store puts a file into the filer and remembers it.
func (tb *Table) store(ctx context.Context, f *File, at filer.Path, l Layout, data []byte) error {
	f.At, f.Path = at, tb.spell(l, at)
	if _, err := tb.fl.Put(ctx, at, data, filer.CreateOptions{}); err != nil {
		return fault.In("write "+at.String(), err)
	}
	tb.files[f.identity()] = f
	return nil
}

// writePositions writes one position delete file. referenced is empty for a
// file that covers several data files.
func (tb *Table) writePositions(ctx context.Context, spec icego.PartitionSpec, partition Row, positions map[string][]int64, l Layout) (*File, error) {
	for _, list := range positions {
		slices.Sort(list)
	}
	p, n, err := encodePositions(positions, l.parquet())
	if err != nil {
		return nil, fault.In("write position delete file", err)
	}
	f := &File{
		Content: PositionDeletes, Format: l.format(), Spec: iceberg.SpecID(spec.ID()), Partition: partition, Records: n,
		Positions: positions, Size: int64(len(p.data)), SplitOffsets: p.splits, KeyMetadata: l.KeyMetadata,
	}
	paths := slices.Sorted(maps.Keys(positions))
	if !l.NoMetrics {
		f.Metrics = positionMetrics(paths, positions, p.columnSizes)
	}
	if len(paths) == 1 {
		f.Referenced = paths[0]
	}
	return f, tb.store(ctx, f, tb.dataDir(l, spec, partition).Join(tb.fileName("pos")+".parquet"), l, p.data)
}

// positionMetrics has the paths in full, because readers find a file's deletes
// by them.
func positionMetrics(paths []string, positions map[string][]int64, sizes map[int]int64) Metrics {
	low, high, n := int64(0), int64(0), int64(0)
	for i, path := range paths {
		list := positions[path]
		if len(list) == 0 {
			continue
		}
		if i == 0 || list[0] < low {
			low = list[0]
		}
		high = max(high, list[len(list)-1])
		n += int64(len(list))
	}
	return Metrics{
		ColumnSizes: sizes,
		Values:      map[int]int64{fieldFilePath: n, fieldPos: n},
		Nulls:       map[int]int64{fieldFilePath: 0, fieldPos: 0},
		NaNs:        map[int]int64{},
		Lower:       map[int][]byte{fieldFilePath: []byte(paths[0]), fieldPos: bound(icego.Int64Type{}, low)},
		Upper:       map[int][]byte{fieldFilePath: []byte(paths[len(paths)-1]), fieldPos: bound(icego.Int64Type{}, high)},
	}
}

// writeKeys writes one equality delete file.
func (tb *Table) writeKeys(ctx context.Context, spec icego.PartitionSpec, partition Row, keys []Row, by []iceberg.FieldID, l Layout) (*File, error) {
	s := tb.Schema()
	var fields []icego.NestedField
	for _, id := range by {
		f, ok := s.FindFieldByID(int(id))
		if !ok {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("there is no column with id %d", id))
		}
		f.Required, f.InitialDefault, f.WriteDefault = false, nil, nil
		fields = append(fields, f)
	}
	ks := icego.NewSchema(s.ID, fields...)
	f := &File{
		Content: EqualityDeletes, Format: l.format(), Spec: iceberg.SpecID(spec.ID()), Partition: partition, Records: int64(len(keys)),
		KeyFields: by, KeyMetadata: l.KeyMetadata,
	}
	for _, k := range keys {
		key := Row{}
		for _, field := range fields {
			key[iceberg.FieldID(field.ID)] = promote(field.Type, k[iceberg.FieldID(field.ID)])
		}
		f.Keys = append(f.Keys, key)
	}
	p, err := encodeParquet(ks, f.Keys, l.parquet())
	if err != nil {
		return nil, fault.In("write equality delete file", err)
	}
	if !l.NoMetrics {
		f.Metrics = measure(ks, f.Keys)
		f.Metrics.ColumnSizes = p.columnSizes
	}
	f.SplitOffsets, f.Size = p.splits, int64(len(p.data))
	return f, tb.store(ctx, f, tb.dataDir(l, spec, partition).Join(tb.fileName("eq")+".parquet"), l, p.data)
}

// writeVectors writes one Puffin file with a vector for each data file.
func (tb *Table) writeVectors(ctx context.Context, positions map[*File][]int64, l Layout) ([]*File, error) {
	var buf bytes.Buffer
	w, err := puffin.NewWriter(&buf)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "open puffin writer", err)
	}
	if err := w.SetCreatedBy("model"); err != nil {
		return nil, fault.Wrap(fault.Halt, "open puffin writer", err)
	}
	targets := slices.SortedFunc(maps.Keys(positions), func(a, b *File) int { return cmpString(a.Path, b.Path) })
	var out []*File
	for _, target := range targets {
		list := slices.Clone(positions[target])
		slices.Sort(list)
		bitmap := dv.NewRoaringPositionBitmap()
		for _, pos := range list {
			bitmap.Set(uint64(pos))
		}
		blob, err := dv.SerializeDV(bitmap)
		if err != nil {
			return nil, fault.Wrap(fault.Halt, "encode vector", err)
		}
		meta, err := w.AddBlob(puffin.BlobMetadataInput{
			Type: puffin.BlobTypeDeletionVector, SnapshotID: -1, SequenceNumber: -1, Fields: []int32{fieldPos},
			Properties: map[string]string{"cardinality": strconv.Itoa(len(list)), "referenced-data-file": target.Path},
		}, blob)
		if err != nil {
			return nil, fault.Wrap(fault.Halt, "add vector", err)
		}
		out = append(out, &File{
			Content: Vector, Format: "PUFFIN", Spec: target.Spec, Partition: target.Partition, Records: int64(len(list)),
			Positions: map[string][]int64{target.Path: list}, Referenced: target.Path, Offset: meta.Offset, Length: meta.Length,
			KeyMetadata: l.KeyMetadata,
		})
	}
	if err := w.Finish(); err != nil {
		return nil, fault.Wrap(fault.Halt, "close puffin writer", err)
	}
	at := tb.Root.Join("data", tb.fileName("dv")+".puffin")
	if _, err := tb.fl.Put(ctx, at, buf.Bytes(), filer.CreateOptions{}); err != nil {
		return nil, fault.In("write "+at.String(), err)
	}
	for _, f := range out {
		f.At, f.Path, f.Size = at, tb.spell(l, at), int64(buf.Len())
		if l.Format != "" {
			f.Format = l.Format
		}
		tb.files[f.identity()] = f
	}
	return out, nil
}
