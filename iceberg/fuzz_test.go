package iceberg_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// FuzzMetadata: whatever is read can be edited, and only what was edited changes.
func FuzzMetadata(f *testing.F) {
	for version := 1; version <= 3; version++ {
		f.Add(tableJSON(version, nil))
		f.Add(history(version, map[string]any{"properties": map[string]any{"a": "b"}, "refs": nil}))
	}
	dir := os.Getenv("SEAICE_FIXTURES")
	if dir == "" {
		dir = "../../shared/fixtures"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "iceberg", "*.json"))
	for _, file := range files {
		stored, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		m, err := iceberg.ParseMetadata(stored)
		if err != nil {
			requireInputFault(t, err)
			return
		}
		require.True(t, json.Valid(m.Raw()))
		m.History()
		m.Graph().Unreferenced()
		for i := range m.Specs {
			p, err := m.PartitionType(iceberg.SpecID(m.Specs[i].ID()))
			require.NoError(t, err)
			_, err = p.Tuple(nil)
			require.NoError(t, err)
			_ = p.Writable(m)
		}
		for i := range m.Snapshots {
			m.Snapshots[i].Summary()
		}
		e := m.Edit()
		e.AppendMetadataLog("s3://lake/x.metadata.json")
		e.SetProperties(map[string]string{"seaice": "1"})
		out, err := e.Build()
		if err != nil {
			require.Equal(t, fault.Unsupported, fault.Of(err), "%v", err) // previous-versions-max is no number
			return
		}
		sameButFor(t, m.Raw(), out.JSON, "properties", "metadata-log", "snapshots", "snapshot-log", "refs", "current-snapshot-id")
		require.Equal(t, len(m.Snapshots), len(out.Metadata.Snapshots))
	})
}

// requireInputFault checks that an error blames the input and not this program.
func requireInputFault(t *testing.T, err error) {
	t.Helper()
	switch fault.Of(err) {
	case fault.Corrupt, fault.Unsupported, fault.TooLarge:
	default:
		require.NoError(t, err)
	}
}

// FuzzRecord: whatever is read has a successor that keeps all other members.
func FuzzRecord(f *testing.F) {
	f.Add(recordJSON("events", eventsV7, 7, nil), []byte(nil))
	f.Add(recordJSON("events", eventsV7, 7, tableJSON(2, nil)), recordJSON("events", eventsV7, 8, nil))
	f.Add([]byte(`{"metadata":null,"metadataVersion":9223372036854775807}`), []byte(nil))
	f.Fuzz(func(t *testing.T, raw, moving []byte) {
		set := map[string][]byte{iceberg.AttrMetadata: raw}
		if moving != nil {
			set[iceberg.AttrMoving] = moving
		}
		e := entry(set)
		r, err := iceberg.ParseRecord(e)
		if err != nil {
			requireInputFault(t, err)
			return
		}
		s := &iceberg.Sharing{}
		s.Add(iceberg.Found{ID: events, Path: e.Path, Entry: e, State: r.State, Record: r})
		s.Overlap(e.Path, "/buckets/lake/x")
		out, err := r.Successor(iceberg.Next{MetadataLocation: "s3://lake/n", FullMetadata: []byte(`{}`), VersionToken: iceberg.NewVersionToken(), ModifiedAt: time.Unix(1, 0)})
		if err != nil {
			requireInputFault(t, err)
			return
		}
		next, err := iceberg.ParseRecord(entry(map[string][]byte{iceberg.AttrMetadata: out}))
		require.NoError(t, err)
		require.Equal(t, r.MetadataVersion+1, next.MetadataVersion)
		require.Equal(t, r.TableUUID, next.TableUUID)
		owned := []string{"metadataVersion", "versionToken", "modifiedAt", "metadataLocation", "metadata"}
		require.Equal(t, others(t, raw, owned), others(t, out, owned))
	})
}

// others are the members of an object but the owned ones.
func others(t *testing.T, raw []byte, owned []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, rawjson.EachMember(raw, func(key, value []byte) error {
		out[string(key)] = string(value)
		return nil
	}))
	for _, key := range owned {
		delete(out, key)
	}
	return out
}

// FuzzResolve: every path that comes out is canonical and in a bucket, and its
// own spelling leads back to it.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"s3://lake/a%20b", "data/x", "/buckets/lake/../x", "http://h:1/buckets/b/c?d", `a\b`, "lake/x", "%2e%2e/x", "s3a:///x", "metadata/./y//z/"} {
		f.Add("s3://lake/sales.daily/events-u", s)
	}
	f.Add("http://f:8888/buckets/lake/x/y", "%2Fetc%2Fx")
	f.Add("/buckets/lake/x/y", "s3%3A%2F%2Fother%2Fx")
	f.Fuzz(func(t *testing.T, location, spelling string) {
		r := &iceberg.Record{Path: mustPath(events), MetadataLocation: eventsV7}
		l, err := iceberg.NewLocator(events, r, &iceberg.Metadata{Location: location})
		if err != nil {
			requireInputFault(t, err)
			return
		}
		paths, err := l.Candidates(spelling)
		if err != nil {
			requireInputFault(t, err)
			return
		}
		require.NotEmpty(t, paths)
		first, err := l.Resolve(spelling)
		require.NoError(t, err)
		require.Equal(t, paths[0], first)
		for _, p := range paths {
			again, err := filer.ParsePath(p.String())
			require.NoError(t, err)
			require.Equal(t, p, again)
			require.NotEmpty(t, p.Bucket())
			back, err := l.Resolve(l.Spelling(p))
			require.NoError(t, err)
			require.Equal(t, p, back)
			if l.Owned(p) {
				require.Equal(t, "lake", p.Bucket())
				require.False(t, p.Within(mustPath(events)))
			}
		}
	})
}

// FuzzBound: what is read writes the same bytes again, but for what is
// promoted, and compares equal to itself.
func FuzzBound(f *testing.F) {
	types := []icego.Type{icego.BooleanType{}, icego.Int32Type{}, icego.Int64Type{}, icego.Float32Type{}, icego.Float64Type{}, icego.DateType{}, icego.TimeType{},
		icego.TimestampType{}, icego.TimestampNsType{}, icego.StringType{}, icego.BinaryType{}, icego.FixedTypeOf(5), icego.UUIDType{}, icego.DecimalTypeOf(38, 3), icego.VariantType{}}
	f.Add(uint8(2), []byte{1, 0, 0, 0})
	f.Add(uint8(13), []byte{0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		typ := types[int(which)%len(types)]
		v, err := iceberg.DecodeBound(typ, b)
		if err != nil {
			requireInputFault(t, err)
			return
		}
		again, err := iceberg.DecodeBound(typ, v.Bytes())
		require.NoError(t, err)
		require.True(t, v == again)
		n, err := v.Compare(again)
		require.NoError(t, err)
		require.Zero(t, n)
		same, err := iceberg.NewValue(typ, v.Any())
		require.NoError(t, err)
		require.True(t, v == same, "%s %x", typ, b)
		_ = v.String()
	})
}
