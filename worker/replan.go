package worker

import (
	"context"
	"errors"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/ops"
)

// replans is how often a run that was overtaken is planned again at once. Work
// that was finished is not lost by it: the next run takes it over.
const replans = 2

// oneOrAgain runs an operation, and plans and runs it again on the table as it is
// now if the table overtook it. A plan that was given is executed as it is or
// not at all. The result is the last one; what the others met is a warning.
func (r *Runner) oneOrAgain(ctx context.Context, k ops.Kind, t *Target, q Request) (ops.Result, error) {
	res, err := r.one(ctx, k, t, q)
	var met []string
	for n := 0; n < replans && q.Plan == nil && !q.Once && wasOvertaken(res, err) && ctx.Err() == nil; n++ {
		met = append(met, "planned again: "+err.Error())
		now, lerr := r.Load(ctx, q.Table, q.Layers)
		if lerr != nil {
			break // the table is not to be worked on any more: the first error says why
		}
		q.Progress.Note("planning " + string(k) + " again: the table has changed")
		res, err = r.one(ctx, k, now, q)
	}
	res.Warnings = append(met, res.Warnings...)
	return res, err
}

// wasOvertaken reports whether nothing was committed because the table is no
// longer as planned.
func wasOvertaken(res ops.Result, err error) bool {
	var lost givenUp
	if !fault.Is(err, fault.Stale) || errors.As(err, &lost) || res.Status != ops.Failed {
		return false
	}
	return res.Commit == nil || res.Commit.Outcome == commit.Refused
}

// givenUp is why a run lost its lease: somebody else has the table now.
type givenUp struct{ error }

// Unwrap is the cause.
func (g givenUp) Unwrap() error { return g.error }
