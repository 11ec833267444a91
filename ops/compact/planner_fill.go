package compact

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// place is an input of the plan.
type place struct{ unit, input int }

// fill makes units of the drafts that were taken: it reads again the manifests
// that hold their files, and those with deletes, now by name.
func (w *work) fill() error {
	if len(w.drafts) == 0 {
		return nil
	}
	f := &filler{w: w, places: map[string]place{}, numbers: map[string]int{}, parts: map[iceberg.PartitionKey][]int{}}
	if err := f.inputs(); err != nil {
		return err
	}
	if err := f.deletes(); err != nil {
		return err
	}
	f.settle()
	return nil
}

type filler struct {
	w       *work
	places  map[string]place
	numbers map[string]int // of manifests in the plan
	parts   map[iceberg.PartitionKey][]int
	spans   []span
	applied [][]Applied
	vectors map[place]bool
	// seen are the deletes of the plan: manifests may list one twice.
	seen map[deleteKey]bool
}

// span are the data sequence numbers of a unit's inputs.
type span struct{ least, most iceberg.SeqNum }

func (f *filler) manifest(path string) int {
	n, ok := f.numbers[path]
	if !ok {
		n = len(f.w.p.manifests)
		f.w.p.manifests, f.numbers[path] = append(f.w.p.manifests, path), n
	}
	return n
}

// inputs reads the chosen entries.
func (f *filler) inputs() error {
	w := f.w
	type wish struct {
		manifest, entry uint32
		place
	}
	var wishes []wish
	for u := range w.drafts {
		d := &w.drafts[u]
		p := w.parts.all[d.part]
		unit := Unit{Partition: p.key, Label: w.label(p), TargetBytes: d.target, Inputs: make([]Input, len(d.files))}
		unit.Expect = Expectation{Files: d.outputs, Rows: d.rows, Bytes: d.bytes, RowsExact: d.exact}
		s := span{least: math.MaxInt64}
		for k, i := range d.files {
			c := w.found.at(i)
			unit.Inputs[k].Why = whys[c.why]
			wishes = append(wishes, wish{c.manifest, c.entry, place{u, k}})
			s.least, s.most = min(s.least, c.seq), max(s.most, c.seq)
		}
		if base := w.p.header.Base; s.most > base.Sequence {
			// Outputs get the snapshot's number: older deletes would hit their rows.
			return fault.New(fault.Corrupt, fmt.Sprintf("snapshot %d has sequence number %d and a file of number %d", base.Snapshot, base.Sequence, s.most))
		}
		w.p.units = append(w.p.units, unit)
		f.spans = append(f.spans, s)
		f.parts[p.key] = append(f.parts[p.key], u)
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(cmp.Compare(a.manifest, b.manifest), cmp.Compare(a.entry, b.entry))
	})
	for len(wishes) > 0 {
		m := w.data[wishes[0].manifest]
		at := wishes[0].manifest
		number := f.manifest(m.Path)
		err := w.entries(m, manifests.ProjectPath, func(n uint32, e *manifests.Entry) error {
			if len(wishes) == 0 || wishes[0].manifest != at || wishes[0].entry != n {
				return nil
			}
			f.input(wishes[0].place, number, e)
			wishes = wishes[1:]
			return nil
		})
		if err != nil {
			return err
		}
		if len(wishes) > 0 && wishes[0].manifest == at {
			return fault.New(fault.Corrupt, fmt.Sprintf("manifest %s lost entry %d while it was read", m.Path, wishes[0].entry))
		}
	}
	return nil
}

func (f *filler) input(at place, manifest int, e *manifests.Entry) {
	in := &f.w.p.units[at.unit].Inputs[at.input]
	in.Path, in.Manifest, in.Records, in.Bytes = e.Path, manifest, e.Records, e.Bytes
	in.Snapshot, in.DataSeq, in.FileSeq = e.SnapshotID.Or(0), e.DataSeq.Or(0), e.FileSeq.Or(0)
	if id, ok := e.FirstRowID.Get(); ok && f.w.in.View.Metadata.FormatVersion >= 3 {
		in.FirstRowID = &id
	}
	f.places[e.Path] = at
}

// deletes reads the deletes that apply to inputs.
func (f *filler) deletes() error {
	const want = manifests.ProjectPath | manifests.ProjectPartition | manifests.ProjectBounds | manifests.ProjectLists
	f.applied, f.vectors, f.seen = make([][]Applied, len(f.w.p.units)), map[place]bool{}, map[deleteKey]bool{}
	for _, i := range f.w.index.manifests {
		m := f.w.deletes[i]
		err := f.w.entries(m, want, func(_ uint32, e *manifests.Entry) error {
			f.delete(m, e)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// delete adds a delete to the plan if it applies to an input, and counts it if it
// leaves the table.
func (f *filler) delete(m *manifests.ManifestFile, e *manifests.Entry) {
	hit := false
	number := len(f.w.p.deletes)
	id := deleteKey{e.DeleteID(), e.DataSeq.Or(0)}
	apply := func(unit int, inputs []int) {
		if f.seen[id] {
			return
		}
		f.applied[unit] = append(f.applied[unit], Applied{Delete: number, Inputs: inputs})
		hit = true
	}
	path, isNamed := e.Target()
	key := e.PartitionKey()
	global := e.Content == manifests.EqualityDeletes && f.w.rules.GlobalSpecs[e.SpecID]
	at, input := f.places[path]
	switch {
	case isNamed && !input:
	case isNamed:
		if u := &f.w.p.units[at.unit]; u.Partition != key || u.Inputs[at.input].DataSeq > e.DataSeq.Or(0) {
			break
		}
		if e.IsVector() {
			f.vectors[at] = true
		}
		apply(at.unit, []int{at.input})
	case global:
		for u := range f.w.p.units {
			f.scoped(u, e, apply)
		}
	default:
		for _, u := range f.parts[key] {
			f.scoped(u, e, apply)
		}
	}
	if (global || len(f.parts[key]) > 0) && (isNamed && input || f.dangling(e, global)) {
		f.w.totals.retire(m.Path, weight(e))
	}
	if hit {
		f.seen[id] = true
		f.w.p.deletes = append(f.w.p.deletes, Delete{
			Path: e.Path, Offset: e.ContentOffset.Or(-1), Size: e.ContentSize.Or(-1), Manifest: f.manifest(m.Path),
			Content: e.Content, Format: e.Format, Partition: key, DataSeq: e.DataSeq.Or(0), FileSeq: e.FileSeq.Or(0),
			Records: e.Records, Bytes: e.Bytes, EqualityIDs: slices.Clone(e.EqualityIDs), Referenced: path,
		})
	}
}

// dangling predicts whether a delete can hit nothing once the units are committed,
// so that it goes with them (F132). Outputs do not matter: they have the sequence
// number of the head, and names that no delete can know.
func (f *filler) dangling(e *manifests.Entry, global bool) bool {
	seq := e.DataSeq.Or(0)
	if path, ok := e.Target(); ok {
		return !f.w.index.alive(path, f.w.parts.of(f.w, e), seq)
	}
	if global {
		return !f.w.totals.least.below(seq)
	}
	least := f.w.parts.all[f.w.parts.of(f.w, e)].least
	if e.Content == manifests.EqualityDeletes {
		return !least.below(seq)
	}
	return !least.below(seq + 1)
}

// scoped applies a delete of a partition or of the table to a unit.
func (f *filler) scoped(u int, e *manifests.Entry, apply func(unit int, inputs []int)) {
	// The newest data that the delete applies to.
	newest := e.DataSeq.Or(0)
	if e.Content == manifests.EqualityDeletes {
		newest--
	}
	switch s := f.spans[u]; {
	case s.least > newest:
		return
	case s.most <= newest:
		apply(u, nil)
		return
	}
	var inputs []int
	for k := range f.w.p.units[u].Inputs {
		if f.w.p.units[u].Inputs[k].DataSeq <= newest {
			inputs = append(inputs, k)
		}
	}
	apply(u, inputs)
}

// settle takes position deletes away from the inputs that a vector applies to,
// and then the deletes that nothing is left of.
func (f *filler) settle() {
	p := f.w.p
	used := make([]bool, len(p.deletes))
	for u := range p.units {
		unit := &p.units[u]
		for _, a := range f.applied[u] {
			if d := &p.deletes[a.Delete]; d.Content == manifests.PositionDeletes && !d.IsVector() && len(f.vectors) > 0 {
				a = f.withoutVectors(u, a)
			}
			if a.Inputs == nil || len(a.Inputs) > 0 {
				unit.Deletes = append(unit.Deletes, a)
				used[a.Delete] = true
			}
		}
	}
	f.compact(used)
}

func (f *filler) withoutVectors(u int, a Applied) Applied {
	kept := []int{}
	all := len(f.w.p.units[u].Inputs)
	for k := range all {
		if a.To(k) && !f.vectors[place{u, k}] {
			kept = append(kept, k)
		}
	}
	if len(kept) < all {
		a.Inputs = kept
	}
	return a
}

// compact removes deletes that apply to nothing and numbers the others anew.
func (f *filler) compact(used []bool) {
	p := f.w.p
	to := make([]int, len(used))
	kept := p.deletes[:0]
	for i, u := range used {
		to[i] = len(kept)
		if u {
			kept = append(kept, p.deletes[i])
		}
	}
	p.deletes = kept
	for u := range p.units {
		for k := range p.units[u].Deletes {
			p.units[u].Deletes[k].Delete = to[p.units[u].Deletes[k].Delete]
		}
	}
}
