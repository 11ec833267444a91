package deletes_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
)

func open(t require.TestingT, b []byte, o column.Options) *column.File {
	f, err := column.Open(context(), bytes.NewReader(b), "delete file", o)
	require.NoError(t, err)
	return f
}

// collect reads all positions by path.
func collect(f *column.File, rows int64) (map[string]*deletes.Positions, deletes.Counts, error) {
	got := map[string]*deletes.Positions{}
	counts, err := deletes.ReadPositions(f, func(path []byte) (*deletes.Sink, error) {
		name := string(path)
		if got[name] == nil {
			got[name] = &deletes.Positions{}
		}
		return &deletes.Sink{Name: name, Positions: got[name], Rows: rows}, nil
	})
	return got, counts, err
}

func requireAll(t require.TestingT, want, got map[string]*deletes.Positions) {
	require.Len(t, got, len(want))
	for name, p := range want {
		require.True(t, p.Equal(got[name]), "%s", name)
	}
}

type deleteRow struct {
	Path string `parquet:"file_path,id(2147483546)"`
	Pos  int64  `parquet:"pos,id(2147483545)"`
}

func arrowRows(t require.TestingT, b []byte) []deleteRow {
	pf, err := file.NewParquetReader(bytes.NewReader(b))
	require.NoError(t, err)
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	table, err := r.ReadTable(context())
	require.NoError(t, err)
	defer table.Release()
	var rows []deleteRow
	for in := array.NewTableReader(table, 0); in.Next(); {
		rec := in.RecordBatch()
		for i := range int(rec.NumRows()) {
			rows = append(rows, deleteRow{rec.Column(0).(*array.String).Value(i), rec.Column(1).(*array.Int64).Value(i)})
		}
	}
	return rows
}

// TestWrittenPositionsAreReadByOthers writes files of all codecs and sizes of row
// groups, and reads them with arrow-go and with our own reader.
func TestWrittenPositionsAreReadByOthers(t *testing.T) {
	codecs := []format.Codec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.LZ4Raw}
	rapid.Check(t, func(t *rapid.T) {
		var all []deletes.Deleted
		want := map[string]*deletes.Positions{}
		records := int64(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "files") {
			p, _ := drawPositions(t, "positions")
			p.Add(rapid.Int64Range(0, 70000).Draw(t, "one"))
			name := fmt.Sprintf("s3://b/t/data/%d.parquet", (i*3)%5)
			all = append(all, deletes.Deleted{DataFile: name, Positions: p})
			want[name] = p
			records += p.Len()
		}
		var out bytes.Buffer
		w, err := deletes.WritePositions(&out, deletes.PositionOptions{
			CreatedBy: "seaice version 0.0.1 (build x)", Codec: rapid.SampledFrom(codecs).Draw(t, "codec"), GroupRows: rapid.SampledFrom([]int64{0, 7, 100}).Draw(t, "group"),
		}, all)
		require.NoError(t, err)
		require.EqualValues(t, out.Len(), w.Bytes)
		require.Equal(t, records, w.Records)
		got, counts, err := collect(open(t, out.Bytes(), column.Options{}), 6<<32)
		require.NoError(t, err)
		require.Equal(t, deletes.Counts{Rows: records, Taken: records}, counts)
		requireAll(t, want, got)

		rows := arrowRows(t, out.Bytes())
		theirs := map[string]*deletes.Positions{}
		for _, r := range rows {
			if theirs[r.Path] == nil {
				theirs[r.Path] = &deletes.Positions{}
			}
			theirs[r.Path].Add(r.Pos)
		}
		requireAll(t, want, theirs)
		require.True(t, slices.IsSortedFunc(rows, func(a, b deleteRow) int {
			if a.Path != b.Path {
				return bytes.Compare([]byte(a.Path), []byte(b.Path))
			}
			return int(a.Pos - b.Pos)
		}))
		require.EqualValues(t, rows[0].Path, w.Lower[deletes.PathField])
		require.EqualValues(t, rows[len(rows)-1].Path, w.Upper[deletes.PathField])
		least := slices.MinFunc(rows, func(a, b deleteRow) int { return int(a.Pos>>1 - b.Pos>>1) }).Pos
		require.LessOrEqual(t, int64(binary.LittleEndian.Uint64(w.Lower[deletes.PosField])), least)
		if len(all) == 1 {
			require.Equal(t, all[0].DataFile, w.Referenced)
		} else {
			require.Empty(t, w.Referenced)
		}
	})
}

func TestPositionsAreNotWrittenTwiceOrEmpty(t *testing.T) {
	one := deletes.Deleted{DataFile: "a", Positions: deletes.Of(1)}
	for _, all := range [][]deletes.Deleted{nil, {one, one}, {one, {DataFile: "b"}}} {
		_, err := deletes.WritePositions(&bytes.Buffer{}, deletes.PositionOptions{}, all)
		require.True(t, fault.Is(err, fault.Halt), "%v", err)
	}
}

type plainRow struct {
	Extra string `parquet:"extra,optional,id(1)"`
	Path  string `parquet:"file_path,id(2147483546)"`
	Pos   int64  `parquet:"pos,delta,id(2147483545)"`
}

type dictRow struct {
	Path *string `parquet:"p,optional,dict,id(2147483546)"`
	Pos  *int64  `parquet:"q,optional,id(2147483545)"`
	Row  struct {
		A int64 `parquet:"a,id(1)"`
	} `parquet:"row,optional,id(2147483544)"`
}

type deltaRow struct {
	Path string `parquet:"file_path,delta"`
	Pos  int64  `parquet:"pos,dict"`
}

func written[T any](t require.TestingT, rows []T, o ...parquet.WriterOption) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, o...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestPositionsOfOtherWriters reads files of many layouts: rows in any order,
// repeated, in small pages and groups, with and without dictionaries and ids.
func TestPositionsOfOtherWriters(t *testing.T) {
	codecs := []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw}
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]*deletes.Positions{}
		n := rapid.IntRange(1, 400).Draw(t, "rows")
		var paths []string
		var places []int64
		for range n {
			if len(paths) > 0 && rapid.IntRange(0, 3).Draw(t, "again") > 0 {
				paths = append(paths, paths[len(paths)-1])
			} else {
				paths = append(paths, fmt.Sprintf("file-%d", rapid.IntRange(0, 9).Draw(t, "file")))
			}
			places = append(places, rapid.Int64Range(0, 300).Draw(t, "pos"))
			name := paths[len(paths)-1]
			if want[name] == nil {
				want[name] = &deletes.Positions{}
			}
			want[name].Add(places[len(places)-1])
		}
		o := []parquet.WriterOption{
			parquet.Compression(rapid.SampledFrom(codecs).Draw(t, "codec")), parquet.DataPageStatistics(true),
			parquet.PageBufferSize(rapid.SampledFrom([]int{64, 1000, 1 << 20}).Draw(t, "page")),
			parquet.MaxRowsPerRowGroup(rapid.SampledFrom([]int64{10, 150, 1 << 20}).Draw(t, "group")),
			parquet.DataPageVersion(rapid.IntRange(1, 2).Draw(t, "version")),
		}
		var file []byte
		switch rapid.IntRange(0, 3).Draw(t, "layout") {
		case 0:
			var rows []plainRow
			for i := range n {
				rows = append(rows, plainRow{Extra: "x", Path: paths[i], Pos: places[i]})
			}
			file = written(t, rows, o...)
		case 1:
			var rows []dictRow
			for i := range n {
				rows = append(rows, dictRow{Path: &paths[i], Pos: &places[i]})
			}
			file = written(t, rows, o...)
		case 2:
			var rows []deltaRow
			for i := range n {
				rows = append(rows, deltaRow{Path: paths[i], Pos: places[i]})
			}
			file = written(t, rows, o...)
		default:
			var rows []deleteRow
			for i := range n {
				rows = append(rows, deleteRow{Path: paths[i], Pos: places[i]})
			}
			file = written(t, rows, o...)
		}
		f := open(t, file, column.Options{Window: 128, Whole: -1})
		got, counts, err := collect(f, 301)
		require.NoError(t, err)
		require.Equal(t, deletes.Counts{Rows: int64(n), Taken: int64(n)}, counts)
		requireAll(t, want, got)

		// Only one file is wanted; the rows of the others are passed over.
		only := rapid.SampledFrom(paths).Draw(t, "only")
		one := &deletes.Sink{Positions: &deletes.Positions{}, Rows: 301}
		counts, err = deletes.ReadPositions(f, func(path []byte) (*deletes.Sink, error) {
			if string(path) == only {
				return one, nil
			}
			return nil, nil
		})
		require.NoError(t, err)
		require.True(t, want[only].Equal(one.Positions))
		require.EqualValues(t, n, counts.Rows)
	})
}

// TestPositionsFarApartAreSoughtFor reads the rows of one file out of many, which
// are read by an offset index and not one by one.
func TestPositionsFarApartAreSoughtFor(t *testing.T) {
	var all []deletes.Deleted
	for i := range 5 {
		p := &deletes.Positions{}
		p.AddRange(int64(i), 100_000)
		all = append(all, deletes.Deleted{DataFile: fmt.Sprint(i), Positions: p})
	}
	var file bytes.Buffer
	_, err := deletes.WritePositions(&file, deletes.PositionOptions{CreatedBy: "x", Codec: format.Zstd}, all)
	require.NoError(t, err)
	for _, only := range []int{0, 2, 4} {
		sink := &deletes.Sink{Positions: &deletes.Positions{}, Rows: 100_000}
		counts, err := deletes.ReadPositions(open(t, file.Bytes(), column.Options{}), func(path []byte) (*deletes.Sink, error) {
			if string(path) == fmt.Sprint(only) {
				return sink, nil
			}
			return nil, nil
		})
		require.NoError(t, err)
		require.True(t, all[only].Positions.Equal(sink.Positions))
		require.Equal(t, all[only].Positions.Len(), counts.Taken)
	}
}

func TestF021PositionsThatCannotBe(t *testing.T) {
	name, pos := "a", int64(3)
	for what, file := range map[string][]byte{
		"null pos":        written(t, []dictRow{{Path: &name, Pos: &pos}, {Path: &name}}),
		"null path":       written(t, []dictRow{{Pos: &pos}, {Path: &name, Pos: &pos}}),
		"behind the file": written(t, []deleteRow{{"a", 10}}),
		"negative":        written(t, []deleteRow{{"a", -1}}),
		"no columns":      written(t, []struct{ X int64 }{{1}}),
		"pos is an int": written(t, []struct {
			Path string `parquet:"file_path,id(2147483546)"`
			Pos  int32  `parquet:"pos,id(2147483545)"`
		}{{"a", 1}}),
		"pos is a list": written(t, []struct {
			Path string  `parquet:"file_path,id(2147483546)"`
			Pos  []int64 `parquet:"pos,id(2147483545)"`
		}{{"a", []int64{1}}}),
		"two columns pos": written(t, []struct {
			Path string `parquet:"file_path,id(2147483546)"`
			Pos  int64  `parquet:"pos,id(2147483545)"`
			Pos2 int64  `parquet:"pos2,id(2147483545)"`
		}{{"a", 1, 1}}),
	} {
		t.Run(what, func(t *testing.T) {
			_, _, err := collect(open(t, file, column.Options{}), 10)
			require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
		})
	}
	got, counts, err := collect(open(t, written(t, []deleteRow{{"a", 3}, {"a", 3}, {"a", 3}}), column.Options{}), 10)
	require.NoError(t, err)
	require.Equal(t, []int64{3}, slices.Collect(got["a"].All()), "duplicates collapse")
	require.EqualValues(t, 3, counts.Taken)
}

// TestF026ReservedColumnsAreKnownByID has columns with the reserved names and
// other ids.
func TestF026ReservedColumnsAreKnownByID(t *testing.T) {
	type row struct {
		Pos  int64  `parquet:"pos,id(7)"`
		Path string `parquet:"file_path,id(8)"`
		P    string `parquet:"a,id(2147483546)"`
		Q    int64  `parquet:"b,id(2147483545)"`
	}
	got, _, err := collect(open(t, written(t, []row{{Pos: 1, Path: "wrong", P: "right", Q: 2}}), column.Options{}), 10)
	require.NoError(t, err)
	require.Equal(t, []int64{2}, slices.Collect(got["right"].All()))
	require.Len(t, got, 1)
	type half struct {
		Pos  int64  `parquet:"pos"`
		Path string `parquet:"file_path"`
		X    int64  `parquet:"x,id(1)"`
	}
	_, _, err = collect(open(t, written(t, []half{{1, "a", 1}}), column.Options{}), 10)
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
}

// TestDamagedPositionFiles changes every byte of a file and cuts it everywhere.
func TestDamagedPositionFiles(t *testing.T) {
	var file bytes.Buffer
	_, err := deletes.WritePositions(&file, deletes.PositionOptions{CreatedBy: "x", Codec: format.Snappy, GroupRows: 20}, []deletes.Deleted{
		{DataFile: "a", Positions: deletes.Of(1, 5, 6, 7)}, {DataFile: "b", Positions: deletes.Of(2, 3, 9, 700)},
	})
	require.NoError(t, err)
	whole := file.Bytes()
	read := func(b []byte) {
		f, err := column.Open(context(), bytes.NewReader(b), "damaged", column.Options{Budget: column.NewBudget(64 << 20)})
		if err != nil {
			return
		}
		_, _, _ = collect(f, 1000)
	}
	for i := range whole {
		for _, x := range []byte{1, 0x10, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[i] ^= x
			require.NotPanics(t, func() { read(b) })
		}
		require.NotPanics(t, func() { read(whole[:i]) })
	}
}
