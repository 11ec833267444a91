package rewrite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	pqgo "github.com/parquet-go/parquet-go"
	pqformat "github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// TestInteropMergedFilesInParquetGo reads the outputs of random merges with
// parquet-go: rows, pages from random rows on by the offset index, bounds and
// counts of the column index, and bloom filters. What headers of pages say must be
// what encoding_stats say.
func TestInteropMergedFilesInParquetGo(t *testing.T) {
	units := rapid.Custom(drawUnit)
	seen := map[string]int{}
	for seed := range interopUnits() {
		w := units.Example(seed)
		for how, name := range howCopied {
			t.Run(fmt.Sprintf("seed %d, copying %s", seed, name), func(t *testing.T) {
				w.request.Copying = how
				for _, o := range w.merge(t).Outputs {
					content := w.filer.Content(o.At)
					checkEncodings(t, content)
					f, err := pqgo.OpenFile(bytes.NewReader(content), int64(len(content)))
					require.NoError(t, err)
					require.Equal(t, o.Records, f.NumRows())
					rng := &lcg{x: uint64(seed)}
					for g, rg := range f.RowGroups() {
						for c, chunk := range rg.ColumnChunks() {
							checkChunk(t, rng, &f.Metadata().RowGroups[g].Columns[c].MetaData, chunk.(*pqgo.FileColumnChunk), rg.NumRows(), seen)
						}
					}
				}
			})
		}
	}
	for _, what := range []string{"sought", "bounded", "null page", "bloom", "not in bloom"} {
		require.Positive(t, seen[what], "no page was %s: %v", what, seen)
	}
}

// values reads up to so many values of pages.
func pageValues(t *testing.T, p pqgo.Page) (out []pqgo.Value) {
	r := p.Values()
	buffer := make([]pqgo.Value, 128)
	for {
		n, err := r.ReadValues(buffer)
		for _, v := range buffer[:n] {
			out = append(out, v.Clone())
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
	}
}

// misread reports that parquet-go is known not to read the chunk as others do: it
// takes long runs in booleans that are RLE for something else.
func misread(m *pqformat.ColumnMetaData) bool {
	if m.Type != pqformat.Boolean {
		return false
	}
	for _, s := range m.EncodingStats {
		if s.Encoding == pqformat.RLE {
			return true
		}
	}
	return false
}

func checkChunk(t *testing.T, rng *lcg, m *pqformat.ColumnMetaData, c *pqgo.FileColumnChunk, rows int64, seen map[string]int) {
	if misread(m) {
		return
	}
	var all []pqgo.Value
	var starts []int // of rows
	pages := c.Pages()
	index, indexErr := c.ColumnIndex()
	if indexErr != nil {
		require.ErrorIs(t, indexErr, pqgo.ErrMissingColumnIndex)
	} else if index.NumPages() == 0 { // other columns have one
		indexErr = pqgo.ErrMissingColumnIndex
	}
	for n := 0; ; n++ {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		values := pageValues(t, p)
		if indexErr == nil {
			checkPage(t, c, index, n, values, seen)
		}
		for i, v := range values {
			if v.RepetitionLevel() == 0 {
				starts = append(starts, len(all)+i)
			}
		}
		all = append(all, values...)
		pqgo.Release(p)
	}
	require.NoError(t, pages.Close())
	require.Len(t, starts, int(rows), "%v", m.PathInSchema)
	checkBloom(t, c, all, seen)
	if _, err := c.OffsetIndex(); err != nil {
		require.ErrorIs(t, err, pqgo.ErrMissingOffsetIndex)
		return
	}
	seek := c.Pages()
	defer func() { require.NoError(t, seek.Close()) }()
	for range 8 {
		at := rng.intn(len(starts))
		require.NoError(t, seek.SeekToRow(int64(at)))
		p, err := seek.ReadPage()
		require.NoError(t, err)
		got := pageValues(t, p)
		require.NotEmpty(t, got)
		want := all[starts[at]:]
		require.LessOrEqual(t, len(got), len(want))
		for i, v := range got {
			require.True(t, alike(want[i], v), "%v from row %d: value %d is %v, not %v", m.PathInSchema, at, i, v, want[i])
		}
		pqgo.Release(p)
		seen["sought"]++
	}
}

// alike compares values and levels; NaN is what it is.
func alike(a, b pqgo.Value) bool {
	return a.DefinitionLevel() == b.DefinitionLevel() && a.RepetitionLevel() == b.RepetitionLevel() &&
		a.IsNull() == b.IsNull() && bytes.Equal(a.AppendBytes(nil), b.AppendBytes(nil))
}

// checkPage compares what the column index says of a page with its values.
func checkPage(t *testing.T, c pqgo.ColumnChunk, x pqgo.ColumnIndex, n int, values []pqgo.Value, seen map[string]int) {
	require.Less(t, n, x.NumPages())
	nulls := 0
	for _, v := range values {
		if v.IsNull() {
			nulls++
			continue
		}
		require.False(t, x.NullPage(n), "page %d has values", n)
		if f := v; f.Kind() == pqgo.Float && f.Float() != f.Float() || f.Kind() == pqgo.Double && f.Double() != f.Double() {
			continue // bounds leave NaN out
		}
		low, high := x.MinValue(n), x.MaxValue(n)
		require.LessOrEqual(t, c.Type().Compare(low, v), 0, "page %d: %v is less than %v", n, v, low)
		require.GreaterOrEqual(t, c.Type().Compare(high, v), 0, "page %d: %v is greater than %v", n, v, high)
		seen["bounded"]++
	}
	require.EqualValues(t, nulls, x.NullCount(n), "nulls of page %d", n)
	if x.NullPage(n) {
		seen["null page"]++
	}
}

// checkBloom requires that a filter has every value, and not what is none.
func checkBloom(t *testing.T, c pqgo.ColumnChunk, values []pqgo.Value, seen map[string]int) {
	b := c.BloomFilter()
	if b == nil {
		return
	}
	for _, v := range values {
		if v.IsNull() {
			continue
		}
		ok, err := b.Check(v)
		require.NoError(t, err)
		require.True(t, ok, "%v", v)
		seen["bloom"]++
	}
	if c.Type().Kind() != pqgo.ByteArray {
		return
	}
	for i := range 20 {
		ok, err := b.Check(pqgo.ByteArrayValue(fmt.Appendf(nil, "no value is %d", i)))
		require.NoError(t, err)
		if !ok {
			seen["not in bloom"]++
		}
	}
}

// input is a file in memory.
type input struct{ *bytes.Reader }

// checkEncodings counts the pages of each encoding.
func checkEncodings(t *testing.T, content []byte) {
	f, err := column.Open(t.Context(), input{bytes.NewReader(content)}, "out.parquet", column.Options{})
	require.NoError(t, err)
	type kind struct {
		page format.PageType
		enc  format.Encoding
	}
	for g := range f.Footer().RowGroups {
		for c := range f.Footer().RowGroups[g].Columns {
			chunk := &f.Footer().RowGroups[g].Columns[c]
			counted, stated := map[kind]int32{}, map[kind]int32{}
			pages, err := f.Pages(g, c)
			require.NoError(t, err)
			for {
				p, err := pages.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				counted[kind{p.Header.Type, p.Header.Encoding}]++
				require.Contains(t, chunk.Encodings, p.Header.Encoding)
			}
			pages.Close()
			for _, s := range chunk.EncodingStats {
				stated[kind{s.Page, s.Encoding}] += s.Count
			}
			require.Equal(t, counted, stated)
		}
	}
}
