package expire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// pinPrefix begins the properties that pin history for long readers.
const pinPrefix = "seaice.pin."

// pin is what a pin's property holds.
type pin struct {
	Source    *int64  `json:"source-snapshot-id"`
	ExpiresAt *int64  `json:"expires-at-ms"`
	Branch    *string `json:"branch"`
}

// pins are the snapshots that live pins need: from the source, inclusive, to the
// head of the pin's branch. A pin that cannot be read, or whose source or branch
// is gone, stops everything that destroys.
func pins(m *iceberg.Metadata, now time.Time) ([]iceberg.SnapshotID, error) {
	var out []iceberg.SnapshotID
	var names []string
	for k := range m.Properties {
		if strings.HasPrefix(k, pinPrefix) {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		refuse := func(why string) error {
			return fault.WithHint("repair or remove the table property "+k,
				fault.New(fault.Unsupported, fmt.Sprintf("pin %s %s, so nothing may expire", k, why)))
		}
		var p pin
		if err := json.Unmarshal([]byte(m.Properties[k]), &p); err != nil || p.Source == nil || p.ExpiresAt == nil {
			return nil, refuse("cannot be read")
		}
		if *p.ExpiresAt <= now.UnixMilli() {
			continue
		}
		branch := iceberg.MainBranch
		if p.Branch != nil && *p.Branch != "" {
			branch = *p.Branch
		}
		source := iceberg.SnapshotID(*p.Source)
		if _, ok := m.Snapshot(source); !ok {
			return nil, refuse(fmt.Sprintf("has lost its source, snapshot %d", source))
		}
		head, ok := m.Branch(branch)
		if !ok {
			return nil, refuse(fmt.Sprintf("has lost its branch, %q", branch))
		}
		out = append(out, window(m, source, head.ID)...)
	}
	return out, nil
}

// window is from the source, inclusive, to the head. A branch that was set back
// behind the source keeps both sides.
func window(m *iceberg.Metadata, source, head iceberg.SnapshotID) []iceberg.SnapshotID {
	var out []iceberg.SnapshotID
	for s := range m.Ancestors(head) {
		out = append(out, s.ID)
		if s.ID == source {
			return out
		}
	}
	return append(out, source)
}
