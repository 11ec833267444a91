package compact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// propManifestTarget is the size at which a new manifest is ended, in bytes, and
// defaultManifestTarget what it is where the table does not say.
const (
	propManifestTarget    = "commit.manifest.target-size-bytes"
	defaultManifestTarget = 8 << 20
)

// write makes the manifests of the attempt and the list: new ones for outputs
// and for deletes, successors of those that hold a removed entry, and all others
// as they are (F077).
func (a *attempt) write(ctx context.Context) error {
	if err := a.mark(ctx); err != nil {
		return err
	}
	fresh, err := a.outputs(ctx)
	if err != nil {
		return err
	}
	marks, err := a.added(ctx, a.marks)
	if err != nil {
		return err
	}
	a.made = append(slices.Clone(fresh), marks...)
	a.next = slices.Clone(a.made)
	gone := a.removals()
	for _, m := range a.list {
		r := gone[m.Path]
		if r == nil {
			a.next = append(a.next, m)
			continue
		}
		delete(gone, m.Path)
		heirs, err := a.filter(ctx, m, r)
		if err != nil {
			return err
		}
		a.replaced++
		a.made = append(a.made, heirs...)
		a.next = append(a.next, heirs...)
	}
	for path := range gone {
		return fault.New(fault.Halt, "manifest "+path+" was read and is not in the list")
	}
	return nil
}

// removal are the live entries of one manifest that go.
type removal struct {
	data    map[string]bool
	deletes map[deleteKey]bool
}

func (a *attempt) removals() map[string]*removal {
	out := map[string]*removal{}
	of := func(manifest string) *removal {
		r := out[manifest]
		if r == nil {
			r = &removal{data: map[string]bool{}, deletes: map[deleteKey]bool{}}
			out[manifest] = r
		}
		return r
	}
	for _, u := range a.units {
		for i := range u.Unit.Inputs {
			e := a.inputs[u.Unit.Inputs[i].Path]
			of(e.manifest).data[e.Path] = true
		}
	}
	for _, d := range a.dead {
		of(d.manifest).deletes[deleteKey{d.DeleteID(), d.DataSeq.Or(0)}] = true
	}
	return out
}

// has reports whether a live entry goes.
func (r *removal) has(e *manifests.Entry) bool {
	if e.Content == manifests.Data {
		return r.data[e.Path]
	}
	return r.deletes[deleteKey{e.DeleteID(), e.DataSeq.Or(0)}]
}

// digest names a manifest together with what is removed from it and what its
// successor is written under.
func (r *removal) digest(m *manifests.ManifestFile, sn iceberg.SnapshotID, schema iceberg.SchemaID) string {
	var all []string
	for p := range r.data {
		all = append(all, p)
	}
	for k := range r.deletes {
		all = append(all, fmt.Sprintf("%q %d %d %d", k.Path, k.Offset, k.Size, k.seq))
	}
	slices.Sort(all)
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %d %+v\n", sn, schema, keyOf(m))
	for _, s := range all {
		_, _ = fmt.Fprintf(h, "%q\n", s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// filter writes the successor of a manifest: entries that go DELETED by this
// snapshot with their own sequence numbers (F086), DELETED ones of before not
// repeated (F025), the others carried. What was written for an earlier attempt
// is used again if it would be the same.
func (a *attempt) filter(ctx context.Context, m *manifests.ManifestFile, r *removal) ([]*manifests.ManifestFile, error) {
	key := r.digest(m, a.sn.ID, a.head.Metadata.CurrentSchemaID)
	if done, ok := a.x.known.filtered[key]; ok {
		return clones(done), nil
	}
	if m.NeedsCount(a.head.Metadata.FormatVersion) {
		counted, err := manifests.RecountOf(ctx, a.st.Reader(), a.head.Locations, m)
		if err != nil {
			return nil, err
		}
		m = counted
	}
	w, err := a.splitter(ctx, m.SpecID, m.Content, 2*m.Length)
	if err != nil {
		return nil, err
	}
	removed := map[deleteKey]bool{} // an entry may be there twice
	for e, err := range manifests.EntriesOf(ctx, a.st.Reader(), a.head.Locations, m, manifests.ReadOptions{Types: a.head.Metadata.PartitionType}) {
		switch {
		case err != nil:
		case !e.Live():
			continue
		case e.KeyMetadata != nil:
			err = fault.New(fault.Unsupported, "file "+e.Path+" is encrypted")
		case r.has(e):
			removed[deleteKey{e.DeleteID(), e.DataSeq.Or(0)}] = true
			err = w.Delete(e)
		default:
			err = w.Carry(e)
		}
		if err != nil {
			return nil, fault.In("rewrite "+m.Path, err)
		}
	}
	if len(removed) != len(r.data)+len(r.deletes) {
		return nil, fault.New(fault.Halt, fmt.Sprintf("%d entries of %s were removed, of %d", len(removed), m.Path, len(r.data)+len(r.deletes)))
	}
	out, err := w.Close()
	if err != nil {
		return nil, err
	}
	a.x.known.filtered[key] = out
	return clones(out), nil
}

func clones(all []*manifests.ManifestFile) []*manifests.ManifestFile {
	out := make([]*manifests.ManifestFile, len(all))
	for i, m := range all {
		out[i] = m.Clone()
	}
	return out
}

// outputs writes the manifests of the new data files. They depend on the units
// that stand and on nothing of the head.
func (a *attempt) outputs(ctx context.Context) ([]*manifests.ManifestFile, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %d\n", a.sn.ID, a.head.Metadata.CurrentSchemaID)
	var entries []*manifests.Entry
	for _, u := range a.units {
		_, _ = fmt.Fprintf(h, "%q %q\n", u.Unit.ID, u.Map.At)
		for n := range u.Outputs {
			entries = append(entries, u.entry(n, a.head.Metadata.FormatVersion))
		}
	}
	key := hex.EncodeToString(h.Sum(nil))
	if done, ok := a.x.known.fresh[key]; ok {
		return clones(done), nil
	}
	out, err := a.added(ctx, entries)
	if err != nil {
		return nil, err
	}
	a.x.known.fresh[key] = out
	return clones(out), nil
}

// added writes manifests of new entries, which are of one content, by spec.
func (a *attempt) added(ctx context.Context, entries []*manifests.Entry) ([]*manifests.ManifestFile, error) {
	target, err := a.head.Metadata.IntProperty(propManifestTarget, defaultManifestTarget)
	if err != nil {
		return nil, err
	}
	bySpec := map[iceberg.SpecID][]*manifests.Entry{}
	var specs []iceberg.SpecID
	for _, e := range entries {
		if bySpec[e.SpecID] == nil {
			specs = append(specs, e.SpecID)
		}
		bySpec[e.SpecID] = append(bySpec[e.SpecID], e)
	}
	slices.Sort(specs)
	var out []*manifests.ManifestFile
	for _, spec := range specs {
		w, err := a.splitter(ctx, spec, bySpec[spec][0].Content.Kind(), target)
		if err != nil {
			return nil, err
		}
		for _, e := range bySpec[spec] {
			if err := w.Add(e); err != nil {
				return nil, err
			}
		}
		made, err := w.Close()
		if err != nil {
			return nil, err
		}
		out = append(out, made...)
	}
	return out, nil
}

func (a *attempt) splitter(ctx context.Context, spec iceberg.SpecID, content manifests.ManifestContent, target int64) (*manifests.Splitter, error) {
	part, err := manifests.PartitioningOf(a.head.Metadata, spec)
	if err != nil {
		return nil, err
	}
	return manifests.NewSplitter(manifests.SplitterOptions{
		Writer: manifests.WriterOptions{
			Version: a.head.Metadata.FormatVersion, Content: content, Partitioning: part, SnapshotID: a.sn.ID, Codec: avro.Deflate,
		},
		TargetBytes: max(target, 64<<10),
		Create: func(int) (io.WriteCloser, string, error) {
			name, err := a.st.Metadata(ctx)
			if err != nil {
				return nil, "", err
			}
			f, err := a.st.Create(ctx, name)
			if err != nil {
				return nil, "", err
			}
			return &stagedManifest{File: f, ctx: ctx}, f.Location(), nil
		},
	})
}

// stagedManifest makes a staged file durable when it is closed.
type stagedManifest struct {
	*commit.File
	ctx context.Context
}

// Close implements io.Closer.
func (s *stagedManifest) Close() error {
	_, err := s.Done(s.ctx)
	return err
}
