package manifests_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// rowIDs are the row ids of the live files of a list.
func rowIDs(t testing.TB, list []*manifests.ManifestFile, files map[string][]byte) map[string]int64 {
	t.Helper()
	ids := map[string]int64{}
	for _, m := range list {
		for _, e := range readAll(t, files[m.Path], m, nil) {
			if e.Live() && e.FirstRowID.Known() {
				ids[e.Path] = e.FirstRowID.Value
			}
		}
	}
	return ids
}

// TestF073RowIDsSurviveMerges: manifests of v2 in an upgraded table inherit
// row ids in list order, and a merge makes every one of them explicit.
func TestF073RowIDsSurviveMerges(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema())
	data := func(name string, rows int64) *manifests.Entry {
		return &manifests.Entry{File: manifests.File{Path: name, Format: manifests.Parquet, Records: rows, Bytes: 9}}
	}
	files := map[string][]byte{}
	add := func(version int, snapshot iceberg.SnapshotID, path string, entries ...*manifests.Entry) *manifests.ManifestFile {
		var out bytes.Buffer
		w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: path, Version: version, Partitioning: parts, SnapshotID: snapshot})
		require.NoError(t, err)
		for _, e := range entries {
			require.NoError(t, w.Add(e))
		}
		m, err := w.Close()
		require.NoError(t, err)
		files[path] = out.Bytes()
		return m
	}
	list := func(version int, snapshot iceberg.SnapshotID, seq iceberg.SeqNum, next int64, ms ...*manifests.ManifestFile) (manifests.ListResult, []*manifests.ManifestFile) {
		var out bytes.Buffer
		res, err := manifests.WriteList(&out, manifests.ListOptions{Version: version, SnapshotID: snapshot, Seq: seq, FirstRowID: next}, ms)
		require.NoError(t, err)
		again := readList(t, out.Bytes())
		require.Empty(t, cmp.Diff(res.Manifests, again, cmp.AllowUnexported(manifests.ManifestFile{})))
		return res, again
	}
	// Two commits in v2, then an append in v3.
	_, s1 := list(2, 1, 1, 0, add(2, 1, "m1", data("a", 10), data("b", 20)))
	_, s2 := list(2, 2, 2, 0, append(s1, add(2, 2, "m2", data("c", 5)))...)
	res, s3 := list(3, 3, 3, 0, append(s2, add(3, 3, "m3", data("d", 7), data("e", 1)))...)
	require.EqualValues(t, 43, res.AddedRows)
	require.EqualValues(t, 43, res.NextRowID)
	before := rowIDs(t, s3, files)
	require.Equal(t, map[string]int64{"a": 0, "b": 10, "c": 30, "d": 35, "e": 42}, before)

	// Merge all into one manifest, one file removed.
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "m4", Version: 3, Partitioning: parts, SnapshotID: 4})
	require.NoError(t, err)
	for _, m := range s3 {
		r, err := manifests.NewReader(t.Context(), bytes.NewReader(files[m.Path]), m, manifests.ReadOptions{})
		require.NoError(t, err)
		_, err = manifests.Filter(r, w, func(e *manifests.Entry) (manifests.Verdict, error) {
			if e.Path == "b" {
				return manifests.Remove, nil
			}
			return manifests.Keep, nil
		})
		require.NoError(t, err)
	}
	m4, err := w.Close()
	require.NoError(t, err)
	files["m4"] = out.Bytes()
	res, s4 := list(3, 4, 4, 43, m4)
	require.EqualValues(t, 43+23, res.NextRowID, "the merged manifest gets a range of its own; it only grows")
	require.EqualValues(t, 23, res.AddedRows)
	delete(before, "b")
	require.Equal(t, before, rowIDs(t, s4, files))
	for _, e := range readAll(t, files["m4"], s4[0], nil) {
		require.Equal(t, manifests.Stored, e.FirstRowID.From, "%s", e.Path)
		if e.Path == "b" {
			require.Equal(t, manifests.Some(int64(10)), e.FirstRowID)
		}
	}
	require.Equal(t, manifests.Some(iceberg.SeqNum(1)), s4[0].MinSeq)

	// iceberg-go sees the same ids.
	_, theirs := writeList(t, manifests.ListOptions{Version: 3, SnapshotID: 4, Seq: 4, FirstRowID: 43}, m4)
	for _, e := range icegoEntries(t, theirs[0], files["m4"]) {
		if e.Status() != icego.EntryStatusDELETED {
			require.Equal(t, before[e.DataFile().FilePath()], *e.DataFile().FirstRowID())
		}
	}
}

// TestF075RowIDsDoNotOverflow, when listed and when inherited.
func TestF075RowIDsDoNotOverflow(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema())
	b, m := added(t, 3, parts, nil, nil) // two files of three rows
	for _, next := range []int64{math.MaxInt64 - 5, math.MaxInt64} {
		_, err := manifests.WriteList(&bytes.Buffer{}, manifests.ListOptions{Version: 3, SnapshotID: 43, Seq: 1, FirstRowID: next}, []*manifests.ManifestFile{m})
		require.Equal(t, fault.TooLarge, fault.Of(err))
		require.ErrorContains(t, err, m.Path)
	}
	res, err := manifests.WriteList(&bytes.Buffer{}, manifests.ListOptions{Version: 3, SnapshotID: 43, Seq: 1, FirstRowID: math.MaxInt64 - 6}, []*manifests.ManifestFile{m})
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, res.NextRowID)
	_, err = manifests.WriteList(&bytes.Buffer{}, manifests.ListOptions{Version: 3, SnapshotID: 43, Seq: 1, FirstRowID: -1}, nil)
	require.Equal(t, fault.Corrupt, fault.Of(err))

	hostile := m.Clone()
	hostile.Seq, hostile.FirstRowID = manifests.Some(iceberg.SeqNum(1)), manifests.Some(int64(math.MaxInt64-4))
	_, err = entriesOf(t, b, hostile)
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

// TestF079CountsOfDeleteManifests are recomputed from the entries, and a delete
// manifest of only EXISTING entries may hold live ones.
func TestF079CountsOfDeleteManifests(t *testing.T) {
	spec, parts := testSpec(t, 0, testSchema(), partField{"p", 3, icego.IdentityTransform{}})
	m := writeIcego(t, 2, spec, testSchema(), icego.ManifestContentDeletes, "s3://b/t/m.avro", 900, func(w *icego.ManifestWriter) {
		for n := range 6 {
			content := icego.EntryContentPosDeletes
			f := icegoFile(t, spec, content, fmt.Sprintf("d%d", n), map[int]any{1000: int32(n)}, n)
			if n%2 == 0 {
				f = icegoFile(t, spec, icego.EntryContentEqDeletes, fmt.Sprintf("d%d", n), map[int]any{1000: int32(n)}, n).EqualityFieldIDs([]int{3, 1})
			}
			snap, seq := int64(900), int64(n)
			if n < 3 {
				require.NoError(t, w.Add(icego.NewManifestEntry(icego.EntryStatusADDED, &snap, nil, nil, f.Build())))
			} else {
				require.NoError(t, w.Delete(icego.NewManifestEntry(icego.EntryStatusDELETED, &snap, &seq, &seq, f.Build())))
			}
		}
	})
	r, err := manifests.NewReader(t.Context(), bytes.NewReader(m.bytes), m.listed(t, 2, 900, 8, 0), manifests.ReadOptions{Partition: parts.Type})
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "n", Version: 2, Content: manifests.DeleteManifest, Partitioning: parts, SnapshotID: 901})
	require.NoError(t, err)
	_, err = manifests.Filter(r, w, nil)
	require.NoError(t, err)
	file, err := w.Close()
	require.NoError(t, err)
	require.True(t, file.MayHaveLive())
	require.Equal(t, manifests.Some(int64(0)), file.AddedFiles)
	require.Equal(t, manifests.Some(int64(3)), file.ExistingFiles)
	require.Equal(t, manifests.Some(int64(0)), file.DeletedFiles)
	require.Equal(t, manifests.Some(int64(303)), file.ExistingRows)
	relisted, theirs := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 901, Seq: 9}, file)
	require.Equal(t, icego.ManifestContentDeletes, theirs[0].ManifestContent())
	want := icegoEntries(t, theirs[0], out.Bytes())
	for i, e := range readAll(t, out.Bytes(), relisted[0], nil) {
		requireSameAsIcego(t, want[i], e, parts.Type)
		require.True(t, e.DataSeq.Is(8))
	}
}

// TestF085MinSequenceNumber: zero is kept, and only live entries count.
func TestF085MinSequenceNumber(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema())
	entry := func(status manifests.Status, seq manifests.Opt[iceberg.SeqNum]) *manifests.Entry {
		return &manifests.Entry{
			Status: status, SnapshotID: manifests.Some(iceberg.SnapshotID(1)), DataSeq: seq, FileSeq: seq,
			File: manifests.File{Path: "f", Format: manifests.Parquet, Records: 1, Bytes: 1},
		}
	}
	some := manifests.Some[iceberg.SeqNum]
	none := manifests.Opt[iceberg.SeqNum]{}
	for _, c := range []struct {
		name    string
		entries []*manifests.Entry
		want    iceberg.SeqNum
	}{
		{"zero", []*manifests.Entry{entry(manifests.Existing, some(5)), entry(manifests.Existing, some(0))}, 0},
		{"deleted do not count", []*manifests.Entry{entry(manifests.Existing, some(5)), entry(manifests.Deleted, some(2))}, 5},
		{"explicit on added", []*manifests.Entry{entry(manifests.Added, some(3)), entry(manifests.Added, none)}, 3},
		{"none explicit", []*manifests.Entry{entry(manifests.Added, none)}, 9},
		{"only deleted", []*manifests.Entry{entry(manifests.Deleted, some(2))}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := manifests.NewWriter(&bytes.Buffer{}, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 4})
			require.NoError(t, err)
			for _, e := range c.entries {
				require.NoError(t, w.Put(e))
			}
			m, err := w.Close()
			require.NoError(t, err)
			list, theirs := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 4, Seq: 9}, m)
			require.Equal(t, manifests.Some(c.want), list[0].MinSeq)
			require.EqualValues(t, c.want, theirs[0].MinSequenceNum())
			require.EqualValues(t, 9, theirs[0].SequenceNum())
			// Carried by reference it stays what it was.
			again, _ := writeList(t, manifests.ListOptions{Version: 3, SnapshotID: 5, Seq: 12}, list...)
			require.Equal(t, manifests.Some(c.want), again[0].MinSeq)
			require.Equal(t, manifests.Some(iceberg.SeqNum(9)), again[0].Seq)
		})
	}
}

// TestListRefusesWhatItCannotAssign: an unassigned manifest of another
// snapshot, numbers from the future, deletes in v1.
func TestListRefusesWhatItCannotAssign(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema())
	_, m := added(t, 2, parts, nil)
	write := func(o manifests.ListOptions, m *manifests.ManifestFile) error {
		_, err := manifests.WriteList(&bytes.Buffer{}, o, []*manifests.ManifestFile{m})
		return err
	}
	require.Equal(t, fault.Halt, fault.Of(write(manifests.ListOptions{Version: 2, SnapshotID: 44, Seq: 1}, m)))
	old := m.Clone()
	old.Seq, old.MinSeq = manifests.Some(iceberg.SeqNum(8)), manifests.Some(iceberg.SeqNum(8))
	require.Equal(t, fault.Corrupt, fault.Of(write(manifests.ListOptions{Version: 2, SnapshotID: 44, Seq: 7}, old)))
	old.MinSeq = manifests.Opt[iceberg.SeqNum]{}
	require.True(t, old.NeedsCount(2))
	require.Equal(t, fault.Halt, fault.Of(write(manifests.ListOptions{Version: 2, SnapshotID: 44, Seq: 9}, old)))
	deletes := m.Clone()
	deletes.Content = manifests.DeleteManifest
	require.Equal(t, fault.Unsupported, fault.Of(write(manifests.ListOptions{Version: 1, SnapshotID: 43}, deletes)))
	unknown := m.Clone()
	unknown.SnapshotID = manifests.Opt[iceberg.SnapshotID]{}
	require.Equal(t, fault.Corrupt, fault.Of(write(manifests.ListOptions{Version: 2, SnapshotID: 43, Seq: 9}, unknown)))
	require.Equal(t, fault.Unsupported, fault.Of(write(manifests.ListOptions{Version: 4, SnapshotID: 43, Seq: 9}, m)))
	negative := m.Clone()
	negative.FirstRowID = manifests.Some(int64(5))
	negative.Content = manifests.DeleteManifest
	res, err := manifests.WriteList(&bytes.Buffer{}, manifests.ListOptions{Version: 3, SnapshotID: 43, Seq: 9}, []*manifests.ManifestFile{negative})
	require.NoError(t, err)
	require.False(t, res.Manifests[0].FirstRowID.Known(), "delete manifests have no row ids")
}

// TestPropertyCarry: whatever the entries, carrying keeps every field, in one
// generation and in the next, and the identity of every row.
func TestPropertyCarry(t *testing.T) {
	spec, parts := everyType(t)
	_ = spec
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.IntRange(1, 3).Draw(rt, "version")
		target := rapid.IntRange(version, 3).Draw(rt, "target")
		content := manifests.DataManifest
		if version > 1 && rapid.Bool().Draw(rt, "deletes") {
			content = manifests.DeleteManifest
		}
		var out bytes.Buffer
		w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "m", Version: version, Content: content, Partitioning: parts, SnapshotID: 7})
		require.NoError(rt, err)
		n := rapid.IntRange(1, 20).Draw(rt, "entries")
		for i := range n {
			require.NoError(rt, w.Put(drawEntry(rt, parts, version, content, i)))
		}
		m, err := w.Close()
		require.NoError(rt, err)
		var list bytes.Buffer
		res, err := manifests.WriteList(&list, manifests.ListOptions{Version: version, SnapshotID: 7, Seq: 50, FirstRowID: 1000}, []*manifests.ManifestFile{m})
		require.NoError(rt, err)
		src := res.Manifests[0]
		var sink bytes.Buffer
		c, err := manifests.NewWriter(&sink, manifests.WriterOptions{Path: "n", Version: target, Content: content, Partitioning: parts, SnapshotID: 8})
		require.NoError(rt, err)
		var want []*manifests.Entry
		for e, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(out.Bytes()), src, manifests.ReadOptions{}) {
			require.NoError(rt, err)
			if !e.Live() {
				continue
			}
			want = append(want, e.Clone())
			require.NoError(rt, c.Carry(e))
		}
		if len(want) == 0 {
			return
		}
		carried, err := c.Close()
		require.NoError(rt, err)
		carried.Seq = manifests.Some(iceberg.SeqNum(60))
		if target == 1 {
			carried.Seq.Value = 0
		}
		for i, got := range readAll(t, sink.Bytes(), carried, nil) {
			e := *want[i]
			e.Status = manifests.Existing
			e.SnapshotID = manifests.Some(e.SnapshotID.Value)
			if target > 1 {
				e.DataSeq = manifests.Some(e.DataSeq.Value)
				if e.FileSeq.Known() {
					e.FileSeq = manifests.Some(e.FileSeq.Value)
				}
			} else {
				got.DataSeq, got.FileSeq = e.DataSeq, e.FileSeq
			}
			if e.FirstRowID.Known() {
				e.FirstRowID = manifests.Some(e.FirstRowID.Value)
			}
			require.Empty(rt, diffEntries(&e, got))
		}
	})
}
