package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// partedPlan is a plan of n parts.
type partedPlan struct {
	fakePlan
	n int
}

func (p *partedPlan) Parts() []ops.Plan {
	var out []ops.Plan
	for range p.n {
		part := p.fakePlan
		out = append(out, &part)
	}
	return out
}

// partedOp plans in parts.
type partedOp struct {
	*fakeOp
	n int
}

func (o partedOp) Plan(ctx context.Context, in ops.Input) (ops.Plan, error) {
	p, err := o.fakeOp.Plan(ctx, in)
	if err != nil {
		return nil, err
	}
	return &partedPlan{fakePlan: *p.(*fakePlan), n: o.n}, nil
}

// Each part is a run; how the whole ended follows from how they did.
func TestPartsOfAPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		// fails is the kind of failure of each part, None for none.
		fails  []fault.Kind
		status ops.Status
		kind   fault.Kind
		tried  int
	}{
		{name: "all", fails: []fault.Kind{0, 0, 0}, status: ops.Finished, tried: 3},
		{name: "one overtaken", fails: []fault.Kind{0, fault.Stale, 0}, status: ops.Finished, tried: 3},
		{name: "all overtaken", fails: []fault.Kind{fault.Stale, fault.TooLarge}, status: ops.Failed, kind: fault.TooLarge, tried: 2},
		{name: "stopped at once", fails: []fault.Kind{fault.Halt, 0}, status: ops.Failed, kind: fault.Halt, tried: 1},
		{name: "stopped later", fails: []fault.Kind{0, fault.Corrupt, 0}, status: ops.PartlyDone, kind: fault.Corrupt, tried: 2},
		{name: "filer in trouble", fails: []fault.Kind{0, fault.Transient, 0}, status: ops.PartlyDone, kind: fault.Transient, tried: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			op := &fakeOp{kind: config.RewriteManifests, execute: func(context.Context, *commit.Stage) error {
				n++
				if k := c.fails[n-1]; k != fault.None {
					return fault.New(k, "boom")
				}
				return nil
			}}
			w := newWorld(t, nil)
			r := worker.New(worker.Options{Filer: w.fl, Clock: w.fl.Virtual(), Registry: ops.NewRegistry(partedOp{op, len(c.fails)})})
			res, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{op.kind}})
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
			require.Len(t, res, 1)
			require.Equal(t, c.status, res[0].Status)
			require.Equal(t, c.kind, res[0].Kind)
			require.Len(t, res[0].Parts, c.tried)
			runs := map[string]bool{}
			for i, p := range res[0].Parts {
				runs[p.Run] = true
				require.Equal(t, c.fails[i], p.Kind)
			}
			require.Len(t, runs, c.tried)
			for st, err := range journal.New(w.fl, w.fl.Virtual()).List(t.Context()) {
				require.NoError(t, err)
				require.True(t, runs[st.Run()])
				require.Equal(t, journal.Closed, st.Phase())
			}
		})
	}
}
