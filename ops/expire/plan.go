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
	"time"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

// Plan says which snapshots and refs expire.
type Plan struct {
	header ops.Header
	d      decision
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
	// SpillDir is where lists of files go while they are worked on.
	SpillDir string `json:"spill-dir,omitempty"`
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
	text := fmt.Sprintf("%d -> %d snapshots, %d files of %.1f MB go", e.Before.Snapshots, e.After.Snapshots,
		e.RemovedFiles, float64(e.RemovedBytes)/(1<<20))
	if n := len(p.d.Refs); n > 0 {
		text += fmt.Sprintf(", %d refs expire", n)
	}
	return text
}

// MarshalJSON implements ops.Plan.
func (p *Plan) MarshalJSON() ([]byte, error) { return json.Marshal(planJSON{p.header, p.d}) }

func decode(raw []byte) (*Plan, error) {
	var j planJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	return &Plan{header: j.Header, d: j.decision}, nil
}

func (p *Plan) digest() string {
	d := p.d
	d.Rules.Now = time.Time{}
	b, _ := json.Marshal(struct {
		Base any
		D    decision
	}{p.header.Base, d})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// New returns the operation.
func New() ops.Operation {
	return ops.Bind[*Plan](config.ExpireSnapshots, planner{}, executor{}, decode)
}
