package rewrite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
)

// noisyWorld has sources of few values in an order that nothing can be saved of, and
// dictionaries in an order of their own.
func noisyWorld(t require.TestingT, v2 bool) *world {
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "s", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 2, Name: "n", Type: icego.PrimitiveTypes.Int64, Required: true},
	)
	w := newWorld(t, schema, 2)
	w.request.Table.Properties["write.parquet.compression-codec"] = "zstd"
	w.request.Verify = rewrite.VerifyRows
	for i := range 3 {
		rng := lcg{x: uint64(i)}
		rows := make([]row, 20_000)
		for k := range rows {
			rows[k] = row{1: fmt.Sprintf("value %d", rng.intn(250)), 2: int64(rng.intn(1000))}
			if i == 1 && rng.intn(50) == 0 {
				rows[k][1] = nil
			}
		}
		w.add(writeRows(t, schema, rows, style{
			Codec: compress.Codecs.Zstd, V2: v2, Dictionary: true, PageBytes: 8 << 10, GroupRows: 12_000, Index: true,
		}, false), rows, nil)
	}
	return w
}

// storedPages counts the pages of codes that are not compressed, and all of codes.
func storedPages(t *testing.T, content []byte) (stored, coded int) {
	f, err := column.Open(t.Context(), bytes.NewReader(content), "the output", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	for g := range f.Footer().RowGroups {
		for leaf := range f.Footer().Schema.Leaves {
			pages, err := f.Pages(g, leaf)
			require.NoError(t, err)
			for {
				p, err := pages.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if !p.Dictionary() && column.Coded(p.Header.Encoding) {
					coded++
					if len(p.Body) >= int(p.Header.UncompressedSize) {
						stored++
					}
				}
			}
			pages.Close()
		}
	}
	return stored, coded
}

// TestMergeStoresCodesThatCompressionDoesNotShorten merges noise, with levels and
// without, and reads it through another reader.
func TestMergeStoresCodesThatCompressionDoesNotShorten(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		w := noisyWorld(t, v2)
		res := w.merge(t)
		require.Positive(t, res.Proof.Remapped)
		stored, coded := storedPages(t, w.filer.Content(res.Outputs[0].At))
		require.Greater(t, coded, 10)
		require.Greater(t, stored, coded/2)
	}
}
