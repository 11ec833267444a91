package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/trash"
)

// after measures and removes what the commit freed. Nothing here changes the
// outcome any more: failures are warnings.
func (r *Runner) after(ctx context.Context, k ops.Kind, p ops.Plan, t *Target, st *commit.Stage, tr *trash.Trash, work ops.Work, res *ops.Result) {
	if work.After == nil {
		return
	}
	var got ops.Actual
	err := guard("clean up after "+string(k), func() error {
		head, err := iceberg.Load(ctx, r.o.Filer, res.Table)
		if err != nil {
			return fault.In("read the table after the commit", err)
		}
		rm := &remover{r: r, t: t, st: st, tr: tr, head: head}
		got, err = work.After(ctx, ops.Done{Commit: *res.Commit, Stage: st, Head: head, Remove: rm.remove})
		return err
	})
	if err != nil {
		res.Warnings = append(res.Warnings, err.Error())
		return
	}
	res.Actual, res.Counters = &got.Effects, got.Counters
	res.Reasons = append(res.Reasons, got.Reasons...)
	report(res, p, got.Reasons)
	res.Warnings = append(res.Warnings, got.Warnings...)
	if got.Proof != nil {
		res.Proof = append(res.Proof, got.Proof)
	}
}

// report states what was done instead of what was planned.
func report(res *ops.Result, p ops.Plan, reasons []ops.Reason) {
	if p, ok := p.(ops.Reporter); ok && res.Actual != nil {
		res.Message = fmt.Sprintf("%s: %s", res.Operation, p.Report(*res.Actual, res.Counters, reasons))
	}
}

// remover is the one door through which an operation removes files.
type remover struct {
	r    *Runner
	t    *Target
	st   *commit.Stage
	tr   *trash.Trash
	head *iceberg.View
	// allowed is made by the first batch.
	allowed func(filer.Path) error
}

func (m *remover) remove(ctx context.Context, files []journal.File) (ops.Removed, error) {
	var out ops.Removed
	if len(files) == 0 {
		return out, nil
	}
	if !m.t.Settings.GCEnabled || strings.EqualFold(strings.TrimSpace(m.head.Metadata.Properties["gc.enabled"]), "false") {
		return out, fault.New(fault.Unsupported, "remove files: the table property gc.enabled is false")
	}
	if m.r.o.Tenancy == nil {
		return out, fault.New(fault.Halt, "remove files: nobody knows the other tables")
	}
	if m.allowed == nil {
		allowed, err := m.r.o.Tenancy.Allowed(ctx, m.head)
		if err != nil {
			return out, fault.In("find out what the table owns alone", err)
		}
		m.allowed = allowed
	}
	paths := make([]filer.Path, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	foreign, err := m.r.o.Tenancy.Foreign(ctx, m.head, paths)
	if err != nil {
		return out, fault.In("find out what other tables reference", err)
	}
	rep, err := m.tr.Remove(ctx, m.st.Run(), trash.Batch{Files: files, Allowed: func(p filer.Path) error {
		if other, ok := foreign[p]; ok {
			return fault.New(fault.Unsupported, fmt.Sprintf("remove %s: table %s references it", p, other))
		}
		return m.allowed(p)
	}})
	if err != nil {
		return out, err
	}
	out.Files = int64(rep.Count(trash.Moved) + rep.Count(trash.Purged))
	out.Bytes = rep.Bytes(trash.Moved) + rep.Bytes(trash.Purged)
	out.Gone = int64(rep.Count(trash.Gone))
	for _, p := range rep.Problems() {
		out.Kept = append(out.Kept, journal.Kept{Path: p.Path, Reason: p.Detail})
	}
	return out, nil
}

// recover brings to their end the runs on the table that were left open and
// whose lease has run out. One that cannot be ended does not stop new runs,
// unless the table itself cannot be trusted.
func (r *Runner) recover(ctx context.Context, t *Target) error {
	id, err := commit.UUIDOf(t.View)
	if err != nil {
		return nil // it has no journals, and every plan refuses it
	}
	tr, err := trash.New(r.o.Filer, r.o.Clock, trash.Options{Grace: t.Settings.TrashRetention})
	if err != nil {
		return err
	}
	c := commit.New(r.o.Filer, r.o.Clock, commit.Options{Profile: r.o.Profile, Draw: r.o.Draw})
	var worst error
	for st, err := range r.store.OpenRuns(ctx, id) {
		if err != nil {
			r.o.Events.trouble(t.View.ID, err)
			worst = errors.Join(worst, err)
			continue
		}
		if !st.Expired(t.Now) && st.Phase() == journal.Open {
			continue
		}
		done, err := r.store.Resolve(ctx, st, c.Resolver(), tr, journal.ResolveOptions{OrphanAge: t.Settings.OrphanOlderThan})
		r.o.Events.resolved(t.View.ID, done, err)
		worst = errors.Join(worst, err)
	}
	switch fault.Of(worst) {
	case fault.Halt, fault.Canceled:
		return worst
	}
	return nil
}
