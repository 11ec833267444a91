package rewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

// eventSchema is that of a table of events: ids, times, measurements, text of
// few, many and only distinct values, flags and amounts.
var eventSchema = icego.NewSchema(0,
	icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
	icego.NestedField{ID: 2, Name: "ts", Type: icego.PrimitiveTypes.TimestampTz},
	icego.NestedField{ID: 3, Name: "val", Type: icego.PrimitiveTypes.Float64},
	icego.NestedField{ID: 4, Name: "region", Type: icego.PrimitiveTypes.String},
	icego.NestedField{ID: 5, Name: "path", Type: icego.PrimitiveTypes.String},
	icego.NestedField{ID: 6, Name: "key", Type: icego.PrimitiveTypes.String},
	icego.NestedField{ID: 7, Name: "flag", Type: icego.PrimitiveTypes.Bool},
	icego.NestedField{ID: 8, Name: "amount", Type: icego.DecimalTypeOf(12, 2)},
)

// eventFiles makes files of events from a fixed seed.
func eventFiles(t require.TestingT, files, rows int, codec compress.Compression) [][]byte {
	sc, err := icetable.SchemaToArrowSchema(eventSchema, nil, true, false)
	require.NoError(t, err)
	rng := rand.New(rand.NewSource(42)) //nolint:gosec // reproducible data
	paths := make([]string, 5000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/api/v1/customers/%06d/orders", i*7919%1000003)
	}
	zipf := rand.NewZipf(rng, 1.2, 10, uint64(len(paths)-1))
	options := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithDataPageSize(1 << 20), parquet.WithDictionaryPageSizeLimit(2 << 20),
		parquet.WithDataPageVersion(parquet.DataPageV1), parquet.WithPageIndexEnabled(true),
	}
	for _, name := range []string{"id", "ts", "val", "key", "amount"} {
		options = append(options, parquet.WithDictionaryCostFallbackFor(name, true))
	}
	props := parquet.NewWriterProperties(options...)
	id := int64(0)
	var out [][]byte
	for range files {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for range rows {
			id++
			b.Field(0).(*array.Int64Builder).Append(id)
			b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1_760_000_000_000_000 + id*1000 + int64(rng.Intn(5000))))
			if rng.Intn(50) == 0 {
				b.Field(2).AppendNull()
			} else {
				b.Field(2).(*array.Float64Builder).Append(rng.NormFloat64() * 1000)
			}
			b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("region-%02d", rng.Intn(40)))
			b.Field(4).(*array.StringBuilder).Append(paths[zipf.Uint64()])
			b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("%016x-%08x", rng.Uint64(), rng.Uint32()))
			b.Field(6).(*array.BooleanBuilder).Append(rng.Intn(10) < 3)
			b.Field(7).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(rng.Intn(1_000_000))))
		}
		rec := b.NewRecordBatch()
		var file bytes.Buffer
		w, err := pqarrow.NewFileWriter(sc, &file, props, pqarrow.NewArrowWriterProperties())
		require.NoError(t, err)
		require.NoError(t, w.WriteBuffered(rec))
		require.NoError(t, w.Close())
		rec.Release()
		out = append(out, file.Bytes())
	}
	return out
}

var benchFiles = sync.OnceValue(func() [][]byte {
	return eventFiles(panicking{}, 32, 100_000, compress.Codecs.Zstd)
})

// panicking is a test that ends the program when it fails.
type panicking struct{}

func (panicking) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicking) FailNow()                          { panic("failed") }

// discard is a sink that keeps nothing.
type discard struct{ n int64 }

func (d *discard) Write(b []byte) (int, error) {
	d.n += int64(len(b))
	return len(b), nil
}

func (d *discard) Done(context.Context) (rewrite.Stored, error) {
	return rewrite.Stored{Location: "s3://b/out", Bytes: d.n}, nil
}
func (d *discard) Abort() {}

var _ io.Writer = (*discard)(nil)

// inMemory reads files that lie in memory, where they lie.
type inMemory struct {
	filer.Reader
	files map[filer.Path][]byte
}

func (m *inMemory) Open(_ context.Context, p filer.Path) (filer.Object, error) {
	return &memoryObject{Reader: bytes.NewReader(m.files[p]), content: m.files[p]}, nil
}

// memoryObject is an open file of inMemory, which nobody streams.
type memoryObject struct {
	*bytes.Reader
	content []byte
}

// Content implements column.InMemory.
func (m *memoryObject) Content() []byte { return m.content }

func (*memoryObject) Close() error                      { return nil }
func (*memoryObject) Entry() *filer.Entry               { return nil }
func (*memoryObject) Stream(int64, int64) io.ReadCloser { return nil }

// cpuSeconds is the processor time this program has used.
func cpuSeconds(t require.TestingT) float64 {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkMerge merges files of events in memory and reports compressed input
// per second, and per second of processor time.
func BenchmarkMerge(b *testing.B) {
	for _, c := range []struct {
		name    string
		change  func(*rewrite.Request)
		deleted int
	}{
		{name: "copy", change: func(q *rewrite.Request) { q.Copying = rewrite.CopyWhereAllowed }},
		{name: "copy-counts", change: func(q *rewrite.Request) { q.Verify = rewrite.VerifyCounts }},
		{name: "never", change: func(q *rewrite.Request) { q.Copying = rewrite.CopyNever }},
		{name: "never-counts", change: func(q *rewrite.Request) { q.Copying, q.Verify = rewrite.CopyNever, rewrite.VerifyCounts }},
		{name: "deletes", change: func(*rewrite.Request) {}, deleted: 1000},
		{name: "recompress", change: func(q *rewrite.Request) { q.Table.Properties["write.parquet.compression-codec"] = "snappy" }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, eventSchema, 2)
			rng := rand.New(rand.NewSource(1)) //nolint:gosec // reproducible data
			total, files := int64(0), map[filer.Path][]byte{}
			for _, f := range benchFiles() {
				var d *deletes.Positions
				for range c.deleted {
					if d == nil {
						d = &deletes.Positions{}
					}
					d.Add(int64(rng.Intn(100_000)))
				}
				files[w.add(f, make([]row, 100_000), d).At] = f
				total += int64(len(f))
			}
			w.request.Reader = &inMemory{Reader: w.filer, files: files}
			w.request.Create = func(context.Context, int) (rewrite.Sink, error) { return &discard{}, nil }
			c.change(&w.request)
			b.SetBytes(total)
			b.ResetTimer()
			before := cpuSeconds(b)
			for b.Loop() {
				_, err := rewrite.Merge(context.Background(), w.request)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(total)*float64(b.N)/1e6/(cpuSeconds(b)-before), "MB/cpu-s")
		})
	}
}
