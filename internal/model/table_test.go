package model_test

import (
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

const columns = "id long!, region string, ts timestamptz, amount decimal(12,2), x double"

func schema(t *testing.T, text string) *icego.Schema {
	t.Helper()
	s, err := model.ParseSchema(text)
	require.NoError(t, err)
	return s
}

// world is a table in a filer in memory.
type world struct {
	*model.Table
	t  *testing.T
	fl *filertest.Filer
}

func newWorld(t *testing.T, cfg model.Config) world {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	cfg.ID = iceberg.TableID{Bucket: "lake", Namespace: "sales.daily", Name: "orders"}
	cfg.Clock = fl.Virtual()
	if cfg.Schema == nil {
		cfg.Schema = schema(t, columns)
	}
	tb, err := model.NewTable(t.Context(), fl, cfg)
	require.NoError(t, err)
	return world{tb, t, fl}
}

func (w world) rows(n int, from int) []model.Row {
	w.t.Helper()
	var out []model.Row
	for i := range n {
		id := from + i
		row, err := w.Row(id, fmt.Sprintf("r%d", id%3), fmt.Sprintf("2026-01-%02dT10:00:00Z", 1+id%4), fmt.Sprintf("%d.25", id), float64(id)/2)
		require.NoError(w.t, err)
		out = append(out, row)
	}
	return out
}

// ids are the live rows of main with these values of column 1.
func (w world) ids(values ...int64) []model.RowID {
	w.t.Helper()
	out := w.Where("", func(r model.Row) bool {
		for _, v := range values {
			if r[1] == v {
				return true
			}
		}
		return false
	})
	require.Len(w.t, out, len(values))
	return out
}

// check compares the three answers at every snapshot and ref.
func (w world) check() {
	w.t.Helper()
	require.NoError(w.t, model.Check(w.t.Context(), w.Table))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func TestEveryVersionAndStyleReadsBack(t *testing.T) {
	styles := map[string]model.Style{"iceberg-go": model.IcebergGo, "plain": model.Plain, "java": model.JavaLike, "ours": model.Ours, "duckdb": model.DuckDBLike}
	for version := 1; version <= 3; version++ {
		for name, style := range styles {
			for _, spec := range []string{"", "region", "bucket[4](id), day(ts)", "truncate[2](region), void(x)"} {
				if testing.Short() && spec != "region" {
					continue
				}
				t.Run(fmt.Sprintf("v%d/%s/%s", version, name, spec), func(t *testing.T) {
					w := newWorld(t, model.Config{Version: version, Spec: spec, Style: style})
					snap := must[iceberg.SnapshotID](t)
					snap(w.Append(t.Context(), w.rows(10, 0), model.Options{}))
					snap(w.Append(t.Context(), w.rows(10, 10), model.Options{Layout: model.Layout{Files: 2, RowGroupRows: 3, Codec: "snappy"}}))
					w.check()
					switch version {
					case 2:
						snap(w.PositionDelete(t.Context(), w.ids(1, 12), model.PerFile, model.Options{}))
						snap(w.PositionDelete(t.Context(), w.ids(3, 6, 15), model.PerPartition, model.Options{}))
					case 3:
						snap(w.VectorDelete(t.Context(), w.ids(1, 12), model.Options{}))
						snap(w.VectorDelete(t.Context(), w.ids(2, 13), model.Options{}))
					}
					if version > 1 {
						snap(w.EqualityDelete(t.Context(), w.rows(1, 4), []iceberg.FieldID{1}, model.Options{}))
						snap(w.Upsert(t.Context(), w.rows(2, 7), []iceberg.FieldID{1}, w.rows(2, 7), model.Options{}))
					}
					snap(w.Overwrite(t.Context(), w.ids(0, 11), w.rows(2, 30), model.Options{}))
					var all []*model.File
					for _, e := range w.Head("").DataFiles() {
						all = append(all, e.File)
					}
					snap(w.Rewrite(t.Context(), all, model.Options{}))
					snap(w.RemoveFiles(t.Context(), []*model.File{w.Head("").DataFiles()[0].File}, model.Options{}))
					w.check()
				})
			}
		}
	}
}
