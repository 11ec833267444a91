package compact

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
)

// F137: what an earlier run finished is committed by the first part of the next
// one, whichever part it is of and whether or not the head moved since planning.
func TestF137ResumedInPartsOnAMovedHead(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2, Spec: "region"})
	together(t, tb)
	dies(t, fl, atSwap(tb))
	var merges atomic.Int64
	q := requestWith(nil)
	q.Planned = func(ops.Plan) error {
		tb.Append(tb.R(int64(5000), "elsewhere"))
		return nil
	}
	all, err := runnerWith(fl, inParts(counting(&merges))).Run(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, all[0].Status, "%+v", all[0].Reasons)
	sound(t, fl, tb.Table)
	tidy(t, fl, tb.Table)
	require.Equal(t, int64(2), all[0].Counters["units-resumed"], "%+v", all[0].Reasons)
	require.Zero(t, merges.Load())
}

// An equality delete by a column that came after the run had begun.
func TestLateEqualityDeleteByANewColumn(t *testing.T) {
	for name, c := range map[string]struct {
		key  any
		gone int
	}{"a value": {int32(5), 0}, "null": {nil, 9}} {
		t.Run(name, func(t *testing.T) {
			versions(t, 2, func(t *testing.T, version int) {
				fl := filertest.New(filertest.Options{})
				tb := scene(t, fl, model.Config{Version: version})
				small(tb, 1, 3, 3, "eu")
				res, err := between(t, fl, tb.Table, nil, func() {
					tb.Add("extra", "int")
					tb.EqualityDelete([]string{"extra"}, tb.R(int64(0), nil, c.key))
					tb.Append(tb.R(int64(50), "eu", int32(5)))
				})
				require.NoError(t, err)
				require.Contains(t, []ops.Status{ops.Finished, ops.NothingToDo}, res.Status, "%s %+v", res.Message, res.Reasons)
				sound(t, fl, tb.Table)
				tidy(t, fl, tb.Table)
				require.Len(t, tb.Head("").Rows, 10-c.gone)
			})
		})
	}
}

// Somebody replaced the inputs of a unit while another was being rewritten,
// expired what was before and removed the files: the unit is lost, the others are
// not, and the table is not called corrupt.
func TestInputsExpiredAndRemovedMeanwhile(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := regions(t, fl, 2, 3)
	victims := tb.Head("").DataFiles()[2:4]
	acted := false
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if !acted {
			acted = true
			region := fmt.Sprint(victims[0].File.Partition[1000])
			var rows []model.RowID
			for _, v := range victims {
				if fmt.Sprint(v.File.Partition[1000]) == region && !strings.Contains(q.Sources[0].Location, "region="+region) {
					rows = append(rows, v.File.RowsAt(0)...)
				}
			}
			require.NotEmpty(t, rows)
			tb.Overwrite(rows)
			for _, v := range victims {
				fl.RemoveAll(v.File.At)
			}
		}
		return rewrite.Merge(ctx, q)
	}
	res, err := runTools(t.Context(), fl, tl, map[string]string{"memory_budget_mb": "64"})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
	require.Equal(t, int64(2), res.Counters["units"])
}

// The least budget is enough for files of usual shapes.
func TestF134LeastMemory(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2})
	var files []*model.File
	for n := range 4 {
		files = append(files, tb.FileWith(model.Options{Layout: model.Layout{RowGroupRows: 1000}}, many(tb, 5000*n, 3000)...))
	}
	tb.DeleteAt(files[0], 0, 10, 2999)
	tb.EqualityDelete([]string{"id"}, tb.R(int64(5001), nil))
	res, err := runCompact(t.Context(), fl, map[string]string{"memory_budget_mb": "16"})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
	sound(t, fl, tb.Table)
}

// The planning snapshot was expired and its files are gone while the run was at
// work: it is overtaken, and the table is not called corrupt.
func TestPlanningSnapshotExpiredMeanwhile(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := regions(t, fl, 2, 3)
	acted := false
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if !acted {
			acted = true
			old := tb.Head("")
			var rows []model.RowID
			for _, e := range old.DataFiles() {
				rows = append(rows, e.File.RowsAt(0)...)
			}
			tb.Overwrite(rows)
			tb.Do(tb.Edit(ctx, func(doc map[string]any) {
				all := doc["snapshots"].([]any)
				doc["snapshots"] = all[len(all)-1:]
				log := doc["snapshot-log"].([]any)
				doc["snapshot-log"] = log[len(log)-1:]
			}))
			now := map[string]bool{}
			for _, m := range tb.Head("").Manifests {
				now[m.Path] = true
			}
			for _, m := range old.Manifests {
				if !now[m.Path] {
					fl.RemoveAll(m.At)
				}
			}
		}
		return rewrite.Merge(ctx, q)
	}
	_, err := runTools(t.Context(), fl, tl, map[string]string{"memory_budget_mb": "64"})
	require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
}

// Outputs have the sequence number of the planning snapshot. One that is below
// that of its own files would let deletes hit rows that came after them.
func TestF084SnapshotBelowItsFiles(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2})
	tb.File(tb.R(int64(1), "a"), tb.R(int64(2), "a"))
	tb.EqualityDelete([]string{"id"}, tb.R(int64(1), nil))
	tb.File(tb.R(int64(1), "again"), tb.R(int64(3), "b"))
	tb.Do(tb.Edit(t.Context(), func(doc map[string]any) {
		all := doc["snapshots"].([]any)
		delete(all[len(all)-1].(map[string]any), "sequence-number")
	}))
	before := physicalFiles(t, fl)
	_, err := runCompact(t.Context(), fl, nil)
	require.Equal(t, fault.Corrupt, fault.Of(err), "%v", err)
	require.Equal(t, before, physicalFiles(t, fl))
}

// A run that is slow and not dead: its lease ran out, another took over what it
// had finished and committed it. It must neither commit nor clean up what is the
// other's now.
func TestOvertakenRunLeavesWhatAnotherTookOver(t *testing.T) {
	for name, at := range map[string]func(tb *model.Scene) func(filertest.Call) bool{
		"at the swap": atSwap,
		"at the second map": func(*model.Scene) func(filertest.Call) bool {
			n := 0
			return func(c filertest.Call) bool {
				if c.Op == filertest.OpPut && strings.HasSuffix(c.Path.Name(), ".map") {
					n++
				}
				return n == 2
			}
		},
		"at the list": func(*model.Scene) func(filertest.Call) bool {
			return func(c filertest.Call) bool {
				return c.Op == filertest.OpPut && strings.HasPrefix(c.Path.Name(), "snap-")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			versions(t, 2, func(t *testing.T, version int) {
				fl := filertest.New(filertest.Options{})
				tb, eu, _ := twoRegions(t, fl, version)
				acted, now := false, at(tb)
				var mu sync.Mutex // units run side by side
				slow := fl.Reopen()
				var second ops.Result
				slow.OnCall(func(c filertest.Call) *filertest.Fault {
					mu.Lock()
					act := !acted && now(c)
					acted = acted || act
					mu.Unlock()
					if act {
						leaseOut(fl)
						tb.DeleteAt(eu[1], 2)
						var err error
						second, err = runCompact(t.Context(), fl, nil)
						require.NoError(t, err)
					}
					return nil
				})
				first, err := runCompact(t.Context(), slow, nil)
				require.True(t, acted)
				if err != nil {
					require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
				} else {
					require.Equal(t, ops.NothingToDo, first.Status)
				}
				require.Equal(t, ops.Finished, second.Status)
				require.Positive(t, second.Counters["units-resumed"])
				require.GreaterOrEqual(t, len(mapFiles(fl)), 2, "maps are for whoever has to follow rows later")
				sound(t, fl, tb.Table)
				require.NoError(t, later(t, fl))
				sound(t, fl, tb.Table)
				if name != "at the list" { // which was created when the other had looked
					tidy(t, fl, tb.Table)
				}
			})
		})
	}
}
