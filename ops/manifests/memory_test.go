package rewritemanifests_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/worker"
)

const (
	memoryManifests = 2000
	memoryEntries   = 500 // of a manifest
	memoryBound     = 128 << 20
)

// TestMillionEntriesInLittleMemory sorts 1,000,000 entries of 2,000 manifests by
// partition in a process of its own, whose peak resident memory is what is
// looked at. Manifests are on this machine's disk.
func TestMillionEntriesInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 2,000 manifests")
	}
	measure.Child(t, memoryBound, func(dir string) { writeMillion(t, dir) }, func(dir string, peak func(func())) {
		rewriteMillion(t, dir, peak)
	})
}

func million(t *testing.T, fl *filertest.Filer) *model.Table {
	t.Helper()
	schema, err := model.ParseSchema("id long!, part int")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{ID: id, Schema: schema, Spec: "part", Seed: 1, Clock: fl.Virtual()})
	require.NoError(t, err)
	return tb
}

func writeMillion(t *testing.T, dir string) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	tb := million(t, fl)
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	parts, err := manifests.PartitioningOf(v.Metadata, 0)
	require.NoError(t, err)
	var all []*manifests.ManifestFile
	for i := range memoryManifests {
		name := fmt.Sprintf("m-%04d.avro", i)
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		w, err := manifests.NewWriter(f, manifests.WriterOptions{
			Path: "s3://" + tb.Root.Join("metadata", name).Rel(filer.BucketsRoot), Version: 2, Partitioning: parts, SnapshotID: 1, Level: 1,
		})
		require.NoError(t, err)
		for j := range memoryEntries {
			n := i*memoryEntries + j
			tuple, err := parts.Type.TupleAt(func(int) any { return int32(n * 7919 % 1000) })
			require.NoError(t, err)
			bound := []byte{byte(n), byte(n >> 8), byte(n >> 16), 0, 0, 0, 0, 0}
			require.NoError(t, w.Put(&manifests.Entry{
				Status: manifests.Existing, SnapshotID: manifests.Some(iceberg.SnapshotID(1)),
				DataSeq: manifests.Some(iceberg.SeqNum(1)), FileSeq: manifests.Some(iceberg.SeqNum(1)),
				File: manifests.File{
					Path:   fmt.Sprintf("s3://%s/data/part=%d/00000-%d-7e6c2a9e-1d5b-4f0e-9d5a-%012d.parquet", tb.Root.Rel(filer.BucketsRoot), n*7919%1000, n, n),
					Format: manifests.Parquet, Records: 1000, Bytes: 1 << 20, Partition: tuple,
					ValueCounts: manifests.Counts{{Column: 1, N: 1000}, {Column: 2, N: 1000}}, NullCounts: manifests.Counts{{Column: 1}, {Column: 2}},
					Lower: manifests.Bounds{{Column: 1, Value: bound}}, Upper: manifests.Bounds{{Column: 1, Value: bound}},
				},
			}))
		}
		m, err := w.Close()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		m.Seq, m.MinSeq = manifests.Some(iceberg.SeqNum(1)), manifests.Some(iceberg.SeqNum(1))
		all = append(all, m)
	}
	var buf bytes.Buffer
	_, err = manifests.WriteList(&buf, manifests.ListOptions{Version: 2, SnapshotID: 1, Seq: 1}, all)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list.avro"), buf.Bytes(), 0o600))
}

func rewriteMillion(t *testing.T, dir string, peak func(func())) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	tb := million(t, fl)
	at := fl.Virtual().Now().UnixMilli()
	require.NoError(t, tb.Edit(t.Context(), func(doc map[string]any) {
		doc["snapshots"] = []any{map[string]any{
			"snapshot-id": int64(1), "sequence-number": int64(1), "timestamp-ms": at, "schema-id": int64(0),
			"manifest-list": "s3://" + tb.Root.Join("metadata", "list.avro").Rel(filer.BucketsRoot), "summary": map[string]any{"operation": "append"},
		}}
		doc["last-sequence-number"], doc["current-snapshot-id"] = int64(1), int64(1)
		doc["refs"] = map[string]any{"main": map[string]any{"type": "branch", "snapshot-id": int64(1)}}
	}))
	d := &measure.Disk{Filer: fl, Dir: dir, Local: func(p filer.Path) bool {
		return strings.HasSuffix(p.Name(), ".avro") && p.Within(tb.Root) && !strings.HasPrefix(p.Name(), "snap-")
	}}
	r := worker.New(worker.Options{Filer: d, Clock: fl.Virtual(), Tenancy: alone{}, Registry: ops.NewRegistry(rewritemanifests.New())})
	var res []ops.Result
	var err error
	peak(func() {
		res, err = r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}})
	})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res[0].Status, res[0].Message)
	require.Equal(t, int64(memoryManifests*memoryEntries), res[0].Counters["entries-carried"])
	t.Logf("%s", res[0].Message)
	again, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}})
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, again[0].Status, again[0].Message)
}
