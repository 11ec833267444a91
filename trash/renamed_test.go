package trash_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/trash"
)

// A table that borrows files is renamed while the tables are listed, from behind
// the place the listing is at to before it. Its files are not free for that.
func TestP10BorrowerRenamedDuringTheListing(t *testing.T) {
	for _, known := range []bool{true, false} {
		fl := filertest.New(filertest.Options{})
		a := tableIn(t, fl, "lake", "a", "", 1)
		addRow(t, a, 1)
		tableIn(t, fl, "lagoon", "other", "", 3)
		b := tableIn(t, fl, "pond", "b", "", 2)
		require.NoError(t, b.SetProperties(t.Context(), map[string]string{"write.data.path": a.Location() + "/data"}))
		addRow(t, b, 2)
		require.NoError(t, b.SetProperties(t.Context(), map[string]string{"write.data.path": ""}))
		file := b.Head("").DataFiles()[0].File.At
		v, err := iceberg.Load(t.Context(), fl, a.ID)
		require.NoError(t, err)
		refs := trash.NewReferences(fl)
		if known {
			got, err := refs.Foreign(t.Context(), v, []filer.Path{file})
			require.NoError(t, err)
			require.NotEmpty(t, got)
		}
		done := false
		fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Op == filertest.OpList && c.Path == b.Record().Dir() && !done {
				done = true
				fl.Rename(b.Record(), filer.Path("/buckets/pond/ms/b"))
				fl.SetAttributes("/buckets/pond/ms", attributesOf(t, fl, b.Record().Dir()))
			}
			return nil
		})
		got, err := refs.Foreign(t.Context(), v, []filer.Path{file})
		fl.OnCall(nil)
		require.True(t, done)
		if err == nil {
			require.NotEmpty(t, got, "known before: %v", known)
		}
	}
}

func attributesOf(t *testing.T, fl *filertest.Filer, p filer.Path) map[string][]byte {
	e, err := fl.Reopen().Stat(t.Context(), p)
	require.NoError(t, err)
	return e.Extended
}
