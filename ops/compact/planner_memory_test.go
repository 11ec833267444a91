package compact_test

import (
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
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
)

const (
	memoryDir       = "SEAICE_TEST_COMPACT_DIR"
	memoryManifests = 2000
	memoryEntries   = 500 // of a manifest
	memoryBound     = 224 << 20
)

// TestMillionFilesInLittleMemory plans a table of 1,000,000 files, three quarters
// of them candidates and a fifth with a position delete of its own, in a process
// of its own, whose peak resident memory is what is looked at. Manifests are on
// this machine's disk.
func TestMillionFilesInLittleMemory(t *testing.T) {
	if dir := os.Getenv(memoryDir); dir != "" {
		planMillion(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("writes 2,400 manifests")
	}
	dir := t.TempDir()
	fl := filertest.New(filertest.Options{})
	millions(t, &onDisk{Filer: fl, dir: dir}, fl)
	bin := os.Args[0]
	if raced {
		// Its own memory is what is to be seen, not the detector's.
		bin = filepath.Join(dir, "plain.test")
		out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", bin, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^TestMillionFilesInLittleMemory$", "-test.v")
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

// millions makes the table; that of the same options is the same table.
func millions(t *testing.T, to filer.Filer, fl *filertest.Filer) {
	t.Helper()
	_, err := model.Synthetic(t.Context(), to, model.SyntheticOptions{
		ID: id, Clock: fl.Virtual(), Seed: 1, Manifests: memoryManifests, EntriesPerManifest: memoryEntries, DeleteManifests: memoryManifests / 5,
		Partitions: 1000, Columns: -1, Bytes: 128 << 20,
	})
	require.NoError(t, err)
}

func planMillion(t *testing.T, dir string) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	d := &onDisk{Filer: fl, dir: dir, have: true}
	millions(t, d, fl)
	v, err := iceberg.Load(t.Context(), d, id)
	require.NoError(t, err)
	debug.FreeOSMemory()
	// The peak so far is that of the table's making; 5 forgets it.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		t.Logf("the peak of making the table counts as idle: %v", err)
	}
	idle := peakMemory(t)
	s := config.Defaults()
	// What the worker runs with.
	debug.SetMemoryLimit(s.MemoryBudgetBytes)
	p, err := compact.NewPlanner(nil).Plan(t.Context(), ops.Input{View: v, Reader: d, Settings: s, Now: fl.Virtual().Now()})
	require.NoError(t, err)
	t.Logf("memory idle %d peak %d", idle, peakMemory(t))
	t.Logf("%s; %+v", p.Summary(), p.Head().Reasons)
	require.EqualValues(t, memoryManifests*memoryEntries, p.Head().Effects.Before.DataFiles)
	require.EqualValues(t, memoryManifests*memoryEntries/5, p.Head().Effects.Before.DeleteFiles)
	files := 0
	for _, u := range p.Units() {
		files += len(u.Inputs)
	}
	require.Greater(t, files, 40_000)
	require.LessOrEqual(t, files, 50_000)
	require.Contains(t, codes(p), "plan-full")
}

// onDisk is a filer whose Avro files are in a directory of this machine.
type onDisk struct {
	*filertest.Filer
	dir string
	// have: the files are there, and are not written again.
	have bool
}

func (d *onDisk) local(p filer.Path) bool { return strings.HasSuffix(p.Name(), ".avro") }

func (d *onDisk) Put(ctx context.Context, p filer.Path, content []byte, o filer.CreateOptions) (*filer.Entry, error) {
	if !d.local(p) {
		return d.Filer.Put(ctx, p, content, o)
	}
	if !d.have {
		if err := os.WriteFile(filepath.Join(d.dir, p.Name()), content, 0o600); err != nil {
			return nil, err
		}
	}
	return d.Stat(ctx, p)
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
