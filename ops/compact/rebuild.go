package compact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite/deletes"
)

// attempt is one rebuild of the change on one head. Everything that depends on
// the head is found out anew; only immutable files are remembered.
type attempt struct {
	x     *execution
	st    *commit.Stage
	head  *iceberg.View
	sn    *commit.Snapshot
	list  []*manifests.ManifestFile
	rules manifests.Rules
	// read is how deletes of the head are read: their columns may have come after
	// the run had begun.
	read reading

	// inputs are those that are live at the head, by path.
	inputs map[string]*located
	// scope are the deletes of the head that may matter.
	scope *headDeletes

	// units stand on this head; lost says why others do not.
	units []*standing
	lost  []ops.Reason
	// dead are the deletes that leave.
	dead []*located
	// marks are the deletes added for outputs.
	marks []*manifests.Entry
	// made are the manifests that are new, next is the list of the snapshot.
	made []*manifests.ManifestFile
	next []*manifests.ManifestFile
	// replaced counts manifests of the head that are not in the new list.
	replaced int64
	sum      commit.Summary
}

// standing is a unit that stands on the head, with what is to be deleted in its
// outputs.
type standing struct {
	*finished
	// moved are rows of outputs, by number, that others deleted in the inputs
	// since planning.
	moved movedRows
}

// located is an entry and the manifest that holds it.
type located struct {
	*manifests.Entry
	manifest string
}

// rebuild puts what was staged onto a head. It is called for each attempt, and
// decides everything again: which units still stand, which deletes go, which
// have to be added for rows that others deleted meanwhile.
func (x *execution) rebuild(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
	a := &attempt{x: x, st: st, head: head}
	x.last = a
	if x.cache == nil {
		// Late deletes are looked at for one input after another.
		x.cache = deletes.NewCache(x.memory() / 4)
	}
	var err error
	if a.sn, err = st.Begin(head, x.p.header.Base.Branch); err != nil {
		return commit.Next{}, err
	}
	if a.list, err = a.sn.Manifests(ctx); err != nil {
		return commit.Next{}, err
	}
	if a.rules, err = manifests.RulesFor(head.Metadata); err != nil {
		return commit.Next{}, err
	}
	if a.read, err = newReading(head, x.p.header.Base.Schema); err != nil {
		return commit.Next{}, err
	}
	if err := a.survey(ctx); err != nil {
		return commit.Next{}, err
	}
	for _, f := range x.done {
		s, why, err := a.judge(ctx, f)
		if err != nil {
			return commit.Next{}, err
		}
		if why != nil {
			a.lost = append(a.lost, *why)
			continue
		}
		a.units = append(a.units, s)
	}
	if len(a.units) == 0 {
		return commit.Next{}, nil
	}
	if err := a.retire(ctx); err != nil {
		return commit.Next{}, err
	}
	if err := a.write(ctx); err != nil {
		return commit.Next{}, err
	}
	a.use()
	a.summarize()
	next, err := a.sn.Finish(ctx, "replace", a.next, a.sum)
	if err == nil {
		x.attempts[a.sn.ManifestList] = a
	}
	return next, err
}

// use tells the stage which of its files the attempt refers to.
func (a *attempt) use() {
	for _, u := range a.units {
		a.st.Use(u.Map.At)
		for i := range u.Outputs {
			a.st.Use(u.Outputs[i].At)
		}
	}
	for _, e := range a.marks {
		if p, err := a.head.Locations.Resolve(e.Path); err == nil {
			a.st.Use(p)
		}
	}
}

// summarize counts what the snapshot changes, from the entries themselves
// (F129, F136).
func (a *attempt) summarize() {
	s := &a.sum
	parts := map[iceberg.PartitionKey]bool{}
	for _, u := range a.units {
		parts[u.Unit.Partition] = true
		for i := range u.Unit.Inputs {
			s.RemovedDataFiles++
			s.RemovedRecords += u.Unit.Inputs[i].Records
			s.RemovedBytes += u.Unit.Inputs[i].Bytes
		}
		for i := range u.Outputs {
			s.AddedDataFiles++
			s.AddedRecords += u.Outputs[i].Records
			s.AddedBytes += u.Outputs[i].Bytes
		}
	}
	for _, d := range a.dead {
		parts[d.PartitionKey()] = true
		s.RemovedDeleteFiles++
		s.RemovedBytes += contentBytes(d.Entry)
		switch {
		case d.Content == manifests.EqualityDeletes:
			s.RemovedEqualityFiles++
			s.RemovedEqualities += d.Records
		case d.IsVector():
			s.RemovedVectors++
			s.RemovedPositions += d.Records
		default:
			s.RemovedPositionFiles++
			s.RemovedPositions += d.Records
		}
	}
	for _, e := range a.marks {
		s.AddedDeleteFiles++
		s.AddedBytes += contentBytes(e)
		s.AddedPositions += e.Records
		if e.IsVector() {
			s.AddedVectors++
		} else {
			s.AddedPositionFiles++
		}
	}
	s.ChangedPartitions = int64(len(parts))
	s.Extra = map[string]string{
		"seaice.run":   a.st.Run().ID(),
		"seaice.units": fmt.Sprint(len(a.units)),
		"seaice.maps":  a.maps(),
	}
}

// maps names the movement maps of the commit by what their names begin with: the
// token of the run that staged them. One run may have adopted others.
func (a *attempt) maps() string {
	var out []string
	for _, u := range a.units {
		name := u.Map.At.String()
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// contentBytes is what a file counts for: a vector by its blob, as the file
// around it may hold many.
func contentBytes(e *manifests.Entry) int64 {
	if n, ok := e.ContentSize.Get(); ok && e.IsVector() {
		return n
	}
	return e.Bytes
}

// left is why units were left out, for a run that committed nothing.
func (x *execution) left() []ops.Reason {
	out := slices.Clone(x.dropped)
	if x.last != nil {
		out = append(out, x.last.lost...)
	}
	return out
}

func compareReasons(a, b ops.Reason) int {
	return slices.Compare([]string{a.Subject, a.Code, a.Text}, []string{b.Subject, b.Code, b.Text})
}
