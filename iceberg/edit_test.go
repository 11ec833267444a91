package iceberg_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// sameButFor is O8: only the named top-level fields differ, all others are equal
// byte for byte and in the same order.
func sameButFor(t require.TestingT, before, after []byte, owned ...string) {
	read := func(raw []byte) (keys []string, values map[string]string) {
		values = map[string]string{}
		require.NoError(t, rawjson.EachMember(raw, func(key, value []byte) error {
			if !slices.Contains(owned, string(key)) {
				keys = append(keys, string(key))
				values[string(key)] = string(value)
			}
			return nil
		}))
		return keys, values
	}
	keysBefore, valuesBefore := read(before)
	keysAfter, valuesAfter := read(after)
	require.Equal(t, keysBefore, keysAfter)
	require.Equal(t, valuesBefore, valuesAfter)
}

// readByOthers reads metadata with iceberg-go.
func readByOthers(t require.TestingT, raw []byte) icetable.Metadata {
	m, err := icetable.ParseMetadataBytes(raw)
	require.NoError(t, err)
	return m
}

func build(t require.TestingT, m *iceberg.Metadata, edit func(e *iceberg.Edit)) *iceberg.Edited {
	e := m.Edit()
	edit(e)
	out, err := e.Build()
	require.NoError(t, err)
	readByOthers(t, out.JSON)
	return out
}

func refuse(t *testing.T, kind fault.Kind, m *iceberg.Metadata, text string, edit func(e *iceberg.Edit)) {
	t.Helper()
	e := m.Edit()
	edit(e)
	_, err := e.Build()
	requireKind(t, kind, err, text)
}

func next(m *iceberg.Metadata, id iceberg.SnapshotID) iceberg.NewSnapshot {
	s := iceberg.NewSnapshot{
		ID: id, SequenceNumber: m.LastSequenceNumber + 1, TimestampMs: m.LastUpdatedMs + 5, ManifestList: "s3://lake/l.avro", Operation: "replace",
		ParentID: m.CurrentSnapshotID, SchemaID: ptr(m.CurrentSchemaID), Summary: map[string]string{"total-records": "5", "a<b": "é"},
	}
	if m.FormatVersion == 1 {
		s.SequenceNumber = 0
	}
	if m.NextRowID != nil {
		s.FirstRowID, s.AddedRows = ptr(*m.NextRowID), ptr[int64](10)
	}
	return s
}

func TestAddSnapshot(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			m := parse(t, history(version, nil))
			out := build(t, m, func(e *iceberg.Edit) {
				e.AddSnapshot(next(m, 77))
				e.SetRef(iceberg.MainBranch, 77)
				e.AppendMetadataLog("s3://lake/sales.daily/events-u/metadata/v7.metadata.json")
			})
			sameButFor(t, m.Raw(), out.JSON, "snapshots", "snapshot-log", "metadata-log", "refs", "current-snapshot-id",
				"last-updated-ms", "last-sequence-number", "next-row-id")
			got := out.Metadata
			require.Equal(t, iceberg.SnapshotID(77), got.Current().ID)
			require.Equal(t, iceberg.SnapshotID(3), *got.Current().ParentID)
			require.Equal(t, int64(3005), got.LastUpdatedMs)
			require.Equal(t, map[string]string{"operation": "replace", "total-records": "5", "a<b": "é"}, got.Current().Summary())
			require.Equal(t, iceberg.SnapshotLogEntry{SnapshotID: 77, TimestampMs: 3005}, got.SnapshotLog[3])
			require.Equal(t, []iceberg.MetadataLogEntry{{MetadataFile: "s3://lake/sales.daily/events-u/metadata/v7.metadata.json", TimestampMs: 3000}}, got.MetadataLog)
			seq, row := iceberg.SeqNum(4), (*int64)(nil)
			if version == 1 {
				seq = 0
				require.NotContains(t, string(got.Current().Raw()), "sequence-number")
			}
			if version == 3 {
				row = ptr[int64](10)
			}
			require.Equal(t, seq, got.LastSequenceNumber)
			require.Equal(t, seq, got.Current().SequenceNumber)
			require.Equal(t, row, got.NextRowID)
		})
	}
}

func TestAddSnapshotInvariants(t *testing.T) {
	v2, v3 := parse(t, history(2, nil)), parse(t, history(3, nil))
	for name, spoil := range map[string]func(s *iceberg.NewSnapshot){
		"id is not positive":  func(s *iceberg.NewSnapshot) { s.ID = 0 },
		"snapshot 2 exists":   func(s *iceberg.NewSnapshot) { s.ID = 2 },
		"manifest list":       func(s *iceberg.NewSnapshot) { s.ManifestList = "" },
		"operation is":        func(s *iceberg.NewSnapshot) { s.Operation = "" },
		"repeats":             func(s *iceberg.NewSnapshot) { s.Summary = map[string]string{"operation": "x"} },
		"sequence number 3":   func(s *iceberg.NewSnapshot) { s.SequenceNumber = 3 },
		"before the last":     func(s *iceberg.NewSnapshot) { s.TimestampMs = 2999 },
		"parent 9":            func(s *iceberg.NewSnapshot) { s.ParentID = ptr(iceberg.SnapshotID(9)) },
		"row ids are for v3":  func(s *iceberg.NewSnapshot) { s.FirstRowID = ptr[int64](0) },
		"row ids are for v3,": func(s *iceberg.NewSnapshot) { s.FirstRowID, s.AddedRows = ptr[int64](0), ptr[int64](0) },
	} {
		refuse(t, fault.Halt, v2, name, func(e *iceberg.Edit) {
			s := next(v2, 77)
			spoil(&s)
			e.AddSnapshot(s)
		})
	}
	refuse(t, fault.Halt, v3, "next row id 0", func(e *iceberg.Edit) {
		s := next(v3, 77)
		s.FirstRowID = ptr[int64](5)
		e.AddSnapshot(s)
	})
	refuse(t, fault.Halt, v2, "does not exist", func(e *iceberg.Edit) { e.SetRef("main", 9) })
	refuse(t, fault.Halt, v2, "last change", func(e *iceberg.Edit) { e.SetLastUpdatedMs(1) })
	refuse(t, fault.Halt, v2, "sequence number", func(e *iceberg.Edit) { e.SetLastSequenceNumber(1) })
	refuse(t, fault.Halt, v2, "row ids", func(e *iceberg.Edit) { e.SetNextRowID(1) })
	refuse(t, fault.Halt, v2, "main", func(e *iceberg.Edit) { e.RemoveRefs("x", "main") })
	future := parse(t, history(2, map[string]any{"snapshots": []any{snapshot(3, 0, 3, 9000)}, "snapshot-log": []any{}}))
	refuse(t, fault.Halt, future, "before the parent's", func(e *iceberg.Edit) { e.AddSnapshot(next(future, 77)) })
}

func TestF075RowIDsNeverWrap(t *testing.T) {
	m := parse(t, history(3, map[string]any{"next-row-id": int64(math.MaxInt64 - 5)}))
	refuse(t, fault.Corrupt, m, "used up", func(e *iceberg.Edit) { e.AddSnapshot(next(m, 77)) })
}

func TestF096RefsKeepTheirRetention(t *testing.T) {
	m := parse(t, history(2, map[string]any{"refs": map[string]any{
		"main": map[string]any{"snapshot-id": 3, "type": "branch", "min-snapshots-to-keep": 5, "max-snapshot-age-ms": 9, "x": "y"},
		"tag":  map[string]any{"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 7},
	}}))
	out := build(t, m, func(e *iceberg.Edit) {
		e.AddSnapshot(next(m, 77))
		e.SetRef("main", 77)
		e.SetRef("audit", 2)
	})
	require.Equal(t, iceberg.Ref{SnapshotID: 77, Type: iceberg.Branch, MinSnapshotsToKeep: ptr[int64](5), MaxSnapshotAgeMs: ptr[int64](9)}, out.Metadata.Refs["main"])
	require.Equal(t, iceberg.Ref{SnapshotID: 1, Type: iceberg.Tag, MaxRefAgeMs: ptr[int64](7)}, out.Metadata.Refs["tag"])
	require.Equal(t, iceberg.Ref{SnapshotID: 2, Type: iceberg.Branch}, out.Metadata.Refs["audit"])
	require.Contains(t, string(out.JSON), `"x":"y"`)
	out = build(t, out.Metadata, func(e *iceberg.Edit) {
		e.PutRef("tag", iceberg.Ref{SnapshotID: 2, Type: iceberg.Tag, MaxRefAgeMs: ptr[int64](8)})
		e.RemoveRefs("audit", "none")
	})
	require.Equal(t, iceberg.Ref{SnapshotID: 2, Type: iceberg.Tag, MaxRefAgeMs: ptr[int64](8)}, out.Metadata.Refs["tag"])
	require.Equal(t, []string{"main", "tag"}, out.Metadata.RefNames())
}

func TestRefTypesInAnyCase(t *testing.T) {
	m := parse(t, history(2, map[string]any{"refs": map[string]any{"main": map[string]any{"snapshot-id": 3, "type": "BRANCH"}}}))
	require.Equal(t, iceberg.Branch, m.Refs["main"].Type)
	s, ok := m.Branch("main")
	require.True(t, ok)
	require.Equal(t, iceberg.SnapshotID(3), s.ID)
}

func TestRefsToNothing(t *testing.T) {
	m := parse(t, tableJSON(2, map[string]any{"refs": map[string]any{"main": map[string]any{"snapshot-id": -1, "type": "branch", "max-ref-age-ms": 5}}}))
	require.Empty(t, m.Refs)
	out := build(t, m, func(e *iceberg.Edit) {
		s := next(m, 77)
		e.AddSnapshot(s)
		e.SetRef("main", 77)
	})
	require.Equal(t, iceberg.Ref{SnapshotID: 77, Type: iceberg.Branch, MaxRefAgeMs: ptr[int64](5)}, out.Metadata.Refs["main"])
}

func TestMetadataFromBeforeRefs(t *testing.T) {
	m := parse(t, history(2, map[string]any{"refs": nil}))
	require.Equal(t, iceberg.SnapshotID(3), m.Refs["main"].SnapshotID)
	require.NotContains(t, string(m.Raw()), `"refs"`)
	out := build(t, m, func(e *iceberg.Edit) { e.SetProperties(map[string]string{"a": "b"}) })
	require.Contains(t, string(out.JSON), `"refs":{"main":{"snapshot-id":3,"type":"branch"}}`)
	out = build(t, m, func(e *iceberg.Edit) { e.SetRef("t", 1) })
	require.Equal(t, []string{"main", "t"}, out.Metadata.RefNames())
	out = build(t, m, func(e *iceberg.Edit) { e.RemoveSnapshots(1) })
	require.Equal(t, []string{"main"}, out.Metadata.RefNames())
	refuse(t, fault.Stale, parse(t, history(2, map[string]any{"refs": map[string]any{}})), "main", func(e *iceberg.Edit) { e.RemoveSnapshots(3) })
}

func TestF097StatisticsFollowTheirSnapshots(t *testing.T) {
	stats := func(id int) map[string]any {
		return map[string]any{"snapshot-id": id, "statistics-path": fmt.Sprintf("s3://lake/%d.puffin", id), "file-size-in-bytes": id,
			"file-footer-size-in-bytes": 1, "blob-metadata": []any{}}
	}
	m := parse(t, history(2, map[string]any{"statistics": []any{stats(1), stats(9), stats(3)}, "partition-statistics": []any{stats(2)}}))
	out := build(t, m, func(e *iceberg.Edit) { e.AddSnapshot(next(m, 77)); e.SetRef("main", 77) })
	sameButFor(t, m.Raw(), out.JSON, "snapshots", "snapshot-log", "refs", "current-snapshot-id", "last-updated-ms", "last-sequence-number")
	require.Empty(t, out.RemovedStatistics)
	out = build(t, m, func(e *iceberg.Edit) { e.RemoveSnapshots(1, 2, 12345) })
	require.Len(t, out.Metadata.Statistics, 2)
	require.Equal(t, "s3://lake/9.puffin", out.Metadata.Statistics[0].Path)
	require.Empty(t, out.Metadata.PartitionStatistics)
	require.Equal(t, []iceberg.StatisticsFile{m.Statistics[0]}, out.RemovedStatistics)
	require.Equal(t, []iceberg.StatisticsFile{m.PartitionStatistics[0]}, out.RemovedPartitionStatistics)
	sameButFor(t, m.Raw(), out.JSON, "snapshots", "snapshot-log", "statistics", "partition-statistics")
}

func TestRemovedSnapshotsAreUnreferenced(t *testing.T) {
	m := parse(t, history(2, map[string]any{"refs": map[string]any{
		"main": map[string]any{"snapshot-id": 3, "type": "branch"}, "old": map[string]any{"snapshot-id": 1, "type": "tag"}}}))
	refuse(t, fault.Stale, m, `ref "old"`, func(e *iceberg.Edit) { e.RemoveSnapshots(1) })
	refuse(t, fault.Stale, m, `ref "main"`, func(e *iceberg.Edit) { e.RemoveSnapshots(3) })
	out := build(t, m, func(e *iceberg.Edit) { e.RemoveRefs("old"); e.RemoveSnapshots(1) })
	require.Len(t, out.Metadata.Snapshots, 2)
}

func TestF103SnapshotLogAfterExpiry(t *testing.T) {
	entry := func(id int) map[string]any { return map[string]any{"snapshot-id": id, "timestamp-ms": id * 1000} }
	for name, c := range map[string]struct {
		log    any
		remove []iceberg.SnapshotID
		want   []iceberg.SnapshotID
	}{
		"first":          {[]any{entry(1), entry(2), entry(3)}, []iceberg.SnapshotID{1}, []iceberg.SnapshotID{2, 3}},
		"middle":         {[]any{entry(1), entry(2), entry(3)}, []iceberg.SnapshotID{2}, []iceberg.SnapshotID{3}},
		"again and back": {[]any{entry(1), entry(2), entry(1), entry(3)}, []iceberg.SnapshotID{1}, []iceberg.SnapshotID{3}},
		"gap":            {[]any{entry(1), entry(99), entry(2), entry(3)}, []iceberg.SnapshotID{1}, []iceberg.SnapshotID{2, 3}},
		"empty":          {[]any{}, []iceberg.SnapshotID{1}, nil},
		"absent":         {nil, []iceberg.SnapshotID{1}, nil},
		"last unknown":   {[]any{entry(3), entry(99)}, []iceberg.SnapshotID{1}, nil},
		"none removed":   {[]any{entry(1), entry(99), entry(3)}, nil, []iceberg.SnapshotID{1, 99, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			e := parse(t, history(2, map[string]any{"snapshot-log": c.log})).Edit()
			e.RemoveSnapshots(c.remove...)
			out, err := e.Build()
			require.NoError(t, err)
			var got []iceberg.SnapshotID
			for _, e := range out.Metadata.SnapshotLog {
				got = append(got, e.SnapshotID)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestMetadataLogIsTrimmed(t *testing.T) {
	var log []any
	for i := range 5 {
		log = append(log, map[string]any{"metadata-file": fmt.Sprintf("s3://lake/v%d.json", i), "timestamp-ms": i})
	}
	for limit, kept := range map[string]int{"3": 3, "1": 1, "0": 1, "-4": 1, "6": 6, "100": 6, "": 6} {
		properties := map[string]any{iceberg.PreviousVersionsProperty: limit}
		if limit == "" {
			properties = map[string]any{}
		}
		m := parse(t, history(2, map[string]any{"metadata-log": log, "properties": properties}))
		out := build(t, m, func(e *iceberg.Edit) { e.AppendMetadataLog("s3://lake/v5.json") })
		require.Len(t, out.Metadata.MetadataLog, kept, limit)
		require.Equal(t, "s3://lake/v5.json", out.Metadata.MetadataLog[kept-1].MetadataFile)
		require.Len(t, out.TrimmedLog, 6-kept)
		if kept < 6 {
			require.Equal(t, "s3://lake/v0.json", out.TrimmedLog[0].MetadataFile)
		}
	}
	m := parse(t, history(2, map[string]any{"properties": map[string]any{iceberg.PreviousVersionsProperty: "many"}}))
	refuse(t, fault.Unsupported, m, "many", func(e *iceberg.Edit) { e.AppendMetadataLog("s3://lake/v5.json") })
	refuse(t, fault.Halt, m, "empty", func(e *iceberg.Edit) { e.AppendMetadataLog("") })
}

func TestPropertiesSchemasAndSpecs(t *testing.T) {
	structure := func(id int) map[string]any {
		return map[string]any{"type": "struct", "schema-id": id, "fields": []any{column(1, "x", "long")}}
	}
	named := snapshot(3, 0, 3, 3000)
	named["schema-id"] = 1
	m := parse(t, history(2, map[string]any{
		"schemas": []any{structure(0), structure(1), structure(2)}, "current-schema-id": 2, "snapshots": []any{named},
		"partition-specs": []any{spec(0), spec(1, partition(1000, 1, "x", "identity"))}, "default-spec-id": 1, "last-partition-id": 1000,
		"properties": map[string]any{"a": "1", "b": "2"},
	}))
	out := build(t, m, func(e *iceberg.Edit) {
		e.SetProperties(map[string]string{"b": "3", "c<": "4"})
		e.RemoveProperties("a", "none")
		e.RemoveSchemas(0)
		e.RemoveSpecs(0)
	})
	sameButFor(t, m.Raw(), out.JSON, "properties", "schemas", "partition-specs")
	require.Equal(t, map[string]string{"b": "3", "c<": "4"}, out.Metadata.Properties)
	require.Len(t, out.Metadata.Schemas, 2)
	require.Len(t, out.Metadata.Specs, 1)
	refuse(t, fault.Halt, m, "schema 2", func(e *iceberg.Edit) { e.RemoveSchemas(2) })
	refuse(t, fault.Halt, m, "schema 1 is that of snapshot 3", func(e *iceberg.Edit) { e.RemoveSchemas(1) })
	refuse(t, fault.Halt, m, "spec 1", func(e *iceberg.Edit) { e.RemoveSpecs(1) })
}

func TestRestoreSnapshot(t *testing.T) {
	m := parse(t, history(2, nil))
	one, _ := m.Snapshot(1)
	less := build(t, m, func(e *iceberg.Edit) { e.RemoveSnapshots(1) }).Metadata
	out := build(t, less, func(e *iceberg.Edit) { e.RestoreSnapshot(one.Raw()) })
	back, ok := out.Metadata.Snapshot(1)
	require.True(t, ok)
	require.Equal(t, string(one.Raw()), string(back.Raw()))
	require.Equal(t, less.SnapshotLog, out.Metadata.SnapshotLog)
	require.Equal(t, m.LastSequenceNumber, out.Metadata.LastSequenceNumber)
	refuse(t, fault.Halt, m, "exists", func(e *iceberg.Edit) { e.RestoreSnapshot(one.Raw()) })
}

func TestRollbackIsLogged(t *testing.T) {
	m := parse(t, history(2, nil))
	out := build(t, m, func(e *iceberg.Edit) { e.SetLastUpdatedMs(5000); e.SetRef("main", 1) })
	require.Equal(t, iceberg.SnapshotLogEntry{SnapshotID: 1, TimestampMs: 5000}, out.Metadata.SnapshotLog[3])
	require.Equal(t, []iceberg.SnapshotID{2, 3}, out.Metadata.Graph().Unreferenced())
}

func TestF125EmptyFieldsArePresent(t *testing.T) {
	for version := 1; version <= 3; version++ {
		for _, current := range []any{json.RawMessage("null"), nil, -1} {
			m := parse(t, tableJSON(version, map[string]any{"current-snapshot-id": current, "snapshots": nil,
				"snapshot-log": json.RawMessage("null"), "metadata-log": nil, "refs": json.RawMessage("null")}))
			require.Nil(t, m.CurrentSnapshotID)
			out := build(t, m, func(*iceberg.Edit) {})
			var doc map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(out.JSON, &doc))
			require.Equal(t, "[]", string(doc["snapshots"]))
			require.Equal(t, "[]", string(doc["snapshot-log"]))
			require.Equal(t, "[]", string(doc["metadata-log"]))
			require.Equal(t, "{}", string(doc["refs"]))
			if version < 3 {
				require.Equal(t, "-1", string(doc["current-snapshot-id"]))
			}
		}
	}
	m := parse(t, tableJSON(2, nil))
	require.Equal(t, string(m.Raw()), string(build(t, m, func(*iceberg.Edit) {}).JSON), "nothing to fill in, nothing changed")
}

// TestEditsTouchOnlyTheirs makes random edits and looks at everything else.
func TestEditsTouchOnlyTheirs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.IntRange(1, 3).Draw(t, "version")
		m := parse(t, history(version, map[string]any{"acme": json.RawMessage("[1.50, {\"a\" : null}]")}))
		for range rapid.IntRange(1, 6).Draw(t, "commits") {
			e := m.Edit()
			owned := []string{"refs"}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				s := next(m, iceberg.SnapshotID(rapid.Int64Range(100, math.MaxInt64).Draw(t, "id")))
				if _, taken := m.Snapshot(s.ID); taken {
					continue
				}
				e.AddSnapshot(s)
				e.SetRef("main", s.ID)
				owned = append(owned, "snapshots", "snapshot-log", "current-snapshot-id", "last-updated-ms", "last-sequence-number", "next-row-id")
			case 1:
				e.SetProperties(map[string]string{rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "key"): rapid.String().Draw(t, "value")})
				owned = append(owned, "properties")
			case 2:
				var ids []iceberg.SnapshotID
				for _, s := range m.Snapshots {
					if s.ID != m.Current().ID && rapid.Bool().Draw(t, "remove") {
						ids = append(ids, s.ID)
					}
				}
				e.RemoveSnapshots(ids...)
				owned = append(owned, "snapshots", "snapshot-log")
			default:
				e.AppendMetadataLog("s3://lake/v.json")
				owned = append(owned, "metadata-log")
			}
			out, err := e.Build()
			require.NoError(t, err)
			sameButFor(t, m.Raw(), out.JSON, owned...)
			for i := range out.Metadata.Snapshots {
				if old, ok := m.Snapshot(out.Metadata.Snapshots[i].ID); ok {
					require.Equal(t, string(old.Raw()), string(out.Metadata.Snapshots[i].Raw()))
				}
			}
			m = out.Metadata
		}
		readByOthers(t, m.Raw())
	})
}
