package rewrite_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
)

// gainFields are columns a dictionary gains in, from few on, and others.
var gainFields = []icego.NestedField{
	{ID: 1, Name: "counter", Type: icego.PrimitiveTypes.Int64, Required: true},
	{ID: 2, Name: "unique", Type: icego.PrimitiveTypes.String},
	{ID: 3, Name: "noise", Type: icego.PrimitiveTypes.Float64, Required: true},
	{ID: 4, Name: "clock", Type: icego.PrimitiveTypes.Timestamp},
	{ID: 5, Name: "few", Type: icego.PrimitiveTypes.Int64},
	{ID: 6, Name: "session", Type: icego.PrimitiveTypes.String, Required: true},
	{ID: 7, Name: "tags", Type: &icego.ListType{ElementID: 8, Element: icego.PrimitiveTypes.String}},
}

func gainRows(rng *lcg, file, n int) []row {
	out := make([]row, n)
	for i := range out {
		at := int64(file*n + i)
		r := row{
			1: at, 2: fmt.Sprintf("%016x%016x", rng.next(), rng.next()), 3: rng.next()>>12 | 0x3ff<<52, 4: 1_700_000_000_000_000 + at*1000 + int64(rng.intn(500)),
			5: int64(rng.intn(900)) * 1_000_003, 6: fmt.Sprintf("session-%012d", rng.intn(1500)*997),
		}
		if i%50 == 0 {
			r[5] = nil
		}
		tags := []any{}
		for range rng.intn(3) {
			tags = append(tags, fmt.Sprintf("a tag of %d", rng.intn(300)))
		}
		r[7] = tags
		out[i] = r
	}
	return out
}

// codedColumns are the columns of the outputs with a dictionary.
func codedColumns(t *testing.T, w *world, res rewrite.Result) map[string]bool {
	out := map[string]bool{}
	for _, o := range res.Outputs {
		r, err := file.NewParquetReader(bytes.NewReader(w.filer.Content(o.At)))
		require.NoError(t, err)
		for g := range r.NumRowGroups() {
			for c := range r.MetaData().Schema.NumColumns() {
				chunk, err := r.MetaData().RowGroup(g).ColumnChunk(c)
				require.NoError(t, err)
				if chunk.HasDictionaryPage() {
					out[chunk.PathInSchema().String()] = true
				}
			}
		}
		require.NoError(t, r.Close())
	}
	return out
}

// TestColumnsThatGainGetADictionary merges files without dictionaries. Of what is
// copied, columns of few values must not stay as large as they were, and no others
// may be decoded.
func TestColumnsThatGainGetADictionary(t *testing.T) {
	if testing.Short() {
		t.Skip("writes large files and compares sizes")
	}
	for _, c := range []struct {
		codec compress.Compression
		v2    bool
		// Of long pages no more than the begin is read.
		files, rows int
	}{
		{compress.Codecs.Zstd, false, 12, 3000},
		{compress.Codecs.Snappy, true, 12, 3000},
		{compress.Codecs.Gzip, false, 12, 3000},
		{compress.Codecs.Uncompressed, true, 12, 3000},
		{compress.Codecs.Zstd, true, 4, 12_000},
		{compress.Codecs.Uncompressed, false, 4, 12_000},
	} {
		t.Run(fmt.Sprintf("%s v2=%v %d rows", c.codec, c.v2, c.rows), func(t *testing.T) {
			in := make([][]row, c.files)
			rng := &lcg{x: 7}
			for n := range in {
				in[n] = gainRows(rng, n, c.rows)
			}
			schema := icego.NewSchema(0, gainFields...)
			var contents [][]byte
			for _, in := range in {
				contents = append(contents, writeRows(t, schema, in, style{Codec: c.codec, V2: c.v2, PageBytes: 1 << 20, GroupRows: 1 << 20, Index: true}, false))
			}
			bytes := map[rewrite.Copying]int64{}
			for _, how := range []rewrite.Copying{rewrite.CopyWhereAllowed, rewrite.CopyNever, rewrite.CopyForced} {
				w := newWorld(t, schema, 2)
				w.request.Copying = how
				for i, content := range contents {
					w.add(content, in[i], nil)
				}
				res := w.merge(t)
				for _, o := range res.Outputs {
					bytes[how] += o.Bytes
				}
				coded := codedColumns(t, w, res)
				switch how {
				case rewrite.CopyWhereAllowed:
					require.Equal(t, map[string]bool{"few": true, "session": true, "tags.list.element": true}, coded)
					require.Positive(t, res.Proof.Verbatim)
				case rewrite.CopyForced:
					require.Empty(t, coded)
					require.Zero(t, res.Proof.Encoded)
				}
			}
			// Encoded anew some columns are compressed better than their writer did.
			require.LessOrEqual(t, float64(bytes[rewrite.CopyWhereAllowed]), 1.07*float64(bytes[rewrite.CopyNever]))
			require.Greater(t, float64(bytes[rewrite.CopyForced]), 1.1*float64(bytes[rewrite.CopyNever]), "nothing was gained")
		})
	}
}
