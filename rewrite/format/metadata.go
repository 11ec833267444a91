// Package format is what Parquet files say about themselves: footers, page
// headers, indexes and bloom filter headers, read and written with every
// presence kept. A value that a file leaves out stays left out; it never becomes
// zero (parquet-format, parquet.thrift).
package format

// Type is a physical type by its number in parquet.thrift.
type Type int32

// The physical types.
const (
	Boolean           Type = 0
	Int32             Type = 1
	Int64             Type = 2
	Int96             Type = 3
	Float             Type = 4
	Double            Type = 5
	ByteArray         Type = 6
	FixedLenByteArray Type = 7
)

// Encoding is an encoding by its number.
type Encoding int32

// The encodings.
const (
	Plain                Encoding = 0
	PlainDictionary      Encoding = 2
	RLE                  Encoding = 3
	BitPacked            Encoding = 4
	DeltaBinaryPacked    Encoding = 5
	DeltaLengthByteArray Encoding = 6
	DeltaByteArray       Encoding = 7
	RLEDictionary        Encoding = 8
	ByteStreamSplit      Encoding = 9
)

// Codec is a compression codec by its number.
type Codec int32

// The codecs.
const (
	Uncompressed Codec = 0
	Snappy       Codec = 1
	Gzip         Codec = 2
	LZO          Codec = 3
	Brotli       Codec = 4
	LZ4          Codec = 5 // Hadoop's framing, deprecated
	Zstd         Codec = 6
	LZ4Raw       Codec = 7
)

// PageType is the type of a page by its number.
type PageType int32

// The page types.
const (
	DataPage       PageType = 0
	IndexPage      PageType = 1
	DictionaryPage PageType = 2
	DataPageV2     PageType = 3
)

// Repetition says how often a node occurs in its parent.
type Repetition int32

// The repetitions.
const (
	Required Repetition = 0
	Optional Repetition = 1
	Repeated Repetition = 2
)

// Order is how the bounds of a column were compared (ColumnOrder).
type Order uint8

// The orders. Bounds of columns without a known order must not be used.
const (
	OrderUnknown Order = iota
	OrderByType
	// OrderIEEE is IEEE754TotalOrder.
	OrderIEEE
)

// BoundaryOrder is the order of the pages' bounds in a column index.
type BoundaryOrder int32

// The boundary orders.
const (
	Unordered  BoundaryOrder = 0
	Ascending  BoundaryOrder = 1
	Descending BoundaryOrder = 2
)

// Statistics of a page or a column chunk. Nil is absent.
type Statistics struct {
	// LegacyMin and LegacyMax were compared in ways that depend on the writer;
	// they are read to be known and never written.
	LegacyMin, LegacyMax []byte
	Min, Max             []byte
	NullCount            *int64
	DistinctCount        *int64
	MinExact, MaxExact   *bool
	NaNCount             *int64
}

// SizeStatistics of a chunk (parquet.thrift). Nil is absent.
type SizeStatistics struct {
	UnencodedBytes *int64
	RepHistogram   []int64
	DefHistogram   []int64
}

// EncodingStat counts the pages of a type and encoding in a chunk.
type EncodingStat struct {
	Page     PageType
	Encoding Encoding
	Count    int32
}

// PageHeader is the header of any page.
type PageHeader struct {
	Type             PageType
	UncompressedSize int32
	CompressedSize   int32
	// CRC is the CRC-32 of the page as stored, without its header, or nil.
	CRC *uint32
	// Values counts the values of a data page, nulls included, or the entries
	// of a dictionary.
	Values   int32
	Encoding Encoding
	// DefEncoding and RepEncoding are of v1 data pages.
	DefEncoding, RepEncoding Encoding
	// Nulls, Rows, DefBytes, RepBytes and Compressed are of v2 data pages.
	// Compressed is true when the header leaves it out, Nulls -1 when they were not counted.
	Nulls, Rows        int32
	DefBytes, RepBytes int32
	Compressed         bool
	Statistics         *Statistics
	// Sorted is of dictionary pages.
	Sorted *bool
}

// Node is a node of a file's schema tree. It is immutable once the schema is
// made.
type Node struct {
	Name       string
	Repetition Repetition
	// Group reports that the node has children and no Type.
	Group bool
	Type  Type
	// TypeLength is the length in bytes of fixed length byte arrays.
	TypeLength int32
	// Converted is the deprecated annotation by its number, or nil.
	Converted *int32
	Logical   *Logical
	// Scale and Precision are those of a decimal ConvertedType.
	Scale, Precision *int32
	// FieldID is nil when the file has none for the node.
	FieldID  *int32
	Children []*Node
	Parent   *Node
	// Leaf is the index among the leaves, or -1 for a group.
	Leaf int
	// MaxDef and MaxRep are the greatest levels.
	MaxDef, MaxRep int
}

// LogicalKind is the kind of a LogicalType by its field number in the union.
type LogicalKind int16

// The logical types.
const (
	LogicalString    LogicalKind = 1
	LogicalMap       LogicalKind = 2
	LogicalList      LogicalKind = 3
	LogicalEnum      LogicalKind = 4
	LogicalDecimal   LogicalKind = 5
	LogicalDate      LogicalKind = 6
	LogicalTime      LogicalKind = 7
	LogicalTimestamp LogicalKind = 8
	LogicalInteger   LogicalKind = 10
	LogicalUnknown   LogicalKind = 11
	LogicalJSON      LogicalKind = 12
	LogicalBSON      LogicalKind = 13
	LogicalUUID      LogicalKind = 14
	LogicalFloat16   LogicalKind = 15
	LogicalVariant   LogicalKind = 16
	LogicalGeometry  LogicalKind = 17
	LogicalGeography LogicalKind = 18
)

// TimeUnit is the unit of a time or timestamp by its field number in the union.
type TimeUnit int16

// The time units.
const (
	Millis TimeUnit = 1
	Micros TimeUnit = 2
	Nanos  TimeUnit = 3
)

// Logical is a LogicalType. Only the fields of its kind are set. A kind that is
// not known is kept with its raw form.
type Logical struct {
	Kind             LogicalKind
	Scale, Precision int32
	UTC              bool
	Unit             TimeUnit
	BitWidth         int8
	Signed           bool
	// CRS is that of geometry and geography, empty when left out.
	CRS string
	// Algorithm is the edge interpolation of geography, or nil.
	Algorithm *int32
	// SpecVersion is that of variant, or nil.
	SpecVersion *int8
	// Raw is the stored LogicalType where the kind is not known; it is written as
	// it is.
	Raw []byte
}

// Schema is the schema tree of a file.
type Schema struct {
	Root   *Node
	Leaves []*Node
}

// KeyValue is an entry of key value metadata; Value is nil when left out.
type KeyValue struct {
	Key   string
	Value *string
}

// SortingColumn is a term of a row group's order.
type SortingColumn struct {
	Leaf       int32
	Descending bool
	NullsFirst bool
}

// Chunk is a column chunk with its metadata. Offsets are from the file's begin;
// nil is absent.
type Chunk struct {
	// FilePath is not empty when the data lies in another file.
	FilePath         string
	Type             Type
	Encodings        []Encoding
	Path             []string
	Codec            Codec
	Values           int64
	UncompressedSize int64
	CompressedSize   int64
	KeyValues        []KeyValue
	DataPage         int64
	IndexPage        *int64
	Dictionary       *int64
	Statistics       *Statistics
	// EncodingStats is nil when absent.
	EncodingStats []EncodingStat
	BloomOffset   *int64
	BloomLength   *int32
	Sizes         *SizeStatistics
	// Geospatial is the raw thrift struct of geospatial statistics, or nil.
	Geospatial        []byte
	OffsetIndexOffset *int64
	OffsetIndexLength *int32
	ColumnIndexOffset *int64
	ColumnIndexLength *int32
	// Encrypted reports crypto metadata.
	Encrypted bool
}

// RowGroup is a row group.
type RowGroup struct {
	Columns         []Chunk
	Bytes           int64 // total_byte_size
	Rows            int64
	Sorting         []SortingColumn
	FileOffset      *int64
	CompressedBytes *int64
	Ordinal         *int16
}

// Footer is the FileMetaData of a file.
type Footer struct {
	Version   int32
	Schema    *Schema
	Rows      int64
	RowGroups []RowGroup
	KeyValues []KeyValue
	CreatedBy string
	// Orders has an order for each leaf, or is nil.
	Orders []Order
	// Encrypted reports an encryption algorithm or a footer signing key.
	Encrypted bool
}

// PageLocation is an entry of an offset index. Size includes the header.
type PageLocation struct {
	Offset   int64
	Size     int32
	FirstRow int64
}

// OffsetIndex locates the data pages of a chunk.
type OffsetIndex struct {
	Pages []PageLocation
	// UnencodedBytes is nil when absent, or has an element for each page.
	UnencodedBytes []int64
}

// ColumnIndex has the bounds of the data pages of a chunk.
type ColumnIndex struct {
	NullPages []bool
	Min, Max  [][]byte
	Order     BoundaryOrder
	// NullCounts and NaNCounts are nil when absent.
	NullCounts []int64
	NaNCounts  []int64
	// RepHistograms and DefHistograms are nil when absent.
	RepHistograms []int64
	DefHistograms []int64
}
