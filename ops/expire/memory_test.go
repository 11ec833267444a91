package expire_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/expire"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

const (
	memoryDir      = "SEAICE_TEST_EXPIRE_DIR"
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
	if dir := os.Getenv(memoryDir); dir != "" {
		expireMillion(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("writes 2,700 manifests")
	}
	dir := t.TempDir()
	writeMillion(t, dir)
	bin := os.Args[0]
	if raceDetector {
		// The program's own memory is what is to be seen, not the detector's.
		bin = filepath.Join(dir, "plain.test")
		out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", bin, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^TestMillionCandidatesInLittleMemory$", "-test.v")
	cmd.Env = append(os.Environ(), memoryDir+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var idle, peak int64
	_, err = fmt.Sscanf(string(out)[strings.Index(string(out), "memory idle"):], "memory idle %d peak %d", &idle, &peak)
	require.NoError(t, err, "%s", out)
	t.Logf("idle %d MiB, peak %d MiB", idle>>20, peak>>20)
	require.Less(t, peak-idle, int64(memoryBound))
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

func expireMillion(t *testing.T, dir string) {
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
	d := &onDisk{Filer: fl, dir: dir, root: tb.Root}
	r := worker.New(worker.Options{Filer: d, Clock: fl.Virtual(), Tenancy: trash.NewReferences(d), Registry: ops.NewRegistry(expire.New())})
	debug.FreeOSMemory()
	idle := peakMemory(t)
	res, err := first(r.Run(t.Context(), request(fewest)))
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, res.Message)
	require.Empty(t, res.Warnings)
	const live = memoryRetained * memoryEntries
	const files = memoryExpiring * memoryEntries
	require.Equal(t, int64(files-live+memoryExpiring+memoryRepeated+2), res.Predicted.RemovedFiles)
	require.Equal(t, int64(files-live), d.asked.Load(), "the files that are looked for, which are not there")
	t.Logf("memory idle %d peak %d", idle, peakMemory(t))
}

// onDisk is a filer whose manifests and lists are in a directory of this machine
// and whose data files are missing. Old manifests vanish with the commit.
type onDisk struct {
	*filertest.Filer
	dir   string
	root  filer.Path
	swaps atomic.Int64
	asked atomic.Int64
}

func (d *onDisk) Update(ctx context.Context, u filer.Update) (*filer.Entry, error) {
	e, err := d.Filer.Update(ctx, u)
	if err == nil && u.Set[iceberg.AttrMetadata] != nil {
		d.swaps.Add(1)
	}
	return e, err
}

func (d *onDisk) Stat(ctx context.Context, p filer.Path) (*filer.Entry, error) {
	if p.Within(d.root.Join("data")) {
		d.asked.Add(1)
		return nil, fault.Wrap(fault.Stale, "stat", filer.ErrNotFound)
	}
	if !strings.HasSuffix(p.Name(), ".avro") || !p.Within(d.root) {
		return d.Filer.Stat(ctx, p)
	}
	info, err := os.Stat(filepath.Join(d.dir, p.Name()))
	if errors.Is(err, fs.ErrNotExist) || d.swaps.Load() > 0 && strings.HasPrefix(p.Name(), "old-") {
		return nil, fault.Wrap(fault.Stale, "stat", filer.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &filer.Entry{Path: p, Size: info.Size(), Mtime: filertest.Epoch, Newest: filertest.Epoch}, nil
}

func (d *onDisk) Open(ctx context.Context, p filer.Path) (filer.Object, error) {
	if !strings.HasSuffix(p.Name(), ".avro") || !p.Within(d.root) {
		return d.Filer.Open(ctx, p)
	}
	e, err := d.Stat(ctx, p)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(d.dir, p.Name()))
	return &local{f, e}, err
}

type local struct {
	*os.File
	e *filer.Entry
}

func (l *local) Entry() *filer.Entry { return l.e }
func (l *local) Size() int64         { return l.e.Size }
func (l *local) Stream(offset, length int64) io.ReadCloser {
	if length < 0 {
		length = l.e.Size - offset
	}
	return io.NopCloser(io.NewSectionReader(l.File, offset, length))
}

// peakMemory is VmHWM in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("no /proc/self/status here: " + err.Error())
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			require.NoError(t, err)
			return kb << 10
		}
	}
	t.Skip("no VmHWM in /proc/self/status")
	return 0
}
