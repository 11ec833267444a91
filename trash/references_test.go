package trash_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/trash"
)

func tableIn(t *testing.T, fl *filertest.Filer, bucket, name, location string, seed uint64) *model.Table {
	t.Helper()
	schema, err := model.ParseSchema("id long!")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{
		ID: iceberg.TableID{Bucket: bucket, Namespace: "ns", Name: name}, Schema: schema, Seed: seed, Clock: fl.Virtual(), Location: location,
	})
	require.NoError(t, err)
	return tb
}

func addRow(t *testing.T, tb *model.Table, n int64) {
	t.Helper()
	r, err := tb.Row(n)
	require.NoError(t, err)
	_, err = tb.Append(t.Context(), []model.Row{r}, model.Options{})
	require.NoError(t, err)
}

// P10: a file in A's data directory that only a table in another bucket
// references is another table's; the built-in worker removes it.
func TestP10FilesOfOtherTables(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	a := tableIn(t, fl, "lake", "a", "", 1)
	addRow(t, a, 1)
	addRow(t, a, 2)
	b := tableIn(t, fl, "pond", "b", "", 2)
	addRow(t, b, 1)

	refs := trash.NewReferences(fl)
	v, err := iceberg.Load(t.Context(), fl, a.ID)
	require.NoError(t, err)
	other, err := refs.Foreign(t.Context(), v, []filer.Path{a.Head("").DataFiles()[0].File.At})
	require.NoError(t, err)
	require.Empty(t, other)

	// B names a file in A's data directory, as add_files and clones do.
	require.NoError(t, b.SetProperties(t.Context(), map[string]string{"write.data.path": a.Location() + "/data"}))
	addRow(t, b, 2)
	require.NoError(t, b.SetProperties(t.Context(), map[string]string{"write.data.path": ""}))
	var file filer.Path
	for _, e := range b.Head("").DataFiles() {
		if e.File.At.Within(a.Root) {
			file = e.File.At
		}
	}
	require.NotEmpty(t, file)
	other, err = refs.Foreign(t.Context(), v, []filer.Path{file, file + "x"})
	require.NoError(t, err)
	require.Equal(t, map[filer.Path]iceberg.TableID{file: b.ID}, other)
	named, err := refs.Referenced(t.Context(), file)
	require.NoError(t, err)
	require.True(t, named)
	named, err = refs.Referenced(t.Context(), file+"x")
	require.NoError(t, err)
	require.False(t, named)

	before := fl.ReadCounts()
	_, err = refs.Foreign(t.Context(), v, []filer.Path{file})
	require.NoError(t, err)
	for p, n := range fl.ReadCounts() {
		if strings.HasSuffix(string(p), ".avro") {
			require.Equal(t, before[p].Opens, n.Opens, "%s is read once", p)
		}
	}

	// A table that cannot be read may reference anything.
	w, err := iceberg.Load(t.Context(), fl, b.ID)
	require.NoError(t, err)
	list, err := w.Locations.Resolve(w.Metadata.Current().ManifestList)
	require.NoError(t, err)
	fl.RemoveAll(list)
	_, err = trash.NewReferences(fl).Foreign(t.Context(), v, []filer.Path{file})
	require.Error(t, err)
	require.Contains(t, fault.Message(err), "pond/ns/b")
}

func TestSharedLocationIsNobodysAlone(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	a := tableIn(t, fl, "lake", "a", "s3://lake/ns/shared", 1)
	addRow(t, a, 1)
	v, err := iceberg.Load(t.Context(), fl, a.ID)
	require.NoError(t, err)
	file := a.Head("").DataFiles()[0].File.At
	allowed, err := trash.NewReferences(fl).Allowed(t.Context(), v)
	require.NoError(t, err)
	require.NoError(t, allowed(file))
	require.Error(t, allowed("/buckets/lake/ns/elsewhere/x"))
	require.Error(t, allowed("/buckets/pond/ns/shared/x"))

	tableIn(t, fl, "pond", "b", "s3://lake/ns/shared/below", 2)
	allowed, err = trash.NewReferences(fl).Allowed(t.Context(), v)
	require.NoError(t, err)
	require.Error(t, allowed(file), "a table of another bucket lies below the location")
}
