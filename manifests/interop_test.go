package manifests_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// everyType partitions by one column of every type and some transforms.
func everyType(t testing.TB) (icego.PartitionSpec, *manifests.Partitioning) {
	id := icego.IdentityTransform{}
	return testSpec(t, 5, testSchema(),
		partField{"p_long", 1, id}, partField{"p_string", 2, id}, partField{"p_int", 3, id}, partField{"p_float", 4, id},
		partField{"p_double", 5, id}, partField{"p_date", 6, id}, partField{"p_time", 7, id}, partField{"p_ts", 8, id},
		partField{"p_tstz", 9, id}, partField{"p_bool", 10, id}, partField{"p_binary", 11, id}, partField{"p_uuid", 12, id},
		partField{"p_fixed", 13, id}, partField{"p_decimal", 14, id}, partField{"p_bucket", 1, icego.BucketTransform{NumBuckets: 8}},
		partField{"p_day", 8, icego.DayTransform{}}, partField{"p_void", 2, icego.VoidTransform{}},
		partField{"p_trunc", 2, icego.TruncateTransform{Width: 3}}, partField{"p_ns", 16, id})
}

func everyValue(n int) map[int]any {
	if n%5 == 4 {
		return map[int]any{} // every field null
	}
	dec := decimal128.FromI64(int64(n) - 2)
	if n%5 == 3 {
		dec, _ = decimal128.FromString("1000000000000000000000000000", 38, 0)
	}
	return map[int]any{
		1000: int64(n) << 40, 1001: fmt.Sprintf("s%d", n), 1002: int32(-n), 1003: float32(n) / 3, 1004: math.Copysign(float64(n)/7, -1),
		1005: icego.Date(20000 + n), 1006: icego.Time(n * 1000003), 1007: icego.Timestamp(1e15 + n), 1008: icego.Timestamp(-1e15 - n),
		1009: n%2 == 0, 1010: []byte{0xff, byte(n)}, 1011: uuid.UUID{1, 2, 3, byte(n)}, 1012: []byte{1, 2, 3, byte(n)},
		1013: icego.Decimal{Val: dec, Scale: 10}, 1014: int32(n % 8), 1015: icego.Date(19000 + n),
		1017: fmt.Sprintf("%03d", n), 1018: icego.TimestampNano(1e18 + n),
	}
}

// fill writes entries of every status, with and without statistics.
func fill(t testing.TB, spec icego.PartitionSpec, version int) func(w *icego.ManifestWriter) {
	return func(w *icego.ManifestWriter) {
		for n := range 30 {
			b := icegoFile(t, spec, icego.EntryContentData, fmt.Sprintf("s3://b/t/data/f%d.parquet", n), everyValue(n), n)
			switch n % 3 {
			case 0:
				withStats(b, n, 5)
			case 1:
				b.SplitOffsets([]int64{}).KeyMetadata([]byte{9, byte(n)}).ColumnSizes(map[int]int64{})
			}
			old, commit := int64(77+n), int64(900)
			seq, fileSeq := int64(n/2), int64(n)
			switch n % 4 {
			case 0:
				require.NoError(t, w.Add(icego.NewManifestEntry(icego.EntryStatusADDED, &commit, nil, nil, b.Build())))
			case 1:
				require.NoError(t, w.Add(icego.NewManifestEntry(icego.EntryStatusADDED, &commit, &seq, nil, b.Build())))
			case 2:
				if version == 3 {
					b.FirstRowID(int64(5000 + n))
				}
				require.NoError(t, w.Existing(icego.NewManifestEntry(icego.EntryStatusEXISTING, &old, &seq, &fileSeq, b.Build())))
			case 3:
				require.NoError(t, w.Delete(icego.NewManifestEntry(icego.EntryStatusDELETED, &commit, &seq, &fileSeq, b.Build())))
			}
		}
	}
}

func icegoEntries(t testing.TB, m icego.ManifestFile, b []byte) []icego.ManifestEntry {
	t.Helper()
	entries, err := icego.ReadManifest(m, bytes.NewReader(b), false)
	require.NoError(t, err)
	return entries
}

// relist is iceberg-go's reading of a list with the manifest.
func relist(t testing.TB, version int, m icego.ManifestFile, snapshot, seq, firstRow int64) icego.ManifestFile {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, icego.WriteManifestList(version, &out, snapshot, nil, &seq, firstRow, []icego.ManifestFile{m}))
	list, err := icego.ReadManifestList(&out)
	require.NoError(t, err)
	return list[0]
}

func TestReadsWhatIcebergGoWrites(t *testing.T) {
	spec, parts := everyType(t)
	for version := 1; version <= 3; version++ {
		for list := version; list <= 3; list++ {
			t.Run(fmt.Sprintf("v%d in a v%d list", version, list), func(t *testing.T) {
				m := writeIcego(t, version, spec, testSchema(), icego.ManifestContentData, "s3://b/t/metadata/m.avro", 900, fill(t, spec, version))
				want := icegoEntries(t, relist(t, list, m.file, 900, 40, 10000), m.bytes)
				ours := m.listed(t, list, 900, 40, 10000)
				require.EqualValues(t, m.file.ExistingRows(), ours.ExistingRows.Value)
				for _, types := range []*iceberg.PartitionType{nil, parts.Type} {
					got := readAll(t, m.bytes, ours, types)
					require.Len(t, got, len(want))
					for i := range want {
						requireSameAsIcego(t, want[i], got[i], parts.Type)
					}
				}
			})
		}
	}
}

// rewriteWith writes a manifest of ours from the entries of another.
func rewriteWith(t testing.TB, b []byte, m *manifests.ManifestFile, o manifests.WriterOptions,
	write func(w *manifests.Writer, e *manifests.Entry) error,
) ([]byte, *manifests.ManifestFile) {
	t.Helper()
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, o)
	require.NoError(t, err)
	for e, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(b), m, manifests.ReadOptions{}) {
		require.NoError(t, err)
		require.NoError(t, write(w, e))
	}
	file, err := w.Close()
	require.NoError(t, err)
	require.Equal(t, int64(out.Len()), file.Length)
	return out.Bytes(), file
}

func TestPutRoundTripAndIcebergGoReadsIt(t *testing.T) {
	spec, parts := everyType(t)
	for version := 1; version <= 3; version++ {
		for _, codec := range []avro.Codec{"", avro.Uncompressed, avro.Snappy, avro.Zstandard} {
			t.Run(fmt.Sprintf("v%d %s", version, codec), func(t *testing.T) {
				m := writeIcego(t, version, spec, testSchema(), icego.ManifestContentData, "s3://b/t/metadata/m.avro", 900, fill(t, spec, version))
				listed := m.listed(t, version, 900, 40, 10000)
				o := manifests.WriterOptions{
					Path: "s3://b/t/metadata/n.avro", Version: version, Partitioning: parts, SnapshotID: 900, Codec: codec,
				}
				b, file := rewriteWith(t, m.bytes, listed, o, (*manifests.Writer).Put)
				relisted, theirs := writeList(t, manifests.ListOptions{Version: version, SnapshotID: 900, Seq: 40, FirstRowID: 10000}, file)
				want := icegoEntries(t, relist(t, version, m.file, 900, 40, 10000), m.bytes)
				again := icegoEntries(t, theirs[0], b)
				ours := readAll(t, b, relisted[0], nil)
				require.Len(t, again, len(want))
				for i := range want {
					requireSameAsIcego(t, want[i], ours[i], parts.Type)
					requireSameAsIcego(t, again[i], ours[i], parts.Type)
				}
				// Counts and summaries are those iceberg-go computes.
				require.Equal(t, m.file.AddedDataFiles(), theirs[0].AddedDataFiles())
				require.Equal(t, m.file.ExistingRows(), theirs[0].ExistingRows())
				require.Equal(t, m.file.DeletedRows(), theirs[0].DeletedRows())
				require.Equal(t, m.file.MinSequenceNum(), max(theirs[0].MinSequenceNum(), m.file.MinSequenceNum()))
				requireSameSummaries(t, m.file.Partitions(), theirs[0].Partitions())
			})
		}
	}
}

func requireSameSummaries(t *testing.T, want, got []icego.FieldSummary) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].ContainsNull, got[i].ContainsNull, "field %d", i)
		require.Equal(t, want[i].ContainsNaN, got[i].ContainsNaN, "field %d", i)
		require.Equal(t, want[i].LowerBound, got[i].LowerBound, "field %d", i)
		require.Equal(t, want[i].UpperBound, got[i].UpperBound, "field %d", i)
	}
}

// TestF007CarryKeepsSequenceNumbers: ADDED entries with explicit, older data
// sequence numbers keep them when their manifest is merged.
func TestF007CarryKeepsSequenceNumbers(t *testing.T) {
	spec, parts := everyType(t)
	for version := 1; version <= 3; version++ {
		for target := version; target <= 3; target++ {
			t.Run(fmt.Sprintf("v%d to v%d", version, target), func(t *testing.T) {
				m := writeIcego(t, version, spec, testSchema(), icego.ManifestContentData, "s3://b/t/metadata/m.avro", 900, fill(t, spec, version))
				listed := m.listed(t, target, 900, 40, 10000)
				if version == 1 {
					listed = m.listed(t, 1, 900, 0, 0) // as the upgraded table's parent has it
				}
				o := manifests.WriterOptions{Path: "s3://b/t/metadata/n.avro", Version: target, Partitioning: parts, SnapshotID: 901}
				b, file := rewriteWith(t, m.bytes, listed, o, func(w *manifests.Writer, e *manifests.Entry) error {
					if !e.Live() {
						require.Error(t, w.Carry(e))
						return nil
					}
					return w.Carry(e)
				})
				require.EqualValues(t, 0, file.AddedFiles.Value)
				require.EqualValues(t, 0, file.DeletedFiles.Value)
				relisted, theirs := writeList(t, manifests.ListOptions{Version: target, SnapshotID: 901, Seq: 41, FirstRowID: 20000}, file)
				var want []*manifests.Entry
				for _, e := range readAll(t, m.bytes, listed, nil) {
					if e.Live() {
						want = append(want, e)
					}
				}
				got := readAll(t, b, relisted[0], nil)
				again := icegoEntries(t, theirs[0], b)
				require.Len(t, got, len(want))
				for i, e := range want {
					g := got[i]
					require.Equal(t, manifests.Existing, g.Status)
					require.Equal(t, e.SnapshotID.Value, g.SnapshotID.Value)
					require.Equal(t, manifests.Stored, g.SnapshotID.From)
					if target > 1 {
						require.Equal(t, manifests.Some(e.DataSeq.Value), g.DataSeq)
						require.Equal(t, manifests.Some(e.FileSeq.Value), g.FileSeq)
					}
					if target == 3 && e.FirstRowID.Known() {
						require.Equal(t, manifests.Some(e.FirstRowID.Value), g.FirstRowID)
					}
					require.Equal(t, e.ColumnSizes, g.ColumnSizes)
					require.Equal(t, e.Lower, g.Lower)
					requireSameAsIcego(t, again[i], g, parts.Type)
				}
			})
		}
	}
}

// TestF086DeletedEntries: a removed file is DELETED by the committing snapshot
// with its own sequence numbers.
func TestF086DeletedEntries(t *testing.T) {
	spec, parts := everyType(t)
	m := writeIcego(t, 2, spec, testSchema(), icego.ManifestContentData, "s3://b/t/metadata/m.avro", 900, fill(t, spec, 2))
	listed := m.listed(t, 2, 900, 40, 0)
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 901})
	require.NoError(t, err)
	r, err := manifests.NewReader(t.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{})
	require.NoError(t, err)
	gone := "s3://b/t/data/f4.parquet"
	res, err := manifests.Filter(r, w, func(e *manifests.Entry) (manifests.Verdict, error) {
		if e.Path == gone {
			return manifests.Remove, nil
		}
		return manifests.Keep, nil
	})
	require.NoError(t, err)
	require.Equal(t, manifests.FilterResult{Kept: 22, Removed: 1, Forgotten: 7}, res) // F025: DELETED entries are not repeated
	file, err := w.Close()
	require.NoError(t, err)
	relisted, theirs := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 901, Seq: 41}, file)
	require.Len(t, icegoEntries(t, theirs[0], out.Bytes()), 23)
	for _, e := range readAll(t, out.Bytes(), relisted[0], nil) {
		if e.Path == gone {
			require.Equal(t, manifests.Deleted, e.Status)
			require.Equal(t, manifests.Some(iceberg.SnapshotID(901)), e.SnapshotID)
			require.Equal(t, manifests.Some(iceberg.SeqNum(40)), e.DataSeq)
			require.Equal(t, manifests.Some(iceberg.SeqNum(40)), e.FileSeq)
		} else {
			require.Equal(t, manifests.Existing, e.Status)
		}
	}
}

func TestEmptyManifestIsRefused(t *testing.T) {
	_, parts := everyType(t)
	w, err := manifests.NewWriter(io.Discard, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 901})
	require.NoError(t, err)
	_, err = w.Close()
	require.ErrorIs(t, err, manifests.ErrEmpty)
}
