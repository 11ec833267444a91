package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// errSkip says that a step makes no sense in the table's state.
var errSkip = errors.New("step does not apply")

type step struct {
	name   string
	weight int
	do     func(*Generator, context.Context) (string, error)
}

// steps in a fixed order, with how often each is chosen.
var steps = []step{
	{"append", 8, (*Generator).stepAppend},
	{"delete", 6, (*Generator).stepDelete},
	{"equality-delete", 3, (*Generator).stepEqualityDelete},
	{"upsert", 4, (*Generator).stepUpsert},
	{"overwrite", 2, (*Generator).stepOverwrite},
	{"rewrite", 2, (*Generator).stepRewrite},
	{"remove-files", 1, (*Generator).stepRemoveFiles},
	{"add-column", 2, (*Generator).stepAddColumn},
	{"drop-column", 1, (*Generator).stepDropColumn},
	{"rename-column", 1, (*Generator).stepRenameColumn},
	{"promote", 2, (*Generator).stepPromote},
	{"spec", 2, (*Generator).stepSpec},
	{"properties", 1, (*Generator).stepProperties},
	{"branch", 1, (*Generator).stepBranch},
	{"tag", 1, (*Generator).stepTag},
	{"remove-ref", 1, (*Generator).stepRemoveRef},
	{"rollback", 1, (*Generator).stepRollback},
	{"stage", 1, (*Generator).stepStage},
	{"statistics", 1, (*Generator).stepStatistics},
	{"upgrade", 1, (*Generator).stepUpgrade},
}

// StepNames are the names of all steps.
func StepNames() []string {
	var out []string
	for _, s := range slices.Concat(steps, nestedSteps) {
		out = append(out, s.name)
	}
	return out
}

// Step makes one random step that applies to the table as it is now, others'
// commits included.
func (g *Generator) Step(ctx context.Context) error {
	if err := g.Refresh(ctx); err != nil {
		return err
	}
	steps := steps
	if g.o.Varied {
		steps = slices.Concat(steps, nestedSteps)
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	for {
		n := g.rng.IntN(total)
		i := 0
		for n >= steps[i].weight {
			n -= steps[i].weight
			i++
		}
		s := steps[i]
		if slices.Contains(g.o.Without, s.name) {
			continue
		}
		what, err := s.do(g, ctx)
		if errors.Is(err, errSkip) {
			continue
		}
		g.Log = append(g.Log, s.name+" "+what)
		return fault.In("step "+s.name+" "+what, err)
	}
}

func (g *Generator) stepAppend(ctx context.Context) (string, error) {
	n, o := 1+g.rng.IntN(g.o.Rows), g.options(g.branch())
	_, err := g.Append(ctx, g.Rows(n), o)
	return fmt.Sprintf("%d rows to %q", n, o.Branch), err
}

func (g *Generator) stepDelete(ctx context.Context) (string, error) {
	o := g.options(g.branch())
	rows := g.some(o.Branch, 6)
	if len(rows) == 0 || g.Version() == 1 {
		return "", errSkip
	}
	if g.Version() == 3 {
		o.Format = ""
		_, err := g.VectorDelete(ctx, rows, o)
		return fmt.Sprintf("%d rows by vectors on %q", len(rows), o.Branch), err
	}
	scope := Scope(g.rng.IntN(2))
	_, err := g.PositionDelete(ctx, rows, scope, o)
	return fmt.Sprintf("%d rows by positions, scope %d, on %q", len(rows), scope, o.Branch), err
}

// keys are rows to delete by, some of them live, and the columns that count.
func (g *Generator) keys(branch string) ([]Row, []iceberg.FieldID) {
	by := []iceberg.FieldID{1}
	if g.chance(3) {
		for _, f := range g.Schema().Fields() {
			if _, primitive := f.Type.(icego.PrimitiveType); primitive && g.chance(3) && f.ID != 1 {
				by = append(by, iceberg.FieldID(f.ID))
			}
		}
		if len(by) > 1 && g.chance(2) {
			by = by[1:]
		}
	}
	keys := g.Rows(1)
	for _, r := range g.some(branch, 4) {
		row := Row{} // as a writer with the present schema sees it
		for _, f := range g.Schema().Fields() {
			row[iceberg.FieldID(f.ID)] = promote(f.Type, resolve(f, g.rows[r]))
		}
		keys = append(keys, row)
	}
	return keys, by
}

func (g *Generator) stepEqualityDelete(ctx context.Context) (string, error) {
	o := g.options(g.branch())
	if g.Version() == 1 || g.Head(o.Branch) == nil {
		return "", errSkip
	}
	keys, by := g.keys(o.Branch)
	_, err := g.EqualityDelete(ctx, keys, by, o)
	return fmt.Sprintf("%d keys over %v on %q", len(keys), by, o.Branch), err
}

func (g *Generator) stepUpsert(ctx context.Context) (string, error) {
	o := g.options(g.branch())
	if g.Version() == 1 || g.Head(o.Branch) == nil {
		return "", errSkip
	}
	keys, _ := g.keys(o.Branch)
	rows := g.Rows(len(keys))
	for i := range rows {
		rows[i][1] = keys[i][1]
	}
	_, err := g.Upsert(ctx, keys, []iceberg.FieldID{1}, rows, o)
	return fmt.Sprintf("%d keys on %q", len(keys), o.Branch), err
}

func (g *Generator) stepOverwrite(ctx context.Context) (string, error) {
	o := g.options(g.branch())
	rows := g.some(o.Branch, 3)
	if len(rows) == 0 {
		return "", errSkip
	}
	n := g.rng.IntN(4)
	_, err := g.Overwrite(ctx, rows, g.Rows(n), o)
	return fmt.Sprintf("%d rows by %d on %q", len(rows), n, o.Branch), err
}

// files are some live data files of a branch.
func (g *Generator) files(branch string, most int) []*File {
	head := g.Head(branch)
	if head == nil {
		return nil
	}
	live := head.DataFiles()
	g.rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	var out []*File
	for _, e := range live[:min(len(live), 1+g.rng.IntN(most))] {
		out = append(out, e.File)
	}
	return out
}

func (g *Generator) stepRewrite(ctx context.Context) (string, error) {
	o := g.options(g.branch())
	files := g.files(o.Branch, 4)
	if len(files) == 0 {
		return "", errSkip
	}
	o.Files = 1
	_, err := g.Rewrite(ctx, files, o)
	return fmt.Sprintf("%d files of %q", len(files), o.Branch), err
}

func (g *Generator) stepRemoveFiles(ctx context.Context) (string, error) {
	o := g.options(g.branch())
	files := g.files(o.Branch, 1)
	if len(files) == 0 {
		return "", errSkip
	}
	_, err := g.RemoveFiles(ctx, files, o)
	return fmt.Sprintf("of %q", o.Branch), err
}

func (g *Generator) stepAddColumn(ctx context.Context) (string, error) {
	c := Column{Name: fmt.Sprintf("n%d", g.rng.IntN(1_000_000)), Type: g.primitive(g.Version())}
	if _, ok := g.Schema().FindFieldByName(c.Name); ok {
		return "", errSkip
	}
	if g.Version() >= 3 && g.chance(2) && plainDefault(c.Type) {
		c.Initial, c.Default = g.value(c.Type), g.value(c.Type)
	}
	id, err := g.AddColumn(ctx, c)
	return fmt.Sprintf("%d %s %s default %v", id, c.Name, c.Type, c.Initial), err
}

// plainDefault leaves out what JSON cannot hold as a default.
func plainDefault(t icego.Type) bool {
	switch t.(type) {
	case icego.Float32Type, icego.Float64Type:
		return false
	}
	return true
}

// sources are the columns that the current spec is made of.
func (g *Generator) sources() map[int]bool {
	out := map[int]bool{1: true}
	spec := g.Spec()
	for i := range spec.NumFields() {
		out[spec.Field(i).SourceID()] = true
	}
	return out
}

func (g *Generator) stepDropColumn(ctx context.Context) (string, error) {
	f := pick(g.rng, g.Schema().Fields())
	if g.sources()[f.ID] {
		return "", errSkip
	}
	return f.Name, g.DropColumn(ctx, f.Name)
}

func (g *Generator) stepRenameColumn(ctx context.Context) (string, error) {
	f := pick(g.rng, g.Schema().Fields())
	to := fmt.Sprintf("r%d", g.rng.IntN(1_000_000))
	if _, ok := g.Schema().FindFieldByName(to); ok || f.ID == 1 {
		return "", errSkip
	}
	return f.Name + " to " + to, g.RenameColumn(ctx, f.Name, to)
}

// wider is a type that t can be promoted to, nil if there is none.
func (g *Generator) wider(t icego.Type) icego.Type {
	switch t := t.(type) {
	case icego.Int32Type:
		return icego.Int64Type{}
	case icego.Float32Type:
		return icego.Float64Type{}
	case icego.DecimalType:
		if t.Precision() < 38 {
			return icego.DecimalTypeOf(t.Precision()+1+g.rng.IntN(38-t.Precision()), t.Scale())
		}
	}
	return nil
}

func (g *Generator) stepPromote(ctx context.Context) (string, error) {
	f := pick(g.rng, g.Schema().Fields())
	to := g.wider(f.Type)
	if to == nil {
		return "", errSkip
	}
	return f.Name + " to " + to.String(), g.Promote(ctx, f.Name, to)
}

func (g *Generator) stepSpec(ctx context.Context) (string, error) {
	var old []icego.PartitionField
	if spec := g.Spec(); g.Version() == 1 {
		for i := range spec.NumFields() {
			old = append(old, spec.Field(i))
		}
	}
	text := g.specText(g.Schema(), old)
	_, err := g.SetSpec(ctx, text)
	return "[" + text + "]", err
}

func (g *Generator) stepProperties(ctx context.Context) (string, error) {
	set := pick(g.rng, []map[string]string{
		{"write.target-file-size-bytes": "1048576"}, {"write.parquet.compression-codec": "snappy"}, {"owner": "x", "write.target-file-size-bytes": ""},
	})
	return fmt.Sprint(set), g.SetProperties(ctx, set)
}

func (g *Generator) anySnapshot() *Snapshot {
	all := g.Snapshots()
	if len(all) == 0 {
		return nil
	}
	return pick(g.rng, all)
}

func (g *Generator) stepBranch(ctx context.Context) (string, error) {
	s := g.anySnapshot()
	name := fmt.Sprintf("b%d", g.rng.IntN(3))
	if s == nil || g.Head(name) != nil || g.Head("") == nil {
		return "", errSkip
	}
	return name, g.CreateBranch(ctx, name, s.ID, Retention{})
}

func (g *Generator) stepTag(ctx context.Context) (string, error) {
	s := g.anySnapshot()
	name := fmt.Sprintf("t%d", g.rng.IntN(5))
	if s == nil || g.Head(name) != nil {
		return "", errSkip
	}
	return name, g.CreateTag(ctx, name, s.ID, Retention{})
}

func (g *Generator) stepRemoveRef(ctx context.Context) (string, error) {
	for _, r := range g.Refs() {
		if r.Name != "main" {
			return r.Name, g.RemoveRef(ctx, r.Name)
		}
	}
	return "", errSkip
}

func (g *Generator) stepRollback(ctx context.Context) (string, error) {
	head := g.Head("")
	if head == nil || head.Parent == 0 || g.Snapshot(head.Parent) == nil {
		return "", errSkip
	}
	return fmt.Sprint(head.Parent), g.Rollback(ctx, "", head.Parent)
}

func (g *Generator) stepStage(ctx context.Context) (string, error) {
	if g.Head("") == nil {
		return "", errSkip
	}
	o := g.options("")
	o.Staged = fmt.Sprintf("job-%d", g.rng.IntN(1000))
	id, err := g.Append(ctx, g.Rows(1+g.rng.IntN(3)), o)
	if err != nil || g.chance(2) {
		return o.Staged, err
	}
	_, err = g.CherryPick(ctx, id, g.options(""))
	return o.Staged + " and pick it", err
}

func (g *Generator) stepStatistics(ctx context.Context) (string, error) {
	s := g.anySnapshot()
	if s == nil {
		return "", errSkip
	}
	_, err := g.SetStatistics(ctx, s.ID)
	return fmt.Sprint(s.ID), err
}

func (g *Generator) stepUpgrade(ctx context.Context) (string, error) {
	if g.Version() >= slices.Max(g.o.Versions) {
		return "", errSkip
	}
	return fmt.Sprint(g.Version() + 1), g.Upgrade(ctx, g.Version()+1)
}
