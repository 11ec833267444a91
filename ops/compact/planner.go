package compact

import (
	"context"
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// Selection is what a condition says about a partition.
type Selection uint8

// The selections. Undecided: the partition's spec cannot tell, so its files are
// left alone and counted.
const (
	Excluded Selection = iota
	Selected
	Undecided
)

// Selector chooses partitions for a plan that is restricted by a condition.
type Selector interface {
	// Manifest reports whether a manifest of the spec may hold a file that is not
	// excluded. Summaries are by field of the spec; nil ones say nothing.
	Manifest(t *iceberg.PartitionType, summaries []manifests.FieldSummary) bool
	// Partition decides about a tuple of the spec.
	Partition(t *iceberg.PartitionType, tuple iceberg.Tuple) Selection
}

// Bind makes the Selector of a condition for a table. What is wrong with the
// condition is its error, before anything is read.
type Bind func(where string, m *iceberg.Metadata) (Selector, error)

// NewPlanner returns the planner. Without a bind the setting where is
// fault.Unsupported.
func NewPlanner(bind Bind) ops.Planner[*Plan] { return planner{bind: bind} }

type planner struct{ bind Bind }

// Plan reads the manifests of the branch's head: those with deletes first, then
// those with data, and then those again that hold what was chosen. Data files
// are not opened.
func (pl planner) Plan(ctx context.Context, in ops.Input) (*Plan, error) {
	base, err := commit.BaseOf(in.View, in.Settings.Branch)
	if err != nil {
		return nil, err
	}
	s := in.Settings
	p := &Plan{options: Options{
		TargetBytes: s.TargetFileBytes, MaxRows: s.MaxRowsPerFile, Verify: s.Verify, MemoryBytes: s.MemoryBudgetBytes,
		ThroughputBytes: s.ThroughputBytesPerSecond, Recompress: s.Recompress, ApplyDeletes: s.ApplyDeletes,
	}}
	p.header = ops.Header{
		Format: ops.PlanFormat, Operation: config.Compact, Base: base, Guarantee: commit.FilerCAS, PlannedAt: in.Now,
	}
	w := &work{ctx: ctx, in: in, p: p, set: s, sizes: newSizes(s)}
	if err := w.prepare(pl.bind); err != nil {
		return nil, err
	}
	head, ok := in.View.Branch(s.Branch)
	if !ok {
		w.left.add(left{code: "no-snapshot", subject: s.Branch, text: "the branch has no snapshot"}, 1)
		w.finish()
		return p, nil
	}
	for _, step := range []func() error{
		func() error { return w.list(head) }, w.readDeletes, w.readData, w.choose, w.fill,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	w.effects()
	w.finish()
	return p, nil
}

// work is a plan in the making.
type work struct {
	ctx   context.Context //nolint:containedctx // lives for one call of Plan
	in    ops.Input
	p     *Plan
	set   *config.Settings
	sizes sizes

	rules    manifests.Rules
	selector Selector
	types    map[iceberg.SpecID]*iceberg.PartitionType
	// unwritable says why nothing can be written under a spec.
	unwritable map[iceberg.SpecID]string
	order      sortColumn

	data, deletes []*manifests.ManifestFile
	parts         partitions
	index         deleteIndex
	found         candidates
	left          reasons
	totals        totals
	drafts        []draft
}

// prepare refuses what cannot be planned at all, before anything is read.
func (w *work) prepare(bind Bind) error {
	m := w.in.View.Metadata
	switch w.set.RewriteStrategy {
	case config.Sort, config.ZOrder:
		return fault.New(fault.Unsupported, fmt.Sprintf("the setting rewrite_strategy=%s is not available to compact in this version", w.set.RewriteStrategy))
	}
	if w.set.Where != "" {
		if bind == nil {
			return fault.New(fault.Unsupported, "the setting where is not available to compact in this version")
		}
		var err error
		if w.selector, err = bind(w.set.Where, m); err != nil {
			return err
		}
	}
	var err error
	if w.rules, err = manifests.RulesFor(m); err != nil {
		return err
	}
	w.types, w.unwritable = map[iceberg.SpecID]*iceberg.PartitionType{}, map[iceberg.SpecID]string{}
	for i := range m.Specs {
		id := iceberg.SpecID(m.Specs[i].ID())
		t, err := m.PartitionType(id)
		if err != nil {
			return err
		}
		if err := t.Writable(m); err != nil {
			if id == m.DefaultSpecID && unknownTransform(t) {
				return err // the table's own spec: nothing that is written could be filed
			}
			w.unwritable[id] = err.Error()
		}
		w.types[id] = t
	}
	w.order = sortColumnOf(m)
	w.parts.init()
	return nil
}

// unknownTransform reports whether a spec has a transform that is not known or
// that takes several columns.
func unknownTransform(t *iceberg.PartitionType) bool {
	for _, f := range t.Fields {
		switch f.Transform.(type) {
		case icego.VoidTransform:
			continue
		case icego.IdentityTransform, icego.BucketTransform, *icego.BucketTransform, icego.TruncateTransform, *icego.TruncateTransform,
			icego.YearTransform, icego.MonthTransform, icego.DayTransform, icego.HourTransform:
			if len(f.SourceIDs) == 1 {
				continue
			}
		}
		return true
	}
	return false
}

// list reads the manifest list of the head. Manifests that v1 metadata names
// itself are read once more, because nothing is known about them.
func (w *work) list(head *iceberg.Snapshot) error {
	loc := w.in.View.Locations
	for m, err := range manifests.OfSnapshot(w.ctx, w.in.Reader, loc, head) {
		if err != nil {
			return err
		}
		if m.KeyMetadata != nil {
			return fault.New(fault.Unsupported, "manifest "+m.Path+" is encrypted")
		}
		if m.NeedsCount(1) {
			if m, err = manifests.RecountOf(w.ctx, w.in.Reader, loc, m); err != nil {
				return err
			}
		}
		if w.types[m.SpecID] == nil {
			return fault.New(fault.Corrupt, fmt.Sprintf("manifest %s is of spec %d, which the table does not have", m.Path, m.SpecID))
		}
		if m.Content == manifests.DeleteManifest {
			w.deletes = append(w.deletes, m)
		} else {
			w.data = append(w.data, m)
		}
	}
	return nil
}

// entries calls visit for every live entry of a manifest with its number.
func (w *work) entries(m *manifests.ManifestFile, want manifests.Projection, visit func(n uint32, e *manifests.Entry) error) error {
	o := manifests.ReadOptions{Projection: want, Partition: w.types[m.SpecID]}
	n := uint32(0)
	for e, err := range manifests.EntriesOf(w.ctx, w.in.Reader, w.in.View.Locations, m, o) {
		if err != nil {
			return err
		}
		if e.Live() {
			if err := visit(n, e); err != nil {
				return fault.In("plan with manifest "+m.Path, err)
			}
		}
		n++
	}
	return nil
}

// admitted reports whether a manifest may hold something of a partition that is
// not excluded, by its summaries.
func (w *work) admitted(m *manifests.ManifestFile) bool {
	t := w.types[m.SpecID]
	return w.selector == nil || w.selector.Manifest(t, m.Summaries(t))
}

// encrypted refuses an entry whose file is encrypted, and with it the table
// (F099): what is rewritten next to it would be in the clear.
func encrypted(e *manifests.Entry) error {
	if e.KeyMetadata == nil {
		return nil
	}
	return fault.New(fault.Unsupported, e.Path+" is encrypted")
}

// readable says whether a file may be read: "" or why not.
func (w *work) readable(path string) string {
	loc := w.in.View.Locations
	at, err := loc.Resolve(path)
	if err != nil {
		return "a path that cannot be told"
	}
	if loc.Foreign(at) {
		return "another bucket"
	}
	return ""
}

// finish writes down what was left and seals the plan.
func (w *work) finish() {
	w.p.header.Reasons = w.left.all()
	w.p.seal()
}
