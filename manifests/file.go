package manifests

import (
	"bytes"
	"slices"

	"github.com/seaice/seaice/iceberg"
)

// ManifestContent is what a manifest holds (field 517).
type ManifestContent int8

// The contents by their numbers in a manifest list.
const (
	DataManifest   ManifestContent = 0
	DeleteManifest ManifestContent = 1
)

// String is the content as a manifest's header spells it.
func (c ManifestContent) String() string {
	switch c {
	case DataManifest:
		return "data"
	case DeleteManifest:
		return "deletes"
	}
	return "invalid"
}

// FieldSummary is what a list says about one partition field of a manifest
// (record 508).
type FieldSummary struct {
	ContainsNull bool
	// ContainsNaN is absent where the writer did not look.
	ContainsNaN Opt[bool]
	// Lower and Upper are in single-value encoding; nil where the list holds
	// null.
	Lower, Upper []byte
}

// ManifestFile is one manifest as a manifest list describes it. One that a
// Writer made is not assigned yet: Seq is absent, and the list gives it.
type ManifestFile struct {
	// Path is the location as written (field 500).
	Path string
	// Length is the size in bytes.
	Length int64
	SpecID iceberg.SpecID
	// Content decides what the manifest holds; its own header may be wrong
	// (F081).
	Content ManifestContent
	// Seq is the sequence number of the commit that added the manifest; 0 in v1.
	Seq Opt[iceberg.SeqNum]
	// MinSeq is the least data sequence number of its live entries; 0 is a
	// value, not a gap (F085).
	MinSeq Opt[iceberg.SeqNum]
	// SnapshotID is the snapshot that added the manifest.
	SnapshotID Opt[iceberg.SnapshotID]
	// The numbers of files and rows by status. Absent in old v1 lists, which
	// means unknown and never zero (F077).
	AddedFiles, ExistingFiles, DeletedFiles Opt[int64]
	AddedRows, ExistingRows, DeletedRows    Opt[int64]
	// Partitions has a summary for each field of the spec. Nil is null, which
	// is not the same as empty (F080).
	Partitions []FieldSummary
	// KeyMetadata is not nil when the manifest is encrypted.
	KeyMetadata []byte
	// FirstRowID begins the range of row ids for the manifest's files (v3).
	FirstRowID Opt[int64]

	// embedded: from a v1 snapshot without list; the spec is in the header.
	embedded bool
	extra    []extraValue
}

// Embedded describes a manifest that a v1 snapshot names without a list
// (F084). Counts, length and spec are unknown until
// Recount has read it.
func Embedded(path string, snapshot iceberg.SnapshotID) *ManifestFile {
	zero := Opt[iceberg.SeqNum]{From: Inherited}
	return &ManifestFile{Path: path, Seq: zero, MinSeq: zero, SnapshotID: Some(snapshot), embedded: true}
}

// Counted reports whether every count is known.
func (m *ManifestFile) Counted() bool {
	return m.AddedFiles.Known() && m.ExistingFiles.Known() && m.DeletedFiles.Known() &&
		m.AddedRows.Known() && m.ExistingRows.Known() && m.DeletedRows.Known()
}

// NeedsCount reports whether the manifest can only be listed in the format
// version after Recount has read it: lists of v2 and later have no room for
// unknown counts, and no list for an embedded one (F077, F084).
func (m *ManifestFile) NeedsCount(version int) bool {
	return m.embedded || version >= 2 && (!m.Counted() || m.Seq.Known() && !m.MinSeq.Known())
}

// MayHaveLive reports whether the manifest may hold live entries: it does
// unless both counts are known to be zero (F077, F079).
func (m *ManifestFile) MayHaveLive() bool {
	return !m.AddedFiles.Is(0) || !m.ExistingFiles.Is(0)
}

// MayHaveDeleted reports whether the manifest may hold DELETED entries.
func (m *ManifestFile) MayHaveDeleted() bool { return !m.DeletedFiles.Is(0) }

// LiveFiles is the number of live entries, if known.
func (m *ManifestFile) LiveFiles() (int64, bool) {
	return m.AddedFiles.Value + m.ExistingFiles.Value, m.AddedFiles.Known() && m.ExistingFiles.Known()
}

// LiveRows is the number of rows of live entries, if known.
func (m *ManifestFile) LiveRows() (int64, bool) {
	return m.AddedRows.Value + m.ExistingRows.Value, m.AddedRows.Known() && m.ExistingRows.Known()
}

// Summaries are the partition summaries if there is one for each field of the
// spec, and nil otherwise. Some writers leave out fields whose source column is
// gone; summaries go by position, so theirs say nothing (F066).
func (m *ManifestFile) Summaries(t *iceberg.PartitionType) []FieldSummary {
	if len(m.Partitions) != len(t.Fields) {
		return nil
	}
	return m.Partitions
}

// Clone returns a copy that shares nothing.
func (m *ManifestFile) Clone() *ManifestFile {
	c := *m
	c.Partitions = slices.Clone(m.Partitions)
	for i := range c.Partitions {
		c.Partitions[i].Lower = bytes.Clone(c.Partitions[i].Lower)
		c.Partitions[i].Upper = bytes.Clone(c.Partitions[i].Upper)
	}
	c.KeyMetadata = bytes.Clone(m.KeyMetadata)
	c.extra = slices.Clone(m.extra)
	return &c
}
