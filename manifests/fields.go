package manifests

import (
	"github.com/seaice/seaice/manifests/avro"
)

// Field ids of the spec's sections "Manifests" and "Manifest Lists".
const (
	idStatus   = 0
	idSnapshot = 1
	idDataFile = 2
	idDataSeq  = 3
	idFileSeq  = 4

	idPath          = 100
	idFormat        = 101
	idPartition     = 102
	idRecords       = 103
	idBytes         = 104
	idBlockSize     = 105 // v1 only
	idOrdinal       = 106 // never written
	idSortColumns   = 107 // never written
	idColumnSizes   = 108
	idValueCounts   = 109
	idNullCounts    = 110
	idDistinct      = 111 // never written
	idLower         = 125
	idUpper         = 128
	idKeyMetadata   = 131
	idSplitOffsets  = 132
	idContent       = 134
	idEqualityIDs   = 135
	idNaNCounts     = 137
	idSortOrder     = 140
	idFileSpec      = 141 // spec_id: reserved, inherited from the list
	idFirstRowID    = 142
	idReferenced    = 143
	idContentOffset = 144
	idContentSize   = 145

	idManifestPath   = 500
	idManifestLength = 501
	idSpecID         = 502
	idAddedSnapshot  = 503
	idAddedFiles     = 504
	idExistingFiles  = 505
	idDeletedFiles   = 506
	idPartitions     = 507
	idSummary        = 508
	idContainsNull   = 509
	idSummaryLower   = 510
	idSummaryUpper   = 511
	idAddedRows      = 512
	idExistingRows   = 513
	idDeletedRows    = 514
	idSeq            = 515
	idMinSeq         = 516
	idListContent    = 517
	idContainsNaN    = 518
	idListKey        = 519
	idListFirstRowID = 520
)

// Names by which a field is known when a writer left out the ids.
var (
	entryNames = map[string]int{
		"status": idStatus, "snapshot_id": idSnapshot, "data_file": idDataFile,
		"sequence_number": idDataSeq, "file_sequence_number": idFileSeq,
	}
	fileNames = map[string]int{
		"file_path": idPath, "file_format": idFormat, "partition": idPartition, "record_count": idRecords,
		"file_size_in_bytes": idBytes, "block_size_in_bytes": idBlockSize, "file_ordinal": idOrdinal,
		"sort_columns": idSortColumns, "column_sizes": idColumnSizes, "value_counts": idValueCounts,
		"null_value_counts": idNullCounts, "nan_value_counts": idNaNCounts, "distinct_counts": idDistinct,
		"lower_bounds": idLower, "upper_bounds": idUpper, "key_metadata": idKeyMetadata,
		"split_offsets": idSplitOffsets, "content": idContent, "equality_ids": idEqualityIDs,
		"sort_order_id": idSortOrder, "spec_id": idFileSpec, "first_row_id": idFirstRowID,
		"referenced_data_file": idReferenced, "content_offset": idContentOffset, "content_size_in_bytes": idContentSize,
	}
	listNames = map[string]int{
		"manifest_path": idManifestPath, "manifest_length": idManifestLength, "partition_spec_id": idSpecID,
		"added_snapshot_id": idAddedSnapshot, "partitions": idPartitions, "content": idListContent,
		"sequence_number": idSeq, "min_sequence_number": idMinSeq, "key_metadata": idListKey, "first_row_id": idListFirstRowID,
		"added_files_count": idAddedFiles, "existing_files_count": idExistingFiles, "deleted_files_count": idDeletedFiles,
		// Java before 1.4 (F083).
		"added_data_files_count": idAddedFiles, "existing_data_files_count": idExistingFiles, "deleted_data_files_count": idDeletedFiles,
		"added_rows_count": idAddedRows, "existing_rows_count": idExistingRows, "deleted_rows_count": idDeletedRows,
	}
	summaryNames = map[string]int{
		"contains_null": idContainsNull, "contains_nan": idContainsNaN, "lower_bound": idSummaryLower, "upper_bound": idSummaryUpper,
	}
)

// fieldID is the id of a writer's field: its own, else the one its name is
// known by, else avro.NoID.
func fieldID(f *avro.Field, names map[string]int) int {
	if f.ID != avro.NoID {
		return f.ID
	}
	if id, ok := names[f.Name]; ok {
		return id
	}
	return avro.NoID
}

// dropped are data_file fields that no writer of a current version may write;
// block_size_in_bytes is written in v1 alone.
func dropped(id int) bool {
	return id == idBlockSize || id == idOrdinal || id == idSortColumns || id == idDistinct || id == idFileSpec
}

const defaultBlockSize = 64 << 20

// Types of the fields, shared by all schemas this package writes.
var (
	typeInt    = avro.Primitive(avro.Int)
	typeLong   = avro.Primitive(avro.Long)
	typeString = avro.Primitive(avro.String)
	typeBytes  = avro.Primitive(avro.Bytes)
	typeBool   = avro.Primitive(avro.Boolean)
)

// fileFields are the data_file fields of a format version in the order Java
// writes them, so that what comes from there is carried in long runs.
func fileFields(version int, partition *avro.Node) []avro.Field {
	counts := func(name string, id, key, value int) avro.Field {
		return avro.Optional(name, id, avro.IDMap(key, value, typeLong))
	}
	bounds := func(name string, id, key, value int) avro.Field {
		return avro.Optional(name, id, avro.IDMap(key, value, typeBytes))
	}
	var f []avro.Field
	if version >= 2 {
		f = append(f, avro.Field{Name: "content", ID: idContent, Type: typeInt, Default: []byte("0")})
	}
	f = append(f,
		avro.Required("file_path", idPath, typeString),
		avro.Required("file_format", idFormat, typeString),
		avro.Required("partition", idPartition, partition),
		avro.Required("record_count", idRecords, typeLong),
		avro.Required("file_size_in_bytes", idBytes, typeLong))
	if version == 1 {
		f = append(f, avro.Required("block_size_in_bytes", idBlockSize, typeLong))
	}
	f = append(f,
		counts("column_sizes", idColumnSizes, 117, 118),
		counts("value_counts", idValueCounts, 119, 120),
		counts("null_value_counts", idNullCounts, 121, 122),
		counts("nan_value_counts", idNaNCounts, 138, 139),
		bounds("lower_bounds", idLower, 126, 127),
		bounds("upper_bounds", idUpper, 129, 130),
		avro.Optional("key_metadata", idKeyMetadata, typeBytes),
		avro.Optional("split_offsets", idSplitOffsets, avro.ArrayOf(typeLong, 133)))
	if version >= 2 {
		f = append(f, avro.Optional("equality_ids", idEqualityIDs, avro.ArrayOf(typeInt, 136)))
	}
	f = append(f, avro.Optional("sort_order_id", idSortOrder, typeInt))
	if version >= 3 {
		f = append(f, avro.Optional("first_row_id", idFirstRowID, typeLong))
	}
	if version >= 2 {
		f = append(f, avro.Optional("referenced_data_file", idReferenced, typeString))
	}
	if version >= 3 {
		f = append(f,
			avro.Optional("content_offset", idContentOffset, typeLong),
			avro.Optional("content_size_in_bytes", idContentSize, typeLong))
	}
	return f
}

// entrySchema is the schema of a manifest of a format version.
func entrySchema(version int, partition *avro.Node, extraFile, extraEntry []avro.Field) *avro.Node {
	fields := []avro.Field{avro.Required("status", idStatus, typeInt)}
	if version == 1 {
		fields = append(fields, avro.Required("snapshot_id", idSnapshot, typeLong))
	} else {
		fields = append(fields,
			avro.Optional("snapshot_id", idSnapshot, typeLong),
			avro.Optional("sequence_number", idDataSeq, typeLong),
			avro.Optional("file_sequence_number", idFileSeq, typeLong))
	}
	file := avro.RecordOf("r2", append(fileFields(version, partition), extraFile...)...)
	fields = append(fields, avro.Required("data_file", idDataFile, file))
	return avro.RecordOf("manifest_entry", append(fields, extraEntry...)...)
}

// listSchema is the schema of a manifest list of a format version.
func listSchema(version int, extra []avro.Field) *avro.Node {
	summary := avro.RecordOf("r508",
		avro.Required("contains_null", idContainsNull, typeBool),
		avro.Optional("contains_nan", idContainsNaN, typeBool),
		avro.Optional("lower_bound", idSummaryLower, typeBytes),
		avro.Optional("upper_bound", idSummaryUpper, typeBytes))
	field := avro.Required
	f := []avro.Field{
		field("manifest_path", idManifestPath, typeString),
		field("manifest_length", idManifestLength, typeLong),
		field("partition_spec_id", idSpecID, typeInt),
	}
	if version >= 2 {
		f = append(f,
			avro.Field{Name: "content", ID: idListContent, Type: typeInt, Default: []byte("0")},
			avro.Field{Name: "sequence_number", ID: idSeq, Type: typeLong, Default: []byte("0")},
			avro.Field{Name: "min_sequence_number", ID: idMinSeq, Type: typeLong, Default: []byte("0")})
	}
	f = append(f, field("added_snapshot_id", idAddedSnapshot, typeLong))
	if version == 1 {
		field = avro.Optional
	}
	partitions := avro.Optional("partitions", idPartitions, avro.ArrayOf(summary, idSummary))
	f = append(f,
		field("added_files_count", idAddedFiles, typeInt),
		field("existing_files_count", idExistingFiles, typeInt),
		field("deleted_files_count", idDeletedFiles, typeInt))
	rows := []avro.Field{
		field("added_rows_count", idAddedRows, typeLong),
		field("existing_rows_count", idExistingRows, typeLong),
		field("deleted_rows_count", idDeletedRows, typeLong),
	}
	if version == 1 {
		f = append(append(f, partitions), rows...)
	} else {
		f = append(append(f, rows...), partitions)
	}
	f = append(f, avro.Optional("key_metadata", idListKey, typeBytes))
	if version >= 3 {
		f = append(f, avro.Optional("first_row_id", idListFirstRowID, typeLong))
	}
	return avro.RecordOf("manifest_file", append(f, extra...)...)
}
