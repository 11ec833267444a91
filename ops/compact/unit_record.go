package compact

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/rewrite"
)

// recordFormat is the version of the JSON of finished units.
const recordFormat = 1

// record is what the journal holds of a finished unit: everything that a commit
// of it needs, so that another run can make it.
type record struct {
	Format int `json:"format"`
	// Base is the state that was planned on; its sequence number is the outputs'.
	Base commit.Base `json:"base"`
	// Unit is the unit with its deletes and manifests renumbered.
	Unit      Unit     `json:"unit"`
	Deletes   []Delete `json:"deletes,omitempty"`
	Manifests []string `json:"manifests,omitempty"`
	Outputs   []output `json:"outputs,omitempty"`
	// Map is the movement map; every unit has one.
	Map   stored        `json:"map"`
	Proof rewrite.Proof `json:"proof"`
}

// stored is a staged file as it was when the unit was finished.
type stored struct {
	At       filer.Path     `json:"at"`
	Bytes    int64          `json:"bytes"`
	Identity filer.Identity `json:"identity"`
}

// output is a new data file.
type output struct {
	rewrite.Output
	Identity filer.Identity `json:"identity"`
}

// finished is a unit that is staged and proved.
type finished struct {
	record
	tuple iceberg.Tuple
	// keys are the columns of the schema that the outputs hold.
	keys map[iceberg.FieldID]bool
	// resumed: an earlier run did the work.
	resumed bool
}

// recordOf takes a unit out of a plan.
func (p *Plan) recordOf(u *Unit) record {
	r := record{Format: recordFormat, Base: p.header.Base, Unit: *u}
	number := map[int]int{}
	manifest := func(n int) int {
		at, ok := number[n]
		if !ok {
			at = len(r.Manifests)
			number[n] = at
			r.Manifests = append(r.Manifests, p.manifests[n])
		}
		return at
	}
	r.Unit.Inputs = slices.Clone(u.Inputs)
	for i := range r.Unit.Inputs {
		r.Unit.Inputs[i].Manifest = manifest(r.Unit.Inputs[i].Manifest)
	}
	r.Unit.Deletes = slices.Clone(u.Deletes)
	for i := range r.Unit.Deletes {
		d := p.deletes[r.Unit.Deletes[i].Delete]
		d.Manifest = manifest(d.Manifest)
		r.Unit.Deletes[i].Delete = len(r.Deletes)
		r.Deletes = append(r.Deletes, d)
	}
	return r
}

// journalled is the unit as the journal takes it.
func (f *finished) journalled() (journal.Unit, error) {
	raw, err := json.Marshal(f.record)
	if err != nil {
		return journal.Unit{}, fault.Wrap(fault.Unsupported, "write down unit "+f.Unit.ID, err)
	}
	u := journal.Unit{ID: f.Unit.ID, Map: f.Map.At, Payload: raw}
	for i := range f.Outputs {
		u.Outputs = append(u.Outputs, f.Outputs[i].At)
	}
	return u, nil
}

// readRecord reads what journalled wrote. The journal is a file like others:
// what does not fit together is fault.Corrupt, another format fault.Unsupported.
func readRecord(u journal.Unit) (record, error) {
	var r record
	doing := "read unit " + u.ID + " from the journal"
	if err := json.Unmarshal(u.Payload, &r); err != nil {
		return r, fault.Wrap(fault.Corrupt, doing, err)
	}
	if r.Format != recordFormat {
		return r, fault.New(fault.Unsupported, fmt.Sprintf("%s: format %d, this program reads %d", doing, r.Format, recordFormat))
	}
	if err := r.Unit.check(len(r.Manifests), len(r.Deletes)); err != nil {
		return r, fault.Wrap(fault.Corrupt, doing, err)
	}
	var at []filer.Path
	rows := int64(0)
	for i := range r.Outputs {
		at = append(at, r.Outputs[i].At)
		rows += r.Outputs[i].Records
	}
	if r.Unit.ID != u.ID || r.Map.At != u.Map || !slices.Equal(at, u.Outputs) {
		return r, fault.New(fault.Corrupt, doing+": it is of other files than it says")
	}
	if rows != r.Proof.RowsWritten || r.Proof.RowsRead-r.Proof.RowsDeleted != rows || r.Proof.RowsRead != r.Unit.Records() {
		return r, fault.New(fault.Corrupt, doing+": its rows do not add up")
	}
	return r, nil
}

// complete makes a finished unit of a record.
func (r record) complete(m *iceberg.Metadata) (*finished, error) {
	t, err := m.PartitionType(r.Unit.Partition.Spec)
	if err != nil {
		return nil, err
	}
	f := &finished{record: r}
	if f.tuple, err = tupleOf(t, r.Unit.Partition.Tuple); err != nil {
		return nil, err
	}
	f.keys, err = columnsOf(m, r.Base.Schema)
	return f, err
}

// tupleOf reads the tuple of a partition that was planned on. One that does not
// fit any more is no damage: a column it is made of was widened since.
func tupleOf(t *iceberg.PartitionType, key iceberg.TupleKey) (iceberg.Tuple, error) {
	tuple, err := t.Decode(key)
	if fault.Is(err, fault.Corrupt) {
		err = fault.Wrap(fault.Stale, "the columns of the partition have other types than at planning", err)
	}
	return tuple, err
}

// columnsOf are the ids of everything a schema has, at any depth.
func columnsOf(m *iceberg.Metadata, id iceberg.SchemaID) (map[iceberg.FieldID]bool, error) {
	s, ok := m.Schema(id)
	if !ok {
		return nil, fault.New(fault.Stale, fmt.Sprintf("schema %d is gone", id))
	}
	out := map[iceberg.FieldID]bool{}
	for _, n := range s.FieldIDs() {
		out[iceberg.FieldID(n)] = true
	}
	return out, nil
}

// entry is output n as a manifest has it: ADDED, with the planning snapshot's
// sequence number, so that deletes that came later still apply to it (F002).
func (f *finished) entry(n int, version int) *manifests.Entry {
	o := &f.Outputs[n]
	e := &manifests.Entry{Status: manifests.Added, File: manifests.File{
		Content: manifests.Data, Path: o.Location, Format: manifests.Parquet, SpecID: f.Unit.Partition.Spec, Partition: f.tuple,
		Records: o.Records, Bytes: o.Bytes, SplitOffsets: o.SplitOffsets,
		ColumnSizes: countsOf(o.ColumnSizes), ValueCounts: countsOf(o.Values), NullCounts: countsOf(o.Nulls), NaNCounts: countsOf(o.NaNs),
		Lower: boundsOf(o.Lower), Upper: boundsOf(o.Upper),
	}}
	if version > 1 {
		e.DataSeq = manifests.Some(f.Base.Sequence)
	}
	return e
}

func countsOf(m map[iceberg.FieldID]int64) manifests.Counts {
	if m == nil {
		return nil
	}
	out := make(manifests.Counts, 0, len(m))
	for _, id := range sortedIDs(m) {
		out = append(out, manifests.Count{Column: id, N: m[id]})
	}
	return out
}

func boundsOf(m map[iceberg.FieldID][]byte) manifests.Bounds {
	if m == nil {
		return nil
	}
	out := make(manifests.Bounds, 0, len(m))
	for _, id := range sortedIDs(m) {
		out = append(out, manifests.Bound{Column: id, Value: m[id]})
	}
	return out
}

func sortedIDs[T any](m map[iceberg.FieldID]T) []iceberg.FieldID {
	ids := make([]iceberg.FieldID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// metricsOf are the statistics of an entry as the engine takes them.
func metricsOf(e *manifests.Entry) rewrite.Metrics {
	return rewrite.Metrics{
		ColumnSizes: countMap(e.ColumnSizes), Values: countMap(e.ValueCounts), Nulls: countMap(e.NullCounts), NaNs: countMap(e.NaNCounts),
		Lower: boundMap(e.Lower), Upper: boundMap(e.Upper),
	}
}

func countMap(c manifests.Counts) map[iceberg.FieldID]int64 {
	if c == nil {
		return nil
	}
	out := make(map[iceberg.FieldID]int64, len(c))
	for _, x := range c {
		out[x.Column] = x.N
	}
	return out
}

func boundMap(b manifests.Bounds) map[iceberg.FieldID][]byte {
	if b == nil {
		return nil
	}
	out := make(map[iceberg.FieldID][]byte, len(b))
	for _, x := range b {
		out[x.Column] = x.Value
	}
	return out
}
