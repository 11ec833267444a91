package manifests_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
)

// TestEveryManifestOfTheModelRoundTrips reads every manifest and list of random
// tables, in all styles of writers, and writes them again: entries and manifests
// are equal field by field, and entries that are carried twice are equal byte
// for byte.
func TestEveryManifestOfTheModelRoundTrips(t *testing.T) {
	seeds := uint64(measure.Rounds(40))
	total := 0
	for seed := range seeds {
		fl := filertest.New(filertest.Options{})
		g, err := model.Random(t.Context(), fl, seed, model.RandomOptions{Config: model.Config{
			ID: iceberg.TableID{Bucket: "b", Namespace: "n", Name: "t"}, Clock: fl.Virtual(),
		}})
		require.NoError(t, err, "seed %d", seed)
		v, err := iceberg.Load(t.Context(), fl, g.Table.ID)
		require.NoError(t, err)
		seen := map[string]bool{}
		for i := range v.Metadata.Snapshots {
			s := &v.Metadata.Snapshots[i]
			var list []*manifests.ManifestFile
			for m, err := range manifests.OfSnapshot(t.Context(), fl, v.Locations, s) {
				require.NoError(t, err, "seed %d snapshot %d", seed, s.ID)
				list = append(list, m)
				if !seen[m.Path] {
					seen[m.Path] = true
					total += roundTrip(t, fl, v, m, fmt.Sprintf("seed %d %s", seed, m.Path))
				}
			}
			roundTripList(t, v, s, list)
		}
	}
	require.Greater(t, total, 200)
}

func roundTrip(t *testing.T, fl *filertest.Filer, v *iceberg.View, m *manifests.ManifestFile, what string) int {
	t.Helper()
	if m.NeedsCount(v.Metadata.FormatVersion) || !m.Counted() {
		counted, err := manifests.RecountOf(t.Context(), fl, v.Locations, m)
		require.NoError(t, err, what)
		m = counted
	}
	part, err := manifests.PartitioningOf(v.Metadata, m.SpecID)
	require.NoError(t, err, what)
	o := manifests.WriterOptions{Path: m.Path, Version: v.Metadata.FormatVersion, Content: m.Content, Partitioning: part, SnapshotID: m.SnapshotID.Value}
	if o.Content == manifests.DeleteManifest {
		o.Version = max(o.Version, 2)
	}
	var put, carried, again bytes.Buffer
	var want []*manifests.Entry
	w, err := manifests.NewWriter(&put, o)
	require.NoError(t, err)
	c, err := manifests.NewWriter(&carried, o)
	require.NoError(t, err)
	for e, err := range manifests.EntriesOf(t.Context(), fl, v.Locations, m, manifests.ReadOptions{Partition: part.Type}) {
		require.NoError(t, err, what)
		want = append(want, e.Clone())
		require.NoError(t, w.Put(e), what)
		if e.Live() {
			require.NoError(t, c.Carry(e), what)
		}
	}
	if len(want) == 0 {
		return 0
	}
	wm, err := w.Close()
	require.NoError(t, err, what)
	wm.Seq, wm.FirstRowID = m.Seq, m.FirstRowID
	require.Equal(t, []int64{m.AddedFiles.Value, m.ExistingFiles.Value, m.DeletedFiles.Value, m.AddedRows.Value, m.ExistingRows.Value, m.DeletedRows.Value},
		[]int64{wm.AddedFiles.Value, wm.ExistingFiles.Value, wm.DeletedFiles.Value, wm.AddedRows.Value, wm.ExistingRows.Value, wm.DeletedRows.Value}, what)
	i := 0
	for e, err := range manifests.ReadManifest(t.Context(), &put, wm, manifests.ReadOptions{Partition: part.Type}) {
		require.NoError(t, err, what)
		if diff := cmp.Diff(want[i], e, sameFields()...); diff != "" {
			t.Fatalf("%s entry %d: %s", what, i, diff)
		}
		i++
	}
	require.Equal(t, len(want), i, what)
	if c.Entries() == 0 {
		return i
	}
	cm, err := c.Close()
	require.NoError(t, err, what)
	cm.Seq = m.Seq
	first := bytes.Clone(carried.Bytes())
	twice, err := manifests.NewWriter(&again, o)
	require.NoError(t, err)
	for e, err := range manifests.ReadManifest(t.Context(), &carried, cm, manifests.ReadOptions{Projection: manifests.ProjectCarry}) {
		require.NoError(t, err, what)
		require.NoError(t, twice.Carry(e), what)
	}
	_, err = twice.Close()
	require.NoError(t, err, what)
	require.Equal(t, body(first), body(again.Bytes()), what)
	return i
}

// body is an Avro file without its sync markers, which are random.
func body(b []byte) []byte {
	marker := b[len(b)-16:]
	return bytes.ReplaceAll(b, marker, nil)
}

// sameFields compares what entries say; where a value comes from may change.
func sameFields() []cmp.Option {
	return []cmp.Option{
		cmpopts.IgnoreUnexported(manifests.Entry{}, manifests.File{}),
		cmp.Comparer(func(a, b iceberg.Tuple) bool { return a.Key() == b.Key() }),
	}
}

func roundTripList(t *testing.T, v *iceberg.View, s *iceberg.Snapshot, list []*manifests.ManifestFile) {
	t.Helper()
	for _, m := range list {
		if m.NeedsCount(v.Metadata.FormatVersion) || m.Content == manifests.DeleteManifest && v.Metadata.FormatVersion == 1 {
			return
		}
	}
	if s.ManifestList == "" || len(list) == 0 {
		return
	}
	o := manifests.ListOptions{Version: v.Metadata.FormatVersion, SnapshotID: s.ID, Seq: s.SequenceNumber}
	if v.Metadata.NextRowID != nil {
		o.FirstRowID = *v.Metadata.NextRowID
	}
	var buf bytes.Buffer
	res, err := manifests.WriteList(&buf, o, list)
	require.NoError(t, err)
	i := 0
	for m, err := range manifests.ReadList(t.Context(), &buf, "list") {
		require.NoError(t, err)
		want := res.Manifests[i]
		require.Equal(t, want.Path, m.Path)
		require.Equal(t, want.Length, m.Length)
		require.Equal(t, want.SpecID, m.SpecID)
		require.Equal(t, want.Content, m.Content)
		require.Equal(t, want.Seq.Value, m.Seq.Value)
		require.Equal(t, want.MinSeq.Value, m.MinSeq.Value)
		require.Equal(t, want.SnapshotID.Value, m.SnapshotID.Value)
		require.Equal(t, want.AddedRows.Value, m.AddedRows.Value)
		require.Equal(t, want.FirstRowID, m.FirstRowID)
		if diff := cmp.Diff(list[i].Partitions, m.Partitions); diff != "" && v.Metadata.FormatVersion > 1 {
			t.Fatalf("%s: %s", m.Path, diff)
		}
		i++
	}
	require.Equal(t, len(list), i)
}
