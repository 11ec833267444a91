package check_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
)

// TestLargeTable checks a table of SEAICE_CHECK_LARGE data files, in manifests of
// 500, and prints the time and the peak of memory. The sizes of its files are
// made up, so that nearly every one is found to differ, and counted.
func TestLargeTable(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SEAICE_CHECK_LARGE"))
	if err != nil {
		t.Skip("set SEAICE_CHECK_LARGE to a number of data files")
	}
	fl := filertest.New(filertest.Options{})
	tb, err := model.Synthetic(t.Context(), fl, model.SyntheticOptions{
		ID: tableID, Clock: fl.Virtual(), Version: 3, Manifests: n / 500, EntriesPerManifest: 500, Partitions: 100, Placeholders: true,
		Snapshots: 3, Churn: -1,
	})
	require.NoError(t, err)
	// The filer in memory is most of the heap, and half of a heap is garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	real := clock.System()
	start := real.Now()
	before, during := measure.Peak(t, func() { _, err = check.Named(t.Context(), fl, tb.ID, check.Options{}) })
	require.NoError(t, err)
	t.Logf("%d files in %s, %d MiB more than %d MiB", n, real.Now().Sub(start), (during-before)>>20, before>>20)

	// Once more, for what is held; the filer's part of the peak is not ours.
	base, held := heap(), uint64(0)
	rep, err := check.Named(t.Context(), fl, tb.ID, check.Options{Progress: func(_ string, done, _ int64) {
		if done%max(1, int64(n)/2500) == 0 {
			held = max(held, heap())
		}
	}})
	require.NoError(t, err)
	t.Logf("holds at most %d MiB", (held-min(base, held))>>20)
	require.Contains(t, codes(rep), "error file-size")
	require.InDelta(t, n, rep.Errors, 100) // some may have their size by chance
	require.Equal(t, int64(n), rep.Stats.Files)
}

// heap is what is held, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
