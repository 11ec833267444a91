package expire

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

type planner struct{}

// Plan applies the retention rules and, if something expires, works out what
// the files are: each manifest list and each manifest is read at most once.
func (planner) Plan(ctx context.Context, in ops.Input) (*Plan, error) {
	base, err := commit.BaseOf(in.View, iceberg.MainBranch)
	if err != nil {
		return nil, err
	}
	m := in.View.Metadata
	p := &Plan{spill: in.Settings.SortSpillDir, header: ops.Header{
		Format: ops.PlanFormat, Operation: config.ExpireSnapshots, Base: base, Guarantee: commit.FilerCAS, PlannedAt: in.Now,
	}}
	if p.d, err = decide(in); err != nil {
		return nil, err
	}
	defer func() { p.header.Digest = p.digest() }()
	n := int64(len(m.Snapshots))
	p.header.Effects = ops.Effects{RowsExact: true, Before: totals(m, n), After: totals(m, n)}
	if !in.Settings.GCEnabled {
		p.header.Reasons = []ops.Reason{{Code: "gc-disabled", Subject: "table", Count: 1,
			Text: "the table property gc.enabled is false: nothing of the table may be removed"}}
		return p, nil
	}
	kept, err := retain(m, p.d.Rules, nil)
	if err != nil {
		return nil, err
	}
	p.d.Snapshots, p.d.Refs, p.header.Reasons = kept.expire, kept.refs, kept.reasons()
	oldestFirst(m, p.d.Snapshots)
	p.header.Effects.After.Snapshots -= int64(len(p.d.Snapshots))
	if p.Empty() {
		return p, nil
	}
	p.freed = newFreed(in.Reader, in.View.Locations, p.d, p.spill)
	if err := p.freed.work(ctx, m, p.d.Snapshots); err != nil {
		p.freed.files.close()
		return nil, err
	}
	if err := p.predict(ctx, in.View); err != nil {
		p.freed.files.close()
		return nil, err
	}
	return p, nil
}

func decide(in ops.Input) (decision, error) {
	m := in.View.Metadata
	refAge, err := m.IntProperty(propertyMaxRefAge, 0)
	if err != nil {
		return decision{}, err
	}
	d := decision{
		Rules: Rules{
			Now: in.Now, MaxAge: in.Settings.SnapshotRetention, MinKeep: in.Settings.MaxSnapshotsToKeep, MaxRefAge: millis(max(refAge, 0)),
		},
		Clean: in.Settings.CleanExpiredMetadata, KeepChangelog: in.Settings.KeepChangelog,
	}
	for _, k := range properties {
		if v, ok := m.Properties[k]; ok {
			if d.Properties == nil {
				d.Properties = map[string]string{}
			}
			d.Properties[k] = v
		}
	}
	return d, nil
}

// totals is what the head's summary states; no file of the head changes.
func totals(m *iceberg.Metadata, snapshots int64) ops.Totals {
	t := ops.Totals{Snapshots: snapshots}
	s := m.Current()
	if s == nil {
		return t
	}
	sum := s.Summary()
	number := func(k string) int64 {
		n, err := strconv.ParseInt(sum[k], 10, 64)
		if err != nil || n < 0 {
			return 0 // other writers leave them out, or worse (F128)
		}
		return n
	}
	t.DataFiles, t.DeleteFiles = number("total-data-files"), number("total-delete-files")
	t.Rows, t.Bytes = number("total-records"), number("total-files-size")
	return t
}

// predict tries the change on the planning head, which shows what it writes and
// what falls out of the metadata log, and counts what goes.
func (p *Plan) predict(ctx context.Context, v *iceberg.View) error {
	f, e := p.freed, &p.header.Effects
	x := &execution{p: p, f: f}
	next, err := x.rebuild(ctx, v, nil)
	if err != nil {
		return err
	}
	if next.Edit == nil {
		return fault.New(fault.Halt, "the plan changes nothing on the head it was made on")
	}
	next.Edit.SetLastUpdatedMs(max(p.header.PlannedAt.UnixMilli(), v.Metadata.LastUpdatedMs))
	next.Edit.AppendMetadataLog(v.MetadataLocation)
	edited, err := next.Edit.Build()
	if err != nil {
		return err
	}
	e.BytesWritten = int64(len(edited.JSON))
	p.header.Reasons = append(p.header.Reasons, f.reasons...)
	if f.blocked != nil {
		p.header.Reasons = append(p.header.Reasons, blockedReason(f.blocked))
		e.BytesRead = f.read
		return nil
	}
	if e.RemovedFiles, e.RemovedBytes, err = f.files.totals(); err != nil {
		return err
	}
	for _, x := range f.metadata(nil) {
		if x.path != "" {
			e.RemovedFiles++
			e.RemovedBytes += x.size
		}
	}
	spellings := unshared(v.Metadata, v.Locations, p.d.Snapshots)
	if deletesOldMetadata(v.Metadata) {
		for _, t := range edited.TrimmedLog {
			spellings = append(spellings, t.MetadataFile)
		}
	}
	for _, s := range spellings {
		switch found, err := v.Locations.Find(ctx, f.r, s); {
		case filer.NotFound(err):
		case err != nil && !unreadable(err):
			return err
		case err == nil:
			e.RemovedFiles++
			e.RemovedBytes += found.Size
		}
	}
	e.BytesRead = f.read
	// What a manifest takes while it is read comes on top.
	e.PeakMemoryBytes = f.files.memory() + 16<<20
	return nil
}

func blockedReason(err error) ops.Reason {
	return ops.Reason{Code: "removal-blocked", Subject: "files", Count: 1,
		Text: "no file is removed, because a retained snapshot cannot be read: " + err.Error()}
}

// deletesOldMetadata reports whether the table wants metadata files removed that
// fall out of its log.
func deletesOldMetadata(m *iceberg.Metadata) bool {
	return strings.EqualFold(strings.TrimSpace(m.Properties["write.metadata.delete-after-commit.enabled"]), "true")
}

// unshared are the statistics files of snapshots that no other snapshot's entry
// names (F097).
func unshared(m *iceberg.Metadata, loc *iceberg.Locator, expiring []iceberg.SnapshotID) []string {
	goes, shared := setOf(expiring), map[key]bool{}
	all := slices.Concat(m.Statistics, m.PartitionStatistics)
	for _, s := range all {
		if goes[s.SnapshotID] {
			continue
		}
		paths, err := loc.Candidates(s.Path)
		if err != nil {
			continue // a file nobody can name is none of those below either
		}
		for _, p := range paths {
			shared[keyOf(p)] = true
		}
	}
	var out []string
	for _, s := range all {
		paths, err := loc.Candidates(s.Path)
		if !goes[s.SnapshotID] || err != nil || slices.ContainsFunc(paths, func(p filer.Path) bool { return shared[keyOf(p)] }) {
			continue
		}
		shared[keyOf(paths[0])] = true
		out = append(out, s.Path)
	}
	return out
}
