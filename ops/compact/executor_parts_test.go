package compact

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
)

// fine makes plans whose parts are of one unit.
type fine struct{ ops.Planner[*Plan] }

func (f fine) Plan(ctx context.Context, in ops.Input) (*Plan, error) {
	p, err := f.Planner.Plan(ctx, in)
	if err == nil {
		p.leastPart = 1
	}
	return p, err
}

func inParts(tl tools) ops.Operation {
	return ops.Bind[*Plan](config.Compact, fine{NewPlanner(nil)}, executor{tools: inMode(tl)}, Decode)
}

// regions is a table with a unit for each region, of n.
func regions(t testing.TB, fl *filertest.Filer, version, n int) *model.Scene {
	t.Helper()
	tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
	for i := range n {
		small(tb, 1+100*i, 2, 3, fmt.Sprintf("r%d", i))
	}
	return tb
}

func TestPartsAreCommittedOneAfterTheOther(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := regions(t, fl, version, 3)
		before := len(tb.Snapshots())
		base := tb.Head("").Seq
		var heads []iceberg.SnapshotID
		tl := realTools()
		tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
			require.NoError(t, tb.Refresh(ctx))
			heads = append(heads, tb.Head("").ID)
			return rewrite.Merge(ctx, q)
		}
		all, err := runnerWith(fl, inParts(tl)).Run(t.Context(), requestWith(nil))
		require.NoError(t, err)
		res := all[0]
		require.Equal(t, ops.Finished, res.Status)
		require.Len(t, res.Parts, 3)
		require.Len(t, res.Proof, 3)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Len(t, tb.Snapshots(), before+3)
		require.NotEqual(t, heads[0], heads[1], "the first part does not wait for the last")
		require.Equal(t, int64(3), res.Counters["units"])
		require.Equal(t, int64(3), res.Actual.After.DataFiles)
		require.Equal(t, int64(6), res.Actual.Before.DataFiles)
		for _, e := range tb.Head("").DataFiles() {
			require.Equal(t, base, e.Seq, "every part keeps the planning sequence number")
		}
		n := 0
		for st, err := range journal.New(fl, fl.Virtual()).List(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, journal.Committed, st.Outcome())
			raw, err := st.Result(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, raw)
			n++
		}
		require.Equal(t, 3, n)
	})
}

// A part that was overtaken costs only itself.
func TestOvertakenPartLeavesTheOthers(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := regions(t, fl, 2, 3)
	victim := tb.Head("").DataFiles()[2].File
	n := 0
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if n++; n == 1 {
			tb.Overwrite(victim.RowsAt(0))
		}
		return rewrite.Merge(ctx, q)
	}
	all, err := runnerWith(fl, inParts(tl)).Run(t.Context(), requestWith(nil))
	require.NoError(t, err)
	res := all[0]
	require.Equal(t, ops.Finished, res.Status)
	cause(t, res.Reasons, "input-removed")
	require.Equal(t, int64(2), res.Counters["units"])
	sound(t, fl, tb.Table)
	tidy(t, fl, tb.Table)
	require.Equal(t, 2, n, "a unit whose input is gone is not merged for nothing")
}

// What stops the operation stops it between parts, and what was committed stays.
func TestStoppedBetweenParts(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := regions(t, fl, 2, 3)
	n := 0
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if n++; n == 2 {
			return rewrite.Result{}, fault.New(fault.Corrupt, "a page is damaged")
		}
		return rewrite.Merge(ctx, q)
	}
	all, err := runnerWith(fl, inParts(tl)).Run(t.Context(), requestWith(nil))
	require.Equal(t, fault.Corrupt, fault.Of(err))
	res := all[0]
	require.Equal(t, ops.PartlyDone, res.Status)
	require.Equal(t, fault.Corrupt, res.Kind)
	require.Len(t, res.Parts, 2)
	require.Equal(t, commit.Committed, res.Commit.Outcome)
	require.Equal(t, ops.Failed, res.Parts[1].Status)
	require.Equal(t, int64(1), res.Counters["units"])
	sound(t, fl, tb.Table)
	tidy(t, fl, tb.Table)
}

// A crash in the second part leaves what the first committed, and the next run
// resumes the rest in its first part.
func TestCrashBetweenPartsIsResumed(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := regions(t, fl, 2, 3)
	mortal, swaps := fl.Reopen(), 0
	mortal.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpUpdate && c.Path == tb.Record() {
			if swaps++; swaps == 2 {
				return &filertest.Fault{Mode: filertest.CrashBefore}
			}
		}
		return nil
	})
	_, err := runnerWith(mortal, inParts(realTools())).Run(t.Context(), requestWith(nil))
	require.Error(t, err)
	leaseOut(fl)
	n := 0
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		n++
		return rewrite.Merge(ctx, q)
	}
	all, err := runnerWith(fl, inParts(tl)).Run(t.Context(), requestWith(nil))
	require.NoError(t, err)
	require.Equal(t, ops.Finished, all[0].Status)
	require.Equal(t, int64(1), all[0].Counters["units-resumed"])
	require.Equal(t, 1, n)
	sound(t, fl, tb.Table)
	tidy(t, fl, tb.Table)
}

func TestPartsAreFewAndWhole(t *testing.T) {
	p := &Plan{header: ops.Header{Digest: "d"}}
	for i := range 1000 {
		p.units = append(p.units, Unit{ID: fmt.Sprint(i), Inputs: []Input{{Bytes: 1 << 30}}, TargetBytes: 1})
	}
	parts := p.Parts()
	require.Len(t, parts, mostParts)
	n := 0
	for i, x := range parts {
		part := x.(*Plan)
		require.Equal(t, fmt.Sprintf("d-%d", i+1), part.Head().Digest)
		require.Same(t, p, part.whole)
		for _, u := range part.units {
			require.Equal(t, fmt.Sprint(n), u.ID)
			n++
		}
	}
	require.Equal(t, 1000, n)
	one := &Plan{units: p.units[:3]}
	require.Equal(t, []ops.Plan{one}, one.Parts())
}
