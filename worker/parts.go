package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/ops"
)

// executeAll executes a plan, in parts if it has several. Each part is a run of
// its own, with its journal, its commit and its stored result: a crash leaves at
// most one part open, and what was committed before needs nobody. A part that was
// overtaken, or is more than this program handles, does not keep the next from
// being tried.
func (r *Runner) executeAll(ctx context.Context, k ops.Kind, p ops.Plan, t *Target, q Request, res *ops.Result) error {
	parts := []ops.Plan{p}
	if d, ok := p.(ops.Parted); ok {
		parts = d.Parts()
	}
	if len(parts) == 1 {
		return r.execute(ctx, job{kind: k, plan: parts[0], whole: p}, t, q, res)
	}
	var failures error
	run, planned := res.Run, len(res.Reasons)
	for i, part := range parts {
		one := *res
		one.Parts, one.Proof, one.Reasons, one.Warnings, one.Counters, one.Actual, one.Commit = nil, nil, nil, nil, nil, nil, nil
		one.Started, one.PlanDigest, one.Predicted = r.o.Clock.Now().UTC(), part.Head().Digest, part.Head().Effects
		one.Message = fmt.Sprintf("%s, part %d of %d", res.Message, i+1, len(parts))
		if i > 0 {
			one.Run = fmt.Sprintf("%s-%d", run, i+1)
		}
		j := job{kind: k, plan: part}
		if i == 0 {
			j.whole = p
		}
		q.Progress.Note(one.Message)
		err := r.execute(ctx, j, t, q, &one)
		combine(res, &one, err)
		failures = errors.Join(failures, err)
		if err != nil && !overtaken(err) {
			break
		}
	}
	report(res, p, res.Reasons[planned:])
	return conclude(res, failures)
}

// overtaken reports whether err concerns the units of one part only.
func overtaken(err error) bool {
	switch fault.Of(err) {
	case fault.Stale, fault.TooLarge, fault.Unsupported:
		return true
	}
	return false
}

// combine adds the result of a part to the whole.
func combine(res, one *ops.Result, err error) {
	part := ops.Part{Run: one.Run, Status: one.Status, Commit: one.Commit}
	if err != nil {
		part.Error, part.Kind = err.Error(), fault.Of(err)
		if one.Status == "" {
			part.Status = ops.Failed
		}
	}
	res.Parts = append(res.Parts, part)
	res.Reasons = append(res.Reasons, one.Reasons...)
	res.Warnings = append(res.Warnings, one.Warnings...)
	res.Kept = append(res.Kept, one.Kept...)
	res.Proof = append(res.Proof, one.Proof...)
	for name, n := range one.Counters {
		if res.Counters == nil {
			res.Counters = map[string]int64{}
		}
		res.Counters[name] += n
	}
	if one.Commit != nil && (one.Status == ops.Finished || one.Status == ops.OutcomeUnknown || res.Commit == nil) {
		res.Commit = one.Commit
	}
	if one.Actual == nil {
		return
	}
	if res.Actual == nil {
		e := *one.Actual
		res.Actual = &e
		return
	}
	e := res.Actual
	e.After = one.Actual.After
	e.RowsExact = e.RowsExact && one.Actual.RowsExact
	e.BytesRead += one.Actual.BytesRead
	e.BytesWritten += one.Actual.BytesWritten
	e.PeakMemoryBytes = max(e.PeakMemoryBytes, one.Actual.PeakMemoryBytes)
	e.RemovedFiles += one.Actual.RemovedFiles
	e.RemovedBytes += one.Actual.RemovedBytes
	e.FreedLaterBytes += one.Actual.FreedLaterBytes
}

// conclude decides how the whole ended, by its parts.
func conclude(res *ops.Result, failures error) error {
	var done, unknown int
	for _, p := range res.Parts {
		switch p.Status {
		case ops.Finished:
			done++
		case ops.OutcomeUnknown:
			unknown++
		}
	}
	switch {
	case unknown > 0:
		res.Status = ops.OutcomeUnknown
	case failures == nil && done > 0:
		res.Status = ops.Finished
	case failures == nil:
		res.Status = ops.NothingToDo
		res.Message = fmt.Sprintf("%s: nothing to do any more, the table has changed since planning", res.Operation)
	case done > 0 && overtaken(failures):
		// What is left is for the next run: nothing failed.
		res.Status = ops.Finished
		res.Warnings = append(res.Warnings, failures.Error())
		return nil
	case done > 0:
		res.Status = ops.PartlyDone
	default:
		res.Status = ops.Failed
	}
	return failures
}
