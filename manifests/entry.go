package manifests

import (
	"bytes"
	"slices"
	"strings"

	"github.com/seaice/seaice/iceberg"
)

// Status is what a manifest says happened to a file (field 0).
type Status int8

// The statuses by their numbers in a manifest.
const (
	Existing Status = 0
	Added    Status = 1
	Deleted  Status = 2
)

// String is the status as the spec spells it.
func (s Status) String() string {
	switch s {
	case Existing:
		return "EXISTING"
	case Added:
		return "ADDED"
	case Deleted:
		return "DELETED"
	}
	return "invalid"
}

// Content is what a file holds (field 134).
type Content int8

// The contents by their numbers in a manifest.
const (
	Data            Content = 0
	PositionDeletes Content = 1 // deletion vectors too, see Entry.IsVector
	EqualityDeletes Content = 2
)

// String is the content in words.
func (c Content) String() string {
	switch c {
	case Data:
		return "data"
	case PositionDeletes:
		return "position deletes"
	case EqualityDeletes:
		return "equality deletes"
	}
	return "invalid"
}

// Kind is what a manifest holds (field 517).
func (c Content) Kind() ManifestContent {
	if c == Data {
		return DataManifest
	}
	return DeleteManifest
}

// Format is a file format, spelled as its constant whatever the case in the
// manifest (F089). The spelling read is written again.
type Format string

// The formats of the spec.
const (
	Parquet Format = "PARQUET"
	Avro    Format = "AVRO"
	ORC     Format = "ORC"
	Puffin  Format = "PUFFIN"
)

// Count is a number about one column.
type Count struct {
	Column iceberg.FieldID
	N      int64
}

// Counts are numbers by column in the order of the manifest: column sizes in
// bytes, or numbers of values. Nil is null, which is not the same as empty
// (F087).
type Counts []Count

// Of returns the number for the column.
func (c Counts) Of(column iceberg.FieldID) (int64, bool) {
	for i := range c {
		if c[i].Column == column {
			return c[i].N, true
		}
	}
	return 0, false
}

// Bound is a lower or upper bound of one column in Iceberg's single-value
// encoding, byte for byte as read, valid or not (F045).
type Bound struct {
	Column iceberg.FieldID
	Value  []byte
}

// Bounds are bounds by column in the order of the manifest. Nil is null.
type Bounds []Bound

// Of returns the bound of the column.
func (b Bounds) Of(column iceberg.FieldID) ([]byte, bool) {
	for i := range b {
		if b[i].Column == column {
			return b[i].Value, true
		}
	}
	return nil, false
}

// File is a data or delete file as a manifest describes it (the data_file
// record, field 2). Slices are nil where the manifest holds null and empty
// where it holds an empty list.
type File struct {
	Content Content
	// Path is the location as written (field 100).
	Path   string
	Format Format
	// SpecID is the spec the tuple belongs to, from the manifest list.
	SpecID iceberg.SpecID
	// Partition is the tuple in the order of the spec's fields (field 102).
	Partition iceberg.Tuple
	// Records is the number of rows, for a deletion vector its cardinality.
	Records int64
	// Bytes is the size of the whole file.
	Bytes int64

	ColumnSizes Counts
	ValueCounts Counts
	NullCounts  Counts
	NaNCounts   Counts
	Lower       Bounds
	Upper       Bounds

	// KeyMetadata is not nil when the file is encrypted.
	KeyMetadata  []byte
	SplitOffsets []int64
	// EqualityIDs are the columns of an equality delete.
	EqualityIDs []iceberg.FieldID
	SortOrderID Opt[iceberg.SortOrderID]
	// FirstRowID is the row id of the first row, stored or inherited (v3).
	FirstRowID Opt[int64]
	// ReferencedDataFile is the only data file a position delete or vector
	// applies to.
	ReferencedDataFile Opt[string]
	// ContentOffset and ContentSize locate a deletion vector in its Puffin file.
	ContentOffset Opt[int64]
	ContentSize   Opt[int64]

	// spelling is Format as read, when it is spelled otherwise.
	spelling string
	// blockSize is field 105, which only v1 has.
	blockSize Opt[int64]
}

// Entry is one entry of a manifest: a file and what happened to it.
//
// An entry from a Reader is valid until the next one is read; Clone keeps it.
// Carry and Delete of a Writer write the bytes the entry was read from, so
// changing the fields of such an entry changes nothing there; Add and Put
// write the fields.
type Entry struct {
	Status Status
	// SnapshotID is the snapshot that added the file, or removed it.
	SnapshotID Opt[iceberg.SnapshotID]
	// DataSeq is the data sequence number. A live entry always has one; an
	// ADDED entry about to be written may leave it to be inherited.
	DataSeq Opt[iceberg.SeqNum]
	// FileSeq is the sequence number of the snapshot that added the file.
	FileSeq Opt[iceberg.SeqNum]
	File

	raw rawEntry
}

// PartitionKey names the partition of the file.
func (f *File) PartitionKey() iceberg.PartitionKey {
	return iceberg.PartitionKey{Spec: f.SpecID, Tuple: f.Partition.Key()}
}

// Live reports whether the file is part of the snapshot.
func (e *Entry) Live() bool { return e.Status != Deleted }

// IsVector reports whether the file is a deletion vector.
func (e *Entry) IsVector() bool { return e.Content == PositionDeletes && e.Format == Puffin }

// Clone returns a copy that stays valid.
func (e *Entry) Clone() *Entry {
	c := *e
	c.ColumnSizes = slices.Clone(e.ColumnSizes)
	c.ValueCounts = slices.Clone(e.ValueCounts)
	c.NullCounts = slices.Clone(e.NullCounts)
	c.NaNCounts = slices.Clone(e.NaNCounts)
	c.Lower = e.Lower.clone()
	c.Upper = e.Upper.clone()
	c.KeyMetadata = bytes.Clone(e.KeyMetadata)
	c.SplitOffsets = slices.Clone(e.SplitOffsets)
	c.EqualityIDs = slices.Clone(e.EqualityIDs)
	c.raw = e.raw.clone()
	return &c
}

func (b Bounds) clone() Bounds {
	if b == nil {
		return nil
	}
	c := make(Bounds, len(b))
	for i := range b {
		c[i] = Bound{Column: b[i].Column, Value: bytes.Clone(b[i].Value)}
	}
	return c
}

// setFormat reads a format in any case and remembers a spelling that is not
// the constant's.
func (f *File) setFormat(spelled []byte) {
	if f.Format != "" && f.spelling != "" && f.spelling == string(spelled) {
		return // as the entry before
	}
	f.spelling = ""
	for _, known := range [...]Format{Parquet, Puffin, Avro, ORC} {
		if string(known) == string(spelled) {
			f.Format = known
			return
		}
	}
	f.spelling = string(spelled)
	f.Format = Format(strings.ToUpper(f.spelling))
}

// formatName is the format as it is written.
func (f *File) formatName() string {
	if f.spelling != "" && strings.EqualFold(f.spelling, string(f.Format)) {
		return f.spelling
	}
	return string(f.Format)
}
