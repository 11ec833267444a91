package compact

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

// TestSmallFilesBecomeOne: the plain case, in every format version.
func TestSmallFilesBecomeOne(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
			small(tb, 1, 4, 3, "eu")
			small(tb, 100, 3, 2, "us")
			res := done(t, fl, nil)
			sound(t, fl, tb.Table)
			require.Len(t, dataFiles(tb.Table), 2)
			require.Equal(t, int64(7), res.Counters["data-files-removed"])
			require.Equal(t, int64(2), res.Counters["data-files-added"])
			require.Equal(t, int64(18), res.Counters["rows-written"])
			require.Equal(t, "replace", tb.Head("").Operation)
			for _, e := range tb.Head("").DataFiles() {
				require.Equal(t, model.Added, e.Status)
				require.Equal(t, tb.Head("").ID, e.Snapshot)
			}
			require.Equal(t, int64(2), res.Actual.After.DataFiles)
			require.Equal(t, int64(18), res.Actual.After.Rows)
			require.Equal(t, res.Predicted.After.DataFiles, res.Actual.After.DataFiles)
			require.Equal(t, res.Predicted.After.Manifests, res.Actual.After.Manifests)
			require.Len(t, res.Proof, 1)
			var p proof
			require.NoError(t, json.Unmarshal(res.Proof[0], &p))
			require.Len(t, p.Units, 2)
			// O4: planning again finds nothing.
			before := fl.Dump()
			again, err := runCompact(t.Context(), fl, nil)
			require.NoError(t, err)
			require.Equal(t, ops.NothingToDo, again.Status)
			require.Empty(t, before.Changes(fl.Dump()))
		})
	}
}
