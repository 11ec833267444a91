package manifests_test

import (
	"bytes"
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// testSchema has a column of every type that can be partitioned by.
func testSchema() *icego.Schema {
	p := icego.PrimitiveTypes
	types := []icego.Type{
		p.Int64, p.String, p.Int32, p.Float32, p.Float64, p.Date, p.Time, p.Timestamp, p.TimestampTz, p.Bool, p.Binary, p.UUID,
		icego.FixedTypeOf(4), icego.DecimalTypeOf(38, 10), icego.DecimalTypeOf(9, 2), p.TimestampNs, p.TimestampTzNs,
	}
	fields := make([]icego.NestedField, len(types))
	for i, t := range types {
		fields[i] = icego.NestedField{ID: i + 1, Name: fmt.Sprintf("c%d", i+1), Type: t}
	}
	return icego.NewSchema(3, fields...)
}

type partField struct {
	name      string
	source    int
	transform icego.Transform
}

// testSpec makes a spec and what this package needs of it.
func testSpec(t testing.TB, id int, schema *icego.Schema, fields ...partField) (icego.PartitionSpec, *manifests.Partitioning) {
	t.Helper()
	var pf []icego.PartitionField
	for i, f := range fields {
		pf = append(pf, icego.PartitionField{SourceIDs: []int{f.source}, FieldID: 1000 + i, Name: f.name, Transform: f.transform})
	}
	spec := icego.NewPartitionSpecID(id, pf...)
	return spec, testPartitioning(t, schema, spec)
}

func testPartitioning(t testing.TB, schema *icego.Schema, spec icego.PartitionSpec) *manifests.Partitioning {
	t.Helper()
	p, err := manifests.NewPartitioning(schema, &spec)
	require.NoError(t, err)
	return p
}

// icegoFile builds a data file with every field iceberg-go can hold.
func icegoFile(t testing.TB, spec icego.PartitionSpec, content icego.ManifestEntryContent, path string, part map[int]any, n int) *icego.DataFileBuilder {
	t.Helper()
	b, err := icego.NewDataFileBuilder(spec, content, path, icego.ParquetFile, part, nil, nil, int64(100+n), int64(1000+n))
	require.NoError(t, err)
	return b
}

func withStats(b *icego.DataFileBuilder, n, cols int) *icego.DataFileBuilder {
	sizes, values, nulls, nans := map[int]int64{}, map[int]int64{}, map[int]int64{}, map[int]int64{}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	for c := 1; c <= cols; c++ {
		sizes[c], values[c], nulls[c], nans[c] = int64(n*c), int64(100+n), int64(c), int64(c%3)
		lower[c], upper[c] = []byte(fmt.Sprintf("lo%d-%d", c, n)), []byte(fmt.Sprintf("up%d-%d", c, n))
	}
	return b.ColumnSizes(sizes).ValueCounts(values).NullValueCounts(nulls).NaNValueCounts(nans).
		LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets([]int64{4, 1 << 33}).SortOrderID(7)
}

type icegoManifest struct {
	bytes []byte
	file  icego.ManifestFile
}

// writeIcego writes a manifest with iceberg-go.
func writeIcego(t testing.TB, version int, spec icego.PartitionSpec, schema *icego.Schema, content icego.ManifestContent,
	path string, snapshot int64, fill func(w *icego.ManifestWriter),
) icegoManifest {
	t.Helper()
	var out bytes.Buffer
	w, err := icego.NewManifestWriter(version, &out, spec, schema, snapshot, icego.WithManifestWriterContent(content))
	require.NoError(t, err)
	fill(w)
	require.NoError(t, w.Close())
	m, err := w.ToManifestFile(path, int64(out.Len()))
	require.NoError(t, err)
	if version == 1 {
		// As a list of v1 has it, so that lists of later versions know it is old.
		var list bytes.Buffer
		require.NoError(t, icego.WriteManifestList(1, &list, snapshot, nil, nil, 0, []icego.ManifestFile{m}))
		ms, err := icego.ReadManifestList(&list)
		require.NoError(t, err)
		m = ms[0]
	}
	return icegoManifest{bytes: out.Bytes(), file: m}
}

// listed is the manifest as a list of the version and sequence number has it.
func (m icegoManifest) listed(t testing.TB, version int, snapshot, seq, firstRow int64) *manifests.ManifestFile {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, icego.WriteManifestList(version, &out, snapshot, nil, &seq, firstRow, []icego.ManifestFile{m.file}))
	list := readList(t, out.Bytes())
	require.Len(t, list, 1)
	return list[0]
}

func readList(t testing.TB, b []byte) []*manifests.ManifestFile {
	t.Helper()
	var list []*manifests.ManifestFile
	for m, err := range manifests.ReadList(t.Context(), bytes.NewReader(b), "list.avro") {
		require.NoError(t, err)
		list = append(list, m)
	}
	return list
}

func readAll(t testing.TB, b []byte, m *manifests.ManifestFile, spec *iceberg.PartitionType) []*manifests.Entry {
	t.Helper()
	var entries []*manifests.Entry
	for e, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(b), m, manifests.ReadOptions{Partition: spec}) {
		require.NoError(t, err)
		entries = append(entries, e.Clone())
	}
	return entries
}

// writeList lists manifests of ours and reads them back with both readers.
func writeList(t testing.TB, o manifests.ListOptions, ms ...*manifests.ManifestFile) ([]*manifests.ManifestFile, []icego.ManifestFile) {
	t.Helper()
	var out bytes.Buffer
	res, err := manifests.WriteList(&out, o, ms)
	require.NoError(t, err)
	require.Equal(t, int64(out.Len()), res.Length)
	theirs, err := icego.ReadManifestList(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	return readList(t, out.Bytes()), theirs
}

// requireSameAsIcego compares an entry of ours with iceberg-go's reading of it.
func requireSameAsIcego(t testing.TB, want icego.ManifestEntry, got *manifests.Entry, spec *iceberg.PartitionType) {
	t.Helper()
	require.EqualValues(t, want.Status(), got.Status)
	require.Equal(t, want.SnapshotID(), int64(got.SnapshotID.Or(-1)))
	require.Equal(t, want.SequenceNum(), int64(got.DataSeq.Or(-1)))
	if s := want.FileSequenceNum(); s == nil {
		require.False(t, got.FileSeq.Known())
	} else {
		require.Equal(t, *s, int64(got.FileSeq.Value))
	}
	f := want.DataFile()
	require.EqualValues(t, f.ContentType(), got.Content)
	require.Equal(t, f.FilePath(), got.Path)
	require.EqualValues(t, f.FileFormat(), got.Format)
	require.Equal(t, f.Count(), got.Records)
	require.Equal(t, f.FileSizeBytes(), got.Bytes)
	require.EqualValues(t, f.SpecID(), got.SpecID)
	requireCounts(t, f.ColumnSizes(), got.ColumnSizes)
	requireCounts(t, f.ValueCounts(), got.ValueCounts)
	requireCounts(t, f.NullValueCounts(), got.NullCounts)
	requireCounts(t, f.NaNValueCounts(), got.NaNCounts)
	requireBounds(t, f.LowerBoundValues(), got.Lower)
	requireBounds(t, f.UpperBoundValues(), got.Upper)
	require.Equal(t, f.KeyMetadata(), got.KeyMetadata)
	require.Equal(t, f.SplitOffsets(), got.SplitOffsets)
	require.Equal(t, f.EqualityFieldIDs() == nil, got.EqualityIDs == nil)
	for i, id := range f.EqualityFieldIDs() {
		require.EqualValues(t, id, got.EqualityIDs[i])
	}
	requireOpt(t, f.SortOrderID(), got.SortOrderID)
	requireOpt(t, f.FirstRowID(), got.FirstRowID)
	requireOpt(t, f.ReferencedDataFile(), got.ReferencedDataFile)
	requireOpt(t, f.ContentOffset(), got.ContentOffset)
	requireOpt(t, f.ContentSizeInBytes(), got.ContentSize)
	values := map[iceberg.FieldID]any{}
	for id, v := range f.Partition() {
		values[iceberg.FieldID(id)] = v
	}
	tuple, err := spec.Tuple(values)
	require.NoError(t, err)
	require.Equal(t, tuple.Key(), got.Partition.Key(), "%v", f.Partition())
}

func requireOpt[A ~int | ~int64 | ~string, B comparable](t testing.TB, want *A, got manifests.Opt[B]) {
	t.Helper()
	require.Equal(t, want != nil, got.Known())
	if want != nil {
		require.EqualValues(t, *want, got.Value)
	}
}

func requireCounts(t testing.TB, want map[int]int64, got manifests.Counts) {
	t.Helper()
	require.Equal(t, want == nil, got == nil)
	require.Len(t, got, len(want))
	for k, v := range want {
		n, ok := got.Of(iceberg.FieldID(k))
		require.True(t, ok)
		require.Equal(t, v, n)
	}
}

func requireBounds(t testing.TB, want map[int][]byte, got manifests.Bounds) {
	t.Helper()
	require.Equal(t, want == nil, got == nil)
	require.Len(t, got, len(want))
	for k, v := range want {
		b, ok := got.Of(iceberg.FieldID(k))
		require.True(t, ok)
		require.Equal(t, v, b)
	}
}
