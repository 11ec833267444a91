package expire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

// TestEachManifestIsReadOnce: 1,000 snapshots share 2,000 manifests. Planning and
// execution together open each manifest and each list at most once, whether the
// plan is executed by the process that made it or was stored.
func TestEachManifestIsReadOnce(t *testing.T) {
	snapshots, shared := 1000, 2000
	if testing.Short() || measure.Race {
		snapshots, shared = 100, 200 // minutes otherwise
	}
	start := filertest.New(filertest.Options{})
	tb := synthetic(t, start, model.SyntheticOptions{
		Manifests: shared, EntriesPerManifest: 1, Snapshots: snapshots, Columns: -1, Tags: 4, Placeholders: true,
	})
	pass(start, 30)
	for _, stored := range []bool{false, true} {
		fl := start.Fork()
		q := request(map[string]string{"max_snapshots_to_keep": "10"})
		if stored {
			q.Plan = reread(t, plan(t, runner(start.Fork()), map[string]string{"max_snapshots_to_keep": "10"}))
		}
		res, err := first(runner(fl).Run(t.Context(), q))
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status, res.Message)
		require.Empty(t, res.Warnings)
		require.Equal(t, res.Predicted.RemovedFiles, res.Actual.RemovedFiles, "O9")
		opened := 0
		for p, n := range fl.ReadCounts() {
			if !strings.HasSuffix(p.Name(), ".avro") {
				continue
			}
			require.LessOrEqual(t, n.Opens, 1, "%s", p)
			opened++
		}
		require.Greater(t, opened, shared, "the shared manifests are read, because files were freed")
		// Its own file goes with every snapshot but the last ones and the tagged.
		gone(t, fl, tb.ChurnFile(2, 0), tb.ChurnFile(snapshots-20, 0))
		there(t, fl, tb.ChurnFile(snapshots-1, 0), tb.ChurnFile(snapshots/4, 0), tb.DataFile(0, 0), tb.DataFile(shared-1, 0))
	}
}

// TestNothingIsReadThatIsNotNeeded: snapshots that free no data file read no
// manifest that is retained, and a plan without work reads nothing at all.
func TestNothingIsReadThatIsNotNeeded(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	synthetic(t, fl, model.SyntheticOptions{Manifests: 20, Snapshots: 10, Churn: -1})
	nothing(t, fl, nil)
	require.Zero(t, avroOpens(fl, ""))
	pass(fl, 30)
	res := finished(t, fl, nil)
	require.Equal(t, int64(5), res.Actual.RemovedFiles, "the lists")
	require.Zero(t, avroOpens(fl, "m-"))
	require.Equal(t, 10, avroOpens(fl, "snap-"))
}

func avroOpens(fl *filertest.Filer, prefix string) int {
	n := 0
	for p, r := range fl.ReadCounts() {
		if strings.HasSuffix(p.Name(), ".avro") && strings.HasPrefix(p.Name(), prefix) {
			n += r.Opens
		}
	}
	return n
}
