package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

func TestMain(m *testing.M) {
	// weed's packages start these two when they are linked.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/seaweedfs/seaweedfs/weed/glog.(*loggingT).flushDaemon"),
		goleak.IgnoreAnyFunction("github.com/seaweedfs/seaweedfs/weed/stats.bucketMetricTTLControl"))
}

var id = iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "t"}

// fakePlan and fakeOp are an operation that sets a property, and fails where a
// test tells it to.
type fakePlan struct {
	header ops.Header
	empty  bool
}

func (p *fakePlan) Head() ops.Header             { return p.header }
func (p *fakePlan) Empty() bool                  { return p.empty }
func (p *fakePlan) Summary() string              { return "set a property" }
func (p *fakePlan) MarshalJSON() ([]byte, error) { return json.Marshal(p.header) }

type fakeOp struct {
	kind    ops.Kind
	empty   bool
	plan    func() error
	execute func(context.Context, *commit.Stage) error
	rebuild func() error
	after   func(context.Context, ops.Done) (ops.Actual, error)
	runs    int
}

func (o *fakeOp) Kind() ops.Kind { return o.kind }

func (o *fakeOp) Plan(_ context.Context, in ops.Input) (ops.Plan, error) {
	if o.plan != nil {
		if err := o.plan(); err != nil {
			return nil, err
		}
	}
	base, err := commit.BaseOf(in.View, in.Settings.Branch)
	return &fakePlan{header: ops.Header{Format: ops.PlanFormat, Operation: o.kind, Base: base, Digest: "d"}, empty: o.empty}, err
}

func (o *fakeOp) Execute(ctx context.Context, p ops.Plan, st *commit.Stage, _ ops.Progress) (ops.Work, error) {
	o.runs++
	if o.execute != nil {
		if err := o.execute(ctx, st); err != nil {
			return ops.Work{}, err
		}
	}
	return ops.Work{After: o.after, Change: commit.Change{
		Operation: string(o.kind), Base: p.Head().Base,
		Rebuild: func(_ context.Context, head *iceberg.View, _ *commit.Stage) (commit.Next, error) {
			if o.rebuild != nil {
				if err := o.rebuild(); err != nil {
					return commit.Next{}, err
				}
			}
			e := head.Metadata.Edit()
			e.SetProperties(map[string]string{"seaice.fake": string(o.kind)})
			return commit.Next{Edit: e}, nil
		},
	}}, nil
}

func (o *fakeOp) Decode([]byte) (ops.Plan, error) { return nil, errors.New("not stored") }

type world struct {
	fl    *filertest.Filer
	table *model.Table
	ops   []*fakeOp
	ends  []ops.Result
}

func newWorld(t *testing.T, props map[string]string, all ...*fakeOp) *world {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	schema, err := model.ParseSchema("id long!")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{ID: id, Schema: schema, Seed: 1, Clock: fl.Virtual(), Properties: props})
	require.NoError(t, err)
	row, err := tb.Row(int64(1))
	require.NoError(t, err)
	_, err = tb.Append(t.Context(), []model.Row{row}, model.Options{})
	require.NoError(t, err)
	return &world{fl: fl, table: tb, ops: all}
}

func (w *world) runner(e worker.Events) *worker.Runner {
	var list []ops.Operation
	for _, o := range w.ops {
		list = append(list, o)
	}
	mine := worker.Events{End: func(r ops.Result) { w.ends = append(w.ends, r) }}
	return worker.New(worker.Options{
		Filer: w.fl, Clock: w.fl.Virtual(), Registry: ops.NewRegistry(list...), Tenancy: trash.NewReferences(w.fl), Events: worker.Listeners(mine, e),
	})
}

func (w *world) run(t *testing.T, q worker.Request) ([]ops.Result, error) {
	t.Helper()
	q.Table = id
	return w.runner(worker.Events{}).Run(t.Context(), q)
}

func TestEveryEndHasAResult(t *testing.T) {
	boom := fault.New(fault.TooLarge, "boom")
	for _, c := range []struct {
		name   string
		op     fakeOp
		q      worker.Request
		status ops.Status
		kind   fault.Kind
		closed journal.Outcome
	}{
		{name: "done", status: ops.Finished, closed: journal.Committed},
		{name: "nothing", op: fakeOp{empty: true}, status: ops.NothingToDo},
		{name: "dry run", q: worker.Request{DryRun: true}, status: ops.DryRun},
		{name: "plan fails", op: fakeOp{plan: func() error { return boom }}, status: ops.Failed, kind: fault.TooLarge},
		{name: "plan panics", op: fakeOp{plan: func() error { panic("x") }}, status: ops.Failed, kind: fault.Halt},
		{name: "execute fails", op: fakeOp{execute: func(context.Context, *commit.Stage) error { return boom }}, status: ops.Failed, kind: fault.TooLarge, closed: journal.Refused},
		{name: "execute panics", op: fakeOp{execute: func(context.Context, *commit.Stage) error { panic("x") }}, status: ops.Failed, kind: fault.Halt, closed: journal.Refused},
		{name: "rebuild fails", op: fakeOp{rebuild: func() error { return boom }}, status: ops.Failed, kind: fault.TooLarge, closed: journal.Refused},
		{name: "refused by the caller", q: worker.Request{Planned: func(ops.Plan) error { return boom }}, status: ops.Failed, kind: fault.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			op := c.op
			op.kind = config.ExpireSnapshots
			w := newWorld(t, nil, &op)
			c.q.Only = []ops.Kind{op.kind}
			before := w.table.MetadataLocation()
			res, err := w.run(t, c.q)
			require.Len(t, res, 1)
			require.Equal(t, c.status, res[0].Status)
			require.Equal(t, c.kind, fault.Of(err))
			require.Equal(t, c.kind, res[0].Kind)
			require.NotEmpty(t, res[0].Message)
			require.Equal(t, res, w.ends)
			require.NoError(t, w.table.Refresh(t.Context()))
			require.Equal(t, c.status == ops.Finished, before != w.table.MetadataLocation())
			n := 0
			for st, err := range journal.New(w.fl, w.fl.Virtual()).List(t.Context()) {
				require.NoError(t, err)
				n++
				require.Equal(t, c.closed, st.Outcome())
				raw, err := st.Result(t.Context())
				require.NoError(t, err)
				var stored ops.Result
				require.NoError(t, json.Unmarshal(raw, &stored))
				require.Equal(t, c.status, stored.Status)
			}
			require.Equal(t, c.closed != journal.NoOutcome, n == 1)
		})
	}
}

// An answer that is lost for good leaves everything as it is, and the next run
// finds out.
func TestUnknownOutcomeIsResolvedByTheNextRun(t *testing.T) {
	op := &fakeOp{kind: config.ExpireSnapshots}
	w := newWorld(t, nil, op)
	record, swapped := w.table.Record(), false
	w.fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Path == record && c.Op == filertest.OpUpdate {
			swapped = true
			return &filertest.Fault{Mode: filertest.AfterEffect}
		}
		if c.Path == record && swapped {
			return &filertest.Fault{Mode: filertest.BeforeEffect}
		}
		return nil
	})
	res, err := w.run(t, worker.Request{Only: []ops.Kind{op.kind}})
	require.Equal(t, fault.Unknown, fault.Of(err))
	require.Equal(t, ops.OutcomeUnknown, res[0].Status)
	require.NotEmpty(t, res[0].Kept)
	for _, p := range res[0].Kept {
		require.True(t, w.fl.Exists(filer.Path(p)))
	}
	w.fl.OnCall(nil)
	op.empty = true
	w.fl.Virtual().Advance(time.Minute)
	_, err = w.run(t, worker.Request{Only: []ops.Kind{op.kind}})
	require.NoError(t, err)
	for st, err := range journal.New(w.fl, w.fl.Virtual()).List(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, journal.Committed, st.Outcome())
	}
}

func TestWhatStopsTheSequence(t *testing.T) {
	for _, c := range []struct {
		err   error
		stops bool
	}{
		{fault.New(fault.TooLarge, "x"), false}, {fault.New(fault.Stale, "x"), false}, {fault.New(fault.Unsupported, "x"), false},
		{fault.New(fault.Corrupt, "x"), true}, {fault.New(fault.Halt, "x"), true}, {fault.New(fault.Unknown, "x"), true},
	} {
		first := &fakeOp{kind: config.RewriteManifests, plan: func() error { return c.err }}
		second := &fakeOp{kind: config.ExpireSnapshots}
		w := newWorld(t, nil, first, second)
		res, err := w.run(t, worker.Request{Only: []ops.Kind{first.kind, second.kind}})
		require.Error(t, err)
		require.Equal(t, c.stops, len(res) == 1, "%v", fault.Of(c.err))
		require.Equal(t, c.stops, second.runs == 0)
	}
}

// F101: one operation at a time on a table, in one process.
func TestF101OneOperationAtATime(t *testing.T) {
	inside, most := 0, 0
	op := &fakeOp{kind: config.ExpireSnapshots, execute: func(context.Context, *commit.Stage) error {
		inside++
		most = max(most, inside)
		inside--
		return nil
	}}
	w := newWorld(t, nil, op)
	r := w.runner(worker.Events{})
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			_, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{op.kind}})
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	require.Equal(t, 1, most)
	require.Equal(t, cap(done), op.runs)
}

func TestSettingsOfTheTableAreObeyed(t *testing.T) {
	op := &fakeOp{kind: config.ExpireSnapshots}
	w := newWorld(t, map[string]string{"maintenance.enabled": "false"}, op)
	res, err := w.run(t, worker.Request{Only: []ops.Kind{op.kind}})
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res[0].Status)
	require.Zero(t, op.runs)

	w = newWorld(t, map[string]string{"history.expire.min-snapshots-to-keep": "many"}, op)
	_, err = w.run(t, worker.Request{Only: []ops.Kind{op.kind}})
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.Contains(t, err.Error(), "history.expire.min-snapshots-to-keep")
	require.Zero(t, op.runs)
}

// Removal goes through one door, which knows gc.enabled and other tables.
func TestRemovalIsGuarded(t *testing.T) {
	for _, gc := range []string{"true", "false"} {
		op := &fakeOp{kind: config.RewriteManifests}
		w := newWorld(t, map[string]string{"gc.enabled": gc}, op)
		mine := w.table.Root.Join("data", "old.parquet")
		w.fl.PutFile(mine, []byte("x"))
		other := filer.Path("/buckets/lake/ns/elsewhere/x")
		w.fl.PutFile(other, []byte("x"))
		var got ops.Removed
		var rerr error
		op.after = func(ctx context.Context, d ops.Done) (ops.Actual, error) {
			var files []journal.File
			for _, p := range []filer.Path{mine, other} {
				e, err := w.fl.Stat(ctx, p)
				if err != nil {
					return ops.Actual{}, err
				}
				files = append(files, journal.File{Path: p, Identity: e.Identity(), Reason: "test"})
			}
			got, rerr = d.Remove(ctx, files)
			return ops.Actual{}, rerr
		}
		res, err := w.run(t, worker.Request{Only: []ops.Kind{op.kind}})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res[0].Status, "F118: trouble after the commit does not undo it")
		require.True(t, w.fl.Exists(other))
		if gc == "false" {
			require.Equal(t, fault.Unsupported, fault.Of(rerr))
			require.True(t, w.fl.Exists(mine))
			require.NotEmpty(t, res[0].Warnings)
			continue
		}
		require.NoError(t, rerr)
		require.Equal(t, int64(1), got.Files)
		require.Len(t, got.Kept, 1)
		require.False(t, w.fl.Exists(mine))
	}
}

func TestHousekeepingPurgesWhatIsDue(t *testing.T) {
	op := &fakeOp{kind: config.RewriteManifests}
	w := newWorld(t, nil, op)
	p := w.table.Root.Join("data", "old.parquet")
	w.fl.PutFile(p, []byte("x"))
	op.after = func(ctx context.Context, d ops.Done) (ops.Actual, error) {
		e, err := w.fl.Stat(ctx, p)
		if err != nil {
			return ops.Actual{}, err
		}
		_, err = d.Remove(ctx, []journal.File{{Path: p, Identity: e.Identity(), Reason: "test"}})
		return ops.Actual{}, err
	}
	reg := prometheus.NewRegistry()
	r := w.runner(worker.Measured(reg))
	_, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{op.kind}})
	require.NoError(t, err)
	require.NoError(t, r.Housekeep(t.Context()))
	require.Len(t, w.fl.Files(trash.Root("lake")), 1)
	w.fl.Virtual().Advance(11 * 24 * time.Hour)
	require.NoError(t, r.Housekeep(t.Context()))
	require.Empty(t, w.fl.Files(trash.Root("lake")))
	n, err := testutil.GatherAndCount(reg, "seaice_purged_files_total", "seaice_runs_total", "seaice_commits_total")
	require.NoError(t, err)
	require.Equal(t, 3, n)
}
