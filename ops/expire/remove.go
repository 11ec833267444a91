package expire

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

const (
	// batchFiles are removed at once; before each batch the head is read again.
	batchFiles  = 5000
	statsAtOnce = 8
)

// after removes what the expired snapshots alone reached.
func (x *execution) after(ctx context.Context, d ops.Done) (ops.Actual, error) {
	act := ops.Actual{Effects: ops.Effects{RowsExact: true}}
	act.Effects.Before = head(d.Head.Metadata, x.before)
	act.Effects.After = head(d.Head.Metadata, x.before-int64(len(x.expired)))
	act.Effects.BytesRead = x.f.read
	act.Counters = map[string]int64{
		"snapshots-expired": int64(len(x.expired)), "refs-expired": int64(len(x.refs)),
		"schemas-removed": int64(x.schemas), "specs-removed": int64(x.specs),
	}
	act.Reasons = append(act.Reasons, x.f.reasons[min(len(x.f.reasons), planned(x.p, x.f)):]...)
	if x.kept > 0 {
		act.Reasons = append(act.Reasons, ops.Reason{Code: "needed-meanwhile", Subject: "snapshots", Count: int64(x.kept),
			Text: "a branch, tag or pin made since planning needs them, or they are gone already"})
	}
	r := &removal{x: x, d: d, act: &act, at: d.Head}
	err := r.run(ctx)
	act.Effects.RemovedFiles, act.Effects.RemovedBytes = r.out.Files, r.out.Bytes
	act.Counters["files-removed"], act.Counters["files-already-gone"], act.Counters["files-kept"] = r.out.Files, r.out.Gone, int64(len(r.out.Kept))
	for i, k := range r.out.Kept {
		if i == 20 {
			act.Warnings = append(act.Warnings, fmt.Sprintf("%d more files were left", len(r.out.Kept)-i))
			break
		}
		act.Warnings = append(act.Warnings, fmt.Sprintf("%s was left: %s", k.Path, k.Reason))
	}
	if err != nil {
		act.Warnings = append(act.Warnings, "the rest of the files is left to remove_orphans: "+err.Error())
	}
	return act, nil
}

// planned is how many of the reasons the plan shows already.
func planned(p *Plan, f *freed) int {
	if p.freed == f {
		return len(f.reasons)
	}
	return 0
}

type removal struct {
	x   *execution
	d   ops.Done
	act *ops.Actual
	at  *iceberg.View
	out ops.Removed
	// old are the snapshots that have been taken into account.
	old map[iceberg.SnapshotID]bool
}

func (r *removal) run(ctx context.Context) error {
	f := r.x.f
	r.old = map[iceberg.SnapshotID]bool{}
	for id, stays := range f.known {
		r.old[id] = stays
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	// Data first: while a list or a manifest is there, whoever looks can still
	// tell what a half-done removal was about.
	if err := f.batches(batchFiles, func(paths []filer.Path) error { return r.batch(ctx, paths, "live in expired snapshots only") }); err != nil {
		return err
	}
	return r.metadata(ctx)
}

// catchUp crosses out what snapshots need that the plan does not know as
// retained: newer ones, and those that were to expire and did not.
func (r *removal) catchUp(ctx context.Context) error {
	f := r.x.f
	for i := range r.at.Metadata.Snapshots {
		s := &r.at.Metadata.Snapshots[i]
		if r.old[s.ID] {
			continue
		}
		var fresh []*manifests.ManifestFile
		_, err := f.list(ctx, s, func(m *manifests.ManifestFile) {
			if f.kept[m.Path] == nil {
				fresh = append(fresh, m)
			}
		})
		if err != nil {
			return fmt.Errorf("manifest list of snapshot %d: %w", s.ID, err)
		}
		f.keptLists[s.ManifestList] = 0
		delete(f.goneLists, s.ManifestList)
		for _, m := range fresh {
			if err := f.crossOut(ctx, m); err != nil {
				return err
			}
			f.kept[m.Path] = m
			delete(f.gone, m.Path)
		}
		r.old[s.ID] = true
	}
	return f.blocked
}

// batch reads the head again, crosses out what it needs by now, and removes the
// rest of the paths.
func (r *removal) batch(ctx context.Context, paths []filer.Path, reason string) error {
	now, err := iceberg.Load(ctx, r.d.Stage.Reader(), r.x.p.header.Base.Table)
	if err != nil {
		return err
	}
	if now.MetadataLocation != r.at.MetadataLocation {
		r.at = now
		if err := r.catchUp(ctx); err != nil {
			return err
		}
	}
	if r.x.f.blocked != nil {
		return r.x.f.blocked
	}
	files, err := r.identify(ctx, paths, reason)
	if err != nil {
		return err
	}
	got, err := r.d.Remove(ctx, files)
	r.out.Files += got.Files
	r.out.Bytes += got.Bytes
	r.out.Gone += got.Gone
	r.out.Kept = append(r.out.Kept, got.Kept...)
	r.x.pr.Step("files", r.out.Files+r.out.Gone, r.x.p.header.Effects.RemovedFiles)
	return err
}

// identify looks at each file. One that was written since the plan was made is
// another file at an old path and stays (F094).
func (r *removal) identify(ctx context.Context, paths []filer.Path, reason string) ([]journal.File, error) {
	entries := make([]*filer.Entry, len(paths))
	var g errgroup.Group
	g.SetLimit(statsAtOnce)
	for i, p := range paths {
		g.Go(func() error {
			e, err := r.d.Stage.Reader().Stat(ctx, p)
			if filer.NotFound(err) {
				return nil
			}
			entries[i] = e
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []journal.File
	for i, e := range entries {
		switch {
		case e == nil:
			r.out.Gone++
		case e.Newest.IsZero(), e.Newest.After(r.written()):
			r.out.Kept = append(r.out.Kept, journal.Kept{Path: paths[i], Reason: "it was written after the plan was made, or nobody knows when"})
		default:
			out = append(out, journal.File{Path: e.Path, Identity: e.Identity(), Reason: reason})
		}
	}
	return out, nil
}

// written is the time after which a file cannot be one the plan saw. Filers that
// keep seconds only round down, so the plan's own second still counts.
func (r *removal) written() time.Time { return r.x.p.d.Rules.Now }

// metadata removes manifests, lists and statistics of expired snapshots, and
// metadata files that fell out of the log if the table says so.
func (r *removal) metadata(ctx context.Context) error {
	f, m := r.x.f, r.at.Metadata
	var spellings []string
	for path := range f.gone {
		spellings = append(spellings, path)
	}
	for path := range f.goneLists {
		spellings = append(spellings, path)
	}
	still := map[string]bool{}
	for _, s := range slices.Concat(m.Statistics, m.PartitionStatistics) {
		still[s.Path] = true
	}
	for _, s := range r.x.stats {
		if !still[s.Path] {
			spellings = append(spellings, s.Path)
		}
	}
	slices.Sort(spellings)
	paths := r.resolve(spellings)
	for part := range slices.Chunk(paths, batchFiles) {
		if err := r.batch(ctx, part, "of expired snapshots only"); err != nil {
			return err
		}
	}
	return r.trimmed(ctx)
}

// trimmed removes metadata files that the committed edit took out of the log
// (F122). They are old by definition.
func (r *removal) trimmed(ctx context.Context) error {
	m := r.at.Metadata
	if m.Properties["write.metadata.delete-after-commit.enabled"] != "true" {
		return nil
	}
	logged := map[string]bool{r.at.MetadataLocation: true}
	for _, e := range m.MetadataLog {
		logged[e.MetadataFile] = true
	}
	var spellings []string
	for _, location := range r.d.Commit.TrimmedLog {
		if !logged[location] {
			spellings = append(spellings, location)
		}
	}
	for part := range slices.Chunk(r.resolve(spellings), batchFiles) {
		if err := r.batch(ctx, part, "older than the metadata log reaches"); err != nil {
			return err
		}
	}
	return nil
}

func (r *removal) resolve(spellings []string) []filer.Path {
	var out []filer.Path
	for _, s := range spellings {
		paths, err := r.x.f.loc.Candidates(s)
		if err != nil {
			r.act.Warnings = append(r.act.Warnings, fmt.Sprintf("%s was left: %s", s, err))
			continue
		}
		for _, p := range paths {
			if !r.x.f.loc.Foreign(p) {
				out = append(out, p)
			}
		}
	}
	return out
}
