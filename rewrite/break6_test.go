package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// TestNullsThatPolarsCountsAreNotBelieved: Polars states the count times the number of pages (polars 29321).
func TestNullsThatPolarsCountsAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "s", Type: icego.PrimitiveTypes.String})
	content := handFile(t, schema, 2, "Polars", handChunk{pages: []handPage{
		{def: []byte{0}, rows: 1}, {def: []byte{1}, values: plainText("x"), rows: 1}}})
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		n := int64(2)
		c.Statistics = &format.Statistics{NullCount: &n, Min: []byte("x"), Max: []byte("x")}
		c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = nil, nil, nil, nil
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: nil}, {1: "x"}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		t.Run("metrics", func(t *testing.T) { auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics) })
		t.Run("file", func(t *testing.T) { audit(t, w.filer.Content(o.At)) })
	}
}

// TestDecimalBoundsOfPolarsAreNotBelieved: Polars merges bounds of pages as unsigned (polars 29347).
func TestDecimalBoundsOfPolarsAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "d", Type: icego.DecimalTypeOf(38, 0), Required: true})
	flba := func(v int8) []byte {
		b := make([]byte, 16)
		for i := range b {
			b[i] = byte(v >> 7)
		}
		b[15] = byte(v)
		return b
	}
	content := handFile(t, schema, 4, "Polars", handChunk{pages: []handPage{
		{values: append(flba(-5), flba(3)...), rows: 2}, {values: append(flba(1), flba(2)...), rows: 2}}})
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		n := int64(0)
		c.Statistics = &format.Statistics{NullCount: &n, Min: flba(1), Max: flba(3)}
		c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = nil, nil, nil, nil
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, make([]row, 4), nil)
	}
	res, err := rewrite.Merge(t.Context(), w.request)
	require.NoError(t, err)
	for _, o := range res.Outputs {
		t.Run("metrics", func(t *testing.T) { auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics) })
		t.Run("file", func(t *testing.T) { audit(t, w.filer.Content(o.At)) })
	}
}

// TestNullsOfDictionaryArraysAreNotBelieved: parquet-cpp of Arrow before 6 states 0 nulls of dictionary arrays with nulls (ARROW-12513).
func TestNullsOfDictionaryArraysAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "s", Type: icego.PrimitiveTypes.String})
	content := handFile(t, schema, 3, "parquet-cpp-arrow version 5.0.0", handChunk{dictionary: append(plainText("a"), plainText("b")...), entries: 2,
		pages: []handPage{{def: []byte{1, 0, 1}, values: coded(1, 0, 1), enc: format.RLEDictionary, rows: 3}}})
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		n := int64(0)
		c.Statistics = &format.Statistics{NullCount: &n, Min: []byte("a"), Max: []byte("b")}
		c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = nil, nil, nil, nil
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: "a"}, {1: nil}, {1: "b"}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		t.Run("metrics", func(t *testing.T) { auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics) })
		t.Run("file", func(t *testing.T) { audit(t, w.filer.Content(o.At)) })
	}
}

// TestNullsAreCountedInPagesOfVersion2: without statistics parquet-rs before 20 states 0 nulls in headers (arrow-rs 2191), as
// pyarrow 11 does (arrow 34326), and parquet-java from 1.15 to 1.17 -1 (parquet-java 3585).
func TestNullsAreCountedInPagesOfVersion2(t *testing.T) {
	for writer, nulls := range map[string]int32{"parquet-rs version 18.0.0": 0, "parquet-mr version 1.16.0 (build x)": -1} {
		for _, codec := range []string{"uncompressed", "zstd"} {
			for _, coding := range []bool{false, true} {
				for copying, name := range howCopied {
					t.Run(fmt.Sprint(nulls, codec, name, coding), func(t *testing.T) { mergeMiscounted(t, writer, nulls, codec, coding, copying) })
				}
			}
		}
	}
}

// mergeMiscounted merges two files with a page of two values and one null, of which the header states nulls.
func mergeMiscounted(t *testing.T, writer string, nulls int32, codec string, coding bool, copying rewrite.Copying) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
	w := newWorld(t, schema, 2)
	w.request.Copying = copying
	w.request.Table.Properties["write.parquet.compression-codec"] = codec
	for _, n := range []int64{0, 10} {
		page := handPage{def: []byte{1, 0, 1}, values: handLongs(n, n+1), rows: 3, v2: true, nulls: &nulls}
		c := handChunk{pages: []handPage{page}}
		if coding {
			c.dictionary, c.entries = page.values, 2
			c.pages[0].values, c.pages[0].enc = coded(1, 0, 1), format.RLEDictionary
		}
		content := refooted(t, handFile(t, schema, 3, writer, c), func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
			c := &f.RowGroups[0].Columns[0]
			c.Statistics, c.ColumnIndexOffset, c.ColumnIndexLength = nil, nil, nil
		})
		w.add(content, []row{{1: n}, {1: nil}, {1: n + 1}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
		auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics)
	}
}

// TestHeadersOfVersion2AreNotBelievedOverLevels: A header that says all is null hides no value.
func TestHeadersOfVersion2AreNotBelievedOverLevels(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
	all := int32(2)
	x := encode.UnknownIndex()
	x.Nulls, x.Bounds, x.Min, x.Max = 0, encode.BoundsSet, handLongs(7), handLongs(8)
	content := handFile(t, schema, 2, "x version 1.0.0", handChunk{pages: []handPage{{def: []byte{1, 1}, values: handLongs(7, 8), rows: 2, v2: true, nulls: &all, index: &x}}})
	content = refooted(t, content, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		c.Statistics = nil
		c.ColumnIndexOffset, c.ColumnIndexLength = put(format.AppendColumnIndex(nil, &format.ColumnIndex{
			NullPages: []bool{false}, Min: [][]byte{handLongs(7)}, Max: [][]byte{handLongs(8)}, NullCounts: []int64{0}, Order: format.Ascending}))
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: int64(7)}, {1: int64(8)}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}

// TestNullPagesOfListsAreNotBelieved: parquet-rs takes a page with as many nulls as rows for one of nulls.
func TestNullPagesOfListsAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "l", Type: &icego.ListType{ElementID: 2, Element: icego.PrimitiveTypes.Int64}})
	x := encode.UnknownIndex()
	x.Nulls, x.Bounds, x.Min, x.Max = 1, encode.BoundsSet, handLongs(7), handLongs(7)
	content := handFile(t, schema, 1, "parquet-rs version 50.0.0", handChunk{pages: []handPage{{rep: []byte{0, 1}, def: []byte{3, 2}, values: handLongs(7), rows: 1, index: &x}}})
	content = refooted(t, content, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		c.ColumnIndexOffset, c.ColumnIndexLength = put(format.AppendColumnIndex(nil, &format.ColumnIndex{
			NullPages: []bool{true}, Min: [][]byte{{}}, Max: [][]byte{{}}, NullCounts: []int64{1}, Order: format.Ascending}))
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: []any{int64(7), nil}}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}

// TestNullPagesWithoutNullsAreNotBelieved: Of a flat column (parquet-java 3457).
func TestNullPagesWithoutNullsAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
	x := encode.UnknownIndex()
	x.Nulls, x.Bounds, x.Min, x.Max = 0, encode.BoundsSet, handLongs(7), handLongs(8)
	content := handFile(t, schema, 2, "x version 1.0.0", handChunk{pages: []handPage{{def: []byte{1, 1}, values: handLongs(7, 8), rows: 2, index: &x}}})
	content = refooted(t, content, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		c.ColumnIndexOffset, c.ColumnIndexLength = put(format.AppendColumnIndex(nil, &format.ColumnIndex{
			NullPages: []bool{true}, Min: [][]byte{{}}, Max: [][]byte{{}}, NullCounts: []int64{0}, Order: format.Ascending}))
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: int64(7)}, {1: int64(8)}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}

// TestEmptyBoundsOfLongTextAreNotBelieved: ClickHouse before 103334 states "" where a bound is longer than 4096 bytes.
func TestEmptyBoundsOfLongTextAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "s", Type: icego.PrimitiveTypes.String, Required: true})
	long := strings.Repeat("y", 5000)
	longer := strings.Repeat("z", 5000)
	x := encode.UnknownIndex()
	x.Nulls, x.Bounds, x.Min, x.Max = 0, encode.BoundsSet, []byte(long), []byte(longer)
	content := handFile(t, schema, 3, "ClickHouse v25.9.1.1", handChunk{pages: []handPage{
		{values: plainText(long), rows: 1, index: &x}, {values: append(plainText(longer), plainText(long)...), rows: 2, index: &x}}})
	content = refooted(t, content, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		n := int64(0)
		c.Statistics = &format.Statistics{NullCount: &n}
		c.ColumnIndexOffset, c.ColumnIndexLength = put(format.AppendColumnIndex(nil, &format.ColumnIndex{
			NullPages: []bool{false, false}, Min: [][]byte{{}, {}}, Max: [][]byte{{}, {}}, NullCounts: []int64{0, 0}, Order: format.Ascending}))
	})
	for _, gone := range []*deletes.Positions{nil, deletes.Of(0)} {
		t.Run(fmt.Sprint(gone != nil), func(t *testing.T) {
			w := newWorld(t, schema, 2)
			w.request.Copying = rewrite.CopyForced
			for range 2 {
				w.add(content, []row{{1: long}, {1: longer}, {1: long}}, gone)
			}
			for _, o := range w.merge(t).Outputs {
				t.Run("metrics", func(t *testing.T) { auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics) })
				t.Run("file", func(t *testing.T) { audit(t, w.filer.Content(o.At)) })
			}
		})
	}
}

// TestPagesOfNoBytesAreNotCompressed: pages of version 2 of nulls alone, by parquet-mr with Snappy (duckdb 17029).
func TestPagesOfNoBytesAreNotCompressed(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
	content := handFile(t, schema, 3, "parquet-mr version 1.13.1 (build x)", handChunk{pages: []handPage{{def: []byte{0, 0, 0}, rows: 3, v2: true}}})
	content = reheaded(t, content, func(_ int, h *format.PageHeader) { h.Compressed = true })
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		f.RowGroups[0].Columns[0].Codec = format.Snappy
	})
	w := newWorld(t, schema, 2)
	w.request.Copying, w.request.Verify = rewrite.CopyForced, rewrite.VerifyRows
	for range 2 {
		w.add(content, []row{{1: nil}, {1: nil}, {1: nil}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}

// TestHistogramsOfOtherNumbersAreNotBelieved: ClickHouse counts values twice (ClickHouse 120027).
func TestHistogramsOfOtherNumbersAreNotBelieved(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "l", Type: &icego.ListType{ElementID: 2, Element: icego.PrimitiveTypes.String}})
	content := handFile(t, schema, 1, "ClickHouse v26.8.1.1", handChunk{pages: []handPage{{rep: []byte{0, 1}, def: []byte{3, 3}, values: append(plainText("a"), plainText("b")...), rows: 1}}})
	content = refooted(t, content, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		n := int64(4)
		c.Sizes = &format.SizeStatistics{UnencodedBytes: &n, RepHistogram: []int64{2, 2}, DefHistogram: []int64{0, 0, 0, 4}}
		c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = nil, nil, nil, nil
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: []any{"a", "b"}}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}
