package expire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
)

// listOf is a list of the manifests of the head, spelled by spell.
func listOf(t testing.TB, fl *filertest.Filer, spell func(filer.Path) string) []byte {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	var all []*manifests.ManifestFile
	for m, err := range manifests.OfSnapshot(t.Context(), fl, v.Locations, v.Metadata.Current()) {
		require.NoError(t, err)
		p, err := v.Locations.Resolve(m.Path)
		require.NoError(t, err)
		m.Path = spell(p)
		all = append(all, m)
	}
	return encodeList(t, v.Metadata.FormatVersion, all)
}

func encodeList(t testing.TB, version int, all []*manifests.ManifestFile) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := manifests.WriteList(&b, manifests.ListOptions{Version: version, SnapshotID: 1, Seq: 1000}, all)
	require.NoError(t, err)
	return b.Bytes()
}

// manifestOf writes a manifest with files, live and deleted, as of a snapshot.
func manifestOf(t testing.TB, fl *filertest.Filer, m *iceberg.Metadata, at filer.Path, snapshot iceberg.SnapshotID, live, deleted []string) *manifests.ManifestFile {
	t.Helper()
	parts, err := manifests.PartitioningOf(m, m.DefaultSpecID)
	require.NoError(t, err)
	var b bytes.Buffer
	w, err := manifests.NewWriter(&b, manifests.WriterOptions{
		Path: "s3://" + at.Rel(filer.BucketsRoot), Version: m.FormatVersion, Partitioning: parts, SnapshotID: snapshot,
	})
	require.NoError(t, err)
	put := func(status manifests.Status, path string) {
		require.NoError(t, w.Put(&manifests.Entry{
			Status: status, SnapshotID: manifests.Some(snapshot), DataSeq: manifests.Some(iceberg.SeqNum(1)), FileSeq: manifests.Some(iceberg.SeqNum(1)),
			File: manifests.File{Path: path, Format: manifests.Parquet, Records: 1, Bytes: 1},
		}))
	}
	for _, path := range live {
		put(manifests.Existing, path)
	}
	for _, path := range deleted {
		put(manifests.Deleted, path)
	}
	out, err := w.Close()
	require.NoError(t, err)
	fl.PutFile(at, b.Bytes())
	out.Seq, out.MinSeq = manifests.Some(iceberg.SeqNum(1)), manifests.Some(iceberg.SeqNum(1))
	return out
}

// hostile makes the table's first snapshot claim that files are its data.
func hostile(t testing.TB, fl *filertest.Filer, tb *model.Scene, files ...filer.Path) {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	var live []string
	for _, p := range files {
		live = append(live, "s3://"+p.Rel(filer.BucketsRoot))
	}
	m := manifestOf(t, fl, v.Metadata, tb.Root.Join("metadata", "hostile-m.avro"), v.Metadata.Snapshots[0].ID, live, nil)
	at := tb.Root.Join("metadata", "hostile.avro")
	fl.PutFile(at, encodeList(t, v.Metadata.FormatVersion, []*manifests.ManifestFile{m}))
	tb.Do(tb.Edit(t.Context(), func(doc map[string]any) {
		doc["snapshots"].([]any)[0].(map[string]any)["manifest-list"] = "s3://" + at.Rel(filer.BucketsRoot)
	}))
}

// synthetic makes a large table of metadata under the name of the others.
func synthetic(t testing.TB, fl *filertest.Filer, o model.SyntheticOptions) *model.SyntheticTable {
	t.Helper()
	o.ID, o.Clock = id, fl.Virtual()
	if o.Codec == "" {
		o.Codec = "null"
	}
	tb, err := model.Synthetic(t.Context(), fl, o)
	require.NoError(t, err)
	return tb
}
