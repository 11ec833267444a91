package expire_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/expire"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

const (
	memoryEntries  = 500  // of a manifest
	memoryExpiring = 2000 // manifests: a million files
	memoryRepeated = 500  // manifests with files that others name as well
	memoryRetained = 200  // manifests that stay
	memoryBound    = 128 << 20
)

// TestMillionCandidatesInLittleMemory expires a snapshot with 1,000,000 files, a
// tenth of which live on, in a process of its own, whose peak resident memory is
// what is looked at (F112). Planning, commit and removal are all of the run.
func TestMillionCandidatesInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 2,700 manifests")
	}
	measure.Child(t, memoryBound, func(dir string) { writeMillion(t, dir) }, func(dir string, peak func(func())) {
		expireMillion(t, dir, peak)
	})
}

// writeMillion writes the manifests and the lists into dir: old-* belong to
// snapshots that expire, new-* to the one that stays.
func writeMillion(t *testing.T, dir string) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	parts, err := manifests.PartitioningOf(v.Metadata, 0)
	require.NoError(t, err)
	write := func(name string, from int) *manifests.ManifestFile {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		defer f.Close()
		w, err := manifests.NewWriter(f, manifests.WriterOptions{
			Path: "s3://" + tb.Root.Join("metadata", name).Rel(filer.BucketsRoot), Version: 2, Partitioning: parts, SnapshotID: 1, Level: 1,
		})
		require.NoError(t, err)
		for i := range memoryEntries {
			n := from + i
			require.NoError(t, w.Put(&manifests.Entry{
				Status: manifests.Existing, SnapshotID: manifests.Some(iceberg.SnapshotID(1)),
				DataSeq: manifests.Some(iceberg.SeqNum(1)), FileSeq: manifests.Some(iceberg.SeqNum(1)),
				File: manifests.File{
					Path:   fmt.Sprintf("s3://%s/data/%04d/00000-%d-7e6c2a9e-1d5b-4f0e-9d5a-%012d.parquet", tb.Root.Rel(filer.BucketsRoot), n%1000, n, n),
					Format: manifests.Parquet, Records: 1000, Bytes: 1 << 20,
				},
			}))
		}
		m, err := w.Close()
		require.NoError(t, err)
		m.Seq, m.MinSeq = manifests.Some(iceberg.SeqNum(1)), manifests.Some(iceberg.SeqNum(1))
		return m
	}
	list := func(name string, all []*manifests.ManifestFile) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), encodeList(t, 2, all), 0o600))
	}
	many := func(kind string, n, stride int) []*manifests.ManifestFile {
		var out []*manifests.ManifestFile
		for i := range n {
			out = append(out, write(fmt.Sprintf("%s-%04d.avro", kind, i), i*stride*memoryEntries))
		}
		return out
	}
	list("old-list-1.avro", many("old-r", memoryRepeated, 3))
	list("old-list-2.avro", many("old-m", memoryExpiring, 1))
	list("new-list-3.avro", many("new-m", memoryRetained, 7))
}

func expireMillion(t *testing.T, dir string, peak func(func())) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	at := fl.Virtual().Now().UnixMilli()
	tb.Do(tb.Edit(t.Context(), func(doc map[string]any) {
		var all []any
		for i, list := range []string{"old-list-1.avro", "old-list-2.avro", "new-list-3.avro"} {
			all = append(all, map[string]any{
				"snapshot-id": int64(i + 1), "sequence-number": int64(i + 1), "timestamp-ms": at, "schema-id": int64(0),
				"manifest-list": "s3://" + tb.Root.Join("metadata", list).Rel(filer.BucketsRoot), "summary": map[string]any{"operation": "append"},
			})
		}
		doc["snapshots"], doc["last-sequence-number"], doc["current-snapshot-id"] = all, int64(3), int64(3)
		doc["refs"] = map[string]any{"main": map[string]any{"type": "branch", "snapshot-id": int64(3)}}
	}))
	pass(fl, 30)
	d := newDisk(fl, dir, tb.Root)
	r := worker.New(worker.Options{Filer: d, Clock: fl.Virtual(), Tenancy: trash.NewReferences(d), Registry: ops.NewRegistry(expire.New())})
	var res ops.Result
	var err error
	peak(func() { res, err = first(r.Run(t.Context(), request(fewest))) })
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, res.Message)
	require.Empty(t, res.Warnings)
	const live = memoryRetained * memoryEntries
	const files = memoryExpiring * memoryEntries
	require.Equal(t, int64(files-live+memoryExpiring+memoryRepeated+2), res.Predicted.RemovedFiles)
	require.Equal(t, int64(files-live), d.asked.Load(), "the files that are looked for, which are not there")
}

// disk has the manifests and lists in a directory of this machine; data files are
// missing. Old manifests vanish with the commit.
type disk struct {
	measure.Disk
	data  filer.Path
	swaps atomic.Int64
	asked atomic.Int64
}

func newDisk(fl *filertest.Filer, dir string, root filer.Path) *disk {
	d := &disk{Disk: measure.Disk{Filer: fl, Dir: dir}, data: root.Join("data")}
	d.Local = func(p filer.Path) bool {
		return strings.HasSuffix(p.Name(), ".avro") && p.Within(root) && (d.swaps.Load() == 0 || !strings.HasPrefix(p.Name(), "old-"))
	}
	return d
}

func (d *disk) Update(ctx context.Context, u filer.Update) (*filer.Entry, error) {
	e, err := d.Disk.Update(ctx, u)
	if err == nil && u.Set[iceberg.AttrMetadata] != nil {
		d.swaps.Add(1)
	}
	return e, err
}

func (d *disk) Stat(ctx context.Context, p filer.Path) (*filer.Entry, error) {
	if p.Within(d.data) {
		d.asked.Add(1)
		return nil, fault.Wrap(fault.Stale, "stat", filer.ErrNotFound)
	}
	return d.Disk.Stat(ctx, p)
}
