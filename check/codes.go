package check

import "fmt"

// Code names a kind of finding. Codes are stable: scripts depend on them.
type Code string

// The codes by what they are about; docs/design/check.md describes each.
const (
	RecordUUID    Code = "record-uuid"
	RecordToken   Code = "record-token"
	RecordCopy    Code = "record-copy"
	RecordMoved   Code = "record-moved"
	RecordOutside Code = "record-location"

	MetadataMissing    Code = "metadata-missing"
	MetadataUnreadable Code = "metadata-unreadable"
	MetadataIDs        Code = "metadata-ids"
	MetadataLast       Code = "metadata-last"
	MetadataFields     Code = "metadata-partition-fields"
	MetadataSequence   Code = "metadata-sequence"
	MetadataTime       Code = "metadata-time"
	MetadataRowIDs     Code = "metadata-row-ids"
	MetadataSchema     Code = "metadata-schema"
	MetadataLog        Code = "metadata-log"
	MetadataLogFile    Code = "metadata-log-file"
	StatisticsMissing  Code = "statistics-missing"
	StatisticsSize     Code = "statistics-size"
	StatisticsSnapshot Code = "statistics-snapshot"

	ListMissing    Code = "list-missing"
	ListUnreadable Code = "list-unreadable"
	ListTwice      Code = "list-twice"
	ListLength     Code = "list-length"
	ListCounts     Code = "list-counts"
	ListMinSeq     Code = "list-min-sequence"
	ListSequence   Code = "list-sequence"
	ListSnapshot   Code = "list-added-snapshot"
	ListSummaries  Code = "list-summaries"
	ListRowIDs     Code = "list-row-ids"
	ListChanged    Code = "list-changed"

	ManifestMissing    Code = "manifest-missing"
	ManifestUnreadable Code = "manifest-unreadable"
	ManifestSpec       Code = "manifest-spec"
	ManifestLabel      Code = "manifest-label"

	EntrySnapshot Code = "entry-snapshot"
	EntrySequence Code = "entry-sequence"
	EntryTwice    Code = "entry-twice"
	EntryRowIDs   Code = "entry-row-ids"

	FileMissing     Code = "file-missing"
	FileSize        Code = "file-size"
	FilePath        Code = "file-path"
	FileRelative    Code = "file-relative"
	FileOutside     Code = "file-outside"
	FileForeign     Code = "file-foreign"
	FileFormat      Code = "file-format"
	FileBounds      Code = "file-bounds"
	FileBoundsText  Code = "file-bounds-text"
	FileCounts      Code = "file-counts"
	FileOffsets     Code = "file-split-offsets"
	FileColumn      Code = "file-unknown-column"
	FileEncrypted   Code = "file-encrypted"
	FileUnsupported Code = "unsupported"

	DeleteKeys     Code = "delete-equality-ids"
	DeleteDangling Code = "delete-dangling"
	DeleteSkipped  Code = "delete-not-looked-at"
	VectorFields   Code = "vector-fields"
	VectorTwice    Code = "vector-twice"

	SummaryTotals  Code = "summary-totals"
	SummaryChanges Code = "summary-changes"

	DeepUnreadable Code = "deep-unreadable"
	DeepRows       Code = "deep-rows"
	DeepBounds     Code = "deep-bounds"
	DeepFieldIDs   Code = "deep-field-ids"
	DeepPositions  Code = "deep-positions"
	DeepOrder      Code = "deep-order"
	DeepVector     Code = "deep-vector"
)

func more(n int64) string { return fmt.Sprintf(" (and %d more like it)", n) }
