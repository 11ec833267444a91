package rewritemanifests

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
	"github.com/seaice/seaice/ops"
)

type executor struct{}

// written is a group that is staged and proved.
type written struct {
	group Group
	// inputs are the manifests of the group as they were read.
	inputs  []*manifests.ManifestFile
	outputs []*manifests.ManifestFile
	entries int64
	bytes   int64
}

// Execute writes the new manifests once: what they hold does not depend on the
// head they are committed on. Only the list is made for each head.
func (executor) Execute(ctx context.Context, p *Plan, st *commit.Stage, pr ops.Progress) (ops.Work, error) {
	x := &execution{ctx: ctx, p: p, st: st}
	v, err := iceberg.Load(ctx, st.Reader(), p.header.Base.Table)
	if err != nil {
		return ops.Work{}, err
	}
	for _, r := range x.requirements() {
		if err := r.Check(v); err != nil {
			return ops.Work{}, err
		}
	}
	head, ok := v.Branch(p.header.Base.Branch)
	if !ok {
		return ops.Work{}, fault.New(fault.Stale, fmt.Sprintf("branch %q is gone", p.header.Base.Branch))
	}
	x.view = v
	live := map[string]*manifests.ManifestFile{}
	for m, err := range manifests.OfSnapshot(ctx, st.Reader(), v.Locations, head) {
		if err != nil {
			return ops.Work{}, err
		}
		live[m.Path] = m
	}
	for i, g := range p.groups {
		pr.Step("groups of manifests", int64(i), int64(len(p.groups)))
		inputs := make([]*manifests.ManifestFile, 0, len(g.Inputs))
		for _, in := range g.Inputs {
			if m, ok := live[in.Path]; ok {
				inputs = append(inputs, m)
			}
		}
		if len(inputs) < len(g.Inputs) {
			x.drop(g, len(g.Inputs)-len(inputs))
			continue
		}
		w, err := x.rewrite(g, inputs)
		if err != nil {
			return ops.Work{}, err
		}
		x.done = append(x.done, w)
	}
	pr.Step("groups of manifests", int64(len(p.groups)), int64(len(p.groups)))
	return ops.Work{
		Change: commit.Change{
			Operation: string(config.RewriteManifests), Base: p.header.Base, Requirements: x.requirements(), Rebuild: x.rebuild,
		},
		After: x.after,
	}, nil
}

type execution struct {
	ctx     context.Context
	p       *Plan
	st      *commit.Stage
	view    *iceberg.View
	done    []written
	dropped []ops.Reason
	// What the last rebuild did.
	before, after_   ops.Totals
	created, kept    int64
	replaced, copied int64
	lost             []ops.Reason
}

func (x *execution) requirements() []commit.Requirement {
	b := x.p.header.Base
	return []commit.Requirement{
		commit.SameTable{UUID: b.UUID, FormatVersion: b.FormatVersion},
		commit.Descends{Branch: b.Branch, Snapshot: b.Snapshot},
	}
}

func dropReason(g Group, gone int) ops.Reason {
	return ops.Reason{
		Code: "replaced-meanwhile", Subject: groupKey{g.Spec, g.Content}.String(), Count: int64(len(g.Inputs)),
		Text: fmt.Sprintf("%d of %d manifests of the group are not in the branch any more, or got row ids", gone, len(g.Inputs)),
	}
}

func (x *execution) drop(g Group, gone int) { x.dropped = append(x.dropped, dropReason(g, gone)) }

// rewrite carries the live entries of inputs into new manifests and proves that
// they hold the same.
func (x *execution) rewrite(g Group, inputs []*manifests.ManifestFile) (written, error) {
	spec := g.Spec
	if spec < 0 {
		spec = inputs[0].SpecID
	}
	part, err := manifests.PartitioningOf(x.view.Metadata, spec)
	if err != nil {
		return written{}, err
	}
	o := manifests.WriterOptions{
		Version: x.view.Metadata.FormatVersion, Content: g.Content, Partitioning: part, Codec: avro.Deflate,
		// Carried entries keep their own snapshot; the list names the committing one.
		SnapshotID: x.p.header.Base.Snapshot,
	}
	out, err := manifests.NewSplitter(manifests.SplitterOptions{Writer: o, TargetBytes: x.p.target, Create: x.create})
	if err != nil {
		return written{}, err
	}
	was := newProof()
	if g.Clustered {
		err = x.sorted(o, inputs, out, was)
	} else {
		err = x.each(inputs, was, out.Carry)
	}
	if err != nil {
		return written{}, err
	}
	outputs, err := out.Close()
	if err != nil {
		return written{}, err
	}
	now := newProof()
	w := written{group: g, inputs: inputs, outputs: outputs, entries: was.entries}
	for i, m := range outputs {
		m = m.Clone()
		m.Seq = manifests.Some(x.p.header.Base.Sequence)
		w.bytes += m.Length
		if err := x.each([]*manifests.ManifestFile{m}, now, nil); err != nil {
			return written{}, fault.In("read back "+outputs[i].Path, err)
		}
	}
	return w, was.equals(now)
}

// each passes the live entries of manifests to write, in order, and takes them
// into the proof.
func (x *execution) each(inputs []*manifests.ManifestFile, pf *proof, write func(*manifests.Entry) error) error {
	for _, m := range inputs {
		for e, err := range manifests.EntriesOf(x.ctx, x.st.Reader(), x.view.Locations, m, manifests.ReadOptions{}) {
			if err != nil {
				return err
			}
			if !e.Live() {
				continue
			}
			if e.KeyMetadata != nil {
				return fault.New(fault.Unsupported, "file "+e.Path+" is encrypted")
			}
			pf.add(e)
			if write == nil {
				continue
			}
			if err := write(e); err != nil {
				return fault.In("rewrite "+m.Path, err)
			}
		}
	}
	return nil
}

func (x *execution) sorted(o manifests.WriterOptions, inputs []*manifests.ManifestFile, out *manifests.Splitter, was *proof) error {
	s := newSorter(x.ctx, o, x.p.spill)
	defer s.close()
	if err := x.each(inputs, was, s.add); err != nil {
		return err
	}
	return s.merge(out)
}

// create stages the file of a new manifest.
func (x *execution) create(int) (io.WriteCloser, string, error) {
	name, err := x.st.Metadata(x.ctx)
	if err != nil {
		return nil, "", err
	}
	f, err := x.st.Create(x.ctx, name)
	if err != nil {
		return nil, "", err
	}
	return &staged{File: f, ctx: x.ctx}, f.Location(), nil
}

type staged struct {
	*commit.File
	ctx context.Context
}

// Close makes the file durable.
func (s *staged) Close() error {
	_, err := s.Done(s.ctx)
	return err
}

// rebuild puts the new manifests into the head's list, in place of those they
// replace. A group of which the head has lost a manifest is left out.
func (x *execution) rebuild(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
	sn, err := st.Begin(head, x.p.header.Base.Branch)
	if err != nil {
		return commit.Next{}, err
	}
	list, err := sn.Manifests(ctx)
	if err != nil {
		return commit.Next{}, err
	}
	have := map[string]*manifests.ManifestFile{}
	for _, m := range list {
		have[m.Path] = m
	}
	x.lost, x.created, x.replaced, x.copied = nil, 0, 0, 0
	gone := map[string]bool{}
	var fresh []*manifests.ManifestFile
	for _, w := range x.done {
		missing := 0
		for _, in := range w.inputs {
			// A snapshot made meanwhile may have given the rows of an old manifest
			// their ids (P5), which the rewritten entries do not have.
			if m := have[in.Path]; m == nil || m.FirstRowID != in.FirstRowID {
				missing++
			}
		}
		if missing > 0 {
			x.lost = append(x.lost, dropReason(w.group, missing))
			continue
		}
		for _, in := range w.group.Inputs {
			gone[in.Path] = true
		}
		for _, m := range w.outputs {
			m = m.Clone()
			m.SnapshotID = manifests.Some(sn.ID)
			fresh = append(fresh, m)
		}
		x.created += int64(len(w.outputs))
		x.replaced += int64(len(w.group.Inputs))
		x.copied += w.entries
	}
	if len(gone) == 0 {
		return commit.Next{}, nil
	}
	x.before = totals(list)
	next := append(fresh, slices.DeleteFunc(slices.Clone(list), func(m *manifests.ManifestFile) bool { return gone[m.Path] })...)
	x.after_ = totals(next)
	x.kept = int64(len(next)) - x.created
	return sn.Finish(ctx, "replace", next, commit.Summary{Extra: map[string]string{
		"manifests-created":  fmt.Sprint(x.created),
		"manifests-kept":     fmt.Sprint(x.kept),
		"manifests-replaced": fmt.Sprint(x.replaced),
		"entries-processed":  fmt.Sprint(x.copied),
	}})
}

// after reports what the committed attempt did. Replaced manifests stay until
// the snapshots that name them expire.
func (x *execution) after(_ context.Context, d ops.Done) (ops.Actual, error) {
	e := ops.Effects{Before: x.before, After: x.after_, RowsExact: true}
	e.After.Snapshots = int64(len(d.Head.Metadata.Snapshots))
	e.Before.Snapshots = e.After.Snapshots - 1
	for _, w := range x.done {
		for _, in := range w.group.Inputs {
			e.BytesRead += in.Length
			e.FreedLaterBytes += in.Length
		}
		e.BytesRead += w.bytes
		e.BytesWritten += w.bytes
	}
	return ops.Actual{
		Effects: e,
		Counters: map[string]int64{
			"manifests-created": x.created, "manifests-replaced": x.replaced, "manifests-kept": x.kept, "entries-carried": x.copied,
		},
		Reasons: append(x.dropped, x.lost...),
	}, nil
}

// pull turns a sequence of entries into a function.
func pull(seq iter.Seq2[*manifests.Entry, error]) (next func() (*manifests.Entry, error, bool), stop func()) {
	return iter.Pull2(seq)
}
