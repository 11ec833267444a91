package compact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
)

// hashOf is the hash that the specification names for buckets (appendix B): murmur3
// of 32 bits with seed 0. It is the test's own, so that no code of the tables that
// are tested has a part in it.
func hashOf(b []byte) uint32 {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	h, n := uint32(0), uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h ^= mix(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i, x := range b {
		k |= uint32(x) << (8 * i)
	}
	h ^= mix(k) ^ n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// decimalBytes is the unscaled value in the fewest bytes of two's complement.
func decimalBytes(d icego.Decimal) []byte {
	v := d.Val.BigInt()
	if v.Sign() >= 0 {
		return v.FillBytes(make([]byte, v.BitLen()/8+1))
	}
	n := new(big.Int).Not(v).BitLen()/8 + 1
	return new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n))).FillBytes(make([]byte, n))
}

func bucketOf(v model.Value) any {
	if v == nil {
		return nil
	}
	return int32(hashOf(decimalBytes(v.(icego.Decimal))) & math.MaxInt32 % 16)
}

// peerMoves commits every data file again under another bucket, as the files of a
// writer are that hashes decimals in its own way.
func peerMoves(t testing.TB, fl *filertest.Filer, tb *model.Scene) {
	t.Helper()
	peerCommits(t, fl, tb, func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		a := peerAttempt(t, head, st)
		list, err := a.sn.Manifests(ctx)
		require.NoError(t, err)
		var all []*manifests.Entry
		for _, m := range list {
			for e, err := range manifests.EntriesOf(ctx, st.Reader(), head.Locations, m, manifests.ReadOptions{}) {
				require.NoError(t, err)
				part, err := head.Metadata.PartitionType(e.SpecID)
				require.NoError(t, err)
				file := e.Clone().File
				if v, is := e.Partition.At(0).Any().(int32); is {
					file.Partition, err = part.Tuple(map[iceberg.FieldID]any{1000: (v + 1) % 16})
					require.NoError(t, err)
				}
				all = append(all, &manifests.Entry{Status: manifests.Existing, SnapshotID: e.SnapshotID, DataSeq: e.DataSeq, FileSeq: e.FileSeq, File: file})
			}
		}
		fresh, err := a.added(ctx, all)
		require.NoError(t, err)
		return a.sn.Finish(ctx, "replace", fresh, commit.Summary{})
	})
}

// F036: a row stays in the partition that its file was in, whatever other engines
// take for the bucket of a decimal. Where they take the right one, that of outputs is
// right as well.
func TestF036BucketsOfDecimals(t *testing.T) {
	require.Equal(t, int32(-500754589), int32(hashOf(decimalBytes(icego.Decimal{Val: decimal128.FromI64(1420), Scale: 2}))), "appendix B, 14.20")
	for name, values := range map[string][]any{
		"decimal(9,2)":   {"14.20", "-14.20", "0.00", "1.27", "1.28", "-1.28", "-1.29", "327.67", "327.68", "9999999.99", "-9999999.99", nil},
		"decimal(18,4)":  {"14.2000", "-0.0001", "0.0127", "0.0128", "99999999999999.9999", "-99999999999999.9999", "21474836.48", "-21474836.49", nil},
		"decimal(38,10)": {"14.2", "-1", "0", "922337203.6854775807", "922337203.6854775808", "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", nil},
	} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s moved %t", name, moved), func(t *testing.T) {
				versions(t, 1, func(t *testing.T, version int) {
					if moved && version == 3 {
						return // the move gives rows other ids, which is another story
					}
					fl := filertest.New(filertest.Options{})
					tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id long!, d "+name), Spec: "bucket[16](d)"})
					for round := range 3 {
						var rows []model.Row
						for i, v := range values {
							rows = append(rows, tb.R(int64(100*round+i), v))
						}
						tb.Append(rows...)
					}
					if moved {
						peerMoves(t, fl, tb)
					}
					before := bucketsOfRows(t, fl)
					require.Len(t, before, 3*len(values))
					done(t, fl, nil)
					if moved {
						require.NoError(t, tb.Refresh(t.Context()))
						require.NoError(t, model.Check(t.Context(), tb.Table))
					} else {
						sound(t, fl, tb.Table)
					}
					require.Equal(t, before, bucketsOfRows(t, fl))
					parts := map[any]bool{}
					for _, e := range tb.Head("").DataFiles() {
						require.Equal(t, model.Added, e.Status)
						bucket := e.File.Partition[1000]
						require.False(t, parts[bucket], "two outputs in bucket %v", bucket)
						parts[bucket] = true
						for _, r := range e.File.Written {
							want := bucketOf(r[2])
							if n, is := want.(int32); is && moved {
								want = (n + 1) % 16
							}
							require.Equal(t, want, bucket, "%v", r)
						}
					}
					require.Greater(t, len(parts), 4)
				})
			})
		}
	}
}

// bucketsOfRows are the partitions of rows by their id. The partition is the entry's
// of the head, whatever an earlier snapshot said of the file.
func bucketsOfRows(t testing.TB, fl *filertest.Filer) map[any]string {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, tableID)
	require.NoError(t, err)
	bucket := map[string]string{}
	for m, err := range manifests.OfSnapshot(t.Context(), fl, v.Locations, v.Metadata.Current()) {
		require.NoError(t, err)
		for e, err := range manifests.EntriesOf(t.Context(), fl, v.Locations, m, manifests.ReadOptions{}) {
			require.NoError(t, err)
			if e.Live() {
				bucket[e.Path] = e.Partition.At(0).String()
			}
		}
	}
	tb, err := model.Attach(t.Context(), fl, model.Config{ID: tableID, Clock: fl.Virtual()})
	require.NoError(t, err)
	out := map[any]string{}
	for _, e := range tb.Head("").DataFiles() {
		require.Contains(t, bucket, e.File.Path)
		for _, r := range e.File.Written {
			out[r[1]] = bucket[e.File.Path]
		}
	}
	return out
}

// F054: of the metadata, a compaction changes what a commit of it must, and adds to
// what it may add to.
func TestF054MetadataKeepsWhatIsNotTheCommits(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Spec: "region", Fields: map[string]any{"a-later-field": map[string]any{"x": json.Number("12345678901234567890")}}})
		tb.Set("owner", "somebody", "write.parquet.compression-codec", "snappy")
		f := tb.File(tb.R(int64(1), "eu"), tb.R(int64(2), "eu"), tb.R(int64(3), "eu"))
		tb.Tag("first")
		tb.Branch("side")
		tb.DeleteAt(f, 1)
		tb.Add("extra", "int")
		tb.Respec("bucket[4](id)")
		tb.Respec("region")
		tb.Do(tb.SetSortOrder(t.Context(), model.SortOrder{Fields: []model.SortField{{Source: 1}}}))
		tb.File(tb.R(int64(4), "eu", int32(40)), tb.R(int64(5), "eu", nil))
		before := document(t, tb)
		done(t, fl, nil)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		after := document(t, tb)
		head := tb.Head("")
		require.Equal(t, "replace", head.Operation)

		require.Equal(t, json.Number(fmt.Sprint(head.ID)), after["current-snapshot-id"])
		seq, last := number(t, after["last-sequence-number"]), number(t, before["last-sequence-number"])
		require.Equal(t, last+1, seq)
		require.Equal(t, int64(head.Seq), seq)
		require.GreaterOrEqual(t, number(t, after["last-updated-ms"]), number(t, before["last-updated-ms"]))
		for _, log := range []string{"snapshots", "snapshot-log", "metadata-log"} {
			was, is := before[log].([]any), after[log].([]any)
			require.Len(t, is, len(was)+1, log)
			require.Equal(t, was, is[:len(was)], log)
		}
		refs := maps.Clone(after["refs"].(map[string]any))
		require.Equal(t, json.Number(fmt.Sprint(head.ID)), refs["main"].(map[string]any)["snapshot-id"])
		main := maps.Clone(refs["main"].(map[string]any))
		main["snapshot-id"] = before["refs"].(map[string]any)["main"].(map[string]any)["snapshot-id"]
		refs["main"] = main
		require.Equal(t, before["refs"], any(refs))
		require.Len(t, refs, 3)
		if version == 3 {
			require.GreaterOrEqual(t, number(t, after["next-row-id"]), number(t, before["next-row-id"]))
		}
		for _, own := range []string{"current-snapshot-id", "last-sequence-number", "last-updated-ms", "snapshots", "snapshot-log", "metadata-log", "refs", "next-row-id"} {
			delete(before, own)
			delete(after, own)
		}
		require.Equal(t, before, after)
		for _, kept := range []string{"table-uuid", "schemas", "partition-specs", "sort-orders", "properties", "a-later-field", "last-column-id"} {
			require.Contains(t, after, kept)
		}
		require.Len(t, after["schemas"], 2)
		require.Len(t, after["partition-specs"], 3)
	})
}

func document(t testing.TB, tb *model.Scene) map[string]any {
	t.Helper()
	data, err := tb.MetadataJSON()
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	out := map[string]any{}
	require.NoError(t, d.Decode(&out))
	return out
}

func number(t testing.TB, v any) int64 {
	t.Helper()
	n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	require.NoError(t, err)
	return n
}

// F074: the rows that are left keep their ids, gaps and all, and the sequence number
// of the commit that wrote them, also when they are rewritten twice.
func TestF074LineageOfSurvivors(t *testing.T) {
	for name, copying := range map[string]rewrite.Copying{"copied": rewrite.CopyForced, "encoded": rewrite.CopyNever} {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := scene(t, fl, model.Config{Version: 3, Spec: "region"})
			tl := copyingAs(realTools(), copying)
			run := func() {
				res, err := runTools(t.Context(), fl, tl, nil)
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, "%s %+v", res.Message, res.Reasons)
				sound(t, fl, tb.Table)
				tidy(t, fl, tb.Table)
			}
			var others []model.Row
			for i := range 100 {
				others = append(others, tb.R(int64(1000+i), "other"))
			}
			tb.File(others...)
			d1 := small(tb, 0, 1, 5, "eu")[0]
			d2 := small(tb, 5, 1, 3, "eu")[0]
			tb.DeleteAt(d1, 1)
			seq := map[string]int64{}
			for _, e := range tb.Head("").DataFiles() {
				seq[e.File.Path] = int64(e.Seq)
			}
			require.Equal(t, []int64{100, 105}, []int64{firstID(t, tb, d1), firstID(t, tb, d2)})
			s1, s2 := seq[d1.Path], seq[d2.Path]
			require.Less(t, s1, s2)
			run()
			ids, updated := []int64{100, 102, 103, 104, 105, 106, 107}, []int64{s1, s1, s1, s1, s2, s2, s2}
			out := inRegion(t, tb, "eu")
			require.Equal(t, ids, out.RowIDs)
			require.Equal(t, updated, out.Updated)
			shown(t, fl, tb, []int64{0, 2, 3, 4, 5, 6, 7}, ids, updated)

			// Again, with rows that have just come and others that go.
			d3 := small(tb, 8, 1, 2, "eu")[0]
			first := firstID(t, tb, d3)
			require.GreaterOrEqual(t, first, int64(108))
			s3 := int64(tb.Head("").Seq)
			tb.DeleteAt(out, 2, 4) // ids 103 and 105
			tb.DeleteAt(d3, 0)
			run()
			ids, updated = []int64{100, 102, 104, 106, 107, first + 1}, []int64{s1, s1, s1, s2, s2, s3}
			out = inRegion(t, tb, "eu")
			require.Equal(t, ids, out.RowIDs)
			require.Equal(t, updated, out.Updated)
			shown(t, fl, tb, []int64{0, 2, 4, 6, 7, 9}, ids, updated)
		})
	}
}

// firstID is the first row id of a live file.
func firstID(t testing.TB, tb *model.Scene, f *model.File) int64 {
	t.Helper()
	for _, e := range tb.Head("").DataFiles() {
		if e.File.Path == f.Path {
			require.NotNil(t, e.FirstRowID)
			return *e.FirstRowID
		}
	}
	t.Fatalf("%s is not live", f.Path)
	return 0
}

// inRegion is the only file of a region.
func inRegion(t testing.TB, tb *model.Scene, region string) *model.File {
	t.Helper()
	var out []*model.File
	for _, e := range tb.Head("").DataFiles() {
		if e.File.Partition[1000] == region {
			out = append(out, e.File)
		}
	}
	require.Len(t, out, 1)
	return out[0]
}

// shown requires that iceberg-go shows the rows of eu with this lineage.
func shown(t testing.TB, fl *filertest.Filer, tb *model.Scene, keys, ids, updated []int64) {
	t.Helper()
	rows, err := model.ReadRows(t.Context(), fl, tableID, model.View{Lineage: true})
	require.NoError(t, err)
	require.Equal(t, 100+len(keys), rows.Len())
	for i, k := range keys {
		text := fmt.Sprintf("%s row %d updated %d", model.CanonicalRow(tb.Schema(), tb.R(k, "eu")), ids[i], updated[i])
		require.Equal(t, 1, rows[text], "%s is not among %v", text, rows)
	}
}

// F129: the totals of the summary are those of the files there are, and the deletes
// that went are counted as what they were.
func TestF129SummaryCountsDeletesThatWent(t *testing.T) {
	versions(t, 2, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Spec: "region"})
		eu := small(tb, 1, 2, 4, "eu")
		us := small(tb, 100, 1, 4, "us") // alone, so that it and its delete stay
		tb.DeleteAt(eu[0], 1)
		tb.DeleteAt(us[0], 2)
		tb.EqualityDelete([]string{"id"}, tb.R(int64(7), "eu"), tb.R(int64(8), "eu"))
		done(t, fl, nil)
		sound(t, fl, tb.Table)
		tidy(t, fl, tb.Table)
		kind := map[int]string{2: "removed-position-delete-files", 3: "removed-dvs"}[version]
		s := recounted(t, fl)
		for k, want := range map[string]string{
			"added-records": "5", "deleted-records": "8", "added-data-files": "1", "deleted-data-files": "2", "removed-delete-files": "2",
			kind: "1", "removed-position-deletes": "1", "removed-equality-delete-files": "1", "removed-equality-deletes": "2",
			"total-records": "9", "total-data-files": "2", "total-delete-files": "1", "total-position-deletes": "1", "total-equality-deletes": "0",
		} {
			require.Equal(t, want, s[k], k)
		}
		require.NotContains(t, s, "added-delete-files")

		// The rest goes once us has another file.
		small(tb, 200, 1, 1, "us")
		done(t, fl, nil)
		sound(t, fl, tb.Table)
		s = recounted(t, fl)
		for k, want := range map[string]string{
			"added-records": "4", "deleted-records": "5", "removed-delete-files": "1", kind: "1", "removed-position-deletes": "1",
			"total-records": "9", "total-delete-files": "0", "total-position-deletes": "0",
		} {
			require.Equal(t, want, s[k], k)
		}
		require.NotContains(t, s, "removed-equality-delete-files")
		require.Len(t, tb.Head("").Rows, 9)
	})
}

// recounted is the head's summary, whose totals must be what its manifests hold.
func recounted(t testing.TB, fl *filertest.Filer) map[string]string {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, tableID)
	require.NoError(t, err)
	total := map[string]int64{}
	for m, err := range manifests.OfSnapshot(t.Context(), fl, v.Locations, v.Metadata.Current()) {
		require.NoError(t, err)
		for e, err := range manifests.EntriesOf(t.Context(), fl, v.Locations, m, manifests.ReadOptions{}) {
			require.NoError(t, err)
			if !e.Live() {
				continue
			}
			total["total-files-size"] += contentBytes(e)
			switch e.Content {
			case manifests.Data:
				total["total-records"] += e.Records
				total["total-data-files"]++
				continue
			case manifests.PositionDeletes:
				total["total-position-deletes"] += e.Records
			case manifests.EqualityDeletes:
				total["total-equality-deletes"] += e.Records
			}
			total["total-delete-files"]++
		}
	}
	s := map[string]string{}
	maps.Copy(s, v.Metadata.Current().Summary())
	for _, k := range []string{"total-records", "total-data-files", "total-delete-files", "total-position-deletes", "total-equality-deletes", "total-files-size"} {
		require.Equal(t, fmt.Sprint(total[k]), s[k], k)
	}
	return s
}
