package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

func TestOvertakenRunIsPlannedAgain(t *testing.T) {
	stale := fault.New(fault.Stale, "the branch was rolled back")
	for _, c := range []struct {
		name     string
		failures int
		given    bool
		plans    int
		status   ops.Status
		warnings int
	}{
		{name: "once", failures: 1, plans: 2, status: ops.Finished, warnings: 1},
		{name: "twice", failures: 2, plans: 3, status: ops.Finished, warnings: 2},
		{name: "always", failures: 9, plans: 3, status: ops.Failed, warnings: 2},
		{name: "never", plans: 1, status: ops.Finished},
		{name: "a plan that was given", failures: 1, given: true, plans: 0, status: ops.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			plans, left := 0, c.failures
			op := &fakeOp{
				kind: config.RewriteManifests,
				plan: func() error { plans++; return nil },
				execute: func(context.Context, *commit.Stage) error {
					if left--; left >= 0 {
						return stale
					}
					return nil
				},
			}
			w := newWorld(t, nil, op)
			q := worker.Request{Only: []ops.Kind{op.kind}}
			if c.given {
				target, err := w.runner(worker.Events{}).Load(t.Context(), id, q.Layers)
				require.NoError(t, err)
				q.Plan, err = op.Plan(t.Context(), ops.Input{View: target.View, Settings: target.Settings})
				require.NoError(t, err)
				plans = 0
			}
			res, err := w.run(t, q)
			require.Len(t, res, 1)
			require.Equal(t, c.status, res[0].Status)
			require.Equal(t, c.status == ops.Failed, err != nil)
			require.Equal(t, c.plans, plans)
			require.Len(t, res[0].Warnings, c.warnings)
		})
	}
}

func TestOtherFailuresAreNotPlannedAgain(t *testing.T) {
	for _, k := range []fault.Kind{fault.TooLarge, fault.Corrupt, fault.Unknown, fault.Halt, fault.Canceled, fault.Transient} {
		op := &fakeOp{kind: config.RewriteManifests, execute: func(context.Context, *commit.Stage) error { return fault.New(k, "no") }}
		w := newWorld(t, nil, op)
		_, err := w.run(t, worker.Request{Only: []ops.Kind{op.kind}})
		require.Error(t, err)
		require.Equal(t, 1, op.runs, k)
	}
}
