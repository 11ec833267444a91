package rewritemanifests_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

// P5: a table was raised to v3 and nothing written since, so no row has an id.
// While the manifests are rewritten somebody appends, which gives every row one.
// The ids that readers of that snapshot saw stay.
func TestP5RowIDsGivenMeanwhileStay(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 2, "region", 7)
	require.NoError(t, tb.Upgrade(t.Context(), 3))
	var before model.Rows
	_, err := between(t, fl, tb, func() {
		r, err := tb.Row(int64(900), "new", 1.0)
		require.NoError(t, err)
		_, err = tb.Append(t.Context(), []model.Row{r}, model.Options{})
		require.NoError(t, err)
		before, err = model.ReadRows(t.Context(), fl, tb.ID, model.View{Lineage: true})
		require.NoError(t, err)
	})
	require.NoError(t, err)
	check(t, tb)
	after, err := model.ReadRows(t.Context(), fl, tb.ID, model.View{Lineage: true})
	require.NoError(t, err)
	require.Empty(t, model.Diff(before, after))
}
