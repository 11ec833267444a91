package rewrite_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
)

// TestColumnsThatWaitLeaveMemoryToOthers merges many sources whose columns are mostly
// dictionaries, which are open together while they are merged. Those of all columns
// that are made at a time would take all there is for reading, and the merge would be
// begun anew with one column at a time; or fail, with an output made.
func TestColumnsThatWaitLeaveMemoryToOthers(t *testing.T) {
	const processors, rows, texts, length, files = 4, 20_000, 5000, 100, 24
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	fields := make([]icego.NestedField, 2*processors)
	for i := range fields {
		fields[i] = icego.NestedField{ID: i + 1, Name: fmt.Sprintf("c%d", i), Type: icego.PrimitiveTypes.String, Required: true}
	}
	schema := icego.NewSchema(0, fields...)
	rng := &lcg{}
	pool := make([]string, texts)
	for i := range pool {
		b := make([]byte, length)
		for k := range b {
			b[k] = byte(' ' + rng.intn(90))
		}
		pool[i] = string(b)
	}
	data := make([]row, rows)
	for i := range data {
		data[i] = row{}
		for _, f := range fields {
			data[i][f.ID] = pool[rng.intn(texts)]
		}
	}
	content := writeRows(t, schema, data, style{Codec: compress.Codecs.Zstd, Dictionary: true, PageBytes: 1 << 20, GroupRows: 1 << 20, Index: true}, false)
	w := newWorld(t, schema, 2)
	for range files {
		w.add(content, data, nil)
	}
	w.request.MemoryBytes = 16 << 20 * processors
	w.request.Create = func(context.Context, int) (rewrite.Sink, error) { return &discard{}, nil }
	_, err := rewrite.Merge(t.Context(), w.request)
	require.NoError(t, err)
	for at, n := range w.filer.ReadCounts() {
		require.Equal(t, 1, n.Opens, "%s is opened again", at)
	}
}
