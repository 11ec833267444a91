package commit

import (
	"context"
	"strings"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// reaches reports whether any snapshot of v, its lists, manifests or files, names
// a path that is ours. Lists are looked at before manifests, and manifests only
// if ours holds files that a manifest could name.
func reaches(ctx context.Context, r filer.Reader, v *iceberg.View, ours func(filer.Path) bool) (bool, error) {
	found := false
	err := visitPaths(ctx, r, v, func(p filer.Path) bool {
		found = ours(p)
		return !found
	})
	return found, err
}

// visitPaths calls see with every path that the snapshots of v reach: lists,
// manifests, live and deleted data and delete files, statistics, and the
// metadata files in the log. Each distinct list and manifest is read once. It
// ends early when see returns false. An error means that something could not be
// read, and that the paths seen are not all.
func visitPaths(ctx context.Context, r filer.Reader, v *iceberg.View, see func(filer.Path) bool) error {
	w := &visitor{ctx: ctx, r: r, v: v, see: see, lists: map[string]bool{}, manifests: map[string]*manifests.ManifestFile{}}
	if !w.metadata() {
		return w.err
	}
	for i := range v.Metadata.Snapshots {
		if !w.list(&v.Metadata.Snapshots[i]) {
			return w.err
		}
	}
	for _, m := range w.manifests {
		if !w.entries(m) {
			return w.err
		}
	}
	return w.err
}

type visitor struct {
	ctx       context.Context
	r         filer.Reader
	v         *iceberg.View
	see       func(filer.Path) bool
	lists     map[string]bool
	manifests map[string]*manifests.ManifestFile
	err       error
}

// path shows every reading of a spelling, because all of them count.
func (w *visitor) path(spelling string) bool {
	candidates, err := w.v.Locations.Candidates(spelling)
	if err != nil {
		w.err = err
		return false
	}
	for _, p := range candidates {
		if !w.see(p) {
			return false
		}
	}
	return true
}

func (w *visitor) metadata() bool {
	m := w.v.Metadata
	if !w.path(w.v.MetadataLocation) {
		return false
	}
	for _, e := range m.MetadataLog {
		if !w.path(e.MetadataFile) {
			return false
		}
	}
	for _, s := range m.Statistics {
		if !w.path(s.Path) {
			return false
		}
	}
	for _, s := range m.PartitionStatistics {
		if !w.path(s.Path) {
			return false
		}
	}
	return true
}

func (w *visitor) list(s *iceberg.Snapshot) bool {
	if s.ManifestList != "" && (w.lists[s.ManifestList] || !w.path(s.ManifestList)) {
		return w.lists[s.ManifestList]
	}
	w.lists[s.ManifestList] = true
	for m, err := range manifests.OfSnapshot(w.ctx, w.r, w.v.Locations, s) {
		if err != nil {
			w.err = err
			return false
		}
		if _, seen := w.manifests[m.Path]; seen {
			continue
		}
		w.manifests[strings.Clone(m.Path)] = m
		if !w.path(m.Path) {
			return false
		}
	}
	return true
}

func (w *visitor) entries(m *manifests.ManifestFile) bool {
	for e, err := range manifests.EntriesOf(w.ctx, w.r, w.v.Locations, m, manifests.ReadOptions{Projection: manifests.ProjectPath}) {
		if err != nil {
			w.err = err
			return false
		}
		if !w.path(e.Path) {
			return false
		}
	}
	return true
}
