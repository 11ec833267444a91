package rewrite_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
)

// TestMergeRollsAtTheTarget merges and splits files and looks at the sizes of
// outputs and row groups.
func TestMergeRollsAtTheTarget(t *testing.T) {
	const rows = 20_000
	files := eventFiles(t, 8, rows, compress.Codecs.Snappy)
	total := 0
	for _, f := range files {
		total += len(f)
	}
	for _, c := range []struct {
		name    string
		copying rewrite.Copying
		change  map[string]string
		target  int
	}{
		{name: "copied", copying: rewrite.CopyForced, target: total / 3},
		{name: "split", copying: rewrite.CopyForced, target: total / 20},
		{name: "encoded", copying: rewrite.CopyNever, target: total / 3},
		{name: "encoded smaller", copying: rewrite.CopyNever, target: total / 5, change: map[string]string{"write.parquet.compression-codec": "zstd"}},
		{name: "encoded larger", copying: rewrite.CopyNever, target: total / 3, change: map[string]string{"write.parquet.compression-codec": "uncompressed"}},
		{name: "many row groups", copying: rewrite.CopyForced, target: total / 2, change: map[string]string{"write.parquet.row-group-size-bytes": "400000"}},
		{name: "all in one", copying: rewrite.CopyForced, target: total},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, eventSchema, 2)
			for _, f := range files {
				w.add(f, make([]row, rows), nil)
			}
			w.request.TargetBytes, w.request.Copying = int64(c.target), c.copying
			for k, v := range c.change {
				w.request.Table.Properties[k] = v
			}
			res, err := rewrite.Merge(context.Background(), w.request)
			require.NoError(t, err)
			n, written := int64(0), int64(0)
			for _, o := range res.Outputs {
				written += o.Bytes
			}
			require.Less(t, float64(len(res.Outputs)), float64(written)/float64(c.target)+1, "more than it takes")
			for i, o := range res.Outputs {
				n += o.Records
				require.LessOrEqual(t, float64(o.Bytes), 1.15*float64(c.target))
				if len(res.Outputs) > 1 {
					require.GreaterOrEqual(t, float64(o.Bytes), 0.5*float64(c.target), "output %d of %d", i, len(res.Outputs))
				}
				if i < len(res.Outputs)-2 { // the last two share what is left
					require.InDelta(t, c.target, o.Bytes, 0.15*float64(c.target), "output %d of %d", i, len(res.Outputs))
				}
				r, err := file.NewParquetReader(bytes.NewReader(w.filer.Content(o.At)))
				require.NoError(t, err)
				require.Len(t, o.SplitOffsets, r.NumRowGroups())
				if c.change["write.parquet.row-group-size-bytes"] == "" {
					require.LessOrEqual(t, r.NumRowGroups(), 3)
				} else {
					require.Greater(t, r.NumRowGroups(), 5)
				}
				require.NoError(t, r.Close())
			}
			require.Equal(t, int64(rows*len(files)), n)
		})
	}
}
