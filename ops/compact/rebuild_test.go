package compact

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// one unit of files in each of two regions.
func twoRegions(t testing.TB, fl *filertest.Filer, version int) (tb *model.Scene, eu, us []*model.File) {
	t.Helper()
	tb = scene(t, fl, model.Config{Version: version, Spec: "region"})
	eu, us = small(tb, 1, 3, 4, "eu"), small(tb, 100, 3, 4, "us")
	return tb, eu, us
}

// committed runs with a peer in between, and the commit must have been rebased.
func rebased(t *testing.T, fl *filertest.Filer, tb *model.Table, peer func()) ops.Result {
	t.Helper()
	res, err := between(t, fl, tb, nil, peer)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
	require.Equal(t, 1, res.Commit.Rebases)
	sound(t, fl, tb)
	tidy(t, fl, tb)
	return res
}

// nothingStood: the head left nothing of the run.
func nothingStood(t *testing.T, fl *filertest.Filer, tb *model.Table, res ops.Result, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res.Status, res.Message)
	sound(t, fl, tb)
	tidy(t, fl, tb)
}

func versions(t *testing.T, from int, test func(t *testing.T, version int)) {
	for version := from; version <= 3; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) { test(t, version) })
	}
}

func TestRequireSameTable(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	before := dataFiles(tb.Table)
	res, err := between(t, fl, tb.Table, nil, func() {
		tb.Do(tb.Edit(t.Context(), func(doc map[string]any) { doc["table-uuid"] = "9d2a3e6b-0d2f-4a64-9a4e-7d7a1f0f3b11" }))
	})
	require.Equal(t, fault.Stale, fault.Of(err))
	require.Equal(t, ops.Failed, res.Status)
	require.NoError(t, tb.Refresh(t.Context()))
	require.Equal(t, before, dataFiles(tb.Table))
	tidy(t, fl, tb.Table)
}

func TestRequireSameFormatVersion(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	res, err := between(t, fl, tb.Table, nil, func() { tb.Do(tb.Upgrade(t.Context(), 3)) })
	require.Equal(t, fault.Stale, fault.Of(err))
	require.Equal(t, ops.Failed, res.Status)
	sound(t, fl, tb.Table)
	tidy(t, fl, tb.Table)
}

// A rollback takes the branch from under the plan: nothing of it may come back.
func TestRequireDescendsFromThePlanningSnapshot(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, _, _ := twoRegions(t, fl, version)
		snaps := tb.Snapshots()
		res, err := between(t, fl, tb.Table, nil, func() { tb.Do(tb.Rollback(t.Context(), "", snaps[2].ID)) })
		require.Equal(t, fault.Stale, fault.Of(err))
		require.Equal(t, ops.Failed, res.Status)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Equal(t, snaps[2].ID, tb.Head("").ID)
	})
}

// Columns are found by id: evolution between planning and commit changes no
// output.
func TestSchemaEvolutionMeanwhileIsNoConflict(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, _, _ := twoRegions(t, fl, version)
		rebased(t, fl, tb.Table, func() {
			tb.Add("extra", "int")
			tb.Do(tb.RenameColumn(t.Context(), "id", "key"))
			tb.Append(tb.R(int64(1000), "eu", int32(7)))
			tb.Widen("extra", "long")
		})
	})
}

// P13, F005: a head moved by commits that do not touch the inputs costs a new
// list and no data file.
func TestP13HeadMovedElsewhere(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, _, _ := twoRegions(t, fl, version)
		tb.Branch("dev")
		var merges atomic.Int64 // units run side by side
		tl := counting(&merges)
		res, err := betweenWith(t, fl, tl, tb.Table, nil, func() {
			tb.Append(tb.R(int64(500), "asia"))
			tb.AppendWith(model.Options{Branch: "dev"}, tb.R(int64(501), "eu"))
			tb.Set("x", "y")
			tb.Tag("t")
		})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status)
		require.Equal(t, 2, res.Commit.Attempts)
		require.Equal(t, int64(2), merges.Load())
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Len(t, dataFiles(tb.Table), 3)
		require.Len(t, tb.Where("", func(r model.Row) bool { return r[1] == int64(500) }), 1)
		require.Equal(t, "y", tb.Property("x"))
	})
}

// F006: an input was removed; its unit goes, the other is committed.
func TestF006RemovedInputDropsItsUnitOnly(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, us := twoRegions(t, fl, version)
		res := rebased(t, fl, tb.Table, func() { tb.Overwrite(eu[1].RowsAt(0), tb.R(int64(900), "eu")) })
		cause(t, res.Reasons, "input-removed")
		require.Equal(t, int64(1), res.Counters["units"])
		require.Equal(t, int64(1), res.Counters["units-dropped"])
		files := dataFiles(tb.Table)
		require.Contains(t, files, eu[0].Path)
		require.NotContains(t, files, us[0].Path)
	})
}

// A peer's compaction took the inputs of every unit: nothing survives, nothing is
// committed, nothing staged is left.
func TestReplacedInputsLeaveNothing(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, us := twoRegions(t, fl, version)
		res, err := between(t, fl, tb.Table, nil, func() {
			tb.Rewrite(eu[0], eu[1])
			tb.Rewrite(us...)
		})
		nothingStood(t, fl, tb.Table, res, err)
		require.Len(t, res.Reasons, 2)
		cause(t, res.Reasons, "input-removed")
	})
}

// F002, F024: an equality delete that came in between applies to the outputs,
// which carry the planning snapshot's sequence number; rows appended after it stay.
func TestF002F024LaterEqualityDeleteAppliesToOutputs(t *testing.T) {
	for _, spec := range []string{"", "region"} {
		versions(t, 2, func(t *testing.T, version int) {
			fl := filertest.New(filertest.Options{})
			tb := scene(t, fl, model.Config{Version: version, Spec: spec})
			small(tb, 1, 3, 4, "eu")
			base := tb.Head("").Seq
			res := rebased(t, fl, tb.Table, func() {
				tb.EqualityDelete([]string{"id", "region"}, tb.R(int64(2), "eu"), tb.R(int64(9), "eu"))
				tb.Append(tb.R(int64(2), "eu"))
			})
			require.Zero(t, res.Counters["rows-translated"])
			require.Len(t, deleteFiles(tb.Table), 1, "it stays: it still applies")
			var seqs []iceberg.SeqNum
			for _, e := range tb.Head("").DataFiles() {
				seqs = append(seqs, e.Seq)
			}
			require.Contains(t, seqs, base)
			require.Len(t, tb.Where("", func(r model.Row) bool { return r[1] == int64(2) }), 1)
			require.Empty(t, tb.Where("", func(r model.Row) bool { return r[1] == int64(9) }))
		})
	}
}

// F003: a position delete that came in between follows its rows into the output,
// and goes with its input. F022: a vector does.
func TestF003F022LaterPositionDeletesFollowTheirRows(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, us := twoRegions(t, fl, version)
		res := rebased(t, fl, tb.Table, func() {
			tb.DeleteAt(eu[0], 1, 3)
			tb.DeleteAt(eu[2], 0)
		})
		require.Equal(t, int64(3), res.Counters["rows-translated"])
		dels := deleteFiles(tb.Table)
		require.Len(t, dels, 1)
		d := dels[0]
		require.Equal(t, int64(3), d.File.Records)
		require.Equal(t, tb.Head("").ID, d.Snapshot)
		require.Equal(t, tb.Head("").Seq, d.Seq, "its sequence number is this commit's")
		require.Contains(t, dataFiles(tb.Table), d.File.Referenced)
		require.NotContains(t, []string{eu[0].Path, eu[2].Path}, d.File.Referenced)
		require.Equal(t, version >= 3, d.File.Content == model.Vector, "v3 gets vectors only")
		require.Equal(t, "replace", tb.Head("").Operation)
		require.NotContains(t, dataFiles(tb.Table), us[0].Path)
		require.Equal(t, []int64{1, 3, 8}, d.File.Positions[d.File.Referenced])
	})
}

// One delete per output, whichever inputs the rows come from.
func TestOneDeletePerOutput(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, _ := twoRegions(t, fl, version)
		res, err := between(t, fl, tb.Table, map[string]string{"max_rows_per_file": "6"}, func() {
			tb.Delete(slices.Concat(eu[0].RowsAt(0, 2), eu[1].RowsAt(0, 3), eu[2].RowsAt(1))...)
		})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		byTarget := map[string]int{}
		for _, d := range deleteFiles(tb.Table) {
			byTarget[d.File.Referenced]++
		}
		require.Len(t, byTarget, 2)
		for target, n := range byTarget {
			require.Equal(t, 1, n, target)
		}
	})
}

// Rows that the unit dropped need no delete: a vector that replaces the planned
// one holds its positions too.
func TestOnlyNewPositionsAreTranslated(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, _ := twoRegions(t, fl, version)
		tb.DeleteAt(eu[0], 0)
		res := rebased(t, fl, tb.Table, func() { tb.DeleteAt(eu[0], 3) })
		require.Equal(t, int64(1), res.Counters["rows-deleted"])
		require.Equal(t, int64(1), res.Counters["rows-translated"])
		dels := deleteFiles(tb.Table)
		require.Len(t, dels, 1)
		require.Equal(t, []int64{2}, dels[0].File.Positions[dels[0].File.Referenced])
	})
}

// Every attempt counts anew: a second vector replaces the first, it is no delta.
func TestF020TranslationIsMadeAnewOnEveryAttempt(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, _ := twoRegions(t, fl, version)
		peer := tb.Fork(fl.Reopen())
		record, swaps := tb.Record(), 0
		fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Op == filertest.OpUpdate && c.Path == record {
				if swaps++; swaps <= 3 {
					rows := eu[0].RowsAt(swaps)
					var err error
					if version >= 3 {
						_, err = peer.VectorDelete(t.Context(), rows, model.Options{})
					} else {
						_, err = peer.PositionDelete(t.Context(), rows, model.PerFile, model.Options{})
					}
					require.NoError(t, err)
				}
			}
			return nil
		})
		res, err := runCompact(t.Context(), fl, nil)
		fl.OnCall(nil)
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status)
		require.Equal(t, 4, res.Commit.Attempts)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Equal(t, int64(3), res.Counters["rows-translated"])
		dels := deleteFiles(tb.Table)
		require.Len(t, dels, 1)
		require.Equal(t, []int64{1, 2, 3}, dels[0].File.Positions[dels[0].File.Referenced])
	})
}

// Planned deletes that a peer merged into others still delete their rows: the
// unit stands.
func TestPlannedDeletesMergedMeanwhileStand(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, eu, _ := twoRegions(t, fl, 2)
	a, b := tb.DeleteAt(eu[0], 0), tb.DeleteAt(eu[0], 2)
	res := rebased(t, fl, tb.Table, func() { peerReplacesDeletes(t, fl, tb, []*model.File{a, b}, map[string][]int64{eu[0].Path: {0, 2}}) })
	require.Equal(t, int64(2), res.Counters["units"])
	require.Zero(t, res.Counters["rows-translated"])
	require.Empty(t, deleteFiles(tb.Table))
}

// A planned delete that is gone brings its rows back: the unit that dropped them
// must not be committed.
func TestRowsThatCameBackDropTheUnit(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, eu, us := twoRegions(t, fl, 2)
	a, b := tb.DeleteAt(eu[0], 0), tb.DeleteAt(eu[0], 2)
	res, err := between(t, fl, tb.Table, nil, func() {
		peerReplacesDeletes(t, fl, tb, []*model.File{a, b}, map[string][]int64{eu[0].Path: {2}})
	})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	cause(t, res.Reasons, "rows-came-back")
	files := physicalFiles(t, fl)
	require.Contains(t, files, eu[0].Path)
	require.NotContains(t, files, us[0].Path)
}

// F086, F077, F025: what a committed rewrite looks like in the manifests.
func TestF086EntriesOfACommit(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
		eu := small(tb, 1, 3, 4, "eu")
		keep := tb.File(tb.R(int64(70), "us"))
		gone := tb.File(tb.R(int64(71), "us"))
		_, err := tb.Table.Overwrite(t.Context(), gone.RowsAt(0), nil, model.Options{KeepDead: true})
		require.NoError(t, err)
		was := map[string]*model.Entry{}
		for _, e := range tb.Head("").DataFiles() {
			was[e.File.Path] = e
		}
		old := map[string]bool{}
		for _, m := range tb.Head("").Manifests {
			old[m.Path] = true
		}
		res := done(t, fl, nil)
		sound(t, fl, tb.Table)
		head := tb.Head("")
		removed, carried := 0, 0
		for _, m := range head.Manifests {
			if old[m.Path] {
				carried++
				continue
			}
			for _, e := range m.Entries {
				w := was[e.File.Path]
				switch e.Status {
				case model.Deleted:
					removed++
					require.Equal(t, head.ID, e.Snapshot)
					require.Equal(t, w.Seq, e.Seq)
					require.Equal(t, w.FileSeq, e.FileSeq)
					require.Equal(t, w.FirstRowID, e.FirstRowID)
				case model.Existing:
					require.Equal(t, w.Snapshot, e.Snapshot)
					require.Equal(t, w.Seq, e.Seq)
				default:
					require.Equal(t, head.ID, e.Snapshot)
				}
			}
		}
		require.Equal(t, len(eu), removed)
		require.Positive(t, carried)
		require.Contains(t, dataFiles(tb.Table), keep.Path)
		require.Equal(t, int64(carried), int64(len(head.Manifests))-res.Counters["manifests-created"])
	})
}

// F132: deletes go exactly when they can hit nothing any more.
func TestF132DeletesThatLeave(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
		eu, us := small(tb, 1, 3, 4, "eu"), small(tb, 100, 1, 4, "us")
		tb.EqualityDelete([]string{"id", "region"}, tb.R(int64(3), "eu"))
		late := tb.File(tb.R(int64(80), "eu"))
		tb.EqualityDelete([]string{"id", "region"}, tb.R(int64(101), "us"))
		tb.DeleteAt(eu[1], 0)
		tb.DeleteAt(us[0], 3)
		if version == 2 {
			tb.DeleteScoped(model.PerPartition, eu[0].RowsAt(3)[0], eu[2].RowsAt(1)[0])
		}
		res := done(t, fl, nil)
		sound(t, fl, tb.Table)
		require.NotContains(t, dataFiles(tb.Table), late.Path)
		left := deleteFiles(tb.Table)
		require.Len(t, left, 2, "those of us stay")
		for _, d := range left {
			require.Equal(t, "us", fmt.Sprint(d.File.Partition[1000]))
		}
		want := int64(2)
		if version == 2 {
			want = 3
		}
		require.Equal(t, want, res.Counters["delete-files-removed"])
	})
}

// F132: an equality delete stays while an older file of its scope lives that the
// commit does not touch, on whatever head.
func TestF132DeleteStaysForAFileThatIsNotTouched(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version})
		big := tb.FileWith(model.Options{Layout: model.Layout{Codec: "uncompressed", Plain: true}}, many(tb, 5000, 4000)...)
		small(tb, 1, 3, 4, "eu")
		tb.EqualityDelete([]string{"id"}, tb.R(int64(3), nil), tb.R(int64(5001), nil))
		res, err := runCompact(t.Context(), fl, map[string]string{"target_file_size_mb": "1", "min_file_size_percent": "1"})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status, res.Message)
		sound(t, fl, tb.Table)
		require.Contains(t, dataFiles(tb.Table), big.Path)
		require.Len(t, deleteFiles(tb.Table), 1)
	})
}

func many(tb *model.Scene, from, n int) []model.Row {
	var out []model.Row
	for i := range n {
		out = append(out, tb.R(int64(from+i), fmt.Sprintf("region-%d", i)))
	}
	return out
}

// F139: a unit whose rows are all deleted writes no file.
func TestF139NoRowsNoFile(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
		eu := small(tb, 1, 2, 2, "eu")
		small(tb, 100, 2, 2, "us")
		tb.Delete(slices.Concat(eu[0].RowsAt(0, 1), eu[1].RowsAt(0, 1))...)
		res := done(t, fl, nil)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Len(t, dataFiles(tb.Table), 1)
		require.Equal(t, int64(4), res.Counters["rows-deleted"])
		require.Empty(t, deleteFiles(tb.Table))
	})
}

// F136: keys of the last snapshot's summary are not taken over, and the totals
// are carried on.
func TestF136SummaryIsTheCommitsOwn(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2})
	f := small(tb, 1, 2, 3, "eu")
	tb.AppendWith(model.Options{Summary: map[string]string{"wap.id": "w", "flink.max-committed-checkpoint-id": "9"}}, tb.R(int64(50), "eu"))
	tb.DeleteAt(f[0], 1)
	done(t, fl, nil)
	sound(t, fl, tb.Table)
	v, err := iceberg.Load(t.Context(), fl, tableID)
	require.NoError(t, err)
	s := v.Metadata.Current().Summary()
	require.NotContains(t, s, "wap.id")
	require.NotContains(t, s, "flink.max-committed-checkpoint-id")
	for k, want := range map[string]string{
		"operation": "replace", "added-data-files": "1", "deleted-data-files": "3", "added-records": "6", "deleted-records": "7",
		"removed-delete-files": "1", "removed-position-delete-files": "1", "removed-position-deletes": "1",
		"total-data-files": "1", "total-records": "6", "total-delete-files": "0", "total-position-deletes": "0", "changed-partition-count": "1",
	} {
		require.Equal(t, want, s[k], k)
	}
}

// physicalFiles are the live data files of the head, as manifests say.
func physicalFiles(t testing.TB, fl *filertest.Filer) []string {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, tableID)
	require.NoError(t, err)
	var out []string
	for m, err := range manifests.OfSnapshot(t.Context(), fl, v.Locations, v.Metadata.Current()) {
		require.NoError(t, err)
		for e, err := range manifests.EntriesOf(t.Context(), fl, v.Locations, m, manifests.ReadOptions{}) {
			require.NoError(t, err)
			if e.Live() && e.Content == manifests.Data {
				out = append(out, e.Path)
			}
		}
	}
	return out
}
