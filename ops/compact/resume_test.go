package compact

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
)

// counting are tools that count merges.
func counting(n *atomic.Int64) tools {
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		n.Add(1)
		return rewrite.Merge(ctx, q)
	}
	return tl
}

// dies runs until the process dies at the first call that at chooses.
func dies(t testing.TB, fl *filertest.Filer, at func(filertest.Call) bool) {
	t.Helper()
	diesWith(t, fl, nil, at)
}

func diesWith(t testing.TB, fl *filertest.Filer, set map[string]string, at func(filertest.Call) bool) {
	t.Helper()
	mortal := fl.Reopen()
	mortal.OnCall(func(c filertest.Call) *filertest.Fault {
		if at(c) {
			return &filertest.Fault{Mode: filertest.CrashBefore}
		}
		return nil
	})
	_, err := runCompact(t.Context(), mortal, set)
	require.Error(t, err)
	require.Positive(t, mortal.Fired())
	leaseOut(fl)
}

func atSwap(tb *model.Scene) func(filertest.Call) bool {
	return func(c filertest.Call) bool { return c.Op == filertest.OpUpdate && c.Path == tb.Record() }
}

// resumed runs again and returns the result and how many units were merged.
func resumed(t testing.TB, fl *filertest.Filer, tb *model.Table) (ops.Result, int64) {
	t.Helper()
	var merges atomic.Int64
	res, err := runTools(t.Context(), fl, counting(&merges), nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
	require.Empty(t, res.Warnings)
	sound(t, fl, tb)
	tidy(t, fl, tb)
	for st, err := range journal.New(fl, fl.Virtual()).List(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, journal.Closed, st.Phase(), st.Run())
	}
	return res, merges.Load()
}

// mapFiles are the movement maps that are kept.
func mapFiles(fl *filertest.Filer) []filer.Path { return fl.Files(journal.Maps) }

// F137: a run that died before its swap is committed by the next one, without
// any work being done again.
func TestF137FinishedUnitsAreResumed(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, _, _ := twoRegions(t, fl, version)
		dies(t, fl, atSwap(tb))
		res, merges := resumed(t, fl, tb.Table)
		require.Zero(t, merges)
		require.Equal(t, int64(2), res.Counters["units-resumed"])
		require.Equal(t, int64(2), res.Counters["units"])
		require.Len(t, mapFiles(fl), 2)
	})
}

// F137: only whole units are resumed; what was begun is done again and what is
// left of it goes.
func TestF137UnfinishedUnitIsDoneAgain(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	var maps atomic.Int64
	// Little memory makes one unit follow the other, so that the first is journalled: with none
	// that is, the run is resolved and what it staged waits for its age.
	diesWith(t, fl, map[string]string{"memory_budget_mb": "64"}, func(c filertest.Call) bool {
		if c.Op == filertest.OpPut && strings.HasSuffix(c.Path.Name(), ".map") {
			maps.Add(1)
		}
		return maps.Load() == 2
	})
	res, merges := resumed(t, fl, tb.Table)
	require.Equal(t, int64(1), merges)
	require.Equal(t, int64(2), res.Counters["units"])
	require.Equal(t, int64(1), res.Counters["units-resumed"])
	require.Len(t, mapFiles(fl), 2)
}

// A delete that came while nobody was at work follows its rows through the
// journalled movement map.
func TestResumedUnitsAreRebasedOverDeletes(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, _ := twoRegions(t, fl, version)
		dies(t, fl, atSwap(tb))
		tb.DeleteAt(eu[1], 2)
		tb.EqualityDelete([]string{"id", "region"}, tb.R(int64(101), "us"))
		res, merges := resumed(t, fl, tb.Table)
		require.Zero(t, merges)
		require.Equal(t, int64(1), res.Counters["rows-translated"])
		require.Len(t, deleteFiles(tb.Table), 2)
	})
}

// Without its map, or with an output that is not the one that was journalled, a
// unit is done again.
func TestDamagedUnitIsNotResumed(t *testing.T) {
	for name, damage := range map[string]func(fl *filertest.Filer, tb *model.Scene){
		"map is gone": func(fl *filertest.Filer, _ *model.Scene) { fl.RemoveAll(mapFiles(fl)[0]) },
		"map is another": func(fl *filertest.Filer, _ *model.Scene) {
			p := mapFiles(fl)[0]
			content := fl.Content(p)
			fl.RemoveAll(p)
			fl.PutFile(p, content)
		},
		"output is gone": func(fl *filertest.Filer, tb *model.Scene) {
			for _, p := range fl.Files(tb.Root) {
				if !tb.Live()[p] && strings.HasSuffix(p.Name(), ".parquet") {
					fl.RemoveAll(p)
					return
				}
			}
			panic("no output")
		},
	} {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb, _, _ := twoRegions(t, fl, 2)
			dies(t, fl, atSwap(tb))
			require.Len(t, mapFiles(fl), 2)
			damage(fl, tb)
			res, merges := resumed(t, fl, tb.Table)
			require.Equal(t, int64(1), merges)
			require.Equal(t, int64(1), res.Counters["units-resumed"])
		})
	}
}

// What a peer removed while nobody was at work is not brought back.
func TestF006ResumedUnitWithoutInputIsDropped(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, eu, _ := twoRegions(t, fl, 2)
	dies(t, fl, atSwap(tb))
	tb.Overwrite(eu[0].RowsAt(0))
	res, merges := resumed(t, fl, tb.Table)
	require.Equal(t, int64(1), merges, "the region that lost a file is planned anew")
	require.Equal(t, int64(1), res.Counters["units-resumed"])
}

// A run that died after its swap was committed is nobody's to resume.
func TestCommittedRunIsNotResumed(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	mortal := fl.Reopen()
	mortal.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpUpdate && c.Path == tb.Record() {
			return &filertest.Fault{Mode: filertest.CrashAfter}
		}
		return nil
	})
	_, err := runCompact(t.Context(), mortal, nil)
	require.Error(t, err)
	leaseOut(fl)
	small(tb, 500, 2, 2, "eu")
	res, merges := resumed(t, fl, tb.Table)
	require.Equal(t, int64(1), merges)
	require.Zero(t, res.Counters["units-resumed"])
	require.Len(t, mapFiles(fl), 3, "maps of committed runs are kept")
}

// A second crash loses nothing either: the run that adopted is adopted.
func TestResumedTwice(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	dies(t, fl, atSwap(tb))
	dies(t, fl, atSwap(tb))
	res, merges := resumed(t, fl, tb.Table)
	require.Zero(t, merges)
	require.Equal(t, int64(2), res.Counters["units-resumed"])
}
