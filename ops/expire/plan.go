// Package expire is the operation expire_snapshots: it removes snapshots that
// nothing needs any more from a table's metadata, and after the commit the files
// that only they reached.
//
// A file goes only if it was live in an expired snapshot and is live in no
// retained one, whichever branch, tag or pin retains it. If anything that a
// retained snapshot names cannot be read, no file goes.
package expire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

// Plan says which snapshots and refs expire.
type Plan struct {
	header ops.Header
	d      decision
	// spill is where lists of files go while they are worked on; empty is the
	// system's temporary directory.
	spill string
	// freed is what planning read of the files, kept for the same process. A plan
	// that was stored reads again.
	freed *freed
}

// decision is the part of a plan that its digest covers.
type decision struct {
	Rules     Rules                `json:"rules"`
	Snapshots []iceberg.SnapshotID `json:"snapshots"`
	Refs      []string             `json:"refs,omitempty"`
	// Clean removes schemas and specs that nothing uses any more.
	Clean bool `json:"clean-expired-metadata,omitempty"`
	// KeepChangelog keeps the files that retained snapshots deleted.
	KeepChangelog bool `json:"keep-changelog,omitempty"`
	// Properties are those of the table that the rules rest on, as they were.
	Properties map[string]string `json:"properties,omitempty"`
}

// Rules are the settings that decide which snapshots expire.
type Rules struct {
	// Now is the time that ages are measured from.
	Now time.Time `json:"now"`
	// MaxAge is the age up to which every snapshot stays, and MinKeep how many
	// of a branch stay at least.
	MaxAge  time.Duration `json:"max-age-ns"`
	MinKeep int           `json:"min-keep"`
	// MaxRefAge is the age of a ref's snapshot at which refs without a setting of
	// their own go; 0 is never.
	MaxRefAge time.Duration `json:"max-ref-age-ns,omitempty"`
}

type planJSON struct {
	ops.Header
	decision
	Spill string `json:"spill-dir,omitempty"`
}

// Head implements ops.Plan.
func (p *Plan) Head() ops.Header { return p.header }

// Empty implements ops.Plan.
func (p *Plan) Empty() bool { return len(p.d.Snapshots) == 0 && len(p.d.Refs) == 0 }

// Snapshots are the ids that expire, oldest first. They must not be modified.
func (p *Plan) Snapshots() []iceberg.SnapshotID { return p.d.Snapshots }

// Refs are the branches and tags that go.
func (p *Plan) Refs() []string { return p.d.Refs }

// Summary implements ops.Plan.
func (p *Plan) Summary() string {
	if p.Empty() {
		return "nothing to do"
	}
	e := p.header.Effects
	text := fmt.Sprintf("%d -> %d snapshots, %s of %s go to the trash", e.Before.Snapshots, e.After.Snapshots,
		ops.Count(e.RemovedFiles, "file"), ops.Size(e.RemovedBytes))
	if n := int64(len(p.d.Refs)); n > 0 {
		text += ", " + ops.Count(n, "ref") + " go"
	}
	return text
}

// Report implements ops.Reporter.
func (p *Plan) Report(e ops.Effects, counters map[string]int64, _ []ops.Reason) string {
	text := fmt.Sprintf("%d -> %d snapshots, %s of %s removed", e.Before.Snapshots, e.After.Snapshots,
		ops.Count(e.RemovedFiles, "file"), ops.Size(e.RemovedBytes))
	if n := counters["refs-expired"]; n > 0 {
		text += ", " + ops.Count(n, "ref") + " removed"
	}
	if n := counters["files-kept"]; n > 0 {
		text += ", " + ops.Count(n, "file") + " left"
	}
	return text
}

// MarshalJSON implements ops.Plan.
func (p *Plan) MarshalJSON() ([]byte, error) { return json.Marshal(planJSON{p.header, p.d, p.spill}) }

// decode reads a stored plan. One whose digest is not that of its decision was
// altered, or is from a version that decided otherwise.
func decode(raw []byte) (*Plan, error) {
	var j planJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	p := &Plan{header: j.Header, d: j.decision, spill: j.Spill}
	switch r := p.d.Rules; {
	case p.digest() != p.header.Digest:
		return nil, fault.New(fault.Unsupported, "field digest does not match the decision")
	case r.MaxAge < 0 || r.MaxRefAge < 0 || r.MinKeep < 0:
		return nil, fault.New(fault.Unsupported, "field rules has a negative limit")
	case !r.Now.Equal(p.header.PlannedAt):
		return nil, fault.New(fault.Unsupported, "field now of rules is not the time of the plan")
	}
	return p, nil
}

func (p *Plan) digest() string {
	d := p.d
	d.Rules.Now = time.Time{}
	b, err := json.Marshal(struct {
		Base     commit.Base
		Decision decision
	}{p.header.Base, d})
	if err != nil {
		// Numbers, strings and times of this package always encode.
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// properties are the table properties that a decision rests on.
var properties = []string{"gc.enabled", "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep", propertyMaxRefAge}

// requirements hold the table to what the plan was made on.
func (p *Plan) requirements() []commit.Requirement {
	var out []commit.Requirement
	for _, k := range properties {
		v, ok := p.d.Properties[k]
		out = append(out, commit.SameProperty{Key: k, Value: v, Present: ok})
	}
	return out
}

// has reports whether the plan lets a ref go.
func (p *Plan) has(ref string) bool { return slices.Contains(p.d.Refs, ref) }

// New returns the operation.
func New() ops.Operation {
	return ops.Bind[*Plan](config.ExpireSnapshots, planner{}, executor{}, decode)
}
