package expire_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// reader is an operation that reads its planning snapshot while it runs, as a
// rewrite does.
type reader struct {
	// meanwhile is called between its plan and its execution.
	meanwhile func()
}

type readerPlan struct{ head ops.Header }

func (p *readerPlan) Head() ops.Header             { return p.head }
func (p *readerPlan) Empty() bool                  { return false }
func (p *readerPlan) Summary() string              { return "reads" }
func (p *readerPlan) MarshalJSON() ([]byte, error) { return json.Marshal(p.head) }

func (reader) Plan(_ context.Context, in ops.Input) (*readerPlan, error) {
	base, err := commit.BaseOf(in.View, iceberg.MainBranch)
	return &readerPlan{ops.Header{Format: ops.PlanFormat, Operation: config.Compact, Base: base, PlannedAt: in.Now}}, err
}

func (r reader) Execute(ctx context.Context, p *readerPlan, st *commit.Stage, _ ops.Progress) (ops.Work, error) {
	v, err := iceberg.Load(ctx, st.Reader(), id)
	if err != nil {
		return ops.Work{}, err
	}
	base, _ := v.Snapshot(p.head.Base.Snapshot)
	r.meanwhile()
	for m, err := range manifests.OfSnapshot(ctx, st.Reader(), st.Locations(), base) {
		if err != nil {
			return ops.Work{}, err
		}
		for _, err := range manifests.EntriesOf(ctx, st.Reader(), st.Locations(), m, manifests.ReadOptions{}) {
			if err != nil {
				return ops.Work{}, err
			}
		}
	}
	return ops.Work{Change: commit.Change{
		Operation: "compact", Base: p.head.Base,
		Rebuild: func(_ context.Context, head *iceberg.View, _ *commit.Stage) (commit.Next, error) {
			e := head.Metadata.Edit()
			e.SetProperties(map[string]string{"read": "all"})
			return commit.Next{Edit: e}, nil
		},
	}}, nil
}

func bound(meanwhile func()) ops.Operation {
	return ops.Bind[*readerPlan](config.Compact, reader{}, reader{meanwhile}, nil)
}

// TestF101RunningPlanKeepsItsSnapshot: in one worker, expiry waits for the run
// whose snapshot it would expire; the run of another worker fails and leaves
// nothing behind.
func TestF101RunningPlanKeepsItsSnapshot(t *testing.T) {
	set := map[string]string{"max_snapshots_to_keep": "1", "trash_retention_hours": "0"}
	world := func(t *testing.T) (*filertest.Filer, *model.Scene, func()) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{})
		appends(tb, 0, 1)
		pass(fl, 30)
		return fl, tb, func() {
			tb.Overwrite(tb.By("id", int64(0)), tb.R(int64(1), "b"))
			pass(fl, 30)
		}
	}
	compact := request(nil)
	compact.Only = []ops.Kind{config.Compact}

	t.Run("one worker", func(t *testing.T) {
		fl, tb, moveOn := world(t)
		expired := make(chan ops.Result, 1)
		started := make(chan struct{})
		r := runner(fl, bound(func() {
			moveOn()
			close(started)
			// The expiry must not get between: it would find something to do.
			select {
			case <-expired:
				t.Error("expired under a running plan")
			default:
			}
		}))
		done := make(chan error, 1)
		go func() {
			<-started
			res, err := first(r.Run(t.Context(), request(set)))
			expired <- res
			done <- err
		}()
		res, err := first(r.Run(t.Context(), compact))
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status)
		require.NoError(t, <-done)
		require.Equal(t, ops.Finished, (<-expired).Status)
		require.Len(t, retained(t, fl, tb.Table), 1)
	})
	t.Run("two workers", func(t *testing.T) {
		fl, tb, moveOn := world(t)
		other := runner(fl.Reopen())
		res, err := first(runner(fl, bound(func() {
			moveOn()
			res, err := first(other.Run(t.Context(), request(set)))
			require.NoError(t, err)
			require.Equal(t, ops.Finished, res.Status)
		})).Run(t.Context(), compact))
		require.Error(t, err)
		require.Equal(t, ops.Failed, res.Status)
		require.Len(t, retained(t, fl, tb.Table), 1)
		require.Empty(t, tb.Property("read"))
	})
}
