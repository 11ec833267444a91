package expire

import (
	"context"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

type executor struct{}

// Execute stages nothing: the change is one of metadata alone.
func (executor) Execute(ctx context.Context, p *Plan, st *commit.Stage, pr ops.Progress) (ops.Work, error) {
	x := &execution{p: p, st: st, f: p.freed, pr: pr}
	if x.f == nil || x.f.files.closed {
		// The plan was stored; what is on disk by now is looked at.
		pr.Note("reading the manifests of expiring snapshots")
		if err := x.again(ctx); err != nil {
			return ops.Work{}, err
		}
	}
	return ops.Work{
		Change: commit.Change{
			Operation: string(config.ExpireSnapshots), Base: p.header.Base, Requirements: p.requirements(), Rebuild: x.rebuild,
		},
		After: x.after,
	}, nil
}

// again reads for a stored plan what the planner read.
func (x *execution) again(ctx context.Context) error {
	v, err := iceberg.Load(ctx, x.st.Reader(), x.p.header.Base.Table)
	if err != nil {
		return err
	}
	same := commit.SameTable{UUID: x.p.header.Base.UUID, FormatVersion: x.p.header.Base.FormatVersion}
	if err := same.Check(v); err != nil {
		return err
	}
	if err := v.Metadata.Plaintext(); err != nil {
		return err
	}
	now, err := retain(v.Metadata, x.p.d.Rules, x.p.has)
	if err != nil {
		return err
	}
	x.f = newFreed(x.st.Reader(), v.Locations, x.p.d, x.p.spill)
	x.fresh = true
	return x.f.work(ctx, v.Metadata, both(x.p.d.Snapshots, now.expire))
}

// both are the elements of a that are in b.
func both[T comparable](a, b []T) []T {
	in := setOf(b)
	return slices.DeleteFunc(slices.Clone(a), func(x T) bool { return !in[x] })
}

// execution is one execution of a plan.
type execution struct {
	p  *Plan
	st *commit.Stage
	f  *freed
	pr ops.Progress
	// fresh: f was read by the execution, and the plan does not show its reasons.
	fresh bool
	// What the last rebuild did.
	expired []iceberg.SnapshotID
	refs    []string
	stats   []string
	before  int64
	schemas int
	specs   int
}

// rebuild applies the rules again, as of the plan's time, to the head: of what
// was planned only that goes which nothing on the head needs. A ref or a pin that
// was made meanwhile keeps its snapshots, and the others go all the same (F091).
func (x *execution) rebuild(ctx context.Context, head *iceberg.View, _ *commit.Stage) (commit.Next, error) {
	m := head.Metadata
	if err := m.Plaintext(); err != nil {
		return commit.Next{}, err
	}
	now, err := retain(m, x.p.d.Rules, x.p.has)
	if err != nil {
		return commit.Next{}, err
	}
	x.expired, x.refs, x.before = both(x.p.d.Snapshots, now.expire), both(x.p.d.Refs, now.refs), int64(len(m.Snapshots))
	x.schemas, x.specs, x.stats = 0, 0, nil
	if len(x.expired) == 0 && len(x.refs) == 0 {
		return commit.Next{}, nil
	}
	x.stats = unshared(m, head.Locations, x.expired)
	e := m.Edit()
	e.RemoveRefs(x.refs...)
	e.RemoveSnapshots(x.expired...)
	if x.p.d.Clean {
		if err := x.clean(ctx, m, e); err != nil {
			return commit.Next{}, err
		}
	}
	return commit.Next{Edit: e}, nil
}

// clean removes schemas and specs that no retained snapshot uses. Which specs
// are in use the manifest lists say; if one cannot be read, or names manifests
// without their specs, specs stay.
func (x *execution) clean(ctx context.Context, m *iceberg.Metadata, e *iceberg.Edit) error {
	goes := setOf(x.expired)
	used := map[iceberg.SchemaID]bool{m.CurrentSchemaID: true}
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		if goes[s.ID] {
			continue
		}
		if s.SchemaID == nil {
			return nil // it was written with a schema that it does not name
		}
		used[*s.SchemaID] = true
		if err := x.f.use(ctx, s); err != nil {
			return err
		}
	}
	if x.f.blocked != nil || x.f.unknownSpecs {
		return nil
	}
	var specs []iceberg.SpecID
	for i := range m.Specs {
		if id := iceberg.SpecID(m.Specs[i].ID()); id != m.DefaultSpecID && !x.f.specs[id] {
			specs = append(specs, id)
		}
	}
	schemas := spareSchemas(m, used, specs, x.f.deletes)
	x.schemas, x.specs = len(schemas), len(specs)
	if len(schemas) > 0 {
		e.RemoveSchemas(schemas...)
	}
	if len(specs) > 0 {
		e.RemoveSpecs(specs...)
	}
	return nil
}

// use reads the list of a snapshot that stays on some head, so that its specs
// are known. A snapshot that was to expire may still do so on the next head: its
// specs count as used, and what it frees stays as it is.
func (f *freed) use(ctx context.Context, s *iceberg.Snapshot) error {
	l := f.lists[s.ID]
	if l == nil {
		return f.retain(ctx, s)
	}
	f.unknownSpecs = f.unknownSpecs || l.err != nil || s.ManifestList == ""
	for _, i := range l.own {
		f.specs[f.gone[i].file.SpecID] = true
		f.deletes = f.deletes || f.gone[i].file.Content != 0
	}
	return nil
}

// spareSchemas are the schemas that nothing uses and without which nothing
// becomes unreadable. A schema stays if it alone has a column that was dropped
// and that a remaining spec, a sort order or an equality delete may name: their
// types are looked up in all schemas (F066, F067).
func spareSchemas(m *iceberg.Metadata, used map[iceberg.SchemaID]bool, gone []iceberg.SpecID, deletes bool) []iceberg.SchemaID {
	needs := map[int]bool{}
	for i := range m.Specs {
		if slices.Contains(gone, iceberg.SpecID(m.Specs[i].ID())) {
			continue
		}
		for _, f := range m.Specs[i].Fields() {
			for _, id := range f.SourceIDs {
				needs[id] = true
			}
		}
	}
	for _, o := range m.SortOrders {
		for _, f := range o.Fields {
			for _, id := range f.SourceIDs {
				needs[int(id)] = true
			}
		}
	}
	known := map[int]bool{}
	for _, s := range m.Schemas {
		if used[iceberg.SchemaID(s.ID)] {
			columns(s.Fields(), func(id int) { known[id] = true })
		}
	}
	var out []iceberg.SchemaID
	// The latest first: of several that have a dropped column the newest stays.
	order := slices.SortedStableFunc(slices.Values(m.Schemas), func(a, b *icego.Schema) int { return b.ID - a.ID })
	for _, s := range order {
		if used[iceberg.SchemaID(s.ID)] {
			continue
		}
		alone := false
		columns(s.Fields(), func(id int) { alone = alone || !known[id] && (deletes || needs[id]) })
		if !alone {
			out = append(out, iceberg.SchemaID(s.ID))
			continue
		}
		columns(s.Fields(), func(id int) { known[id] = true })
	}
	slices.Sort(out)
	return out
}

// columns calls see with the ids of all columns, nested ones included.
func columns(fields []icego.NestedField, see func(id int)) {
	for _, f := range fields {
		see(f.ID)
		if nested, ok := f.Type.(icego.NestedType); ok {
			columns(nested.Fields(), see)
		}
	}
}
