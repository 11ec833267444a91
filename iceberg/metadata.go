package iceberg

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// MainBranch is the name of the branch that every reader starts from.
const MainBranch = "main"

// Metadata is one version of a table's metadata: a typed view over the JSON it
// was read from, which stays available byte for byte. It is immutable; slices
// and maps must not be modified.
type Metadata struct {
	FormatVersion int
	// UUID is zero for a v1 table that has none.
	UUID     uuid.UUID
	Location string
	// LastSequenceNumber is 0 for v1.
	LastSequenceNumber SeqNum
	LastUpdatedMs      int64
	LastColumnID       FieldID
	Schemas            []*icego.Schema
	CurrentSchemaID    SchemaID
	Specs              []icego.PartitionSpec
	DefaultSpecID      SpecID
	LastPartitionID    FieldID
	SortOrders         []SortOrder
	DefaultSortOrderID SortOrderID
	Properties         map[string]string
	// CurrentSnapshotID is nil for a table without a current snapshot, however
	// the metadata says so.
	CurrentSnapshotID *SnapshotID
	// Snapshots are in the order of the JSON.
	Snapshots []Snapshot
	// Refs always hold main if there is a current snapshot, even where the JSON
	// does not.
	Refs                map[string]Ref
	SnapshotLog         []SnapshotLogEntry
	MetadataLog         []MetadataLogEntry
	Statistics          []StatisticsFile
	PartitionStatistics []StatisticsFile
	// NextRowID is nil before v3.
	NextRowID *int64
	// EncryptionKeyIDs are the ids of the encryption keys, in order.
	EncryptionKeyIDs []string

	raw       []byte
	snapshots map[SnapshotID]int
	history   func() *History
}

// Snapshot is one state of a table. It is immutable.
type Snapshot struct {
	ID SnapshotID
	// ParentID is nil for a snapshot without a parent. The parent may be expired.
	ParentID *SnapshotID
	// SequenceNumber is 0 where v1 wrote the snapshot (F084).
	SequenceNumber SeqNum
	TimestampMs    int64
	ManifestList   string
	// Manifests are the manifests of a v1 snapshot that embeds them instead of
	// naming a list (F084).
	Manifests []string
	// Operation is as written, also when it is none we know (F098), and empty
	// when there is none.
	Operation string
	// SchemaID is nil where the writer did not say.
	SchemaID *SchemaID
	// FirstRowID and AddedRows are nil before v3.
	FirstRowID *int64
	AddedRows  *int64
	// KeyID names the key the manifest list is encrypted with, or is empty.
	KeyID string

	raw     []byte
	summary []byte
}

// Raw is the JSON the snapshot was read from. It must not be modified.
func (s *Snapshot) Raw() []byte { return s.raw }

// Summary decodes the summary, the operation included. It is decoded anew by
// every call, because most snapshots of a table are never asked for theirs.
// Values that are not strings are given as their JSON text.
func (s *Snapshot) Summary() map[string]string {
	out := map[string]string{}
	if s.summary == nil {
		return out
	}
	// The text was checked when the snapshot was read.
	_ = rawjson.EachMember(s.summary, func(key, value []byte) error {
		text, err := rawjson.String(value)
		if err != nil {
			text = string(value)
		}
		out[string(key)] = text
		return nil
	})
	return out
}

// RefType tells branches from tags.
type RefType string

// The kinds of refs. Others are kept as written and count as tags, which
// nothing but their snapshot hangs on.
const (
	Branch RefType = "branch"
	Tag    RefType = "tag"
)

// Ref is a named pointer to a snapshot with its retention. Nil retention means
// the table's default.
type Ref struct {
	SnapshotID         SnapshotID
	Type               RefType
	MinSnapshotsToKeep *int64
	MaxSnapshotAgeMs   *int64
	MaxRefAgeMs        *int64
}

// SnapshotLogEntry says from when on a snapshot was the current one.
type SnapshotLogEntry struct {
	SnapshotID  SnapshotID
	TimestampMs int64
}

// MetadataLogEntry names an earlier metadata file.
type MetadataLogEntry struct {
	MetadataFile string
	TimestampMs  int64
}

// StatisticsFile is a statistics or partition statistics file of a snapshot.
type StatisticsFile struct {
	SnapshotID SnapshotID
	Path       string
	SizeBytes  int64
	// KeyMetadata reports whether the file is encrypted.
	KeyMetadata bool

	raw []byte
}

// Raw is the JSON the entry was read from. It must not be modified.
func (s StatisticsFile) Raw() []byte { return s.raw }

// SortOrder is a declared order. Order 0 has no fields and means unsorted.
type SortOrder struct {
	ID     SortOrderID
	Fields []SortField
}

// SortField is one term of a sort order.
type SortField struct {
	// SourceIDs are the columns the transform takes; all but multi-argument
	// transforms take one.
	SourceIDs  []FieldID
	Transform  icego.Transform
	Descending bool
	NullsLast  bool
}

// Raw is the JSON the metadata was read from, uncompressed. It must not be
// modified.
func (m *Metadata) Raw() []byte { return m.raw }

// Snapshot returns the snapshot with the id.
func (m *Metadata) Snapshot(id SnapshotID) (*Snapshot, bool) {
	i, ok := m.snapshots[id]
	if !ok {
		return nil, false
	}
	return &m.Snapshots[i], true
}

// Current is the head of the main branch, or nil.
func (m *Metadata) Current() *Snapshot {
	if m.CurrentSnapshotID == nil {
		return nil
	}
	s, _ := m.Snapshot(*m.CurrentSnapshotID)
	return s
}

// Branch returns the head of the named branch. A tag is no branch.
func (m *Metadata) Branch(name string) (*Snapshot, bool) {
	ref, ok := m.Refs[name]
	if !ok || ref.Type != Branch {
		return nil, false
	}
	return m.Snapshot(ref.SnapshotID)
}

// RefNames are the names of all refs in order.
func (m *Metadata) RefNames() []string { return slices.Sorted(maps.Keys(m.Refs)) }

// Schema returns the schema with the id.
func (m *Metadata) Schema(id SchemaID) (*icego.Schema, bool) {
	for _, s := range m.Schemas {
		if SchemaID(s.ID) == id {
			return s, true
		}
	}
	return nil, false
}

// CurrentSchema is the schema new data is written with.
func (m *Metadata) CurrentSchema() *icego.Schema {
	s, _ := m.Schema(m.CurrentSchemaID) // checked when the metadata was read
	return s
}

// Spec returns the partition spec with the id.
func (m *Metadata) Spec(id SpecID) (*icego.PartitionSpec, bool) {
	for i := range m.Specs {
		if SpecID(m.Specs[i].ID()) == id {
			return &m.Specs[i], true
		}
	}
	return nil, false
}

// DefaultSpec is the partition spec new data is written with.
func (m *Metadata) DefaultSpec() *icego.PartitionSpec {
	s, _ := m.Spec(m.DefaultSpecID) // checked when the metadata was read
	return s
}

// SortOrder returns the sort order with the id. Order 0 always exists.
func (m *Metadata) SortOrder(id SortOrderID) (SortOrder, bool) {
	for _, o := range m.SortOrders {
		if o.ID == id {
			return o, true
		}
	}
	return SortOrder{}, id == 0
}

// History is what the schemas of the table over time say about its columns.
func (m *Metadata) History() *History { return m.history() }

// Plaintext returns fault.Unsupported, with the feature named, if anything the
// metadata shows is encrypted: keys, a snapshot's key-id, a statistics file's
// key metadata, or the property encryption.key-id (F099). Files may still carry
// key metadata of their own.
func (m *Metadata) Plaintext() error {
	what := ""
	switch {
	case len(m.EncryptionKeyIDs) > 0:
		what = "field \"encryption-keys\""
	case m.Properties["encryption.key-id"] != "":
		what = "property \"encryption.key-id\""
	}
	for i := range m.Snapshots {
		if m.Snapshots[i].KeyID != "" {
			what = fmt.Sprintf("key-id of snapshot %d", m.Snapshots[i].ID)
		}
	}
	for _, files := range [][]StatisticsFile{m.Statistics, m.PartitionStatistics} {
		for _, s := range files {
			if s.KeyMetadata {
				what = fmt.Sprintf("key-metadata of statistics of snapshot %d", s.SnapshotID)
			}
		}
	}
	if what == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "table is encrypted: "+what)
}

// IntProperty reads a whole number. A missing property is fallback; one that is
// no number is fault.Unsupported.
func (m *Metadata) IntProperty(name string, fallback int64) (int64, error) {
	text, ok := m.Properties[name]
	if !ok {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, fault.Wrap(fault.Unsupported, fmt.Sprintf("read the table property %s = %q", name, text), err)
}

func (m *Metadata) index() error {
	m.snapshots = make(map[SnapshotID]int, len(m.Snapshots))
	for i := range m.Snapshots {
		id := m.Snapshots[i].ID
		if _, ok := m.snapshots[id]; ok {
			return fault.New(fault.Corrupt, fmt.Sprintf("snapshot id %d occurs twice", id))
		}
		m.snapshots[id] = i
	}
	m.history = sync.OnceValue(func() *History { return newHistory(m) })
	return nil
}
