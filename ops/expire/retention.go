package expire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

const (
	propertyMaxRefAge = "history.expire.max-ref-age-ms"
	// pinPrefix begins the properties that pin history for long readers.
	pinPrefix = "seaice.pin."
)

// retention is what the rules say about the snapshots of one metadata.
type retention struct {
	expire  []iceberg.SnapshotID
	refs    []string
	keep    map[iceberg.SnapshotID]bool
	reasons []ops.Reason
}

// retain applies the rules to m. It is pure, so that it can be asked again about
// a newer head.
func retain(m *iceberg.Metadata, r Rules) (*retention, error) {
	out := &retention{keep: map[iceberg.SnapshotID]bool{}}
	byAge := func(s *iceberg.Snapshot, limit time.Duration) bool {
		// A snapshot from the future is younger than any limit (F100).
		return r.Now.Sub(time.UnixMilli(s.TimestampMs)) <= limit
	}
	count := map[string]int64{}
	for _, name := range m.RefNames() {
		ref := m.Refs[name]
		head, ok := m.Snapshot(ref.SnapshotID)
		if !ok {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("ref %q names snapshot %d, which does not exist", name, ref.SnapshotID))
		}
		if name != iceberg.MainBranch && !byAge(head, refAge(ref, r)) {
			out.refs = append(out.refs, name)
			continue
		}
		out.keep[head.ID] = true
		if ref.Type != iceberg.Branch {
			continue
		}
		least, limit := int64(r.MinKeep), r.MaxAge
		if ref.MinSnapshotsToKeep != nil {
			least = *ref.MinSnapshotsToKeep
		}
		if ref.MaxSnapshotAgeMs != nil {
			limit = millis(*ref.MaxSnapshotAgeMs)
		}
		n := int64(0)
		for s := range m.Ancestors(head.ID) {
			switch {
			case n < least && n > 0:
				count["kept-by-count"]++
			case n > 0 && byAge(s, limit):
				count["kept-by-age"]++
			}
			if n < least || byAge(s, limit) {
				out.keep[s.ID] = true
			}
			n++
		}
	}
	pinned, err := pins(m, r.Now)
	if err != nil {
		return nil, err
	}
	for _, id := range pinned {
		if !out.keep[id] {
			count["kept-by-pin"]++
			out.keep[id] = true
		}
	}
	for _, id := range m.Graph().Unreferenced() {
		// Staged snapshots and those a rollback left (F092, F095).
		if s, _ := m.Snapshot(id); byAge(s, r.MaxAge) && !out.keep[id] {
			count["unreferenced-too-young"]++
			out.keep[id] = true
		}
	}
	for i := range m.Snapshots {
		if id := m.Snapshots[i].ID; !out.keep[id] {
			out.expire = append(out.expire, id)
		}
	}
	out.explain(count, r)
	return out, nil
}

func refAge(ref iceberg.Ref, r Rules) time.Duration {
	switch {
	case ref.MaxRefAgeMs != nil:
		return millis(*ref.MaxRefAgeMs)
	case r.MaxRefAge > 0:
		return r.MaxRefAge
	}
	return forever
}

const forever = time.Duration(1<<63 - 1)

func millis(ms int64) time.Duration {
	if ms > int64(forever/time.Millisecond) {
		return forever
	}
	return time.Duration(ms) * time.Millisecond
}

func (o *retention) explain(count map[string]int64, r Rules) {
	for _, x := range []struct{ code, text, setting string }{
		{"kept-by-count", fmt.Sprintf("among the last %d of a branch, or of its own number", r.MinKeep), "max_snapshots_to_keep"},
		{"kept-by-age", fmt.Sprintf("not older than %s, or than the branch's own limit", r.MaxAge), "snapshot_retention_hours"},
		{"kept-by-pin", "needed by a pin", ""},
		{"unreferenced-too-young", fmt.Sprintf("on no branch, but not older than %s", r.MaxAge), "snapshot_retention_hours"},
	} {
		if n := count[x.code]; n > 0 {
			o.reasons = append(o.reasons, ops.Reason{Code: x.code, Subject: "snapshots", Count: n, Text: x.text, Setting: x.setting})
		}
	}
}

// pin is what a pin's property holds.
type pin struct {
	Source    *int64  `json:"source-snapshot-id"`
	ExpiresAt *int64  `json:"expires-at-ms"`
	Branch    *string `json:"branch"`
}

// pins are the snapshots that live pins need: from the source, inclusive, to the
// head of the pin's branch. A pin that cannot be read, or whose source is gone,
// stops everything that destroys.
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
		var p pin
		err := json.Unmarshal([]byte(m.Properties[k]), &p)
		if err != nil || p.Source == nil || p.ExpiresAt == nil {
			return nil, fault.WithHint("remove or repair the table property "+k,
				fault.New(fault.Unsupported, "pin "+k+" cannot be read, so nothing may expire"))
		}
		if *p.ExpiresAt <= now.UnixMilli() {
			continue
		}
		branch := iceberg.MainBranch
		if p.Branch != nil && *p.Branch != "" {
			branch = *p.Branch
		}
		source := iceberg.SnapshotID(*p.Source)
		needed, err := pinned(m, source, branch)
		if err != nil {
			return nil, fault.In("pin "+k, err)
		}
		out = append(out, needed...)
	}
	return out, nil
}

func pinned(m *iceberg.Metadata, source iceberg.SnapshotID, branch string) ([]iceberg.SnapshotID, error) {
	if _, ok := m.Snapshot(source); !ok {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("its source snapshot %d is gone, so nothing may expire", source))
	}
	head, ok := m.Branch(branch)
	if !ok {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("its branch %q is gone, so nothing may expire", branch))
	}
	var out []iceberg.SnapshotID
	for s := range m.Ancestors(head.ID) {
		out = append(out, s.ID)
		if s.ID == source {
			return out, nil
		}
	}
	// The branch was set back behind the source: both sides stay.
	return append(out, source), nil
}
