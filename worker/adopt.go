package worker

import (
	"context"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
)

// adopt takes over, into the run of st, what abandoned runs of the operation on
// the table had finished and p can use. An abandoned run that cannot be read or
// brought on is left to whoever resolves it; an error ends the run, whose journal
// then holds what was taken over.
func (r *Runner) adopt(ctx context.Context, op ops.Operation, p ops.Plan, t *Target, c *commit.Committer, st *commit.Stage) error {
	rs, ok := op.(ops.Resumer)
	if !ok {
		return nil
	}
	for old, err := range r.store.OpenRuns(ctx, st.Run().UUID()) {
		if err != nil {
			r.o.Events.trouble(t.View.ID, err)
			continue
		}
		if !abandoned(old, t, st.Run(), op.Kind()) {
			continue
		}
		units, err := old.Units(ctx)
		if err != nil {
			r.o.Events.trouble(t.View.ID, err)
			continue
		}
		if len(units) == 0 || !rs.Resumes(p, units) {
			continue
		}
		res, err := r.store.Adopt(ctx, old, c.Resolver(), st.Run())
		r.o.Events.resolved(t.View.ID, res, err)
		switch {
		case fault.Is(err, fault.Halt), fault.Is(err, fault.Canceled):
			return err
		case err != nil, res.Outcome != journal.Adopted:
			continue
		}
		if err := r.takeOver(ctx, old, st); err != nil {
			return fault.In("take over what run "+old.Run()+" staged", err)
		}
		st.Inherit(units...)
	}
	return nil
}

// abandoned reports whether a run is one of the same operation whose owner is
// gone, and whose files are not being discarded yet.
func abandoned(old *journal.State, t *Target, own *journal.Run, k ops.Kind) bool {
	switch {
	case old.Run() == own.ID(), old.Op() != string(k), old.Outcome() == journal.Committed:
		return false
	case old.Phase() == journal.Open:
		return old.Expired(t.Now)
	}
	return old.Phase() == journal.Revoked || old.Phase() == journal.Settled
}

// takeOver makes the stage know every file that the adopted run left, the
// unfinished ones too: what the commit does not use is discarded with it.
func (r *Runner) takeOver(ctx context.Context, old *journal.State, st *commit.Stage) error {
	for p, err := range old.Staged(ctx) {
		if err != nil {
			return err
		}
		if !st.Run().Holds(p) {
			continue // something references it
		}
		e, err := r.o.Filer.Stat(ctx, p)
		if filer.NotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		st.Adopt(e)
	}
	return nil
}
