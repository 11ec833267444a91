package manifests_test

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// diffEntries compares what entries say, not where they were read from.
func diffEntries(want, got *manifests.Entry) string {
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(manifests.Entry{}, manifests.File{}),
		cmp.Comparer(func(a, b iceberg.Tuple) bool { return a.Key() == b.Key() }))
}

func opt[T comparable](rt *rapid.T, name string, v T) manifests.Opt[T] {
	if rapid.Bool().Draw(rt, name) {
		return manifests.Some(v)
	}
	return manifests.Opt[T]{}
}

func drawCounts(rt *rapid.T, name string) manifests.Counts {
	n := rapid.IntRange(-1, 4).Draw(rt, name)
	if n < 0 {
		return nil
	}
	c := manifests.Counts{}
	for i := range n {
		c = append(c, manifests.Count{Column: iceberg.FieldID(n - i), N: rapid.Int64().Draw(rt, name)})
	}
	return c
}

func drawBounds(rt *rapid.T, name string) manifests.Bounds {
	n := rapid.IntRange(-1, 4).Draw(rt, name)
	if n < 0 {
		return nil
	}
	b := manifests.Bounds{}
	for i := range n {
		b = append(b, manifests.Bound{Column: iceberg.FieldID(i * 1000), Value: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, name)})
	}
	return b
}

// drawEntry draws any entry a manifest of the version can hold.
func drawEntry(rt *rapid.T, parts *manifests.Partitioning, version int, content manifests.ManifestContent, i int) *manifests.Entry {
	e := &manifests.Entry{Status: manifests.Status(rapid.IntRange(0, 2).Draw(rt, "status"))}
	e.SnapshotID = manifests.Some(iceberg.SnapshotID(rapid.Int64Range(1, 1<<62).Draw(rt, "snapshot")))
	if e.Status == manifests.Added && version > 1 {
		e.SnapshotID = opt(rt, "explicit", e.SnapshotID.Value)
		e.DataSeq = opt(rt, "seq", iceberg.SeqNum(rapid.Int64Range(0, 50).Draw(rt, "n")))
	} else if version > 1 {
		e.DataSeq = manifests.Some(iceberg.SeqNum(rapid.Int64Range(0, 50).Draw(rt, "n")))
		e.FileSeq = opt(rt, "fileSeq", e.DataSeq.Value)
	}
	values := map[iceberg.FieldID]any{}
	for id, v := range everyValue(rapid.IntRange(0, 9).Draw(rt, "partition")) {
		if rapid.Bool().Draw(rt, "some") {
			values[iceberg.FieldID(id)] = v
		}
	}
	tuple, err := parts.Type.Tuple(values)
	if err != nil {
		rt.Fatal(err)
	}
	e.File = manifests.File{
		Path: fmt.Sprintf("s3://b/t/%d-%s", i, rapid.String().Draw(rt, "path")), Format: rapid.SampledFrom([]manifests.Format{manifests.Parquet, manifests.ORC, manifests.Avro}).Draw(rt, "format"),
		SpecID: parts.Type.Spec, Partition: tuple, Records: rapid.Int64Range(0, 1<<40).Draw(rt, "records"), Bytes: rapid.Int64Range(0, 1<<60).Draw(rt, "bytes"),
		ColumnSizes: drawCounts(rt, "sizes"), ValueCounts: drawCounts(rt, "values"), NullCounts: drawCounts(rt, "nulls"), NaNCounts: drawCounts(rt, "nans"),
		Lower: drawBounds(rt, "lower"), Upper: drawBounds(rt, "upper"),
		SortOrderID: opt(rt, "sort", iceberg.SortOrderID(rapid.Int32().Draw(rt, "order"))),
	}
	if rapid.Bool().Draw(rt, "key") {
		e.KeyMetadata = rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "k")
	}
	if rapid.Bool().Draw(rt, "splits") {
		e.SplitOffsets = append([]int64{}, rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(rt, "offsets")...)
	}
	if content == manifests.DeleteManifest {
		e.Content = manifests.Content(rapid.IntRange(1, 2).Draw(rt, "content"))
		e.ReferencedDataFile = opt(rt, "ref", "s3://b/t/ref")
		if e.Content == manifests.EqualityDeletes {
			e.EqualityIDs = []iceberg.FieldID{2, 1}
		} else if version == 3 && rapid.Bool().Draw(rt, "vector") {
			e.Format = manifests.Puffin
			e.ContentOffset, e.ContentSize = manifests.Some(int64(4)), manifests.Some(int64(44))
		}
	} else if version == 3 && e.Status != manifests.Added {
		e.FirstRowID = opt(rt, "rowid", rapid.Int64Range(0, 1<<40).Draw(rt, "first"))
	}
	return e
}
