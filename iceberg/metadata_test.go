package iceberg_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

func TestFixturesAreReadOrRefused(t *testing.T) {
	refused := map[string]struct {
		kind fault.Kind
		text string
	}{
		"TableMetadataUnsupportedVersion.json":       {fault.Unsupported, "format version 42"},
		"TableMetadataV1MissingSchemaType.json":      {fault.Corrupt, "type of a schema"},
		"TableMetadataV2CurrentSchemaNotFound.json":  {fault.Corrupt, "current-schema-id"},
		"TableMetadataV2MissingLastPartitionId.json": {fault.Corrupt, "last-partition-id"},
		"TableMetadataV2MissingPartitionSpecs.json":  {fault.Corrupt, "partition-specs"},
		"TableMetadataV2MissingSchemas.json":         {fault.Corrupt, "schemas"},
		"TableMetadataV2MissingSortOrder.json":       {fault.Corrupt, "sort-orders"},
	}
	files, err := filepath.Glob(filepath.Join(fixtures(t), "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			stored, err := os.ReadFile(file)
			require.NoError(t, err)
			m, err := iceberg.ParseMetadata(stored)
			if want, ok := refused[name]; ok {
				requireKind(t, want.kind, err, want.text)
				return
			}
			require.NoError(t, err)
			edited, err := m.Edit().Build()
			require.NoError(t, err)
			sameButFor(t, m.Raw(), edited.JSON, "current-snapshot-id", "snapshots", "snapshot-log", "metadata-log", "refs")
			readByOthers(t, edited.JSON)
		})
	}
}

func TestFixtureContents(t *testing.T) {
	read := func(name string) *iceberg.Metadata {
		stored, err := os.ReadFile(filepath.Join(fixtures(t), name))
		require.NoError(t, err)
		return parse(t, stored)
	}
	v1 := read("TableMetadataV1Valid.json")
	require.Equal(t, 1, v1.FormatVersion)
	require.Nil(t, v1.Current())
	require.Equal(t, 3, v1.CurrentSchema().NumFields())
	require.Equal(t, 1, v1.DefaultSpec().NumFields())
	require.Equal(t, iceberg.FieldID(1000), v1.LastPartitionID)
	require.Nil(t, v1.NextRowID)

	v3 := read("TableMetadataV3WithPartitionStatistics.json")
	require.Equal(t, int64(3000), *v3.NextRowID)
	require.Equal(t, iceberg.SnapshotID(3055729675574597004), v3.Current().ID)
	require.Equal(t, iceberg.SeqNum(1), v3.Current().SequenceNumber)
	require.Equal(t, int64(2000), *v3.Current().FirstRowID)
	require.Equal(t, "s3://a/b/2.avro", v3.Current().ManifestList)
	require.Equal(t, map[string]string{"operation": "append"}, v3.Current().Summary())
	require.Equal(t, iceberg.Ref{SnapshotID: 3051729675574597004, Type: iceberg.Tag, MaxRefAgeMs: ptr[int64](10000000)}, v3.Refs["test"])
	require.Len(t, v3.PartitionStatistics, 2)
	require.Equal(t, int64(42330), v3.PartitionStatistics[0].SizeBytes)
	order, ok := v3.SortOrder(3)
	require.True(t, ok)
	require.Equal(t, []iceberg.FieldID{3}, order.Fields[1].SourceIDs)
	require.True(t, order.Fields[1].Descending && order.Fields[1].NullsLast)
	require.False(t, order.Fields[0].Descending || order.Fields[0].NullsLast)
	require.True(t, v3.IsAncestor(3051729675574597004, v3.Current().ID))
	require.False(t, v3.IsAncestor(v3.Current().ID, 3051729675574597004))
	require.NoError(t, v3.Plaintext())

	zstd := read("TableMetadataV2Valid.zstd.metadata.json")
	require.Equal(t, read("TableMetadataV2Valid.json").UUID, zstd.UUID)
}

func TestContradictionsAreRefused(t *testing.T) {
	type fields = map[string]any
	for _, c := range []struct {
		name    string
		version int
		fields  fields
		kind    fault.Kind
		text    string
	}{
		{"version 0", 2, fields{"format-version": 0}, fault.Corrupt, "format-version"},
		{"version 4", 2, fields{"format-version": 4}, fault.Unsupported, "format version 4"},
		{"version text", 2, fields{"format-version": "2"}, fault.Corrupt, "format-version"},
		{"no location", 2, fields{"location": nil}, fault.Corrupt, "location"},
		{"empty location", 2, fields{"location": ""}, fault.Corrupt, "location"},
		{"bad uuid", 2, fields{"table-uuid": "x"}, fault.Corrupt, "table-uuid"},
		{"no uuid", 2, fields{"table-uuid": nil}, fault.Corrupt, "table-uuid"},
		{"no sequence number", 2, fields{"last-sequence-number": nil}, fault.Corrupt, "last-sequence-number"},
		{"negative sequence number", 2, fields{"last-sequence-number": -1}, fault.Corrupt, "last-sequence-number"},
		{"current missing", 2, fields{"current-snapshot-id": 5}, fault.Corrupt, "no snapshot 5"},
		{"current negative", 2, fields{"current-snapshot-id": -2}, fault.Corrupt, "no snapshot -2"},
		{"column twice", 2, fields{"schemas": []any{fields{"type": "struct", "schema-id": 0, "fields": []any{column(1, "a", "int"), column(1, "b", "int")}}}}, fault.Corrupt, "schema"},
		{"column unnamed", 2, fields{"schemas": []any{fields{"type": "struct", "schema-id": 0, "fields": []any{fields{"id": 1, "type": "int", "required": true}}}}}, fault.Corrupt, "schema"},
		{"future type", 2, fields{"schemas": []any{fields{"type": "struct", "schema-id": 0, "fields": []any{column(1, "a", "int128")}}}}, fault.Unsupported, "int128"},
		{"future nested type", 2, fields{"schemas": []any{fields{"type": "struct", "schema-id": 0, "fields": []any{column(1, "a", fields{"type": "union"})}}}}, fault.Unsupported, "union"},
		{"field id too large", 2, fields{"schemas": []any{fields{"type": "struct", "schema-id": 0, "fields": []any{column(2147483600, "a", "int")}}}}, fault.Corrupt, "out of range"},
		{"schema twice", 2, fields{"schemas": []any{fields{"type": "struct", "schema-id": 0, "fields": []any{}}, fields{"type": "struct", "schema-id": 0, "fields": []any{}}}}, fault.Corrupt, "schema id 0"},
		{"spec twice", 2, fields{"partition-specs": []any{spec(0), spec(0)}}, fault.Corrupt, "spec id 0"},
		{"no default spec", 2, fields{"default-spec-id": 3}, fault.Corrupt, "default-spec-id"},
		{"bad bucket", 2, fields{"partition-specs": []any{spec(0, partition(1000, 1, "b", "bucket[0]"))}}, fault.Corrupt, "partition spec"},
		{"order twice", 2, fields{"sort-orders": []any{fields{"order-id": 1, "fields": []any{}}, fields{"order-id": 1, "fields": []any{}}}}, fault.Corrupt, "sort order id 1"},
		{"no default order", 2, fields{"default-sort-order-id": 9}, fault.Corrupt, "default-sort-order-id"},
		{"property no text", 2, fields{"properties": fields{"a": 1}}, fault.Corrupt, "properties"},
		{"main elsewhere", 2, fields{"last-sequence-number": 2, "current-snapshot-id": 1, "snapshots": []any{snapshot(1, 0, 1, 1), snapshot(2, 1, 2, 2)},
			"refs": fields{"main": fields{"snapshot-id": 2, "type": "branch"}}}, fault.Corrupt, "main"},
		{"main but no current", 2, fields{"last-sequence-number": 2, "snapshots": []any{snapshot(1, 0, 1, 1)},
			"refs": fields{"main": fields{"snapshot-id": 1, "type": "branch"}}}, fault.Corrupt, "main"},
		{"main a tag", 2, fields{"last-sequence-number": 2, "current-snapshot-id": 1, "snapshots": []any{snapshot(1, 0, 1, 1)},
			"refs": fields{"main": fields{"snapshot-id": 1, "type": "tag"}}}, fault.Corrupt, "main"},
		{"ref to nowhere", 2, fields{"refs": fields{"x": fields{"snapshot-id": 1, "type": "tag"}}}, fault.Corrupt, "ref \"x\""},
		{"ref without type", 2, fields{"refs": fields{"x": fields{"snapshot-id": 1}}}, fault.Corrupt, "type"},
		{"retention zero", 2, fields{"refs": fields{"x": fields{"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 0}}}, fault.Corrupt, "max-ref-age-ms"},
		{"snapshot from the future", 2, fields{"last-sequence-number": 2, "snapshots": []any{snapshot(1, 0, 3, 1)}}, fault.Corrupt, "sequence number 3"},
		{"snapshot without id", 2, fields{"snapshots": []any{fields{"timestamp-ms": 1, "manifest-list": "x"}}}, fault.Corrupt, "element 0"},
		{"snapshot id -1", 2, fields{"snapshots": []any{snapshot(-1, 0, 0, 1)}}, fault.Corrupt, "-1"},
		{"snapshot without files", 2, fields{"snapshots": []any{fields{"snapshot-id": 1, "timestamp-ms": 1}}}, fault.Corrupt, "manifest list"},
		{"snapshot null", 2, fields{"snapshots": []any{nil}}, fault.Corrupt, "element 0"},
		{"embedded manifests in v3", 3, fields{"snapshots": []any{fields{"snapshot-id": 1, "timestamp-ms": 1, "manifests": []string{"x"}}}}, fault.Corrupt, "manifest list"},
		{"own parent", 2, fields{"last-sequence-number": 9, "snapshots": []any{snapshot(1, 1, 1, 1)}}, fault.Corrupt, "own ancestor"},
		{"cycle", 2, fields{"last-sequence-number": 9, "snapshots": []any{snapshot(1, 3, 1, 1), snapshot(2, 1, 1, 1), snapshot(3, 2, 1, 1)}}, fault.Corrupt, "own ancestor"},
		{"statistics without path", 2, fields{"statistics": []any{fields{"snapshot-id": 1, "file-size-in-bytes": 1}}}, fault.Corrupt, "statistics-path"},
		{"F075 no next row id", 3, fields{"next-row-id": nil}, fault.Corrupt, "next-row-id"},
		{"F075 negative next row id", 3, fields{"next-row-id": -5}, fault.Corrupt, "next-row-id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := iceberg.ParseMetadata(tableJSON(c.version, c.fields))
			requireKind(t, c.kind, err, c.text)
		})
	}
	_, err := iceberg.ParseMetadata([]byte("{\"a\":\"\xff\"}"))
	requireKind(t, fault.Corrupt, err, "UTF-8")
	_, err = iceberg.ParseMetadata([]byte(`{"format-version":2,"format-version":1}`))
	requireKind(t, fault.Corrupt, err, "occurs twice")
}

func TestF121DuplicateSnapshotIDsAreRefused(t *testing.T) {
	_, err := iceberg.ParseMetadata(tableJSON(2, map[string]any{"snapshots": []any{snapshot(5, 0, 0, 1), snapshot(5, 0, 0, 2)}}))
	requireKind(t, fault.Corrupt, err, "snapshot id 5 occurs twice")
}

func TestF084OldSnapshots(t *testing.T) {
	m := parse(t, []byte(`{"format-version":1,"location":"s3://lake/ns/t","last-updated-ms":1,"last-column-id":1,
		"schema":{"type":"struct","fields":[{"id":1,"name":"x","required":true,"type":"long"}]},"partition-spec":[],
		"current-snapshot-id":7,"snapshots":[{"snapshot-id":7,"timestamp-ms":1,"sequence-number":9,"manifests":["s3://lake/ns/t/metadata/m0.avro","m1.avro"]}]}`))
	require.Equal(t, []string{"s3://lake/ns/t/metadata/m0.avro", "m1.avro"}, m.Current().Manifests)
	require.Zero(t, m.Current().SequenceNumber, "v1 has no sequence numbers")
	require.Equal(t, iceberg.SnapshotID(7), m.Refs[iceberg.MainBranch].SnapshotID, "main is implied")

	old := snapshot(1, 0, 0, 1)
	delete(old, "sequence-number")
	m = parse(t, tableJSON(2, map[string]any{"snapshots": []any{old}}))
	require.Zero(t, m.Snapshots[0].SequenceNumber)
}

func TestF099EncryptionIsNamed(t *testing.T) {
	keyed := snapshot(1, 0, 0, 1)
	keyed["key-id"] = "k1"
	for text, fields := range map[string]map[string]any{
		"encryption-keys":   {"encryption-keys": []any{map[string]any{"key-id": "k1", "encrypted-key-metadata": "eA=="}}},
		"key-id of snap":    {"snapshots": []any{keyed}},
		"encryption.key-id": {"properties": map[string]any{"encryption.key-id": "k"}},
		"key-metadata of s": {"statistics": []any{map[string]any{"snapshot-id": 1, "statistics-path": "x", "file-size-in-bytes": 1, "key-metadata": "eA=="}}},
	} {
		requireKind(t, fault.Unsupported, parse(t, tableJSON(3, fields)).Plaintext(), text)
	}
	require.NoError(t, parse(t, tableJSON(3, nil)).Plaintext())
}

func TestF098UnknownThingsAreKept(t *testing.T) {
	acme := snapshot(1, 0, 1, 1000)
	acme["summary"] = map[string]any{"operation": "acme-merge", "acme": "1", "odd": 5}
	acme["acme-field"] = map[string]any{"deep": []any{1.50, "x"}}
	raw := tableJSON(2, map[string]any{
		"last-sequence-number": 1, "current-snapshot-id": 1, "snapshots": []any{acme}, "acme-top": json.RawMessage(`{"n":1.500}`),
		"statistics": []any{map[string]any{"snapshot-id": 1, "statistics-path": "s3://lake/x.puffin", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1,
			"blob-metadata": []any{map[string]any{"type": "acme-x-v1", "snapshot-id": 1, "sequence-number": 1, "fields": []int{1}}}}},
		"refs": map[string]any{"main": map[string]any{"snapshot-id": 1, "type": "branch", "acme-ref": true}},
	})
	m := parse(t, raw)
	require.Equal(t, "acme-merge", m.Current().Operation)
	require.Equal(t, map[string]string{"operation": "acme-merge", "acme": "1", "odd": "5"}, m.Current().Summary())
	e := m.Edit()
	e.AddSnapshot(iceberg.NewSnapshot{ID: 2, ParentID: ptr(iceberg.SnapshotID(1)), SequenceNumber: 2, TimestampMs: 2000, ManifestList: "s3://lake/l", Operation: "replace"})
	e.SetRef("main", 2)
	out, err := e.Build()
	require.NoError(t, err)
	sameButFor(t, raw, out.JSON, "snapshots", "refs", "current-snapshot-id", "snapshot-log", "last-updated-ms", "last-sequence-number")
	require.Equal(t, string(m.Snapshots[0].Raw()), string(out.Metadata.Snapshots[0].Raw()))
	require.Contains(t, string(out.JSON), `"acme-ref":true`)
	require.Contains(t, string(out.JSON), `{"n":1.500}`)
}

func TestF126CompressionIsToldByTheBytes(t *testing.T) {
	plain := history(2, nil)
	zip := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		stored []byte
		how    iceberg.Compression
	}{
		"plain":        {plain, iceberg.None},
		"gzip":         {zip(plain), iceberg.Gzip},
		"two members":  {append(zip(plain[:100]), zip(plain[100:])...), iceberg.Gzip},
		"zstd":         {enc.EncodeAll(plain, nil), iceberg.Zstd},
		"empty member": {append(zip(nil), zip(plain)...), iceberg.Gzip},
	} {
		out, how, err := iceberg.Decompress(c.stored)
		require.NoError(t, err, name)
		require.Equal(t, c.how, how, name)
		require.Equal(t, string(plain), string(out), name)
		require.Equal(t, iceberg.SnapshotID(3), parse(t, c.stored).Current().ID)
	}
	cut := zip(plain)
	_, err = iceberg.ParseMetadata(cut[:len(cut)-9])
	requireKind(t, fault.Corrupt, err, "gzip")
	_, err = iceberg.ParseMetadata(append([]byte{0x28, 0xb5, 0x2f, 0xfd}, 1, 2, 3))
	requireKind(t, fault.Corrupt, err, "zstd")
}

func TestDecompressionIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 256 MB of zeros")
	}
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, err := w.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = iceberg.ParseMetadata(bytes.Repeat(member.Bytes(), iceberg.MaxMetadataBytes>>20+1))
	requireKind(t, fault.TooLarge, err)
}

func TestHostileNesting(t *testing.T) {
	typ := any("int")
	for i := range 200 {
		typ = map[string]any{"type": "list", "element-id": 10 + i, "element-required": false, "element": typ}
	}
	_, err := iceberg.ParseMetadata(tableJSON(2, map[string]any{"schemas": []any{
		map[string]any{"type": "struct", "schema-id": 0, "fields": []any{column(1, "a", typ)}}}}))
	require.NoError(t, err)
	raw := strings.Replace(string(tableJSON(2, nil)), `"properties":{}`, `"properties":{},"x":`+strings.Repeat("[", 300)+strings.Repeat("]", 300), 1)
	_, err = iceberg.ParseMetadata([]byte(raw))
	requireKind(t, fault.Corrupt, err, "nested deeper")
}

// many is metadata with n snapshots, each with a summary of the usual size.
func many(n int) []byte {
	snapshots, log := make([]any, n), make([]any, n)
	for i := range n {
		s := snapshot(int64(i)+1000, 0, int64(i)+1, int64(i)+1)
		if i > 0 {
			s["parent-snapshot-id"] = i + 999
		}
		for j := range 16 {
			s["summary"].(map[string]any)[fmt.Sprintf("total-something-%d", j)] = "123456"
		}
		snapshots[i] = s
		log[i] = map[string]any{"snapshot-id": i + 1000, "timestamp-ms": i + 1}
	}
	return tableJSON(2, map[string]any{
		"snapshots": snapshots, "snapshot-log": log, "current-snapshot-id": n + 999, "last-sequence-number": n, "last-updated-ms": n,
		"refs": map[string]any{"main": map[string]any{"snapshot-id": n + 999, "type": "branch"}},
	})
}

func BenchmarkParse10kSnapshots(b *testing.B) {
	raw := many(10000)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := iceberg.ParseMetadata(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func TestManySnapshots(t *testing.T) {
	m := parse(t, many(10000))
	n := 0
	for range m.Ancestors(m.Current().ID) {
		n++
	}
	require.Equal(t, 10000, n)
	g := m.Graph()
	require.Equal(t, []iceberg.SnapshotID{1001}, g.Children(1000))
	require.Empty(t, g.Unreferenced())
	require.Equal(t, []string{"main"}, g.RefsTo(10999))
}
