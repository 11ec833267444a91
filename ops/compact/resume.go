package compact

import (
	"context"
	"fmt"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
)

// Resumes reports whether what an earlier run had finished is of use to a plan:
// whether the inputs of one of its units are all to be rewritten again.
func (executor) Resumes(p *Plan, units []journal.Unit) bool {
	planned := p.inputs()
	for _, u := range units {
		if r, err := readRecord(u); err == nil && r.uses(p) && r.within(planned) {
			return true
		}
	}
	return false
}

// inputs are the paths of all inputs of the plan.
func (p *Plan) inputs() map[string]bool {
	out := map[string]bool{}
	for i := range p.units {
		for k := range p.units[i].Inputs {
			out[p.units[i].Inputs[k].Path] = true
		}
	}
	return out
}

// uses reports whether the unit is of the same table and branch as the plan.
func (r *record) uses(p *Plan) bool {
	a, b := r.Base, p.header.Base
	return a.UUID == b.UUID && a.FormatVersion == b.FormatVersion && a.Branch == b.Branch
}

// requirements are what the state a unit was planned on asks of a head.
func (r *record) requirements() []commit.Requirement {
	return []commit.Requirement{
		commit.ReadableSchema{Schema: r.Base.Schema}, commit.Descends{Branch: r.Base.Branch, Snapshot: r.Base.Snapshot},
	}
}

func (r *record) within(planned map[string]bool) bool {
	for i := range r.Unit.Inputs {
		if !planned[r.Unit.Inputs[i].Path] {
			return false
		}
	}
	return true
}

// inherit takes in the units that earlier runs had finished, verified and
// journalled whole (F137). Whether they still stand is decided on the head, as
// for any other unit.
func (x *execution) inherit(ctx context.Context) error {
	whole := x.whole()
	planned, taken := whole.inputs(), map[string]bool{}
	for _, u := range x.st.Inherited() {
		f, why, err := x.resume(ctx, u, whole, planned, taken)
		if err != nil {
			return err
		}
		if why != "" {
			x.pr.Note(fmt.Sprintf("unit %s of an earlier run is not resumed: %s", u.ID, why))
			continue
		}
		for i := range f.Unit.Inputs {
			taken[f.Unit.Inputs[i].Path] = true
		}
		x.done = append(x.done, f)
	}
	return nil
}

// whole is the plan that this one is a part of, or itself.
func (x *execution) whole() *Plan {
	if x.p.whole != nil {
		return x.p.whole
	}
	return x.p
}

// resume makes a finished unit of what an earlier run journalled, or says why
// not. Damage in a journal is no damage of the table.
func (x *execution) resume(ctx context.Context, u journal.Unit, p *Plan, planned, taken map[string]bool) (*finished, string, error) {
	r, err := readRecord(u)
	switch {
	case err != nil:
		return nil, err.Error(), nil
	case !r.uses(p):
		return nil, "it is of another table or branch", nil
	case !r.within(planned):
		return nil, "not all of its inputs are to be rewritten any more", nil
	case r.Unit.overlap(taken) != nil:
		return nil, "another resumed unit has its inputs", nil
	}
	for _, q := range r.requirements() {
		if err := q.Check(x.view); err != nil {
			return nil, err.Error(), nil
		}
	}
	f, err := r.complete(x.view.Metadata)
	if fault.Is(err, fault.Stale) || fault.Is(err, fault.Corrupt) {
		return nil, err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	f.resumed = true
	files := []stored{f.Map}
	for i := range f.Outputs {
		o := &f.Outputs[i]
		files = append(files, stored{At: o.At, Bytes: o.Bytes, Identity: o.Identity})
	}
	for _, s := range files {
		why, err := x.unchanged(ctx, s)
		if why != "" || err != nil {
			return nil, why, err
		}
	}
	return f, "", x.journal(ctx, f)
}

// unchanged says why a staged file is not the one that was journalled, or "".
func (x *execution) unchanged(ctx context.Context, s stored) (string, error) {
	e, err := x.st.Reader().Stat(ctx, s.At)
	switch {
	case filer.NotFound(err):
		return s.At.String() + " is gone", nil
	case err != nil:
		return "", err
	case e.Identity() != s.Identity || e.Size != s.Bytes:
		return s.At.String() + " was replaced by another file", nil
	}
	return "", nil
}
