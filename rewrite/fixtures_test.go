package rewrite_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite"
)

var update = flag.Bool("update", false, "write testdata/fixtures.txt anew")

// TestFixturesMergedWithThemselves merges every file of other writers with
// itself, ids by a name mapping made from its own schema. Its rows come out twice,
// or it is refused; which, is in testdata/fixtures.txt.
func TestFixturesMergedWithThemselves(t *testing.T) {
	dir := os.Getenv("SEAICE_FIXTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "fixtures")
	}
	names, err := filepath.Glob(filepath.Join(dir, "parquet", "*.parquet"))
	require.NoError(t, err)
	if len(names) == 0 {
		t.Skip("no fixtures in ", dir)
	}
	slices.Sort(names)
	var got []string
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, c := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyForced} {
			how := map[rewrite.Copying]string{rewrite.CopyNever: "encoded", rewrite.CopyForced: "copied"}[c]
			got = append(got, fmt.Sprintf("%s %s: %s", filepath.Base(name), how, mergeFixture(t, filepath.Base(name), content, c)))
		}
	}
	const at = "testdata/fixtures.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(at, []byte(strings.Join(got, "\n")+"\n"), 0o644))
	}
	want, err := os.ReadFile(at)
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(want)), "\n"), got)
}

// fixtureSchema makes a table's schema of that of a file, as arrow-go reads it.
func fixtureSchema(content []byte) (s *icego.Schema, rows int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	r, err := file.NewParquetReader(bytes.NewReader(content))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = r.Close() }()
	sc, err := pqarrow.FromParquet(r.MetaData().Schema, nil, nil)
	if err != nil {
		return nil, 0, err
	}
	s, err = icetable.ArrowSchemaToIcebergWithFreshIDs(sc, true)
	return s, r.NumRows(), err
}

func mergeFixture(t *testing.T, name string, content []byte, c rewrite.Copying) string {
	schema, n, err := fixtureSchema(content)
	if err != nil {
		return "no table is known to have its schema: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	w := newWorld(t, schema, 3)
	w.request.Table.Names, w.request.Table.HasNames = schema.NameMapping(), true
	rows := make([]row, n)
	w.add(content, rows, nil)
	w.add(content, rows, nil)
	w.request.Copying = c
	res, err := rewrite.Merge(context.Background(), w.request)
	if err != nil {
		require.Contains(t, []fault.Kind{fault.Unsupported, fault.Corrupt, fault.TooLarge}, fault.Of(err), "%s: %v", name, err)
		if fault.Is(err, fault.Corrupt) {
			return fault.Of(err).String() // columns are read at once, the first broken one is named
		}
		text := err.Error()
		if i := strings.LastIndex(text, "parquet: "); i >= 0 {
			text = text[i+len("parquet: "):]
		}
		return fault.Of(err).String() + ": " + text
	}
	require.Equal(t, 2*n, res.Proof.RowsWritten)
	var out []any
	for _, o := range res.Outputs {
		out = append(out, plainRows(t, w.filer.Content(o.At), len(schema.Fields()))...)
	}
	in, err := plain(content, len(schema.Fields()))
	if err != nil {
		return fmt.Sprintf("%d rows, read by the other reader after the merge only", len(out))
	}
	require.Len(t, out, 2*len(in), name)
	for i := range out {
		require.Equal(t, in[i%len(in)], out[i], "%s: row %d", name, i)
	}
	return fmt.Sprintf("%d rows", len(out))
}

func plainRows(t *testing.T, content []byte, columns int) []any {
	rows, err := plain(content, columns)
	require.NoError(t, err)
	return rows
}

// plain reads the first columns of a file as values by position, numbers and times
// in one form each.
func plain(content []byte, columns int) (rows []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	r, err := file.NewParquetReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	tb, err := fr.ReadTable(context.Background())
	if err != nil {
		return nil, err
	}
	defer tb.Release()
	for range tb.NumRows() {
		rows = append(rows, make([]any, columns))
	}
	for c := range columns {
		n := 0
		for _, chunk := range tb.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				rows[n].([]any)[c] = plainValue(chunk, i)
				n++
			}
		}
	}
	return rows, nil
}

func plainValue(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Float16:
		return float64(a.Value(i).Float32())
	case *array.Float32:
		if v := a.Value(i); v == v {
			return float64(v)
		}
		return "NaN"
	case *array.Float64:
		if v := a.Value(i); v == v {
			return math.Float64bits(v)
		}
		return "NaN"
	case *array.Timestamp:
		return int64(a.Value(i)) * int64(a.DataType().(*arrow.TimestampType).Unit.Multiplier())
	case *array.Time32:
		return int64(a.Value(i)) * int64(a.DataType().(*arrow.Time32Type).Unit.Multiplier())
	case *array.Time64:
		return int64(a.Value(i)) * int64(a.DataType().(*arrow.Time64Type).Unit.Multiplier())
	case *array.Struct:
		out := []any{}
		for k := range a.NumField() {
			out = append(out, plainValue(a.Field(k), i))
		}
		return out
	case *array.Map:
		begin, end := a.ValueOffsets(i)
		out := []any{}
		for j := begin; j < end; j++ {
			out = append(out, pair{plainValue(a.Keys(), int(j)), plainValue(a.Items(), int(j))})
		}
		return out
	case *array.List:
		begin, end := a.ValueOffsets(i)
		out := []any{}
		for j := begin; j < end; j++ {
			out = append(out, plainValue(a.ListValues(), int(j)))
		}
		return out
	case array.ExtensionArray:
		return plainValue(a.Storage(), i)
	}
	return get(a, i)
}
