// Package rewrite is the Parquet engine: it merges data files into new ones
// without ever making a row object, moves pages as they are wherever their
// meaning allows, and proves that what it wrote is what it read.
package rewrite

import (
	"context"
	"io"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/movement"
)

// Source is a data file to be merged, as its manifest entry describes it.
type Source struct {
	// Location is the file's name as the manifest spells it, At where it lies.
	Location string
	At       filer.Path
	Bytes    int64
	// Records is the entry's row count, which the footer must confirm.
	Records int64
	// Partition is the tuple under Type.
	Type      *iceberg.PartitionType
	Partition iceberg.Tuple
	// DataSeq is the data sequence number, for rows without a stored
	// _last_updated_sequence_number (v3).
	DataSeq iceberg.SeqNum
	// FirstRowID is the effective first row id; nil when the file has none (v3).
	FirstRowID *int64
	// Metrics are those of the entry.
	Metrics Metrics
	// Deleted are the rows to be left out, nil for none.
	Deleted *deletes.Positions
}

// Metrics are the statistics of a manifest entry by field id. A nil map is
// absent.
type Metrics struct {
	ColumnSizes map[iceberg.FieldID]int64  `json:"column-sizes,omitempty"`
	Values      map[iceberg.FieldID]int64  `json:"value-counts,omitempty"`
	Nulls       map[iceberg.FieldID]int64  `json:"null-counts,omitempty"`
	NaNs        map[iceberg.FieldID]int64  `json:"nan-counts,omitempty"`
	Lower       map[iceberg.FieldID][]byte `json:"lower-bounds,omitempty"`
	Upper       map[iceberg.FieldID][]byte `json:"upper-bounds,omitempty"`
}

// Table is what of a table decides how its files are written and read.
type Table struct {
	FormatVersion int
	// Schema is the current schema, which outputs are written with; History
	// and Names find columns in older files.
	Schema  *icego.Schema
	History *iceberg.History
	Names   icego.NameMapping
	// HasNames reports that the table has a name mapping.
	HasNames bool
	// Properties are the table's: write.parquet.*, write.metadata.metrics.*.
	Properties map[string]string
	// Order is the table's sort order, whose columns keep bounds; nil is unsorted.
	Order *iceberg.SortOrder
	// Type and Partition are the spec outputs are written under, and their tuple: that of all
	// sources.
	Type      *iceberg.PartitionType
	Partition iceberg.Tuple
}

// Copying says whether pages may be moved without being decoded.
type Copying uint8

// The choices.
const (
	// CopyWhereAllowed is the default.
	CopyWhereAllowed Copying = iota
	// CopyNever decodes and encodes everything.
	CopyNever
	// CopyForced copies wherever it is allowed, also where encoding anew would
	// make smaller files.
	CopyForced
)

// Verify says what is proved before a result is given.
type Verify uint8

// The choices (settings.md, verify).
const (
	VerifyContent Verify = iota
	VerifyCounts
	// VerifyRows also reads the stored files through another reader.
	VerifyRows
)

// String is the choice as settings spell it.
func (v Verify) String() string {
	switch v {
	case VerifyCounts:
		return "counts"
	case VerifyRows:
		return "rows"
	}
	return "content"
}

// Request is one unit of work: sources of one partition that become as few
// files as the target allows.
type Request struct {
	Table   Table
	Sources []Source
	// TargetBytes is the size that outputs have at most, give or take a tenth: there
	// are as few as that allows, and the last has half of it at least. MaxRows is
	// their greatest number of rows, 0 for none.
	TargetBytes int64
	MaxRows     int64
	Copying     Copying
	Verify      Verify
	// Recompress rewrites pages whose codec is right and level is not.
	Recompress bool
	// MemoryBytes bounds the buffers of the unit, 0 is 128 MiB. With little
	// memory columns are made one after the other; a unit that cannot be merged
	// with it is fault.TooLarge.
	MemoryBytes int64
	// Reader opens sources and, for VerifyRows, outputs.
	Reader filer.Reader
	// Open, if not nil, opens sources instead, for which At is not asked then. It
	// is called for several at a time.
	Open func(ctx context.Context, s *Source) (filer.Object, error)
	// Create begins output number n. When a merge is begun anew because it takes too
	// much memory it is called from 0 on again; nothing refers to the outputs of before.
	Create func(ctx context.Context, n int) (Sink, error)
	// Progress, if not nil, is told the bytes of sources read so far.
	Progress func(read int64)
}

// Sink is an output file being written. Write may be called with any length.
type Sink interface {
	io.Writer
	// Done makes the file durable and says where it is.
	Done(ctx context.Context) (Stored, error)
	// Abort gives the file up. It may be called after Done, without effect.
	Abort()
}

// Stored is a file that is durable.
type Stored struct {
	Location string     `json:"location"`
	At       filer.Path `json:"at"`
	Bytes    int64      `json:"bytes"`
}

// Output is a new data file.
type Output struct {
	Stored
	Records int64 `json:"records"`
	Metrics
	SplitOffsets []int64 `json:"split-offsets,omitempty"`
}

// Counts are what a merge did.
type Counts struct {
	RowsRead    int64 `json:"rows-read"`
	RowsDeleted int64 `json:"rows-deleted"`
	RowsWritten int64 `json:"rows-written"`
	BytesRead   int64 `json:"bytes-read"`
	// Bytes of column chunks by the way they were moved, as written.
	Verbatim     int64 `json:"bytes-verbatim"`
	Remapped     int64 `json:"bytes-remapped"`
	Recompressed int64 `json:"bytes-recompressed"`
	Encoded      int64 `json:"bytes-encoded"`
	// Proved is the number of values whose equality was proved.
	Proved int64 `json:"values-proved"`
}

// Proof is what shows that the outputs hold the rows of the sources.
type Proof struct {
	Verify string `json:"verify"`
	// Sum is a hash over all proved content, equal for source and output.
	Sum string `json:"sum"`
	Counts
}

// Result is a finished unit.
type Result struct {
	Outputs []Output
	Map     *movement.Map
	Proof   Proof
}
