package iceberg

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// NewSnapshot describes a snapshot to add.
type NewSnapshot struct {
	// ID is positive and unused.
	ID       SnapshotID
	ParentID *SnapshotID
	// SequenceNumber is above the table's last one; 0 in v1.
	SequenceNumber SeqNum
	// TimestampMs is neither before the table's last change nor before the
	// parent's time.
	TimestampMs  int64
	ManifestList string
	Operation    string
	// Summary is the summary without the operation.
	Summary  map[string]string
	SchemaID *SchemaID
	// FirstRowID and AddedRows are set exactly in v3. The first row id is the
	// table's next one.
	FirstRowID *int64
	AddedRows  *int64
}

// AddSnapshot adds a snapshot and raises what goes with it: the last sequence
// number, the time of the last change and, in v3, the next row id. No ref points
// at it before SetRef.
func (e *Edit) AddSnapshot(s NewSnapshot) {
	if err := e.verifySnapshot(s); err != nil {
		e.fail(err)
		return
	}
	pairs := make([]rawjson.Pair, 0, 10)
	if e.m.FormatVersion > 1 {
		pairs = append(pairs, rawjson.Pair{Key: "sequence-number", Value: rawjson.Int(int64(s.SequenceNumber))})
		e.SetLastSequenceNumber(s.SequenceNumber)
	}
	pairs = append(pairs, rawjson.Pair{Key: "snapshot-id", Value: rawjson.Int(int64(s.ID))})
	if s.ParentID != nil {
		pairs = append(pairs, rawjson.Pair{Key: "parent-snapshot-id", Value: rawjson.Int(int64(*s.ParentID))})
	}
	summary := []rawjson.Pair{{Key: "operation", Value: rawjson.Quote(s.Operation)}}
	for _, key := range slices.Sorted(maps.Keys(s.Summary)) {
		summary = append(summary, rawjson.Pair{Key: key, Value: rawjson.Quote(s.Summary[key])})
	}
	pairs = append(pairs,
		rawjson.Pair{Key: "timestamp-ms", Value: rawjson.Int(s.TimestampMs)},
		rawjson.Pair{Key: "summary", Value: rawjson.Make(summary...)},
		rawjson.Pair{Key: "manifest-list", Value: rawjson.Quote(s.ManifestList)})
	if s.SchemaID != nil {
		pairs = append(pairs, rawjson.Pair{Key: "schema-id", Value: rawjson.Int(int64(*s.SchemaID))})
	}
	if s.FirstRowID != nil {
		pairs = append(pairs,
			rawjson.Pair{Key: "first-row-id", Value: rawjson.Int(*s.FirstRowID)},
			rawjson.Pair{Key: "added-rows", Value: rawjson.Int(*s.AddedRows)})
		e.SetNextRowID(*s.FirstRowID + *s.AddedRows)
	}
	e.SetLastUpdatedMs(s.TimestampMs)
	e.restore(rawjson.Make(pairs...))
}

func (e *Edit) verifySnapshot(s NewSnapshot) error {
	broken := func(format string, args ...any) error {
		return fault.New(fault.Halt, fmt.Sprintf("add snapshot %d: ", s.ID)+fmt.Sprintf(format, args...))
	}
	_, hasOperation := s.Summary["operation"]
	rows := s.FirstRowID != nil && s.AddedRows != nil
	switch {
	case s.ID <= 0:
		return broken("the id is not positive")
	case s.ManifestList == "" || s.Operation == "":
		return broken("the manifest list or the operation is missing")
	case hasOperation:
		return broken("the summary repeats the operation")
	case e.m.FormatVersion < 2 && s.SequenceNumber != 0:
		return broken("a v1 table has no sequence numbers")
	case e.m.FormatVersion > 1 && s.SequenceNumber <= e.lastSeq:
		return broken("sequence number %d is not above the last one, %d", s.SequenceNumber, e.lastSeq)
	case s.TimestampMs < e.updated:
		return broken("time %d is before the last change, %d", s.TimestampMs, e.updated)
	case (e.m.NextRowID != nil) != rows || (s.FirstRowID == nil) != (s.AddedRows == nil):
		return broken("row ids are for v3, which needs them")
	case rows && (*s.FirstRowID != e.nextRow || *s.AddedRows < 0):
		return broken("first row id %d with %d rows does not follow next row id %d", *s.FirstRowID, *s.AddedRows, e.nextRow)
	case rows && *s.AddedRows > math.MaxInt64-*s.FirstRowID:
		// F075: ids would wrap; no table gets there but by damage.
		return fault.New(fault.Corrupt, fmt.Sprintf("add snapshot %d: row ids are used up", s.ID))
	case s.ParentID == nil:
		return nil
	}
	parent, ok := e.find(*s.ParentID)
	switch {
	case !ok:
		return broken("the parent %d does not exist", *s.ParentID)
	case s.TimestampMs < parent.TimestampMs:
		return broken("time %d is before the parent's, %d", s.TimestampMs, parent.TimestampMs)
	}
	return nil
}

// RestoreSnapshot adds a snapshot that was removed before, as Raw gave it. The
// last sequence number, the next row id and the logs stay as they are.
func (e *Edit) RestoreSnapshot(raw []byte) {
	s, err := parseSnapshot(raw, e.m.FormatVersion)
	e.fail(err)
	if s.SequenceNumber > e.lastSeq {
		e.halt("restored snapshot %d has a sequence number above the last one", s.ID)
	}
	e.restore(raw)
}

func (e *Edit) restore(raw []byte) {
	s, err := parseSnapshot(raw, e.m.FormatVersion)
	if err != nil {
		e.fail(err)
		return
	}
	if _, ok := e.find(s.ID); ok {
		e.halt("snapshot %d exists", s.ID)
		return
	}
	e.added = append(e.added, s)
}

// find looks among the snapshots as they are and the added ones.
func (e *Edit) find(id SnapshotID) (*Snapshot, bool) {
	for i := range e.added {
		if e.added[i].ID == id {
			return &e.added[i], true
		}
	}
	return e.m.Snapshot(id)
}

// RemoveSnapshots removes snapshots and what belongs to them: their statistics
// and partition statistics, and the snapshot log up to the last of them (F103).
// Ids that do not exist are ignored. Build refuses with fault.Stale if a ref
// that stays points at one of them.
func (e *Edit) RemoveSnapshots(ids ...SnapshotID) {
	for _, id := range ids {
		if _, ok := e.m.Snapshot(id); ok {
			e.removed[id] = true
		}
	}
}

// SetRef points a branch or tag at a snapshot. An existing ref keeps its kind,
// its retention and whatever else it holds (F096); a new one is a branch.
func (e *Edit) SetRef(name string, id SnapshotID) {
	refs := e.openRefs()
	ref, ok := refs.Get(name)
	if !ok {
		e.PutRef(name, Ref{SnapshotID: id, Type: Branch})
		return
	}
	o, err := rawjson.ParseObject(ref)
	if err != nil {
		e.fail(err)
		return
	}
	o.Set("snapshot-id", rawjson.Int(int64(id)))
	refs.Set(name, o.Bytes())
	e.moveMain(name, id)
}

// PutRef makes or changes a ref together with its retention. What else an
// existing ref holds stays.
func (e *Edit) PutRef(name string, r Ref) {
	refs := e.openRefs()
	raw, ok := refs.Get(name)
	if !ok {
		raw = []byte("{}")
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		e.fail(err)
		return
	}
	o.Set("snapshot-id", rawjson.Int(int64(r.SnapshotID)))
	o.Set("type", rawjson.Quote(string(r.Type)))
	for _, f := range []struct {
		key   string
		value *int64
	}{{"min-snapshots-to-keep", r.MinSnapshotsToKeep}, {"max-snapshot-age-ms", r.MaxSnapshotAgeMs}, {"max-ref-age-ms", r.MaxRefAgeMs}} {
		if f.value == nil {
			o.Delete(f.key)
			continue
		}
		o.Set(f.key, rawjson.Int(*f.value))
	}
	refs.Set(name, o.Bytes())
	e.moveMain(name, r.SnapshotID)
}

// RemoveRefs removes branches and tags; missing ones are no error. Main cannot be
// removed.
func (e *Edit) RemoveRefs(names ...string) {
	if slices.Contains(names, MainBranch) {
		e.halt("branch main would be removed")
		return
	}
	refs := e.openRefs()
	for _, name := range names {
		refs.Delete(name)
	}
}

func (e *Edit) moveMain(name string, id SnapshotID) {
	if _, ok := e.find(id); !ok {
		e.halt("ref %q would point at snapshot %d, which does not exist", name, id)
	}
	if name == MainBranch {
		e.current = &id
	}
}

// openRefs opens the refs. Metadata from before refs existed has main only as
// its current snapshot.
func (e *Edit) openRefs() *rawjson.Object {
	if e.refs == nil {
		e.refs = e.object("refs")
		if _, ok := e.refs.Get(MainBranch); !ok && e.m.CurrentSnapshotID != nil {
			e.refs.Set(MainBranch, rawjson.Make(
				rawjson.Pair{Key: "snapshot-id", Value: rawjson.Int(int64(*e.m.CurrentSnapshotID))},
				rawjson.Pair{Key: "type", Value: rawjson.Quote(string(Branch))}))
		}
	}
	return e.refs
}

func (e *Edit) applySnapshots() {
	if len(e.added) == 0 && len(e.removed) == 0 {
		return
	}
	a := e.array("snapshots")
	a.Keep(func(i int, _ []byte) bool { return !e.removed[e.m.Snapshots[i].ID] })
	for i := range e.added {
		a.Append(e.added[i].raw)
	}
	e.set("snapshots", a.Bytes())
	if len(e.removed) == 0 {
		return
	}
	e.out.RemovedStatistics = e.dropStatistics("statistics", e.m.Statistics)
	e.out.RemovedPartitionStatistics = e.dropStatistics("partition-statistics", e.m.PartitionStatistics)
}

func (e *Edit) dropStatistics(key string, files []StatisticsFile) []StatisticsFile {
	var dropped []StatisticsFile
	for _, f := range files {
		if e.removed[f.SnapshotID] {
			dropped = append(dropped, f)
		}
	}
	if len(dropped) > 0 {
		a := e.array(key)
		a.Keep(func(i int, _ []byte) bool { return !e.removed[files[i].SnapshotID] })
		e.set(key, a.Bytes())
	}
	return dropped
}

// applyRefs writes the refs and sees that none of them points at a removed
// snapshot.
func (e *Edit) applyRefs() {
	if _, ok := e.doc.Get("refs"); !ok && e.m.CurrentSnapshotID != nil {
		e.openRefs()
	}
	if e.refs != nil {
		e.set("refs", e.refs.Bytes())
	}
	if e.current != nil && (e.m.CurrentSnapshotID == nil || *e.current != *e.m.CurrentSnapshotID) {
		e.set("current-snapshot-id", rawjson.Int(int64(*e.current)))
	}
	if len(e.removed) == 0 {
		return
	}
	refs := e.openRefs()
	for _, name := range refs.Keys() {
		raw, _ := refs.Get(name)
		r, err := parseRef(raw)
		e.fail(err)
		if e.removed[r.SnapshotID] {
			e.fail(fault.New(fault.Stale, fmt.Sprintf("snapshot %d cannot be removed: ref %q points at it", r.SnapshotID, name)))
		}
	}
}

// applySnapshotLog drops the entries up to the last one whose snapshot is gone,
// because a log with a hole would answer "which snapshot was current at t"
// wrongly, and notes the new head of main.
func (e *Edit) applySnapshotLog() {
	moved := e.current != nil && (e.m.CurrentSnapshotID == nil || *e.current != *e.m.CurrentSnapshotID)
	if len(e.removed) == 0 && !moved {
		return
	}
	a := e.array("snapshot-log")
	if len(e.removed) > 0 {
		from := 0
		for i, entry := range e.m.SnapshotLog {
			if _, ok := e.m.Snapshot(entry.SnapshotID); !ok || e.removed[entry.SnapshotID] {
				from = i + 1
			}
		}
		a.Keep(func(i int, _ []byte) bool { return i >= from })
	}
	if moved {
		at := e.updated
		for i := range e.added {
			if e.added[i].ID == *e.current {
				at = e.added[i].TimestampMs
			}
		}
		a.Append(rawjson.Make(
			rawjson.Pair{Key: "timestamp-ms", Value: rawjson.Int(at)},
			rawjson.Pair{Key: "snapshot-id", Value: rawjson.Int(int64(*e.current))}))
	}
	e.set("snapshot-log", a.Bytes())
}
