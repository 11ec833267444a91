package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// always has work for every table that plan does not stop at.
type always struct {
	plan func(context.Context, iceberg.TableID) error
}

type work struct{ ops.Header }

func (w work) Head() ops.Header                { return w.Header }
func (work) Empty() bool                       { return false }
func (work) Summary() string                   { return "work" }
func (work) MarshalJSON() ([]byte, error)      { return json.Marshal("work") }
func (always) Kind() ops.Kind                  { return config.RewriteManifests }
func (always) Decode([]byte) (ops.Plan, error) { return nil, errors.New("not stored") }

func (always) Execute(context.Context, ops.Plan, *commit.Stage, ops.Progress) (ops.Work, error) {
	return ops.Work{}, errors.New("not executed")
}

func (a always) Plan(ctx context.Context, in ops.Input) (ops.Plan, error) {
	if err := a.plan(ctx, in.View.ID); err != nil {
		return nil, err
	}
	return work{ops.Header{Operation: config.RewriteManifests}}, nil
}

type oneEngine struct {
	fl *filertest.Filer
	r  *worker.Runner
}

func (e oneEngine) Open(context.Context, []string) (filer.Filer, *worker.Runner, error) {
	return e.fl, e.r, nil
}

// findings take up to most proposals.
type findings struct {
	most  int
	found []string
	notes []string
}

func (f *findings) Propose(p Proposal) error {
	if len(f.found) == f.most {
		return ErrEnough
	}
	f.found = append(f.found, p.Table.String())
	return nil
}
func (f *findings) Note(a Activity) error {
	f.notes = append(f.notes, a.Message)
	return nil
}

func (*findings) Observe(...Observation) {}

func rotating(t *testing.T, ids []iceberg.TableID, plan func(context.Context, iceberg.TableID) error) (*Maintenance, *filertest.Filer) {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	schema, err := model.ParseSchema("id long!")
	require.NoError(t, err)
	for i, id := range ids {
		_, err := model.NewTable(t.Context(), fl, model.Config{ID: id, Schema: schema, Seed: uint64(i + 1), Clock: fl.Virtual()})
		require.NoError(t, err)
	}
	r := worker.New(worker.Options{Filer: fl, Clock: fl.Virtual(), Registry: ops.NewRegistry(always{plan})})
	return &Maintenance{Engine: oneEngine{fl, r}, Filers: []string{"f"}}, fl
}

func four(bucket string) (ids []iceberg.TableID) {
	for i := range 4 {
		id := tableNo(i)
		id.Bucket, id.Namespace = bucket, "sales"
		ids = append(ids, id)
	}
	return ids
}

func nobodyStops(context.Context, iceberg.TableID) error { return nil }

// A table whose planning takes all the time of a detection does not keep those
// behind it from being looked at.
func TestDetectionPassesASlowTable(t *testing.T) {
	ids := four("lake")
	slow := func(ctx context.Context, id iceberg.TableID) error {
		if id != ids[1] {
			return nil
		}
		ctx.Value(timeUp{}).(context.CancelFunc)()
		return ctx.Err()
	}
	m, _ := rotating(t, ids, slow)
	seen := map[string]bool{}
	for range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		f := &findings{most: 100}
		_, _ = m.Detect(context.WithValue(ctx, timeUp{}, cancel), DetectRequest{}, f)
		cancel()
		for _, id := range f.found {
			seen[id] = true
		}
	}
	for _, id := range []iceberg.TableID{ids[0], ids[2], ids[3]} {
		require.True(t, seen[id.String()], "%s was looked at; seen %v", id, seen)
	}
}

type timeUp struct{}

// A detection that the time is up for before it looks at a table leaves it to
// the next where to begin.
func TestDetectionKeepsItsPlace(t *testing.T) {
	ids := four("lake")
	m, _ := rotating(t, ids, nobodyStops)
	f := &findings{most: 2}
	sum, err := m.Detect(t.Context(), DetectRequest{}, f)
	require.NoError(t, err)
	require.True(t, sum.HasMore)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = m.Detect(ctx, DetectRequest{}, &findings{most: 2})
	f = &findings{most: 2}
	_, err = m.Detect(t.Context(), DetectRequest{}, f)
	require.NoError(t, err)
	require.Equal(t, []string{ids[2].String(), ids[3].String()}, f.found)
}

// Buckets come in the order of their names, which is not that of whole ids: "a"
// before "a-1", though "a/" is behind "a-1/".
func TestDetectionGoesAllTheWayRound(t *testing.T) {
	ids := append(four("lake"), four("lake-1")...)
	m, _ := rotating(t, ids, nobodyStops)
	f := &findings{most: 6}
	_, err := m.Detect(t.Context(), DetectRequest{}, f)
	require.NoError(t, err)
	f = &findings{most: 100}
	sum, err := m.Detect(t.Context(), DetectRequest{}, f)
	require.NoError(t, err)
	require.False(t, sum.HasMore)
	require.Len(t, f.found, 8)
}

// Tables over the limit of their group come first the next time, so that those
// whose jobs fail again and again do not shut them out.
func TestDetectionTakesTurnsInAGroup(t *testing.T) {
	ids := four("lake")
	m, _ := rotating(t, ids, nobodyStops)
	seen := map[string]bool{}
	req := DetectRequest{Settings: Settings{Admin: map[string]string{"resource_group_by": "bucket", "max_tables_per_resource_group": "1"}}}
	for range 4 {
		f := &findings{most: 100}
		_, err := m.Detect(t.Context(), req, f)
		require.NoError(t, err)
		require.Len(t, f.found, 1)
		seen[f.found[0]] = true
	}
	require.Len(t, seen, 4)
}

// Housekeeping is done even if no detection ever looks at all tables in time.
func TestHousekeepingDoesNotWaitForAnIdleDetection(t *testing.T) {
	ids := four("lake")
	m, fl := rotating(t, ids, func(ctx context.Context, id iceberg.TableID) error {
		ctx.Value(timeUp{}).(context.CancelFunc)()
		return ctx.Err()
	})
	listed := false
	fl.OnCall(func(c filertest.Call) *filertest.Fault {
		listed = listed || c.Path == "/etc/seaice/journal"
		return nil
	})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = m.Detect(context.WithValue(ctx, timeUp{}, cancel), DetectRequest{}, &findings{most: 100})
		cancel()
	}
	require.True(t, listed)
}

// broken cannot be planned.
type broken struct{ always }

func (broken) Kind() ops.Kind { return config.ExpireSnapshots }

// An operation that cannot be planned does not keep the others of its table from
// being done.
func TestDetectionPlansTheOtherOperations(t *testing.T) {
	ids := four("lake")[:1]
	m, fl := rotating(t, ids, nobodyStops)
	m.Engine = oneEngine{fl, worker.New(worker.Options{Filer: fl, Clock: fl.Virtual(), Registry: ops.NewRegistry(
		always{nobodyStops},
		broken{always{func(context.Context, iceberg.TableID) error { return fault.New(fault.Unsupported, "a pin is lost") }}},
	)})}
	f := &findings{most: 100}
	_, err := m.Detect(t.Context(), DetectRequest{}, f)
	require.NoError(t, err)
	require.Equal(t, []string{ids[0].String()}, f.found)
	require.Contains(t, f.notes[0], "a pin is lost")
}
