package expire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// TestRandomHistories expires in tables with random histories, other writers'
// styles and spellings included: what is retained reads as before, what only
// expired snapshots had is gone, predictions hold, and a second run finds
// nothing. The seed is the subtest's name.
func TestRandomHistories(t *testing.T) {
	seeds := measure.Rounds(60)
	expired := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			g, err := model.Random(t.Context(), fl, seed, model.RandomOptions{Steps: 25, Config: model.Config{ID: id, Clock: fl.Virtual()}})
			require.NoError(t, err)
			tb := g.Table
			if tb.Version() > 2 && slices.ContainsFunc(tb.Snapshots(), func(s *model.Snapshot) bool { return s.List == "" }) {
				t.Skip("a v3 table with snapshots of v1 that embed their manifests is refused when it is read")
			}
			pass(fl, 30)
			before := tb.Live()
			q := worker.Request{Table: tb.ID, Only: []ops.Kind{config.ExpireSnapshots}, Layers: config.Layers{Flags: map[string]string{
				"max_snapshots_to_keep": fmt.Sprint(1 + seed%3), "clean_expired_metadata": fmt.Sprint(seed%2 == 0),
			}}}
			r := runner(fl)
			res, err := first(r.Run(t.Context(), q))
			require.NoError(t, err, "%v", g.Log)
			if res.Status == ops.NothingToDo {
				return
			}
			require.Equal(t, ops.Finished, res.Status, res.Message)
			require.Empty(t, res.Warnings)
			require.Equal(t, res.Predicted, *res.Actual, "O9")
			expired += int(res.Counters["snapshots-expired"])
			retained(t, fl, tb)
			after := tb.Live()
			for p := range before {
				if !after[p] && !strings.HasSuffix(p.Name(), ".metadata.json") {
					require.False(t, fl.Exists(p), "%s is left", p)
				}
			}
			res, err = first(r.Run(t.Context(), q))
			require.NoError(t, err)
			require.Equal(t, ops.NothingToDo, res.Status, "O4")
		})
	}
	require.Positive(t, expired)
}
