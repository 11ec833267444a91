package rewritemanifests

import (
	"context"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

const (
	// smallPercent of the target: a manifest below it is merged with others.
	smallPercent = 50
	// largePercent of the target: a manifest above it is split.
	largePercent = 120
	// maxDepth is how many manifests may cover one partition before those that
	// overlap are sorted apart. A query on one partition opens as many.
	maxDepth = 4
)

type planner struct{}

// Plan reads the manifest list of the branch's head and nothing else.
func (planner) Plan(ctx context.Context, in ops.Input) (*Plan, error) {
	base, err := commit.BaseOf(in.View, in.Settings.Branch)
	if err != nil {
		return nil, err
	}
	if in.Settings.Where != "" {
		return nil, fault.New(fault.Unsupported, "the setting where is not available to rewrite_manifests in this version")
	}
	p := &Plan{target: in.Settings.ManifestTargetBytes, spill: in.Settings.SortSpillDir}
	p.header = ops.Header{
		Format: ops.PlanFormat, Operation: config.RewriteManifests, Base: base, Guarantee: commit.FilerCAS, PlannedAt: in.Now,
	}
	head, ok := in.View.Branch(in.Settings.Branch)
	if !ok {
		p.skip("no-snapshot", in.Settings.Branch, 1, "the branch has no snapshot", "")
		p.header.Digest = p.digest()
		return p, nil
	}
	var all []*manifests.ManifestFile
	for m, err := range manifests.OfSnapshot(ctx, in.Reader, in.View.Locations, head) {
		if err != nil {
			return nil, err
		}
		if m.KeyMetadata != nil {
			return nil, fault.New(fault.Unsupported, "manifest "+m.Path+" is encrypted")
		}
		all = append(all, m)
	}
	if err := p.choose(all, in); err != nil {
		return nil, err
	}
	p.effects(all, in)
	p.header.Digest = p.digest()
	return p, nil
}

func (p *Plan) skip(code, subject string, n int, text, setting string) {
	p.header.Reasons = append(p.header.Reasons, ops.Reason{Code: code, Subject: subject, Count: int64(n), Text: text, Setting: setting})
}

type groupKey struct {
	spec    iceberg.SpecID
	content manifests.ManifestContent
}

func (k groupKey) String() string {
	return fmt.Sprintf("%s manifests of spec %d", k.content, k.spec)
}

// choose makes a group of the manifests of each spec and content that are worth
// a rewrite together.
func (p *Plan) choose(all []*manifests.ManifestFile, in ops.Input) error {
	var keys []groupKey
	by := map[groupKey][]*manifests.ManifestFile{}
	for _, m := range all {
		k := groupKey{m.SpecID, m.Content}
		if m.SpecID < 0 {
			k.spec = -1 // embedded: the spec is known once it is read
		}
		if by[k] == nil {
			keys = append(keys, k)
		}
		by[k] = append(by[k], m)
	}
	slices.SortFunc(keys, func(a, b groupKey) int {
		if a.content != b.content {
			return int(a.content) - int(b.content)
		}
		return int(a.spec) - int(b.spec)
	})
	for _, k := range keys {
		t, err := in.View.Metadata.PartitionType(k.spec)
		if err != nil {
			return err
		}
		if f, bad := unwritable(t); bad {
			p.skip("unsupported-transform", k.String(), len(by[k]), fmt.Sprintf("partition field %q has a transform that cannot be written", f), "")
			continue
		}
		p.group(k, t, by[k], in.Settings.MinManifests)
	}
	return nil
}

// unwritable names a field whose values cannot be written.
func unwritable(t *iceberg.PartitionType) (string, bool) {
	for _, f := range t.Fields {
		_, void := f.Transform.(icego.VoidTransform)
		if f.Result == nil && !void && (len(f.SourceIDs) > 1 || unknown(f.Transform)) {
			return f.Name, true
		}
	}
	return "", false
}

func unknown(t icego.Transform) bool {
	switch t.(type) {
	case icego.IdentityTransform, icego.BucketTransform, *icego.BucketTransform, icego.TruncateTransform, *icego.TruncateTransform,
		icego.YearTransform, icego.MonthTransform, icego.DayTransform, icego.HourTransform, icego.VoidTransform:
		return false
	}
	return true
}

// group decides about the manifests of one spec and content. Small ones are
// merged among themselves into one sorted run. Only if too many manifests would
// then cover one partition are all that overlap sorted apart: so a table that
// grows by small appends is not rewritten whole each time, and a second plan is
// empty.
func (p *Plan) group(k groupKey, t *iceberg.PartitionType, ms []*manifests.ManifestFile, least int) {
	g := Group{Spec: k.spec, Content: k.content, Clustered: !t.Unpartitioned()}
	why := make([]string, len(ms))
	for i, m := range ms {
		switch {
		case m.Length*100 < p.target*smallPercent:
			why[i] = whySmall
		case m.Length*100 > p.target*largePercent && splits(m):
			why[i] = whyLarge
		}
	}
	if g.Clustered {
		spread(t, ms, why)
	}
	var bytes int64
	for i, m := range ms {
		if why[i] != "" {
			g.Inputs = append(g.Inputs, Input{Path: m.Path, Length: m.Length, Why: why[i]})
			bytes += liveBytes(m)
		}
	}
	if bytes > 0 {
		g.Outputs = max(1, (bytes+p.target-1)/p.target)
	}
	large := slices.Contains(why, whyLarge)
	overlaps := slices.Contains(why, whyOverlaps)
	switch {
	case len(g.Inputs) == 0:
		p.skip("healthy", k.String(), len(ms), fmt.Sprintf("no manifest is below %d %% or above %d %% of the target, and at most %d overlap",
			smallPercent, largePercent, maxDepth), "manifest_target_size_mb")
	case len(g.Inputs) < least && !large:
		p.skip("below-min-manifests", k.String(), len(g.Inputs),
			fmt.Sprintf("%d manifests are worth a rewrite, fewer than %d", len(g.Inputs), least), "min_manifests_to_rewrite")
	case int64(len(g.Inputs)) <= g.Outputs && !large && !overlaps:
		p.skip("no-gain", k.String(), len(g.Inputs),
			fmt.Sprintf("%d manifests would become %d", len(g.Inputs), g.Outputs), "manifest_target_size_mb")
	default:
		p.groups = append(p.groups, g)
	}
}

// splits reports whether a manifest has more than one live entry, so that
// splitting can help.
func splits(m *manifests.ManifestFile) bool {
	n, known := m.LiveFiles()
	return !known || n > 1
}

// liveBytes estimates what of a manifest is carried on.
func liveBytes(m *manifests.ManifestFile) int64 {
	live, ok := m.LiveFiles()
	dead, known := m.DeletedFiles.Get()
	if !ok || !known || live+dead == 0 {
		return m.Length
	}
	return m.Length * live / (live + dead)
}

func (p *Plan) effects(all []*manifests.ManifestFile, in ops.Input) {
	e := &p.header.Effects
	e.RowsExact = true
	e.Before = totals(all)
	e.Before.Snapshots = int64(len(in.View.Metadata.Snapshots))
	e.After = e.Before
	for _, g := range p.groups {
		e.After.Manifests += g.Outputs - int64(len(g.Inputs))
		for _, i := range g.Inputs {
			// Once to sort, and as much again to prove what was written.
			e.BytesRead += 2 * i.Length
			e.BytesWritten += i.Length
			e.FreedLaterBytes += i.Length
		}
	}
	if len(p.groups) > 0 {
		e.After.Snapshots++
		e.PeakMemoryBytes = peakBytes
	}
}

func totals(all []*manifests.ManifestFile) ops.Totals {
	t := ops.Totals{Manifests: int64(len(all))}
	for _, m := range all {
		files, _ := m.LiveFiles()
		rows, _ := m.LiveRows()
		if m.Content == manifests.DeleteManifest {
			t.DeleteFiles += files
			continue
		}
		t.DataFiles += files
		t.Rows += rows
	}
	return t
}
