package expire_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

var cleaning = map[string]string{"max_snapshots_to_keep": "1", "clean_expired_metadata": "true"}

// TestCleanRemovesUnusedSchemasAndSpecs and keeps those that a retained
// snapshot, or a file in it, was written with.
func TestCleanRemovesUnusedSchemasAndSpecs(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{Spec: "region"})
	first := tb.File(tb.R(int64(0), "a")) // schema 0, spec 0
	tb.Respec("bucket[4](id)")
	tb.Add("extra", "string")
	tb.Append(tb.R(int64(1), "a", "x")) // schema 1, spec 1
	tb.Overwrite(tb.By("id", int64(1)))
	tb.Respec("region, bucket[8](id)")
	tb.Add("more", "string")
	tb.Append(tb.R(int64(2), "a", "x", "y")) // schema 2, spec 2
	pass(fl, 30)

	plain := fl.Fork()
	finished(t, plain, fewest)
	require.Equal(t, [2][]int{{0, 1, 2}, {0, 1, 2}}, schemasAndSpecs(t, plain))

	res := finished(t, fl, cleaning)
	require.Equal(t, res.Predicted, *res.Actual, "O9")
	require.Equal(t, int64(2), res.Counters["schemas-removed"])
	require.Equal(t, int64(1), res.Counters["specs-removed"])
	require.Equal(t, [2][]int{{2}, {0, 2}}, schemasAndSpecs(t, fl))
	there(t, fl, first.At)
	require.Len(t, retained(t, fl, tb.Table), 1)
}

func schemasAndSpecs(t *testing.T, fl *filertest.Filer) [2][]int {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	var out [2][]int
	for _, s := range v.Metadata.Schemas {
		out[0] = append(out[0], s.ID)
	}
	for i := range v.Metadata.Specs {
		out[1] = append(out[1], v.Metadata.Specs[i].ID())
	}
	return out
}

// TestF067DroppedPartitionColumnKeepsItsType: the spec of a retained file has a
// source column that only an unused schema knows.
func TestF067DroppedPartitionColumnKeepsItsType(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{Spec: "region"})
	tb.Append(tb.R(int64(0), "a"))
	tb.Respec("bucket[4](id)")
	tb.Add("extra", "string")
	tb.Do(tb.DropColumn(t.Context(), "region"))
	tb.Add("more", "string")
	tb.Append(tb.R(int64(1), "x", "y"))
	pass(fl, 30)
	finished(t, fl, cleaning)
	got := schemasAndSpecs(t, fl)
	require.Equal(t, []int{1, 3}, got[0], "the newest with the column, and the current one")
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	spec, err := v.Metadata.PartitionType(0)
	require.NoError(t, err)
	require.NotNil(t, spec.Fields[0].Result)
	retained(t, fl, tb.Table)
}

// TestCleanKeepsColumnsOfEqualityDeletes: a delete by a column that was dropped
// is still read.
func TestCleanKeepsColumnsOfEqualityDeletes(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	tb.Append(tb.R(int64(0), "a"), tb.R(int64(1), "b"))
	tb.EqualityDelete([]string{"region"}, tb.R(int64(9), "b"))
	tb.Do(tb.DropColumn(t.Context(), "region"))
	tb.Append(tb.R(int64(2)))
	pass(fl, 30)
	finished(t, fl, cleaning)
	require.Equal(t, []int{0, 1}, schemasAndSpecs(t, fl)[0])
}

// TestCleanFollowsTheHead: what was committed or tagged since planning counts,
// specs and files alike.
func TestCleanFollowsTheHead(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{Spec: "region"})
	file := tb.File(tb.R(int64(0), "a"))
	tagged := tb.Head("").ID
	tb.Overwrite(tb.By("id", int64(0)))
	tb.Respec("bucket[4](id)")
	appends(tb, 1, 2) // the last one has no manifest of the first spec
	pass(fl, 30)
	p := plan(t, runner(fl), cleaning)
	alone := fl.Fork()
	finished(t, alone, cleaning)
	require.Equal(t, []int{1}, schemasAndSpecs(t, alone)[1])
	for name, meanwhile := range map[string]func(tb *model.Table) error{
		"tag": func(tb *model.Table) error { return tb.CreateTag(t.Context(), "late", tagged, model.Retention{}) },
		"append": func(tb *model.Table) error {
			spec := iceberg.SpecID(0)
			row, err := tb.Row(int64(5), "z")
			require.NoError(t, err)
			_, err = tb.Append(t.Context(), []model.Row{row}, model.Options{Layout: model.Layout{Spec: &spec}})
			return err
		},
	} {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stored=%v", name, stored), func(t *testing.T) {
				fl := fl.Fork()
				tb := tb.Fork(fl)
				q := request(cleaning)
				if stored {
					q.Plan = reread(t, p)
				}
				q.Planned = func(ops.Plan) error { return meanwhile(tb) }
				res, err := first(runner(fl).Run(t.Context(), q))
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, res.Message)
				require.Equal(t, []int{0, 1}, schemasAndSpecs(t, fl)[1])
				retained(t, fl, tb)
				require.Equal(t, name == "tag", fl.Exists(file.At))
			})
		}
	}
}

// TestF084EmbeddedManifestsKeepAllSpecs: metadata does not say under which spec
// the manifests were written that a v1 snapshot names itself.
func TestF084EmbeddedManifestsKeepAllSpecs(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{Version: 1, EmbeddedManifests: true})
	tb.Respec("bucket[4](id)")
	tb.Append(tb.R(int64(0), "a"))
	tb.Respec("bucket[8](id)")
	tb.Append(tb.R(int64(1), "a"))
	pass(fl, 30)
	res := finished(t, fl, cleaning)
	require.Equal(t, int64(1), res.Counters["snapshots-expired"])
	require.Equal(t, []int{0, 1, 2}, schemasAndSpecs(t, fl)[1])
}
