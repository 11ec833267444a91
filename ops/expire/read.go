package expire

import (
	"context"
	"fmt"
	"io"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// list calls see with the manifests of a snapshot and the paths that each may
// lie at, the likeliest first.
func (f *freed) list(ctx context.Context, s *iceberg.Snapshot, see func(*manifests.ManifestFile, []filer.Path) error) (place, error) {
	look := func(m *manifests.ManifestFile) error {
		if m.KeyMetadata != nil {
			return fault.Wrap(fault.Unsupported, "manifest "+m.Path, errEncrypted)
		}
		m.Partitions = nil // they are not looked at, and there may be many manifests
		paths, err := f.loc.Candidates(m.Path)
		if err != nil {
			return err
		}
		return see(m, paths)
	}
	if s.ManifestList == "" {
		// An old v1 snapshot (F084).
		for _, path := range s.Manifests {
			if err := look(manifests.Embedded(path, s.ID)); err != nil {
				return place{}, err
			}
		}
		return place{}, nil
	}
	in, found, err := f.open(ctx, s.ManifestList)
	if err != nil {
		return found, err
	}
	defer in.Close()
	for m, err := range manifests.ReadList(ctx, in, s.ManifestList) {
		if err == nil {
			err = look(m)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// entries calls see with the entries of a manifest, unless the list says that
// nothing in it is live, which every reader goes by.
func (f *freed) entries(ctx context.Context, m *manifests.ManifestFile, see func(*manifests.Entry, []filer.Path) error) (place, error) {
	if !m.MayHaveLive() && !(f.changelog && m.MayHaveDeleted()) {
		e, err := f.loc.Find(ctx, f.r, m.Path)
		if filer.NotFound(err) {
			return place{}, nil
		}
		if err != nil {
			return place{}, err
		}
		return place{path: e.Path, size: e.Size}, nil
	}
	in, found, err := f.open(ctx, m.Path)
	if err != nil {
		return found, err
	}
	defer in.Close()
	for e, err := range manifests.ReadManifest(ctx, in, m, manifests.ReadOptions{Projection: manifests.ProjectPath}) {
		if err != nil {
			return found, err
		}
		if e.KeyMetadata != nil {
			return found, fault.Wrap(fault.Unsupported, fmt.Sprintf("file %s in manifest %s", e.Path, m.Path), errEncrypted)
		}
		paths, err := f.loc.Candidates(e.Path)
		if err != nil {
			return found, err
		}
		if err := see(e, paths); err != nil {
			return found, err
		}
	}
	return found, nil
}

// stream is a file read from its beginning.
type stream struct {
	io.ReadCloser
	of filer.Object
}

// Close ends the stream and the file.
func (s stream) Close() error {
	err := s.ReadCloser.Close()
	if cerr := s.of.Close(); err == nil {
		err = cerr
	}
	return err
}

// open opens what a spelling means. A file that is missing is fault.Corrupt: the
// metadata names it.
func (f *freed) open(ctx context.Context, spelling string) (io.ReadCloser, place, error) {
	e, err := f.loc.Find(ctx, f.r, spelling)
	if filer.NotFound(err) {
		return nil, place{}, fault.Wrap(fault.Corrupt, "open "+spelling, err)
	}
	if err != nil {
		return nil, place{}, fault.In("open "+spelling, err)
	}
	found := place{path: e.Path, size: e.Size}
	o, err := f.r.Open(ctx, e.Path)
	if filer.NotFound(err) {
		return nil, place{}, fault.Wrap(fault.Corrupt, "open "+spelling, err)
	}
	if err != nil {
		return nil, found, fault.In("open "+spelling, err)
	}
	f.read += e.Size
	return stream{o.Stream(0, -1), o}, found, nil
}
