package deletes_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
	"github.com/seaice/seaice/rewrite/resolve"
)

const (
	memoryBound = 96 << 20

	memoryKeys  = 10_000_000 // in one delete, of one long
	memoryWide  = 3_000_000  // in another, of a long and text
	memoryFiles = 20
	memoryRows  = 50_000 // in each data file
)

// TestF134TenMillionKeysInLittleMemory applies equality deletes with 10,000,000 and
// 3,000,000 keys to small files, in a process of its own, whose peak resident
// memory is what is looked at.
func TestF134TenMillionKeysInLittleMemory(t *testing.T) {
	if testing.Short() || measure.Race {
		t.Skip("writes 300 MB")
	}
	measure.Child(t, memoryBound, func(dir string) {
		writeKeys(t, filepath.Join(dir, "keys"), memoryKeys, true, false)
		writeKeys(t, filepath.Join(dir, "wide"), memoryWide, true, true)
		for i := range memoryFiles {
			writeKeysFrom(t, filepath.Join(dir, fmt.Sprint("data", i)), int64(i*memoryRows), memoryRows, false, true)
		}
	}, func(dir string, peak func(func())) { applyMany(t, dir, peak) })
}

func memorySchema() []icego.NestedField {
	return []icego.NestedField{optional(1, "k", icego.PrimitiveTypes.Int64), optional(2, "s", icego.PrimitiveTypes.String)}
}

// scattered spreads numbers over all of 64 bits; no two are alike.
func scattered(n int64) int64 { return int64(uint64(n) * 0x9e3779b97f4a7c15) }

func writeKeys(t *testing.T, path string, n int64, deleted, wide bool) {
	t.Helper()
	writeKeysFrom(t, path, 0, n, deleted, wide)
}

// writeKeysFrom writes the keys n from a number on: of deletes every third number.
func writeKeysFrom(t *testing.T, path string, from, n int64, deleted, wide bool) {
	t.Helper()
	fields := memorySchema()
	if !wide {
		fields = fields[:1]
	}
	target, err := resolve.NewTarget(icego.NewSchema(0, fields...), resolve.Options{})
	require.NoError(t, err)
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	f, err := output.NewFile(w, target.Schema, output.Options{CreatedBy: "seaice version 0.0.1 (build x)"})
	require.NoError(t, err)
	const groupRows = 1_000_000
	for done := int64(0); done < n; {
		rows := min(groupRows, n-done)
		g, err := f.BeginGroup()
		require.NoError(t, err)
		for leaf := range fields {
			c, err := g.Column(leaf, format.Uncompressed)
			require.NoError(t, err)
			e, err := encode.NewEncoder(target.Schema.Leaves[leaf], encode.Options{DictionaryBytes: -1}, c)
			require.NoError(t, err)
			for at := int64(0); at < rows; {
				m := min(10_000, rows-at)
				b := column.Batch{Levels: int(m), Rows: int(m), Def: []byte(strings.Repeat("\x01", int(m)))}
				b.Values.Reset(target.Schema.Leaves[leaf].Type, target.Schema.Leaves[leaf].Width())
				for i := range m {
					k := from + done + at + i
					if deleted {
						k *= 3
					}
					if leaf == 0 {
						b.Values.Data = binary.LittleEndian.AppendUint64(b.Values.Data, uint64(scattered(k)))
					} else {
						b.Values.Append(strconv.AppendInt([]byte("key-"), k, 10))
					}
				}
				require.NoError(t, e.Write(&b))
				at += m
			}
			require.NoError(t, e.Close())
			require.NoError(t, c.Close())
		}
		require.NoError(t, g.Close(rows))
		done += rows
	}
	_, err = f.Close()
	require.NoError(t, err)
	require.NoError(t, w.Flush())
}

func applyMany(t *testing.T, dir string, peak func(func())) {
	t.Helper()
	q := deletes.Request{Reader: &measure.Disk{Dir: dir}, FormatVersion: 2, History: history(t, memorySchema())}
	for i := range memoryFiles {
		name := fmt.Sprint("data", i)
		q.Data = append(q.Data, deletes.DataFile{Location: name, At: filer.Path("/" + name), Records: memoryRows})
	}
	even := make([]int, 0, memoryFiles/2)
	for i := 0; i < memoryFiles; i += 2 {
		even = append(even, i)
	}
	all := append([]int(nil), even...)
	for i := 1; i < memoryFiles; i += 2 {
		all = append(all, i)
	}
	q.Deletes = []deletes.DeleteFile{
		{Kind: deletes.EqualityDelete, Location: "keys", At: "/keys", Format: "PARQUET", Records: memoryKeys, EqualityIDs: []iceberg.FieldID{1}, Applies: even},
		{Kind: deletes.EqualityDelete, Location: "wide", At: "/wide", Format: "PARQUET", Records: memoryWide, EqualityIDs: []iceberg.FieldID{1, 2}, Applies: all},
	}
	q.Columns.Budget = column.NewBudget(72 << 20)
	// A worker has its runtime collect as soon as its budget is used up.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetMemoryLimit(int64(m.Sys-m.HeapReleased) + 80<<20)
	var res *deletes.Result
	var err error
	peak(func() { res, err = deletes.Load(t.Context(), q) })
	require.NoError(t, err)
	for n, p := range res.Positions {
		want := int64(0)
		for i := range int64(memoryRows) {
			if k := int64(n*memoryRows) + i; k%3 == 0 {
				want++
				require.True(t, p.Contains(i))
			}
		}
		require.Equal(t, want, p.Len())
	}
	require.Greater(t, res.Passes, 2)
	t.Logf("%d passes", res.Passes)
}
