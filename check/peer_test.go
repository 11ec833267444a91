package check_test

import (
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/compaction"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

// TestCleanAfterIcebergGo has iceberg-go itself compact and delete.
func TestCleanAfterIcebergGo(t *testing.T) {
	for version := 2; version <= 3; version++ {
		for _, spec := range []string{"", "bucket[2](id)"} {
			t.Run(fmt.Sprintf("v%d %s", version, spec), func(t *testing.T) {
				ctx := t.Context()
				fl := filertest.New(filertest.Options{})
				s := model.NewScene(t, fl, model.Config{ID: tableID, Version: version, Spec: spec})
				for i := range 3 {
					s.Append(s.R(10*i, "a"), s.R(10*i+1, "b"), s.R(10*i+2, "c"), s.R(10*i+3, "z"))
				}
				s.Delete(s.By("id", 1, 11, 21)...)
				peer, err := model.Peer(ctx, fl, tableID, fl.Virtual(), 1)
				require.NoError(t, err)
				compact(t, peer)
				require.Empty(t, worse(deepCheck(t, fl, tableID)), "after a compaction")

				peer, err = model.Peer(ctx, fl, tableID, fl.Virtual(), 2)
				require.NoError(t, err)
				tx := peer.NewTransaction()
				require.NoError(t, tx.Delete(ctx, icego.EqualTo(icego.Reference("name"), "z"), nil))
				_, err = tx.Commit(ctx)
				require.NoError(t, err)
				require.Empty(t, worse(deepCheck(t, fl, tableID)), "after a delete")
			})
		}
	}
}

// compact rewrites all data files with iceberg-go.
func compact(t *testing.T, tb *icetable.Table) {
	t.Helper()
	tasks, err := tb.Scan().PlanFiles(t.Context())
	require.NoError(t, err)
	cfg := compaction.DefaultConfig()
	cfg.MinInputFiles = 2
	plan, err := cfg.PlanCompaction(tasks)
	require.NoError(t, err)
	require.NotEmpty(t, plan.Groups)
	var groups []icetable.CompactionTaskGroup
	for _, g := range plan.Groups {
		groups = append(groups, icetable.CompactionTaskGroup{PartitionKey: g.PartitionKey, Tasks: g.Tasks, TotalSizeBytes: g.TotalSizeBytes})
	}
	_, err = tb.NewTransaction().RewriteDataFiles(t.Context(), groups, icetable.RewriteDataFilesOptions{PartialProgress: true})
	require.NoError(t, err)
}
