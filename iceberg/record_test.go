package iceberg_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/s3api/s3tables"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

const eventsV7 = "s3://lake/sales.daily/events-u/metadata/v7.metadata.json"

func entry(set map[string][]byte) *filer.Entry {
	return &filer.Entry{Path: mustPath(events), IsDir: true, Extended: set}
}

func TestAttributesAreTheCatalogs(t *testing.T) {
	have := map[string]bool{}
	for _, name := range iceberg.CatalogAttributes() {
		have[name] = true
	}
	want := map[string]bool{}
	for name := range s3tables.SnapshotExtended(nil) {
		want[name] = true
	}
	require.Equal(t, want, have)
}

func TestParseRecord(t *testing.T) {
	r, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: recordJSON("events", eventsV7, 7, tableJSON(2, nil)),
		iceberg.AttrMetadataVersion: []byte("3")}))
	require.NoError(t, err)
	require.Equal(t, "events", r.Name)
	require.Equal(t, "sales.daily", r.Namespace)
	require.Equal(t, "ICEBERG", r.Format)
	require.Equal(t, int64(7), r.MetadataVersion)
	require.Equal(t, "0123456789abcdef0123456789abcdef", r.VersionToken)
	require.Equal(t, eventsV7, r.MetadataLocation)
	require.Equal(t, "s3://lake/sales.daily/events-w", r.WarehouseLocation)
	require.Equal(t, testUUID, r.TableUUID.String())
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 5e8, time.UTC), r.ModifiedAt)
	require.JSONEq(t, string(tableJSON(2, nil)), string(r.FullMetadata))
	require.Equal(t, iceberg.StateTable, r.State)
	require.NoError(t, r.Maintainable())
}

func TestRecordStates(t *testing.T) {
	full := recordJSON("events", eventsV7, 7, nil)
	for _, c := range []struct {
		name  string
		set   map[string][]byte
		state iceberg.State
		kind  fault.Kind
		is    error
	}{
		{"creating", map[string][]byte{iceberg.AttrDeleting: []byte("create")}, iceberg.StateCreating, fault.Stale, iceberg.ErrCreating},
		{"arriving", map[string][]byte{iceberg.AttrDeleting: []byte("rename-dest")}, iceberg.StateCreating, fault.Stale, iceberg.ErrCreating},
		{"deleting", map[string][]byte{iceberg.AttrDeleting: []byte("delete")}, iceberg.StateDeleting, fault.Stale, iceberg.ErrDeleting},
		{"claimed", map[string][]byte{iceberg.AttrDeleting: []byte("77af")}, iceberg.StateDeleting, fault.Stale, iceberg.ErrDeleting},
		{"claimed by nothing", map[string][]byte{iceberg.AttrDeleting: {}}, iceberg.StateDeleting, fault.Stale, iceberg.ErrDeleting},
		{"renaming", map[string][]byte{iceberg.AttrDeleting: []byte("rename")}, iceberg.StateRenaming, fault.Stale, iceberg.ErrRenaming},
		{"moving", map[string][]byte{iceberg.AttrMoving: full}, iceberg.StateMoving, fault.Stale, iceberg.ErrMoving},
		{"view", map[string][]byte{iceberg.AttrEntryType: []byte("view")}, iceberg.StateView, fault.Unsupported, iceberg.ErrView},
		{"other kind", map[string][]byte{iceberg.AttrEntryType: []byte("udf")}, iceberg.StateView, fault.Unsupported, iceberg.ErrView},
		{"lance", map[string][]byte{iceberg.AttrMetadata: bytes.Replace(full, []byte("ICEBERG"), []byte("LANCE"), 1)}, iceberg.StateForeign, fault.Unsupported, iceberg.ErrForeign},
		{"empty", map[string][]byte{iceberg.AttrMetadata: []byte(`{"name":"events","format":"ICEBERG","metadata":null}`)}, iceberg.StateEmpty, fault.Unsupported, iceberg.ErrNoMetadata},
		{"table", map[string][]byte{iceberg.AttrEntryType: []byte("table")}, iceberg.StateTable, fault.None, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := map[string][]byte{iceberg.AttrMetadata: full}
			for k, v := range c.set {
				set[k] = v
			}
			r, err := iceberg.ParseRecord(entry(set))
			require.NoError(t, err)
			require.Equal(t, c.state, r.State)
			err = r.Maintainable()
			require.Equal(t, c.kind, fault.Of(err))
			require.ErrorIs(t, err, c.is)
		})
	}
}

func TestBrokenRecords(t *testing.T) {
	for text, raw := range map[string]string{
		"metadataVersion\"": `{"metadataVersion":"7"}`,
		"is -1":             `{"metadataVersion":-1}`,
		"metadataLocation":  `{"metadataLocation":7}`,
		"occurs twice":      `{"metadataLocation":"a","metadataLocation":"b"}`,
		"in case only":      `{"metadataLocation":"a","MetadataLocation":"b"}`,
		"differs from":      `{"metadata":{"FULLMetadata":{}}}`,
		"json at byte":      `{"metadataLocation":"a"`,
		"uuid":              `{"metadata":{"iceberg":{"tableUuid":"x"}}}`,
		"UTF-8":             "{\"a\":\"\xff\"}",
		"time":              `{"modifiedAt":"yesterday"}`,
		"object":            `[]`,
	} {
		_, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: []byte(raw)}))
		requireKind(t, fault.Corrupt, err, text, mustPath(events).String())
	}
	_, err := iceberg.ParseRecord(entry(nil))
	requireKind(t, fault.Unsupported, err, "no catalog record")
	_, err = iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: []byte(`{}`), iceberg.AttrMoving: []byte(`{`)}))
	requireKind(t, fault.Corrupt, err, "moves to")
}

func TestSuccessor(t *testing.T) {
	r, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: recordJSON("events", eventsV7, 7, tableJSON(2, nil))}))
	require.NoError(t, err)
	n := iceberg.Next{MetadataLocation: "s3://lake/x/v8.metadata.json", FullMetadata: []byte("{\n  \"a<\": 1.50\n}"),
		VersionToken: iceberg.NewVersionToken(), ModifiedAt: time.Date(2026, 5, 1, 2, 0, 0, 1, time.FixedZone("x", 3600))}
	require.Regexp(t, "^[0-9a-f]{32}$", n.VersionToken)
	out, err := r.Successor(n)
	require.NoError(t, err)
	sameButFor(t, r.Raw, out, "metadataVersion", "versionToken", "modifiedAt", "metadataLocation", "metadata")
	next, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: out}))
	require.NoError(t, err)
	require.Equal(t, int64(8), next.MetadataVersion)
	require.Equal(t, n.VersionToken, next.VersionToken)
	require.Equal(t, n.MetadataLocation, next.MetadataLocation)
	require.True(t, n.ModifiedAt.Equal(next.ModifiedAt))
	require.Equal(t, `{"a<":1.50}`, string(next.FullMetadata))
	require.Equal(t, r.TableUUID, next.TableUUID)
	require.Contains(t, string(out), `"x-unknown": 1.50`)
	readByCatalog(t, out)

	touched, err := r.Touched("f00d")
	require.NoError(t, err)
	sameButFor(t, r.Raw, touched, "versionToken")

	n.VersionToken = r.VersionToken
	_, err = r.Successor(n)
	requireKind(t, fault.Halt, err)
}

// readByCatalog reads the record as the catalog's own struct does.
func readByCatalog(t *testing.T, raw []byte) {
	t.Helper()
	var back struct {
		MetadataVersion int                     `json:"metadataVersion"`
		ModifiedAt      time.Time               `json:"modifiedAt"`
		Metadata        *s3tables.TableMetadata `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, 8, back.MetadataVersion)
}

func TestLargeMetadataIsKeptByLocationOnly(t *testing.T) {
	n := iceberg.Next{MetadataLocation: "s3://lake/x/v8.metadata.json", VersionToken: iceberg.NewVersionToken(), ModifiedAt: time.Unix(1, 0),
		FullMetadata: []byte(`{"a":"` + strings.Repeat("x", iceberg.MaxInlineBytes) + `"}`)}
	for _, raw := range [][]byte{recordJSON("events", eventsV7, 7, tableJSON(2, nil)), recordJSON("events", eventsV7, 7, nil), []byte(`{"metadataVersion":7}`)} {
		r, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: raw}))
		require.NoError(t, err)
		out, err := r.Successor(n)
		require.NoError(t, err)
		next, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: out}))
		require.NoError(t, err)
		require.Nil(t, next.FullMetadata)
		require.Equal(t, r.TableUUID, next.TableUUID)
		require.Less(t, len(out), 2000)
		readByCatalog(t, out)
	}
}

func TestLoad(t *testing.T) {
	ctx := t.Context()
	t.Run("kept in the record", func(t *testing.T) {
		f := world()
		putTable(f, events, eventsV7, history(2, nil))
		v, err := iceberg.Load(ctx, f, events)
		require.NoError(t, err)
		require.Equal(t, mustPath(events), v.RecordPath)
		require.Equal(t, filer.Path("/buckets/lake/sales.daily/events-u/metadata/v7.metadata.json"), v.MetadataPath)
		require.Equal(t, eventsV7, v.MetadataLocation)
		s, ok := v.Branch("main")
		require.True(t, ok)
		require.Equal(t, iceberg.SnapshotID(3), s.ID)
		_, ok = v.Snapshot(9)
		require.False(t, ok)
		require.Equal(t, filer.Path("/buckets/lake/sales.daily/events-u"), v.Locations.Root())
	})
	t.Run("kept in a file", func(t *testing.T) {
		f := world()
		putTable(f, events, eventsV7, nil)
		_, err := iceberg.Load(ctx, f, events)
		requireKind(t, fault.Corrupt, err, "does not exist", "events")
		require.ErrorIs(t, err, filer.ErrNotFound)
		f.PutFile("/buckets/lake/sales.daily/events-u/metadata/v7.metadata.json", history(3, nil))
		v, err := iceberg.Load(ctx, f, events)
		require.NoError(t, err)
		require.Equal(t, 3, v.Metadata.FormatVersion)
		f.PutFile("/buckets/lake/sales.daily/events-u/metadata/v7.metadata.json", []byte(`{"format-version":9}`))
		_, err = iceberg.Load(ctx, f, events)
		requireKind(t, fault.Unsupported, err, "v7.metadata.json", "format version 9")
	})
	t.Run("escaped name", func(t *testing.T) {
		f := world()
		putTable(f, events, "s3://lake/sales.daily/events-u/metadata/v7%20a.metadata.json", nil)
		f.PutFile("/buckets/lake/sales.daily/events-u/metadata/v7 a.metadata.json", history(3, nil))
		v, err := iceberg.Load(ctx, f, events)
		require.NoError(t, err)
		require.Equal(t, filer.Path("/buckets/lake/sales.daily/events-u/metadata/v7 a.metadata.json"), v.MetadataPath)
	})
	t.Run("no such table", func(t *testing.T) {
		_, err := iceberg.Load(ctx, world(), events)
		requireKind(t, fault.Stale, err)
		require.ErrorIs(t, err, filer.ErrNotFound)
		_, err = iceberg.Load(ctx, world(), iceberg.TableID{Bucket: "lake", Namespace: "..", Name: "x"})
		requireKind(t, fault.Unsupported, err)
		_, err = iceberg.Load(ctx, world(), iceberg.TableID{Bucket: "lake", Namespace: "a", Name: "x/y"})
		requireKind(t, fault.Unsupported, err)
	})
	t.Run("other uuid", func(t *testing.T) {
		f := world()
		putTable(f, events, eventsV7, tableJSON(2, map[string]any{"table-uuid": otherUUID}))
		_, err := iceberg.Load(ctx, f, events)
		requireKind(t, fault.Corrupt, err, testUUID, otherUUID)
	})
	t.Run("metadata in another bucket", func(t *testing.T) {
		f := world()
		putTable(f, events, "s3://other/ns/t/metadata/v7.metadata.json", history(2, nil))
		_, err := iceberg.Load(ctx, f, events)
		requireKind(t, fault.Unsupported, err, "other")
	})
	t.Run("in flight", func(t *testing.T) {
		f := world()
		putTable(f, events, eventsV7, history(2, nil))
		f.SetAttributes(mustPath(events), map[string][]byte{iceberg.AttrDeleting: []byte("delete")})
		_, err := iceberg.Load(ctx, f, events)
		require.ErrorIs(t, err, iceberg.ErrDeleting)
	})
	t.Run("no location", func(t *testing.T) {
		f := world()
		putTable(f, events, "", history(2, nil))
		_, err := iceberg.Load(ctx, f, events)
		requireKind(t, fault.Unsupported, err, "names no metadata file")
	})
}

// TestSuccessorKeepsEverythingElse follows records with random extra members
// over several commits.
func TestSuccessorKeepsEverythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for i := range rapid.IntRange(0, 5).Draw(t, "extras") {
			parts = append(parts, fmt.Sprintf(`%q : %s`, fmt.Sprintf("x%d", i), rapid.SampledFrom([]string{`1.50`, `{"a":[ ]}`, `"\u003c"`, `null`}).Draw(t, "value")))
		}
		parts = append(parts, `"metadataVersion":4`, `"metadata":{"iceberg": {"tableUuid":"`+testUUID+`"},"planningIndex":{"a":1}}`)
		parts = rapid.Permutation(parts).Draw(t, "order")
		raw := []byte("{ " + strings.Join(parts, " ,\n") + " }")
		for i := range 3 {
			r, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: raw}))
			require.NoError(t, err)
			require.Equal(t, int64(4+i), r.MetadataVersion)
			out, err := r.Successor(iceberg.Next{MetadataLocation: "s3://l/m", FullMetadata: []byte(`{}`), VersionToken: fmt.Sprint(i), ModifiedAt: time.Unix(5, 0)})
			require.NoError(t, err)
			for _, p := range parts {
				if !strings.HasPrefix(p, `"metadata`) {
					require.Contains(t, string(out), p)
				}
			}
			require.Contains(t, string(out), `"planningIndex":{"a":1}`)
			raw = out
		}
	})
}
