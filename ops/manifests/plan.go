// Package rewritemanifests is the operation rewrite_manifests: it merges small
// manifests, splits large ones and brings entries of a partition together, so
// that planning a query opens few manifests. It lives in ops/manifests; its name
// differs from that of package manifests, which it is built on.
//
// No file of the table changes: the entries that live before live afterwards,
// with all they hold, which is proved before the commit.
package rewritemanifests

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// Plan names the manifests to rewrite, in groups that are independent of each
// other.
type Plan struct {
	header ops.Header
	groups []Group
	target int64
	spill  string
}

// Group are manifests of one spec and one content that are rewritten together.
type Group struct {
	Spec    iceberg.SpecID            `json:"spec-id"`
	Content manifests.ManifestContent `json:"content"`
	Inputs  []Input                   `json:"inputs"`
	// Outputs is how many manifests are expected to come out.
	Outputs int64 `json:"expected-outputs"`
	// Clustered groups are sorted by partition.
	Clustered bool `json:"clustered"`
}

// Input is one manifest to rewrite, and why.
type Input struct {
	Path   string `json:"path"`
	Length int64  `json:"length"`
	Why    string `json:"why"`
}

// The reasons for which a manifest is rewritten.
const (
	whySmall    = "small"
	whyLarge    = "large"
	whyOverlaps = "overlaps"
)

type planJSON struct {
	ops.Header
	Groups      []Group `json:"groups"`
	TargetBytes int64   `json:"target-bytes"`
	SpillDir    string  `json:"spill-dir,omitempty"`
}

// Head implements ops.Plan.
func (p *Plan) Head() ops.Header { return p.header }

// Empty implements ops.Plan.
func (p *Plan) Empty() bool { return len(p.groups) == 0 }

// Groups are the groups of the plan. They must not be modified.
func (p *Plan) Groups() []Group { return p.groups }

// Summary implements ops.Plan.
func (p *Plan) Summary() string {
	if p.Empty() {
		return "nothing to do"
	}
	e := p.header.Effects
	return fmt.Sprintf("%d -> %d manifests", e.Before.Manifests, e.After.Manifests)
}

// Report implements ops.Reporter.
func (p *Plan) Report(e ops.Effects, _ map[string]int64, _ []ops.Reason) string {
	return fmt.Sprintf("%d -> %d manifests", e.Before.Manifests, e.After.Manifests)
}

// MarshalJSON implements ops.Plan.
func (p *Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(planJSON{Header: p.header, Groups: p.groups, TargetBytes: p.target, SpillDir: p.spill})
}

// decode reads a stored plan. One whose digest is not that of its decision was
// altered, or is from a version that decided otherwise.
func decode(raw []byte) (*Plan, error) {
	var j planJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	p := &Plan{header: j.Header, groups: j.Groups, target: j.TargetBytes, spill: j.SpillDir}
	if p.digest() != p.header.Digest {
		return nil, fault.New(fault.Unsupported, "field digest does not match the decision")
	}
	return p, nil
}

// digest identifies the decision.
func (p *Plan) digest() string {
	b, _ := json.Marshal(struct {
		Base   any
		Groups []Group
		Target int64
	}{p.header.Base, p.groups, p.target})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// New returns the operation.
func New() ops.Operation {
	return ops.Bind[*Plan](config.RewriteManifests, planner{}, executor{}, decode)
}
