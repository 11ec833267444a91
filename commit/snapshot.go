package commit

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// Snapshot is a snapshot that is being added to a branch of a head. It is begun
// before its manifests are written, because they carry its id.
type Snapshot struct {
	ID          iceberg.SnapshotID
	Seq         iceberg.SeqNum
	TimestampMs int64
	// ManifestList is set by Finish.
	ManifestList string

	head   *iceberg.View
	branch string
	parent *iceberg.Snapshot
	st     *Stage
}

// MaxManifestListBytes bounds the manifest lists this program writes: they are
// made in memory.
const MaxManifestListBytes = 128 << 20

// Begin starts a snapshot on the branch of a head. Its id is random, positive
// and unused (F121); the attempts of one run share it, as only one of them can
// be in the table. Its sequence number is the table's last plus one whatever
// branch it is for (P3), its time the present, but neither before the last change
// of the table nor before the parent (P17).
func (s *Stage) Begin(head *iceberg.View, branch string) (*Snapshot, error) {
	m := head.Metadata
	sn := &Snapshot{head: head, branch: branch, st: s}
	sn.TimestampMs = max(s.clk.Now().UnixMilli(), m.LastUpdatedMs)
	if p, ok := m.Branch(branch); ok {
		sn.parent = p
		sn.TimestampMs = max(sn.TimestampMs, p.TimestampMs)
	}
	if m.FormatVersion > 1 {
		sn.Seq = m.LastSequenceNumber + 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sn.ID = s.snapshot
	for range 100 {
		if _, taken := m.Snapshot(sn.ID); !taken && sn.ID > 0 {
			s.snapshot = sn.ID
			return sn, nil
		}
		sn.ID = iceberg.SnapshotID(s.draw() >> 1)
	}
	return nil, fault.New(fault.Halt, "draw a snapshot id: 100 numbers were taken, the source of random numbers is broken")
}

// Parent is the branch's head, or nil.
func (sn *Snapshot) Parent() *iceberg.Snapshot { return sn.parent }

// Manifests yields the manifests of the parent, for building the new list.
func (sn *Snapshot) Manifests(ctx context.Context) ([]*manifests.ManifestFile, error) {
	if sn.parent == nil {
		return nil, nil
	}
	var out []*manifests.ManifestFile
	for m, err := range manifests.OfSnapshot(ctx, sn.st.fl, sn.head.Locations, sn.parent) {
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// Finish writes the manifest list and returns the metadata that adds the
// snapshot and moves the branch to it. Manifests of old v1 lists without counts
// are read and counted before they enter a v2 or v3 list (F077).
func (sn *Snapshot) Finish(ctx context.Context, operation string, list []*manifests.ManifestFile, sum Summary) (Next, error) {
	m := sn.head.Metadata
	if err := sn.count(ctx, list); err != nil {
		return Next{}, err
	}
	o := manifests.ListOptions{Version: m.FormatVersion, SnapshotID: sn.ID, Seq: sn.Seq, Codec: avro.Deflate}
	ns := iceberg.NewSnapshot{
		ID: sn.ID, SequenceNumber: sn.Seq, TimestampMs: sn.TimestampMs, Operation: operation, SchemaID: &m.CurrentSchemaID,
	}
	if sn.parent != nil {
		o.Parent = manifests.Some(sn.parent.ID)
		ns.ParentID = &sn.parent.ID
	}
	if m.NextRowID != nil {
		o.FirstRowID = *m.NextRowID
	}
	var buf bytes.Buffer
	written, err := manifests.WriteList(&buf, o, list)
	if err != nil {
		return Next{}, fault.In("write the manifest list", err)
	}
	if buf.Len() > MaxManifestListBytes {
		return Next{}, fault.New(fault.TooLarge, fmt.Sprintf("the manifest list has %d bytes, more than %d", buf.Len(), MaxManifestListBytes))
	}
	name := sn.st.Name(sn.st.loc.Metadata(), fmt.Sprintf("snap-%d-", sn.ID), ".avro")
	if err := sn.st.Record(ctx, name); err != nil {
		return Next{}, err
	}
	file, err := sn.st.Put(ctx, name, buf.Bytes())
	if err != nil {
		return Next{}, err
	}
	sn.use(name, list)
	sn.ManifestList = file.Location
	ns.ManifestList = file.Location
	if m.NextRowID != nil {
		ns.FirstRowID, ns.AddedRows = m.NextRowID, &written.AddedRows
	}
	ns.Summary = sum.text(sn.parent)
	edit := m.Edit()
	edit.AddSnapshot(ns)
	edit.SetRef(sn.branch, sn.ID)
	return Next{Edit: edit, Snapshot: sn}, nil
}

// use tells the stage which of its files the list refers to.
func (sn *Snapshot) use(name filer.Path, list []*manifests.ManifestFile) {
	sn.st.Use(name)
	for _, m := range list {
		if p, err := sn.head.Locations.Resolve(m.Path); err == nil && sn.st.holds(p) {
			sn.st.Use(p)
		}
	}
}

func (sn *Snapshot) count(ctx context.Context, list []*manifests.ManifestFile) error {
	for i, m := range list {
		if !m.NeedsCount(sn.head.Metadata.FormatVersion) {
			continue
		}
		counted, err := manifests.RecountOf(ctx, sn.st.fl, sn.head.Locations, m)
		if err != nil {
			return fault.In("count the entries of an old manifest", err)
		}
		list[i] = counted
	}
	return nil
}

// Summary are the counters of a snapshot that changes files. Zero counters are
// left out, as Iceberg's own writers do.
type Summary struct {
	AddedDataFiles, RemovedDataFiles         int64
	AddedDeleteFiles, RemovedDeleteFiles     int64
	AddedRecords, RemovedRecords             int64
	AddedBytes, RemovedBytes                 int64
	AddedPositionFiles, RemovedPositionFiles int64
	AddedEqualityFiles, RemovedEqualityFiles int64
	AddedVectors, RemovedVectors             int64
	AddedPositions, RemovedPositions         int64
	AddedEqualities, RemovedEqualities       int64
	ChangedPartitions                        int64
	// Extra are the operation's own entries. Nothing of the parent's summary is
	// taken over but the totals (F136).
	Extra map[string]string
}

// text renders the summary. A total is carried on only if the parent states it
// as a whole number that is not negative and does not become so (F128): a total
// that is made up is worse than none.
func (s Summary) text(parent *iceberg.Snapshot) map[string]string {
	out := map[string]string{}
	for k, n := range map[string]int64{
		"added-data-files": s.AddedDataFiles, "deleted-data-files": s.RemovedDataFiles,
		"added-delete-files": s.AddedDeleteFiles, "removed-delete-files": s.RemovedDeleteFiles,
		"added-records": s.AddedRecords, "deleted-records": s.RemovedRecords,
		"added-files-size": s.AddedBytes, "removed-files-size": s.RemovedBytes,
		"added-position-delete-files": s.AddedPositionFiles, "removed-position-delete-files": s.RemovedPositionFiles,
		"added-equality-delete-files": s.AddedEqualityFiles, "removed-equality-delete-files": s.RemovedEqualityFiles,
		"added-dvs": s.AddedVectors, "removed-dvs": s.RemovedVectors,
		"added-position-deletes": s.AddedPositions, "removed-position-deletes": s.RemovedPositions,
		"added-equality-deletes": s.AddedEqualities, "removed-equality-deletes": s.RemovedEqualities,
		"changed-partition-count": s.ChangedPartitions,
	} {
		if n != 0 {
			out[k] = strconv.FormatInt(n, 10)
		}
	}
	old := map[string]string{}
	if parent != nil {
		old = parent.Summary()
	}
	for k, d := range map[string]int64{
		"total-data-files":       s.AddedDataFiles - s.RemovedDataFiles,
		"total-delete-files":     s.AddedDeleteFiles - s.RemovedDeleteFiles,
		"total-records":          s.AddedRecords - s.RemovedRecords,
		"total-files-size":       s.AddedBytes - s.RemovedBytes,
		"total-position-deletes": s.AddedPositions - s.RemovedPositions,
		"total-equality-deletes": s.AddedEqualities - s.RemovedEqualities,
	} {
		n, err := strconv.ParseInt(old[k], 10, 64)
		if sum := n + d; err == nil && n >= 0 && sum >= 0 {
			out[k] = strconv.FormatInt(sum, 10)
		}
	}
	maps.Copy(out, s.Extra)
	return out
}
