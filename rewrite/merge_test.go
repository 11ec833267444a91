package rewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/resolve"
)

// world is a filer with the sources of a unit, and what their rows are in the
// current schema.
type world struct {
	filer   *filertest.Filer
	request rewrite.Request
	// want are the rows of the outputs, in order.
	want []any
	n    int
}

func newWorld(t require.TestingT, schema *icego.Schema, version int) *world {
	w := &world{filer: filertest.New(filertest.Options{})}
	w.request = rewrite.Request{
		Table:       rewrite.Table{FormatVersion: version, Schema: schema, Properties: map[string]string{}, Type: &iceberg.PartitionType{}},
		TargetBytes: 512 << 20,
		Reader:      w.filer,
		Create: func(_ context.Context, n int) (rewrite.Sink, error) {
			return &sink{filer: w.filer, at: filer.Path(fmt.Sprintf("/buckets/b/t/data/out-%d.parquet", n))}, nil
		},
	}
	return w
}

// anyOf is how a test merges that draws a way: as SEAICE_COPYING says, or as given.
// Others are about what becomes of pages in one of them. "on" copies pages where that is allowed and nothing is gained by encoding
// them anew, "off" encodes everything, "forced" copies wherever it is allowed.
func anyOf(t require.TestingT, given rewrite.Copying) rewrite.Copying {
	text := os.Getenv("SEAICE_COPYING")
	if text == "" {
		return given
	}
	all := map[string]rewrite.Copying{"on": rewrite.CopyWhereAllowed, "off": rewrite.CopyNever, "forced": rewrite.CopyForced}
	require.Contains(t, all, text, "SEAICE_COPYING")
	return all[text]
}

// add puts a source with the content of a file; rows are as the current schema
// reads them.
func (w *world) add(content []byte, rows []row, deleted *deletes.Positions) *rewrite.Source {
	at := filer.Path(fmt.Sprintf("/buckets/b/t/data/in-%d.parquet", w.n))
	w.n++
	w.filer.PutFile(at, content)
	w.request.Sources = append(w.request.Sources, rewrite.Source{
		Location: "s3://b/" + string(at[len("/buckets/b/"):]), At: at, Bytes: int64(len(content)), Records: int64(len(rows)),
		Type: w.request.Table.Type, Deleted: deleted, DataSeq: iceberg.SeqNum(w.n),
	})
	for i, r := range rows {
		if !deleted.Contains(int64(i)) {
			w.want = append(w.want, r)
		}
	}
	return &w.request.Sources[len(w.request.Sources)-1]
}

// sink keeps an output in memory until it is done.
type sink struct {
	filer *filertest.Filer
	at    filer.Path
	bytes.Buffer
}

func (s *sink) Done(context.Context) (rewrite.Stored, error) {
	s.filer.PutFile(s.at, s.Bytes())
	return rewrite.Stored{Location: "s3://b/" + string(s.at[len("/buckets/b/"):]), At: s.at, Bytes: int64(s.Len())}, nil
}

func (s *sink) Abort() {}

// merge runs the request and compares the rows with those wanted.
func (w *world) merge(t require.TestingT) rewrite.Result {
	res, err := rewrite.Merge(context.Background(), w.request)
	require.NoError(t, err)
	w.check(t, res)
	return res
}

func (w *world) check(t require.TestingT, res rewrite.Result) {
	got := []any{}
	for _, o := range res.Outputs {
		content := w.filer.Content(o.At)
		require.Equal(t, o.Bytes, int64(len(content)))
		rows := readRows(t, content)
		require.Len(t, rows, int(o.Records))
		if w.request.MaxRows > 0 {
			require.LessOrEqual(t, o.Records, w.request.MaxRows)
		}
		got = append(got, rows...)
	}
	require.Len(t, got, len(w.want))
	for i := range w.want {
		require.Equal(t, w.want[i], got[i], "row %d", i)
	}
	require.Equal(t, int64(len(w.want)), res.Proof.RowsWritten)
	require.Equal(t, res.Proof.RowsRead, res.Proof.RowsWritten+res.Proof.RowsDeleted)
	require.NoError(t, res.Map.Check())
}

func drawDeletes(t *rapid.T, rows int) *deletes.Positions {
	d := &deletes.Positions{}
	if rows == 0 {
		return d
	}
	switch rapid.IntRange(0, 4).Draw(t, "deletes") {
	case 0:
		for range rapid.IntRange(1, 20).Draw(t, "deleted rows") {
			d.Add(rapid.Int64Range(0, int64(rows)-1).Draw(t, "deleted row"))
		}
	case 1:
		begin := rapid.Int64Range(0, int64(rows)-1).Draw(t, "from")
		d.AddRange(begin, rapid.Int64Range(begin, int64(rows)).Draw(t, "to"))
	case 2:
		if rapid.IntRange(0, 4).Draw(t, "all") == 0 {
			d.AddRange(0, int64(rows))
		}
	default:
		return nil
	}
	return d
}

// older draws a schema that could have become s.
func older(t *rapid.T, fields []icego.NestedField) []icego.NestedField {
	var out []icego.NestedField
	for _, f := range fields {
		if !f.Required && rapid.IntRange(0, 5).Draw(t, "absent") == 0 {
			continue
		}
		f.Type = olderType(t, f.Type)
		if rapid.IntRange(0, 3).Draw(t, "renamed") == 0 {
			f.Name = "old_" + f.Name
		}
		out = append(out, f)
	}
	if rapid.IntRange(0, 3).Draw(t, "dropped") == 0 {
		out = append(out, icego.NestedField{ID: 100_000 + len(out)*1000 + fields[0].ID, Name: "dropped", Type: icego.PrimitiveTypes.String})
	}
	if len(out) > 1 && rapid.Bool().Draw(t, "moved") {
		out[0], out[len(out)-1] = out[len(out)-1], out[0]
	}
	return out
}

func olderType(t *rapid.T, typ icego.Type) icego.Type {
	switch typ := typ.(type) {
	case icego.Int64Type:
		if rapid.Bool().Draw(t, "was int") {
			return icego.PrimitiveTypes.Int32
		}
	case icego.Float64Type:
		if rapid.Bool().Draw(t, "was float") {
			return icego.PrimitiveTypes.Float32
		}
	case icego.DecimalType:
		if rapid.Bool().Draw(t, "was narrow") {
			return icego.DecimalTypeOf(max(typ.Precision()/2, typ.Scale(), 1), typ.Scale())
		}
	case *icego.StructType:
		if fields := older(t, typ.FieldList); len(fields) > 0 {
			return &icego.StructType{FieldList: fields}
		}
	case *icego.ListType:
		l := *typ
		l.Element = olderType(t, typ.Element)
		return &l
	case *icego.MapType:
		m := *typ
		m.ValueType = olderType(t, typ.ValueType)
		return &m
	}
	return typ
}

func drawSettings(t *rapid.T, q *rewrite.Request) {
	q.TargetBytes = rapid.SampledFrom([]int64{1, 5_000, 100_000, 512 << 20}).Draw(t, "target")
	q.MaxRows = rapid.SampledFrom([]int64{0, 0, 1, 100}).Draw(t, "max rows")
	q.MemoryBytes = rapid.SampledFrom([]int64{0, 32 << 20, 256 << 20}).Draw(t, "memory")
	q.Copying = anyOf(t, rapid.SampledFrom([]rewrite.Copying{rewrite.CopyWhereAllowed, rewrite.CopyNever, rewrite.CopyForced}).Draw(t, "copying"))
	q.Verify = rapid.SampledFrom([]rewrite.Verify{rewrite.VerifyContent, rewrite.VerifyContent, rewrite.VerifyCounts, rewrite.VerifyRows}).Draw(t, "verify")
	q.Recompress = rapid.Bool().Draw(t, "recompress")
	for _, p := range [][]string{
		{"write.parquet.compression-codec", "", "zstd", "snappy", "gzip", "uncompressed", "lz4"},
		{"write.parquet.row-group-size-bytes", "", "1", "10000"},
		{"write.parquet.row-group-limit", "", "50", "1000"},
		{"write.parquet.page-size-bytes", "", "100", "5000"},
		{"write.parquet.page-row-limit", "", "10", "77"},
		{"write.parquet.dict-size-bytes", "", "0", "100"},
		{"write.parquet.page-version", "", "v2"},
	} {
		if v := rapid.SampledFrom(p[1:]).Draw(t, p[0]); v != "" {
			q.Table.Properties[p[0]] = v
		}
	}
}

// singles reports that the settings make a file of every row. Such units are kept to
// some hundred rows: with more, they would take nearly all of the time of a test.
func singles(q *rewrite.Request) bool { return q.MaxRows == 1 || q.TargetBytes == 1 }

func TestMergeKeepsEveryRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := 0
		schema := icego.NewSchema(0, drawFields(t, &ids, rapid.IntRange(0, 3).Draw(t, "depth"), 4)...)
		version := rapid.IntRange(1, 3).Draw(t, "format version")
		w := newWorld(t, schema, version)
		drawSettings(t, &w.request)
		d := drawer{t: t, rng: &lcg{x: rapid.Uint64().Draw(t, "seed")}}
		for range rapid.IntRange(1, 5).Draw(t, "sources") {
			d.nulls = rapid.SampledFrom([]int{0, 10, 50, 100}).Draw(t, "nulls")
			d.few = rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "few")
			fields := schema.Fields()
			if rapid.Bool().Draw(t, "evolved") {
				fields = older(t, schema.Fields())
				if !slices.ContainsFunc(fields, func(f icego.NestedField) bool { return f.ID < 100_000 }) {
					fields = schema.Fields() // some column must be the table's
				}
			}
			w.draw(t, &d, fields)
		}
		w.merge(t)
	})
}

// draw adds a source with random rows of a schema that had the fields.
func (w *world) draw(t *rapid.T, d *drawer, fields []icego.NestedField) {
	sizes := []int{0, 1, 5, 100, 1000}
	if singles(&w.request) {
		sizes = sizes[:4]
	}
	n := rapid.SampledFrom(sizes).Draw(t, "rows")
	lineage := w.request.Table.FormatVersion >= 3
	stored := lineage && rapid.IntRange(0, 2).Draw(t, "lineage stored") == 0
	schema := icego.NewSchema(1, fields...)
	if stored {
		schema = icego.SchemaWithRowLineage(schema)
	}
	rows, want := make([]row, n), make([]row, n)
	for i := range rows {
		rows[i] = d.row(schema.Fields())
		want[i] = evolveRow(fields, w.request.Table.Schema.Fields(), rows[i])
	}
	style := drawStyle(t)
	before := len(w.want)
	src := w.add(writeRows(t, schema, rows, style, false), want, drawDeletes(t, n))
	if !lineage {
		return
	}
	if rapid.IntRange(0, 3).Draw(t, "row ids") > 0 {
		first := rapid.Int64Range(0, 1<<40).Draw(t, "first row id")
		src.FirstRowID = &first
	}
	at := before
	for i := range rows {
		if src.Deleted.Contains(int64(i)) {
			continue
		}
		completeLineage(w.want[at].(row), rows[i], src, int64(i))
		at++
	}
}

// completeLineage sets what the specification says the lineage of a row is.
func completeLineage(want, stored row, src *rewrite.Source, position int64) {
	id, seq := stored[int(resolve.RowIDField)], stored[int(resolve.LastUpdatedField)]
	if id == nil && src.FirstRowID != nil {
		id = *src.FirstRowID + position
	}
	if seq == nil {
		seq = int64(src.DataSeq)
	}
	want[int(resolve.RowIDField)], want[int(resolve.LastUpdatedField)] = id, seq
}
