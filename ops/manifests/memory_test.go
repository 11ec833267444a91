package rewritemanifests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/worker"
)

const (
	memoryDir       = "SEAICE_TEST_REWRITE_DIR"
	memoryManifests = 2000
	memoryEntries   = 500 // of a manifest
	memoryBound     = 128 << 20
)

// TestMillionEntriesInLittleMemory sorts 1,000,000 entries of 2,000 manifests by
// partition in a process of its own, whose peak resident memory is what is
// looked at. Manifests are on this machine's disk.
func TestMillionEntriesInLittleMemory(t *testing.T) {
	if dir := os.Getenv(memoryDir); dir != "" {
		rewriteMillion(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("writes 2,000 manifests")
	}
	dir := t.TempDir()
	writeMillion(t, dir)
	bin := os.Args[0]
	if raced {
		// Its own memory is what is to be seen, not the detector's.
		bin = filepath.Join(dir, "plain.test")
		out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", bin, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^TestMillionEntriesInLittleMemory$", "-test.v")
	cmd.Env = append(os.Environ(), memoryDir+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var idle, peak int64
	at := strings.Index(string(out), "memory idle")
	require.GreaterOrEqual(t, at, 0, "%s", out)
	_, err = fmt.Sscanf(string(out)[at:], "memory idle %d peak %d", &idle, &peak)
	require.NoError(t, err, "%s", out)
	t.Logf("idle %d MiB, peak %d MiB", idle>>20, peak>>20)
	require.Less(t, peak-idle, int64(memoryBound))
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

func rewriteMillion(t *testing.T, dir string) {
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
	d := &onDisk{Filer: fl, dir: dir, root: tb.Root}
	r := worker.New(worker.Options{Filer: d, Clock: fl.Virtual(), Tenancy: alone{}, Registry: ops.NewRegistry(rewritemanifests.New())})
	debug.FreeOSMemory()
	idle := peakMemory(t)
	res, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res[0].Status, res[0].Message)
	require.Equal(t, int64(memoryManifests*memoryEntries), res[0].Counters["entries-carried"])
	t.Logf("memory idle %d peak %d", idle, peakMemory(t))
	t.Logf("%s", res[0].Message)
	again, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}})
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, again[0].Status, again[0].Message)
}

// onDisk is a filer whose Avro files are in a directory of this machine.
type onDisk struct {
	*filertest.Filer
	dir  string
	root filer.Path
}

func (d *onDisk) local(p filer.Path) bool {
	return strings.HasSuffix(p.Name(), ".avro") && p.Within(d.root) && !strings.HasPrefix(p.Name(), "snap-")
}

func (d *onDisk) Stat(ctx context.Context, p filer.Path) (*filer.Entry, error) {
	if !d.local(p) {
		return d.Filer.Stat(ctx, p)
	}
	info, err := os.Stat(filepath.Join(d.dir, p.Name()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Stale, "stat", filer.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &filer.Entry{Path: p, Size: info.Size(), Mtime: filertest.Epoch, Newest: filertest.Epoch}, nil
}

func (d *onDisk) Open(ctx context.Context, p filer.Path) (filer.Object, error) {
	if !d.local(p) {
		return d.Filer.Open(ctx, p)
	}
	e, err := d.Stat(ctx, p)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(d.dir, p.Name()))
	return &object{f, e}, err
}

func (d *onDisk) Create(ctx context.Context, p filer.Path, o filer.CreateOptions) (filer.Upload, error) {
	if !d.local(p) {
		return d.Filer.Create(ctx, p, o)
	}
	f, err := os.OpenFile(filepath.Join(d.dir, p.Name()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return &upload{f, d, p}, err
}

type upload struct {
	*os.File
	d *onDisk
	p filer.Path
}

func (u *upload) Commit(ctx context.Context) (*filer.Entry, error) {
	if err := u.Close(); err != nil {
		return nil, err
	}
	return u.d.Stat(ctx, u.p)
}

func (u *upload) Abort(context.Context) { _ = u.Close() }

type object struct {
	*os.File
	e *filer.Entry
}

func (o *object) Entry() *filer.Entry { return o.e }

func (o *object) Size() int64 { return o.e.Size }

func (o *object) Stream(offset, length int64) io.ReadCloser {
	if length < 0 {
		length = o.e.Size - offset
	}
	return io.NopCloser(io.NewSectionReader(o.File, offset, length))
}

// peakMemory is VmHWM in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc/self/status")
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kb int64
			_, err := fmt.Sscan(rest, &kb)
			require.NoError(t, err)
			return kb << 10
		}
	}
	t.Skip("no VmHWM in /proc/self/status")
	return 0
}
