package model_test

import (
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

func TestSchemaEvolutionReadsBack(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, model.Config{Version: version, Schema: schema(t, "id long!, n int, f float, d decimal(5,2), s string")})
			add := func(values ...any) {
				t.Helper()
				_, err := w.Append(ctx, []model.Row{must[model.Row](t)(w.Row(values...))}, model.Options{})
				require.NoError(t, err)
			}
			add(1, 10, 0.1, "1.25", "a")
			require.NoError(t, w.Promote(ctx, "n", icego.Int64Type{}))
			require.NoError(t, w.Promote(ctx, "f", icego.Float64Type{}))
			require.NoError(t, w.Promote(ctx, "d", icego.DecimalTypeOf(12, 2)))
			add(2, 1<<40, 0.2, "123456.25", "b")
			require.NoError(t, w.RenameColumn(ctx, "s", "text"))
			_, err := w.AddColumn(ctx, model.Column{Name: "extra", Type: icego.StringType{}})
			require.NoError(t, err)
			add(3, 3, 0.3, "3.00", "c", "new")
			require.NoError(t, w.DropColumn(ctx, "text"))
			id, err := w.AddColumn(ctx, model.Column{Name: "text", Type: icego.StringType{}})
			require.NoError(t, err)
			require.EqualValues(t, 7, id, "a column added again is another column")
			add(4, 4, 0.4, "4.00", nil, "again")
			require.NoError(t, w.MoveFirst(ctx, "extra"))
			require.NoError(t, w.MakeOptional(ctx, "id"))
			if version == 3 {
				_, err := w.AddColumn(ctx, model.Column{Name: "def", Type: icego.Int32Type{}, Initial: 7, Default: 8})
				require.NoError(t, err)
				add("x", 5)
				require.NoError(t, w.SetDefault(ctx, "def", 9))
				add("y", 6)
			}
			w.check()
			rows, err := w.Expect(model.View{})
			require.NoError(t, err)
			require.Equal(t, len(w.Head("").Rows), rows.Len())
			if version == 3 {
				require.Contains(t, rows, `{6:null 1:1 2:10 3:0.10000000149011612 4:125e-2 7:null 8:7}`)
				require.Contains(t, rows, `{6:"x" 1:5 2:null 3:null 4:null 7:null 8:8}`)
			}
		})
	}
}

func TestSpecEvolutionKeepsFieldIDs(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, model.Config{Spec: "day(ts)"})
	snap := must[iceberg.SnapshotID](t)
	snap(w.Append(ctx, w.rows(8, 0), model.Options{}))
	must[iceberg.SpecID](t)(w.SetSpec(ctx, "region, day(ts)"))
	snap(w.Append(ctx, w.rows(8, 8), model.Options{}))
	must[iceberg.SpecID](t)(w.SetSpec(ctx, ""))
	snap(w.Append(ctx, w.rows(8, 16), model.Options{}))
	old := iceberg.SpecID(0)
	snap(w.Upsert(ctx, w.rows(2, 0), []iceberg.FieldID{1}, nil, model.Options{Layout: model.Layout{Spec: &old}}))
	snap(w.PositionDelete(ctx, w.ids(3, 9, 20), model.PerPartition, model.Options{}))
	snap(w.EqualityDelete(ctx, w.rows(3, 4), []iceberg.FieldID{1}, model.Options{}))
	w.check()
	require.Equal(t, 1000, w.Specs()[0].Field(0).FieldID)
	one := w.Specs()[1]
	require.Equal(t, []int{1001, 1000}, []int{one.Field(0).FieldID, one.Field(1).FieldID})
	require.Len(t, w.Head("").Rows, 24-2-3-3)
}

func TestUpgradeAssignsLineage(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, model.Config{Version: 1, Spec: "region"})
	snap := must[iceberg.SnapshotID](t)
	snap(w.Append(ctx, w.rows(6, 0), model.Options{}))
	w.check()
	require.NoError(t, w.Upgrade(ctx, 2))
	snap(w.PositionDelete(ctx, w.ids(0, 1), model.PerPartition, model.Options{}))
	snap(w.Append(ctx, w.rows(3, 6), model.Options{}))
	w.check()
	require.NoError(t, w.Upgrade(ctx, 3))
	w.check()
	snap(w.VectorDelete(ctx, w.ids(3), model.Options{}))
	snap(w.Append(ctx, w.rows(3, 9), model.Options{}))
	snap(w.Overwrite(ctx, w.ids(6), w.rows(1, 6), model.Options{}))
	w.check()
	for _, e := range w.Head("").DataFiles() {
		require.NotNil(t, e.FirstRowID)
	}
}

func TestRefsRollbackAndStagedSnapshots(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, model.Config{Version: 3})
	snap := must[iceberg.SnapshotID](t)
	s1 := snap(w.Append(ctx, w.rows(4, 0), model.Options{}))
	require.NoError(t, w.CreateTag(ctx, "v1", 0, model.Retention{MaxRefAgeMs: 1000}))
	require.NoError(t, w.CreateBranch(ctx, "dev", s1, model.Retention{MinSnapshotsToKeep: 2}))
	snap(w.Append(ctx, w.rows(2, 10), model.Options{Branch: "dev"}))
	snap(w.Append(ctx, w.rows(2, 20), model.Options{}))
	staged := snap(w.Append(ctx, w.rows(1, 30), model.Options{Staged: "job-1"}))
	require.Len(t, w.Head("").Rows, 6)
	require.Len(t, w.Head("dev").Rows, 6)
	require.Len(t, w.Head("v1").Rows, 4)
	w.check()
	snap(w.CherryPick(ctx, staged, model.Options{}))
	require.Len(t, w.Head("").Rows, 7)
	w.check()
	require.NoError(t, w.Rollback(ctx, "", s1))
	snap(w.VectorDelete(ctx, w.ids(2), model.Options{}))
	require.Len(t, w.Head("").Rows, 3)
	_, err := w.SetStatistics(ctx, s1)
	require.NoError(t, err)
	w.check()
	require.NoError(t, w.DropSnapshots(ctx, staged))
	require.NoError(t, w.RemoveRef(ctx, "v1"))
	require.Error(t, w.DropSnapshots(ctx, w.Head("").ID))
	require.Nil(t, w.Snapshot(staged))
	w.check()
}

func TestSpellingsOfPathsReadBack(t *testing.T) {
	for s := model.S3; s <= model.Escaped; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, model.Config{Version: 2, Spec: "region", Spelling: s})
			snap := must[iceberg.SnapshotID](t)
			rows := w.rows(4, 0)
			rows[0][2] = "50% of a/b?"
			rows[1][2] = "ü \\ +"
			snap(w.Append(ctx, rows, model.Options{}))
			snap(w.PositionDelete(ctx, w.ids(2), model.PerFile, model.Options{}))
			w.check()
		})
	}
}

func TestOldTablesReadBack(t *testing.T) {
	ctx := t.Context()
	snap := must[iceberg.SnapshotID](t)
	for name, cfg := range map[string]model.Config{
		"F084 embedded manifests": {Version: 1, EmbeddedManifests: true, Spec: ""},
		"bare v1":                 {Version: 1, BareV1: true, EmbeddedManifests: true},
		"F083 legacy names":       {Version: 2, Style: model.LegacyJava, Spec: "region"},
		"F080 null counts":        {Version: 1, Style: model.Style{NullCounts: true, NullSummaries: true}, Spec: "region"},
		"registered":              {Version: 2, Registered: true, LocationOnly: true},
		"unknown field":           {Version: 2, Style: model.Style{UnknownField: true, Codec: "zstandard"}},
		"snappy":                  {Version: 2, Style: model.Style{Codec: "snappy"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cfg)
			snap(w.Append(ctx, w.rows(4, 0), model.Options{Layout: model.Layout{Format: "parquet"}}))
			snap(w.Append(ctx, w.rows(4, 4), model.Options{}))
			snap(w.Overwrite(ctx, w.ids(1), nil, model.Options{}))
			w.check()
			if cfg.Version == 1 {
				require.NoError(t, w.Upgrade(ctx, 2))
				snap(w.Append(ctx, w.rows(1, 8), model.Options{}))
				snap(w.PositionDelete(ctx, w.ids(2), model.PerFile, model.Options{}))
			}
			w.check()
		})
	}
}

func TestF060FilesWithoutFieldIDsReadByNameMapping(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, model.Config{Version: 2})
	require.NoError(t, w.SetNameMapping(ctx))
	snap := must[iceberg.SnapshotID](t)
	snap(w.Append(ctx, w.rows(4, 0), model.Options{Layout: model.Layout{NoFieldIDs: true}}))
	snap(w.Append(ctx, w.rows(4, 4), model.Options{}))
	w.check()
}

func TestOmittedPartitionColumnReadsBack(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, model.Config{Version: 2, Spec: "region"})
	snap := must[iceberg.SnapshotID](t)
	snap(w.Append(ctx, w.rows(6, 0), model.Options{Layout: model.Layout{Omit: []iceberg.FieldID{2}}}))
	snap(w.Append(ctx, w.rows(6, 6), model.Options{}))
	w.check()
}

func TestEveryTypeReadsBack(t *testing.T) {
	ctx := t.Context()
	fields := schema(t, "id long!, a boolean, b int, c float, d double, e decimal(20,3), f date, g time, h timestamp, i timestamptz, "+
		"j timestamp_ns, k timestamptz_ns, l string, m uuid, n fixed[3], o binary").Fields()
	fields = append(fields,
		icego.NestedField{ID: 20, Name: "st", Type: &icego.StructType{FieldList: []icego.NestedField{
			{ID: 21, Name: "x", Type: icego.Int32Type{}}, {ID: 22, Name: "y", Type: icego.StringType{}},
		}}},
		icego.NestedField{ID: 23, Name: "li", Type: &icego.ListType{ElementID: 24, Element: icego.Float64Type{}}},
		icego.NestedField{ID: 25, Name: "mp", Type: &icego.MapType{KeyID: 26, KeyType: icego.StringType{}, ValueID: 27, ValueType: icego.Int64Type{}}},
		icego.NestedField{ID: 28, Name: "nothing", Type: icego.UnknownType{}},
	)
	w := newWorld(t, model.Config{Version: 3, Schema: icego.NewSchema(0, fields...)})
	snap := must[iceberg.SnapshotID](t)
	full := must[model.Row](t)(w.Row(1, true, -5, 1.5, 2.5, "-123.456", "1969-12-31", "23:59:59.999999", "1900-01-01T00:00:00.000001",
		"2262-01-01T00:00:00Z", "2020-02-29T01:02:03.123456789", "1970-01-01T00:00:00.000000001Z", "żółć", "0f0e0d0c-0b0a-4908-8706-050403020100",
		"abc", []byte{0, 255}, model.Row{21: 1, 22: "z"}, []model.Value{1.0, nil}, []model.Pair{{Key: "k", Value: nil}, {Key: "l", Value: 3}}))
	empty := must[model.Row](t)(w.Row(2))
	lists := must[model.Row](t)(w.Row(3))
	lists[23], lists[25], lists[20] = []model.Value{}, []model.Pair{}, model.Row{21: nil, 22: nil}
	snap(w.Append(ctx, []model.Row{full, empty, lists}, model.Options{}))
	snap(w.Append(ctx, []model.Row{full, empty, lists}, model.Options{Layout: model.Layout{Plain: true, RowGroupRows: 1}}))
	w.check()
}
