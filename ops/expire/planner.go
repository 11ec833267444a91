package expire

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
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
	p := &Plan{header: ops.Header{
		Format: ops.PlanFormat, Operation: config.ExpireSnapshots, Base: base, Guarantee: commit.FilerCAS, PlannedAt: in.Now,
	}}
	defer func() { p.header.Digest = p.digest() }()
	if !in.Settings.GCEnabled {
		p.header.Reasons = []ops.Reason{{Code: "gc-disabled", Subject: "table", Count: 1,
			Text: "the table property gc.enabled is false: nothing of the table may be removed"}}
		return p, nil
	}
	refAge, err := m.IntProperty(propertyMaxRefAge, 0)
	if err != nil {
		return nil, err
	}
	p.d = decision{
		Rules: Rules{
			Now: in.Now, MaxAge: in.Settings.SnapshotRetention, MinKeep: in.Settings.MaxSnapshotsToKeep, MaxRefAge: millis(max(refAge, 0)),
		},
		Clean: in.Settings.CleanExpiredMetadata, SpillDir: in.Settings.SortSpillDir,
	}
	kept, err := retain(m, p.d.Rules)
	if err != nil {
		return nil, err
	}
	p.d.Snapshots, p.d.Refs, p.header.Reasons = kept.expire, kept.refs, kept.reasons
	sortByAge(m, p.d.Snapshots)
	n := int64(len(m.Snapshots))
	p.header.Effects = ops.Effects{RowsExact: true, Before: head(m, n), After: head(m, n-int64(len(p.d.Snapshots)))}
	if p.Empty() {
		return p, nil
	}
	p.freed, err = work(ctx, in.Reader, in.View, p.d)
	if err != nil {
		return nil, err
	}
	p.predict(m)
	return p, nil
}

func sortByAge(m *iceberg.Metadata, ids []iceberg.SnapshotID) {
	slices.SortFunc(ids, func(a, b iceberg.SnapshotID) int {
		x, _ := m.Snapshot(a)
		y, _ := m.Snapshot(b)
		if x.SequenceNumber != y.SequenceNumber {
			return int(x.SequenceNumber - y.SequenceNumber)
		}
		return int(x.TimestampMs - y.TimestampMs)
	})
}

// head is what the head's summary states; no file of the head changes.
func head(m *iceberg.Metadata, snapshots int64) ops.Totals {
	t := ops.Totals{Snapshots: snapshots}
	s := m.Current()
	if s == nil {
		return t
	}
	sum := s.Summary()
	number := func(k string) int64 {
		n, _ := strconv.ParseInt(sum[k], 10, 64)
		return n
	}
	t.DataFiles, t.DeleteFiles = number("total-data-files"), number("total-delete-files")
	t.Rows, t.Bytes = number("total-records"), number("total-files-size")
	return t
}

func (p *Plan) predict(m *iceberg.Metadata) {
	f, e := p.freed, &p.header.Effects
	p.header.Reasons = append(p.header.Reasons, f.reasons...)
	e.BytesRead = f.read
	e.PeakMemoryBytes = int64(len(f.files))*64 + 32<<20
	if f.blocked != nil {
		p.header.Reasons = append(p.header.Reasons, ops.Reason{Code: "removal-blocked", Subject: "files", Count: 1,
			Text: "no file is removed, because a retained snapshot cannot be read: " + f.blocked.Error()})
		return
	}
	e.RemovedFiles, e.RemovedBytes = f.totals()
	for _, x := range f.gone {
		e.RemovedFiles++
		e.RemovedBytes += x.Length
	}
	for _, size := range f.goneLists {
		if size > 0 {
			e.RemovedFiles++
			e.RemovedBytes += size
		}
	}
	for _, s := range statistics(m, p.d.Snapshots) {
		e.RemovedFiles++
		e.RemovedBytes += s.SizeBytes
	}
}

// statistics are the files of snapshots that no other snapshot's entry names.
func statistics(m *iceberg.Metadata, expiring []iceberg.SnapshotID) []iceberg.StatisticsFile {
	all := slices.Concat(m.Statistics, m.PartitionStatistics)
	shared := map[string]bool{}
	for _, s := range all {
		if !slices.Contains(expiring, s.SnapshotID) {
			shared[s.Path] = true
		}
	}
	var out []iceberg.StatisticsFile
	for _, s := range all {
		if !shared[s.Path] {
			shared[s.Path] = true
			out = append(out, s)
		}
	}
	return out
}

// requirements are the properties that the decision rests on.
func requirements(v *iceberg.View, b commit.Base) []commit.Requirement {
	out := []commit.Requirement{commit.SameTable{UUID: b.UUID, FormatVersion: b.FormatVersion}}
	for _, k := range []string{"gc.enabled", "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep", propertyMaxRefAge} {
		out = append(out, commit.PropertyOf(v, k))
	}
	return out
}

func stale(what string, args ...any) error { return fault.New(fault.Stale, fmt.Sprintf(what, args...)) }

// age renders a span for people.
func age(d time.Duration) string { return d.Round(time.Second).String() }
