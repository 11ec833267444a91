package manifests_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// benchManifest has entries of a table of cols columns partitioned by day.
func benchManifest(b *testing.B, cols, entries int) (icegoManifest, *manifests.ManifestFile, icego.ManifestFile, *manifests.Partitioning, icego.PartitionSpec) {
	b.Helper()
	spec, parts := testSpec(b, 1, testSchema(), partField{"day", 8, icego.DayTransform{}})
	m := writeIcego(b, 2, spec, testSchema(), icego.ManifestContentData, "s3://bench/t/metadata/m.avro", 900, func(w *icego.ManifestWriter) {
		for n := range entries {
			path := fmt.Sprintf("s3://bench/warehouse/t/data/day=2026-01-%02d/00000-%d-7e6c2a9e-1d5b-4f0e-9d5a-%012d.parquet", n/500%28+1, n, n*7919)
			f := withStats(icegoFile(b, spec, icego.EntryContentData, path, map[int]any{1000: icego.Date(20000 + n/500)}, n), n, cols)
			old, seq, fileSeq := int64(77+n), int64(n/2), int64(n)
			require.NoError(b, w.Existing(icego.NewManifestEntry(icego.EntryStatusEXISTING, &old, &seq, &fileSeq, f.Build())))
		}
	})
	return m, m.listed(b, 2, 900, 40000, 0), relist(b, 2, m.file, 900, 40000, 0), parts, spec
}

func perEntry(b *testing.B, entries int, f func()) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(entries), "ns/entry")
}

func BenchmarkManifests(b *testing.B) {
	const entries = 5000
	for _, cols := range []int{8, 50} {
		m, listed, theirs, parts, spec := benchManifest(b, cols, entries)
		read := func(p manifests.Projection) func() {
			return func() {
				for _, err := range manifests.ReadManifest(b.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{Projection: p, Partition: parts.Type}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		icegoRead := func(opts ...icego.ManifestEntryProjection) func() {
			return func() {
				var r *icego.ManifestReader
				var err error
				if len(opts) > 0 {
					r, err = icego.NewManifestReaderWithProjection(theirs, bytes.NewReader(m.bytes), opts[0])
				} else {
					r, err = icego.NewManifestReader(theirs, bytes.NewReader(m.bytes))
				}
				require.NoError(b, err)
				for range entries {
					if _, err := r.ReadEntry(); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		name := func(s string) string { return fmt.Sprintf("%s/cols=%d", s, cols) }
		b.Run(name("read_full/ours"), func(b *testing.B) { perEntry(b, entries, read(manifests.ProjectAll)) })
		b.Run(name("read_full/icego"), func(b *testing.B) { perEntry(b, entries, icegoRead()) })
		b.Run(name("read_projected/ours"), func(b *testing.B) {
			perEntry(b, entries, read(manifests.ProjectPath|manifests.ProjectPartition))
		})
		b.Run(name("read_projected/icego"), func(b *testing.B) {
			perEntry(b, entries, icegoRead(icego.ManifestEntryProjection{}))
		})
		carry := func(codec avro.Codec) func() {
			return func() {
				w, err := manifests.NewWriter(io.Discard, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 901, Codec: codec})
				require.NoError(b, err)
				r, err := manifests.NewReader(b.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{Projection: manifests.ProjectCarry})
				require.NoError(b, err)
				_, err = manifests.Filter(r, w, nil)
				require.NoError(b, err)
				_, err = w.Close()
				require.NoError(b, err)
			}
		}
		for _, codec := range []avro.Codec{avro.Deflate, avro.Zstandard, avro.Uncompressed} {
			b.Run(name("read_carry/ours/"+string(codec)), func(b *testing.B) { perEntry(b, entries, carry(codec)) })
		}
		all := icegoEntries(b, theirs, m.bytes)
		b.Run(name("write_existing/icego"), func(b *testing.B) {
			perEntry(b, entries, func() {
				w, err := icego.NewManifestWriter(2, io.Discard, spec, testSchema(), 901)
				require.NoError(b, err)
				for _, e := range all {
					require.NoError(b, w.Existing(e))
				}
				require.NoError(b, w.Close())
			})
		})
	}
}
