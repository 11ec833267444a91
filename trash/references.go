package trash

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// References knows what the tables of a cluster name: which directories a table
// owns alone, and which files other tables reference although they are not
// theirs. Nothing that anybody names may be removed, and what cannot be read is
// an error, so that nothing is.
//
// Lists and manifests never change, so each is read once in the life of a
// References; what is kept of them is a hash for each path outside the table's
// own directories. It is safe for concurrent use; calls go one at a time.
type References struct {
	fl filer.Reader

	mu     sync.Mutex
	tables map[filer.Path]*named
	// whole is everything one table names, for purging.
	whole *whole
	// asked is when Referenced last looked at all tables, and borrowed those that
	// name files of others.
	asked    time.Time
	borrowed map[filer.Path]iceberg.TableID
}

// named is what one table names outside of its own directories.
type named struct {
	metadata string
	roots    []iceberg.Root
	seen     map[string]bool
	foreign  map[[16]byte]bool
}

type whole struct {
	record   filer.Path
	metadata string
	paths    map[[16]byte]bool
}

// maxForeign bounds the paths outside of its own directories that one table may
// name: a table of so many borrowed files is refused rather than half known.
const maxForeign = 8 << 20

// NewReferences returns the references of the tables in fl.
func NewReferences(fl filer.Reader) *References {
	return &References{fl: fl, tables: map[filer.Path]*named{}}
}

func hashOf(p filer.Path) [16]byte { return xxh3.HashString128(string(p)).Bytes() }

// Allowed looks at every record of every bucket and returns a function that
// refuses paths which the table of v does not own alone: paths outside of its
// locations, and below locations that another record claims as well.
func (r *References) Allowed(ctx context.Context, v *iceberg.View) (func(filer.Path) error, error) {
	var sh iceberg.Sharing
	found := map[iceberg.TableID]iceberg.Found{}
	_, err := r.everyTable(ctx, func(f iceberg.Found) error {
		sh.Add(f)
		if f.Record != nil && f.Record.FullMetadata == nil {
			found[f.ID] = f
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range sh.Incomplete() {
		f, ok := found[id]
		if !ok {
			return nil, blind(id, fault.New(fault.Unsupported, "its record cannot be read"))
		}
		if err := f.Maintainable(); err != nil {
			return nil, blind(id, err)
		}
		other, err := iceberg.LoadEntry(ctx, r.fl, f.ID, f.Entry)
		if err != nil {
			return nil, blind(id, err)
		}
		for _, root := range other.Locations.Roots() {
			sh.AddPath(f.Path, root.Path)
		}
	}
	for _, root := range v.Locations.Roots() {
		sh.AddPath(v.RecordPath, root.Path)
	}
	shared := map[filer.Path]filer.Path{}
	for _, root := range v.Locations.Roots() {
		if other, ok := sh.Overlap(v.RecordPath, root.Path); ok {
			shared[root.Path] = other
		}
	}
	return func(p filer.Path) error {
		if !v.Locations.Owned(p) {
			return fault.New(fault.Unsupported, fmt.Sprintf("%s is not in a location of table %s", p, v.ID))
		}
		for _, root := range v.Locations.Roots() {
			if other, ok := shared[root.Path]; ok && p.Within(root.Path) {
				return fault.New(fault.Unsupported, fmt.Sprintf("%s is in %s, which %s claims too", p, root.Path, other))
			}
		}
		return nil
	}, nil
}

// mostWalks bounds how often all tables are listed until nothing new appears.
const mostWalks = 10

// everyTable calls see once for every record of every bucket, and returns their
// paths. A table that is renamed from behind the place a listing is at to before
// it is not in that listing, so the tables are listed until there is none that
// was not seen: at least twice.
func (r *References) everyTable(ctx context.Context, see func(iceberg.Found) error) (map[filer.Path]bool, error) {
	seen := map[filer.Path]bool{}
	for range mostWalks {
		fresh := false
		for f, err := range iceberg.Discover(ctx, r.fl, iceberg.Filter{}) {
			if err != nil {
				return nil, fault.In("list all tables", err)
			}
			if seen[f.Path] {
				continue
			}
			seen[f.Path], fresh = true, true
			if err := see(f); err != nil {
				return nil, err
			}
		}
		if !fresh {
			return seen, nil
		}
	}
	return nil, fault.New(fault.Transient, "list all tables: new names appear all the time")
}

func blind(id iceberg.TableID, err error) error {
	return fault.WithHint("repair or drop table "+id.String()+"; until then nothing is removed, because it may reference any file",
		fault.In("read what table "+id.String()+" references", err))
}

// Foreign tells which of the paths another table than that of v references, and
// which one. It looks at all tables of all buckets anew; of those that changed
// only what is new is read.
func (r *References) Foreign(ctx context.Context, v *iceberg.View, paths []filer.Path) (map[filer.Path]iceberg.TableID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids, err := r.refresh(ctx, v.RecordPath)
	if err != nil {
		return nil, err
	}
	out := map[filer.Path]iceberg.TableID{}
	for _, p := range paths {
		k := hashOf(p)
		for record, id := range ids {
			if r.tables[record].foreign[k] {
				out[p] = id
			}
		}
	}
	return out, nil
}

// refresh brings the tables up to date, but for the one whose record is except,
// and returns those that name anything outside of their own directories.
func (r *References) refresh(ctx context.Context, except filer.Path) (map[filer.Path]iceberg.TableID, error) {
	ids := map[filer.Path]iceberg.TableID{}
	exists, err := r.everyTable(ctx, func(f iceberg.Found) error {
		if f.Path == except || nothingNamed(f) {
			return nil
		}
		t, err := r.table(ctx, f)
		if err != nil {
			return blind(f.ID, err)
		}
		if len(t.foreign) > 0 {
			ids[f.Path] = f.ID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for record := range r.tables {
		if !exists[record] {
			delete(r.tables, record)
		}
	}
	return ids, nil
}

// nothingNamed reports whether a record can name no file: views, tables without
// metadata, other formats, which keep to their own directory, and tables that
// are being dropped.
func nothingNamed(f iceberg.Found) bool {
	switch f.State {
	case iceberg.StateView, iceberg.StateEmpty, iceberg.StateForeign, iceberg.StateDeleting:
		return true
	}
	return f.Record != nil && f.Record.MetadataLocation == ""
}

func (r *References) table(ctx context.Context, f iceberg.Found) (*named, error) {
	if err := f.Maintainable(); err != nil {
		return nil, err
	}
	t := r.tables[f.Path]
	if t != nil && t.metadata == f.Record.MetadataLocation {
		return t, nil
	}
	v, err := iceberg.LoadEntry(ctx, r.fl, f.ID, f.Entry)
	if err != nil {
		return nil, err
	}
	if t == nil || !slices.Equal(t.roots, v.Locations.Roots()) {
		t = &named{roots: slices.Clone(v.Locations.Roots()), seen: map[string]bool{}, foreign: map[[16]byte]bool{}}
	}
	err = visit(ctx, r.fl, v, t.seen, func(p filer.Path) error {
		for _, root := range t.roots {
			if p.Within(root.Path) {
				return nil
			}
		}
		if len(t.foreign) >= maxForeign {
			return fault.New(fault.TooLarge, fmt.Sprintf("it names more than %d files outside of its own directories", maxForeign))
		}
		t.foreign[hashOf(p)] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.metadata = f.Record.MetadataLocation
	r.tables[f.Path] = t
	return t, nil
}

// visit calls see with every path that the metadata of v reaches and that is not
// below a list or manifest in seen. Of entries those count that are live in a
// retained snapshot: what a rewrite replaced is free once those are gone (P6).
func visit(ctx context.Context, r filer.Reader, v *iceberg.View, seen map[string]bool, see func(filer.Path) error) error {
	spelled := func(s string) error {
		paths, err := v.Locations.Candidates(s)
		for _, p := range paths {
			if err == nil {
				err = see(p)
			}
		}
		return err
	}
	m := v.Metadata
	names := []string{v.MetadataLocation}
	for _, e := range m.MetadataLog {
		names = append(names, e.MetadataFile)
	}
	for _, s := range slices.Concat(m.Statistics, m.PartitionStatistics) {
		names = append(names, s.Path)
	}
	for _, s := range names {
		if err := spelled(s); err != nil {
			return err
		}
	}
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		if s.ManifestList != "" && seen[s.ManifestList] {
			continue
		}
		if s.ManifestList != "" {
			if err := spelled(s.ManifestList); err != nil {
				return err
			}
		}
		for mf, err := range manifests.OfSnapshot(ctx, r, v.Locations, s) {
			if err != nil {
				return err
			}
			if seen[mf.Path] {
				continue
			}
			if err := spelled(mf.Path); err != nil {
				return err
			}
			for e, err := range manifests.EntriesOf(ctx, r, v.Locations, mf, manifests.ReadOptions{Projection: manifests.ProjectPath}) {
				if err == nil && e.Live() {
					err = spelled(e.Path)
				}
				if err != nil {
					return err
				}
			}
			seen[mf.Path] = true
		}
		if s.ManifestList != "" {
			seen[s.ManifestList] = true
		}
	}
	return nil
}

// trustFor is how long Referenced relies on one look at all tables. What is asked
// about has been in the trash for days; nothing can be read at its old path.
const trustFor = time.Minute

// Referenced implements Checker: whether any retained snapshot of any table, or
// its metadata, names the path. What cannot be read is an error, and then the
// file is kept.
func (r *References) Referenced(ctx context.Context, origin filer.Path) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, err := r.fl.Clock(ctx)
	if err != nil {
		return false, fault.In("read the filer's clock", err)
	}
	if r.asked.IsZero() || now.Sub(r.asked) > trustFor || now.Before(r.asked) {
		r.asked = time.Time{}
		if r.borrowed, err = r.refresh(ctx, ""); err != nil {
			return false, err
		}
		r.asked = now
	}
	k := hashOf(origin)
	for record := range r.borrowed {
		if r.tables[record] == nil {
			continue
		}
		if r.tables[record].foreign[k] {
			return true, nil
		}
	}
	for record, t := range r.tables {
		if !slices.ContainsFunc(t.roots, func(root iceberg.Root) bool { return origin.Within(root.Path) }) {
			continue
		}
		paths, err := r.all(ctx, record)
		if err != nil {
			return false, err
		}
		if paths[k] {
			return true, nil
		}
	}
	return false, nil
}

// all is everything the table with the record names. Only the last table asked
// for is kept.
func (r *References) all(ctx context.Context, record filer.Path) (map[[16]byte]bool, error) {
	e, err := r.fl.Stat(ctx, record)
	if err != nil {
		return nil, fault.In("look at record "+record.String(), err)
	}
	id := iceberg.TableID{Bucket: record.Bucket(), Namespace: record.Dir().Name(), Name: record.Name()}
	v, err := iceberg.LoadEntry(ctx, r.fl, id, e)
	if err != nil {
		return nil, blind(id, err)
	}
	if r.whole != nil && r.whole.record == record && r.whole.metadata == v.MetadataLocation {
		return r.whole.paths, nil
	}
	w := &whole{record: record, metadata: v.MetadataLocation, paths: map[[16]byte]bool{}}
	err = visit(ctx, r.fl, v, map[string]bool{}, func(p filer.Path) error {
		w.paths[hashOf(p)] = true
		return nil
	})
	if err != nil {
		return nil, blind(id, err)
	}
	r.whole = w
	return w.paths, nil
}
