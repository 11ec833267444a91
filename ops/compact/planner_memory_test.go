package compact_test

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
)

const (
	memoryManifests = 2000
	memoryEntries   = 500 // of a manifest
	memoryBound     = 224 << 20
)

// TestMillionFilesInLittleMemory plans a table of 1,000,000 files, three quarters
// of them candidates and a fifth with a position delete of its own, in a process
// of its own, whose peak resident memory is what is looked at. Manifests are on
// this machine's disk.
func TestMillionFilesInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 2,400 manifests")
	}
	if measure.Race {
		t.Skip("nothing here is concurrent; make test runs it without the race detector too")
	}
	measure.Child(t, memoryBound, func(dir string) { millions(t, dir) }, func(dir string, peak func(func())) {
		planMillion(t, dir, peak)
	})
}

// millions makes the table, whose Avro files are in dir. It is the same each time.
func millions(t *testing.T, dir string) (*measure.Disk, clock.Clock) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	d := &measure.Disk{Filer: fl, Dir: dir, Local: func(p filer.Path) bool { return strings.HasSuffix(p.Name(), ".avro") }}
	_, err := model.Synthetic(t.Context(), d, model.SyntheticOptions{
		ID: id, Clock: fl.Virtual(), Seed: 1, Manifests: memoryManifests, EntriesPerManifest: memoryEntries, DeleteManifests: memoryManifests / 5,
		Partitions: 1000, Columns: -1, Bytes: 128 << 20,
	})
	require.NoError(t, err)
	return d, fl.Virtual()
}

func planMillion(t *testing.T, dir string, peak func(func())) {
	t.Helper()
	d, now := millions(t, dir)
	v, err := iceberg.Load(t.Context(), d, id)
	require.NoError(t, err)
	s := config.Defaults()
	// What the worker runs with.
	debug.SetMemoryLimit(s.MemoryBudgetBytes)
	var p *compact.Plan
	peak(func() {
		p, err = compact.NewPlanner(nil).Plan(t.Context(), ops.Input{View: v, Reader: d, Settings: s, Now: now.Now()})
	})
	require.NoError(t, err)
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
