package manifests

import (
	"context"
	"iter"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// OfSnapshot yields the manifests of a snapshot, from its list or, for old v1
// snapshots, from the metadata itself (F084). A list that is missing is
// fault.Corrupt: the metadata names it.
func OfSnapshot(ctx context.Context, r filer.Reader, loc *iceberg.Locator, s *iceberg.Snapshot) iter.Seq2[*ManifestFile, error] {
	return func(yield func(*ManifestFile, error) bool) {
		if s.ManifestList == "" {
			for _, path := range s.Manifests {
				if !yield(Embedded(path, s.ID), nil) {
					return
				}
			}
			return
		}
		in, err := open(ctx, r, loc, s.ManifestList)
		if err != nil {
			yield(nil, fault.In("open the manifest list", err))
			return
		}
		defer in.Close()
		for m, err := range ReadList(ctx, in, s.ManifestList) {
			if !yield(m, err) {
				return
			}
		}
	}
}

// EntriesOf opens manifest m and yields its entries as Reader.Entries does. A
// manifest that is missing is fault.Corrupt.
func EntriesOf(ctx context.Context, r filer.Reader, loc *iceberg.Locator, m *ManifestFile, o ReadOptions) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		in, err := open(ctx, r, loc, m.Path)
		if err != nil {
			yield(nil, fault.In("open the manifest", err))
			return
		}
		defer in.Close()
		for e, err := range ReadManifest(ctx, in, m, o) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// stream is an open file read from its beginning.
type stream struct {
	filer.Object
	in interface {
		Read([]byte) (int, error)
		Close() error
	}
}

func (s *stream) Read(b []byte) (int, error) { return s.in.Read(b) }

func (s *stream) Close() error {
	err := s.in.Close()
	if cerr := s.Object.Close(); err == nil {
		err = cerr
	}
	return err
}

func open(ctx context.Context, r filer.Reader, loc *iceberg.Locator, spelling string) (*stream, error) {
	e, err := loc.Find(ctx, r, spelling)
	if filer.NotFound(err) {
		return nil, fault.Wrap(fault.Corrupt, spelling, err)
	}
	if err != nil {
		return nil, fault.In(spelling, err)
	}
	o, err := r.Open(ctx, e.Path)
	if filer.NotFound(err) {
		return nil, fault.Wrap(fault.Corrupt, spelling, err)
	}
	if err != nil {
		return nil, fault.In(spelling, err)
	}
	return &stream{Object: o, in: o.Stream(0, -1)}, nil
}

// RecountOf opens manifest m and returns it with the counts and what follows
// from them read from its entries, as Recount does.
func RecountOf(ctx context.Context, r filer.Reader, loc *iceberg.Locator, m *ManifestFile) (*ManifestFile, error) {
	in, err := open(ctx, r, loc, m.Path)
	if err != nil {
		return nil, fault.In("open the manifest", err)
	}
	defer in.Close()
	return Recount(ctx, in, m)
}
