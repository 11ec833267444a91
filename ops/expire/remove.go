package expire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
)

const (
	// batchFiles are removed at once; before each batch the head is read again.
	batchFiles  = 5000
	statsAtOnce = 8
	// maxNamed bounds the files that a result names one by one.
	maxNamed = 20
)

// after removes what the expired snapshots alone reached.
func (x *execution) after(ctx context.Context, d ops.Done) (ops.Actual, error) {
	defer x.f.files.close()
	act := ops.Actual{Effects: ops.Effects{
		RowsExact: true, Before: totals(d.Head.Metadata, x.before), After: totals(d.Head.Metadata, x.before-int64(len(x.expired))),
		PeakMemoryBytes: x.p.header.Effects.PeakMemoryBytes,
	}}
	for _, s := range x.st.Files() {
		if s.Location == d.Commit.MetadataLocation {
			act.Effects.BytesWritten = s.Size
		}
	}
	if x.fresh {
		act.Reasons = append(act.Reasons, x.f.reasons...)
	}
	if n := len(x.p.d.Snapshots) - len(x.expired); n > 0 {
		act.Reasons = append(act.Reasons, ops.Reason{Code: "needed-meanwhile", Subject: "snapshots", Count: int64(n),
			Text: "a branch, tag or pin made since planning needs them, or they are gone already"})
	}
	r := &removal{x: x, d: d, act: &act}
	err := r.run(ctx)
	act.Effects.RemovedFiles, act.Effects.RemovedBytes, act.Effects.BytesRead = r.out.Files, r.out.Bytes, x.f.read
	act.Counters = map[string]int64{
		"snapshots-expired": int64(len(x.expired)), "refs-expired": int64(len(x.refs)),
		"schemas-removed": int64(x.schemas), "specs-removed": int64(x.specs),
		"files-removed": r.out.Files, "files-already-gone": r.out.Gone, "files-kept": int64(len(r.out.Kept)),
	}
	for i, k := range r.out.Kept {
		if i == maxNamed {
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

type removal struct {
	x   *execution
	d   ops.Done
	act *ops.Actual
	// at is the head that was looked at last, and names what it names itself.
	at    *iceberg.View
	names map[key]bool
	out   ops.Removed
}

// run removes data files first: while a manifest and a list are there, whoever
// looks can still tell what a half-done removal was about.
func (r *removal) run(ctx context.Context) error {
	f := r.x.f
	if err := r.look(ctx, r.d.Head); err != nil {
		return err
	}
	expired := setOf(r.x.expired)
	for _, id := range r.x.p.d.Snapshots {
		// One that somebody else has expired meanwhile: its files are theirs.
		if !expired[id] {
			if err := f.give(id); err != nil && !unreadable(err) {
				return err
			}
		}
	}
	err := f.files.batches(batchFiles, func(batch []string) error {
		return r.batch(ctx, batch, "live in expired snapshots only", f.files.free)
	})
	if err != nil {
		return err
	}
	var spellings []string
	for _, p := range f.metadata(expired) {
		if p.path != "" {
			spellings = append(spellings, p.path.String())
		}
	}
	if err := r.all(ctx, append(spellings, r.x.stats...), "of expired snapshots only"); err != nil {
		return err
	}
	if !deletesOldMetadata(r.at.Metadata) {
		return nil
	}
	return r.all(ctx, r.d.Commit.TrimmedLog, "older than the metadata log reaches")
}

// metadata are the manifests and the lists that only the snapshots in of reach;
// nil is all expiring ones.
func (f *freed) metadata(of map[iceberg.SnapshotID]bool) []place {
	var out []place
	seen := map[key]bool{}
	add := func(p place) {
		if k := keyOf(p.path); p.path != "" && !f.needed[k] && !seen[k] {
			seen[k] = true
			out = append(out, p)
		}
	}
	var lists []place
	for id, l := range f.lists {
		if of != nil && !of[id] {
			continue
		}
		for _, i := range l.own {
			add(f.gone[i].found)
		}
		lists = append(lists, l.found)
	}
	for _, p := range lists {
		add(p)
	}
	slices.SortFunc(out, func(a, b place) int { return strings.Compare(string(a.path), string(b.path)) })
	return out
}

func (r *removal) all(ctx context.Context, spellings []string, reason string) error {
	for part := range slices.Chunk(spellings, batchFiles) {
		if err := r.batch(ctx, part, reason, nil); err != nil {
			return err
		}
	}
	return nil
}

// look takes a head into account: it must be the same table, must still allow
// removal, and what its snapshots need that were not known as retained is
// crossed out. Those are newer ones, and ones that were to expire and are there.
func (r *removal) look(ctx context.Context, now *iceberg.View) error {
	if r.at != nil && now.MetadataLocation == r.at.MetadataLocation {
		return r.x.f.blocked
	}
	f, m := r.x.f, now.Metadata
	base, err := commit.BaseOf(now, iceberg.MainBranch)
	switch {
	case err != nil:
		return err
	case base.UUID != r.x.p.header.Base.UUID:
		return fault.New(fault.Stale, fmt.Sprintf("table %s is another table by now", base.Table))
	case strings.EqualFold(strings.TrimSpace(m.Properties["gc.enabled"]), "false"):
		return fault.New(fault.Stale, "the table property gc.enabled is false by now")
	}
	for i := range m.Snapshots {
		if err := f.retain(ctx, &m.Snapshots[i]); err != nil {
			return err
		}
	}
	if err := f.crossOut(ctx); err != nil {
		return err
	}
	r.at, r.names = now, map[key]bool{}
	spellings := []string{now.MetadataLocation}
	for _, e := range m.MetadataLog {
		spellings = append(spellings, e.MetadataFile)
	}
	for _, s := range slices.Concat(m.Statistics, m.PartitionStatistics) {
		spellings = append(spellings, s.Path)
	}
	for _, s := range spellings {
		paths, err := now.Locations.Candidates(s)
		if err != nil {
			return fault.In("find out what the table names", err)
		}
		for _, p := range paths {
			r.names[keyOf(p)] = true
		}
	}
	return f.blocked
}

// batch reads the head again, crosses out what it needs by now, and removes the
// rest of the files. free, if given, has the last word on a file.
func (r *removal) batch(ctx context.Context, spellings []string, reason string, free func([]filer.Path) bool) error {
	now, err := iceberg.Load(ctx, r.d.Stage.Reader(), r.x.p.header.Base.Table)
	if err != nil {
		return err
	}
	if err := r.look(ctx, now); err != nil {
		return err
	}
	var wanted []string
	for _, s := range spellings {
		paths, err := r.x.f.loc.Candidates(s)
		if err != nil {
			r.act.Warnings = append(r.act.Warnings, fmt.Sprintf("%s was left: %s", s, err))
			continue
		}
		if (free == nil || free(paths)) && !slices.ContainsFunc(paths, r.named) {
			wanted = append(wanted, s)
		}
	}
	files, err := r.identify(ctx, wanted, reason)
	if err != nil || len(files) == 0 {
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

// versionHint is what file-system catalogs read first (F113).
const versionHint = "version-hint.text"

// named reports whether the table itself needs what lies at p, whatever an entry
// of a manifest says about it.
func (r *removal) named(p filer.Path) bool {
	k := keyOf(p)
	return r.x.f.needed[k] || r.names[k] || p.Name() == versionHint
}

// identify looks at each file. One that was written since the plan was made is
// another file at an old path and stays (F094).
func (r *removal) identify(ctx context.Context, spellings []string, reason string) ([]journal.File, error) {
	entries := make([]*filer.Entry, len(spellings))
	var g errgroup.Group
	g.SetLimit(statsAtOnce)
	for i, s := range spellings {
		g.Go(func() error {
			e, err := r.x.f.loc.Find(ctx, r.d.Stage.Reader(), s)
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
	// Filers that keep whole seconds round down.
	planned := r.x.p.d.Rules.Now.Truncate(time.Second)
	var out []journal.File
	for _, e := range entries {
		switch {
		case e == nil:
			r.out.Gone++
		case e.Newest.IsZero():
			r.out.Kept = append(r.out.Kept, journal.Kept{Path: e.Path, Reason: "nobody knows when it was written"})
		case !e.Newest.Before(planned):
			r.out.Kept = append(r.out.Kept, journal.Kept{Path: e.Path, Reason: "it was written after the plan was made"})
		default:
			out = append(out, journal.File{Path: e.Path, Identity: e.Identity(), Reason: reason})
		}
	}
	return out, nil
}
