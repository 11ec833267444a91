package rewrite_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/rewrite"
)

// heap is the memory in use, and the greatest seen.
type heap struct {
	base, most uint64
}

func newHeap() *heap {
	h := &heap{}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.base = m.HeapAlloc
	return h
}

func (h *heap) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
}

// TestF134MergeKeepsToItsMemory merges wide tables and long ones, and looks at the
// heap at every read and write.
func TestF134MergeKeepsToItsMemory(t *testing.T) {
	if measure.Plain(t) {
		return
	}
	wide := make([]icego.NestedField, 2000)
	for i := range wide {
		wide[i] = icego.NestedField{ID: i + 1, Name: fmt.Sprintf("c%d", i), Type: []icego.Type{icego.PrimitiveTypes.Int32, icego.PrimitiveTypes.String}[i%2]}
	}
	for _, c := range []struct {
		name    string
		schema  *icego.Schema
		files   int
		rows    int
		copying rewrite.Copying
	}{
		{name: "2000 columns copied", schema: icego.NewSchema(0, wide...), files: 6, rows: 300, copying: rewrite.CopyForced},
		{name: "2000 columns encoded", schema: icego.NewSchema(0, wide...), files: 6, rows: 300, copying: rewrite.CopyNever},
		{name: "events copied", files: 24, rows: 60_000, copying: rewrite.CopyForced},
		{name: "events encoded", files: 12, rows: 60_000, copying: rewrite.CopyNever},
	} {
		t.Run(c.name, func(t *testing.T) {
			var contents [][]byte
			schema := c.schema
			if schema == nil {
				schema = eventSchema
				contents = eventFiles(t, c.files, c.rows, compress.Codecs.Snappy)
			} else {
				d := drawer{rng: &lcg{}, nulls: 10}
				rows := make([]row, c.rows)
				for i := range rows {
					rows[i] = d.row(schema.Fields())
				}
				for range c.files {
					contents = append(contents, writeRows(t, schema, rows, style{Codec: compress.Codecs.Snappy, Dictionary: true, PageBytes: 1 << 20, GroupRows: 1 << 20, Index: true}, false))
				}
			}
			w := newWorld(t, schema, 2)
			for _, b := range contents {
				w.add(b, make([]row, c.rows), nil)
			}
			const limit = 64 << 20
			w.request.MemoryBytes, w.request.Copying = limit, c.copying
			h := newHeap()
			var looks atomic.Int64
			w.request.Create = func(context.Context, int) (rewrite.Sink, error) {
				return &watched{look: func() {
					if looks.Add(1)%32 == 0 {
						h.look()
					}
				}}, nil
			}
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(h.base) + limit))
			res, err := rewrite.Merge(context.Background(), w.request)
			require.NoError(t, err)
			require.Equal(t, int64(c.files*c.rows), res.Proof.RowsWritten)
			t.Logf("%d MiB above idle", (h.most-h.base)>>20)
			require.Less(t, h.most-h.base, uint64(limit+limit/4))
		})
	}
}

// watched is a sink that looks at something at every write.
type watched struct {
	discard
	look func()
}

func (w *watched) Write(b []byte) (int, error) {
	w.look()
	return w.discard.Write(b)
}

// TestF047GreatCellsAreMergedOrRefused merges cells that need much memory.
func TestF047GreatCellsAreMergedOrRefused(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "s", Type: icego.PrimitiveTypes.String})
	rows := make([]row, 3)
	for i := range rows {
		rows[i] = row{1: strings.Repeat("x", 10<<20) + fmt.Sprint(i)}
	}
	content := writeRows(t, schema, rows, style{PageBytes: 1 << 20, GroupRows: 1 << 20}, false)
	for _, c := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyForced} {
		w := newWorld(t, schema, 2)
		w.add(content, rows, nil)
		w.add(content, rows, nil)
		w.request.Copying = c
		w.request.MemoryBytes = 256 << 20
		w.merge(t)
		w.request.MemoryBytes = 16 << 20
		_, err := rewrite.Merge(context.Background(), w.request)
		require.Equal(t, fault.TooLarge, fault.Of(err), "%v", err)
		require.Regexp(t, `1048576[0-9]|104857[0-9]+|[0-9]+ bytes`, err.Error())
	}
}
