package manifests_test

import (
	"bytes"
	"context"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

func TestOfSnapshotReadsThroughTheFiler(t *testing.T) {
	loc, err := iceberg.NewLocator(iceberg.TableID{Bucket: "b", Namespace: "n", Name: "t"},
		&iceberg.Record{Path: "/buckets/b/n/t", WarehouseLocation: "s3://b/t", MetadataLocation: "s3://b/t/metadata/v1.metadata.json"}, nil)
	require.NoError(t, err)
	f := filertest.New(filertest.Options{})
	defer f.Close()
	spec, _ := everyType(t)
	m := writeIcego(t, 1, spec, testSchema(), icego.ManifestContentData, "s3://b/t/metadata/m.avro", 900, fill(t, spec, 1))
	var list bytes.Buffer
	require.NoError(t, icego.WriteManifestList(1, &list, 900, nil, nil, 0, []icego.ManifestFile{m.file}))
	f.PutFile("/buckets/b/t/metadata/m.avro", m.bytes)
	f.PutFile("/buckets/b/t/metadata/snap.avro", list.Bytes())
	for _, s := range []*iceberg.Snapshot{
		{ID: 900, ManifestList: "s3://b/t/metadata/snap.avro"},
		{ID: 900, Manifests: []string{"s3a://b/t/metadata/m.avro"}}, // F084
	} {
		n, entries := 0, 0
		for m, err := range manifests.OfSnapshot(t.Context(), f, loc, s) {
			require.NoError(t, err)
			n++
			for _, err := range manifests.EntriesOf(t.Context(), f, loc, m, manifests.ReadOptions{}) {
				require.NoError(t, err)
				entries++
			}
			counted, err := manifests.RecountOf(t.Context(), f, loc, m)
			require.NoError(t, err)
			require.True(t, counted.Counted())
		}
		require.Equal(t, 1, n)
		require.Equal(t, 30, entries)
	}
	gone := &manifests.ManifestFile{Path: "s3://b/t/metadata/gone.avro"}
	for _, err := range manifests.EntriesOf(t.Context(), f, loc, gone, manifests.ReadOptions{}) {
		require.Equal(t, fault.Corrupt, fault.Of(err))
		require.True(t, filer.NotFound(err))
	}
	_, err = manifests.RecountOf(t.Context(), f, loc, gone)
	require.Equal(t, fault.Corrupt, fault.Of(err))
	for _, err := range manifests.OfSnapshot(t.Context(), f, loc, &iceberg.Snapshot{ID: 1, ManifestList: "s3://b/t/metadata/gone.avro"}) {
		require.Equal(t, fault.Corrupt, fault.Of(err))
	}
}

// TestCutBetweenBlocks: a file that ends too early at the end of a block is
// seen by the length in the list.
func TestCutBetweenBlocks(t *testing.T) {
	m, listed, _ := manyEntries(t, 3000)
	marker := m.bytes[len(m.bytes)-16:]
	head := bytes.Index(m.bytes, marker) + 16
	first := head + bytes.Index(m.bytes[head:], marker) + 16
	require.Less(t, first, len(m.bytes))
	entries, err := entriesOf(t, m.bytes[:first], listed)
	require.NotEmpty(t, entries)
	require.Equal(t, fault.Corrupt, fault.Of(err))
	require.ErrorContains(t, err, "the manifest list says")
}

func TestReadingStopsWithItsContext(t *testing.T) {
	m, listed, _ := manyEntries(t, 3000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range manifests.ReadManifest(ctx, bytes.NewReader(m.bytes), listed, manifests.ReadOptions{}) {
		if err != nil {
			require.Equal(t, fault.Canceled, fault.Of(err))
			return
		}
		n++
		cancel()
	}
	t.Fatalf("read all %d entries", n)
}

// TestEntriesCanBeLeftEarly and clones outlive their block.
func TestEntriesCanBeLeftEarly(t *testing.T) {
	m, listed, parts := manyEntries(t, 3000)
	var kept *manifests.Entry
	for e, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{}) {
		require.NoError(t, err)
		kept = e.Clone()
		break
	}
	all := readAll(t, m.bytes, listed, nil)
	require.Empty(t, diffEntries(all[0], kept))
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 901})
	require.NoError(t, err)
	require.NoError(t, w.Carry(kept))
	require.NoError(t, w.Carry(all[2999]))
	_, err = w.Close()
	require.NoError(t, err)
	again := readAll(t, out.Bytes(), &manifests.ManifestFile{Path: "n", SpecID: 1, Seq: manifests.Some(iceberg.SeqNum(40001))}, nil)
	require.Empty(t, diffEntries(all[0], again[0]))
	require.Empty(t, diffEntries(all[2999], again[1]))
}

// TestHeaderIsWhatTheSpecAsksFor, and what contradicts the list is refused.
func TestHeaderIsWhatTheSpecAsksFor(t *testing.T) {
	_, parts := everyType(t)
	for version := 1; version <= 3; version++ {
		b, file := added(t, version, parts, nil)
		r, err := manifests.NewReader(t.Context(), bytes.NewReader(b), file, manifests.ReadOptions{})
		require.NoError(t, err)
		p, err := r.Partitioning()
		require.NoError(t, err)
		require.EqualValues(t, 3, p.SchemaID)
		require.JSONEq(t, string(parts.Spec), string(p.Spec))
		require.JSONEq(t, string(parts.Schema), string(p.Schema))
		require.Equal(t, version, r.Header().Version)
		require.Equal(t, manifests.DataManifest, r.Header().Content)
		require.EqualValues(t, 5, r.Header().SpecID)
		other := file.Clone()
		other.SpecID = 6
		_, err = manifests.NewReader(t.Context(), bytes.NewReader(b), other, manifests.ReadOptions{})
		require.Equal(t, fault.Corrupt, fault.Of(err))
		_, err = manifests.NewReader(t.Context(), bytes.NewReader(b), file, manifests.ReadOptions{Partition: &iceberg.PartitionType{Spec: 9}})
		require.Equal(t, fault.Halt, fault.Of(err))
	}
}
