package weed_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/plugin"
	"github.com/seaice/seaice/worker"
)

// P8: detection reads. What it works out does not go into the catalog record,
// which every client of the table loads.
func TestP8CatalogRecordStaysSmall(t *testing.T) {
	l := proofLake(t)
	theirs := l.table(t, enough, nil)
	before := theirs.record()
	require.Equal(t, 1, l.builtin(t).detect(theirs))
	after := theirs.record()
	require.Greater(t, len(after.Extended[iceberg.AttrMetadata]), len(before.Extended[iceberg.AttrMetadata]))
	require.Contains(t, string(after.Extended[iceberg.AttrMetadata]), `"planningIndex"`)

	ours := l.table(t, enough, nil)
	before = ours.record()
	reading := readOnly{l.fl}
	m := &plugin.Maintenance{Engine: engineOn(reading, runnerOn(reading, clock.System())), Filers: []string{l.Filer}}
	var found findings
	_, err := m.Detect(t.Context(), plugin.DetectRequest{Settings: plugin.Settings{Admin: map[string]string{"table_filter": ours.name}}}, &found)
	require.NoError(t, err)
	require.Len(t, found.proposals, 1)
	require.Equal(t, ours.id(), found.proposals[0].Table)
	after = ours.record()
	require.Equal(t, before.Extended, after.Extended)
	require.Empty(t, cmp.Diff(before.PB, after.PB, protocmp.Transform()), "not even touched")
}

// engine is one filer and a runner on it.
type engine struct {
	fl     filer.Filer
	runner *worker.Runner
}

func engineOn(fl filer.Filer, r *worker.Runner) engine { return engine{fl, r} }

func (e engine) Open(context.Context, []string) (filer.Filer, *worker.Runner, error) {
	return e.fl, e.runner, nil
}

// findings collects what a detection finds.
type findings struct{ proposals []plugin.Proposal }

func (f *findings) Propose(p plugin.Proposal) error {
	f.proposals = append(f.proposals, p)
	return nil
}
func (f *findings) Note(plugin.Activity) error    { return nil }
func (f *findings) Observe(...plugin.Observation) {}

// readOnly refuses everything that writes.
type readOnly struct{ filer.Filer }

func refuse(p filer.Path) error {
	return fault.New(fault.Halt, "write "+p.String()+": only reading is allowed")
}

func (readOnly) Create(_ context.Context, p filer.Path, _ filer.CreateOptions) (filer.Upload, error) {
	return nil, refuse(p)
}

func (readOnly) Put(_ context.Context, p filer.Path, _ []byte, _ filer.CreateOptions) (*filer.Entry, error) {
	return nil, refuse(p)
}

func (readOnly) Update(_ context.Context, u filer.Update) (*filer.Entry, error) {
	return nil, refuse(u.Base.Path)
}

func (readOnly) Patch(_ context.Context, base *filer.Entry, _ map[string][]byte, _ string) error {
	return refuse(base.Path)
}

func (readOnly) Move(_ context.Context, m filer.Move) error                  { return refuse(m.From.Path) }
func (readOnly) Delete(_ context.Context, p filer.Path, _ filer.Guard) error { return refuse(p) }
func (readOnly) Unlink(_ context.Context, p filer.Path, _ filer.Guard) error { return refuse(p) }

func (readOnly) Probe(_ context.Context, dir filer.Path) (filer.Capabilities, error) {
	return filer.Capabilities{}, refuse(dir)
}
