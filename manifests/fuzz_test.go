package manifests_test

import (
	"bytes"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// fuzzLimits keep one input from taking long.
var fuzzLimits = avro.Limits{Block: 1 << 20, Header: 1 << 20}

func requireKnownKind(t *testing.T, err error) {
	t.Helper()
	switch fault.Of(err) {
	case fault.Corrupt, fault.Unsupported:
	default:
		t.Fatalf("kind %s: %v", fault.Of(err), err)
	}
}

// FuzzManifest reads anything as a manifest; whatever reads is carried, and
// what was carried reads the same.
func FuzzManifest(f *testing.F) {
	spec, parts := everyType(f)
	for version := 1; version <= 3; version++ {
		m := writeIcego(f, version, spec, testSchema(), icego.ManifestContentData, "m", 900, fill(f, spec, version))
		f.Add(m.bytes, int64(version-1), false)
		listed := m.listed(f, version, 900, 40, 0)
		plain, _ := rewriteWith(f, m.bytes, listed, manifests.WriterOptions{Path: "n", Version: version, Partitioning: parts, SnapshotID: 900, Codec: avro.Uncompressed}, (*manifests.Writer).Put)
		f.Add(plain, int64(1), false)
	}
	f.Add(craft(f, entrySchemaText(plainFile), nil, enc(1, 0, 0, 0, 1, "s3://b/t/d.parquet", "parquet", 5, 6)), int64(3), true)
	f.Fuzz(func(t *testing.T, b []byte, seq int64, deletes bool) {
		m := &manifests.ManifestFile{
			Path: "m", SpecID: 5, Seq: manifests.Some(iceberg.SeqNum(max(seq, 0))), SnapshotID: manifests.Some(iceberg.SnapshotID(9)),
			FirstRowID: manifests.Some(max(seq, 0)),
		}
		if deletes {
			m.Content, m.SpecID = manifests.DeleteManifest, 0
		}
		r, err := manifests.NewReader(t.Context(), bytes.NewReader(b), m, manifests.ReadOptions{Limits: fuzzLimits})
		if err != nil {
			requireKnownKind(t, err)
			return
		}
		p, err := r.Partitioning()
		if err != nil {
			requireKnownKind(t, err)
			p = &manifests.Partitioning{Type: r.PartitionType(), Schema: []byte("{}"), Spec: []byte("[]")}
		}
		var out bytes.Buffer
		w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "n", Version: 3, Content: m.Content, Partitioning: p, SnapshotID: 10})
		require.NoError(t, err)
		var want []*manifests.Entry
		for e, err := range r.Entries() {
			if err != nil {
				requireKnownKind(t, err)
				break
			}
			if !e.Live() || len(want) > 1000 {
				continue
			}
			if err := w.Carry(e); err != nil {
				requireKnownKind(t, err)
				continue
			}
			want = append(want, e.Clone())
		}
		if len(want) == 0 {
			return
		}
		carried, err := w.Close()
		require.NoError(t, err)
		carried.Seq = m.Seq
		for i, e := range readAll(t, out.Bytes(), carried, nil) {
			require.Equal(t, want[i].Path, e.Path)
			require.Equal(t, want[i].DataSeq.Value, e.DataSeq.Value)
			require.Equal(t, want[i].Lower, e.Lower)
			require.Equal(t, want[i].ValueCounts, e.ValueCounts)
			require.Equal(t, want[i].SplitOffsets, e.SplitOffsets)
		}
	})
}

// FuzzList reads anything as a manifest list; what reads is listed again.
func FuzzList(f *testing.F) {
	f.Add(craft(f, duckListSchema, nil, enc("s3://b/t/m.avro", 99, 0, 1, 7, 0, 42, 1, 0, 0, 3, 0, 0, 1, 1, true, 0, 1, []byte{1}, 0, 0)))
	f.Add(craft(f, v1ListSchema, map[string]string{"format-version": "1"}, enc("s3://b/t/m.avro", 99, 0, 1, 42, 1, 5, 0, 6, 1, 0)))
	spec, _ := everyType(f)
	for version := 1; version <= 3; version++ {
		m := writeIcego(f, version, spec, testSchema(), icego.ManifestContentData, "m", 900, fill(f, spec, version))
		var out bytes.Buffer
		seq := int64(5)
		require.NoError(f, icego.WriteManifestList(version, &out, 900, nil, &seq, 10, []icego.ManifestFile{m.file}))
		f.Add(out.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ms []*manifests.ManifestFile
		for m, err := range manifests.ReadList(t.Context(), bytes.NewReader(b), "l") {
			if err != nil {
				requireKnownKind(t, err)
				return
			}
			ms = append(ms, m)
			if len(ms) > 1000 {
				break
			}
		}
		if _, err := manifests.WriteList(&bytes.Buffer{}, manifests.ListOptions{Version: 3, SnapshotID: 1, Seq: 1 << 62}, ms); err != nil {
			switch fault.Of(err) {
			case fault.Corrupt, fault.Unsupported, fault.TooLarge, fault.Halt:
			default:
				t.Fatalf("kind %s: %v", fault.Of(err), err)
			}
		}
	})
}
