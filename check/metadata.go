package check

import (
	"context"
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// clockSlackMs is how far clocks of two writers may differ before times that
// run backwards are worth a word; Iceberg's own writers allow as much.
const clockSlackMs = 60_000

// metadata checks what reading the metadata does not refuse already: that
// refuses double ids of snapshots, schemas, specs and orders, ids that do not
// resolve, cycles, refs to nowhere and sequence numbers above the last.
func (c *checker) metadata(ctx context.Context) error {
	c.lastIDs()
	c.partitionFields()
	c.ancestry()
	c.log()
	if err := c.m.Plaintext(); err != nil {
		c.found(FileEncrypted, Note, "metadata", "%v", err)
	}
	for _, e := range c.m.MetadataLog {
		if _, err := c.loc.Find(ctx, c.r, e.MetadataFile); filer.NotFound(err) {
			c.addGroup(Finding{Code: MetadataLogFile, Severity: Warning, Subject: e.MetadataFile, Text: "an earlier metadata file of the log does not exist"})
		} else if err != nil {
			if err := c.wrong(MetadataLogFile, MetadataLogFile, e.MetadataFile, err); err != nil {
				return err
			}
		}
	}
	return c.statistics(ctx)
}

func (c *checker) lastIDs() {
	for _, s := range c.m.Schemas {
		if top := iceberg.FieldID(s.HighestFieldID()); top > c.m.LastColumnID {
			c.found(MetadataLast, Error, "metadata", "last-column-id is %d, but schema %d has column %d", c.m.LastColumnID, s.ID, top)
		}
	}
	for i := range c.m.Specs {
		s := &c.m.Specs[i]
		if s.NumFields() > 0 && iceberg.FieldID(s.LastAssignedFieldID()) > c.m.LastPartitionID {
			c.found(MetadataLast, Error, "metadata", "last-partition-id is %d, but spec %d has field %d", c.m.LastPartitionID, s.ID(), s.LastAssignedFieldID())
		}
	}
}

// partitionFields looks for one field id that means two things, and for one
// field with two ids (F070). v1 numbers fields by position and may do both; a
// void field shows that specs go back to v1, because only there removed fields
// stay.
func (c *checker) partitionFields() {
	severity := Warning
	for i := range c.m.Specs {
		for _, f := range c.m.Specs[i].Fields() {
			if _, void := f.Transform.(icego.VoidTransform); void || c.m.FormatVersion == 1 {
				severity = Note
			}
		}
	}
	byID, byMeaning := map[int]string{}, map[string]int{}
	for i := range c.m.Specs {
		for _, f := range c.m.Specs[i].Fields() {
			if _, void := f.Transform.(icego.VoidTransform); void {
				continue
			}
			meaning := fmt.Sprintf("%s of columns %v", f.Transform, f.SourceIDs)
			if other, ok := byID[f.FieldID]; ok && other != meaning {
				c.found(MetadataFields, severity, "metadata", "partition field id %d is %s and %s", f.FieldID, other, meaning)
			} else if id, ok := byMeaning[meaning]; ok && id != f.FieldID {
				c.found(MetadataFields, severity, "metadata", "%s has the partition field ids %d and %d", meaning, id, f.FieldID)
			}
			byID[f.FieldID], byMeaning[meaning] = meaning, f.FieldID
		}
	}
}

func (c *checker) ancestry() {
	seqs := map[iceberg.SeqNum]iceberg.SnapshotID{}
	for i := range c.m.Snapshots {
		s := &c.m.Snapshots[i]
		subject := fmt.Sprintf("snapshot %d", s.ID)
		if s.ID <= 0 {
			c.found(MetadataIDs, Warning, subject, "the snapshot id is not positive") // F121
		}
		if s.SchemaID != nil {
			if _, ok := c.m.Schema(*s.SchemaID); !ok {
				c.found(MetadataSchema, Error, subject, "there is no schema %d", *s.SchemaID)
			}
		}
		if s.TimestampMs > c.m.LastUpdatedMs+clockSlackMs {
			c.found(MetadataTime, Warning, subject, "it is %d ms newer than the table's last change", s.TimestampMs-c.m.LastUpdatedMs)
		}
		if s.SequenceNumber > 0 {
			if other, twice := seqs[s.SequenceNumber]; twice {
				c.found(MetadataSequence, Error, subject, "it has sequence number %d, as snapshot %d has", s.SequenceNumber, other)
			}
			seqs[s.SequenceNumber] = s.ID
		}
		c.snapshotRows(s, subject)
		if s.ParentID == nil {
			continue
		}
		parent, ok := c.m.Snapshot(*s.ParentID)
		if !ok {
			continue // expired
		}
		if s.SequenceNumber < parent.SequenceNumber || s.SequenceNumber == parent.SequenceNumber && s.SequenceNumber > 0 {
			c.found(MetadataSequence, Error, subject, "it has sequence number %d, its parent %d has %d", s.SequenceNumber, parent.ID, parent.SequenceNumber)
		}
		if s.TimestampMs < parent.TimestampMs-clockSlackMs {
			c.found(MetadataTime, Warning, subject, "it is %d ms older than its parent %d", parent.TimestampMs-s.TimestampMs, parent.ID)
		}
	}
}

// snapshotRows checks the row ids a snapshot took (v3).
func (c *checker) snapshotRows(s *iceberg.Snapshot, subject string) {
	if c.m.NextRowID == nil || s.FirstRowID == nil {
		return
	}
	if s.AddedRows == nil {
		c.found(MetadataRowIDs, Error, subject, "it has a first-row-id but no added-rows")
		return
	}
	if *s.FirstRowID > *c.m.NextRowID || *s.AddedRows > *c.m.NextRowID-*s.FirstRowID {
		c.found(MetadataRowIDs, Error, subject, "its row ids %d+%d pass the table's next-row-id %d", *s.FirstRowID, *s.AddedRows, *c.m.NextRowID)
	}
}

// log checks the snapshot log.
func (c *checker) log() {
	var before int64
	for i, e := range c.m.SnapshotLog {
		if e.TimestampMs < before-clockSlackMs {
			c.found(MetadataLog, Warning, "metadata", "snapshot-log entry %d is %d ms older than the one before", i, before-e.TimestampMs)
		}
		before = max(before, e.TimestampMs)
		if _, ok := c.m.Snapshot(e.SnapshotID); !ok {
			c.found(MetadataLog, Warning, "metadata", "snapshot-log entry %d names snapshot %d, which does not exist", i, e.SnapshotID)
		}
	}
	if n := len(c.m.SnapshotLog); n > 0 && c.m.CurrentSnapshotID != nil && c.m.SnapshotLog[n-1].SnapshotID != *c.m.CurrentSnapshotID {
		c.found(MetadataLog, Warning, "metadata", "the last snapshot-log entry names snapshot %d, the current one is %d",
			c.m.SnapshotLog[n-1].SnapshotID, *c.m.CurrentSnapshotID)
	}
}

func (c *checker) statistics(ctx context.Context) error {
	for _, files := range [][]iceberg.StatisticsFile{c.m.Statistics, c.m.PartitionStatistics} {
		for _, f := range files {
			if _, ok := c.m.Snapshot(f.SnapshotID); !ok {
				c.found(StatisticsSnapshot, Warning, f.Path, "the file describes snapshot %d, which does not exist", f.SnapshotID)
			}
			e, err := c.loc.Find(ctx, c.r, f.Path)
			if err != nil {
				if err := c.wrong(StatisticsMissing, StatisticsMissing, f.Path, err); err != nil {
					return err
				}
				continue
			}
			if e.Size != f.SizeBytes {
				c.found(StatisticsSize, Error, f.Path, "the file has %d bytes, the metadata says %d", e.Size, f.SizeBytes)
			}
		}
	}
	return nil
}
