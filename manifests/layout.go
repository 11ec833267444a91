package manifests

import (
	"fmt"

	"github.com/seaice/seaice/manifests/avro"
)

// layout is what a manifest's schema says about where an entry's fields are.
// The data_file record is flattened into its parent: a record's encoding is
// that of its fields one after another.
type layout struct {
	steps []step
	// at is the step of a field by its code, or -1.
	at        [numCodes]int
	partition *avro.Node
	// extras are the steps of fields this package does not know and that
	// carrying keeps.
	extras []int
	// first and last step of data_file.
	fileFrom, fileTo int
	version          int // inferred from the fields
}

// step is one field in encoding order.
type step struct {
	code  code
	id    int
	name  string
	inDF  bool
	node  *avro.Node
	pairs pairs
	field *avro.Field
}

// code numbers the known fields densely.
type code uint8

const (
	cStatus code = iota
	cSnapshot
	cDataSeq
	cFileSeq
	cEnter // the union around data_file, if there is one
	cContent
	cPath
	cFormat
	cPartition
	cRecords
	cBytes
	cBlockSize
	cColumnSizes
	cValueCounts
	cNullCounts
	cNaNCounts
	cLower
	cUpper
	cKeyMetadata
	cSplitOffsets
	cEqualityIDs
	cSortOrder
	cFirstRowID
	cReferenced
	cContentOffset
	cContentSize
	cDropped
	cExtra
	numCodes
)

var codes = map[int]code{
	idContent: cContent, idPath: cPath, idFormat: cFormat, idPartition: cPartition, idRecords: cRecords,
	idBytes: cBytes, idBlockSize: cBlockSize, idColumnSizes: cColumnSizes, idValueCounts: cValueCounts,
	idNullCounts: cNullCounts, idNaNCounts: cNaNCounts, idLower: cLower, idUpper: cUpper,
	idKeyMetadata: cKeyMetadata, idSplitOffsets: cSplitOffsets, idEqualityIDs: cEqualityIDs,
	idSortOrder: cSortOrder, idFirstRowID: cFirstRowID, idReferenced: cReferenced,
	idContentOffset: cContentOffset, idContentSize: cContentSize,
}

var entryCodes = map[int]code{idStatus: cStatus, idSnapshot: cSnapshot, idDataSeq: cDataSeq, idFileSeq: cFileSeq}

// newLayout reads the schema of the manifest named name.
func newLayout(schema *avro.Node, name string) (*layout, error) {
	l := &layout{version: 1}
	for i := range l.at {
		l.at[i] = -1
	}
	seen := map[int]bool{}
	for i := range schema.Fields {
		f := &schema.Fields[i]
		id := fieldID(f, entryNames)
		if id == idDataFile && !seen[id] {
			seen[id] = true
			if err := l.file(f, name); err != nil {
				return nil, err
			}
			continue
		}
		c, ok := entryCodes[id]
		if !ok {
			c = cExtra
		}
		if err := l.add(step{code: c, id: id, name: f.Name, node: f.Type, field: f}, seen, name); err != nil {
			return nil, err
		}
	}
	for _, c := range [...]code{cStatus, cPath, cFormat, cRecords, cBytes} {
		if l.at[c] < 0 {
			return nil, corrupt(name, "the schema lacks field "+codeNames[c])
		}
	}
	return l, nil
}

func (l *layout) file(f *avro.Field, name string) error {
	rec, ok := only(f.Type)
	if !ok || rec.Kind != avro.Record {
		return wrongType(name, f.Name, f.Type)
	}
	l.fileFrom = len(l.steps)
	if f.Type.Kind == avro.Union {
		l.at[cEnter] = len(l.steps)
		l.steps = append(l.steps, step{code: cEnter, name: f.Name, inDF: true, node: f.Type})
	}
	seen := map[int]bool{}
	for i := range rec.Fields {
		g := &rec.Fields[i]
		id := fieldID(g, fileNames)
		c, known := codes[id]
		switch {
		case known:
		case dropped(id):
			c = cDropped
		default:
			c = cExtra
		}
		if err := l.add(step{code: c, id: id, name: g.Name, inDF: true, node: g.Type, field: g}, seen, name); err != nil {
			return err
		}
	}
	l.fileTo = len(l.steps)
	return nil
}

func (l *layout) add(s step, seen map[int]bool, name string) error {
	if s.id != avro.NoID {
		if seen[s.id] {
			return corrupt(name, fmt.Sprintf("field id %d is used twice", s.id))
		}
		seen[s.id] = true
	}
	ok := true
	switch s.code {
	case cStatus, cSnapshot, cDataSeq, cFileSeq, cContent, cRecords, cBytes, cBlockSize, cSortOrder, cFirstRowID,
		cContentOffset, cContentSize:
		ok = fits(s.node, isNumber)
	case cPath, cFormat, cReferenced:
		ok = fits(s.node, isText)
	case cKeyMetadata:
		ok = fits(s.node, isBlob)
	case cSplitOffsets, cEqualityIDs:
		ok = fits(s.node, isNumberList)
	case cColumnSizes, cValueCounts, cNullCounts, cNaNCounts:
		if s.pairs, ok = mapOf(s.node, isNumber); !ok {
			ok = s.node.Kind == avro.Null
		}
	case cLower, cUpper:
		if s.pairs, ok = mapOf(s.node, isBlob); !ok {
			ok = s.node.Kind == avro.Null
		}
	case cPartition:
		l.partition, ok = only(s.node)
		ok = ok && isRecord(l.partition)
	case cExtra:
		l.extras = append(l.extras, len(l.steps))
	}
	if !ok {
		return wrongType(name, s.name, s.node)
	}
	switch s.code {
	case cDataSeq, cFileSeq, cContent, cEqualityIDs, cReferenced:
		l.version = max(l.version, 2)
	case cFirstRowID, cContentOffset, cContentSize:
		l.version = 3
	}
	if s.code != cExtra && s.code != cDropped {
		l.at[s.code] = len(l.steps)
	}
	l.steps = append(l.steps, s)
	return nil
}

var codeNames = [...]string{
	cStatus: "status", cSnapshot: "snapshot_id", cDataSeq: "sequence_number", cFileSeq: "file_sequence_number",
	cEnter: "data_file", cContent: "content", cPath: "file_path", cFormat: "file_format", cPartition: "partition",
	cRecords: "record_count", cBytes: "file_size_in_bytes", cBlockSize: "block_size_in_bytes", cColumnSizes: "column_sizes",
	cValueCounts: "value_counts", cNullCounts: "null_value_counts", cNaNCounts: "nan_value_counts", cLower: "lower_bounds",
	cUpper: "upper_bounds", cKeyMetadata: "key_metadata", cSplitOffsets: "split_offsets", cEqualityIDs: "equality_ids",
	cSortOrder: "sort_order_id", cFirstRowID: "first_row_id", cReferenced: "referenced_data_file",
	cContentOffset: "content_offset", cContentSize: "content_size_in_bytes",
}
