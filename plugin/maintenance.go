package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// Engine opens the cluster that a request names and runs operations on it.
type Engine interface {
	// Open returns the filer and a runner on it for filers of one cluster. What
	// it returns is kept by the engine and shared.
	Open(ctx context.Context, filers []string) (filer.Filer, *worker.Runner, error)
}

// Maintenance is the Handler that keeps tables healthy: it detects by planning
// and executes one job for a table.
type Maintenance struct {
	Engine Engine
	// Filers are used instead of those the admin names, if any.
	Filers []string
	Log    *slog.Logger

	mu sync.Mutex
	// cursor is behind which table the next detection begins, by the admin's
	// form: what was not looked at in time comes first the next time.
	cursor iceberg.TableID
	// kept is when housekeeping was last done.
	kept time.Time
}

var _ Handler = (*Maintenance)(nil)

func (m *Maintenance) open(ctx context.Context, c Cluster) (filer.Filer, *worker.Runner, []string, error) {
	filers := m.Filers
	if len(filers) == 0 {
		filers = c.Filers
	}
	if len(filers) == 0 {
		return nil, nil, nil, fault.WithHint("the admin finds the filers some ten seconds after its start; or name them with --filer",
			fault.New(fault.Transient, "the admin names no filer"))
	}
	fl, r, err := m.Engine.Open(ctx, filers)
	return fl, r, filers, err
}

// Detect plans every table in scope and proposes those with work as it finds
// them. Tables that cannot be maintained are named with the reason. When the
// time is up or the admin takes no more, the next detection goes on behind the
// last table that was looked at.
func (m *Maintenance) Detect(ctx context.Context, req DetectRequest, out Findings) (DetectSummary, error) {
	scope, err := config.ResolveScope(req.Settings.Admin, nil)
	if err != nil {
		return DetectSummary{}, err
	}
	layers, err := config.ReadForm(req.Settings.Worker)
	if err != nil {
		return DetectSummary{}, err
	}
	fl, runner, filers, err := m.open(ctx, req.Cluster)
	if err != nil {
		return DetectSummary{}, err
	}
	s := &scan{m: m, ctx: ctx, fl: fl, runner: runner, filer: filers[0], scope: scope, layers: layers, out: out, skipped: map[string][]string{}, groups: map[string]int{}}
	m.mu.Lock()
	start := m.cursor
	m.mu.Unlock()
	if start != (iceberg.TableID{}) {
		// The last detection was cut short, and this one may be: housekeeping would
		// never have its turn behind it.
		if err := m.housekeep(ctx, req.TimeLimit/2, fl, runner, out); err != nil {
			return DetectSummary{HasMore: true}, err
		}
	}
	more, err := s.walk(start)
	if errors.Is(err, ErrEnough) {
		more, err = true, nil
	}
	m.mu.Lock()
	m.cursor = s.next(start, more || ctx.Err() != nil)
	m.mu.Unlock()
	if nerr := s.report(); err == nil {
		err = nerr
	}
	if herr := m.housekeep(ctx, 0, fl, runner, out); err == nil {
		err = herr
	}
	return DetectSummary{HasMore: more}, err
}

// housekeepEvery is how often housekeeping is done. It rides on detection, so that
// a job type that is switched off removes nothing.
const housekeepEvery = time.Hour

// housekeep takes no longer than limit, if that is not 0. What goes wrong is
// shown; the error is that it could not be.
func (m *Maintenance) housekeep(ctx context.Context, limit time.Duration, fl filer.Filer, r *worker.Runner, out Findings) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	now, err := fl.Clock(ctx)
	if err == nil {
		m.mu.Lock()
		due := now.Sub(m.kept) >= housekeepEvery
		if due {
			m.kept = now
		}
		m.mu.Unlock()
		if !due {
			return nil
		}
		err = r.Housekeep(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return out.Note(Activity{Stage: "housekeeping", Message: err.Error()})
}

// scan is one detection.
type scan struct {
	m      *Maintenance
	ctx    context.Context
	fl     filer.Filer
	runner *worker.Runner
	filer  string
	scope  *config.Scope
	layers config.Layers
	out    Findings

	last iceberg.TableID
	// full is behind which table the first one was left because its group had all
	// it may have.
	full     iceberg.TableID
	looked   int
	proposed int
	// skipped are tables by the reason they were left.
	skipped map[string][]string
	groups  map[string]int
}

// walk looks at the tables behind start, and then at those up to it.
func (s *scan) walk(start iceberg.TableID) (more bool, err error) {
	if err := s.from(start, iceberg.TableID{}); err != nil {
		return true, err
	}
	if start == (iceberg.TableID{}) {
		return false, nil
	}
	return false, s.from(iceberg.TableID{}, start)
}

// next is behind which table the next detection begins. Tables over the limit of
// their group come first then, so that those whose jobs fail again and again do
// not shut them out.
func (s *scan) next(start iceberg.TableID, cut bool) iceberg.TableID {
	switch {
	case !cut:
		return s.full
	case s.last == iceberg.TableID{}:
		return start
	}
	return s.last
}

func (s *scan) from(after, until iceberg.TableID) error {
	f := iceberg.Filter{Buckets: s.scope.Buckets, Namespaces: s.scope.Namespaces, Tables: s.scope.Tables, After: after}
	for found, err := range iceberg.Discover(s.ctx, s.fl, f) {
		if err != nil {
			if s.ctx.Err() != nil {
				return err
			}
			s.skip(found.ID, err)
			continue
		}
		if until != (iceberg.TableID{}) && behind(found.ID, until) {
			return nil
		}
		if found.State == iceberg.StateView || found.State == iceberg.StateForeign || found.State == iceberg.StateEmpty {
			continue
		}
		err := found.Maintainable()
		if err == nil {
			err = s.table(found.ID)
		}
		switch {
		case errors.Is(err, ErrEnough):
			return err
		case s.ctx.Err() != nil:
			if s.last == (iceberg.TableID{}) {
				// It took all the time there was. The others come before it is tried
				// again.
				s.last = found.ID
			}
			return err
		case err != nil:
			s.skip(found.ID, err)
		}
		s.last = found.ID
	}
	return nil
}

// behind reports whether a comes after b in the order in which tables are found.
func behind(a, b iceberg.TableID) bool {
	return cmp.Or(strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name)) > 0
}

func (s *scan) skip(id iceberg.TableID, err error) {
	reason := fmt.Sprintf("%s: %s", fault.Of(err), err)
	s.skipped[reason] = append(s.skipped[reason], id.String())
}

// table proposes the table if one of its operations has work.
func (s *scan) table(id iceberg.TableID) error {
	group := s.scope.Group(id.Bucket, id.Namespace)
	if n := s.scope.MaxTablesPerGroup; n > 0 && s.groups[group] >= n {
		if s.full == (iceberg.TableID{}) {
			s.full = s.last
		}
		return nil
	}
	t, err := s.runner.Load(s.ctx, id, s.layers)
	if err != nil {
		return err
	}
	s.looked++
	s.observe(t)
	var plans []ops.Plan
	for _, k := range s.runner.Available(t.Settings) {
		p, err := s.runner.Plan(s.ctx, k, t)
		switch {
		case err != nil && (s.ctx.Err() != nil || worker.Stops(err)):
			return err
		case err != nil:
			s.skip(id, fault.In(string(k), err))
		case !p.Empty():
			plans = append(plans, p)
		}
	}
	if len(plans) == 0 {
		return nil
	}
	if err := s.out.Propose(s.proposal(id, group, plans)); err != nil {
		return err
	}
	s.proposed++
	s.groups[group]++
	return nil
}

// throughput is what the estimate of a job's time assumes, in bytes a second,
// and settleTime what every job takes besides. They only have to be of the right
// size: the admin would stop a job that takes longer than it was told.
const (
	throughput = 8 << 20
	settleTime = 5 * time.Minute
)

func (s *scan) proposal(id iceberg.TableID, group string, plans []ops.Plan) Proposal {
	var lines []string
	var bytes int64
	for _, p := range plans {
		h := p.Head()
		lines = append(lines, fmt.Sprintf("%s: %s", h.Operation, p.Summary()))
		bytes += h.Effects.BytesRead + h.Effects.BytesWritten
	}
	return Proposal{
		Table: id, Summary: fmt.Sprintf("%s: %s", id, strings.Join(lines, "; ")), Detail: strings.Join(lines, "\n"),
		Filer: s.filer, EstimatedRuntime: settleTime + time.Duration(bytes/throughput)*time.Second, ResourceGroup: group,
	}
}

func (s *scan) observe(t *worker.Target) {
	cur := t.View.Metadata.Current()
	if cur == nil {
		return
	}
	if rows := cur.Summary()["total-records"]; rows != "" {
		s.out.Observe(Observation{Table: t.View.ID, Attributes: map[string]Value{"rows": Text(rows)}})
	}
}

// report names the tables that were skipped, by reason.
func (s *scan) report() error {
	reasons := make([]string, 0, len(s.skipped))
	for r := range s.skipped {
		reasons = append(reasons, r)
	}
	sort.Strings(reasons)
	for _, r := range reasons {
		tables := s.skipped[r]
		text := strings.Join(tables[:min(len(tables), 5)], ", ")
		if n := len(tables) - 5; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		if err := s.out.Note(Activity{Stage: "skipped", Message: fmt.Sprintf("%s: %s", text, r)}); err != nil {
			return err
		}
	}
	return s.out.Note(Activity{
		Stage: "detected", Message: fmt.Sprintf("looked at %d tables, %d have work", s.looked, s.proposed),
		Details: map[string]Value{"tables": Int(int64(s.looked)), "proposed": Int(int64(s.proposed))},
	})
}

// Execute runs the operations of one table's job.
func (m *Maintenance) Execute(ctx context.Context, job Job, out Reporter) (JobResult, error) {
	id, err := job.Table()
	if err != nil {
		return JobResult{}, err
	}
	layers, err := config.ReadForm(job.Settings.Worker)
	if err != nil {
		return JobResult{}, err
	}
	_, runner, _, err := m.open(ctx, job.Cluster)
	if err != nil {
		return JobResult{}, err
	}
	results, err := runner.Run(ctx, worker.Request{Table: id, Layers: layers, Progress: &reporting{out: out}})
	var lines []string
	outputs := map[string]Value{}
	for _, r := range results {
		out.Note(activity(r))
		if r.Status == ops.NothingToDo {
			continue
		}
		lines = append(lines, r.Message)
		for k, v := range numbers(r) {
			outputs[string(r.Operation)+"."+k] = v
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing to do")
	}
	return JobResult{Summary: strings.Join(lines, "; "), Outputs: outputs}, err
}

// activity shows a result with every number it has.
func activity(r ops.Result) Activity {
	details := numbers(r)
	for i, w := range r.Warnings {
		details[fmt.Sprintf("warning.%02d", i+1)] = Text(w)
	}
	for i, x := range r.Reasons {
		details[fmt.Sprintf("reason.%02d", i+1)] = Text(fmt.Sprintf("%s (%d): %s", x.Subject, x.Count, x.Text))
	}
	return Activity{Stage: string(r.Status), Message: r.Message, Details: details}
}

func numbers(r ops.Result) map[string]Value {
	d := map[string]Value{"run": Text(r.Run), "status": Text(string(r.Status))}
	e, prefix := r.Predicted, "predicted."
	if r.Actual != nil {
		e, prefix = *r.Actual, ""
	}
	for k, n := range map[string]int64{
		"snapshots-before": e.Before.Snapshots, "snapshots-after": e.After.Snapshots,
		"manifests-before": e.Before.Manifests, "manifests-after": e.After.Manifests,
		"data-files-before": e.Before.DataFiles, "data-files-after": e.After.DataFiles,
		"delete-files-before": e.Before.DeleteFiles, "delete-files-after": e.After.DeleteFiles,
		"rows-before": e.Before.Rows, "rows-after": e.After.Rows,
		"bytes-before": e.Before.Bytes, "bytes-after": e.After.Bytes,
		"bytes-read": e.BytesRead, "bytes-written": e.BytesWritten,
		"removed-files": e.RemovedFiles, "removed-bytes": e.RemovedBytes,
	} {
		d[prefix+k] = Int(n)
	}
	for k, n := range r.Counters {
		d[k] = Int(n)
	}
	if r.Commit != nil {
		d["commit-attempts"], d["rebases"] = Int(int64(r.Commit.Attempts)), Int(int64(r.Commit.Rebases))
	}
	return d
}

// reporting passes an operation's progress on to the admin.
type reporting struct {
	out Reporter
	mu  sync.Mutex
	at  Progress
}

// Step implements ops.Progress.
func (r *reporting) Step(what string, done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if total > 0 {
		r.at.Percent = min(99, 100*float64(done)/float64(total))
	}
	r.at.Stage, r.at.Message = what, fmt.Sprintf("%d of %d %s", done, total, what)
	r.out.Progress(r.at)
}

// Note implements ops.Progress.
func (r *reporting) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Message = text
	r.out.Progress(r.at)
}
