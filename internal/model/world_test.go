package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

func TestTablesMayShareFiles(t *testing.T) {
	ctx := t.Context()
	fl := filertest.New(filertest.Options{})
	w := model.NewWorld(fl)
	create := func(bucket, name, spec string) *model.Table {
		t.Helper()
		tb, err := w.Create(ctx, model.Config{
			ID: iceberg.TableID{Bucket: bucket, Namespace: "ns", Name: name}, Clock: fl.Virtual(), Schema: schema(t, columns), Spec: spec,
		})
		require.NoError(t, err)
		return tb
	}
	a, b := create("lake", "a", "region"), create("other", "b", "")
	_, err := w.Create(ctx, model.Config{ID: a.ID})
	require.Error(t, err)
	_, err = a.Append(ctx, world{a, t, fl}.rows(6, 0), model.Options{})
	require.NoError(t, err)
	var files []*model.File
	for _, e := range a.Head("").DataFiles() {
		files = append(files, e.File)
	}
	_, err = b.AddFiles(ctx, files[:2], model.Options{})
	require.NoError(t, err)
	require.NoError(t, w.Check(ctx))
	require.Len(t, b.Head("").Rows, 4)
	require.True(t, b.Live()[files[0].At])

	_, err = b.PositionDelete(ctx, b.Head("").Rows[:1], model.PerFile, model.Options{})
	require.NoError(t, err)
	require.NoError(t, w.Check(ctx))
	require.Len(t, a.Head("").Rows, 6)

	fl.RemoveAll(files[0].At)
	err = w.Check(ctx)
	require.ErrorContains(t, err, "table lake/ns/a")
	require.ErrorContains(t, err, "table other/ns/b")
}
