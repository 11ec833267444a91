package manifests_test

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// partitionSchema is the Avro record of a manifest's tuples.
func partitionSchema(t testing.TB, b []byte) *avro.Node {
	t.Helper()
	r, err := avro.NewReader(bytes.NewReader(b), "n", avro.Limits{})
	require.NoError(t, err)
	df, ok := r.Schema().Field(2)
	require.True(t, ok)
	p, ok := df.Type.Field(102)
	require.True(t, ok)
	return p.Type
}

// added writes one ADDED data file per tuple with our writer.
func added(t testing.TB, version int, parts *manifests.Partitioning, tuples ...map[iceberg.FieldID]any) ([]byte, *manifests.ManifestFile) {
	t.Helper()
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "s3://b/t/n.avro", Version: version, Partitioning: parts, SnapshotID: 43})
	require.NoError(t, err)
	for _, values := range tuples {
		tuple, err := parts.Type.Tuple(values)
		require.NoError(t, err)
		require.NoError(t, w.Add(&manifests.Entry{File: manifests.File{
			Path: "s3://b/t/f", Format: manifests.Parquet, SpecID: parts.Type.Spec, Partition: tuple, Records: 3, Bytes: 4,
		}}))
	}
	file, err := w.Close()
	require.NoError(t, err)
	return out.Bytes(), file
}

// TestF064NamesThatAvroForbids: escaped as Java does, the original beside it,
// found by id.
func TestF064NamesThatAvroForbids(t *testing.T) {
	id := icego.IdentityTransform{}
	_, parts := testSpec(t, 2, testSchema(), partField{"a.b", 1, id}, partField{"1x", 2, id}, partField{"höhe", 3, id},
		partField{"日付", 2, id}, partField{"𝒳", 1, icego.BucketTransform{NumBuckets: 4}}, partField{"a_x2Eb", 1, icego.TruncateTransform{Width: 10}}, partField{"ok_1", 3, icego.BucketTransform{NumBuckets: 4}})
	values := map[iceberg.FieldID]any{1000: int64(1), 1001: "s", 1002: int32(-5), 1003: "日", 1004: int32(3), 1005: int64(10), 1006: int32(2)}
	b, file := added(t, 2, parts, values)
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	var names []string
	for i, f := range partitionSchema(t, b).Fields {
		require.Regexp(t, valid, f.Name)
		names = append(names, f.Name)
		if f.Name != parts.Type.Fields[i].Name {
			require.JSONEq(t, `"`+parts.Type.Fields[i].Name+`"`, string(f.Props["iceberg-field-name"]))
		}
	}
	require.Equal(t, []string{"a_x2Eb", "_1x", "h_xF6he", "_x65E5_x4ED8", "_xD835_xDCB3", "a_x2Eb_r1005", "ok_1"}, names)
	relisted, theirs := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 9}, file)
	got := icegoEntries(t, theirs[0], b)
	require.Equal(t, map[int]any{1000: int64(1), 1001: "s", 1002: int32(-5), 1003: "日", 1004: int32(3), 1005: int64(10), 1006: int32(2)}, got[0].DataFile().Partition())
	for _, types := range []*iceberg.PartitionType{nil, parts.Type} {
		want, _ := parts.Type.Tuple(values)
		require.Equal(t, want.Key(), readAll(t, b, relisted[0], types)[0].Partition.Key())
	}
}

// TestF050TypesOfTuples and F051: uuid as fixed(16), fixed(n), and decimals as
// wide as their declared precision needs.
func TestF050TypesOfTuplesF051DecimalWidth(t *testing.T) {
	id := icego.IdentityTransform{}
	_, parts := testSpec(t, 2, testSchema(), partField{"u", 12, id}, partField{"f", 13, id}, partField{"d38", 14, id}, partField{"d9", 15, id},
		partField{"b", 11, icego.TruncateTransform{Width: 3}}, partField{"ub", 12, icego.BucketTransform{NumBuckets: 8}}, partField{"d", 8, icego.DayTransform{}})
	b, _ := added(t, 2, parts, map[iceberg.FieldID]any{
		1000: "00112233-4455-6677-8899-aabbccddeeff", 1001: []byte{1, 2, 3, 4}, 1002: []byte{0xff}, 1003: []byte{0}, 1004: []byte{7},
	})
	p := partitionSchema(t, b)
	branch := func(i int) *avro.Node { return p.Fields[i].Type.Branches[1] }
	require.Equal(t, "uuid", branch(0).Logical)
	require.Equal(t, 16, branch(0).Size)
	require.Equal(t, 4, branch(1).Size)
	require.Equal(t, 16, branch(2).Size)
	require.Equal(t, 4, branch(3).Size)
	require.Equal(t, avro.Bytes, branch(4).Kind)
	require.Equal(t, avro.Int, branch(5).Kind)
	require.Equal(t, "date", branch(6).Logical)
	r, err := avro.NewReader(bytes.NewReader(b), "n", avro.Limits{})
	require.NoError(t, err)
	data, _, err := r.Next()
	require.NoError(t, err)
	// -1 of decimal(38,10) is sixteen bytes of ones.
	require.True(t, bytes.Contains(data, append([]byte{2}, bytes.Repeat([]byte{0xff}, 16)...)))
}

// TestF065VoidFields: on a v1 table a dropped partition field is void and
// always null, whether its source column still exists or not.
func TestF065VoidFields(t *testing.T) {
	_, parts := testSpec(t, 1, testSchema(), partField{"b", 2, icego.BucketTransform{NumBuckets: 2}}, partField{"c", 3, icego.VoidTransform{}},
		partField{"gone", 99, icego.VoidTransform{}})
	b, file := added(t, 1, parts, map[iceberg.FieldID]any{1000: int32(1)})
	require.Len(t, partitionSchema(t, b).Fields, 3)
	relisted, theirs := writeList(t, manifests.ListOptions{Version: 1, SnapshotID: 43}, file)
	require.Equal(t, int32(1), icegoEntries(t, theirs[0], b)[0].DataFile().Partition()[1000])
	e := readAll(t, b, relisted[0], nil)[0]
	require.Equal(t, 3, e.Partition.Len())
	require.True(t, e.Partition.At(1).IsNull())
	require.Len(t, relisted[0].Partitions, 3)
	require.True(t, relisted[0].Partitions[1].ContainsNull)
}

// TestF066DroppedSource: a field whose source column is in no schema stays in
// the tuple; its type is the one the manifest has.
func TestF066DroppedSource(t *testing.T) {
	id := icego.IdentityTransform{}
	_, full := testSpec(t, 1, testSchema(), partField{"a", 3, id}, partField{"day", 8, icego.DayTransform{}}, partField{"dec", 15, id})
	b, file := added(t, 2, full, map[iceberg.FieldID]any{1000: int32(-7), 1001: icego.Date(100), 1002: []byte{1}})
	relisted, _ := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 9}, file)

	// The table's metadata no longer tells the types of two of the fields.
	poor := *full
	typ := *full.Type
	typ.Fields = append([]iceberg.PartitionField(nil), full.Type.Fields...)
	for _, i := range []int{0, 2} {
		typ.Fields[i].Source, typ.Fields[i].Result = nil, nil
	}
	poor.Type = &typ
	out, carried := rewriteWith(t, b, relisted[0], manifests.WriterOptions{Path: "n", Version: 2, Partitioning: &poor, SnapshotID: 44}, (*manifests.Writer).Carry)
	require.True(t, avro.SameEncoding(partitionSchema(t, b), partitionSchema(t, out)))
	require.Equal(t, file.Partitions, carried.Partitions)
	require.Equal(t, carried.Partitions, carried.Summaries(full.Type))
	short := carried.Clone()
	short.Partitions = short.Partitions[1:]
	require.Nil(t, short.Summaries(full.Type))
	again := readAll(t, out, &manifests.ManifestFile{Path: "n", SpecID: 1, Seq: manifests.Some(iceberg.SeqNum(9))}, full.Type)
	require.Equal(t, int32(-7), again[0].Partition.At(0).Any())
	require.Equal(t, icego.Date(100), again[0].Partition.At(1).Any())

	// Without any manifest that knows, nothing can be written.
	var sink bytes.Buffer
	w, err := manifests.NewWriter(&sink, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: &poor, SnapshotID: 44})
	require.NoError(t, err)
	err = w.Add(&manifests.Entry{File: manifests.File{Path: "f", Format: manifests.Parquet, SpecID: 1, Partition: again[0].Partition}})
	require.Equal(t, fault.Unsupported, fault.Of(err))

	// A record that some writer compacted the dropped field away from still
	// reads by id.
	file2 := `{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
 {"name":"file_format","type":"string","field-id":101},
 {"name":"partition","type":{"type":"record","name":"r102","fields":[{"name":"day","type":["null","int"],"field-id":1001}]},"field-id":102},
 {"name":"record_count","type":"long","field-id":103},{"name":"file_size_in_bytes","type":"long","field-id":104}`
	c := craft(t, entrySchemaText(file2), nil, enc(1, 0, 0, 0, 0, "s3://b/t/1", "PARQUET", 1, 100, 5, 6))
	m := manifest(manifests.DataManifest)
	m.SpecID = 1
	e := readAll(t, c, m, full.Type)[0]
	require.True(t, e.Partition.At(0).IsNull())
	require.Equal(t, icego.Date(100), e.Partition.At(1).Any())
}

// TestF068GroupsByLogicalValue: one value in all the Avro types writers choose
// for it is one partition.
func TestF068GroupsByLogicalValue(t *testing.T) {
	le := func(v uint64) rawBytes { return binary.LittleEndian.AppendUint64(nil, v) }
	for _, c := range []struct {
		name   string
		source int
		types  []string
		values []any
	}{
		{"date", 6, []string{`{"type":"int","logicalType":"date"}`, `"int"`, `"long"`}, []any{500, 500, 500}},
		{"time", 7, []string{`{"type":"long","logicalType":"time-micros"}`, `"long"`, `{"type":"int","logicalType":"time-millis"}`}, []any{5000, 5000, 5}},
		{"timestamp", 8, []string{`{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":false}`, `{"type":"long","logicalType":"local-timestamp-micros"}`, `"long"`, `{"type":"long","logicalType":"timestamp-millis"}`}, []any{7000, 7000, 7000, 7}},
		{"decimal", 14, []string{`{"type":"fixed","name":"d","size":16,"logicalType":"decimal","precision":38,"scale":10}`, `{"type":"bytes","logicalType":"decimal","precision":38,"scale":10}`, `{"type":"fixed","name":"fixed","size":3}`},
			[]any{rawBytes(append(bytes.Repeat([]byte{0xff}, 15), 0x85)), []byte{0x85}, rawBytes{0xff, 0xff, 0x85}}},
		{"uuid", 12, []string{`{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}`, `{"type":"fixed","name":"f","size":16}`, `{"type":"string","logicalType":"uuid"}`, `"bytes"`},
			[]any{rawBytes("0123456789abcdef"), rawBytes("0123456789abcdef"), "30313233-3435-3637-3839-616263646566", []byte("0123456789abcdef")}},
		{"long", 1, []string{`"long"`, `"int"`}, []any{-3, -3}},
		{"double", 5, []string{`"double"`, `"float"`}, []any{le(0x3ff8000000000000), rawBytes{0, 0, 0xc0, 0x3f}}},
		{"nan", 5, []string{`"double"`, `"double"`}, []any{le(0x7ff8000000000000), le(0xfff8000000000123)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, parts := testSpec(t, 0, testSchema(), partField{"p", c.source, icego.IdentityTransform{}})
			var keys []iceberg.TupleKey
			for i, typ := range c.types {
				file := `{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
 {"name":"file_format","type":"string","field-id":101},
 {"name":"partition","type":{"type":"record","name":"r102","fields":[{"name":"p","type":["null",` + typ + `],"field-id":1000}]},"field-id":102},
 {"name":"record_count","type":"long","field-id":103},{"name":"file_size_in_bytes","type":"long","field-id":104}`
				b := craft(t, entrySchemaText(file), nil, enc(1, 0, 0, 0, 1, "s3://b/t/1", "PARQUET", 1, c.values[i], 5, 6))
				m := manifest(manifests.DeleteManifest)
				keys = append(keys, readAll(t, b, m, parts.Type)[0].Partition.Key())
				// And what is written from it has the spec's type.
				out, carried := rewriteWith(t, b, m, manifests.WriterOptions{Path: "n", Version: 2, Content: manifests.DeleteManifest, Partitioning: parts, SnapshotID: 43}, (*manifests.Writer).Carry)
				keys = append(keys, readAll(t, out, m, nil)[0].Partition.Key())
				_, theirs := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 9}, carried)
				require.NotNil(t, icegoEntries(t, theirs[0], out)[0].DataFile().Partition()[1000])
			}
			for _, k := range keys {
				require.Equal(t, keys[0], k)
			}
		})
	}
}

func TestTuplesThatDoNotFitAreCorrupt(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema(), partField{"p", 6, icego.IdentityTransform{}})
	for typ, value := range map[string]any{`"string"`: "2026-01-01", `"long"`: 1 << 40, `{"type":"array","items":"int"}`: 0} {
		file := `{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
 {"name":"file_format","type":"string","field-id":101},
 {"name":"partition","type":{"type":"record","name":"r102","fields":[{"name":"p","type":["null",` + typ + `],"field-id":1000}]},"field-id":102},
 {"name":"record_count","type":"long","field-id":103},{"name":"file_size_in_bytes","type":"long","field-id":104}`
		b := craft(t, entrySchemaText(file), nil, enc(1, 0, 0, 0, 0, "s3://b/t/1", "PARQUET", 1, value, 5, 6))
		for _, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(b), manifest(manifests.DataManifest), manifests.ReadOptions{Partition: parts.Type}) {
			require.Equal(t, fault.Corrupt, fault.Of(err))
			require.ErrorContains(t, err, "s3://b/t/metadata/m.avro")
			require.ErrorContains(t, err, `"p"`)
		}
	}
}

func TestCompareTuples(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema(), partField{"a", 1, icego.IdentityTransform{}}, partField{"b", 2, icego.IdentityTransform{}})
	tuple := func(a, b any) iceberg.Tuple {
		x, err := parts.Type.Tuple(map[iceberg.FieldID]any{1000: a, 1001: b})
		require.NoError(t, err)
		return x
	}
	order := []iceberg.Tuple{tuple(nil, nil), tuple(nil, "a"), tuple(int64(-300), "z"), tuple(int64(2), nil), tuple(int64(2), "a"), tuple(int64(2), "b"), tuple(int64(300), "")}
	for i := range order {
		for j := range order {
			c := manifests.CompareTuples(order[i], order[j])
			require.Equal(t, i < j, c < 0, "%d %d", i, j)
			require.Equal(t, i == j, c == 0, "%d %d", i, j)
		}
	}
}
