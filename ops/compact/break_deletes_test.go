package compact

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite/deletes"
)

// peerDeletesUnder commits a position delete of f's partition that calls the file
// by another name than its entry. Named says that the entry names it as well.
func peerDeletesUnder(t testing.TB, fl *filertest.Filer, tb *model.Scene, f *model.File, name string, named bool, at ...int64) {
	t.Helper()
	peerCommits(t, fl, tb, func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		a := peerAttempt(t, head, st)
		list, err := a.sn.Manifests(ctx)
		require.NoError(t, err)
		var e *manifests.Entry
		for _, m := range list {
			for x, err := range manifests.EntriesOf(ctx, st.Reader(), head.Locations, m, manifests.ReadOptions{}) {
				require.NoError(t, err)
				if x.Live() && x.Path == f.Path {
					e = x.Clone()
				}
			}
		}
		require.NotNil(t, e)
		e.Path = name
		part, err := head.Metadata.PartitionType(e.SpecID)
		require.NoError(t, err)
		d, err := a.markFile(ctx, part, marking{file: e, rows: deletes.Of(at...), version: 2})
		require.NoError(t, err)
		if !named {
			d.ReferencedDataFile, d.Lower, d.Upper = manifests.Opt[string]{}, nil, nil
		}
		fresh, err := a.added(ctx, []*manifests.Entry{{Status: manifests.Added, File: d}})
		require.NoError(t, err)
		p, err := head.Locations.Resolve(d.Path)
		require.NoError(t, err)
		st.Use(p)
		return a.sn.Finish(ctx, "delete", append(fresh, list...), commit.Summary{
			AddedDeleteFiles: 1, AddedPositionFiles: 1, AddedPositions: d.Records, AddedBytes: d.Bytes,
		})
	})
}

// A position delete hits the data file that is spelled as in its entry (spec,
// "Position Delete Files"). Readers compare text: a row that they all show must
// not be lost because another spelling can mean the same file.
func TestPositionDeleteUnderAnotherSpelling(t *testing.T) {
	for _, named := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			t.Run(map[bool]string{false: "many", true: "one"}[named]+map[bool]string{false: " planned", true: " late"}[late], func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				tb := scene(t, fl, model.Config{Version: 2})
				files := small(tb, 1, 3, 4, "eu")
				peer := func() {
					peerDeletesUnder(t, fl, tb, files[1], strings.Replace(files[1].Path, "s3://", "s3a://", 1), named, 0, 1)
				}
				var res ops.Result
				var err error
				if late {
					res, err = between(t, fl, tb.Table, nil, peer)
				} else {
					peer()
					res, err = runCompact(t.Context(), fl, nil)
				}
				require.NoError(t, err)
				t.Log(res.Status, res.Reasons, res.Counters)
				require.NoError(t, tb.Refresh(t.Context()))
				rows, err := model.ReadRows(t.Context(), fl, tableID, model.View{})
				require.NoError(t, err)
				require.Equal(t, 12, rows.Len())
			})
		}
	}
}

// A column that a spec's partitions are made of was widened between planning and
// commit: the run is overtaken, and the table is not called corrupt for it.
func TestPartitionColumnWidenedMeanwhile(t *testing.T) {
	versions(t, 1, func(t *testing.T, version int) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: version, Schema: model.Columns(t, "id long!, p int"), Spec: "p"})
		var f *model.File
		for n := range 3 {
			f = tb.File(tb.R(int64(10*n), int32(7)), tb.R(int64(10*n+1), int32(7)))
		}
		res, err := between(t, fl, tb.Table, nil, func() {
			tb.Widen("p", "long")
			if version == 1 {
				tb.Append(tb.R(int64(99), int64(8)))
				return
			}
			tb.DeleteAt(f, 1)
		})
		nothingStood(t, fl, tb.Table, res, err)
		done(t, fl, nil)
		sound(t, fl, tb.Table)
	})
}

// F072: summaries of other writers have one zero, or NaN as a bound. What they
// leave open is looked at.
func TestF072SummariesOfFloats(t *testing.T) {
	part := &iceberg.PartitionType{Fields: []iceberg.PartitionField{{ID: 1000, Transform: icego.IdentityTransform{}, Result: icego.PrimitiveTypes.Float64}}}
	bits := func(f float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)) }
	zero, minus, nan := 0.0, math.Copysign(0, -1), math.NaN()
	for _, c := range []struct {
		lower, upper, value float64
		in                  bool
	}{
		{zero, 1, minus, true}, {-1, minus, zero, true}, {minus, zero, zero, true}, {zero, zero, minus, true},
		{nan, nan, 5, true}, {nan, 1, 0.5, true}, {1, nan, 2, true}, {1, 2, nan, true},
		{1, 2, 0.5, false}, {1, 2, 2.5, false}, {1, 2, minus, false}, {-2, -1, zero, false},
	} {
		tuple, err := part.Tuple(map[iceberg.FieldID]any{1000: c.value})
		require.NoError(t, err)
		require.Equal(t, c.in, admits(part, []manifests.FieldSummary{{Lower: bits(c.lower), Upper: bits(c.upper)}}, tuple), "%+v", c)
	}
}

// peerAdds commits entries as they are, those of deletes and of data apart.
func peerAdds(t testing.TB, fl *filertest.Filer, tb *model.Scene, entries func(live []*manifests.Entry) []*manifests.Entry) {
	t.Helper()
	peerCommits(t, fl, tb, func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		a := peerAttempt(t, head, st)
		list, err := a.sn.Manifests(ctx)
		require.NoError(t, err)
		var live []*manifests.Entry
		for _, m := range list {
			for x, err := range manifests.EntriesOf(ctx, st.Reader(), head.Locations, m, manifests.ReadOptions{}) {
				require.NoError(t, err)
				if x.Live() {
					live = append(live, x.Clone())
				}
			}
		}
		fresh, err := a.added(ctx, entries(live))
		require.NoError(t, err)
		return a.sn.Finish(ctx, "append", append(fresh, list...), commit.Summary{})
	})
}

// A table that lists a delete twice, or a data file under two spellings, is damaged
// or strange, and no fault of this program that would stop it for all tables.
func TestEntriesThatAreThereTwice(t *testing.T) {
	added := func(e *manifests.Entry) *manifests.Entry {
		return &manifests.Entry{Status: manifests.Added, File: e.File}
	}
	t.Run("delete", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: 2})
		files := small(tb, 1, 3, 4, "eu")
		tb.DeleteAt(files[0], 0)
		peerAdds(t, fl, tb, func(live []*manifests.Entry) []*manifests.Entry {
			var out []*manifests.Entry
			for _, e := range live {
				if e.Content != manifests.Data {
					out = append(out, added(e), added(e))
				}
			}
			return out
		})
		res, err := runCompact(t.Context(), fl, nil)
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status)
		require.NoError(t, tb.Refresh(t.Context()))
		require.Empty(t, deleteFiles(tb.Table))
		require.NoError(t, model.Check(t.Context(), tb.Table))
	})
	t.Run("data file", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: 2})
		files := small(tb, 1, 3, 4, "eu")
		tb.DeleteAt(files[0], 0)
		before := physicalFiles(t, fl)
		peerAdds(t, fl, tb, func(live []*manifests.Entry) []*manifests.Entry {
			for _, e := range live {
				if e.Path == files[0].Path {
					e.Path = strings.Replace(e.Path, "s3://", "s3a://", 1)
					return []*manifests.Entry{added(e)}
				}
			}
			return nil
		})
		_, err := runCompact(t.Context(), fl, nil)
		require.NotEqual(t, fault.Halt, fault.Of(err), "%v", err)
		require.Equal(t, len(before)+1, len(physicalFiles(t, fl)))
	})
	t.Run("data file meanwhile", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := scene(t, fl, model.Config{Version: 2})
		files := small(tb, 1, 3, 4, "eu")
		before := physicalFiles(t, fl)
		_, err := between(t, fl, tb.Table, nil, func() {
			peerAdds(t, fl, tb, func(live []*manifests.Entry) []*manifests.Entry {
				for _, e := range live {
					if e.Path == files[0].Path {
						return []*manifests.Entry{added(e)}
					}
				}
				return nil
			})
			tb.Do(tb.Refresh(t.Context()))
		})
		t.Log(err)
		require.NotEqual(t, fault.Halt, fault.Of(err), "%v", err)
		t.Log(before, physicalFiles(t, fl))
	})
}

// A delete of a whole partition that came in between is read once, however many
// inputs it is looked at for.
func TestLateDeleteOfManyInputsIsReadOnce(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2})
	files := small(tb, 1, 30, 3, "eu")
	var late *model.File
	opened := 0
	res, err := between(t, fl, tb.Table, nil, func() {
		var rows []model.RowID
		for _, f := range files {
			rows = append(rows, f.RowsAt(1)...)
		}
		late = tb.DeleteScoped(model.PerPartition, rows...)
		fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Path == late.At && c.Op != filertest.OpStat {
				opened++
			}
			return nil
		})
	})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	require.Equal(t, int64(30), res.Counters["rows-translated"])
	require.Less(t, opened, 30)
	sound(t, fl, tb.Table)
}
