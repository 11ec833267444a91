package compact

import (
	"context"
	"fmt"
	"sync"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

// New returns the operation. Without a bind the setting where is
// fault.Unsupported.
func New(bind Bind) ops.Operation {
	return ops.Bind[*Plan](config.Compact, NewPlanner(bind), executor{tools: realTools()}, Decode)
}

// executor runs plans with the tools it is given.
type executor struct{ tools tools }

// tools are what an executor needs of the engine.
type tools struct {
	// merge rewrites one unit.
	merge func(ctx context.Context, q rewrite.Request) (rewrite.Result, error)
	// load says which rows of each file the deletes of a request delete, one
	// answer for each file and nil for none.
	load func(ctx context.Context, q loading) ([]*deletes.Positions, error)
	// positions writes a position delete file, vectors a Puffin file of vectors.
	positions func(ctx context.Context, to rewrite.Sink, q marking) (manifests.File, error)
	vectors   func(ctx context.Context, to rewrite.Sink, q []marking) ([]manifests.File, error)
}

// loading asks for the rows that deletes delete.
type loading struct {
	reader filer.Reader
	view   *iceberg.View
	read   reading
	// files are the data files, as their entries describe them.
	files []*manifests.Entry
	// deletes are what may apply to them; to says to which files each does.
	deletes []*manifests.Entry
	to      [][]int
	// memory bounds what it takes, 0 for the engine's own bound. cache keeps
	// delete files that several units share.
	memory int64
	cache  *deletes.Cache
}

// marking is a set of rows of one data file that is to be written as a delete.
type marking struct {
	file *manifests.Entry
	rows *deletes.Positions
	// properties are the table's, version its format version.
	properties map[string]string
	version    int
}

// Execute stages every unit that can be, and returns a change that commits those
// that still stand on whatever the head is then. A unit that fails for a reason
// of its own is left out; what concerns the table, or the run as a whole, ends
// it.
func (e executor) Execute(ctx context.Context, p *Plan, st *commit.Stage, pr ops.Progress) (ops.Work, error) {
	x, err := e.prepare(ctx, p, st, pr)
	if err != nil {
		return ops.Work{}, err
	}
	if err := x.inherit(ctx); err != nil {
		return ops.Work{}, err
	}
	if err := x.run(ctx); err != nil {
		return ops.Work{}, err
	}
	return ops.Work{
		Change: commit.Change{
			Operation: string(config.Compact), Base: p.header.Base, Requirements: x.requirements(), Rebuild: x.rebuild,
		},
		After: x.after,
		Left:  x.left,
	}, nil
}

// execution is one run of a plan, or of a part of it.
type execution struct {
	tools tools
	p     *Plan
	st    *commit.Stage
	pr    ops.Progress
	view  *iceberg.View
	place *placement
	read  reading
	// cache keeps delete files that several units share; nil if none has any.
	cache *deletes.Cache
	// listed are the manifests of the planning snapshot by location.
	listed map[string]*manifests.ManifestFile

	mu sync.Mutex
	// done are the units that are staged and proved, dropped why others are not.
	done    []*finished
	dropped []ops.Reason
	// known is what was read and written for earlier attempts.
	known remembered
	// attempts by the manifest list they made, and the last one.
	attempts map[string]*attempt
	last     *attempt
}

func (e executor) prepare(ctx context.Context, p *Plan, st *commit.Stage, pr ops.Progress) (*execution, error) {
	x := &execution{tools: e.tools, p: p, st: st, pr: pr, attempts: map[string]*attempt{}, listed: map[string]*manifests.ManifestFile{}}
	x.known.init()
	x.known.wanted = x.whole().inputs()
	v, err := iceberg.Load(ctx, st.Reader(), p.header.Base.Table)
	if err != nil {
		return nil, err
	}
	base := p.header.Base
	same := commit.SameTable{UUID: base.UUID, FormatVersion: base.FormatVersion}
	for _, r := range append([]commit.Requirement{same}, x.requirements()...) {
		if err := r.Check(v); err != nil {
			return nil, err
		}
	}
	s, ok := v.Snapshot(base.Snapshot)
	if !ok {
		return nil, fault.New(fault.Stale, fmt.Sprintf("the planning snapshot %d was expired", base.Snapshot))
	}
	if s.SequenceNumber != base.Sequence {
		// Outputs carry it; plans come from files, too.
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("the plan says that snapshot %d has sequence number %d, it has %d", s.ID, base.Sequence, s.SequenceNumber))
	}
	x.view = v
	if x.place, err = newPlacement(v); err != nil {
		return nil, err
	}
	if x.read, err = newReading(v, base.Schema); err != nil {
		return nil, err
	}
	if len(p.deletes) > 0 {
		x.cache = deletes.NewCache(x.memory() / 4)
	}
	for m, err := range manifests.OfSnapshot(ctx, st.Reader(), v.Locations, s) {
		if err != nil {
			return nil, err
		}
		x.listed[m.Path] = m
	}
	return x, nil
}

// requirements hold for the run as a whole. What concerns one unit is looked at
// for each unit, so that it drops that unit only.
func (x *execution) requirements() []commit.Requirement {
	b := x.p.header.Base
	return []commit.Requirement{
		commit.ReadableSchema{Schema: b.Schema},
		commit.Descends{Branch: b.Branch, Snapshot: b.Snapshot},
	}
}

// standing are the units that are worth their work: whose inputs are still there
// and that no adopted unit has done already.
func (x *execution) standing(ctx context.Context) ([]*Unit, error) {
	taken := map[string]bool{}
	for _, f := range x.done {
		for i := range f.Unit.Inputs {
			taken[f.Unit.Inputs[i].Path] = true
		}
	}
	moved := x.view.MetadataLocation != x.p.header.Base.MetadataLocation
	here := map[string]*located{}
	if moved {
		var err error
		if here, err = x.findInputs(ctx); err != nil {
			return nil, err
		}
	}
	var out []*Unit
	for i := range x.p.units {
		u := &x.p.units[i]
		switch in := u.overlap(taken); {
		case u.covered(taken):
			continue
		case in != nil:
			x.drop(u, "resumed-otherwise", fmt.Sprintf("%s was rewritten in another unit by an earlier run", in.Path))
			continue
		}
		if moved {
			if why := gone(u, here); why != nil {
				x.dropReason(*why)
				continue
			}
		}
		out = append(out, u)
	}
	return out, nil
}

func (u *Unit) overlap(taken map[string]bool) *Input {
	for i := range u.Inputs {
		if taken[u.Inputs[i].Path] {
			return &u.Inputs[i]
		}
	}
	return nil
}

// covered reports whether all inputs of the unit are taken.
func (u *Unit) covered(taken map[string]bool) bool {
	for i := range u.Inputs {
		if !taken[u.Inputs[i].Path] {
			return false
		}
	}
	return true
}

// findInputs looks for the inputs of the plan's units at the head that was
// loaded.
func (x *execution) findInputs(ctx context.Context) (map[string]*located, error) {
	s, ok := x.view.Branch(x.p.header.Base.Branch)
	if !ok {
		return nil, fault.New(fault.Stale, fmt.Sprintf("branch %q is gone", x.p.header.Base.Branch))
	}
	var list []*manifests.ManifestFile
	for m, err := range manifests.OfSnapshot(ctx, x.st.Reader(), x.view.Locations, s) {
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	var seek []sought
	for i := range x.p.units {
		u := &x.p.units[i]
		for k := range u.Inputs {
			seek = append(seek, sought{path: u.Inputs[k].Path, partition: u.Partition, manifest: x.p.manifests[u.Inputs[k].Manifest]})
		}
	}
	return x.find(ctx, x.view, list, seek)
}

// subject names a unit to people.
func (u *Unit) subject() string {
	if u.Label == "" {
		return "unit " + u.ID
	}
	return "unit " + u.ID + " of " + u.Label
}

func (x *execution) drop(u *Unit, code, text string) { x.dropReason(u.reason(code, text)) }

func (u *Unit) reason(code, text string) ops.Reason {
	return ops.Reason{Code: code, Subject: u.subject(), Count: int64(len(u.Inputs)), Text: text}
}

func (x *execution) dropReason(r ops.Reason) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropped = append(x.dropped, r)
}
