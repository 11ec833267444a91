package expire

import (
	"context"
	"slices"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

type executor struct{}

// work surveys the snapshots and collects what the expiring ones free.
func work(ctx context.Context, r filer.Reader, v *iceberg.View, d decision) (*freed, error) {
	f := newFreed(r, v.Locations, d.SpillDir)
	expiring := map[iceberg.SnapshotID]bool{}
	for _, id := range d.Snapshots {
		expiring[id] = true
	}
	if err := f.survey(ctx, v.Metadata, expiring); err != nil {
		return nil, err
	}
	return f, f.collect(ctx)
}

// Execute stages nothing: the change is one of metadata alone.
func (executor) Execute(ctx context.Context, p *Plan, st *commit.Stage, pr ops.Progress) (ops.Work, error) {
	v, err := iceberg.Load(ctx, st.Reader(), p.header.Base.Table)
	if err != nil {
		return ops.Work{}, err
	}
	f := p.freed
	if f == nil {
		// The plan was stored; what is on disk since is looked at now.
		pr.Note("reading the manifests of expiring snapshots")
		present := p.d
		present.Snapshots = slices.DeleteFunc(slices.Clone(p.d.Snapshots), func(id iceberg.SnapshotID) bool {
			_, ok := v.Snapshot(id)
			return !ok
		})
		if f, err = work(ctx, st.Reader(), v, present); err != nil {
			return ops.Work{}, err
		}
	}
	x := &execution{p: p, st: st, f: f, pr: pr}
	return ops.Work{
		Change: commit.Change{
			Operation: string(config.ExpireSnapshots), Base: p.header.Base, Requirements: requirements(v, p.header.Base), Rebuild: x.rebuild,
		},
		After: x.after,
	}, nil
}

type execution struct {
	p  *Plan
	st *commit.Stage
	f  *freed
	pr ops.Progress
	// What the last rebuild did.
	expired []iceberg.SnapshotID
	refs    []string
	kept    int
	stats   []iceberg.StatisticsFile
	before  int64
	schemas int
	specs   int
}

// rebuild applies the rules again, as of the plan's time, to the head: of what
// was planned only that goes which nothing on the head needs. A ref or a pin that
// was made meanwhile keeps its snapshots, and the others go all the same (F091).
func (x *execution) rebuild(ctx context.Context, head *iceberg.View, _ *commit.Stage) (commit.Next, error) {
	m := head.Metadata
	now, err := retain(m, x.p.d.Rules)
	if err != nil {
		return commit.Next{}, err
	}
	x.expired, x.refs, x.before = nil, nil, int64(len(m.Snapshots))
	for _, id := range x.p.d.Snapshots {
		if slices.Contains(now.expire, id) {
			x.expired = append(x.expired, id)
		}
	}
	for _, name := range x.p.d.Refs {
		if slices.Contains(now.refs, name) {
			x.refs = append(x.refs, name)
		}
	}
	x.kept = len(x.p.d.Snapshots) - len(x.expired)
	if len(x.expired) == 0 && len(x.refs) == 0 {
		return commit.Next{}, nil
	}
	x.stats = statistics(m, x.expired)
	e := m.Edit()
	e.RemoveRefs(x.refs...)
	e.RemoveSnapshots(x.expired...)
	if x.p.d.Clean {
		if err := x.clean(ctx, head, e); err != nil {
			return commit.Next{}, err
		}
	}
	return commit.Next{Edit: e}, nil
}

// clean removes schemas and specs that no retained snapshot uses. Which specs
// are in use the manifest lists say; those of snapshots that are newer than the
// plan are read, and if one cannot be, specs stay.
func (x *execution) clean(ctx context.Context, head *iceberg.View, e *iceberg.Edit) error {
	m := head.Metadata
	schemas := map[iceberg.SchemaID]bool{m.CurrentSchemaID: true}
	complete := x.f.blocked == nil
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		if slices.Contains(x.expired, s.ID) {
			continue
		}
		if s.SchemaID == nil {
			// It was written with a schema that it does not name.
			return nil
		}
		schemas[*s.SchemaID] = true
		if !x.f.known[s.ID] && complete {
			if err := x.f.retainList(ctx, s); err != nil {
				return err
			}
			x.f.known[s.ID] = true
			complete = x.f.blocked == nil
		}
	}
	var unused []iceberg.SchemaID
	for _, s := range m.Schemas {
		if id := iceberg.SchemaID(s.ID); !schemas[id] {
			unused = append(unused, id)
		}
	}
	var specs []iceberg.SpecID
	for i := range m.Specs {
		if id := iceberg.SpecID(m.Specs[i].ID()); complete && id != m.DefaultSpecID && !x.f.specs[id] {
			specs = append(specs, id)
		}
	}
	x.schemas, x.specs = len(unused), len(specs)
	if len(unused) > 0 {
		e.RemoveSchemas(unused...)
	}
	if len(specs) > 0 {
		e.RemoveSpecs(specs...)
	}
	return nil
}
