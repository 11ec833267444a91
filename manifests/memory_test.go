package manifests_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/manifests"
)

const (
	memoryManifests = 2000
	memoryEntries   = 500 // in each
	memoryBound     = 128 << 20
)

// TestMillionEntriesInLittleMemory streams 1,000,000 live entries of 2,000
// manifests through a reader and a Splitter in a process of its own, whose
// peak resident memory is what is looked at.
func TestMillionEntriesInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 2,000 files")
	}
	_, parts := testSpec(t, 1, testSchema(), partField{"day", 8, icego.DayTransform{}})
	measure.Child(t, memoryBound, func(dir string) {
		for n := range memoryManifests {
			writeBig(t, filepath.Join(dir, fmt.Sprintf("m%d.avro", n)), parts, n)
		}
	}, func(dir string, peak func(func())) {
		peak(func() { streamAll(t, dir, parts) })
	})
}

// writeBig writes a manifest with statistics of eight columns.
func writeBig(t *testing.T, path string, parts *manifests.Partitioning, n int) {
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	w, err := manifests.NewWriter(f, manifests.WriterOptions{Path: path, Version: 3, Partitioning: parts, SnapshotID: 5, Level: 1})
	require.NoError(t, err)
	tuple, err := parts.Type.TupleAt(func(int) any { return icego.Date(n) })
	require.NoError(t, err)
	e := &manifests.Entry{
		Status: manifests.Existing, SnapshotID: manifests.Some(iceberg.SnapshotID(4)), DataSeq: manifests.Some(iceberg.SeqNum(1)), FileSeq: manifests.Some(iceberg.SeqNum(1)),
		File: manifests.File{Format: manifests.Parquet, SpecID: 1, Partition: tuple, Records: 1000, SplitOffsets: []int64{4}},
	}
	for c := range 8 {
		id := iceberg.FieldID(c + 1)
		e.ColumnSizes = append(e.ColumnSizes, manifests.Count{Column: id, N: 1000})
		e.ValueCounts = append(e.ValueCounts, manifests.Count{Column: id, N: 1000})
		e.NullCounts = append(e.NullCounts, manifests.Count{Column: id})
		e.Lower = append(e.Lower, manifests.Bound{Column: id, Value: []byte("lower")})
		e.Upper = append(e.Upper, manifests.Bound{Column: id, Value: []byte("upper")})
	}
	for i := range memoryEntries {
		e.Path = fmt.Sprintf("s3://bench/warehouse/t/data/day=%d/00000-%d-7e6c2a9e-1d5b-4f0e-9d5a-%012d.parquet", n, i, n*7919+i)
		e.Bytes = int64(n + i)
		require.NoError(t, w.Carry(e))
	}
	_, err = w.Close()
	require.NoError(t, err)
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

func streamAll(t *testing.T, dir string, parts *manifests.Partitioning) {
	t.Helper()
	sp, err := manifests.NewSplitter(manifests.SplitterOptions{
		Writer: manifests.WriterOptions{Version: 3, Partitioning: parts, SnapshotID: 6}, TargetBytes: 8 << 20,
		Create: func(n int) (io.WriteCloser, string, error) { return discard{io.Discard}, fmt.Sprintf("out%d", n), nil },
	})
	require.NoError(t, err)
	live := manifests.NewLiveness(manifests.Rules{})
	for n := range memoryManifests {
		func() {
			path := filepath.Join(dir, fmt.Sprintf("m%d.avro", n))
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			m := &manifests.ManifestFile{Path: path, SpecID: 1, Seq: manifests.Some(iceberg.SeqNum(2)), SnapshotID: manifests.Some(iceberg.SnapshotID(5))}
			r, err := manifests.NewReader(t.Context(), f, m, manifests.ReadOptions{Partition: parts.Type})
			require.NoError(t, err)
			res, err := manifests.Filter(r, sp, func(e *manifests.Entry) (manifests.Verdict, error) {
				live.See(e)
				return manifests.Keep, nil
			})
			require.NoError(t, err)
			require.EqualValues(t, memoryEntries, res.Kept)
		}()
	}
	files, err := sp.Close()
	require.NoError(t, err)
	total := int64(0)
	for _, m := range files {
		total += m.ExistingFiles.Value
	}
	require.EqualValues(t, memoryManifests*memoryEntries, total)
}
