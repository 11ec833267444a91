package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// Refresh takes in what others have committed since. Snapshots that replace
// must hold the rows of their parent; of other snapshots the rows are those
// that the files say, matched by value with the rows that are known. A file
// with a row that no snapshot can have is fault.Corrupt.
func (tb *Table) Refresh(ctx context.Context) error {
	_, rec, err := tb.cat.head(ctx)
	if err != nil {
		return err
	}
	if rec.MetadataLocation == tb.docPath {
		return nil
	}
	at, err := rootOf(rec.MetadataLocation)
	if err != nil {
		return err
	}
	data, _, err := filer.ReadAll(ctx, tb.fl, at, maxMetadata)
	if err != nil {
		return fault.In("read "+rec.MetadataLocation, err)
	}
	if err := tb.setDocument(data); err != nil {
		return err
	}
	tb.docPath = rec.MetadataLocation
	meta, err := icetable.ParseMetadataBytes(data)
	if err != nil {
		return fault.Wrap(fault.Corrupt, "parse "+rec.MetadataLocation, err)
	}
	for _, s := range meta.Snapshots() {
		if tb.snaps[iceberg.SnapshotID(s.SnapshotID)] != nil {
			continue
		}
		if err := tb.adopt(ctx, s); err != nil {
			return fault.In(fmt.Sprintf("adopt snapshot %d", s.SnapshotID), err)
		}
	}
	return nil
}

// Attach opens a table that exists, made by whomever, through its record.
func Attach(ctx context.Context, fl filer.Filer, cfg Config) (*Table, error) {
	tb := &Table{
		ID: cfg.ID, cfg: cfg, fl: fl, clk: cfg.Clock,
		rows: map[RowID]Row{}, snaps: map[iceberg.SnapshotID]*Snapshot{}, files: map[identity]*File{},
	}
	tb.seed(newSource(cfg.Seed, cfg.ID))
	tb.cat = catalog{fl: fl, id: cfg.ID, clk: cfg.Clock, rng: tb.rng, locationOnly: cfg.LocationOnly}
	_, rec, err := tb.cat.head(ctx)
	if err != nil {
		return nil, err
	}
	if rec.MetadataLocation == "" {
		return nil, fault.New(fault.Unsupported, "table "+cfg.ID.String()+" has no metadata")
	}
	dir, err := rootOf(rec.MetadataLocation)
	if err != nil {
		return nil, err
	}
	tb.Root = dir.Dir().Dir()
	if err := tb.Refresh(ctx); err != nil {
		return nil, err
	}
	if root, err := rootOf(tb.Location()); err == nil {
		tb.Root = root
	}
	return tb, nil
}

func (tb *Table) adopt(ctx context.Context, s icetable.Snapshot) error {
	snap := &Snapshot{
		ID: iceberg.SnapshotID(s.SnapshotID), Seq: iceberg.SeqNum(s.SequenceNumber), TimeMs: s.TimestampMs, List: s.ManifestList, Foreign: true,
		Schema: iceberg.SchemaID(tb.doc.num("current-schema-id")),
	}
	if s.ParentSnapshotID != nil {
		snap.Parent = iceberg.SnapshotID(*s.ParentSnapshotID)
	}
	if s.SchemaID != nil {
		snap.Schema = iceberg.SchemaID(*s.SchemaID)
	}
	if s.Summary != nil {
		snap.Operation = string(s.Summary.Operation)
	}
	files := readIO{ctx, tb.fl, tb.Root}
	lists, err := s.Manifests(files)
	if err != nil {
		return fault.Wrap(fault.Corrupt, "read manifest list "+s.ManifestList, err)
	}
	known := tb.knownManifests()
	fresh := []*File{}
	for _, mf := range lists {
		if m := known[manifestKey(mf)]; m != nil {
			snap.Manifests = append(snap.Manifests, m)
			continue
		}
		m, added, err := tb.adoptManifest(ctx, files, mf)
		if err != nil {
			return fault.In("read manifest "+mf.FilePath(), err)
		}
		snap.Manifests = append(snap.Manifests, m)
		fresh = append(fresh, added...)
	}
	for _, f := range fresh {
		f.schema = tb.SchemaByID(snap.Schema)
	}
	if err := tb.identify(snap, fresh); err != nil {
		return err
	}
	tb.snaps[snap.ID] = snap
	return nil
}

func manifestKey(m icego.ManifestFile) string {
	first := int64(-1)
	if id := m.FirstRowID(); id != nil {
		first = *id
	}
	return fmt.Sprint(m.FilePath(), " ", first)
}

func (tb *Table) knownManifests() map[string]*Manifest {
	out := map[string]*Manifest{}
	for _, s := range tb.snaps {
		for _, m := range s.Manifests {
			first := int64(-1)
			if m.FirstRowID != nil {
				first = *m.FirstRowID
			}
			out[fmt.Sprint(m.Path, " ", first)] = m
		}
	}
	return out
}

// adoptManifest reads a manifest and the files in it that are not known yet.
func (tb *Table) adoptManifest(ctx context.Context, files readIO, mf icego.ManifestFile) (*Manifest, []*File, error) {
	m := &Manifest{
		Path: mf.FilePath(), Length: mf.Length(), Spec: iceberg.SpecID(mf.PartitionSpecID()), Deletes: mf.ManifestContent() == icego.ManifestContentDeletes,
		Seq: iceberg.SeqNum(mf.SequenceNum()), MinSeq: iceberg.SeqNum(mf.MinSequenceNum()), Snapshot: iceberg.SnapshotID(mf.SnapshotID()),
		Version: mf.Version(), FirstRowID: mf.FirstRowID(), foreign: true,
	}
	if c := candidates(tb.Root, m.Path); len(c) > 0 {
		m.At = c[0]
	}
	var fresh []*File
	read, style, err := entries(files, mf)
	if err != nil {
		return nil, nil, err
	}
	m.Style = style
	for e, err := range read {
		if err != nil {
			return nil, nil, fault.Wrap(fault.Corrupt, "read entry", err)
		}
		f, isNew, err := tb.adoptFile(ctx, files, m, e)
		if err != nil {
			return nil, nil, fault.In("file "+e.DataFile().FilePath(), err)
		}
		if isNew {
			fresh = append(fresh, f)
		}
		entry := &Entry{
			Status: Status(e.Status()), Snapshot: iceberg.SnapshotID(e.SnapshotID()), Seq: iceberg.SeqNum(e.SequenceNum()), File: f,
			FirstRowID: e.DataFile().FirstRowID(), explicitSeq: true, ownRowID: true,
		}
		if spec, ok := tb.SpecByID(m.Spec); ok {
			read := Row{}
			for id, v := range e.DataFile().Partition() {
				read[iceberg.FieldID(id)] = normalise(v)
			}
			t := spec.PartitionType(tb.specSchema(spec))
			for i := range t.FieldList { // the types as they are, not as promoted
				t.FieldList[i].Type = icego.UnknownType{}
			}
			entry.kinds = kindsOf(t, read)
		}
		if n := e.FileSequenceNum(); n != nil {
			entry.FileSeq = iceberg.SeqNum(*n)
		}
		m.Entries = append(m.Entries, entry)
	}
	return m, fresh, nil
}

func (tb *Table) adoptFile(ctx context.Context, files readIO, m *Manifest, e icego.ManifestEntry) (*File, bool, error) {
	df := e.DataFile()
	f := &File{
		Path: df.FilePath(), Format: string(df.FileFormat()), Spec: m.Spec, Partition: Row{}, Records: df.Count(), Size: df.FileSizeBytes(),
		SplitOffsets: df.SplitOffsets(), KeyMetadata: df.KeyMetadata(),
		Metrics: Metrics{df.ColumnSizes(), df.ValueCounts(), df.NullValueCounts(), df.NaNValueCounts(), df.LowerBoundValues(), df.UpperBoundValues()},
	}
	if n := df.ContentOffset(); n != nil {
		f.Offset = *n
	}
	if n := df.ContentSizeInBytes(); n != nil {
		f.Length = *n
	}
	if old := tb.files[f.identity()]; old != nil {
		return old, false, nil
	}
	if n := df.SortOrderID(); n != nil {
		id := iceberg.SortOrderID(*n)
		f.SortOrder = &id
	}
	if p := df.ReferencedDataFile(); p != nil {
		f.Referenced = *p
	}
	for id, v := range df.Partition() {
		f.Partition[iceberg.FieldID(id)] = normalise(v)
	}
	for _, id := range df.EqualityFieldIDs() {
		f.KeyFields = append(f.KeyFields, iceberg.FieldID(id))
	}
	switch {
	case icetable.IsDeletionVector(df):
		f.Content = Vector
	case df.ContentType() == icego.EntryContentPosDeletes:
		f.Content = PositionDeletes
	case df.ContentType() == icego.EntryContentEqDeletes:
		f.Content = EqualityDeletes
	}
	if e.Status() == icego.EntryStatusDELETED { // its bytes may be gone, and do not matter
		return f, false, nil
	}
	if err := tb.load(ctx, files, f, df); err != nil {
		return nil, false, err
	}
	tb.files[f.identity()] = f
	return f, f.Content == Data, nil
}

// load reads what is in the file.
func (tb *Table) load(ctx context.Context, files readIO, f *File, df icego.DataFile) error {
	if f.Content == Vector {
		bitmap, err := dv.ReadDV(files, df)
		if err != nil {
			return fault.Wrap(fault.Corrupt, "read vector", err)
		}
		var list []int64
		for pos := range bitmap.Positions() {
			list = append(list, int64(pos))
		}
		f.Positions = map[string][]int64{f.Referenced: list}
	}
	o, err := files.Open(f.Path)
	if err != nil {
		return fault.Wrap(fault.Corrupt, "open", err)
	}
	defer o.Close()
	entry := o.(*openFile).Entry()
	f.At = entry.Path
	if f.Content == Vector {
		return nil
	}
	if !strings.EqualFold(f.Format, "PARQUET") {
		return fault.New(fault.Unsupported, "format "+f.Format+" is not read")
	}
	data := make([]byte, entry.Size)
	if _, err := o.ReadAt(data, 0); err != nil && entry.Size > 0 {
		return fault.Wrap(fault.Corrupt, "read", err)
	}
	d, err := decodeParquet(ctx, data, tb.names(), tb.Schemas())
	if err != nil {
		return err
	}
	switch f.Content {
	case Data:
		f.Written, f.RowIDs, f.Updated = d.rows, d.rowIDs, d.updated
	case EqualityDeletes:
		f.Keys = d.rows
	case PositionDeletes:
		f.Positions = map[string][]int64{}
		for _, row := range d.rows {
			path, _ := row[fieldFilePath].(string)
			pos, _ := row[fieldPos].(int64)
			f.Positions[path] = append(f.Positions[path], pos)
		}
	}
	return nil
}

// names are the ids that a name mapping gives to top-level columns.
func (tb *Table) names() map[string]iceberg.FieldID {
	out := map[string]iceberg.FieldID{}
	text := tb.Property("schema.name-mapping.default")
	if text == "" {
		return out
	}
	var mapping []struct {
		ID    int      `json:"field-id"`
		Names []string `json:"names"`
	}
	if decodeNumbers([]byte(text), &mapping) != nil {
		return out
	}
	for _, m := range mapping {
		for _, n := range m.Names {
			out[n] = iceberg.FieldID(m.ID)
		}
	}
	return out
}

// identify finds out which rows the new data files hold, and which rows the
// snapshot has.
func (tb *Table) identify(snap *Snapshot, fresh []*File) error {
	parent := tb.snaps[snap.Parent]
	schema := tb.SchemaByID(snap.Schema)
	known := map[string][]RowID{}
	if parent != nil {
		for _, r := range parent.Rows {
			key := CanonicalRow(schema, tb.rows[r])
			known[key] = append(known[key], r)
		}
	}
	for _, f := range fresh {
		for _, row := range f.Written {
			e := &Entry{File: f}
			key := CanonicalRow(schema, tb.physicalRowOf(e, row))
			if list := known[key]; len(list) > 0 {
				f.Rows = append(f.Rows, list[0])
				known[key] = list[1:]
				continue
			}
			if snap.Operation == "replace" && parent != nil && !tb.deadRow(parent, schema, key) {
				return fault.New(fault.Corrupt, fmt.Sprintf("file %s of a rewrite has the row %s, which its parent %d has not, or not as often", f.Path, key, snap.Parent))
			}
			id := RowID(len(tb.rows))
			tb.rows[id] = row
			f.Rows = append(f.Rows, id)
		}
	}
	if snap.Operation == "replace" && parent != nil {
		snap.Rows = slices.Clone(parent.Rows)
		return nil
	}
	rows := rowSet{}
	for e, alive := range tb.survivors(snap) {
		for _, pos := range alive {
			rows[e.File.Rows[pos]] = struct{}{}
		}
	}
	snap.Rows = rows.sorted()
	return nil
}

// deadRow says whether a row of that text is in a file of the snapshot but
// deleted. A rewrite may carry such a row on together with its deletes.
func (tb *Table) deadRow(s *Snapshot, schema *icego.Schema, key string) bool {
	for _, e := range s.DataFiles() {
		for _, row := range e.File.Written {
			if CanonicalRow(schema, tb.physicalRowOf(e, row)) == key {
				return true
			}
		}
	}
	return false
}
