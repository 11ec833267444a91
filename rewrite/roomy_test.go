package rewrite_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
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

// TestLateOutputsAreMergedColumnByColumn merges sources that are kept in memory with one
// that needs what they take to be decoded, in an output of its own after one that is
// made: as the first one, it is made when fewer things are in memory at a time.
func TestLateOutputsAreMergedColumnByColumn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	const memory, small, great = 24 << 20, 2_900_000, 3_400_000
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "s", Type: icego.PrimitiveTypes.String, Required: true})
	rng := &lcg{}
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.intn(128))
		}
		return string(b)
	}
	many := make([]row, small/100)
	for i := range many {
		many[i] = row{1: text(96)}
	}
	for _, first := range []bool{true, false} {
		w := newWorld(t, schema, 2)
		w.request.MemoryBytes, w.request.Copying, w.request.TargetBytes = memory, rewrite.CopyNever, 2*small+200_000
		add := func(rows ...row) {
			w.add(writeRows(t, schema, rows, style{Codec: compress.Codecs.Snappy, PageBytes: 1 << 20, GroupRows: 1 << 20}, false), rows, nil)
		}
		if first {
			add(row{1: text(great)})
		}
		add(many...)
		add(many...)
		if !first {
			add(row{1: text(great)})
		}
		res := w.merge(t)
		require.Len(t, res.Outputs, 2)
		again := 0
		for _, n := range w.filer.ReadCounts() {
			again = max(again, n.Opens)
		}
		require.Equal(t, 2, again, "it was not begun anew, which this is about")
	}
}

// TestManyProcessorsDoNotTakeAllMemory encodes columns, each of which takes some
// megabytes, with more processors than there is memory for.
func TestManyProcessorsDoNotTakeAllMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const columns, rows = 12, 10_000
	fields := make([]icego.NestedField, columns)
	for i := range fields {
		fields[i] = icego.NestedField{ID: i + 1, Name: fmt.Sprintf("c%d", i), Type: icego.PrimitiveTypes.String, Required: true}
	}
	schema := icego.NewSchema(0, fields...)
	rng := &lcg{}
	data := make([]row, rows)
	for i := range data {
		data[i] = row{}
		for _, f := range fields {
			data[i][f.ID] = strings.Repeat(fmt.Sprintf("%016x", rng.next()), 10)
		}
	}
	content := writeRows(t, schema, data, style{Codec: compress.Codecs.Uncompressed, PageBytes: 1 << 20, GroupRows: 1 << 20}, false)
	w := newWorld(t, schema, 2)
	w.add(content, data, nil)
	w.add(content, data, nil)
	w.request.MemoryBytes, w.request.Copying = 32<<20, rewrite.CopyNever
	w.request.Create = func(context.Context, int) (rewrite.Sink, error) { return &discard{}, nil }
	_, err := rewrite.Merge(t.Context(), w.request)
	require.NoError(t, err)
	for at, n := range w.filer.ReadCounts() {
		require.Equal(t, 1, n.Opens, "%s is opened again", at)
	}
}
