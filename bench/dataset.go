package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"
)

const datasetSeed = 42

// dataset is a set of Parquet files on local disk, the same each time.
type dataset struct {
	name   string
	schema *icego.Schema
	files  []localFile
	bytes  int64
	rows   int64
}

// localFile is one of its files with what a manifest entry says about it.
type localFile struct {
	path         string
	bytes, rows  int64
	splits       []int64
	sizes        map[int]int64
	values       map[int]int64
	nulls, nans  map[int]int64
	lower, upper map[int][]byte
}

// shape says how a data set looks.
type shape struct {
	name        string
	files, rows int
	schema      *icego.Schema
	// fill appends one row; id counts rows from 1 over all files.
	fill func(g *source, id int64, b *array.RecordBuilder)
}

// source are the random numbers of one file.
type source struct {
	*rand.Rand
	zipf *rand.Zipf
}

func newSource(n int) *source {
	s := &source{Rand: rand.New(rand.NewPCG(datasetSeed, uint64(n)))}
	s.zipf = rand.NewZipf(s.Rand, 1.2, 10, midPaths-1)
	return s
}

const (
	lowRegions  = 40
	midPaths    = 5000
	startMicros = 1_760_000_000_000_000
)

func region(g *source) string { return fmt.Sprintf("region-%02d", g.IntN(lowRegions)) }

// resource is one of some thousand paths, few of which are frequent.
func resource(g *source) string {
	return fmt.Sprintf("/api/v1/customers/%06d/orders", g.zipf.Uint64()*7919%1_000_003)
}

// eight is the schema of data sets 1 and 2.
var eight = icego.NewSchema(0,
	icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
	icego.NestedField{ID: 2, Name: "ts", Type: icego.PrimitiveTypes.TimestampTz},
	icego.NestedField{ID: 3, Name: "val", Type: icego.PrimitiveTypes.Float64},
	icego.NestedField{ID: 4, Name: "s_low", Type: icego.PrimitiveTypes.String},
	icego.NestedField{ID: 5, Name: "s_mid", Type: icego.PrimitiveTypes.String},
	icego.NestedField{ID: 6, Name: "s_high", Type: icego.PrimitiveTypes.String},
	icego.NestedField{ID: 7, Name: "flag", Type: icego.PrimitiveTypes.Bool},
	icego.NestedField{ID: 8, Name: "amt", Type: icego.DecimalTypeOf(12, 2)},
)

// distinct is data set 1: most columns hardly repeat a value.
func distinct(files, rows int) shape {
	return shape{name: "distinct", files: files, rows: rows, schema: eight, fill: func(g *source, id int64, b *array.RecordBuilder) {
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(startMicros + id*1000 + g.Int64N(5000)))
		appendFloat(g, b.Field(2), func() float64 { return g.NormFloat64() * 1000 })
		b.Field(3).(*array.StringBuilder).Append(region(g))
		b.Field(4).(*array.StringBuilder).Append(resource(g))
		b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("%016x-%08x", g.Uint64(), g.Uint32()))
		b.Field(6).(*array.BooleanBuilder).Append(g.IntN(10) < 3)
		b.Field(7).(*array.Decimal128Builder).Append(decimal128.FromI64(g.Int64N(1_000_000)))
	}}
}

// small is data set 1 as a streaming writer leaves it: a few hundred rows in each
// of many files.
func small(files, rows int) shape {
	s := distinct(files, rows)
	s.name = "small"
	return s
}

// repeating is data set 2: dictionaries gain in every column.
func repeating(files, rows int) shape {
	return shape{name: "repeating", files: files, rows: rows, schema: eight, fill: func(g *source, _ int64, b *array.RecordBuilder) {
		b.Field(0).(*array.Int64Builder).Append(g.Int64N(1000) * 977)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(startMicros + g.Int64N(3600)*1_000_000))
		appendFloat(g, b.Field(2), func() float64 { return float64(g.IntN(500)) / 4 })
		b.Field(3).(*array.StringBuilder).Append(region(g))
		b.Field(4).(*array.StringBuilder).Append(resource(g))
		b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("session-%08d", g.IntN(20_000)))
		b.Field(6).(*array.BooleanBuilder).Append(g.IntN(10) < 3)
		b.Field(7).(*array.Decimal128Builder).Append(decimal128.FromI64(g.Int64N(2000)))
	}}
}

// appendFloat is null once in fifty rows.
func appendFloat(g *source, b array.Builder, v func() float64) {
	if g.IntN(50) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Float64Builder:
		b.Append(v())
	case *array.Float32Builder:
		b.Append(float32(v()))
	}
}

// before and after are the two ages of the data set that evolved: a key and a
// measure were widened, a decimal too, a column was added.
var (
	before = icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int32, Required: true},
		icego.NestedField{ID: 2, Name: "ts", Type: icego.PrimitiveTypes.TimestampTz},
		icego.NestedField{ID: 3, Name: "val", Type: icego.PrimitiveTypes.Float32},
		icego.NestedField{ID: 4, Name: "s_mid", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 5, Name: "s_high", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 6, Name: "flag", Type: icego.PrimitiveTypes.Bool},
		icego.NestedField{ID: 7, Name: "amt", Type: icego.DecimalTypeOf(9, 2)},
	)
	after = icego.NewSchema(1,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 2, Name: "ts", Type: icego.PrimitiveTypes.TimestampTz},
		icego.NestedField{ID: 3, Name: "val", Type: icego.PrimitiveTypes.Float64},
		icego.NestedField{ID: 4, Name: "s_mid", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 5, Name: "s_high", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 6, Name: "flag", Type: icego.PrimitiveTypes.Bool},
		icego.NestedField{ID: 7, Name: "amt", Type: icego.DecimalTypeOf(12, 2)},
		icego.NestedField{ID: 8, Name: "s_low", Type: icego.PrimitiveTypes.String},
	)
)

func aged(name string, schema *icego.Schema, files, rows int) shape {
	return shape{name: name, files: files, rows: rows, schema: schema, fill: func(g *source, id int64, b *array.RecordBuilder) {
		switch k := b.Field(0).(type) {
		case *array.Int32Builder:
			k.Append(int32(id))
		case *array.Int64Builder:
			k.Append(id)
		}
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(startMicros + id*1000 + g.Int64N(5000)))
		appendFloat(g, b.Field(2), func() float64 { return g.NormFloat64() * 1000 })
		b.Field(3).(*array.StringBuilder).Append(resource(g))
		b.Field(4).(*array.StringBuilder).Append(fmt.Sprintf("%016x-%08x", g.Uint64(), g.Uint32()))
		b.Field(5).(*array.BooleanBuilder).Append(g.IntN(10) < 3)
		b.Field(6).(*array.Decimal128Builder).Append(decimal128.FromI64(g.Int64N(1_000_000)))
		if len(b.Fields()) > 7 {
			b.Field(7).(*array.StringBuilder).Append(region(g))
		}
	}}
}

// wide has a table's worth of columns of one kind: longs that count up.
func wide(files, rows, columns int) shape {
	fields := make([]icego.NestedField, columns)
	for i := range fields {
		fields[i] = icego.NestedField{ID: i + 1, Name: fmt.Sprintf("c%04d", i), Type: icego.PrimitiveTypes.Int64}
	}
	return shape{name: fmt.Sprintf("wide-%d", columns), files: files, rows: rows, schema: icego.NewSchema(0, fields...), fill: func(g *source, id int64, b *array.RecordBuilder) {
		for i, f := range b.Fields() {
			f.(*array.Int64Builder).Append(id*int64(i+1) + g.Int64N(100))
		}
	}}
}

// make writes the data set below dir, files in parallel.
func (s shape) make(ctx context.Context, dir string) (*dataset, error) {
	d := &dataset{name: s.name, schema: s.schema, files: make([]localFile, s.files)}
	dir = filepath.Join(dir, s.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	as, err := icetable.SchemaToArrowSchema(s.schema, nil, true, false)
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range d.files {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return d.files[i].write(s, as, filepath.Join(dir, fmt.Sprintf("f%03d.parquet", i)), i)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("make data set %s: %w", s.name, err)
	}
	for _, f := range d.files {
		d.bytes, d.rows = d.bytes+f.bytes, d.rows+f.rows
	}
	return d, nil
}

// layout is how a common engine writes: zstd, pages of 1 MiB, dictionaries
// where they gain, page indexes.
func layout(schema *icego.Schema) *parquet.WriterProperties {
	o := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(3), parquet.WithDataPageSize(1 << 20),
		parquet.WithDictionaryPageSizeLimit(2 << 20), parquet.WithDataPageVersion(parquet.DataPageV1), parquet.WithPageIndexEnabled(true),
		parquet.WithStats(true), parquet.WithCreatedBy("bench"),
	}
	for _, f := range schema.Fields() {
		o = append(o, parquet.WithDictionaryCostFallbackFor(f.Name, true))
	}
	return parquet.NewWriterProperties(o...)
}

func (f *localFile) write(s shape, as *arrow.Schema, path string, n int) (err error) {
	src := newSource(n)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for r := range s.rows {
		s.fill(src, int64(n)*int64(s.rows)+int64(r)+1, b)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(out, 1<<20)
	w, err := pqarrow.NewFileWriter(as, buffered, layout(s.schema), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return errors.Join(err, out.Close())
	}
	if err := errors.Join(w.WriteBuffered(rec), w.Close(), buffered.Flush()); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	f.path, f.rows = path, int64(s.rows)
	if err := f.measure(s.schema, rec); err != nil {
		return err
	}
	return f.footer(s.schema)
}

// footer takes size, splits and column sizes from the file.
func (f *localFile) footer(schema *icego.Schema) error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	f.bytes = info.Size()
	r, err := file.OpenParquetFile(f.path, false)
	if err != nil {
		return err
	}
	defer r.Close()
	f.sizes = map[int]int64{}
	for g := range r.NumRowGroups() {
		rg := r.MetaData().RowGroup(g)
		f.splits = append(f.splits, rg.FileOffset())
		for c := range rg.NumColumns() {
			chunk, err := rg.ColumnChunk(c)
			if err != nil {
				return err
			}
			f.sizes[schema.Field(c).ID] += chunk.TotalCompressedSize()
		}
	}
	return nil
}

// measure computes counts and bounds.
func (f *localFile) measure(schema *icego.Schema, rec arrow.RecordBatch) error {
	f.values, f.nulls, f.nans = map[int]int64{}, map[int]int64{}, map[int]int64{}
	f.lower, f.upper = map[int][]byte{}, map[int][]byte{}
	for c, field := range schema.Fields() {
		col := rec.Column(c)
		f.values[field.ID], f.nulls[field.ID] = int64(col.Len()), int64(col.NullN())
		low, high := extremes(col)
		if low == nil {
			continue
		}
		if _, float := low.(icego.Float64Literal); float {
			f.nans[field.ID] = 0
		}
		if _, float := low.(icego.Float32Literal); float {
			f.nans[field.ID] = 0
		}
		var err error
		if f.lower[field.ID], err = low.MarshalBinary(); err != nil {
			return err
		}
		if f.upper[field.ID], err = high.MarshalBinary(); err != nil {
			return err
		}
	}
	return nil
}

// extremes are the least and the greatest value that is not null. Strings here
// are short enough for bounds in full; no float is NaN.
func extremes(col arrow.Array) (low, high icego.Literal) {
	switch a := col.(type) {
	case *array.Int32:
		return ends(a, a.Value, func(x, y int32) bool { return x < y }, func(v int32) icego.Literal { return icego.NewLiteral(v) })
	case *array.Int64:
		return ends(a, a.Value, func(x, y int64) bool { return x < y }, func(v int64) icego.Literal { return icego.NewLiteral(v) })
	case *array.Timestamp:
		return ends(a, a.Value, func(x, y arrow.Timestamp) bool { return x < y }, func(v arrow.Timestamp) icego.Literal { return icego.NewLiteral(icego.Timestamp(v)) })
	case *array.Float32:
		return ends(a, a.Value, func(x, y float32) bool { return x < y }, func(v float32) icego.Literal { return icego.NewLiteral(v) })
	case *array.Float64:
		return ends(a, a.Value, func(x, y float64) bool { return x < y }, func(v float64) icego.Literal { return icego.NewLiteral(v) })
	case *array.String:
		return ends(a, a.Value, func(x, y string) bool { return x < y }, func(v string) icego.Literal { return icego.NewLiteral(v) })
	case *array.Boolean:
		return ends(a, a.Value, func(x, y bool) bool { return !x && y }, func(v bool) icego.Literal { return icego.NewLiteral(v) })
	case *array.Decimal128:
		return ends(a, a.Value, decimal128.Num.Less, func(v decimal128.Num) icego.Literal { return icego.NewLiteral(icego.Decimal{Val: v, Scale: 2}) })
	}
	return nil, nil
}

func ends[T any](a arrow.Array, at func(int) T, less func(a, b T) bool, literal func(T) icego.Literal) (low, high icego.Literal) {
	var least, most T
	seen := false
	for i := range a.Len() {
		if a.IsNull(i) {
			continue
		}
		v := at(i)
		if !seen || less(v, least) {
			least = v
		}
		if !seen || less(most, v) {
			most = v
		}
		seen = true
	}
	if !seen {
		return nil, nil
	}
	return literal(least), literal(most)
}

// entry begins the manifest entry of the file at a location, unpartitioned.
func (f *localFile) entry(location string) (*icego.DataFileBuilder, error) {
	b, err := icego.NewDataFileBuilder(*icego.UnpartitionedSpec, icego.EntryContentData, location, icego.ParquetFile, nil, nil, nil, f.rows, f.bytes)
	if err != nil {
		return nil, err
	}
	return b.ColumnSizes(f.sizes).ValueCounts(f.values).NullValueCounts(f.nulls).NaNValueCounts(f.nans).
		LowerBoundValues(f.lower).UpperBoundValues(f.upper).SplitOffsets(f.splits), nil
}

// scattered are one in a hundred of the positions of a file, at random.
func scattered(n int, rows int64) []int64 {
	r := rand.New(rand.NewPCG(datasetSeed+1, uint64(n)))
	want := int(math.Ceil(float64(rows) / 100))
	seen := map[int64]bool{}
	for len(seen) < want {
		seen[r.Int64N(rows)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}
