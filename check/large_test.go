package check_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/clock"
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
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak starts again; only on Linux
	before := peak(t)
	real := clock.System()
	start := real.Now()
	_, err = check.Named(t.Context(), fl, tb.ID, check.Options{})
	require.NoError(t, err)
	took := real.Now().Sub(start)
	t.Logf("%d files in %s, VmHWM %d MiB more than %d MiB", n, took, (peak(t)-before)>>10, before>>10)

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

// peak is the peak of the process's memory in KiB; where the system does not
// tell, 0.
func peak(t *testing.T) int64 {
	t.Helper()
	b, _ := os.ReadFile("/proc/self/status") // only on Linux
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return n
}
