package iceberg

import (
	"context"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// View is a table at one moment. It is immutable.
type View struct {
	ID TableID
	// RecordPath is the directory that carries the catalog record.
	RecordPath filer.Path
	// Entry is that directory as read; a swap asserts all of its attributes.
	Entry    *filer.Entry
	Record   *Record
	Metadata *Metadata
	// MetadataLocation is the pointer as the record spells it: what is planned on
	// and compared.
	MetadataLocation string
	// MetadataPath is the metadata file. It is not read when the record keeps a
	// copy of it.
	MetadataPath filer.Path
	Locations    *Locator
}

// RecordPath is the directory of a table's catalog record.
func RecordPath(id TableID) (filer.Path, error) {
	p, err := filer.ParsePath(filer.BucketsRoot.String() + "/" + id.Bucket + "/" + id.Namespace + "/" + id.Name)
	if err == nil && (p.Name() != id.Name || p.Dir().Name() != id.Namespace) {
		err = fault.New(fault.Unsupported, fmt.Sprintf("table %q has a name with a slash", id))
	}
	return p, err
}

// Load reads a table as it is now. A record that must be left alone is refused
// as Record.Maintainable says; one that does not exist is filer.ErrNotFound.
// Metadata above MaxMetadataBytes is fault.TooLarge, and a missing metadata file
// is fault.Corrupt.
func Load(ctx context.Context, r filer.Reader, id TableID) (*View, error) {
	p, err := RecordPath(id)
	if err != nil {
		return nil, err
	}
	e, err := r.Stat(ctx, p)
	if err != nil {
		return nil, fault.In("load the table "+id.String(), err)
	}
	v, err := LoadEntry(ctx, r, id, e)
	return v, fault.In("load the table "+id.String(), err)
}

// LoadEntry reads the table whose record e carries.
func LoadEntry(ctx context.Context, r filer.Reader, id TableID, e *filer.Entry) (*View, error) {
	rec, err := ParseRecord(e)
	if err != nil {
		return nil, err
	}
	if err := rec.Maintainable(); err != nil {
		return nil, err
	}
	if rec.MetadataLocation == "" {
		return nil, fault.New(fault.Unsupported, "the catalog record "+rec.Path.String()+" names no metadata file")
	}
	v := &View{ID: id, RecordPath: e.Path, Entry: e, Record: rec, MetadataLocation: rec.MetadataLocation}
	bare, err := NewLocator(id, rec, nil)
	if err != nil {
		return nil, err
	}
	if v.MetadataPath, err = bare.Resolve(rec.MetadataLocation); err != nil {
		return nil, err
	}
	if err := bare.Readable(v.MetadataPath); err != nil {
		return nil, err
	}
	stored := []byte(rec.FullMetadata)
	if stored == nil {
		if stored, v.MetadataPath, err = readMetadata(ctx, r, bare, rec.MetadataLocation); err != nil {
			return nil, err
		}
	}
	if v.Metadata, err = ParseMetadata(stored); err != nil {
		return nil, fault.In("load "+rec.MetadataLocation, err)
	}
	if rec.TableUUID != uuid.Nil && v.Metadata.UUID != uuid.Nil && rec.TableUUID != v.Metadata.UUID {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the catalog record %s has the table uuid %s, but its metadata %s",
			rec.Path, rec.TableUUID, v.Metadata.UUID))
	}
	v.Locations, err = NewLocator(id, rec, v.Metadata)
	return v, err
}

func readMetadata(ctx context.Context, r filer.Reader, l *Locator, spelling string) ([]byte, filer.Path, error) {
	p, err := l.Find(ctx, r, spelling)
	if err != nil {
		if filer.NotFound(err) {
			err = fault.Wrap(fault.Corrupt, "the catalog names a metadata file that does not exist", err)
		}
		return nil, "", err
	}
	stored, _, err := filer.ReadAll(ctx, r, p.Path, MaxMetadataBytes)
	return stored, p.Path, err
}

// Find returns the entry a spelling means: the first of its Candidates that
// exists. Files in other buckets are refused as Readable says; a file that does
// not exist is filer.ErrNotFound.
func (l *Locator) Find(ctx context.Context, r filer.Reader, spelling string) (*filer.Entry, error) {
	candidates, err := l.Candidates(spelling)
	if err != nil {
		return nil, err
	}
	var missing error
	for _, p := range candidates {
		if err := l.Readable(p); err != nil {
			return nil, err
		}
		e, err := r.Stat(ctx, p)
		switch {
		case err == nil && !e.IsDir:
			return e, nil
		case err == nil:
			missing = fault.Wrap(fault.Stale, p.String()+" is a directory", filer.ErrNotFound)
		case !filer.NotFound(err):
			return nil, err
		case missing == nil:
			missing = err
		}
	}
	return nil, missing
}

// Open opens the file a spelling means, with the errors of Find. It is one call
// where the first of its Candidates exists.
func (l *Locator) Open(ctx context.Context, r filer.Reader, spelling string) (filer.Object, error) {
	candidates, err := l.Candidates(spelling)
	if err != nil {
		return nil, err
	}
	p := candidates[0]
	if err := l.Readable(p); err != nil {
		return nil, err
	}
	o, failed := r.Open(ctx, p)
	if failed == nil {
		return o, nil
	}
	e, err := l.Find(ctx, r, spelling)
	switch {
	case err != nil:
		return nil, err
	case e.Path == p:
		return nil, failed
	}
	return r.Open(ctx, e.Path)
}

// Snapshot returns the snapshot with the id.
func (v *View) Snapshot(id SnapshotID) (*Snapshot, bool) { return v.Metadata.Snapshot(id) }

// Branch returns the head of the named branch. A tag is no branch.
func (v *View) Branch(name string) (*Snapshot, bool) { return v.Metadata.Branch(name) }

// Ancestors yields the snapshot with the id, its parent, and so on, as far as the
// metadata knows them.
func (m *Metadata) Ancestors(id SnapshotID) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		// Parsing refuses metadata in which a snapshot is its own ancestor, so this
		// ends.
		for s, ok := m.Snapshot(id); ok && yield(s) && s.ParentID != nil; {
			s, ok = m.Snapshot(*s.ParentID)
		}
	}
}

// IsAncestor reports whether the snapshot ancestor is of, or one that of
// descends from by known snapshots.
func (m *Metadata) IsAncestor(ancestor, of SnapshotID) bool {
	for s := range m.Ancestors(of) {
		if s.ID == ancestor {
			return true
		}
	}
	return false
}

// Graph is how the snapshots of a table hang together.
type Graph struct {
	m        *Metadata
	children map[SnapshotID][]SnapshotID
	names    map[SnapshotID][]string
}

// Graph returns the snapshots with their children and refs.
func (m *Metadata) Graph() *Graph {
	g := &Graph{m: m, children: map[SnapshotID][]SnapshotID{}, names: map[SnapshotID][]string{}}
	for i := range m.Snapshots {
		if p := m.Snapshots[i].ParentID; p != nil {
			g.children[*p] = append(g.children[*p], m.Snapshots[i].ID)
		}
	}
	for _, name := range m.RefNames() {
		id := m.Refs[name].SnapshotID
		g.names[id] = append(g.names[id], name)
	}
	return g
}

// Children are the snapshots whose parent is id, in the order of the metadata.
func (g *Graph) Children(id SnapshotID) []SnapshotID { return g.children[id] }

// RefsTo are the names of the branches and tags that point at id, in order.
func (g *Graph) RefsTo(id SnapshotID) []string { return g.names[id] }

// Unreferenced are the snapshots that are neither named by a ref nor an ancestor
// of one that a branch or tag names, in the order of the metadata: staged ones
// and those a rollback left.
func (g *Graph) Unreferenced() []SnapshotID {
	reached := map[SnapshotID]bool{}
	for _, ref := range g.m.Refs {
		for s := range g.m.Ancestors(ref.SnapshotID) {
			if reached[s.ID] {
				break
			}
			reached[s.ID] = true
		}
	}
	var out []SnapshotID
	for i := range g.m.Snapshots {
		if id := g.m.Snapshots[i].ID; !reached[id] {
			out = append(out, id)
		}
	}
	return out
}
