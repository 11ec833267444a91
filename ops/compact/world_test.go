package compact

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

var tableID = iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}

// operation is compact with tools of the test's choice, merging as SEAICE_COPYING says.
func operation(t tools) ops.Operation {
	return ops.Bind[*Plan](config.Compact, NewPlanner(nil), executor{tools: inMode(t)}, Decode)
}

func runnerWith(fl *filertest.Filer, o ops.Operation) *worker.Runner {
	return worker.New(worker.Options{Filer: fl, Clock: fl.Virtual(), Tenancy: trash.NewReferences(fl), Registry: ops.NewRegistry(o)})
}

func requestWith(set map[string]string) worker.Request {
	all := map[string]string{"min_input_files": "2"}
	for k, v := range set {
		all[k] = v
	}
	return worker.Request{Table: tableID, Only: []ops.Kind{config.Compact}, Layers: config.Layers{Flags: all}, Once: true}
}

func runCompact(ctx context.Context, fl *filertest.Filer, set map[string]string) (ops.Result, error) {
	return runTools(ctx, fl, realTools(), set)
}

func runTools(ctx context.Context, fl *filertest.Filer, tl tools, set map[string]string) (ops.Result, error) {
	res, err := runnerWith(fl, operation(tl)).Run(ctx, requestWith(set))
	if len(res) == 0 {
		return ops.Result{}, err
	}
	return res[0], err
}

// done runs the operation, which must commit.
func done(t testing.TB, fl *filertest.Filer, set map[string]string) ops.Result {
	t.Helper()
	res, err := runCompact(t.Context(), fl, set)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
	require.Empty(t, res.Warnings)
	return res
}

// scene is a table of the test's.
func scene(t testing.TB, fl *filertest.Filer, cfg model.Config) *model.Scene {
	t.Helper()
	cfg.ID = tableID
	if cfg.Schema == nil {
		cfg.Schema = model.Columns(t, "id long!, region string")
	}
	if cfg.Seed == 0 {
		cfg.Seed = 5
	}
	return model.NewScene(t, fl, cfg)
}

// between runs the operation with peer acting once, after the units were staged
// and before the first swap.
func between(t testing.TB, fl *filertest.Filer, tb *model.Table, set map[string]string, peer func()) (ops.Result, error) {
	t.Helper()
	return betweenWith(t, fl, realTools(), tb, set, peer)
}

func betweenWith(t testing.TB, fl *filertest.Filer, tl tools, tb *model.Table, set map[string]string, peer func()) (ops.Result, error) {
	t.Helper()
	record, acted := tb.Record(), false
	fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpUpdate && c.Path == record && !acted {
			acted = true
			peer()
		}
		return nil
	})
	defer fl.OnCall(nil)
	res, err := runTools(t.Context(), fl, tl, set)
	require.True(t, acted, "the swap was never tried: %v %+v", err, res)
	return res, err
}

// sound requires that the table reads as the model says, with a foreign reader,
// at every retained snapshot (O1, O6), that check finds nothing (O2, O7), and
// that no staged file is left (O3).
func sound(t testing.TB, fl *filertest.Filer, tb *model.Table) {
	t.Helper()
	require.NoError(t, tb.Refresh(t.Context()))
	require.NoError(t, model.Check(t.Context(), tb))
	for p := range tb.Live() {
		require.True(t, fl.Exists(p), "%s is needed and gone", p)
	}
	rep, err := check.Named(t.Context(), fl, tableID, check.Options{Deep: true})
	require.NoError(t, err)
	for _, f := range rep.Findings {
		require.NotEqual(t, check.Error, f.Severity, "%+v", f)
		require.NotContains(t, []check.Code{check.SummaryTotals, check.SummaryChanges, check.DeleteDangling}, f.Code, "%+v", f)
	}
}

// tidy requires that every file of the table is needed by a snapshot.
func tidy(t testing.TB, fl *filertest.Filer, tb *model.Table) {
	t.Helper()
	needed := tb.Live()
	for _, p := range fl.Files(tb.Root) {
		require.True(t, needed[p], "%s was left", p)
	}
}

func cause(t testing.TB, all []ops.Reason, code string) ops.Reason {
	t.Helper()
	i := slices.IndexFunc(all, func(r ops.Reason) bool { return r.Code == code })
	require.GreaterOrEqual(t, i, 0, "no reason %s in %+v", code, all)
	return all[i]
}

// small appends n files of rows rows each, ids from begin on.
func small(s *model.Scene, begin, n, rows int, region string) []*model.File {
	var out []*model.File
	for i := range n {
		var all []model.Row
		for k := range rows {
			all = append(all, s.R(int64(begin+i*rows+k), region))
		}
		out = append(out, s.File(all...))
	}
	return out
}

// dataFiles are the live data files of the head.
func dataFiles(tb *model.Table) []string {
	var out []string
	for _, e := range tb.Head("").DataFiles() {
		out = append(out, e.File.Path)
	}
	return out
}

func deleteFiles(tb *model.Table) []*model.Entry { return tb.Head("").DeleteFiles() }

// leaseOut lets the lease of whoever is dead run out.
func leaseOut(fl *filertest.Filer) { fl.Virtual().Advance(15 * time.Minute) }

// columnsNamed are the ids of top-level columns.
func columnsNamed(tb *model.Table, names ...string) []iceberg.FieldID {
	var out []iceberg.FieldID
	for _, n := range names {
		f, _ := tb.Schema().FindFieldByName(n)
		out = append(out, iceberg.FieldID(f.ID))
	}
	return out
}

// stillThere reports whether the inputs have not been replaced yet.
func stillThere(tb *model.Table, d *disturbed) bool {
	live := map[string]bool{}
	for _, e := range tb.Head("").DataFiles() {
		live[e.File.Path] = true
	}
	return live[d.eu[0].Path] && live[d.us[0].Path]
}
