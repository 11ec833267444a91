package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

const (
	manifestColumns  = 20
	manifestSeed     = 20260815
	manifestSnapshot = 4242
	manifestSeq      = 17
)

// manifestInput is one data manifest in memory, written by the peer, and what
// a manifest list would say about it for both readers.
type manifestInput struct {
	data []byte
	peer icego.ManifestFile
	ours *manifests.ManifestFile
}

// newManifestInput writes a v2 data manifest of so many files, partitioned by
// day and region, each with sizes, counts and bounds of every column.
func newManifestInput(files int) (*manifestInput, error) {
	fields := make([]icego.NestedField, manifestColumns)
	for i := range fields {
		fields[i] = icego.NestedField{ID: i + 1, Name: fmt.Sprintf("c%02d", i+1), Type: icego.PrimitiveTypes.Int64}
	}
	fields[0].Type = icego.PrimitiveTypes.Date
	fields[1].Type = icego.PrimitiveTypes.String
	schema := icego.NewSchema(0, fields...)
	spec := icego.NewPartitionSpec(
		icego.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "day", Transform: icego.IdentityTransform{}},
		icego.PartitionField{SourceIDs: []int{2}, FieldID: 1001, Name: "region", Transform: icego.IdentityTransform{}},
	)

	r := rand.New(rand.NewPCG(manifestSeed, uint64(files)))
	snapshot := int64(manifestSnapshot)
	entries := make([]icego.ManifestEntry, files)
	var rows int64
	for i := range entries {
		df, err := manifestDataFile(r, spec, i)
		if err != nil {
			return nil, err
		}
		rows += df.Count()
		entries[i] = icego.NewManifestEntryBuilder(icego.EntryStatusADDED, &snapshot, df).Build()
	}
	path := "s3://bench/ns/table/metadata/bench-m0.avro"
	var out bytes.Buffer
	if _, err := icego.WriteManifest(path, &out, 2, spec, schema, snapshot, entries); err != nil {
		return nil, err
	}
	size := int64(out.Len())
	return &manifestInput{
		data: out.Bytes(),
		peer: icego.NewManifestFile(2, path, size, 0, snapshot).SequenceNum(manifestSeq, manifestSeq).
			AddedFiles(int32(files)).AddedRows(rows).Build(),
		ours: &manifests.ManifestFile{
			Path: path, Length: size, Content: manifests.DataManifest,
			Seq: manifests.Some(iceberg.SeqNum(manifestSeq)), MinSeq: manifests.Some(iceberg.SeqNum(manifestSeq)),
			SnapshotID: manifests.Some(iceberg.SnapshotID(snapshot)),
			AddedFiles: manifests.Some(int64(files)), ExistingFiles: manifests.Some(int64(0)), DeletedFiles: manifests.Some(int64(0)),
			AddedRows: manifests.Some(rows), ExistingRows: manifests.Some(int64(0)), DeletedRows: manifests.Some(int64(0)),
		},
	}, nil
}

func manifestDataFile(r *rand.Rand, spec icego.PartitionSpec, i int) (icego.DataFile, error) {
	day, region := 20000+i/64, fmt.Sprintf("region-%02d", r.IntN(12))
	rows := 1000 + r.Int64N(1_000_000)
	path := fmt.Sprintf("s3://bench/ns/table/data/day=%d/region=%s/%016x-%08d.parquet", day, region, r.Uint64(), i)
	b, err := icego.NewDataFileBuilder(spec, icego.EntryContentData, path, icego.ParquetFile,
		map[int]any{1000: icego.Date(day), 1001: region}, nil, nil, rows, rows*80)
	if err != nil {
		return nil, err
	}
	sizes, counts, nulls := map[int]int64{}, map[int]int64{}, map[int]int64{}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	for c := 1; c <= manifestColumns; c++ {
		sizes[c], counts[c], nulls[c] = rows*4+r.Int64N(1000), rows, r.Int64N(100)
		switch c {
		case 1:
			v := binary.LittleEndian.AppendUint32(nil, uint32(day))
			lower[c], upper[c] = v, v
		case 2:
			lower[c], upper[c] = []byte(region), []byte(region)
		default:
			v := r.Uint64N(1 << 40)
			lower[c] = binary.LittleEndian.AppendUint64(nil, v)
			upper[c] = binary.LittleEndian.AppendUint64(nil, v+r.Uint64N(1<<20))
		}
	}
	return b.ColumnSizes(sizes).ValueCounts(counts).NullValueCounts(nulls).
		LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets([]int64{4}).Build(), nil
}
