package check

import (
	"context"
	"strconv"

	"github.com/seaice/seaice/iceberg"
)

// summaries compares what the summaries of the head and its ancestors say with
// a recount from the manifests (F128).
func (c *checker) summaries(context.Context) error {
	ancestry := map[iceberg.SnapshotID]bool{}
	if c.m.CurrentSnapshotID != nil {
		for s := range c.m.Ancestors(*c.m.CurrentSnapshotID) {
			ancestry[s.ID] = true
		}
	}
	for i := range c.snaps {
		s := &c.snaps[i]
		if s.broken || !ancestry[s.ID] {
			continue
		}
		var live, added, deleted totals
		for _, at := range s.manifests {
			m := c.manifests[at]
			live.merge(m.tally.live)
			if m.file.SnapshotID.Is(s.ID) {
				added.merge(m.tally.added)
				deleted.merge(m.tally.deleted)
			}
		}
		if c.m.CurrentSnapshotID != nil && s.ID == *c.m.CurrentSnapshotID {
			c.report.Stats.Rows = live.records
		}
		c.summary(s, live, added, deleted)
	}
	return nil
}

func (c *checker) summary(s *snapshot, live, added, deleted totals) {
	text := s.Summary()
	for _, t := range []struct {
		code Code
		name string
		n    int64
		// or is another right answer, where writers count differently.
		or int64
	}{
		{SummaryTotals, "total-data-files", live.data, live.data},
		{SummaryTotals, "total-delete-files", live.deletes, live.deletes},
		{SummaryTotals, "total-records", live.records, live.records},
		{SummaryTotals, "total-position-deletes", live.positions, live.positions},
		{SummaryTotals, "total-equality-deletes", live.equal, live.equal},
		{SummaryTotals, "total-files-size", live.bytes, live.content},
		{SummaryChanges, "added-data-files", added.data, added.data},
		{SummaryChanges, "added-delete-files", added.deletes, added.deletes},
		{SummaryChanges, "added-records", added.records, added.records},
		{SummaryChanges, "deleted-data-files", deleted.data, deleted.data},
		{SummaryChanges, "removed-delete-files", deleted.deletes, deleted.deletes},
		{SummaryChanges, "deleted-records", deleted.records, deleted.records},
	} {
		said, ok := text[t.name]
		if !ok {
			continue
		}
		severity := Warning
		if t.name == "total-files-size" && c.m.FormatVersion >= 3 {
			// Some writers count a vector by its blob and some by its whole file. A
			// total that both have added to and taken from is neither's.
			severity = Note
		}
		n, err := strconv.ParseInt(said, 10, 64)
		switch {
		case err != nil:
			c.found(t.code, Warning, s.subject(), "the summary says %s=%.40q, which is no number", t.name, said)
		case n != t.n && n != t.or:
			c.found(t.code, severity, s.subject(), "the summary says %s=%d, the manifests %d", t.name, n, t.n)
		}
	}
}
