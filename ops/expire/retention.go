package expire

import (
	"fmt"
	"slices"
	"time"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

const propertyMaxRefAge = "history.expire.max-ref-age-ms"

// retention is what the rules say about the snapshots of one metadata.
type retention struct {
	m     *iceberg.Metadata
	rules Rules
	// keep has the reason of every snapshot that stays.
	keep map[iceberg.SnapshotID]why
	// expire are the others, in the order of the metadata, and refs the names
	// that go.
	expire []iceberg.SnapshotID
	refs   []string
}

// why is why a snapshot stays.
type why uint8

const (
	byRef why = iota
	byFuture
	byAge
	byCount
	byPin
	byYouth
)

// retain applies the rules to m. It is pure, so that it can be asked again about
// a newer head. mayGo says which refs may expire; nil is all.
//
// A snapshot on a branch follows the branch's rules, as the spec has them. One
// that is on no branch that stays — staged, left by a rollback, behind a tag, or
// on a branch that expires now — stays until it is older than the table's limit
// (F092, F095).
func retain(m *iceberg.Metadata, r Rules, mayGo func(string) bool) (*retention, error) {
	out := &retention{m: m, rules: r, keep: map[iceberg.SnapshotID]why{}}
	pinned, err := pins(m, r.Now)
	if err != nil {
		return nil, err
	}
	onBranch := map[iceberg.SnapshotID]bool{}
	var branches []iceberg.Ref
	for _, name := range m.RefNames() {
		ref := m.Refs[name]
		head, _ := m.Snapshot(ref.SnapshotID) // every ref of parsed metadata has its snapshot
		if name != iceberg.MainBranch && (mayGo == nil || mayGo(name)) && out.older(head, refAge(ref, r)) {
			out.refs = append(out.refs, name)
			continue
		}
		out.keep[head.ID] = byRef
		if ref.Type == iceberg.Branch {
			branches = append(branches, ref)
		}
	}
	for _, ref := range branches {
		out.walk(ref, onBranch)
	}
	for _, id := range pinned {
		out.stay(id, byPin)
	}
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		if !onBranch[s.ID] && !out.older(s, r.MaxAge) {
			out.stay(s.ID, out.young(s, byYouth))
		}
		if _, stays := out.keep[s.ID]; !stays {
			out.expire = append(out.expire, s.ID)
		}
	}
	return out, nil
}

// older reports whether s is older than the limit. A snapshot from the future is
// younger than any (F100).
func (o *retention) older(s *iceberg.Snapshot, limit time.Duration) bool {
	return o.rules.Now.Sub(time.UnixMilli(s.TimestampMs)) > limit
}

func (o *retention) young(s *iceberg.Snapshot, reason why) why {
	if time.UnixMilli(s.TimestampMs).After(o.rules.Now) {
		return byFuture
	}
	return reason
}

// stay keeps a snapshot. The first reason counts.
func (o *retention) stay(id iceberg.SnapshotID, reason why) {
	if _, ok := o.keep[id]; !ok {
		o.keep[id] = reason
	}
}

// walk applies the rules of a branch. The order is that of ancestry, and age is
// by timestamp, because timestamps need not be in order (F100).
func (o *retention) walk(ref iceberg.Ref, seen map[iceberg.SnapshotID]bool) {
	least, limit := int64(o.rules.MinKeep), o.rules.MaxAge
	if ref.MinSnapshotsToKeep != nil {
		least = *ref.MinSnapshotsToKeep
	}
	if ref.MaxSnapshotAgeMs != nil {
		limit = millis(*ref.MaxSnapshotAgeMs)
	}
	n := int64(0)
	for s := range o.m.Ancestors(ref.SnapshotID) {
		seen[s.ID] = true
		switch {
		case !o.older(s, limit):
			o.stay(s.ID, o.young(s, byAge))
		case n < least:
			o.stay(s.ID, byCount)
		}
		n++
	}
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

// reasons say for every snapshot that stays why it does.
func (o *retention) reasons() []ops.Reason {
	count := map[why]int64{}
	for _, w := range o.keep {
		count[w]++
	}
	var out []ops.Reason
	for w, x := range []struct{ code, text, setting string }{
		byRef:    {"named-by-ref", "a branch or tag names them", ""},
		byFuture: {"from-the-future", "their time has not come yet", ""},
		byAge:    {"kept-by-age", fmt.Sprintf("not older than %s, or than their branch's own limit", span(o.rules.MaxAge)), "snapshot_retention_hours"},
		byCount:  {"kept-by-count", fmt.Sprintf("among the last %d of a branch, or as many as the branch itself says", o.rules.MinKeep), "max_snapshots_to_keep"},
		byPin:    {"kept-by-pin", "a pin needs them", ""},
		byYouth:  {"unreferenced-too-young", fmt.Sprintf("on no branch, but not older than %s", span(o.rules.MaxAge)), "snapshot_retention_hours"},
	} {
		if n := count[why(w)]; n > 0 {
			out = append(out, ops.Reason{Code: x.code, Subject: "snapshots", Count: n, Text: x.text, Setting: x.setting})
		}
	}
	return out
}

func span(d time.Duration) string {
	if d == forever {
		return "forever"
	}
	return d.String()
}

// oldestFirst orders ids by sequence number, and where v1 has none by time.
func oldestFirst(m *iceberg.Metadata, ids []iceberg.SnapshotID) {
	slices.SortStableFunc(ids, func(a, b iceberg.SnapshotID) int {
		x, _ := m.Snapshot(a)
		y, _ := m.Snapshot(b)
		switch {
		case x.SequenceNumber != y.SequenceNumber:
			return compare(int64(x.SequenceNumber), int64(y.SequenceNumber))
		default:
			return compare(x.TimestampMs, y.TimestampMs)
		}
	})
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
