// Package worker runs the maintenance of one table: settings, plan, staged
// files, commit, clean-up, result. It is what the admin's jobs and the command
// line both call.
//
// One operation runs on a table at a time in one process; that spares work and
// is not what safety rests on. Every run first brings to an end what earlier
// runs on the table left open.
package worker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/trash"
)

// Tenancy knows the other tables of the cluster. Its answers come from a fresh
// look; what cannot be read is an error, and then nothing is removed.
type Tenancy interface {
	// Allowed returns a function that refuses paths which the table of v does not
	// own alone.
	Allowed(ctx context.Context, v *iceberg.View) (func(filer.Path) error, error)
	// Foreign tells which of the paths another table references, and which one.
	Foreign(ctx context.Context, v *iceberg.View, paths []filer.Path) (map[filer.Path]iceberg.TableID, error)
}

// Options make a Runner.
type Options struct {
	Filer    filer.Filer
	Clock    clock.Clock
	Registry *ops.Registry
	Tenancy  Tenancy
	Events   Events
	Profile  commit.Profile
	// Draw gives random numbers, see commit.Options.
	Draw func() uint64
	// Beat paces the renewal of leases; the system's clock when nil. A virtual
	// clock would not wait.
	Beat clock.Clock
	// Memory, if set, is told the memory in bytes that the work of this process
	// may take, before each run.
	Memory func(budget int64)
}

// Runner runs operations on tables. It is safe for concurrent use.
type Runner struct {
	o     Options
	store *journal.Store
	locks locks
	// throttle is between o.Filer and the cluster.
	throttle *filer.Throttle
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Profile == "" {
		o.Profile = commit.FilerCAS
	}
	if o.Beat == nil {
		o.Beat = clock.System()
	}
	th := filer.NewThrottle(o.Beat, 0)
	o.Filer = th.Filer(o.Filer)
	return &Runner{o: o, store: journal.New(o.Filer, o.Clock), throttle: th}
}

// Journals are the journals of the filer.
func (r *Runner) Journals() *journal.Store { return r.store }

// Target is a table with the settings that hold for it now.
type Target struct {
	View     *iceberg.View
	Settings *config.Settings
	// Now is the filer's time.
	Now time.Time
}

// Load reads a table and resolves its settings. layers hold what the form, the
// rules and the command line say; what the table and its bucket say is read
// here.
func (r *Runner) Load(ctx context.Context, id iceberg.TableID, layers config.Layers) (*Target, error) {
	v, err := iceberg.Load(ctx, r.o.Filer, id)
	if err != nil {
		return nil, err
	}
	bucket, err := r.o.Filer.Stat(ctx, filer.BucketPath(id.Bucket))
	if err != nil {
		return nil, fault.In("look at bucket "+id.Bucket, err)
	}
	layers.Maintenance, err = config.ParseMaintenance(bucket.Extended[iceberg.AttrMaintenance], v.Entry.Extended[iceberg.AttrMaintenance])
	if err != nil {
		return nil, fault.In("read the maintenance configuration of "+id.String(), err)
	}
	layers.Properties = v.Metadata.Properties
	s, err := config.Resolve(layers, id.String())
	if err != nil {
		return nil, err
	}
	now, err := journal.TrustedTime(ctx, r.o.Filer, r.o.Clock)
	if err != nil {
		return nil, err
	}
	return &Target{View: v, Settings: s, Now: now}, nil
}

// Plan plans an operation on a loaded table.
func (r *Runner) Plan(ctx context.Context, k ops.Kind, t *Target) (ops.Plan, error) {
	op, err := r.o.Registry.Get(k)
	if err != nil {
		return nil, err
	}
	var p ops.Plan
	err = guard("plan "+string(k), func() error {
		var err error
		p, err = op.Plan(ctx, ops.Input{View: t.View, Reader: r.o.Filer, Settings: t.Settings, Now: t.Now})
		return err
	})
	return p, err
}

// Available are the operations of the settings that the program has, in order.
func (r *Runner) Available(s *config.Settings) []ops.Kind {
	var out []ops.Kind
	for _, k := range s.Operations {
		if r.o.Registry.Has(k) {
			out = append(out, k)
		}
	}
	return out
}

// guard turns a panic into an error that stops the operation everywhere. It
// never cleans up: what is staged is in the journal.
func guard(doing string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Halt, fmt.Sprintf("%s: panic: %v", doing, p))
		}
	}()
	return fn()
}

// Request asks for operations on one table.
type Request struct {
	Table  iceberg.TableID
	Layers config.Layers
	// Only runs these operations, in this order, instead of those the settings
	// name. An operation that the settings forbid is skipped all the same.
	Only []ops.Kind
	// Plan is executed instead of planning again. Only must name its operation.
	Plan ops.Plan
	// DryRun plans and does not execute, whatever the settings say.
	DryRun bool
	// Once makes one plan of each operation: if the table overtakes it, that is
	// the result.
	Once bool
	// RunPrefix begins the names of the runs, so that a job finds its own.
	RunPrefix string
	Progress  ops.Progress
	// Planned, if set, sees each plan before it is executed and may refuse it.
	Planned func(ops.Plan) error
}

// Run runs the operations of a request one after another and returns a result
// for each that was tried. Each sees the table as the one before left it. An
// error that concerns the table as a whole ends the sequence; a failure that
// only concerns one operation is in its result, and the next one runs. The
// error joins the failures.
func (r *Runner) Run(ctx context.Context, q Request) ([]ops.Result, error) {
	if q.Progress == nil {
		q.Progress = ops.Silent{}
	}
	release, err := r.locks.acquire(ctx, q.Table)
	if err != nil {
		return nil, err
	}
	defer release()
	t, err := r.Load(ctx, q.Table, q.Layers)
	if err != nil {
		return nil, err
	}
	if !t.Settings.DryRun && !q.DryRun {
		if err := r.recover(ctx, t); err != nil {
			return nil, err
		}
	}
	r.throttle.SetRate(t.Settings.ThroughputBytesPerSecond)
	if r.o.Memory != nil {
		r.o.Memory(t.Settings.MemoryBudgetBytes)
	}
	kinds := q.Only
	if len(kinds) == 0 {
		kinds = t.Settings.Operations
	}
	var results []ops.Result
	var failures error
	for i, k := range kinds {
		if i > 0 {
			if t, err = r.Load(ctx, q.Table, q.Layers); err != nil {
				return results, errors.Join(failures, err)
			}
		}
		res, err := r.oneOrAgain(ctx, k, t, q)
		results = append(results, res)
		failures = errors.Join(failures, err)
		if Stops(err) {
			break
		}
	}
	return results, failures
}

// Stops reports whether after err, of one operation, no further one may run on
// the table.
func Stops(err error) bool {
	switch fault.Of(err) {
	case fault.Unknown, fault.Corrupt, fault.Halt, fault.Canceled:
		return true
	}
	return false
}

// one runs one operation and turns whatever happens into a result.
func (r *Runner) one(ctx context.Context, k ops.Kind, t *Target, q Request) (ops.Result, error) {
	res := ops.Result{Table: q.Table, Operation: k, Started: r.o.Clock.Now().UTC(), Guarantee: r.o.Profile}
	res.TableUUID, _ = commit.UUIDOf(t.View) // a table without one is refused by its plan
	res.Run = runName(q.RunPrefix, k, t.Now)
	r.o.Events.begin(res)
	err := r.run(ctx, k, t, q, &res)
	res.Ended = r.o.Clock.Now().UTC()
	if err != nil {
		if res.Status != ops.OutcomeUnknown && res.Status != ops.PartlyDone {
			res.Status = ops.Failed
		}
		res.Error, res.Kind, res.Hints = err.Error(), fault.Of(err), fault.Hints(err)
		if res.Message == "" {
			res.Message = fmt.Sprintf("%s: %s", k, err)
		}
	}
	r.o.Events.end(res)
	return res, err
}

func runName(prefix string, k ops.Kind, now time.Time) string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	if prefix != "" {
		prefix += "-"
	}
	return prefix + string(k) + "-" + now.UTC().Format("20060102T150405") + "-" + hex.EncodeToString(b)
}

func (r *Runner) run(ctx context.Context, k ops.Kind, t *Target, q Request, res *ops.Result) error {
	for _, s := range t.Settings.Skipped {
		if s.Operation == k {
			res.Status = ops.NothingToDo
			res.Reasons = []ops.Reason{{Code: "disabled", Subject: string(k), Count: 1, Text: s.Reason, Setting: s.Origin.String()}}
			res.Message = fmt.Sprintf("%s: skipped, %s", k, s.Reason)
			return nil
		}
	}
	if !r.o.Registry.Has(k) && t.Settings.AllOperations && len(q.Only) == 0 {
		res.Status = ops.NothingToDo
		res.Reasons = []ops.Reason{{Code: "not-available", Subject: string(k), Count: 1, Text: "this version does not have the operation"}}
		res.Message = fmt.Sprintf("%s: not available in this version", k)
		return nil
	}
	p := q.Plan
	if p == nil {
		q.Progress.Note("planning " + string(k))
		var err error
		if p, err = r.Plan(ctx, k, t); err != nil {
			return err
		}
	}
	h := p.Head()
	res.PlanDigest, res.Predicted, res.Reasons, res.Message = h.Digest, h.Effects, h.Reasons, fmt.Sprintf("%s: %s", k, p.Summary())
	r.o.Events.planned(*res)
	if q.Planned != nil {
		if err := q.Planned(p); err != nil {
			return err
		}
	}
	switch {
	case p.Empty():
		res.Status = ops.NothingToDo
		return nil
	case t.Settings.DryRun || q.DryRun:
		res.Status, res.Message = ops.DryRun, fmt.Sprintf("%s: dry run, nothing is changed: %s", k, p.Summary())
		return nil
	}
	return r.executeAll(ctx, k, p, t, q, res)
}

// job is one run: a plan, or a part of one.
type job struct {
	kind ops.Kind
	plan ops.Plan
	// whole is the plan for which the work of abandoned runs is taken over, nil
	// if it is not.
	whole ops.Plan
}

// execute stages, commits and cleans up.
func (r *Runner) execute(ctx context.Context, j job, t *Target, q Request, res *ops.Result) error {
	k, p := j.kind, j.plan
	op, err := r.o.Registry.Get(k)
	if err != nil {
		return err
	}
	base := p.Head().Base
	run, err := r.store.Open(ctx, journal.Options{
		Table: q.Table, UUID: base.UUID, Op: string(k), Run: res.Run, PlanDigest: p.Head().Digest,
		Base: base.MetadataLocation, Lease: t.Settings.JournalLease,
	})
	if err != nil {
		return err
	}
	tr, err := trash.New(r.o.Filer, r.o.Clock, trash.Options{Grace: t.Settings.TrashRetention})
	if err != nil {
		return err
	}
	c := commit.New(r.o.Filer, r.o.Clock, commit.Options{Profile: r.o.Profile, Retries: t.Settings.MaxCommitRetries, Draw: r.o.Draw})
	st := c.Stage(run, t.View)
	ctx, stop := r.keepLease(ctx, run, t.Settings.JournalLease)
	defer stop()
	if j.whole != nil {
		if err := r.adopt(ctx, op, j.whole, t, c, st); err != nil {
			// The journal stays open: it holds files that the stage may not know.
			return errors.Join(err, run.Release(context.WithoutCancel(ctx)))
		}
	}

	done := commit.Result{Outcome: commit.Refused}
	var work ops.Work
	err = guard("execute "+string(k), func() error {
		var err error
		work, err = op.Execute(ctx, p, st, q.Progress)
		return err
	})
	if err == nil {
		q.Progress.Note("committing " + string(k))
		done, err = c.Commit(ctx, work.Change, st)
	}
	if lost := context.Cause(ctx); fault.Is(err, fault.Canceled) && fault.Is(lost, fault.Stale) {
		err = fault.Wrap(fault.Stale, string(k)+" was given up", givenUp{lost}) // nobody cancelled it
	}
	res.Commit = &done
	r.settle(ctx, j, t, st, tr, work, res)
	if resumable(op, run, done, err) {
		// Nothing is wrong with what was finished: the next run commits it.
		res.Warnings = append(res.Warnings, fmt.Sprintf("%d finished units are kept for the next run", run.Finished()))
		return errors.Join(err, run.Release(context.WithoutCancel(ctx)))
	}
	c.Finish(ctx, st, &done, tr)
	res.Warnings = append(res.Warnings, done.Warnings...)
	return err
}

// resumable reports whether a run that ended without a commit left work that is
// worth keeping: it was stopped, or something failed that passes.
func resumable(op ops.Operation, run *journal.Run, done commit.Result, err error) bool {
	_, can := op.(ops.Resumer)
	if !can || run.Finished() == 0 || done.Outcome != commit.Refused {
		return false
	}
	return fault.Is(err, fault.Canceled) || fault.Is(err, fault.Transient)
}

// settle fills in the result by the outcome, cleans up after a commit, and
// stores the result in the journal.
func (r *Runner) settle(ctx context.Context, j job, t *Target, st *commit.Stage, tr *trash.Trash, work ops.Work, res *ops.Result) {
	switch done := res.Commit; {
	case done.Outcome == commit.Committed:
		res.Status = ops.Finished
		r.after(ctx, j.kind, j.plan, t, st, tr, work, res)
	case done.Outcome == commit.Unknown:
		res.Status = ops.OutcomeUnknown
		for _, f := range st.Files() {
			res.Kept = append(res.Kept, f.Path.String())
		}
	case done.Nothing:
		res.Status = ops.NothingToDo
		res.Message = fmt.Sprintf("%s: nothing to do any more, the table has changed since planning", j.kind)
		if work.Left != nil {
			res.Reasons = append(res.Reasons, work.Left()...)
		}
	default:
		res.Status = ops.Failed
	}
	// The result is history; a run whose outcome is open gets its result from
	// whoever resolves it.
	if res.Status == ops.OutcomeUnknown {
		return
	}
	raw, err := json.Marshal(res)
	if err == nil {
		err = st.Run().Result(context.WithoutCancel(ctx), raw)
	}
	if err != nil {
		res.Warnings = append(res.Warnings, "store the result: "+err.Error())
	}
}
