package expire_test

import (
	"context"
	"fmt"
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
	"github.com/seaice/seaice/worker"
)

var id = iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}

// alone is the tenancy of a cluster with one table.
type alone struct{}

func (alone) Allowed(_ context.Context, v *iceberg.View) (func(filer.Path) error, error) {
	return func(p filer.Path) error {
		if !v.Locations.Owned(p) {
			return fmt.Errorf("%s is not the table's", p)
		}
		return nil
	}, nil
}

func (alone) Foreign(context.Context, *iceberg.View, []filer.Path) (map[filer.Path]iceberg.TableID, error) {
	return nil, nil
}

func runner(fl *filertest.Filer) *worker.Runner {
	return worker.New(worker.Options{Filer: fl, Clock: fl.Virtual(), Tenancy: alone{}, Registry: ops.NewRegistry(expire.New())})
}

func run(ctx context.Context, fl *filertest.Filer, set map[string]string) (ops.Result, error) {
	res, err := runner(fl).Run(ctx, worker.Request{
		Table: id, Only: []ops.Kind{config.ExpireSnapshots}, Layers: config.Layers{Flags: set},
	})
	if len(res) == 0 {
		return ops.Result{}, err
	}
	return res[0], err
}

func newTable(t testing.TB, fl *filertest.Filer, version int) *model.Table {
	t.Helper()
	schema, err := model.ParseSchema("id long!, region string")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{ID: id, Version: version, Schema: schema, Spec: "region", Seed: 3, Clock: fl.Virtual()})
	require.NoError(t, err)
	return tb
}

func add(t testing.TB, tb *model.Table, o model.Options, ids ...int64) iceberg.SnapshotID {
	t.Helper()
	var rows []model.Row
	for _, n := range ids {
		r, err := tb.Row(n, fmt.Sprintf("r%d", n%2))
		require.NoError(t, err)
		rows = append(rows, r)
	}
	s, err := tb.Append(t.Context(), rows, o)
	require.NoError(t, err)
	return s
}

// check reads every retained snapshot and ref with a foreign reader.
func check(t testing.TB, tb *model.Table) {
	t.Helper()
	require.NoError(t, tb.Refresh(t.Context()))
	require.NoError(t, model.Check(t.Context(), tb))
}

func TestExpireRemovesWhatNothingReaches(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := newTable(t, fl, version)
			for i := range int64(8) {
				add(t, tb, model.Options{}, i*2, i*2+1)
			}
			gone := tb.Where("", func(r model.Row) bool { return r[1].(int64) < 4 })
			_, err := tb.Overwrite(t.Context(), gone, nil, model.Options{})
			require.NoError(t, err)
			fl.Virtual().Advance(30 * 24 * time.Hour)
			before := fl.Dump()
			res, err := run(t.Context(), fl, nil)
			require.NoError(t, err)
			require.Equal(t, ops.Finished, res.Status, res.Message)
			require.Empty(t, res.Warnings)
			check(t, tb)
			require.Len(t, tb.Snapshots(), 5)
			require.Equal(t, int64(5), res.Actual.After.Snapshots)
			require.Equal(t, res.Predicted.RemovedFiles, res.Actual.RemovedFiles, "O9")
			require.Equal(t, res.Predicted.RemovedBytes, res.Actual.RemovedBytes, "O9")
			require.Positive(t, res.Actual.RemovedFiles)
			require.Empty(t, before.Changes(fl.Dump(), tb.Record(), tb.Root, "/etc", "/buckets/lake/.seaice-trash"), "O10")
			again, err := run(t.Context(), fl, nil)
			require.NoError(t, err)
			require.Equal(t, ops.NothingToDo, again.Status, "O4")
			require.NotEmpty(t, again.Reasons)
		})
	}
}
