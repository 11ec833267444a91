package manifests_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// craft writes a container file with any schema and any header.
func craft(t testing.TB, schema string, meta map[string]string, records ...[]byte) []byte {
	t.Helper()
	n, err := avro.ParseSchema([]byte(schema))
	require.NoError(t, err)
	m := map[string][]byte{}
	for k, v := range meta {
		m[k] = []byte(v)
	}
	var out bytes.Buffer
	w, err := avro.NewWriter(&out, n, avro.Options{Meta: m, Codec: avro.Uncompressed})
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Append(func(b []byte) ([]byte, error) { return append(b, r...), nil }))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// enc encodes a record: int64 and int as longs, string and []byte with length,
// bool and rawBytes as they are.
type rawBytes []byte

func enc(values ...any) []byte {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = avro.AppendLong(b, int64(v))
		case string:
			b = avro.AppendBytes(b, v)
		case []byte:
			b = avro.AppendBytes(b, v)
		case bool:
			b = avro.AppendBool(b, v)
		case rawBytes:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return b
}

func listOf(t testing.TB, b []byte) ([]*manifests.ManifestFile, error) {
	t.Helper()
	var list []*manifests.ManifestFile
	for m, err := range manifests.ReadList(t.Context(), bytes.NewReader(b), "s3://b/t/metadata/snap.avro") {
		if err != nil {
			return list, err
		}
		list = append(list, m)
	}
	return list, nil
}

func entriesOf(t testing.TB, b []byte, m *manifests.ManifestFile) ([]*manifests.Entry, error) {
	t.Helper()
	var entries []*manifests.Entry
	for e, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(b), m, manifests.ReadOptions{}) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e.Clone())
	}
	return entries, nil
}

const duckListSchema = `{"type":"record","name":"manifest_file","fields":[
 {"name":"manifest_path","type":"string","field-id":500},{"name":"manifest_length","type":"long","field-id":501},
 {"name":"partition_spec_id","type":"int","field-id":502},{"name":"content","type":"int","field-id":517},
 {"name":"sequence_number","type":"long","field-id":515},{"name":"min_sequence_number","type":"long","field-id":516},
 {"name":"added_snapshot_id","type":"long","field-id":503},{"name":"added_files_count","type":"int","field-id":504},
 {"name":"existing_files_count","type":"int","field-id":505},{"name":"deleted_files_count","type":"int","field-id":506},
 {"name":"added_rows_count","type":"long","field-id":512},{"name":"existing_rows_count","type":"long","field-id":513},
 {"name":"deleted_rows_count","type":"long","field-id":514},
 {"name":"partitions","type":["null",{"type":"array","items":{"type":"record","name":"r508","fields":[
   {"name":"contains_null","type":"boolean","field-id":509},{"name":"contains_nan","type":["null","boolean"],"field-id":518},
   {"name":"lower_bound","type":["null","bytes"],"field-id":510},{"name":"upper_bound","type":["null","bytes"],"field-id":511}]},
   "element-id":508}],"field-id":507}]}`

func TestF081ListWithoutFormatVersion(t *testing.T) {
	rec := enc("s3://b/t/m.avro", 99, 0, 1, 7, 0, 42, 1, 0, 0, 3, 0, 0, 0)
	list, err := listOf(t, craft(t, duckListSchema, nil, rec))
	require.NoError(t, err)
	require.Equal(t, manifests.DeleteManifest, list[0].Content)
	require.Equal(t, manifests.Some(iceberg.SeqNum(7)), list[0].Seq)
	require.Equal(t, manifests.Some(iceberg.SeqNum(0)), list[0].MinSeq, "0 is a value (F085)")
	for header, kind := range map[string]fault.Kind{
		"1": fault.Corrupt, "4": fault.Unsupported, "x": fault.Corrupt, "2": fault.None, "3": fault.None,
	} {
		_, err := listOf(t, craft(t, duckListSchema, map[string]string{"format-version": header}, rec))
		require.Equal(t, kind, fault.Of(err), "header %q: %v", header, err)
		if err != nil {
			require.ErrorContains(t, err, "s3://b/t/metadata/snap.avro")
		}
	}
}

const v1ListSchema = `{"type":"record","name":"manifest_file","fields":[
 {"name":"manifest_path","type":"string","field-id":500},{"name":"manifest_length","type":"long","field-id":501},
 {"name":"partition_spec_id","type":"int","field-id":502},{"name":"added_snapshot_id","type":["null","long"],"field-id":503},
 {"name":"added_data_files_count","type":["null","int"]},{"name":"existing_data_files_count","type":["int","null"],"field-id":505},
 {"name":"deleted_data_files_count","type":["null","int"],"field-id":506}]}`

// TestF083LegacyNames: counts under their names before Java 1.4, with and
// without field ids, in unions of either order.
func TestF083LegacyNames(t *testing.T) {
	list, err := listOf(t, craft(t, v1ListSchema, map[string]string{"format-version": "1"},
		enc("s3://b/t/m.avro", 99, 0, 1, 42, 1, 5, 0, 6, 1, 0)))
	require.NoError(t, err)
	m := list[0]
	require.Equal(t, manifests.Some(int64(5)), m.AddedFiles)
	require.Equal(t, manifests.Some(int64(6)), m.ExistingFiles)
	require.Equal(t, manifests.Some(int64(0)), m.DeletedFiles)
	require.True(t, m.Seq.Is(0))
	require.Nil(t, m.Partitions)
}

// TestF077NullCountsAreUnknown: not zero, and a v2 list refuses them until they
// are counted.
func TestF077NullCountsAreUnknown(t *testing.T) {
	list, err := listOf(t, craft(t, v1ListSchema, nil, enc("s3://b/t/m.avro", 99, 5, 1, 42, 0, 1, 0)))
	require.NoError(t, err)
	m := list[0]
	require.False(t, m.AddedFiles.Known())
	require.True(t, m.MayHaveLive())
	require.True(t, m.MayHaveDeleted())
	require.True(t, m.NeedsCount(2))
	require.False(t, m.NeedsCount(1))
	var out bytes.Buffer
	_, err = manifests.WriteList(&out, manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 1}, []*manifests.ManifestFile{m})
	require.ErrorContains(t, err, "counted first")

	spec, _ := everyType(t)
	written := writeIcego(t, 1, spec, testSchema(), icego.ManifestContentData, "s3://b/t/m.avro", 900, fill(t, spec, 1))
	counted, err := manifests.Recount(t.Context(), bytes.NewReader(written.bytes), m)
	require.NoError(t, err)
	require.Equal(t, int64(written.file.AddedDataFiles()), counted.AddedFiles.Value)
	require.Equal(t, written.file.ExistingRows(), counted.ExistingRows.Value)
	require.Equal(t, written.file.DeletedRows(), counted.DeletedRows.Value)
	require.False(t, m.AddedFiles.Known(), "the original is as it was")
	for version := 2; version <= 3; version++ {
		relisted, theirs := writeList(t, manifests.ListOptions{Version: version, SnapshotID: 43, Seq: 1}, counted)
		require.Equal(t, written.file.AddedDataFiles(), theirs[0].AddedDataFiles())
		require.True(t, relisted[0].Seq.Is(0))
		require.Nil(t, relisted[0].Partitions)
	}
	wrong := counted.Clone()
	wrong.AddedRows.Value++
	_, err = manifests.Recount(t.Context(), bytes.NewReader(written.bytes), wrong)
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

// TestF084EmbeddedManifests: a v1 snapshot names its manifests itself; spec and
// counts come from the manifest.
func TestF084EmbeddedManifests(t *testing.T) {
	spec, parts := everyType(t)
	written := writeIcego(t, 1, spec, testSchema(), icego.ManifestContentData, "s3://b/t/m.avro", 900, fill(t, spec, 1))
	m := manifests.Embedded("s3://b/t/m.avro", 900)
	require.True(t, m.NeedsCount(1))
	require.True(t, m.MayHaveLive())
	entries := readAll(t, written.bytes, m, parts.Type)
	require.Len(t, entries, 30)
	require.True(t, entries[2].DataSeq.Is(0))
	counted, err := manifests.Recount(t.Context(), bytes.NewReader(written.bytes), m)
	require.NoError(t, err)
	require.EqualValues(t, 5, counted.SpecID)
	require.EqualValues(t, len(written.bytes), counted.Length)
	require.False(t, counted.NeedsCount(2))
}

// TestF080EmptyAndNullSummariesStayApart in every version.
func TestF080EmptyAndNullSummariesStayApart(t *testing.T) {
	list, err := listOf(t, craft(t, duckListSchema, nil,
		enc("s3://b/t/a.avro", 99, 0, 0, 7, 7, 42, 1, 0, 0, 3, 0, 0, 0),
		enc("s3://b/t/b.avro", 99, 0, 0, 7, 7, 42, 1, 0, 0, 3, 0, 0, 1, 0),
		enc("s3://b/t/c.avro", 99, 0, 0, 7, 7, 42, 1, 0, 0, 3, 0, 0, 1, 1, true, 0, 1, []byte{1}, 0, 0)))
	require.NoError(t, err)
	for version := 1; version <= 3; version++ {
		again, _ := writeList(t, manifests.ListOptions{Version: version, SnapshotID: 43, Seq: 9}, list...)
		require.Nil(t, again[0].Partitions)
		require.NotNil(t, again[1].Partitions)
		require.Empty(t, again[1].Partitions)
		require.Equal(t, list[2].Partitions, again[2].Partitions)
		require.Equal(t, []byte{1}, again[2].Partitions[0].Lower)
		require.Nil(t, again[2].Partitions[0].Upper)
		require.False(t, again[2].Partitions[0].ContainsNaN.Known())
	}
}

// entrySchemaText is a v2 manifest of an unpartitioned or partitioned table
// with the fields of data_file given.
func entrySchemaText(file string) string {
	return `{"type":"record","name":"manifest_entry","fields":[
 {"name":"status","type":"int","field-id":0},{"name":"snapshot_id","type":["null","long"],"field-id":1},
 {"name":"sequence_number","type":["null","long"],"field-id":3},{"name":"file_sequence_number","type":["null","long"],"field-id":4},
 {"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[` + file + `]}}]}`
}

const plainFile = `{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
 {"name":"file_format","type":"string","field-id":101},
 {"name":"partition","type":{"type":"record","name":"r102","fields":[]},"field-id":102},
 {"name":"record_count","type":"long","field-id":103},{"name":"file_size_in_bytes","type":"long","field-id":104}`

func manifest(content manifests.ManifestContent) *manifests.ManifestFile {
	return &manifests.ManifestFile{
		Path: "s3://b/t/metadata/m.avro", Length: 1, Content: content, Seq: manifests.Some(iceberg.SeqNum(7)),
		MinSeq: manifests.Some(iceberg.SeqNum(0)), SnapshotID: manifests.Some(iceberg.SnapshotID(42)),
	}
}

// TestF081DeleteManifestLabelledData: the list decides what a manifest holds,
// and field 134 what its entries are; the header may be wrong or missing.
func TestF081DeleteManifestLabelledData(t *testing.T) {
	rec := enc(1, 0, 0, 0, 1, "s3://b/t/d.parquet", "parquet", 5, 6)
	for _, header := range []map[string]string{{"content": "data", "format-version": "1"}, {"content": "data"}, {}} {
		b := craft(t, entrySchemaText(plainFile), header, rec)
		entries, err := entriesOf(t, b, manifest(manifests.DeleteManifest))
		require.NoError(t, err)
		require.Equal(t, manifests.PositionDeletes, entries[0].Content)
		r, err := manifests.NewReader(t.Context(), bytes.NewReader(b), manifest(manifests.DeleteManifest), manifests.ReadOptions{})
		require.NoError(t, err)
		require.Equal(t, 2, r.Header().Version)
		require.Equal(t, manifests.DataManifest, r.Header().Content)
		_, err = entriesOf(t, b, manifest(manifests.DataManifest))
		require.Equal(t, fault.Corrupt, fault.Of(err))
		require.ErrorContains(t, err, "s3://b/t/metadata/m.avro")
	}
}

// TestF089FormatInAnyCase: recognised whatever the case, written as it was.
func TestF089FormatInAnyCase(t *testing.T) {
	var recs [][]byte
	spelled := []string{"PARQUET", "parquet", "parquet", "Parquet", "orc", "AVRO", "puffin", "PARQUET", "lance"}
	for _, s := range spelled {
		recs = append(recs, enc(1, 0, 0, 0, 0, "s3://b/t/"+s, s, 5, 6))
	}
	b := craft(t, entrySchemaText(plainFile), nil, recs...)
	want := []manifests.Format{
		manifests.Parquet, manifests.Parquet, manifests.Parquet, manifests.Parquet, manifests.ORC, manifests.Avro,
		manifests.Puffin, manifests.Parquet, "LANCE",
	}
	entries, err := entriesOf(t, b, manifest(manifests.DataManifest))
	require.NoError(t, err)
	for i, e := range entries {
		require.Equal(t, want[i], e.Format)
	}
	spec := icego.NewPartitionSpecID(0)
	parts := testPartitioning(t, testSchema(), spec)
	for _, write := range []func(*manifests.Writer, *manifests.Entry) error{(*manifests.Writer).Put, (*manifests.Writer).Carry} {
		out, _ := rewriteWith(t, b, manifest(manifests.DataManifest), manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 43}, write)
		again, err := entriesOf(t, out, manifest(manifests.DataManifest))
		require.NoError(t, err)
		for i, e := range again {
			require.Equal(t, want[i], e.Format)
		}
		for _, s := range spelled {
			require.True(t, rawContains(t, out, s), s)
		}
	}
}

// rawContains looks for text in the decompressed blocks.
func rawContains(t *testing.T, file []byte, text string) bool {
	t.Helper()
	r, err := avro.NewReader(bytes.NewReader(file), "x", avro.Limits{})
	require.NoError(t, err)
	for {
		data, _, err := r.Next()
		if err != nil {
			return false
		}
		if bytes.Contains(data, enc("s3://b/t/"+text, text)) {
			return true
		}
	}
}

// TestF087OptionalFieldsAndUnknownOnes: null stays null and [] stays [];
// equality ids read as long are written as int; fields of unknown meaning go
// along, in data_file and beside it; fields no longer written are dropped.
func TestF087OptionalFieldsAndUnknownOnes(t *testing.T) {
	file := plainFile + `,
 {"name":"distinct_counts","type":["null",{"type":"array","logicalType":"map","items":{"type":"record","name":"k123_v124","fields":[
   {"name":"key","type":"int","field-id":123},{"name":"value","type":"long","field-id":124}]}}],"field-id":111},
 {"name":"key_metadata","type":["bytes","null"],"field-id":131},
 {"name":"split_offsets","type":["null",{"type":"array","items":"long","element-id":133}],"field-id":132},
 {"name":"equality_ids","type":["null",{"type":"array","items":"long","element-id":136}],"field-id":135},
 {"name":"sort_order_id","type":["null","int"],"field-id":140},
 {"name":"vendor_tag","type":["null","string"],"field-id":9001},
 {"name":"vendor_score","type":{"type":"record","name":"r2x","fields":[{"name":"a","type":"int"},{"name":"b","type":"double"}]},"field-id":9002},
 {"name":"vendor_noid","type":["string","null"]}`
	schema := entrySchemaText(file)
	schema = schema[:len(schema)-2] + `,{"name":"entry_extra","type":"long","field-id":9003}]}`
	score := rawBytes(append(enc(77), binary.LittleEndian.AppendUint64(nil, 0x3ff8000000000000)...))
	b := craft(t, schema, nil,
		enc(1, 0, 0, 0, 2, "s3://b/t/1", "PARQUET", 5, 6, 1, 1, 3, 9, 0, 1, 1, 0, 1, 2, 5, 9, 0, 0, 1, "hello", score, 0, "x", 123456),
		enc(1, 0, 0, 0, 2, "s3://b/t/2", "PARQUET", 5, 6, 0, 0, []byte("k"), 1, 0, 1, 1, 5, 0, 1, 3, 0, score, 1, -9),
		enc(1, 0, 0, 0, 1, "s3://b/t/3", "PARQUET", 5, 6, 0, 1, 0, 0, 0, 0, score, 1, 0))
	parts := testPartitioning(t, testSchema(), icego.NewPartitionSpecID(0))
	want, err := entriesOf(t, b, manifest(manifests.DeleteManifest))
	require.NoError(t, err)
	require.Nil(t, want[0].KeyMetadata)
	require.NotNil(t, want[0].SplitOffsets)
	require.Empty(t, want[0].SplitOffsets)
	require.Equal(t, []iceberg.FieldID{5, 9}, want[0].EqualityIDs)
	require.Equal(t, []byte("k"), want[1].KeyMetadata)
	require.Nil(t, want[2].SplitOffsets)
	require.Nil(t, want[2].EqualityIDs)
	require.False(t, want[2].SortOrderID.Known())
	for version := 2; version <= 3; version++ {
		for name, write := range map[string]func(*manifests.Writer, *manifests.Entry) error{"put": (*manifests.Writer).Put, "carry": (*manifests.Writer).Carry} {
			o := manifests.WriterOptions{Path: "n", Version: version, Content: manifests.DeleteManifest, Partitioning: parts, SnapshotID: 43}
			out, file := rewriteWith(t, b, manifest(manifests.DeleteManifest), o, write)
			got, err := entriesOf(t, out, manifest(manifests.DeleteManifest))
			require.NoError(t, err)
			for i := range want {
				require.Equal(t, want[i].KeyMetadata, got[i].KeyMetadata, name)
				require.Equal(t, want[i].SplitOffsets, got[i].SplitOffsets, name)
				require.Equal(t, want[i].EqualityIDs, got[i].EqualityIDs, name)
				require.Equal(t, want[i].SortOrderID, got[i].SortOrderID, name)
			}
			r, err := avro.NewReader(bytes.NewReader(out), "n", avro.Limits{})
			require.NoError(t, err)
			df, _ := r.Schema().Field(2)
			_, has := df.Type.Field(111)
			require.False(t, has, "distinct_counts is not written")
			ids, _ := df.Type.Field(135)
			require.Equal(t, avro.Int, ids.Type.Branches[1].Items.Kind)
			data, count, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, 3, count)
			require.True(t, bytes.Contains(data, enc(1, "hello", 1, score, 0, "x")), name)
			require.True(t, bytes.Contains(data, enc(1, 123456)), name)
			require.True(t, bytes.Contains(data, enc(0, 1, score, 1, 1, -9)), name)
			// And a second generation keeps them too.
			again, _ := rewriteWith(t, out, manifest(manifests.DeleteManifest), o, write)
			r2, err := avro.NewReader(bytes.NewReader(again), "n", avro.Limits{})
			require.NoError(t, err)
			require.Equal(t, string(r.Meta("avro.schema")), string(r2.Meta("avro.schema")))
			data2, _, err := r2.Next()
			require.NoError(t, err)
			require.Equal(t, data, data2)
			require.EqualValues(t, 15, file.AddedRows.Value+file.ExistingRows.Value)
		}
	}
}

// TestF087UnknownFieldsOfAList go along as well.
func TestF087UnknownFieldsOfAList(t *testing.T) {
	schema := duckListSchema[:len(duckListSchema)-2] + `,{"name":"vendor","type":{"type":"map","values":"string"},"field-id":9100}]}`
	list, err := listOf(t, craft(t, schema, nil,
		enc("s3://b/t/a.avro", 99, 0, 0, 7, 7, 42, 1, 0, 0, 3, 0, 0, 0, 1, "k", "v", 0)))
	require.NoError(t, err)
	plain, err := listOf(t, craft(t, duckListSchema, nil, enc("s3://b/t/b.avro", 99, 0, 0, 7, 7, 42, 1, 0, 0, 3, 0, 0, 0)))
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = manifests.WriteList(&out, manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 9}, append(list, plain...))
	require.NoError(t, err)
	r, err := avro.NewReader(bytes.NewReader(out.Bytes()), "l", avro.Limits{})
	require.NoError(t, err)
	f, ok := r.Schema().Field(9100)
	require.True(t, ok)
	require.Equal(t, avro.Map, f.Type.Branches[1].Kind)
	data, _, err := r.Next()
	require.NoError(t, err)
	require.True(t, bytes.Contains(data, enc(1, 1, "k", "v", 0)))
	again := readList(t, out.Bytes())
	require.Len(t, again, 2)
}

// TestF069DayPartitions: int with and without the logical type date, unions
// both ways, the same tuple; written as int with date.
func TestF069DayPartitions(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema(), partField{"ts_day", 8, icego.DayTransform{}})
	var keys []iceberg.TupleKey
	for _, typ := range []string{
		`["null",{"type":"int","logicalType":"date"}]`, `[{"type":"int","logicalType":"date"},"null"]`, `["null","int"]`, `["int","null"]`,
	} {
		file := `{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
 {"name":"file_format","type":"string","field-id":101},
 {"name":"partition","type":{"type":"record","name":"r102","fields":[{"name":"ts_day","type":` + typ + `,"field-id":1000}]},"field-id":102},
 {"name":"record_count","type":"long","field-id":103},{"name":"file_size_in_bytes","type":"long","field-id":104}`
		value, null := enc(1, 20000), enc(0)
		if typ[1] != '"' || typ[2] != 'n' {
			value, null = enc(0, 20000), enc(1)
		}
		b := craft(t, entrySchemaText(file), map[string]string{"partition-spec": string(parts.Spec), "schema": string(parts.Schema)},
			enc(1, 0, 0, 0, 0, "s3://b/t/1", "PARQUET", rawBytes(value), 5, 6),
			enc(1, 0, 0, 0, 0, "s3://b/t/2", "PARQUET", rawBytes(null), 5, 6))
		for _, types := range []*iceberg.PartitionType{nil, parts.Type} {
			entries := readAll(t, b, manifest(manifests.DataManifest), types)
			require.Equal(t, icego.Date(20000), entries[0].Partition.At(0).Any())
			require.True(t, entries[1].Partition.At(0).IsNull())
			keys = append(keys, entries[0].Partition.Key())
		}
		out, file2 := rewriteWith(t, b, manifest(manifests.DataManifest), manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 43}, (*manifests.Writer).Carry)
		r, err := avro.NewReader(bytes.NewReader(out), "n", avro.Limits{})
		require.NoError(t, err)
		df, _ := r.Schema().Field(2)
		p, _ := df.Type.Field(102)
		require.Equal(t, "date", p.Type.Fields[0].Type.Branches[1].Logical)
		_, theirs := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 9}, file2)
		require.Equal(t, icego.Date(20000), icegoEntries(t, theirs[0], out)[0].DataFile().Partition()[1000])
		require.Equal(t, []byte{0x20, 0x4e, 0, 0}, *theirs[0].Partitions()[0].LowerBound)
		require.True(t, theirs[0].Partitions()[0].ContainsNull)
	}
	for _, k := range keys {
		require.Equal(t, keys[0], k)
	}
}

// TestEnumAndBlockForms: a format as an enum, a content as long, arrays in
// blocks with a byte count, a data_file in a union.
func TestEnumAndBlockForms(t *testing.T) {
	schema := `{"type":"record","name":"e","fields":[
 {"name":"status","type":"long","field-id":0},{"name":"snapshot_id","type":["long","null"],"field-id":1},
 {"name":"data_file","field-id":2,"type":["null",{"type":"record","name":"d","fields":[
  {"name":"file_path","type":"bytes"},{"name":"file_format","type":{"type":"enum","name":"ff","symbols":["orc","parquet"]}},
  {"name":"record_count","type":"int"},{"name":"file_size_in_bytes","type":["null","long"]},
  {"name":"column_sizes","type":["null",{"type":"array","items":{"type":"record","name":"kv","fields":[{"name":"key","type":"long"},{"name":"value","type":"int"}]}}]},
  {"name":"lower_bounds","type":{"type":"array","items":{"type":"record","name":"kb","fields":[{"name":"value","type":"bytes"},{"name":"key","type":"int"}]}}}
 ]}]}]}`
	b := craft(t, schema, nil, enc(1, 0, 42, 1, []byte("s3://b/t/1"), 1, 5, 1, 6,
		1, -2, 4, 1, 10, 2, 20, -1, 2, 3, 30, 0,
		1, []byte("lo"), 4, 0))
	m := manifest(manifests.DataManifest)
	entries, err := entriesOf(t, b, m)
	require.NoError(t, err)
	e := entries[0]
	require.Equal(t, manifests.Parquet, e.Format)
	require.Equal(t, manifests.Counts{{Column: 1, N: 10}, {Column: 2, N: 20}, {Column: 3, N: 30}}, e.ColumnSizes)
	require.Equal(t, manifests.Bounds{{Column: 4, Value: []byte("lo")}}, e.Lower)
	require.EqualValues(t, 6, e.Bytes)
	parts := testPartitioning(t, testSchema(), icego.NewPartitionSpecID(0))
	out, file := rewriteWith(t, b, m, manifests.WriterOptions{Path: "n", Version: 3, Partitioning: parts, SnapshotID: 43}, (*manifests.Writer).Carry)
	again, err := entriesOf(t, out, m)
	require.NoError(t, err)
	require.Equal(t, e.ColumnSizes, again[0].ColumnSizes)
	require.Equal(t, e.Lower, again[0].Lower)
	_, theirs := writeList(t, manifests.ListOptions{Version: 3, SnapshotID: 43, Seq: 9}, file)
	got := icegoEntries(t, theirs[0], out)[0]
	require.Equal(t, map[int]int64{1: 10, 2: 20, 3: 30}, got.DataFile().ColumnSizes())
	require.Equal(t, map[int][]byte{4: []byte("lo")}, got.DataFile().LowerBoundValues())
}
