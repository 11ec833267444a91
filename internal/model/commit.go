package model

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
)

// Options are what every commit can be told. The zero value commits to main.
type Options struct {
	Layout
	// Branch to commit to; "" is main.
	Branch string
	// Staged leaves the snapshot outside of every ref, as write-audit-publish
	// does, under this wap.id.
	Staged string
	// Summary are further entries of the snapshot's summary.
	Summary map[string]string
	// Style of the commit's manifests and list; nil is the table's.
	Style *Style
	// MergeManifests writes all live data entries of a spec into one manifest.
	MergeManifests bool
	// KeepDead carries manifests without a live entry on, as some writers do.
	KeepDead bool
}

// change is one commit in the making.
type change struct {
	Options
	operation string
	add       []*File
	// sequence gives added files an explicit data sequence number.
	sequence map[*File]iceberg.SeqNum
	remove   map[*File]bool
	// gone are the rows that end; rows of added data files come.
	gone []RowID
}

func (tb *Table) style(o Options) Style {
	if o.Style != nil {
		return *o.Style
	}
	return tb.cfg.Style
}

// commit writes the snapshot and moves the pointer.
func (tb *Table) commit(ctx context.Context, c change) (iceberg.SnapshotID, error) {
	branch := c.Branch
	if branch == "" {
		branch = "main"
	}
	parent := tb.Head(branch)
	if parent == nil && branch != "main" {
		return 0, badRef(branch)
	}
	tb.tick(ctx)
	snap := &Snapshot{
		ID: iceberg.SnapshotID(tb.rng.Int64N(1<<62) + 1), Operation: c.operation, TimeMs: tb.nowMs(),
		Schema: iceberg.SchemaID(tb.doc.num("current-schema-id")),
	}
	rows := rowSet{}
	if parent != nil {
		snap.Parent = parent.ID
		rows = newRowSet(parent.Rows)
	}
	for _, r := range c.gone {
		delete(rows, r)
	}
	for _, f := range c.add {
		for _, r := range f.Rows {
			rows[r] = struct{}{}
		}
	}
	snap.Rows = rows.sorted()
	if tb.Version() >= 2 {
		snap.Seq = iceberg.SeqNum(tb.doc.num("last-sequence-number") + 1)
	}
	if err := tb.writeManifests(ctx, c, snap, parent); err != nil {
		return 0, err
	}
	firstRowID := tb.doc.num("next-row-id")
	nextRowID := assignRowIDs(tb.Version(), snap, firstRowID)
	if err := tb.writeList(ctx, c, snap, firstRowID); err != nil {
		return 0, err
	}
	err := tb.swap(ctx, func(d document) error {
		s := document{
			"snapshot-id": int64(snap.ID), "timestamp-ms": snap.TimeMs, "schema-id": int64(snap.Schema),
			"summary": summary(c, snap),
		}
		if snap.Parent != 0 {
			s["parent-snapshot-id"] = int64(snap.Parent)
		}
		if snap.List != "" {
			s["manifest-list"] = snap.List
		} else {
			paths := []any{}
			for _, m := range snap.Manifests {
				paths = append(paths, m.Path)
			}
			s["manifests"] = paths
		}
		if d.version() >= 2 {
			s["sequence-number"] = int64(snap.Seq)
			d["last-sequence-number"] = int64(snap.Seq)
		}
		if d.version() >= 3 {
			s["first-row-id"], s["added-rows"] = firstRowID, nextRowID-firstRowID
			d["next-row-id"] = nextRowID
		}
		d.push("snapshots", map[string]any(s))
		if c.Staged == "" {
			d.advance(branch, snap.ID, snap.TimeMs)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	tb.snaps[snap.ID] = snap
	return snap.ID, nil
}

// advance points a branch at a snapshot; main is in the log as well.
func (d document) advance(branch string, id iceberg.SnapshotID, timeMs int64) {
	if d["refs"] != nil || d["table-uuid"] != nil {
		d.setRef(branch, id, "branch")
	}
	if branch == "main" {
		d["current-snapshot-id"] = int64(id)
		d.push("snapshot-log", map[string]any{"timestamp-ms": timeMs, "snapshot-id": int64(id)})
	}
}

// tick moves a virtual clock on.
func (tb *Table) tick(ctx context.Context) {
	d := tb.cfg.Tick
	if d == 0 {
		d = time.Second
	}
	if v, ok := tb.clk.(*clock.Virtual); ok && d > 0 {
		_ = v.Sleep(ctx, d)
	}
}

// nowMs is the time of a commit, never before the last one.
func (tb *Table) nowMs() int64 { return max(tb.clk.Now().UnixMilli(), tb.doc.num("last-updated-ms")) }

// writeManifests fills in the snapshot's manifests: new ones for what is
// added, rewritten ones where something is removed, the others as they are.
func (tb *Table) writeManifests(ctx context.Context, c change, snap, parent *Snapshot) error {
	for _, deletes := range []bool{false, true} {
		for _, spec := range tb.Specs() {
			m := &Manifest{Spec: iceberg.SpecID(spec.ID()), Deletes: deletes, Snapshot: snap.ID, Seq: snap.Seq}
			for _, f := range c.add {
				if f.Spec == m.Spec && (f.Content != Data) == deletes {
					m.Entries = append(m.Entries, tb.added(c, snap, f))
				}
			}
			if len(m.Entries) == 0 {
				continue
			}
			if err := tb.writeManifest(ctx, c, snap, m); err != nil {
				return err
			}
			snap.Manifests = append(snap.Manifests, m)
		}
	}
	if parent == nil {
		return nil
	}
	kept, err := tb.carryManifests(ctx, c, snap, parent)
	if err != nil {
		return err
	}
	snap.Manifests = append(snap.Manifests, kept...)
	return nil
}

func (tb *Table) added(c change, snap *Snapshot, f *File) *Entry {
	e := &Entry{Status: Added, Snapshot: snap.ID, Seq: snap.Seq, FileSeq: snap.Seq, File: f}
	if seq, ok := c.sequence[f]; ok && tb.Version() >= 2 {
		e.Seq, e.explicitSeq = seq, true
	}
	return e
}

func (tb *Table) carryManifests(ctx context.Context, c change, snap, parent *Snapshot) ([]*Manifest, error) {
	var out []*Manifest
	merged := map[iceberg.SpecID]*Manifest{}
	for _, old := range parent.Manifests {
		next, touched := carry(old, c.remove, snap)
		switch {
		case len(next.Entries) == 0 && !touched:
			if c.KeepDead {
				out = append(out, old)
			}
		case c.MergeManifests && !old.Deletes:
			if m := merged[old.Spec]; m != nil {
				m.Entries = append(m.Entries, next.Entries...)
			} else {
				merged[old.Spec] = next
				out = append(out, next)
			}
		case touched:
			out = append(out, next)
		default:
			out = append(out, old)
		}
	}
	for _, m := range out {
		if m.Path == "" {
			if err := tb.writeManifest(ctx, c, snap, m); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// carry is the manifest's live entries as a new manifest, with those in remove
// deleted. touched says that there were any.
func carry(old *Manifest, remove map[*File]bool, snap *Snapshot) (*Manifest, bool) {
	next := &Manifest{Spec: old.Spec, Deletes: old.Deletes, Snapshot: snap.ID, Seq: snap.Seq}
	touched := false
	for _, e := range old.Entries {
		if !e.Live() {
			continue
		}
		n := *e
		n.Status, n.explicitSeq, n.ownRowID = Existing, true, e.FirstRowID != nil
		if remove[e.File] {
			n.Status, n.Snapshot, touched = Deleted, snap.ID, true
		}
		next.Entries = append(next.Entries, &n)
	}
	return next, touched
}

func (tb *Table) metadataDir() filer.Path {
	if path := tb.Property("write.metadata.path"); path != "" {
		if root, err := rootOf(path); err == nil {
			return root
		}
	}
	return tb.Root.Join("metadata")
}

func (tb *Table) writeManifest(ctx context.Context, c change, snap *Snapshot, m *Manifest) error {
	spec, _ := tb.SpecByID(m.Spec)
	schema := tb.specSchema(spec)
	tb.number++
	m.At = tb.metadataDir().Join(fmt.Sprintf("%s-m%d.avro", tb.uuid(), tb.number))
	m.Path = tb.spell(c.Layout, m.At)
	m.MinSeq = snap.Seq
	for _, e := range m.Entries {
		if e.Live() {
			m.MinSeq = min(m.MinSeq, e.Seq)
		}
	}
	data, err := encodeManifest(manifestContext{
		version: tb.Version(), spec: spec, schema: schema, partition: spec.PartitionType(schema), snapshot: snap.ID, style: tb.style(c.Options),
	}, m)
	if err != nil {
		return err
	}
	_, err = tb.fl.Put(ctx, m.At, data, filer.CreateOptions{})
	return fault.In("write "+m.At.String(), err)
}

// assignRowIDs gives every data manifest of a v3 snapshot that has none its
// first row id, and the entries theirs. It returns the next free id.
func assignRowIDs(version int, snap *Snapshot, next int64) int64 {
	if version < 3 {
		return next
	}
	for i, m := range snap.Manifests {
		if m.Deletes || m.FirstRowID != nil {
			continue
		}
		first := next
		own := *m // earlier snapshots keep theirs without ids
		own.FirstRowID, own.numbered = &first, snap.ID
		own.Entries = make([]*Entry, len(m.Entries))
		at := first
		for j, e := range m.Entries {
			n := *e
			if n.Live() && n.FirstRowID == nil {
				id := at
				n.FirstRowID = &id
				at += n.File.Records
			}
			own.Entries[j] = &n
		}
		snap.Manifests[i] = &own
		counts := m.Counts()
		next += counts.Rows[Added] + counts.Rows[Existing]
	}
	return next
}

func (tb *Table) writeList(ctx context.Context, c change, snap *Snapshot, firstRowID int64) error {
	if tb.cfg.EmbeddedManifests && tb.Version() == 1 {
		return nil
	}
	at := tb.metadataDir().Join(fmt.Sprintf("snap-%d-1-%s.avro", snap.ID, tb.uuid()))
	snap.List = tb.spell(c.Layout, at)
	data, err := encodeList(listContext{
		version: tb.Version(), snapshot: snap.ID, parent: snap.Parent, seq: snap.Seq, firstRowID: firstRowID, path: snap.List, style: tb.style(c.Options),
	}, snap.Manifests)
	if err != nil {
		return err
	}
	_, err = tb.fl.Put(ctx, at, data, filer.CreateOptions{})
	return fault.In("write "+at.String(), err)
}

// swap edits the metadata, writes it and moves the pointer to it.
func (tb *Table) swap(ctx context.Context, edit func(document) error) error {
	entry, rec, err := tb.cat.head(ctx)
	if err != nil {
		return err
	}
	if rec.MetadataLocation != tb.docPath {
		return fault.New(fault.Stale, fmt.Sprintf("the record of %s points at %s, not at %s", tb.ID, rec.MetadataLocation, tb.docPath))
	}
	next, err := tb.doc.clone()
	if err != nil {
		return err
	}
	if err := edit(next); err != nil {
		return err
	}
	next.push("metadata-log", map[string]any{"timestamp-ms": tb.doc.num("last-updated-ms"), "metadata-file": tb.docPath})
	next.trimLog()
	next["last-updated-ms"] = tb.nowMs()
	data, err := next.encode()
	if err != nil {
		return err
	}
	at, err := tb.putMetadata(ctx, rec.MetadataVersion+1, data)
	if err != nil {
		return err
	}
	if err := tb.cat.swap(ctx, entry, rec, s3Path(at), data); err != nil {
		return err
	}
	tb.docPath = s3Path(at)
	return tb.setDocument(data)
}

func (d document) trimLog() {
	limit := 100
	if n, err := strconv.Atoi(d.object("properties").text("write.metadata.previous-versions-max")); err == nil && n > 0 {
		limit = n
	}
	log, _ := d["metadata-log"].([]any)
	if len(log) > limit {
		d["metadata-log"] = slices.Clone(log[len(log)-limit:])
	}
}

var numbered = regexp.MustCompile(`/(\d{5})-[^/]*\.metadata\.json$`)

// putMetadata writes the next metadata file under the name its writer would
// choose.
func (tb *Table) putMetadata(ctx context.Context, version int64, data []byte) (filer.Path, error) {
	names := []string{fmt.Sprintf("v%d.metadata.json", version), fmt.Sprintf("v%d-%s.metadata.json", version, tb.uuid())}
	if m := numbered.FindStringSubmatch(tb.docPath); m != nil && tb.cfg.Registered {
		n, _ := strconv.Atoi(m[1])
		names = []string{fmt.Sprintf("%05d-%s.metadata.json", n+1, tb.uuid())}
	}
	for _, name := range names {
		at := tb.metadataDir().Join(name)
		_, err := tb.fl.Put(ctx, at, data, filer.CreateOptions{Mime: "application/json"})
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, filer.ErrExists) {
			return "", fault.In("write "+at.String(), err)
		}
	}
	return "", fault.New(fault.Stale, "every name for the next metadata is taken")
}

// totals are the counters of a snapshot, recounted.
type totals map[string]int64

func (t totals) count(prefix string, f *File) {
	size := f.Size
	switch f.Content {
	case Data:
		t[prefix+"data-files"]++
		t[prefix+"records"] += f.Records
	case PositionDeletes:
		t[prefix+"delete-files"]++
		t[prefix+"position-delete-files"]++
		t[prefix+"position-deletes"] += f.Records
	case EqualityDeletes:
		t[prefix+"delete-files"]++
		t[prefix+"equality-delete-files"]++
		t[prefix+"equality-deletes"] += f.Records
	case Vector:
		size = f.Length
		t[prefix+"delete-files"]++
		t[prefix+"dvs"]++
		t[prefix+"position-deletes"] += f.Records
	}
	t[prefix+"files-size"] += size
}

// summary has the counters that Java writes.
func summary(c change, snap *Snapshot) map[string]any {
	out := map[string]any{"operation": c.operation}
	delta := totals{}
	partitions := map[string]bool{}
	for _, m := range snap.Manifests {
		if m.Snapshot != snap.ID {
			continue
		}
		for _, e := range m.Entries {
			if e.Snapshot == snap.ID && e.Status != Existing {
				partitions[fmt.Sprint(e.File.Spec, e.File.Partition)] = true
				delta.count(map[Status]string{Added: "added-", Deleted: "removed-"}[e.Status], e.File)
			}
		}
	}
	for k, n := range delta {
		switch k {
		case "removed-data-files":
			k = "deleted-data-files"
		case "removed-records":
			k = "deleted-records"
		}
		out[k] = strconv.FormatInt(n, 10)
	}
	total := totals{"total-data-files": 0, "total-delete-files": 0, "total-records": 0, "total-files-size": 0, "total-position-deletes": 0, "total-equality-deletes": 0}
	for _, m := range snap.Manifests {
		for _, e := range m.Entries {
			if e.Live() {
				total.count("total-", e.File)
			}
		}
	}
	for _, k := range []string{"total-data-files", "total-delete-files", "total-records", "total-files-size", "total-position-deletes", "total-equality-deletes"} {
		out[k] = strconv.FormatInt(total[k], 10)
	}
	out["changed-partition-count"] = strconv.Itoa(len(partitions))
	if c.Staged != "" {
		out["wap.id"] = c.Staged
	}
	for k, v := range c.Summary {
		out[k] = v
	}
	return out
}

// removal makes a set of files.
func removal(files ...*File) map[*File]bool {
	out := map[*File]bool{}
	for _, f := range files {
		out[f] = true
	}
	return out
}
