package manifests

import (
	"context"
	"io"
	"iter"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Projection says which groups of an entry's fields are decoded. Status, ids,
// sequence numbers, content, counts of rows and bytes, key metadata and what
// identifies a delete always are; groups that are left out read as nil. What
// is carried is complete whatever the projection.
type Projection uint8

// The groups.
const (
	ProjectPath      Projection = 1 << iota // Path and ReferencedDataFile
	ProjectPartition                        // Partition
	ProjectCounts                           // ColumnSizes, ValueCounts, NullCounts, NaNCounts
	ProjectBounds                           // Lower, Upper
	ProjectOffsets                          // SplitOffsets, EqualityIDs
	ProjectAll       = ProjectPath | ProjectPartition | ProjectCounts | ProjectBounds | ProjectOffsets
)

// ReadOptions of a manifest.
type ReadOptions struct {
	// Projection is ProjectAll when zero.
	Projection Projection
	// Partitioning gives the types of the tuple. When nil they come from the
	// manifest's own header.
	Partitioning *Partitioning
}

// Header is what a manifest says about itself.
type Header struct {
	// Version is the format version the manifest's entries have.
	Version int
	// Content is what the header says, which may be wrong (F081).
	Content ManifestContent
	// Partitioning is the spec and the schema of the header.
	Partitioning *Partitioning
}

// Partitioning is what a manifest is written under: the schema and the spec,
// as text and with the type of each partition field.
type Partitioning struct {
	SpecID iceberg.SpecID
}

// Reader reads the entries of one manifest, one at a time, from a stream. It
// is not safe for concurrent use.
type Reader struct{}

// NewReader reads the header of manifest m from in.
func NewReader(ctx context.Context, in io.Reader, m *ManifestFile, o ReadOptions) (*Reader, error) {
	return nil, fault.New(fault.Unsupported, "being built")
}

// Header is what the manifest says about itself.
func (r *Reader) Header() Header { return Header{} }

// Entries yields the entries in order, DELETED ones included, with everything
// inherited filled in. It can be ranged over once and ends after the first
// error. The entry is valid until the next one.
func (r *Reader) Entries() iter.Seq2[*Entry, error] { return nil }

// ReadManifest yields the entries of manifest m read from in, as
// Reader.Entries does.
func ReadManifest(ctx context.Context, in io.Reader, m *ManifestFile, o ReadOptions) iter.Seq2[*Entry, error] {
	return nil
}

// ReadList yields the manifests of the list read from in; name is its file's.
// The format version is inferred from the writer's schema; a header that
// claims less than the fields it carries is Corrupt (F081).
func ReadList(ctx context.Context, in io.Reader, name string) iter.Seq2[*ManifestFile, error] {
	return nil
}

type rawEntry struct{}

func (r rawEntry) clone() rawEntry { return r }

type extraValue struct{}
