package model_test

import (
	"context"
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/compaction"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

// compact rewrites all data files with iceberg-go.
func compact(ctx context.Context, t *testing.T, tb *icetable.Table) {
	t.Helper()
	tasks, err := tb.Scan().PlanFiles(ctx)
	require.NoError(t, err)
	cfg := compaction.DefaultConfig()
	cfg.MinInputFiles = 2
	plan, err := cfg.PlanCompaction(tasks)
	require.NoError(t, err)
	require.NotEmpty(t, plan.Groups)
	tx := tb.NewTransaction()
	var groups []icetable.CompactionTaskGroup
	for _, g := range plan.Groups {
		groups = append(groups, icetable.CompactionTaskGroup{PartitionKey: g.PartitionKey, Tasks: g.Tasks, TotalSizeBytes: g.TotalSizeBytes})
	}
	_, err = tx.RewriteDataFiles(ctx, groups, icetable.RewriteDataFilesOptions{PartialProgress: true})
	require.NoError(t, err) // partial progress has committed
}

func TestRefreshTakesInTheCommitsOfOthers(t *testing.T) {
	for version := 2; version <= 3; version++ {
		for _, spec := range []string{"", "bucket[2](id)"} {
			t.Run(fmt.Sprintf("v%d %s", version, spec), func(t *testing.T) {
				ctx := t.Context()
				fl := filertest.New(filertest.Options{})
				s := model.NewScene(t, fl, model.Config{Version: version, Spec: spec})
				for i := range 4 {
					s.Append(s.R(10*i, "a"), s.R(10*i+1, "b"), s.R(10*i+2, "c"), s.R(10*i+3, "c"), s.R(10*i+4, "c"))
				}
				s.Delete(s.By("id", 1, 11, 21)...)
				s.Upsert([]string{"id"}, s.R(2, "C"))
				before := s.Head("")

				peer, err := model.Peer(ctx, fl, s.ID, fl.Virtual(), 1)
				require.NoError(t, err)
				compact(ctx, t, peer)
				require.NoError(t, s.Refresh(ctx))
				head := s.Head("")
				require.True(t, head.Foreign)
				require.NotEqual(t, before.ID, head.ID)
				require.Equal(t, before.Rows, head.Rows, "rows are known again in the new files")
				s.Verify()

				// the model goes on from there
				s.Delete(s.By("id", 3, 12)...)
				s.Upsert([]string{"id"}, s.R(30, "z"), s.R(99, "new"))
				s.Overwrite(s.By("id", 4))
				s.Verify()

				peer, err = model.Peer(ctx, fl, s.ID, fl.Virtual(), 2)
				require.NoError(t, err)
				tx := peer.NewTransaction()
				require.NoError(t, tx.Delete(ctx, icego.EqualTo(icego.Reference("name"), "z"), nil))
				_, err = tx.Commit(ctx)
				require.NoError(t, err)
				require.NoError(t, s.Refresh(ctx))
				require.Empty(t, s.By("name", "z"))
				s.Verify()
			})
		}
	}
}

// A rewrite that changes rows must not pass for one.
func TestRefreshRefusesARewriteWithOtherRows(t *testing.T) {
	ctx := t.Context()
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{})
	s.Append(s.R(1, "a"))
	other := s.Fork(fl)
	rows := []model.Row{s.R(2, "b")}
	_, err := other.Append(ctx, rows, model.Options{})
	require.NoError(t, err)
	require.NoError(t, other.Edit(ctx, func(d map[string]any) {
		list := d["snapshots"].([]any)
		list[len(list)-1].(map[string]any)["summary"].(map[string]any)["operation"] = "replace"
	}))
	require.ErrorContains(t, s.Refresh(ctx), `"b"`)
}

func TestForkKnowsNothingOfTheOther(t *testing.T) {
	ctx := t.Context()
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{Version: 3})
	s.Append(s.R(1, "a"), s.R(2, "b"))
	start := fl.Snapshot()
	var heads []string
	for range 2 {
		fl.Restore(start)
		f := s.Fork(fl)
		_, err := f.VectorDelete(ctx, f.Head("").Rows[:1], model.Options{})
		require.NoError(t, err)
		require.NoError(t, model.Check(ctx, f))
		heads = append(heads, fmt.Sprint(f.Head("").ID))
	}
	require.Equal(t, heads[0], heads[1], "the same state goes on in the same way")
	fl.Restore(start)
	require.Len(t, s.Head("").Rows, 2)
	s.Verify()
}

// iceberg-go refuses these manifests; the model must still follow the table.
func TestRefreshReadsWhatIcebergGoRefuses(t *testing.T) {
	for name, style := range map[string]model.Style{"unknown field": {UnknownField: true}, "deletes as data": {DeletesAsData: true}} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			fl := filertest.New(filertest.Options{})
			s := model.NewScene(t, fl, model.Config{Style: style, Spec: "bucket[2](id)"})
			s.Append(s.R(1, "a"), s.R(2, "b"), s.R(3, "c"))
			other := s.Fork(fl)
			rows := other.Head("").Rows
			_, err := other.PositionDelete(ctx, rows[:2], model.PerFile, model.Options{})
			require.NoError(t, err)
			_, err = other.Rewrite(ctx, []*model.File{other.Head("").DataFiles()[0].File}, model.Options{})
			require.NoError(t, err)
			s.Verify()
			require.Equal(t, other.Head("").Rows, s.Head("").Rows)
			require.NotEmpty(t, s.ReaderGap(model.View{Snapshot: s.Snapshots()[1].ID}))
			_, err = model.ReadRows(ctx, fl, s.ID, model.View{Snapshot: s.Snapshots()[1].ID})
			require.Error(t, err, "when iceberg-go has learnt to read it, the gap can go")
		})
	}
}
