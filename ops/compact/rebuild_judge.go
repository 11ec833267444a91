package compact

import (
	"context"
	"fmt"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/movement"
)

// gone says which input of a unit is not there as it was planned, or nil.
func gone(u *Unit, here map[string]*located) *ops.Reason {
	for i := range u.Inputs {
		in := &u.Inputs[i]
		e := here[in.Path]
		if e == nil {
			r := u.reason("input-removed", in.Path+" was removed since planning")
			return &r
		}
		if e.PartitionKey() != u.Partition {
			r := u.reason("input-changed", in.Path+" was added again in another partition since planning")
			return &r
		}
		if d := in.differs(e.Entry); d != "" {
			r := u.reason("input-changed", in.Path+" "+d)
			return &r
		}
	}
	return nil
}

// judge decides whether a unit stands on the head (commits, "Requirements" and
// "Rebase"), and what has to be deleted in its outputs. A reason says that it
// does not stand.
func (a *attempt) judge(ctx context.Context, f *finished) (*standing, *ops.Reason, error) {
	drop := func(code, text string) (*standing, *ops.Reason, error) {
		r := f.Unit.reason(code, text)
		return nil, &r, nil
	}
	// Those of the plan's own base are requirements of the whole change.
	var own []commit.Requirement
	if f.Base != a.x.p.header.Base {
		own = f.requirements()
	}
	for _, r := range own {
		if err := r.Check(a.head); err != nil {
			if !fault.Is(err, fault.Stale) {
				return nil, nil, err
			}
			return drop("base-gone", err.Error())
		}
	}
	if why := gone(&f.Unit, a.inputs); why != nil {
		return nil, why, nil
	}
	s := &standing{finished: f}
	var moves *movement.Map
	for i := range f.Unit.Inputs {
		e := a.inputs[f.Unit.Inputs[i].Path]
		n := a.compare(f, i, a.applying(e.Entry))
		if len(n.lost) == 0 && len(n.late) == 0 {
			continue
		}
		if moves == nil {
			var err error
			if moves, err = a.x.movementOf(ctx, f); err != nil {
				return nil, nil, err
			}
		}
		why, err := a.follow(ctx, s, moves, i, e, n)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			return drop("rows-came-back", why)
		}
	}
	return s, nil, nil
}

// news is what differs between the deletes that applied to an input at planning
// and those that apply to it now.
type news struct {
	// here are all that apply now; lost are planned ones that do not any more.
	here []*located
	lost []*Delete
	// late are new ones that do not apply to the outputs by themselves.
	late []*located
}

// deleteKey is a delete as it was added by one commit.
type deleteKey struct {
	manifests.DeleteID
	seq iceberg.SeqNum
}

func (a *attempt) compare(f *finished, input int, here []*located) news {
	n := news{here: here}
	now := map[deleteKey]bool{}
	for _, d := range here {
		now[deleteKey{d.DeleteID(), d.DataSeq.Or(0)}] = true
	}
	planned := map[deleteKey]bool{}
	for _, ap := range f.Unit.Deletes {
		if !ap.To(input) {
			continue
		}
		d := &f.Deletes[ap.Delete]
		k := deleteKey{d.Identity(), d.DataSeq}
		planned[k] = true
		if !now[k] {
			n.lost = append(n.lost, d)
		}
	}
	for _, d := range here {
		if !planned[deleteKey{d.DeleteID(), d.DataSeq.Or(0)}] && !a.carriesOver(f, d) {
			n.late = append(n.late, d)
		}
	}
	return n
}

// carriesOver reports whether a delete that applies to an input will apply to
// the outputs too, as they are: an equality delete that is newer than the
// outputs' sequence number, whose scope holds them, and whose columns they all
// have.
func (a *attempt) carriesOver(f *finished, d *located) bool {
	if d.Content != manifests.EqualityDeletes || d.DataSeq.Or(0) <= f.Base.Sequence {
		return false
	}
	if !a.rules.GlobalSpecs[d.SpecID] && d.PartitionKey() != f.Unit.Partition {
		return false
	}
	for _, id := range d.EqualityIDs {
		if !f.keys[id] {
			return false
		}
	}
	return len(d.EqualityIDs) > 0
}

// follow makes up for deletes of an input that came or went since planning. The
// answer is why the unit cannot stand, or "".
func (a *attempt) follow(ctx context.Context, s *standing, moves *movement.Map, input int, e *located, n news) (string, error) {
	dropped := moves.DroppedRows(input)
	if len(n.lost) > 0 {
		now, why, err := a.positions(ctx, e, n.here)
		if err != nil || why != "" {
			return why, err
		}
		back := dropped.Clone()
		back.AndNot(now)
		if !back.Empty() {
			return fmt.Sprintf("%d rows of %s that delete %s deleted at planning are not deleted any more", back.Len(), e.Path, n.lost[0].Path), nil
		}
	}
	if len(n.late) == 0 {
		return "", nil
	}
	fresh, why, err := a.positions(ctx, e, n.late)
	if err != nil || why != "" {
		return why, err
	}
	return "", s.translate(moves, input, fresh)
}

// positions are the rows of a data file that deletes delete. What this program
// cannot read is no error but a reason to let the unit go.
func (a *attempt) positions(ctx context.Context, e *located, dels []*located) (*deletes.Positions, string, error) {
	if len(dels) == 0 {
		return &deletes.Positions{}, "", nil
	}
	q := loading{reader: a.st.Reader(), view: a.head, read: a.read, files: []*manifests.Entry{e.Entry}, memory: a.x.memory(), cache: a.x.cache}
	for _, d := range dels {
		if d.KeyMetadata != nil {
			return nil, "delete " + d.Path + " is encrypted", nil
		}
		q.deletes = append(q.deletes, d.Entry)
		q.to = append(q.to, []int{0})
	}
	got, err := a.x.tools.load(ctx, q)
	switch {
	case err == nil && len(got) == 1 && got[0] != nil:
		return got[0], "", nil
	case err == nil:
		return &deletes.Positions{}, "", nil
	case fault.Is(err, fault.Unsupported), fault.Is(err, fault.TooLarge), fault.Is(err, fault.Stale):
		return nil, fmt.Sprintf("the new deletes of %s cannot be read: %s", e.Path, err), nil
	}
	return nil, "", fault.In("read the new deletes of "+e.Path, err)
}

// movementOf reads the movement map of a unit.
func (x *execution) movementOf(ctx context.Context, f *finished) (*movement.Map, error) {
	content, _, err := filer.ReadAll(ctx, x.st.Reader(), f.Map.At, movement.MaxBytes)
	if err != nil {
		return nil, fault.In("read the movement map of "+f.Unit.subject(), err)
	}
	m, err := movement.Parse(content)
	if err != nil {
		return nil, fault.In(f.Map.At.String(), err)
	}
	if len(m.Sources) != len(f.Unit.Inputs) || len(m.Outputs) != len(f.Outputs) {
		return nil, fault.New(fault.Corrupt, f.Map.At.String()+" is not the map of "+f.Unit.subject())
	}
	for i := range m.Sources {
		if in := &f.Unit.Inputs[i]; m.Sources[i].Location != in.Path || m.Sources[i].Rows != in.Records {
			return nil, fault.New(fault.Corrupt, f.Map.At.String()+" is of other inputs than "+f.Unit.subject())
		}
	}
	for i := range m.Outputs {
		if o := &f.Outputs[i]; m.Outputs[i].Location != o.Location || m.Outputs[i].Rows != o.Records {
			return nil, fault.New(fault.Corrupt, f.Map.At.String()+" is of other outputs than "+f.Unit.subject())
		}
	}
	return m, nil
}
