package rewritemanifests_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
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
	return worker.New(worker.Options{
		Filer: fl, Clock: fl.Virtual(), Tenancy: alone{}, Registry: ops.NewRegistry(rewritemanifests.New()),
	})
}

func run(ctx context.Context, fl *filertest.Filer, set map[string]string) (ops.Result, error) {
	res, err := runner(fl).Run(ctx, worker.Request{
		Table: id, Only: []ops.Kind{config.RewriteManifests}, Layers: config.Layers{Flags: set},
	})
	if len(res) == 0 {
		return ops.Result{}, err
	}
	return res[0], err
}

// small is a table that is just worth a rewrite, for tests that run it often.
func small(t testing.TB, fl *filertest.Filer, version int) *model.Table {
	t.Helper()
	return grown(t, fl, version, "region", 7, 5)
}

// table makes a table with deletes and many commits.
func table(t testing.TB, fl *filertest.Filer, version int, spec string, seed uint64) *model.Table {
	t.Helper()
	return grown(t, fl, version, spec, seed, 12)
}

func grown(t testing.TB, fl *filertest.Filer, version int, spec string, seed uint64, commits int64) *model.Table {
	t.Helper()
	ctx := t.Context()
	schema, err := model.ParseSchema("id long!, region string, amount double")
	require.NoError(t, err)
	tb, err := model.NewTable(ctx, fl, model.Config{ID: id, Version: version, Schema: schema, Spec: spec, Seed: seed, Clock: fl.Virtual()})
	require.NoError(t, err)
	for i := range commits {
		var rows []model.Row
		for j := range int64(4) {
			r, err := tb.Row(i*10+j, fmt.Sprintf("r%d", (i+j)%5), float64(i)/3)
			require.NoError(t, err)
			rows = append(rows, r)
		}
		_, err := tb.Append(ctx, rows, model.Options{})
		require.NoError(t, err)
		if i%4 != 3 {
			continue
		}
		gone := tb.Where("", func(r model.Row) bool { return r[1].(int64)%7 == i%7 })
		switch version {
		case 2:
			_, err = tb.PositionDelete(ctx, gone, model.PerFile, model.Options{})
		case 3:
			_, err = tb.VectorDelete(ctx, gone, model.Options{})
		default:
			_, err = tb.Overwrite(ctx, gone, nil, model.Options{})
		}
		require.NoError(t, err)
	}
	return tb
}

func TestRewriteKeepsEveryRow(t *testing.T) {
	for version := 1; version <= 3; version++ {
		for _, spec := range []string{"", "region", "bucket[4](id), region"} {
			t.Run(fmt.Sprintf("v%d %s", version, spec), func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				tb := table(t, fl, version, spec, 7)
				lineage := version == 3
				before, err := model.ReadRows(t.Context(), fl, id, model.View{Lineage: lineage})
				require.NoError(t, err)
				res, err := run(t.Context(), fl, nil)
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, res.Message)
				require.NoError(t, tb.Refresh(t.Context()))
				require.NoError(t, model.Check(t.Context(), tb))
				after, err := model.ReadRows(t.Context(), fl, id, model.View{Lineage: lineage})
				require.NoError(t, err)
				require.Empty(t, model.Diff(before, after))
				require.Equal(t, res.Predicted.After.Manifests, res.Actual.After.Manifests)
				require.Equal(t, int64(len(tb.Head("").Manifests)), res.Actual.After.Manifests)
				require.Less(t, res.Actual.After.Manifests, res.Actual.Before.Manifests)
				require.Equal(t, res.Actual.Before.DataFiles, res.Actual.After.DataFiles)
				for _, m := range tb.Head("").Manifests {
					if m.Snapshot != tb.Head("").ID {
						continue
					}
					for _, e := range m.Entries {
						require.Equal(t, model.Existing, e.Status, "P11: carried entries are EXISTING")
					}
				}
				again, err := run(t.Context(), fl, nil)
				require.NoError(t, err)
				require.Equal(t, ops.NothingToDo, again.Status, "F130: %s", again.Message)
				require.NotEmpty(t, again.Reasons)
			})
		}
	}
}
