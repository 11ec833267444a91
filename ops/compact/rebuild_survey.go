package compact

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// manifestKey tells manifests apart as far as their entries are concerned: what
// entries inherit comes from the list.
type manifestKey struct {
	path     string
	snapshot manifests.Opt[iceberg.SnapshotID]
	seq      manifests.Opt[iceberg.SeqNum]
	firstRow manifests.Opt[int64]
}

func keyOf(m *manifests.ManifestFile) manifestKey {
	return manifestKey{path: m.Path, snapshot: m.SnapshotID, seq: m.Seq, firstRow: m.FirstRowID}
}

// remembered is what was read and written before and cannot have changed: manifests
// are immutable.
type remembered struct {
	// inputs are the inputs found in a data manifest, deletes those in scope of a
	// delete manifest.
	inputs  map[manifestKey][]*located
	deletes map[manifestKey][]*located
	// filtered are successors of manifests by what was removed from them, fresh
	// the manifests of outputs by the units they are of.
	filtered map[string][]*manifests.ManifestFile
	fresh    map[string][]*manifests.ManifestFile
	// traces are what of a data manifest matters for whether deletes can hit
	// anything, as long as no file is watched but those in watched.
	traces  map[manifestKey][]*manifests.Entry
	watched map[string]bool
	// wanted are the inputs of all units, of this part and of others.
	wanted map[string]bool
	// schema is the one that inputs, deletes and traces were read under.
	schema *iceberg.SchemaID
}

// of forgets what was read under other types of partition fields than a head has:
// keys of partitions must be comparable.
func (k *remembered) of(m *iceberg.Metadata) {
	if k.schema != nil && *k.schema != m.CurrentSchemaID {
		clear(k.inputs)
		clear(k.deletes)
		clear(k.traces)
	}
	schema := m.CurrentSchemaID
	k.schema = &schema
}

func (k *remembered) init() {
	k.inputs, k.deletes = map[manifestKey][]*located{}, map[manifestKey][]*located{}
	k.wanted = map[string]bool{}
	k.traces, k.watched = map[manifestKey][]*manifests.Entry{}, map[string]bool{}
	k.filtered, k.fresh = map[string][]*manifests.ManifestFile{}, map[string][]*manifests.ManifestFile{}
}

// sought is an input that is looked for.
type sought struct {
	path      string
	partition iceberg.PartitionKey
	// manifest held it at planning.
	manifest string
}

// survey finds the inputs of the finished units and the deletes in their scope.
func (a *attempt) survey(ctx context.Context) error {
	var seek []sought
	parts := map[iceberg.PartitionKey]bool{}
	for _, f := range a.x.done {
		parts[f.Unit.Partition] = true
		for i := range f.Unit.Inputs {
			in := &f.Unit.Inputs[i]
			a.x.known.wanted[in.Path] = true
			seek = append(seek, sought{path: in.Path, partition: f.Unit.Partition, manifest: f.Manifests[in.Manifest]})
		}
	}
	var err error
	if a.inputs, err = a.x.find(ctx, a.head, a.list, seek); err != nil {
		return err
	}
	a.scope, err = a.readScope(ctx, parts)
	return err
}

// find looks for inputs among the live entries of a list: first in the manifests
// that held them at planning, and only for those that are not there in others.
func (x *execution) find(ctx context.Context, head *iceberg.View, list []*manifests.ManifestFile, seek []sought) (map[string]*located, error) {
	x.known.of(head.Metadata)
	first := map[string]bool{}
	for _, s := range seek {
		x.known.wanted[s.path] = true
		first[s.manifest] = true
	}
	found := map[string]*located{}
	take := func(m *manifests.ManifestFile) error {
		got, err := x.inputsOf(ctx, head, m)
		if err != nil {
			return err
		}
		for _, e := range got {
			if twice := found[e.Path]; twice != nil {
				return fault.New(fault.Corrupt, fmt.Sprintf("data file %s is live twice, in %s and %s", e.Path, twice.manifest, e.manifest))
			}
			found[e.Path] = e
		}
		return nil
	}
	for _, m := range list {
		if m.Content == manifests.DataManifest && first[m.Path] {
			if err := take(m); err != nil {
				return nil, err
			}
		}
	}
	missing := newReach()
	for _, s := range seek {
		if found[s.path] == nil {
			missing.add(s.partition)
		}
	}
	for _, m := range list {
		if m.Content != manifests.DataManifest || first[m.Path] || !m.MayHaveLive() {
			continue
		}
		may, err := missing.touches(head.Metadata, m)
		if err != nil {
			return nil, err
		}
		if may {
			if err := take(m); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// inputsOf are the inputs among the live entries of a data manifest: all that are
// wanted ever, because the answer is kept.
func (x *execution) inputsOf(ctx context.Context, head *iceberg.View, m *manifests.ManifestFile) ([]*located, error) {
	if got, ok := x.known.inputs[keyOf(m)]; ok {
		return got, nil
	}
	got := []*located{}
	o := manifests.ReadOptions{Projection: manifests.ProjectPath | manifests.ProjectPartition, Types: head.Metadata.PartitionType}
	for e, err := range manifests.EntriesOf(ctx, x.st.Reader(), head.Locations, m, o) {
		if err != nil {
			return nil, err
		}
		if e.Live() && e.Content == manifests.Data && x.known.wanted[e.Path] {
			got = append(got, &located{Entry: lean(e), manifest: m.Path})
		}
	}
	x.known.inputs[keyOf(m)] = got
	return got, nil
}

// lean is a copy of an entry that stays valid and is not to be written again: it
// leaves out the bytes it was read from, and statistics but bounds.
func lean(e *manifests.Entry) *manifests.Entry {
	c := &manifests.Entry{Status: e.Status, SnapshotID: e.SnapshotID, DataSeq: e.DataSeq, FileSeq: e.FileSeq, File: e.File}
	c.ColumnSizes, c.ValueCounts, c.NullCounts, c.NaNCounts, c.SplitOffsets = nil, nil, nil, nil, nil
	c.EqualityIDs = slices.Clone(e.EqualityIDs)
	c.KeyMetadata = bytes.Clone(e.KeyMetadata)
	c.Lower, c.Upper = copied(e.Lower), copied(e.Upper)
	return c
}

func copied(b manifests.Bounds) manifests.Bounds {
	if b == nil {
		return nil
	}
	c := make(manifests.Bounds, len(b))
	for i := range b {
		c[i] = manifests.Bound{Column: b[i].Column, Value: bytes.Clone(b[i].Value)}
	}
	return c
}

// headDeletes are the deletes of a head that can matter to some partitions: those of
// the partitions, and equality deletes of the whole table.
type headDeletes struct {
	all []*located
	// touched are the partitions.
	touched map[iceberg.PartitionKey]bool
	// named are by the only data file they can name, parts by partition, global
	// apply everywhere.
	named  map[string][]*located
	parts  map[iceberg.PartitionKey][]*located
	global []*located
	// vectors finds data files with two.
	vectors manifests.Vectors
}

func (a *attempt) readScope(ctx context.Context, parts map[iceberg.PartitionKey]bool) (*headDeletes, error) {
	s := &headDeletes{touched: parts, named: map[string][]*located{}, parts: map[iceberg.PartitionKey][]*located{}, vectors: manifests.Vectors{}}
	touched := newReach()
	for p := range parts {
		touched.add(p)
	}
	for _, m := range a.list {
		if m.Content != manifests.DeleteManifest || !m.MayHaveLive() {
			continue
		}
		global := a.rules.GlobalSpecs[m.SpecID]
		may, err := touched.touches(a.head.Metadata, m)
		if err != nil {
			return nil, err
		}
		if !may && !global {
			continue
		}
		got, err := a.deletesOf(ctx, m, parts, global)
		if err != nil {
			return nil, err
		}
		for _, d := range got {
			if err := s.add(d, global); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (a *attempt) deletesOf(ctx context.Context, m *manifests.ManifestFile, parts map[iceberg.PartitionKey]bool, global bool) ([]*located, error) {
	if got, ok := a.x.known.deletes[keyOf(m)]; ok {
		return got, nil
	}
	got := []*located{}
	o := manifests.ReadOptions{Projection: manifests.ProjectAll &^ manifests.ProjectCounts, Types: a.head.Metadata.PartitionType}
	for e, err := range manifests.EntriesOf(ctx, a.st.Reader(), a.head.Locations, m, o) {
		if err != nil {
			return nil, err
		}
		if !e.Live() || e.Content == manifests.Data {
			continue
		}
		if parts[e.PartitionKey()] || global && e.Content == manifests.EqualityDeletes {
			got = append(got, &located{Entry: lean(e), manifest: m.Path})
		}
	}
	a.x.known.deletes[keyOf(m)] = got
	return got, nil
}

func (s *headDeletes) add(d *located, global bool) error {
	s.all = append(s.all, d)
	if d.IsVector() {
		if err := s.vectors.Add(d.Entry); err != nil {
			return err
		}
	}
	if path, ok := d.Target(); ok {
		s.named[path] = append(s.named[path], d)
		return nil
	}
	if global && d.Content == manifests.EqualityDeletes {
		s.global = append(s.global, d)
		return nil
	}
	key := d.PartitionKey()
	s.parts[key] = append(s.parts[key], d)
	return nil
}

// applying are the deletes that apply to a live data file of the head: with a
// vector, no other delete by position does.
func (a *attempt) applying(f *manifests.Entry) []*located {
	var out []*located
	vector := false
	for _, group := range [][]*located{a.scope.named[f.Path], a.scope.parts[f.PartitionKey()], a.scope.global} {
		for _, d := range group {
			if a.rules.Applies(d.Entry, f) {
				out = append(out, d)
				vector = vector || d.IsVector()
			}
		}
	}
	if !vector {
		return out
	}
	kept := out[:0]
	for _, d := range out {
		if d.Content != manifests.PositionDeletes || d.IsVector() {
			kept = append(kept, d)
		}
	}
	return kept
}

// reach are partitions by spec, to tell which manifests can hold some of them.
type reach struct {
	keys   map[iceberg.SpecID][]iceberg.TupleKey
	tuples map[iceberg.SpecID][]iceberg.Tuple
	has    map[iceberg.PartitionKey]bool
}

func newReach() *reach {
	return &reach{keys: map[iceberg.SpecID][]iceberg.TupleKey{}, tuples: map[iceberg.SpecID][]iceberg.Tuple{}, has: map[iceberg.PartitionKey]bool{}}
}

func (r *reach) add(p iceberg.PartitionKey) {
	if !r.has[p] {
		r.has[p] = true
		r.keys[p.Spec] = append(r.keys[p.Spec], p.Tuple)
		delete(r.tuples, p.Spec)
	}
}

// touches reports whether a manifest may hold an entry of one of the partitions.
// A summary that does not say, or cannot be read, means that it may.
func (r *reach) touches(m *iceberg.Metadata, f *manifests.ManifestFile) (bool, error) {
	if f.NeedsCount(1) {
		return len(r.has) > 0, nil // embedded: known once it is read
	}
	keys := r.keys[f.SpecID]
	if len(keys) == 0 {
		return false, nil
	}
	t, err := m.PartitionType(f.SpecID)
	if err != nil {
		return false, err
	}
	if r.tuples[f.SpecID] == nil {
		for _, k := range keys {
			tuple, err := tupleOf(t, k)
			if fault.Is(err, fault.Stale) {
				delete(r.tuples, f.SpecID)
				return true, nil // whoever looks finds that its key is another
			}
			if err != nil {
				return false, err
			}
			r.tuples[f.SpecID] = append(r.tuples[f.SpecID], tuple)
		}
	}
	sums := f.Summaries(t)
	if sums == nil {
		return true, nil
	}
	for _, tuple := range r.tuples[f.SpecID] {
		if admits(t, sums, tuple) {
			return true, nil
		}
	}
	return false, nil
}

// admits reports whether summaries leave room for a tuple.
func admits(t *iceberg.PartitionType, sums []manifests.FieldSummary, tuple iceberg.Tuple) bool {
	for i := range t.Fields {
		s, v := &sums[i], tuple.At(i)
		if v.IsNull() {
			if !s.ContainsNull {
				return false
			}
			continue
		}
		if outside(t, i, s.Lower, v, -1) || outside(t, i, s.Upper, v, 1) {
			return false
		}
	}
	return true
}

// outside reports whether a value is for certain beyond a bound: below a lower
// one (side -1) or above an upper one (side 1). NaN is within all bounds, and a
// bound that is NaN says nothing. There are writers to whom -0.0 and 0.0 are the
// same bound.
func outside(t *iceberg.PartitionType, i int, bound []byte, v iceberg.Value, side int) bool {
	if bound == nil || t.Fields[i].Result == nil {
		return false
	}
	b, err := iceberg.DecodeBound(t.Fields[i].Result, bound)
	if err != nil {
		return false
	}
	x, float := floating(v)
	y, _ := floating(b)
	if float && (x != x || y != y || x == y) {
		return false
	}
	c, err := v.Compare(b)
	return err == nil && c*side > 0
}

func floating(v iceberg.Value) (float64, bool) {
	switch f := v.Any().(type) {
	case float32:
		return float64(f), true
	case float64:
		return f, true
	}
	return 0, false
}
