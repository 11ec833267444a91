package expire_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/expire"
	"github.com/seaice/seaice/worker"
)

func TestExpireRemovesWhatNothingReaches(t *testing.T) {
	for version := 1; version <= 3; version++ {
		for _, clean := range []string{"false", "true"} {
			t.Run(fmt.Sprintf("v%d clean=%s", version, clean), func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				tb := newTable(t, fl, model.Config{Version: version, Spec: "region"})
				appends(tb, 0, 8)
				tb.Overwrite(tb.By("id", int64(1), int64(2)))
				pass(fl, 30)
				before := fl.Dump()
				res := finished(t, fl, map[string]string{"clean_expired_metadata": clean})
				require.Empty(t, res.Warnings)
				require.Len(t, retained(t, fl, tb.Table), 5)
				require.Equal(t, int64(5), res.Actual.After.Snapshots)
				require.Equal(t, res.Predicted, *res.Actual, "O9")
				require.Positive(t, res.Actual.RemovedFiles)
				require.Empty(t, before.Changes(fl.Dump(), tb.Record(), tb.Root, "/etc", "/buckets/lake/.seaice-trash"), "O10")
				reason(t, nothing(t, fl, nil), "kept-by-count") // O4
			})
		}
	}
}

// TestGCDisabledTouchesNothing: gc.enabled=false refuses the metadata, too,
// whether it was set before the plan or after it.
func TestGCDisabledTouchesNothing(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	appends(tb, 0, 8)
	pass(fl, 30)
	stored := plan(t, runner(fl), nil)
	require.False(t, stored.Empty())
	tb.Set("gc.enabled", "false")
	nothing(t, fl, nil)
	p := plan(t, runner(fl), nil)
	require.True(t, p.Empty())
	reason(t, p.Head().Reasons, "gc-disabled")

	// Nor may a plan from before be committed, however the settings were read.
	before := fl.Dump()
	q := request(nil)
	q.Plan = stored
	res, err := first(runner(fl).Run(t.Context(), q))
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res.Status)
	require.Empty(t, before.Changes(fl.Dump()))
}

func TestPropertyChangedSincePlanningIsStale(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	appends(tb, 0, 8)
	pass(fl, 30)
	for _, kind := range []string{"same process", "stored"} {
		t.Run(kind, func(t *testing.T) {
			fl := fl.Fork()
			q := request(nil)
			q.Plan = plan(t, runner(fl), nil)
			if kind == "stored" {
				q.Plan = reread(t, q.Plan)
			}
			other := tb.Fork(fl)
			require.NoError(t, other.SetProperties(t.Context(), map[string]string{"history.expire.min-snapshots-to-keep": "7"}))
			_, err := first(runner(fl).Run(t.Context(), q))
			require.ErrorContains(t, err, "history.expire.min-snapshots-to-keep")
			require.Equal(t, fault.Stale, fault.Of(err))
			require.Len(t, retained(t, fl, other), 8)
		})
	}
}

// reread is a plan as another process reads it.
func reread(t testing.TB, p ops.Plan) ops.Plan {
	t.Helper()
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	out, err := expire.New().Decode(raw)
	require.NoError(t, err)
	return out
}

func TestPlanRoundTripsAndIsExecutedLater(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := newTable(t, fl, model.Config{Version: version})
			appends(tb, 0, 7)
			tb.Overwrite(tb.By("id", int64(0)))
			pass(fl, 30)
			p := plan(t, runner(fl), nil)
			q := reread(t, p).(*expire.Plan)
			require.Equal(t, p.Head(), q.Head())
			require.Equal(t, p.Snapshots(), q.Snapshots())
			require.Equal(t, p.Refs(), q.Refs())
			require.Equal(t, p.Summary(), q.Summary())
			one, err := json.Marshal(p)
			require.NoError(t, err)
			two, err := json.Marshal(q)
			require.NoError(t, err)
			require.JSONEq(t, string(one), string(two))

			// Later, with the table gone on: what is old enough by now but was not
			// planned stays.
			pass(fl, 20)
			appends(tb, 100, 3)
			req := request(nil)
			req.Plan = q
			res, err := first(runner(fl).Run(t.Context(), req))
			require.NoError(t, err)
			require.Equal(t, ops.Finished, res.Status, res.Message)
			require.Empty(t, res.Warnings)
			require.Equal(t, p.Head().Effects.RemovedFiles, res.Actual.RemovedFiles)
			require.Equal(t, p.Head().Effects.RemovedBytes, res.Actual.RemovedBytes)
			require.Len(t, retained(t, fl, tb.Table), 5+3)
		})
	}
}

// TestPlanDigestIsThatOfTheDecision: the same state gives the same digest at
// another time, and an altered plan is refused.
func TestPlanDigestIsThatOfTheDecision(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	appends(tb, 0, 8)
	pass(fl, 30)
	p := plan(t, runner(fl), nil)
	fl.Virtual().Advance(day)
	require.Equal(t, p.Head().Digest, plan(t, runner(fl), nil).Head().Digest)
	require.NotEqual(t, p.Head().Digest, plan(t, runner(fl), map[string]string{"max_snapshots_to_keep": "6"}).Head().Digest)
	require.NotEqual(t, p.Head().Digest, plan(t, runner(fl), map[string]string{"keep_changelog": "true"}).Head().Digest)

	raw, err := json.Marshal(p)
	require.NoError(t, err)
	for _, alter := range []struct {
		field string
		value any
	}{
		{"snapshots", []int64{int64(tb.Head("").ID)}},
		{"refs", []string{"main"}},
		{"planned-at", "2030-01-01T00:00:00Z"},
		{"rules", map[string]any{"now": "2026-01-31T00:00:00Z", "max-age-ns": -1}},
		{"format", 2},
		{"operation", "compact"},
		{"digest", ""},
	} {
		var doc map[string]any
		require.NoError(t, json.Unmarshal(raw, &doc))
		doc[alter.field] = alter.value
		bad, err := json.Marshal(doc)
		require.NoError(t, err)
		_, err = expire.New().Decode(bad)
		require.Equal(t, fault.Unsupported, fault.Of(err), "%s: %v", alter.field, err)
	}
	for _, bad := range []string{"", "{", "null", `{"format":1,"operation":"expire_snapshots","snapshots":{}}`} {
		_, err := expire.New().Decode([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestDryRunShowsSnapshotsFilesAndBytes(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	appends(tb, 0, 6)
	tb.Overwrite(tb.By("id", int64(0)))
	pass(fl, 30)
	before := fl.Dump()
	q := request(nil)
	q.DryRun = true
	res, err := first(runner(fl).Run(t.Context(), q))
	require.NoError(t, err)
	require.Equal(t, ops.DryRun, res.Status)
	require.Empty(t, before.Changes(fl.Dump()))
	require.Equal(t, int64(7), res.Predicted.Before.Snapshots)
	require.Equal(t, int64(5), res.Predicted.After.Snapshots)
	require.Contains(t, res.Message, "7 -> 5 snapshots")
	done := finished(t, fl, nil)
	require.Equal(t, res.Predicted, *done.Actual, "O9")
}

// TestEmptyTableIsLeftAlone covers a table without snapshots.
func TestEmptyTableIsLeftAlone(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	newTable(t, fl, model.Config{})
	res, err := runner(fl).Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.ExpireSnapshots}})
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res[0].Status)
}
