package compact

import (
	"context"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// retire finds the deletes that leave with this commit: those that can hit
// nothing any more once the inputs are gone (F132). Only deletes in the scope of
// the units are looked at, and only what is proved dead goes.
func (a *attempt) retire(ctx context.Context) error {
	removed := map[string]*located{}
	for _, u := range a.units {
		for i := range u.Unit.Inputs {
			path := u.Unit.Inputs[i].Path
			removed[path] = a.inputs[path]
		}
	}
	var open []*located
	for _, d := range a.scope.all {
		target, single := d.Target()
		if single && removed[target] != nil {
			// The path is live nowhere else: find refuses a file that is live twice.
			a.dead = append(a.dead, d)
			continue
		}
		open = append(open, d)
	}
	if len(open) == 0 {
		return nil
	}
	a.x.known.remember(open)
	l := newLife(a.rules, open)
	for _, u := range a.units {
		for n := range u.Outputs {
			e := u.entry(n, a.head.Metadata.FormatVersion)
			// Outputs are new: no delete of before can name one by its position.
			l.equal.See(e)
		}
	}
	l.settle()
	for _, m := range a.list {
		if l.open == nil {
			break
		}
		matters, err := l.matters(a.head.Metadata, m)
		if err != nil {
			return err
		}
		if !matters {
			continue
		}
		if err := a.watch(ctx, m, removed, l); err != nil {
			return err
		}
	}
	a.dead = append(a.dead, l.open...)
	return nil
}

// watch shows what of a data manifest matters, without the inputs that go.
func (a *attempt) watch(ctx context.Context, m *manifests.ManifestFile, removed map[string]*located, l *life) error {
	got, ok := a.x.known.traces[keyOf(m)]
	if !ok {
		var err error
		if got, err = a.trace(ctx, m); err != nil {
			return err
		}
		a.x.known.traces[keyOf(m)] = got
	}
	for _, e := range got {
		if r := removed[e.Path]; r != nil && r.manifest == m.Path {
			continue
		}
		l.equal.See(e)
		l.position.See(e)
	}
	l.settle()
	return nil
}

// trace reads what of a data manifest matters for deletes in scope: every live
// file that a delete names or that is an input, and of the others, for each
// partition, one with the least sequence number.
func (a *attempt) trace(ctx context.Context, m *manifests.ManifestFile) ([]*manifests.Entry, error) {
	var got []*manifests.Entry
	least := map[iceberg.PartitionKey]*manifests.Entry{}
	o := manifests.ReadOptions{Projection: manifests.ProjectPath | manifests.ProjectPartition, Types: a.head.Metadata.PartitionType}
	for e, err := range manifests.EntriesOf(ctx, a.st.Reader(), a.head.Locations, m, o) {
		if err != nil {
			return nil, err
		}
		if !e.Live() || e.Content != manifests.Data {
			continue
		}
		if a.x.known.wanted[e.Path] || a.x.known.watched[e.Path] {
			got = append(got, lean(e))
			continue
		}
		key := e.PartitionKey()
		if !a.scope.touched[key] {
			key = iceberg.PartitionKey{Spec: -1} // one for all: only deletes of the whole table care
		}
		if was := least[key]; was == nil || e.DataSeq.Or(0) < was.DataSeq.Or(0) {
			least[key] = lean(e)
		}
	}
	for _, e := range least {
		got = append(got, e)
	}
	return got, nil
}

// remember makes sure that traces know the files that deletes name: those that
// do not are forgotten.
func (k *remembered) remember(open []*located) {
	for _, d := range open {
		if path, ok := d.Target(); ok && !k.watched[path] {
			clear(k.traces)
			k.watched[path] = true
		}
	}
}

// life decides which of the deletes that are open can hit nothing.
type life struct {
	rules manifests.Rules
	// equal and position see different files: new outputs count for equality
	// deletes, with their explicit sequence number, and cannot be named by an
	// older position delete.
	equal, position *manifests.Liveness
	// open are those that nothing has been seen for yet; nil once there are none.
	open []*located
	// reach are their partitions, global that one of them applies everywhere, most
	// the greatest of their sequence numbers.
	reach  *reach
	global bool
	most   iceberg.SeqNum
}

func newLife(rules manifests.Rules, open []*located) *life {
	l := &life{rules: rules, equal: manifests.NewLiveness(rules), position: manifests.NewLiveness(rules), open: open}
	for _, d := range open {
		l.equal.Watch(d.Entry)
		l.position.Watch(d.Entry)
	}
	l.settle()
	return l
}

func (l *life) dangling(d *located) bool {
	if d.Content == manifests.EqualityDeletes {
		return l.equal.Dangling(d.Entry)
	}
	return l.position.Dangling(d.Entry)
}

// settle lets go of the deletes that were seen to be alive.
func (l *life) settle() {
	var still []*located
	r := newReach()
	l.global, l.most = false, 0
	for _, d := range l.open {
		if !l.dangling(d) {
			continue
		}
		still = append(still, d)
		r.add(d.PartitionKey())
		l.global = l.global || d.Content == manifests.EqualityDeletes && l.rules.GlobalSpecs[d.SpecID]
		l.most = max(l.most, d.DataSeq.Or(0))
	}
	l.open, l.reach = still, r
}

// matters reports whether a manifest can hold a file that keeps one of the open
// deletes alive: one of its partition that is not newer.
func (l *life) matters(m *iceberg.Metadata, f *manifests.ManifestFile) (bool, error) {
	if f.Content != manifests.DataManifest || !f.MayHaveLive() {
		return false, nil
	}
	if least, ok := f.MinSeq.Get(); ok && least > l.most {
		return false, nil
	}
	if l.global {
		return true, nil
	}
	return l.reach.touches(m, f)
}
