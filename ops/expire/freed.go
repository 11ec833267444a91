package expire

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// freed works out which files nothing retained reaches. It outlives the plan:
// what was read then is not read again, and what the head holds beyond that is
// added. Manifests and lists are told apart by their canonical paths, because
// two snapshots may spell one file in two ways (F104).
type freed struct {
	r   filer.Reader
	loc *iceberg.Locator
	// changelog keeps what a retained snapshot deleted.
	changelog bool

	// stays are the retained snapshots that were looked at; the value tells
	// those apart whose DELETED entries are changes.
	stays map[iceberg.SnapshotID]bool
	// needed are all paths that the lists of retained snapshots and their
	// manifests may lie at.
	needed map[key]bool
	// kept are the manifests of retained snapshots, and uncrossed those whose
	// live files have not been taken out of the candidates.
	kept      map[key]bool
	uncrossed []*manifests.ManifestFile
	specs     map[iceberg.SpecID]bool
	// unknownSpecs: a v1 snapshot names manifests without their specs.
	unknownSpecs bool
	// deletes: a retained snapshot has delete files.
	deletes bool

	lists  map[iceberg.SnapshotID]*list // of expiring snapshots
	gone   []manifest                   // that only expiring snapshots reach
	goneAt map[key]int
	files  candidates

	// blocked says why no file may be removed, if so.
	blocked error
	reasons []ops.Reason
	read    int64
}

// list is the manifest list of an expiring snapshot.
type list struct {
	spelling string
	found    place
	// own are indices of manifests that no retained snapshot reaches.
	own []int32
	// err is why it could not be read to its end.
	err error
}

// manifest is one that only expiring snapshots reach. What it has live lies
// between two places of the spill file.
type manifest struct {
	file     *manifests.ManifestFile
	found    place
	from, to int64
	err      error
}

// place is where a file was found; the path is empty if it was not.
type place struct {
	path filer.Path
	size int64
}

func newFreed(r filer.Reader, loc *iceberg.Locator, d decision, spill string) *freed {
	return &freed{
		r: r, loc: loc, changelog: d.KeepChangelog, stays: map[iceberg.SnapshotID]bool{}, needed: map[key]bool{}, kept: map[key]bool{},
		specs: map[iceberg.SpecID]bool{}, lists: map[iceberg.SnapshotID]*list{}, goneAt: map[key]int{}, files: candidates{dir: spill},
	}
}

// errEncrypted marks what makes the whole table off limits (F099).
var errEncrypted = errors.New("it is encrypted")

// unreadable reports whether an error says that a file cannot be read, now or
// later. Any other one fails the operation: it may go away by itself, or
// concerns the program and not the file.
func unreadable(err error) bool {
	if errors.Is(err, errEncrypted) {
		return false
	}
	switch fault.Of(err) {
	case fault.Corrupt, fault.Unsupported, fault.TooLarge:
		return true
	case fault.Stale:
		return filer.NotFound(err) // the entry is there and its data is not
	}
	return false
}

// work surveys the snapshots of m and collects what the expiring ones free. Each
// list and each manifest is read at most once.
func (f *freed) work(ctx context.Context, m *iceberg.Metadata, expiring []iceberg.SnapshotID) error {
	goes := setOf(expiring)
	for i := range m.Snapshots {
		if s := &m.Snapshots[i]; !goes[s.ID] {
			if err := f.retain(ctx, s); err != nil {
				return err
			}
		}
	}
	if f.blocked != nil {
		return nil
	}
	seen := map[key]*list{}
	for i := range m.Snapshots {
		if s := &m.Snapshots[i]; goes[s.ID] {
			if err := f.release(ctx, s, seen); err != nil {
				return err
			}
		}
	}
	return f.collect(ctx)
}

func setOf[T comparable](all []T) map[T]bool {
	out := make(map[T]bool, len(all))
	for _, x := range all {
		out[x] = true
	}
	return out
}

func (f *freed) block(err error) {
	if f.blocked == nil {
		f.blocked = err
	}
}

// need marks whatever a spelling may mean.
func (f *freed) need(paths []filer.Path) {
	for _, p := range paths {
		f.needed[keyOf(p)] = true
	}
}

// retain takes a snapshot for retained: its list, its manifests, and, once
// crossOut was called, its files are not freed. What cannot be read blocks every
// removal. One that was to expire and stays after all is not read again.
func (f *freed) retain(ctx context.Context, s *iceberg.Snapshot) error {
	if _, known := f.stays[s.ID]; known {
		return nil
	}
	f.stays[s.ID] = s.Operation != "replace"
	err := f.give(s.ID)
	if f.lists[s.ID] == nil {
		err = f.enlist(ctx, s)
	}
	switch {
	case err == nil:
		return nil
	case !unreadable(err):
		delete(f.stays, s.ID)
		return err
	}
	f.block(fmt.Errorf("manifest list of retained snapshot %d: %w", s.ID, err))
	return nil
}

// enlist reads the list of a retained snapshot, unless another one has it too.
func (f *freed) enlist(ctx context.Context, s *iceberg.Snapshot) error {
	if s.ManifestList != "" {
		paths, err := f.loc.Candidates(s.ManifestList)
		if err != nil {
			return err
		}
		if f.kept[keyOf(paths[0])] {
			return nil
		}
		f.kept[keyOf(paths[0])] = true
		f.need(paths)
	}
	_, err := f.list(ctx, s, func(m *manifests.ManifestFile, paths []filer.Path) error {
		if at := keyOf(paths[0]); !f.kept[at] {
			f.kept[at] = true
			f.need(paths)
			f.uncrossed = append(f.uncrossed, m)
			f.specs[m.SpecID] = true
			f.unknownSpecs = f.unknownSpecs || s.ManifestList == ""
			f.deletes = f.deletes || m.Content == manifests.DeleteManifest
		}
		return nil
	})
	return err
}

// give takes the files, the manifests and the list of a snapshot that was to
// expire out of what is freed. The error says that not all of them are known.
func (f *freed) give(id iceberg.SnapshotID) error {
	l := f.lists[id]
	if l == nil {
		return nil
	}
	if l.spelling != "" {
		paths, err := f.loc.Candidates(l.spelling)
		if err != nil {
			return err
		}
		f.need(paths)
	}
	worst := l.err
	for _, i := range l.own {
		m := &f.gone[i]
		paths, err := f.loc.Candidates(m.file.Path)
		if err != nil {
			return err
		}
		f.need(paths)
		if worst == nil {
			worst = m.err
		}
		if m.from == m.to {
			continue
		}
		if err := f.files.each(m.from, m.to, f.spare); err != nil {
			return err
		}
	}
	return worst
}

func (f *freed) spare(spelling string) error {
	paths, err := f.loc.Candidates(spelling)
	f.files.spare(paths)
	return err
}

// release reads the list of an expiring snapshot. The manifests of retained ones
// must be known.
func (f *freed) release(ctx context.Context, s *iceberg.Snapshot, seen map[key]*list) error {
	l := &list{spelling: s.ManifestList}
	f.lists[s.ID] = l
	if s.ManifestList != "" {
		paths, err := f.loc.Candidates(s.ManifestList)
		if err != nil {
			l.err = err
			f.unread("unreadable-expiring-list", fmt.Sprintf("snapshot %d", s.ID), err)
			return nil
		}
		at := keyOf(paths[0])
		if f.kept[at] {
			return nil // and so are all manifests in it
		}
		if twin := seen[at]; twin != nil {
			f.lists[s.ID] = twin
			return nil
		}
		seen[at] = l
	}
	l.found, l.err = f.list(ctx, s, func(m *manifests.ManifestFile, paths []filer.Path) error {
		at := keyOf(paths[0])
		if f.kept[at] {
			return nil
		}
		i, ok := f.goneAt[at]
		if !ok {
			i = len(f.gone)
			f.goneAt[at] = i
			f.gone = append(f.gone, manifest{file: m})
		}
		l.own = append(l.own, int32(i))
		return nil
	})
	if l.err == nil {
		return nil
	}
	if !unreadable(l.err) {
		return l.err
	}
	f.unread("unreadable-expiring-list", fmt.Sprintf("snapshot %d", s.ID), l.err)
	return nil
}

// unread notes something of an expiring snapshot that cannot be read. Removing
// the snapshot is the cure; its files are left to the orphan scan.
func (f *freed) unread(code, subject string, err error) {
	f.reasons = append(f.reasons, ops.Reason{Code: code, Subject: subject, Count: 1,
		Text: "its files are left to remove_orphans: " + err.Error()})
}

// collect reads the manifests that only expiring snapshots reach, and then
// crosses out what retained manifests have live.
func (f *freed) collect(ctx context.Context) error {
	for i := range f.gone {
		if err := f.free(ctx, &f.gone[i]); err != nil {
			return err
		}
	}
	if err := f.files.settle(); err != nil {
		return err
	}
	return f.crossOut(ctx)
}

// free makes candidates of what a manifest has live.
func (f *freed) free(ctx context.Context, m *manifest) error {
	var err error
	m.from = f.files.size
	m.found, err = f.entries(ctx, m.file, func(e *manifests.Entry, paths []filer.Path) error {
		if !e.Live() && !f.changelog {
			return nil
		}
		// A deleted file is noted and no candidate: if the snapshot stays after
		// all, its change may need the file.
		at, err := f.files.note(e.Path, e.Bytes)
		if err == nil && e.Live() && !slices.ContainsFunc(paths, f.loc.Foreign) {
			f.files.add(at, paths)
		}
		return err
	})
	m.to = f.files.size
	if err == nil {
		return nil
	}
	if !unreadable(err) {
		return err
	}
	m.err = err
	f.unread("unreadable-expiring-manifest", m.file.Path, err)
	return nil
}

// crossOut takes out of the candidates what retained manifests have live, the
// latest first: what was rewritten lately is where a file is likely to live on.
// It stops when no candidate is left. No manifest is skipped for being older
// than the candidates: a path may have been live in it, then removed, and added
// again later by a snapshot that expires (F094).
func (f *freed) crossOut(ctx context.Context) error {
	slices.SortStableFunc(f.uncrossed, func(a, b *manifests.ManifestFile) int { return compare(int64(b.Seq.Value), int64(a.Seq.Value)) })
	for len(f.uncrossed) > 0 && f.files.left > 0 && f.blocked == nil {
		m := f.uncrossed[0]
		_, err := f.entries(ctx, m, func(e *manifests.Entry, paths []filer.Path) error {
			if e.Live() || f.changelog && f.changed(e) {
				f.files.spare(paths)
			}
			return nil
		})
		if err != nil && !unreadable(err) {
			return err
		}
		if err != nil {
			f.block(fmt.Errorf("manifest %s of a retained snapshot: %w", m.Path, err))
		}
		f.uncrossed = f.uncrossed[1:]
	}
	return nil
}

// changed reports whether a DELETED entry may be a change that a retained
// snapshot made.
func (f *freed) changed(e *manifests.Entry) bool {
	id, ok := e.SnapshotID.Get()
	return !ok || f.stays[id]
}
