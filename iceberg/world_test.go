package iceberg_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
)

const (
	testUUID  = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
	otherUUID = "1c12d441-03fe-4693-9a96-a0705ddf69c2"
)

var events = iceberg.TableID{Bucket: "lake", Namespace: "sales.daily", Name: "events"}

// world is a filer with the table bucket "lake" and its namespace "sales.daily".
func world() *filertest.Filer {
	f := filertest.New(filertest.Options{})
	bucket(f, "lake")
	namespace(f, "lake", "sales.daily")
	return f
}

func bucket(f *filertest.Filer, name string) {
	f.Mkdir(filer.BucketPath(name), map[string][]byte{
		iceberg.AttrTableBucket: []byte("true"),
		iceberg.AttrMetadata:    []byte(`{"name":"` + name + `","format":"ICEBERG"}`),
	})
}

func namespace(f *filertest.Filer, bucket, name string) {
	f.Mkdir(filer.BucketPath(bucket).Join(name), map[string][]byte{iceberg.AttrMetadata: []byte(`{"namespace":["` + name + `"]}`)})
}

// recordJSON is a record as the catalog writes it. Without metadata it keeps the
// location only.
func recordJSON(name, location string, version int, metadata []byte) []byte {
	inner := `{"iceberg":{"tableUuid":"` + testUUID + `"}`
	if metadata != nil {
		var b bytes.Buffer
		if err := json.Compact(&b, metadata); err != nil {
			panic(err)
		}
		inner += `,"fullMetadata":` + b.String()
	}
	return []byte(fmt.Sprintf(`{"name":%q,"namespace":"sales.daily","format":"ICEBERG","createdAt":"2026-01-01T00:00:00Z",`+
		`"modifiedAt":"2026-01-01T00:00:00.5Z","ownerAccountId":"000000000000","versionToken":"0123456789abcdef0123456789abcdef",`+
		`"metadataVersion":%d,"metadataLocation":%q,"metadata":%s},"x-unknown": 1.50,"warehouseLocation":"s3://lake/sales.daily/events-w"}`,
		name, version, location, inner))
}

// putTable makes a table whose record keeps its metadata.
func putTable(f *filertest.Filer, id iceberg.TableID, location string, metadata []byte) *filer.Entry {
	return f.Mkdir(mustPath(id), map[string][]byte{iceberg.AttrMetadata: recordJSON(id.Name, location, 7, metadata)})
}

func mustPath(id iceberg.TableID) filer.Path {
	p, err := iceberg.RecordPath(id)
	if err != nil {
		panic(err)
	}
	return p
}

// tableJSON is small valid metadata; fields replace or add members, and a nil
// value removes one.
func tableJSON(version int, fields map[string]any) []byte {
	doc := map[string]any{
		"format-version": version, "table-uuid": testUUID, "location": "s3://lake/sales.daily/events-u",
		"last-updated-ms": 1000, "last-column-id": 3, "current-schema-id": 0, "default-spec-id": 0,
		"schemas": []any{map[string]any{"type": "struct", "schema-id": 0, "fields": []any{
			column(1, "x", "long"), column(2, "y", "string"), column(3, "ts", "timestamp"),
		}}},
		"partition-specs":       []any{map[string]any{"spec-id": 0, "fields": []any{}}},
		"last-partition-id":     999,
		"sort-orders":           []any{map[string]any{"order-id": 0, "fields": []any{}}},
		"default-sort-order-id": 0, "properties": map[string]any{},
		"snapshots": []any{}, "snapshot-log": []any{}, "metadata-log": []any{}, "refs": map[string]any{},
	}
	if version >= 2 {
		doc["last-sequence-number"] = 0
	}
	if version >= 3 {
		doc["next-row-id"] = 0
	} else {
		doc["current-snapshot-id"] = -1
	}
	for key, value := range fields {
		if value == nil || version == 1 && key == "last-sequence-number" {
			delete(doc, key)
			continue
		}
		doc[key] = value
	}
	out, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return out
}

func column(id int, name string, typ any) map[string]any {
	return map[string]any{"id": id, "name": name, "required": false, "type": typ}
}

func spec(id int, fields ...any) map[string]any {
	return map[string]any{"spec-id": id, "fields": append([]any{}, fields...)}
}

func partition(id, source int, name, transform string) map[string]any {
	return map[string]any{"field-id": id, "source-id": source, "name": name, "transform": transform}
}

func snapshot(id, parent, seq, at int64) map[string]any {
	s := map[string]any{
		"snapshot-id": id, "timestamp-ms": at, "sequence-number": seq,
		"manifest-list": fmt.Sprintf("s3://lake/sales.daily/events-u/metadata/snap-%d.avro", id),
		"summary":       map[string]any{"operation": "append", "added-records": "1"},
	}
	if parent != 0 {
		s["parent-snapshot-id"] = parent
	}
	return s
}

// history is metadata with the snapshots 1 <- 2 <- 3, main at 3.
func history(version int, fields map[string]any) []byte {
	all := map[string]any{
		"last-sequence-number": 3, "last-updated-ms": 3000, "current-snapshot-id": 3,
		"snapshots": []any{snapshot(1, 0, 1, 1000), snapshot(2, 1, 2, 2000), snapshot(3, 2, 3, 3000)},
		"snapshot-log": []any{
			map[string]any{"snapshot-id": 1, "timestamp-ms": 1000}, map[string]any{"snapshot-id": 2, "timestamp-ms": 2000},
			map[string]any{"snapshot-id": 3, "timestamp-ms": 3000},
		},
		"refs": map[string]any{"main": map[string]any{"snapshot-id": 3, "type": "branch"}},
	}
	for k, v := range fields {
		all[k] = v
	}
	return tableJSON(version, all)
}

func parse(t require.TestingT, raw []byte) *iceberg.Metadata {
	m, err := iceberg.ParseMetadata(raw)
	require.NoError(t, err)
	return m
}

func requireKind(t require.TestingT, want fault.Kind, err error, text ...string) {
	require.Error(t, err)
	require.Equal(t, want.String(), fault.Of(err).String(), "%v", err)
	for _, part := range text {
		require.ErrorContains(t, err, part)
	}
}

// fixtures is the directory of files written by others.
func fixtures(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SEAICE_FIXTURES")
	if dir == "" {
		dir = "../../shared/fixtures"
	}
	if _, err := os.Stat(dir + "/iceberg"); err != nil {
		t.Skipf("fixtures are absent: %v", err)
	}
	return dir + "/iceberg"
}

func ptr[T any](v T) *T { return &v }
