package expire_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/expire"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

var id = iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}

const day = 24 * time.Hour

func runner(fl *filertest.Filer, more ...ops.Operation) *worker.Runner {
	return worker.New(worker.Options{
		Filer: fl, Clock: fl.Virtual(), Tenancy: trash.NewReferences(fl), Registry: ops.NewRegistry(append(more, expire.New())...),
	})
}

func request(set map[string]string) worker.Request {
	return worker.Request{Table: id, Only: []ops.Kind{config.ExpireSnapshots}, Layers: config.Layers{Flags: set}}
}

func run(ctx context.Context, fl *filertest.Filer, set map[string]string) (ops.Result, error) {
	return first(runner(fl).Run(ctx, request(set)))
}

func first(res []ops.Result, err error) (ops.Result, error) {
	if len(res) == 0 {
		return ops.Result{}, err
	}
	return res[0], err
}

// finished runs the operation, which must have something to do.
func finished(t testing.TB, fl *filertest.Filer, set map[string]string) ops.Result {
	t.Helper()
	res, err := run(t.Context(), fl, set)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%s %v", res.Message, res.Reasons)
	return res
}

// nothing runs the operation, which must have nothing to do, and returns why.
func nothing(t testing.TB, fl *filertest.Filer, set map[string]string) []ops.Reason {
	t.Helper()
	before := fl.Dump()
	res, err := run(t.Context(), fl, set)
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res.Status, res.Message)
	require.NotEmpty(t, res.Reasons)
	require.Empty(t, before.Changes(fl.Dump()))
	return res.Reasons
}

// plan plans on the table as it is.
func plan(t testing.TB, r *worker.Runner, set map[string]string) *expire.Plan {
	t.Helper()
	p, err := tryPlan(t.Context(), r, set)
	require.NoError(t, err)
	return p
}

func tryPlan(ctx context.Context, r *worker.Runner, set map[string]string) (*expire.Plan, error) {
	at, err := r.Load(ctx, id, config.Layers{Flags: set})
	if err != nil {
		return nil, err
	}
	p, err := r.Plan(ctx, config.ExpireSnapshots, at)
	if err != nil {
		return nil, err
	}
	return p.(*expire.Plan), nil
}

func newTable(t testing.TB, fl *filertest.Filer, cfg model.Config) *model.Scene {
	t.Helper()
	cfg.ID = id
	if cfg.Schema == nil {
		cfg.Schema = model.Columns(t, "id long!, region string")
	}
	if cfg.Seed == 0 {
		cfg.Seed = 3
	}
	return model.NewScene(t, fl, cfg)
}

// pass lets days go by.
func pass(fl *filertest.Filer, days int) { fl.Virtual().Advance(time.Duration(days) * day) }

// appends makes n snapshots with one row each and returns them.
func appends(s *model.Scene, from, n int) []iceberg.SnapshotID {
	var out []iceberg.SnapshotID
	for i := range n {
		out = append(out, s.Append(s.R(int64(from+i), fmt.Sprintf("r%d", i%2))))
	}
	return out
}

// retained checks every retained snapshot and ref with a foreign reader, that
// every file one of them needs is there, and returns the snapshots' ids.
func retained(t testing.TB, fl *filertest.Filer, tb *model.Table) []iceberg.SnapshotID {
	t.Helper()
	require.NoError(t, tb.Refresh(t.Context()))
	require.NoError(t, model.Check(t.Context(), tb))
	whole(t, fl, tb)
	var out []iceberg.SnapshotID
	for _, s := range tb.Snapshots() {
		out = append(out, s.ID)
	}
	return out
}

// whole requires that nothing is missing that the metadata names.
func whole(t testing.TB, fl *filertest.Filer, tb *model.Table) {
	t.Helper()
	for p := range tb.Live() {
		require.True(t, fl.Exists(p), "%s is needed and gone", p)
	}
}

func reason(t testing.TB, all []ops.Reason, code string) ops.Reason {
	t.Helper()
	i := slices.IndexFunc(all, func(r ops.Reason) bool { return r.Code == code })
	require.GreaterOrEqual(t, i, 0, "no reason %s in %+v", code, all)
	return all[i]
}

func paths(files ...*model.File) []filer.Path {
	var out []filer.Path
	for _, f := range files {
		out = append(out, f.At)
	}
	return out
}

func gone(t testing.TB, fl *filertest.Filer, all ...filer.Path) {
	t.Helper()
	for _, p := range all {
		require.False(t, fl.Exists(p), "%s is still there", p)
	}
}

func there(t testing.TB, fl *filertest.Filer, all ...filer.Path) {
	t.Helper()
	for _, p := range all {
		require.True(t, fl.Exists(p), "%s is gone", p)
	}
}
