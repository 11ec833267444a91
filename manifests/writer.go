package manifests

import (
	"io"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// WriterOptions describe a manifest to be written.
type WriterOptions struct {
	// Path is the location the manifest will have, for its ManifestFile.
	Path string
	// Version is the table's format version, 1 to 3.
	Version int
	Content ManifestContent
	// Partitioning is the schema and the spec.
	Partitioning *Partitioning
	// SnapshotID is the snapshot being committed.
	SnapshotID iceberg.SnapshotID
	// Codec compresses the blocks; deflate when empty.
	Codec avro.Codec
	// Level is the codec's level; 0 leaves the choice to the codec.
	Level int
}

// Writer writes one manifest as a stream. A failed Writer stays failed. It is
// not safe for concurrent use.
type Writer struct{}

// NewWriter writes the header of a manifest to out.
func NewWriter(out io.Writer, o WriterOptions) (*Writer, error) {
	return nil, fault.New(fault.Unsupported, "being built")
}

// Add writes a new file: ADDED, the committing snapshot, DataSeq if stored and
// else inherited, FileSeq inherited, no FirstRowID.
func (w *Writer) Add(e *Entry) error { return nil }

// Carry writes an entry on as EXISTING with snapshot id, data and file
// sequence number and first row id as they are in effect, and the rest byte
// for byte. A DELETED entry is refused (F025).
func (w *Writer) Carry(e *Entry) error { return nil }

// Delete writes a live entry as DELETED by the committing snapshot, with its
// own sequence numbers (F086).
func (w *Writer) Delete(e *Entry) error { return nil }

// Size is the number of bytes written so far, with an estimate for the block
// at hand.
func (w *Writer) Size() int64 { return 0 }

// Close ends the manifest and describes it for a list. A manifest without
// entries is refused. The underlying writer is the caller's.
func (w *Writer) Close() (*ManifestFile, error) { return nil, nil }

// ListOptions describe a manifest list to be written.
type ListOptions struct {
	// Version is the table's format version, 1 to 3.
	Version    int
	SnapshotID iceberg.SnapshotID
	// Parent is the parent snapshot, if there is one.
	Parent Opt[iceberg.SnapshotID]
	// Seq is the sequence number of the commit; unused in v1.
	Seq iceberg.SeqNum
	// FirstRowID is the head's next-row-id (v3).
	FirstRowID int64
	Codec      avro.Codec
	Level      int
}

// ListResult is what writing a list assigned.
type ListResult struct {
	// Manifests are the manifests as listed, with everything assigned.
	Manifests []*ManifestFile
	// AddedRows is the snapshot's added-rows: rows of manifests that got row
	// ids in this list (v3).
	AddedRows int64
	// NextRowID is the table's next-row-id after the commit (v3).
	NextRowID int64
}

// WriteList writes a manifest list. Manifests without a sequence number get
// the commit's; data manifests of a v3 list without first row id get one in
// list order.
func WriteList(out io.Writer, o ListOptions, manifests []*ManifestFile) (ListResult, error) {
	return ListResult{}, fault.New(fault.Unsupported, "being built")
}
