package model_test

import (
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

func synthetic(t *testing.T, fl *filertest.Filer, o model.SyntheticOptions) *model.SyntheticTable {
	t.Helper()
	o.ID = iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "big"}
	o.Clock = fl.Virtual()
	s, err := model.Synthetic(t.Context(), fl, o)
	require.NoError(t, err)
	return s
}

func TestSyntheticTablesAreWhatTheySay(t *testing.T) {
	for _, o := range []model.SyntheticOptions{
		{},
		{Manifests: 3, EntriesPerManifest: 7, Snapshots: 5, Partitions: 4, Tags: 2, Placeholders: true},
		{Version: 3, Manifests: 3, EntriesPerManifest: 7, Snapshots: 4, Churn: 2, Partitions: 3, Clustered: true, DeleteManifests: 2, Placeholders: true},
		{Manifests: 2, EntriesPerManifest: 3, Snapshots: 3, Churn: -1, Columns: -1, DeleteManifests: 1, Codec: "null"},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			s := synthetic(t, fl, o)
			tb, err := model.Open(t.Context(), fl, s.ID)
			require.NoError(t, err)
			require.Len(t, tb.Metadata().Snapshots(), len(s.Snapshots))
			files, err := tb.FS(t.Context())
			require.NoError(t, err)
			for i, id := range s.Snapshots {
				snap := tb.SnapshotByID(int64(id))
				require.Equal(t, s.Times[i].UnixMilli(), snap.TimestampMs)
				lists, err := snap.Manifests(files)
				require.NoError(t, err)
				var data, deletes int
				rows := map[int64]bool{}
				for _, m := range lists {
					var n int
					for e, err := range m.Entries(files, true) {
						require.NoError(t, err)
						n++
						if m.ManifestContent() == icego.ManifestContentDeletes {
							deletes++
							continue
						}
						data++
						if first := e.DataFile().FirstRowID(); o.Version == 3 {
							require.NotNil(t, first)
							require.False(t, rows[*first], "row ids are given once")
							rows[*first] = true
						}
						if o.Placeholders {
							p, err := filer.ParsePath("/buckets/" + e.DataFile().FilePath()[len("s3://"):])
							require.NoError(t, err)
							require.True(t, fl.Exists(p), p)
						}
					}
					require.EqualValues(t, n, m.AddedDataFiles()+m.ExistingDataFiles())
				}
				require.Equal(t, fmt.Sprint(data), snap.Summary.Properties["total-data-files"])
				require.Equal(t, fmt.Sprint(deletes), snap.Summary.Properties["total-delete-files"])
				if i == len(s.Snapshots)-1 {
					require.Equal(t, s.Live, data)
				}
			}
			again := filertest.New(filertest.Options{})
			synthetic(t, again, o)
			require.Empty(t, fl.Dump().Changes(again.Dump()))
		})
	}
}

func BenchmarkSynthetic(b *testing.B) {
	for b.Loop() {
		fl := filertest.New(filertest.Options{})
		_, err := model.Synthetic(b.Context(), fl, model.SyntheticOptions{
			ID: iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "big"}, Clock: fl.Virtual(),
			Manifests: 200, EntriesPerManifest: 500, Snapshots: 1000, Churn: -1,
		})
		require.NoError(b, err)
	}
}
