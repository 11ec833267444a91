// Package compact is the operation compact: it rewrites data files that are too
// small, too large or burdened with deletes into files of the target size, and
// applies the deletes on the way.
//
// A plan is a list of units. A unit is rewritten, proved and committed on its
// own; one that fails or is overtaken costs only itself.
package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// Plan names the files to rewrite, in units that are independent of each other.
// It is immutable.
type Plan struct {
	header    ops.Header
	options   Options
	manifests []string
	deletes   []Delete
	units     []Unit
	// whole is the plan that this one is a part of, or nil.
	whole *Plan
	// leastPart is the size of a part in bytes, 0 for the usual one.
	leastPart int64
}

// Options are the settings a plan was made with that its execution depends on.
type Options struct {
	// TargetBytes is the size at which an output is ended.
	TargetBytes int64 `json:"target-bytes"`
	// MaxRows is the greatest number of rows of an output, 0 for none.
	MaxRows int64         `json:"max-rows,omitempty"`
	Verify  config.Verify `json:"verify"`
	// MemoryBytes bounds what the run needs beyond an idle process.
	MemoryBytes int64 `json:"memory-bytes"`
	// ThroughputBytes bounds the bytes a second, 0 for none.
	ThroughputBytes int64 `json:"throughput-bytes-per-second,omitempty"`
	// Recompress rewrites pages whose codec is right and level is not.
	Recompress bool `json:"recompress,omitempty"`
	// ApplyDeletes false means that no input of any unit has a delete.
	ApplyDeletes bool `json:"apply-deletes"`
}

// Why is a reason for which a file is rewritten.
type Why string

// The reasons, in the order in which they are looked for: the first that holds
// is the file's.
const (
	WhyDeleteFiles Why = "delete-files"
	WhyDeleteRatio Why = "delete-ratio"
	WhySmall       Why = "small"
	WhyLarge       Why = "large"
	WhyAll         Why = "rewrite-all"
)

// Unit are files of one partition that are rewritten together.
type Unit struct {
	// ID is the same for the same inputs and deletes. It names the unit in the
	// journal.
	ID string `json:"id"`
	// Partition is the spec and the tuple of every input and of the outputs.
	Partition iceberg.PartitionKey `json:"partition"`
	// Label shows the tuple to people, as in "day=2024-01-02"; "" if there are no
	// fields.
	Label string `json:"label,omitempty"`
	// Inputs are in the order in which their rows go to the outputs.
	Inputs []Input `json:"inputs"`
	// Deletes are those that apply to an input, in the order of Plan.Deletes.
	Deletes []Applied `json:"deletes,omitempty"`
	// TargetBytes is the size at which an output of the unit is ended. It is near
	// Options.TargetBytes and chosen so that Expect.Files files of like size come
	// out, without a small one at the end.
	TargetBytes int64 `json:"target-bytes"`
	// Expect is what should come out.
	Expect Expectation `json:"expect"`
}

// Input is one data file to rewrite.
type Input struct {
	// Path is the location as the manifest spells it.
	Path string `json:"path"`
	// Manifest is the number of the manifest that holds the entry, see
	// Plan.Manifests.
	Manifest int `json:"manifest"`
	// Snapshot added the file.
	Snapshot iceberg.SnapshotID `json:"snapshot-id,omitempty"`
	DataSeq  iceberg.SeqNum     `json:"data-sequence-number"`
	FileSeq  iceberg.SeqNum     `json:"file-sequence-number"`
	// FirstRowID is the effective first row id, nil if the file has none (v3).
	FirstRowID *int64 `json:"first-row-id,omitempty"`
	Records    int64  `json:"records"`
	Bytes      int64  `json:"bytes"`
	Why        Why    `json:"why"`
}

// Delete is a delete file or a deletion vector.
type Delete struct {
	// Path, Offset and Size are its identity; Offset and Size are -1 for a file
	// that is one delete as a whole (F019).
	Path   string `json:"path"`
	Offset int64  `json:"content-offset"`
	Size   int64  `json:"content-size"`
	// Manifest is the number of the manifest that holds the entry, see
	// Plan.Manifests.
	Manifest int               `json:"manifest"`
	Content  manifests.Content `json:"content"`
	Format   manifests.Format  `json:"format"`
	// Partition is the delete's own, which for an equality delete of the whole
	// table is not that of the inputs.
	Partition iceberg.PartitionKey `json:"partition"`
	DataSeq   iceberg.SeqNum       `json:"data-sequence-number"`
	FileSeq   iceberg.SeqNum       `json:"file-sequence-number"`
	Records   int64                `json:"records"`
	Bytes     int64                `json:"bytes"`
	// EqualityIDs are the key of an equality delete.
	EqualityIDs []iceberg.FieldID `json:"equality-ids,omitempty"`
	// Referenced is the only data file it can name, if that is known.
	Referenced string `json:"referenced,omitempty"`
}

// Identity tells deletes apart.
func (d *Delete) Identity() manifests.DeleteID {
	return manifests.DeleteID{Path: d.Path, Offset: d.Offset, Size: d.Size}
}

// IsVector reports whether it is a deletion vector.
func (d *Delete) IsVector() bool {
	return d.Content == manifests.PositionDeletes && d.Format == manifests.Puffin
}

// Applied says to which inputs of a unit a delete applies.
type Applied struct {
	// Delete is its number in Plan.Deletes.
	Delete int `json:"delete"`
	// Inputs are the numbers of the inputs, in order; nil means all of them.
	Inputs []int `json:"inputs,omitempty"`
}

// To reports whether the delete applies to input number i of the unit.
func (a Applied) To(i int) bool {
	if a.Inputs == nil {
		return true
	}
	for _, n := range a.Inputs {
		if n == i {
			return true
		}
	}
	return false
}

// Expectation is what a unit should become.
type Expectation struct {
	Files int64 `json:"files"`
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
	// RowsExact is false when Rows is an upper bound, because an equality delete
	// or a delete of the partition applies.
	RowsExact bool `json:"rows-exact"`
}

// Records is the number of rows of the inputs.
func (u *Unit) Records() int64 {
	var n int64
	for i := range u.Inputs {
		n += u.Inputs[i].Records
	}
	return n
}

// Bytes is the size of the inputs.
func (u *Unit) Bytes() int64 {
	var n int64
	for i := range u.Inputs {
		n += u.Inputs[i].Bytes
	}
	return n
}

type planJSON struct {
	ops.Header
	Options   Options  `json:"options"`
	Manifests []string `json:"manifests,omitempty"`
	Deletes   []Delete `json:"deletes,omitempty"`
	Units     []Unit   `json:"units"`
}

// Head implements ops.Plan.
func (p *Plan) Head() ops.Header { return p.header }

// Empty implements ops.Plan.
func (p *Plan) Empty() bool { return len(p.units) == 0 }

// Options are what the plan was made with.
func (p *Plan) Options() Options { return p.options }

// Manifests are the locations of the manifests that hold the entries of inputs
// and deletes, where an executor finds what else they say.
func (p *Plan) Manifests() []string { return p.manifests }

// Deletes are all deletes that apply to an input of the plan. They must not be
// modified.
func (p *Plan) Deletes() []Delete { return p.deletes }

// Units are the units of the plan. They must not be modified.
func (p *Plan) Units() []Unit { return p.units }

// MarshalJSON implements ops.Plan.
func (p *Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(planJSON{Header: p.header, Options: p.options, Manifests: p.manifests, Deletes: p.deletes, Units: p.units})
}

// Decode reads the JSON of a plan. One that was altered is refused: its numbers must
// point at something, its ids and its digest be those of what it says.
func Decode(raw []byte) (*Plan, error) {
	var j planJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	p := &Plan{header: j.Header, options: j.Options, manifests: j.Manifests, deletes: j.Deletes, units: j.Units}
	return p, p.check()
}

// check refuses a plan that contradicts itself: plans come from files, too.
func (p *Plan) check() error {
	if p.options.TargetBytes <= 0 {
		return fmt.Errorf("options: target-bytes is %d", p.options.TargetBytes)
	}
	for i := range p.deletes {
		if m := p.deletes[i].Manifest; m < 0 || m >= len(p.manifests) {
			return fmt.Errorf("delete %d: there is no manifest %d", i, m)
		}
	}
	ids, paths := map[string]bool{}, map[string]bool{}
	for i := range p.units {
		u := &p.units[i]
		if ids[u.ID] || u.ID == "" {
			return fmt.Errorf("unit %d: its id %q is not its own", i, u.ID)
		}
		ids[u.ID] = true
		if err := u.check(len(p.manifests), len(p.deletes)); err != nil {
			return fmt.Errorf("unit %s: %w", u.ID, err)
		}
		for k := range u.Inputs {
			if paths[u.Inputs[k].Path] {
				return fmt.Errorf("unit %s: %s is an input twice", u.ID, u.Inputs[k].Path)
			}
			paths[u.Inputs[k].Path] = true
		}
	}
	return p.sealed()
}

// sealed refuses a plan whose ids or digest are not what it says. The numbers in it must
// point at something.
func (p *Plan) sealed() error {
	for i := range p.units {
		if id := p.identify(&p.units[i]); id != p.units[i].ID {
			return fmt.Errorf("unit %s: what it says makes it unit %s, so it was altered", p.units[i].ID, id)
		}
	}
	if d := p.digest(); d != p.header.Digest {
		return fmt.Errorf("digest is %q, of what the plan says it is %s, so it was altered", p.header.Digest, d)
	}
	return nil
}

func (u *Unit) check(manifests, deletes int) error {
	if len(u.Inputs) == 0 || u.TargetBytes <= 0 {
		return fmt.Errorf("%d inputs and a target of %d bytes", len(u.Inputs), u.TargetBytes)
	}
	for k := range u.Inputs {
		in := &u.Inputs[k]
		if in.Manifest < 0 || in.Manifest >= manifests {
			return fmt.Errorf("input %d: there is no manifest %d", k, in.Manifest)
		}
		if in.Records < 0 || in.Bytes < 0 {
			return fmt.Errorf("input %d: %d records in %d bytes", k, in.Records, in.Bytes)
		}
	}
	last := -1
	for _, a := range u.Deletes {
		if a.Delete <= last || a.Delete >= deletes {
			return fmt.Errorf("delete %d is out of order or does not exist", a.Delete)
		}
		last = a.Delete
		prev := -1
		for _, n := range a.Inputs {
			if n <= prev || n >= len(u.Inputs) {
				return fmt.Errorf("delete %d: input %d is out of order or does not exist", a.Delete, n)
			}
			prev = n
		}
	}
	return nil
}

// seal gives every unit its id and the plan its digest.
func (p *Plan) seal() {
	for i := range p.units {
		p.units[i].ID = p.identify(&p.units[i])
	}
	p.header.Digest = p.digest()
}

// digest identifies the decision.
func (p *Plan) digest() string {
	h := sha256.New()
	e := json.NewEncoder(h)
	_ = e.Encode(p.header.Base)
	_ = e.Encode(p.options)
	for i := range p.units {
		_ = e.Encode(p.units[i].ID)
		_ = e.Encode(p.units[i].TargetBytes)
		_ = e.Encode(p.units[i].Expect)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// identify makes the id of a unit: of what its inputs are and what applies to
// them, which is also what must still hold for its work to be of use (F022).
func (p *Plan) identify(u *Unit) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	_ = e.Encode(u.Partition)
	for i := range u.Inputs {
		in := u.Inputs[i]
		in.Manifest, in.Why = 0, ""
		_ = e.Encode(in)
	}
	for _, a := range u.Deletes {
		d := p.deletes[a.Delete]
		d.Manifest = 0
		_ = e.Encode(d)
		_ = e.Encode(a.Inputs)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
