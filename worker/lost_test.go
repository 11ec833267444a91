package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// A run that loses its lease says so. It was not cancelled by anybody.
func TestLostLeaseIsTheReason(t *testing.T) {
	gate := make(gated)
	op := &fakeOp{kind: config.RewriteManifests}
	w := newWorld(t, nil, op)
	op.execute = func(ctx context.Context, st *commit.Stage) error {
		other := w.fl.Reopen()
		w.fl.Virtual().Advance(24 * time.Hour)
		store := journal.New(other, other.Virtual())
		state, err := store.Find(ctx, st.Run().ID())
		require.NoError(t, err)
		require.NoError(t, store.Revoke(context.WithoutCancel(ctx), state))
		close(gate)
		<-ctx.Done()
		_, err = st.Reader().Stat(ctx, w.table.Record())
		return err
	}
	r := worker.New(worker.Options{
		Filer: w.fl, Clock: w.fl.Virtual(), Registry: ops.NewRegistry(op), Beat: gate,
	})
	res, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}})
	require.Error(t, err)
	require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
	require.Equal(t, fault.Stale, res[0].Kind)
	require.Contains(t, res[0].Error, "revoked")
}

// gated is a clock that waits until its gate is open.
type gated chan struct{}

func (gated) Now() time.Time { return time.Time{} }

func (g gated) Sleep(ctx context.Context, _ time.Duration) error {
	select {
	case <-g:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
