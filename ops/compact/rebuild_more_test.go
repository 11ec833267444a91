package compact

import (
	"context"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
)

// An input that got row ids since planning has rows the outputs do not name: its
// unit goes (v3 lineage).
func TestRowIDsGivenMeanwhileDropTheUnit(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, us := twoRegions(t, fl, 2)
	tb.Do(tb.Upgrade(t.Context(), 3))
	res, err := between(t, fl, tb.Table, nil, func() { tb.Append(tb.R(int64(900), "asia")) })
	nothingStood(t, fl, tb.Table, res, err)
	require.Len(t, res.Reasons, 2)
	require.Contains(t, cause(t, res.Reasons, "input-changed").Text, "row ids")
	require.Contains(t, dataFiles(tb.Table), us[0].Path)
	// With ids, nothing stands in the way.
	done(t, fl, nil)
	sound(t, fl, tb.Table)
}

// A late equality delete that cannot apply to the outputs as they are is followed
// as positions: by a column that they do not have, or with a sequence number that
// is not above theirs.
func TestLateEqualityDeletesThatDoNotCarryOverAreTranslated(t *testing.T) {
	for name, dropped := range map[string]bool{"column": true, "sequence number": false} {
		t.Run(name, func(t *testing.T) {
			versions(t, 2, func(t *testing.T, version int) {
				fl := filertest.New(filertest.Options{})
				tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id long!, code int")})
				tb.File(tb.R(int64(1), int32(10)), tb.R(int64(2), int32(20)))
				tb.File(tb.R(int64(3), int32(10)), tb.R(int64(4), int32(40)))
				tb.Append(tb.R(int64(5), int32(10))) // not older than the second kind of delete
				code := columnsNamed(tb.Table, "code")
				var seq manifests.Opt[iceberg.SeqNum]
				if dropped {
					tb.Do(tb.DropColumn(t.Context(), "code"))
				} else {
					seq = manifests.Some(tb.Head("").Seq)
				}
				res := rebased(t, fl, tb.Table, func() { peerDeletesByKey(t, fl, tb, code[0], seq, 10) })
				want := []int64{0, 2, 4}
				if !dropped {
					want = want[:2]
				}
				require.Equal(t, int64(len(want)), res.Counters["rows-translated"])
				found := false
				for _, d := range deleteFiles(tb.Table) {
					if d.File.Content != model.EqualityDeletes {
						found = true
						require.Equal(t, want, d.File.Positions[d.File.Referenced])
					}
				}
				require.True(t, found)
			})
		})
	}
}

// F010: an equality delete of an unpartitioned spec applies to outputs of every
// spec, and comes in between like any other.
func TestF010GlobalEqualityDeleteAppliesToOutputs(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version})
		tb.Respec("region")
		small(tb, 1, 3, 4, "eu")
		small(tb, 100, 3, 4, "us")
		zero := iceberg.SpecID(0)
		res := rebased(t, fl, tb.Table, func() {
			_, err := tb.Table.EqualityDelete(t.Context(), []model.Row{tb.R(int64(2), nil), tb.R(int64(101), nil)}, columnsNamed(tb.Table, "id"),
				model.Options{Layout: model.Layout{Spec: &zero}})
			require.NoError(t, err)
		})
		require.Zero(t, res.Counters["rows-translated"])
		require.Len(t, deleteFiles(tb.Table), 1)
		require.Empty(t, tb.By("id", int64(2), int64(101)))
		// Once it is applied and no older file lives, it goes.
		done(t, fl, map[string]string{"delete_file_threshold": "1"})
		sound(t, fl, tb.Table)
		require.Empty(t, deleteFiles(tb.Table))
	})
}

// A branch of its own is compacted on its own.
func TestBranchIsCompacted(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, eu, _ := twoRegions(t, fl, version)
		tb.Branch("dev")
		tb.AppendWith(model.Options{Branch: "dev"}, tb.R(int64(700), "eu"))
		main := tb.Head("").ID
		res := done(t, fl, map[string]string{"branch": "dev"})
		sound(t, fl, tb.Table)
		require.Equal(t, int64(2), res.Counters["units"])
		require.Equal(t, main, tb.Head("").ID)
		require.Len(t, tb.Head("dev").DataFiles(), 2)
		require.Contains(t, dataFiles(tb.Table), eu[0].Path)
	})
}

// What was finished on a state that is no ancestor any more is not resumed, even
// though its inputs are live again as they were.
func TestResumedUnitNeedsItsBase(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2, Spec: "region"})
	small(tb, 1, 3, 4, "eu")
	before := tb.Head("").ID
	tb.Append(tb.R(int64(500), "us"))
	dies(t, fl, atSwap(tb))
	tb.Do(tb.Rollback(t.Context(), "", before))
	tb.Append(tb.R(int64(501), "us"))
	res, n := resumed(t, fl, tb.Table)
	require.Equal(t, int64(1), n)
	require.Zero(t, res.Counters["units-resumed"])
}

// P17: a rewrite that takes long, with a commit of properties meanwhile, is
// committed with the present time.
func TestP17LongRunCommitsWithThePresentTime(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	acted := false
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if !acted {
			acted = true
			fl.Virtual().Advance(90 * time.Second)
			tb.Set("x", "y")
			fl.Virtual().Advance(90 * time.Second)
		}
		return rewrite.Merge(ctx, q)
	}
	res, err := runTools(t.Context(), fl, tl, map[string]string{"memory_budget_mb": "64"})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	sound(t, fl, tb.Table)
	require.Equal(t, fl.Virtual().Now().Truncate(time.Millisecond), time.UnixMilli(tb.Head("").TimeMs).UTC())
	require.Equal(t, "y", tb.Property("x"))
}

// P1, P16: keys of an equality delete and of a data file of different widths,
// because the column was promoted in between, are equal; files of both widths
// are merged.
func TestP1P16PromotedColumns(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id int!, x float, d decimal(9,2)")})
		d := func(n int64) any { return icego.Decimal{Val: decimal128.FromI64(n), Scale: 2} }
		tb.File(tb.R(int32(1), float32(1.5), d(100)), tb.R(int32(2), float32(2.5), d(-200)))
		tb.Widen("id", "long")
		tb.Widen("x", "double")
		tb.Widen("d", "decimal(18,2)")
		tb.EqualityDelete([]string{"id"}, tb.R(int64(2)))
		tb.File(tb.R(int64(1)<<40, 3.25, d(1<<40)), tb.R(int64(2), 4.0, d(5)))
		done(t, fl, nil)
		sound(t, fl, tb.Table)
		require.Len(t, dataFiles(tb.Table), 1)
		require.Empty(t, deleteFiles(tb.Table))
		require.Len(t, tb.By("id", int64(2)), 1)
	})
}

// P26: an equality delete by a column that was dropped since does not keep the
// table from being compacted, and its rows stay deleted.
func TestP26DeleteByADroppedColumn(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id long!, code int")})
		tb.File(tb.R(int64(1), int32(10)), tb.R(int64(2), int32(20)))
		tb.File(tb.R(int64(3), int32(10)))
		tb.EqualityDelete([]string{"code"}, tb.R(int64(0), int32(10)))
		tb.Do(tb.DropColumn(t.Context(), "code"))
		done(t, fl, nil)
		sound(t, fl, tb.Table)
		require.Empty(t, deleteFiles(tb.Table))
		require.Len(t, dataFiles(tb.Table), 1)
	})
}

// With a vector no other delete by position applies: rows that only a position
// delete file deleted are back, and the unit that dropped them goes.
func TestVectorThatUncoversRowsDropsTheUnit(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, eu, us := twoRegions(t, fl, 2)
	tb.DeleteAt(eu[0], 0)
	tb.Do(tb.Upgrade(t.Context(), 3))
	tb.Append(tb.R(int64(900), "asia")) // gives all rows their ids
	res, err := between(t, fl, tb.Table, nil, func() { peerAddsVector(t, fl, tb, eu[0], 3) })
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	cause(t, res.Reasons, "rows-came-back")
	files := physicalFiles(t, fl)
	require.Contains(t, files, eu[0].Path)
	require.NotContains(t, files, us[0].Path)
}

// F005, F078: inputs are found again when a peer has moved their entries to other
// manifests.
func TestF005InputsMoveToOtherManifests(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb, _, _ := twoRegions(t, fl, version)
		res := rebased(t, fl, tb.Table, func() {
			tb.AppendWith(model.Options{MergeManifests: true}, tb.R(int64(900), "asia"))
		})
		require.Equal(t, int64(2), res.Counters["units"])
		require.Len(t, dataFiles(tb.Table), 3)
	})
}
