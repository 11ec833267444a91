package compact

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

// Partitions of a column that was widened are the same partitions, whichever
// type the manifests have them in: planned deletes, deletes that came in between
// and the deletes that go.
func TestF058WidenedPartitionColumn(t *testing.T) {
	dec := func(n int64) any { return icego.Decimal{Val: decimal128.FromI64(n), Scale: 2} }
	for name, c := range map[string]struct {
		from, to string
		old, now any
	}{
		"int":     {"int", "long", int32(7), int64(7)},
		"float":   {"float", "double", float32(1.5), 1.5},
		"decimal": {"decimal(9,2)", "decimal(18,2)", dec(-150), dec(-150)},
	} {
		t.Run(name, func(t *testing.T) {
			versions(t, 2, func(t *testing.T, version int) {
				fl := filertest.New(filertest.Options{})
				tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id long!, p "+c.from), Spec: "p"})
				a := tb.File(tb.R(int64(1), c.old), tb.R(int64(2), c.old), tb.R(int64(3), c.old))
				b := tb.File(tb.R(int64(4), c.old), tb.R(int64(5), c.old), tb.R(int64(6), c.old))
				tb.DeleteAt(a, 0)
				tb.EqualityDelete([]string{"id", "p"}, tb.R(int64(5), c.old))
				tb.Widen("p", c.to)
				d := tb.File(tb.R(int64(7), c.now), tb.R(int64(8), c.now), tb.R(int64(9), c.now))
				tb.EqualityDelete([]string{"id", "p"}, tb.R(int64(2), c.now))
				res, err := between(t, fl, tb.Table, nil, func() {
					tb.DeleteAt(b, 2)
					tb.DeleteAt(d, 1)
					tb.EqualityDelete([]string{"id", "p"}, tb.R(int64(3), c.now))
				})
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
				require.NoError(t, tb.Refresh(t.Context()))
				require.NoError(t, model.Check(t.Context(), tb.Table))
				require.Equal(t, int64(2), res.Counters["rows-translated"])
				require.Len(t, dataFiles(tb.Table), 1)
				require.Len(t, deleteFiles(tb.Table), 2)
			})
		})
	}
}

// F072: null, NaN, -0.0 and 0.0 are four partitions, whoever wrote the manifests
// and whatever their summaries say.
func TestF072FloatPartitions(t *testing.T) {
	t.Parallel()
	values := []any{nil, math.NaN(), math.Copysign(0, -1), 0.0, -1.5, math.Inf(1)}
	for name, style := range map[string]model.Style{"plain": model.Plain, "library": model.IcebergGo, "ours": model.Ours} {
		t.Run(name, func(t *testing.T) {
			versions(t, 1, func(t *testing.T, version int) {
				fl := filertest.New(filertest.Options{})
				tb := scene(t, fl, model.Config{Version: version, Style: style, Schema: model.Columns(t, "id long!, p double"), Spec: "p"})
				byPart := map[int][]*model.File{}
				for round := range 3 {
					for i, f := range perPartition(t, tb, 10*round, values) {
						byPart[i] = append(byPart[i], f)
					}
				}
				// One row of each partition by its place, and one by its key.
				deletes := func(file, at, key int) {
					var gone []model.RowID
					var keys []model.Row
					for i, v := range values {
						gone = append(gone, byPart[i][file].RowsAt(at)...)
						keys = append(keys, tb.R(int64(100*i+key), v))
					}
					tb.Delete(gone...)
					tb.EqualityDelete([]string{"id"}, keys...)
				}
				if version > 1 {
					deletes(0, 1, 12)
				}
				res, err := between(t, fl, tb.Table, nil, func() {
					if version == 1 {
						tb.Append(tb.R(int64(999), 0.0))
						return
					}
					deletes(2, 0, 21)
				})
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
				sound(t, fl, tb.Table)
				tidy(t, fl, tb.Table)
				require.Equal(t, int64(len(values)), res.Counters["units"], "%+v", res.Reasons)
				if version > 1 {
					require.Equal(t, int64(len(values)), res.Counters["rows-translated"])
				}
			})
		})
	}
}

// perPartition appends a file of three rows for each value of the second column, in
// one commit: many snapshots only take time to check. Ids begin at 100 for each
// value, and first.
func perPartition[T any](t testing.TB, tb *model.Scene, first int, values []T) []*model.File {
	t.Helper()
	var lists [][]model.Row
	for i, v := range values {
		n := int64(100*i + first)
		lists = append(lists, []model.Row{tb.R(n, v), tb.R(n+1, v), tb.R(n+2, v)})
	}
	return appended(t, tb, lists)
}

// Partition values that cannot be a name in a path, in tables that spell paths in
// every way.
func TestPartitionValuesThatAreNoNames(t *testing.T) {
	t.Parallel()
	values := []string{"a/b", "..", ".", "", "%2F", "a=b c", "null", "é日本", "x\\y", "s3://b/k", "a?b#c", "+", "~*"}
	for spelling := model.S3; spelling <= model.Escaped; spelling++ {
		t.Run(fmt.Sprintf("spelling %d", spelling), func(t *testing.T) {
			versions(t, 2, func(t *testing.T, version int) {
				if version == 3 && spelling != model.S3A {
					return
				}
				fl := filertest.New(filertest.Options{})
				tb := scene(t, fl, model.Config{Version: version, Spec: "region", Spelling: spelling})
				var files []*model.File
				for round := range 2 {
					files = append(files, perPartition(t, tb, 10*round, values)...)
				}
				deletes := func(files []*model.File, at int) {
					var gone []model.RowID
					for _, f := range files {
						gone = append(gone, f.RowsAt(at)...)
					}
					tb.Delete(gone...)
				}
				deletes(files[:len(values)], 1)
				res, err := between(t, fl, tb.Table, nil, func() { deletes(files[len(values):], 2) })
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
				sound(t, fl, tb.Table)
				tidy(t, fl, tb.Table)
				require.Equal(t, int64(len(values)), res.Counters["units"], "%+v", res.Reasons)
				again, err := runCompact(t.Context(), fl, nil)
				require.NoError(t, err)
				require.Equal(t, ops.NothingToDo, again.Status, again.Message)
			})
		})
	}
}

// A table from the first version on to the third, with manifests of each age and
// metadata that names them itself.
func TestF084UpgradedTable(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]model.Config{
		"embedded": {EmbeddedManifests: true}, "null counts": {Style: model.Style{NullCounts: true, NullSummaries: true}},
		"legacy": {Style: model.LegacyJava},
	} {
		t.Run(name, func(t *testing.T) {
			for last := 1; last <= 3; last++ {
				if last == 3 && cfg.EmbeddedManifests {
					continue // version 3 knows lists only
				}
				for _, commitFirst := range []bool{false, true} {
					t.Run(fmt.Sprintf("v%d %v", last, commitFirst), func(t *testing.T) {
						fl := filertest.New(filertest.Options{})
						c := cfg
						c.Version, c.Spec = 1, "region"
						tb := scene(t, fl, c)
						eu := small(tb, 1, 3, 4, "eu")
						us := small(tb, 100, 2, 4, "us")
						if last > 1 {
							tb.Do(tb.Upgrade(t.Context(), 2))
							if commitFirst {
								tb.DeleteAt(eu[0], 1)
								tb.EqualityDelete([]string{"id", "region"}, tb.R(int64(6), "eu"))
								tb.DeleteScoped(model.PerPartition, us[0].RowsAt(0)[0], us[1].RowsAt(1)[0])
								small(tb, 50, 1, 4, "eu")
							}
						}
						if last > 2 {
							tb.Do(tb.Upgrade(t.Context(), 3))
							if commitFirst {
								tb.DeleteAt(us[0], 2)
							}
						}
						peer := func() {
							if last > 1 {
								tb.DeleteAt(eu[1], 3)
							} else {
								tb.Append(tb.R(int64(77), "asia"))
							}
						}
						res, err := between(t, fl, tb.Table, nil, peer)
						require.NoError(t, err)
						if last == 3 && !commitFirst {
							// The peer's commit gave the inputs their row ids.
							require.Equal(t, ops.NothingToDo, res.Status)
							res = done(t, fl, nil)
						}
						require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
						sound(t, fl, tb.Table)
						tidy(t, fl, tb.Table)
						require.Equal(t, int64(2), res.Counters["units"], "%+v", res.Reasons)
					})
				}
			}
		})
	}
}

// A spec of void fields is one without fields to equality deletes, and one like
// any other to position deletes.
func TestF070VoidSpec(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
		eu, us := small(tb, 1, 2, 4, "eu"), small(tb, 100, 2, 4, "us")
		tb.Respec("void(region)")
		none := small(tb, 200, 2, 4, "eu")
		tb.EqualityDelete([]string{"id"}, tb.R(int64(2), nil), tb.R(int64(102), nil), tb.R(int64(202), nil))
		tb.DeleteAt(none[0], 3)
		tb.DeleteAt(eu[1], 3)
		again := small(tb, 2, 2, 1, "eu") // ids 2 and 3, after the delete
		res, err := between(t, fl, tb.Table, map[string]string{"max_partitions": "2"}, func() {
			tb.EqualityDelete([]string{"id"}, tb.R(int64(3), nil), tb.R(int64(103), nil), tb.R(int64(203), nil))
			tb.DeleteAt(none[1], 0)
			tb.DeleteAt(us[1], 0)
			tb.DeleteAt(again[0], 0)
		})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Equal(t, int64(2), res.Counters["units"])
		res = done(t, fl, map[string]string{"delete_file_threshold": "1"})
		sound(t, fl, tb.Table)
		require.Empty(t, deleteFiles(tb.Table), "%+v", res)
	})
}

// F066: the column of an old spec was dropped. Its files cannot be written again,
// and what deletes their rows stays, while those of the spec of today are
// compacted.
func TestF066DroppedPartitionColumn(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id long!, region string, x int"), Spec: "region"})
		old := tb.File(tb.R(int64(1), "eu", int32(1)), tb.R(int64(2), "eu", int32(2)))
		tb.File(tb.R(int64(3), "eu", int32(3)), tb.R(int64(4), "eu", int32(4)))
		tb.Respec("")
		tb.Do(tb.DropColumn(t.Context(), "region"))
		tb.File(tb.R(int64(5), int32(5)), tb.R(int64(6), int32(6)))
		tb.File(tb.R(int64(7), int32(7)), tb.R(int64(8), int32(8)))
		tb.EqualityDelete([]string{"id"}, tb.R(int64(3), nil), tb.R(int64(5), nil))
		tb.DeleteAt(old, 0)
		res, err := between(t, fl, tb.Table, nil, func() {
			tb.EqualityDelete([]string{"id"}, tb.R(int64(4), nil), tb.R(int64(8), nil))
			tb.DeleteAt(old, 1)
		})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
		cause(t, res.Reasons, "unwritable-spec")
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		require.Len(t, tb.Head("").Rows, 2)
	})
}
