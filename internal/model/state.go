package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// RowID is the model's own name of a row: one number per row ever written to a
// table. Rewrites keep it, updates make a new one.
type RowID int64

// Content is what a file holds.
type Content uint8

const (
	// Data is a data file.
	Data Content = iota
	// PositionDeletes is a Parquet file of paths and positions.
	PositionDeletes
	// EqualityDeletes is a Parquet file of keys.
	EqualityDeletes
	// Vector is a deletion vector: one blob of a Puffin file.
	Vector
)

// String names the content as tests print it.
func (c Content) String() string {
	return [...]string{"data", "position deletes", "equality deletes", "vector"}[c]
}

// File is a data file, a delete file or a deletion vector. It never changes.
type File struct {
	// Path is how manifests spell it; At is where the filer has it.
	Path string
	At   filer.Path
	// Content says which of the fields below are set.
	Content Content
	// Format as the manifest spells it.
	Format string
	Spec   iceberg.SpecID
	// Partition is the tuple by partition field id.
	Partition Row
	Records   int64
	Size      int64

	// Rows says which row is at which position of a data file; Written are
	// the values in the file.
	Rows    []RowID
	Written []Row
	// RowIDs and Updated are the stored lineage columns of a v3 data file; nil
	// when the file has none. A negative element is null.
	RowIDs  []int64
	Updated []int64

	// Positions are the deleted positions by data file path.
	Positions map[string][]int64
	// Keys are the rows of an equality delete file, over KeyFields.
	Keys      []Row
	KeyFields []iceberg.FieldID
	// Referenced is the data file a delete says it is for, or empty.
	Referenced string
	// Offset and Length are where a vector's blob lies.
	Offset, Length int64

	Metrics      Metrics
	SplitOffsets []int64
	SortOrder    *iceberg.SortOrderID
	KeyMetadata  []byte

	// schema is what a data file was written under, of others' files what their
	// snapshot has.
	schema *icego.Schema
}

// identity tells files apart; vectors share a path.
type identity struct {
	path           string
	offset, length int64
}

func (f *File) identity() identity { return identity{f.Path, f.Offset, f.Length} }

// Metrics are the statistics of a manifest entry by field id; nil maps are
// absent.
type Metrics struct {
	ColumnSizes map[int]int64
	Values      map[int]int64
	Nulls       map[int]int64
	NaNs        map[int]int64
	Lower       map[int][]byte
	Upper       map[int][]byte
}

// Status of a manifest entry, as stored.
type Status uint8

const (
	// Existing: carried from an earlier manifest.
	Existing Status = iota
	// Added by the snapshot of the manifest.
	Added
	// Deleted by the snapshot of the manifest.
	Deleted
)

// Entry is one entry of a manifest with all inherited values filled in.
type Entry struct {
	Status   Status
	Snapshot iceberg.SnapshotID
	Seq      iceberg.SeqNum
	FileSeq  iceberg.SeqNum
	// FirstRowID is nil for deletes and for data files of tables that never
	// had lineage.
	FirstRowID *int64
	File       *File

	// explicitSeq makes an ADDED entry carry its data sequence number.
	explicitSeq bool
	// ownRowID says that FirstRowID is written in the entry itself.
	ownRowID bool
	// kinds are the Go types of the partition tuple as the manifest has it.
	kinds string
}

// Live reports whether the entry is part of the table.
func (e *Entry) Live() bool { return e.Status != Deleted }

// Manifest is one manifest as a snapshot's list shows it.
type Manifest struct {
	Path     string
	At       filer.Path
	Length   int64
	Spec     iceberg.SpecID
	Deletes  bool
	Seq      iceberg.SeqNum
	MinSeq   iceberg.SeqNum
	Snapshot iceberg.SnapshotID
	// Version is the format version of the manifest itself.
	Version int
	// FirstRowID is nil before a v3 list has assigned one, and for deletes.
	FirstRowID *int64
	Entries    []*Entry
	Summaries  []Summary
	// Style it was written in; zero for those of others.
	Style Style
	// foreign: somebody else wrote it.
	foreign bool
	// numbered is the snapshot whose list gave it FirstRowID.
	numbered iceberg.SnapshotID
}

// Counts are the files and rows of a manifest by status.
type Counts struct {
	Files [3]int
	Rows  [3]int64
}

// Counts counts the entries; index with Existing, Added, Deleted.
func (m *Manifest) Counts() Counts {
	var c Counts
	for _, e := range m.Entries {
		c.Files[e.Status]++
		c.Rows[e.Status] += e.File.Records
	}
	return c
}

// Snapshot is one state of the table.
type Snapshot struct {
	ID        iceberg.SnapshotID
	Parent    iceberg.SnapshotID // 0 for none
	Seq       iceberg.SeqNum
	TimeMs    int64
	Operation string
	Schema    iceberg.SchemaID
	// List is the manifest list's path; empty when the manifests are embedded.
	List      string
	Manifests []*Manifest
	// Rows are the rows of the snapshot, ascending. They come from what the
	// operations mean and not from the files.
	Rows []RowID
	// Foreign is set for snapshots that somebody else committed.
	Foreign bool
}

// Entries are all live entries of data files, or of delete files.
func (s *Snapshot) entries(deletes bool) []*Entry {
	var out []*Entry
	for _, m := range s.Manifests {
		if m.Deletes != deletes {
			continue
		}
		for _, e := range m.Entries {
			if e.Live() {
				out = append(out, e)
			}
		}
	}
	return out
}

// DataFiles are the live data files in the order of the manifests.
func (s *Snapshot) DataFiles() []*Entry { return s.entries(false) }

// DeleteFiles are the live delete files and vectors.
func (s *Snapshot) DeleteFiles() []*Entry { return s.entries(true) }

// rowSet is a set that a commit works on.
type rowSet map[RowID]struct{}

func newRowSet(rows []RowID) rowSet {
	s := make(rowSet, len(rows))
	for _, r := range rows {
		s[r] = struct{}{}
	}
	return s
}

func (s rowSet) sorted() []RowID { return slices.Sorted(maps.Keys(s)) }

func (s rowSet) has(r RowID) bool {
	_, ok := s[r]
	return ok
}

// kindsOf are the Go types of a tuple as a manifest with partition type t has
// it, with integers as one type.
func kindsOf(t *icego.StructType, p Row) string {
	var b strings.Builder
	for _, f := range t.FieldList {
		switch v := promote(f.Type, p[iceberg.FieldID(f.ID)]).(type) {
		case int32, int64:
			b.WriteString("int ")
		default:
			fmt.Fprintf(&b, "%T ", v)
		}
	}
	return b.String()
}

// tuple is the partition as text, equal for equal partitions of one spec.
func tuple(spec icego.PartitionSpec, s *icego.Schema, p Row) string {
	t := spec.PartitionType(s)
	return Canonical(t, p)
}
