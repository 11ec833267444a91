package compact

import (
	"context"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite/deletes"
)

// peerReplacesDeletes commits, as another engine that rewrites delete files, that
// some go and that one for each data file of positions comes, of the sequence
// number of those that went.
func peerReplacesDeletes(t testing.TB, fl *filertest.Filer, tb *model.Scene, gone []*model.File, positions map[string][]int64) {
	t.Helper()
	peerCommits(t, fl, tb, func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		return replaceDeletes(ctx, t, head, st, gone, positions)
	})
}

// peerDeletesByKey commits an equality delete of an int column of an unpartitioned
// table, with a sequence number of its own if there is one. The column need not be
// in the schema any more.
func peerDeletesByKey(t testing.TB, fl *filertest.Filer, tb *model.Scene, column iceberg.FieldID, seq manifests.Opt[iceberg.SeqNum], values ...int32) {
	t.Helper()
	peerCommits(t, fl, tb, func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		b := array.NewInt32Builder(pool)
		b.AppendValues(values, nil)
		f := longField("key", int(column))
		f.Type = arrow.PrimitiveTypes.Int32
		raw, err := encode([]arrow.Field{f}, []arrow.Array{b.NewArray()})
		require.NoError(t, err)
		a := peerAttempt(t, head, st)
		list, err := a.sn.Manifests(ctx)
		require.NoError(t, err)
		to, err := a.deleteSink(ctx, nil, iceberg.Tuple{}, "-eq.parquet")
		require.NoError(t, err)
		_, err = to.Write(raw)
		require.NoError(t, err)
		at, err := to.Done(ctx)
		require.NoError(t, err)
		st.Use(at.At)
		n := int64(len(values))
		fresh, err := a.added(ctx, []*manifests.Entry{{Status: manifests.Added, DataSeq: seq, File: manifests.File{
			Content: manifests.EqualityDeletes, Path: at.Location, Format: manifests.Parquet, Records: n, Bytes: at.Bytes,
			EqualityIDs: []iceberg.FieldID{column},
		}}})
		require.NoError(t, err)
		return a.sn.Finish(ctx, "delete", append(fresh, list...), commit.Summary{
			AddedDeleteFiles: 1, AddedEqualityFiles: 1, AddedEqualities: n, AddedBytes: at.Bytes,
		})
	})
}

// peerAddsVector commits a vector for a data file that has none, and leaves the
// other deletes of the file as they are.
func peerAddsVector(t testing.TB, fl *filertest.Filer, tb *model.Scene, file *model.File, at ...int64) {
	t.Helper()
	peerCommits(t, fl, tb, func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		a := peerAttempt(t, head, st)
		list, err := a.sn.Manifests(ctx)
		require.NoError(t, err)
		var e *manifests.Entry
		for _, m := range list {
			for x, err := range manifests.EntriesOf(ctx, st.Reader(), head.Locations, m, manifests.ReadOptions{}) {
				require.NoError(t, err)
				if x.Live() && x.Path == file.Path {
					e = x.Clone()
				}
			}
		}
		require.NotNil(t, e)
		files, err := a.markVectors(ctx, []marking{{file: e, rows: deletes.Of(at...), version: 3}})
		require.NoError(t, err)
		added := &manifests.Entry{Status: manifests.Added, File: files[0]}
		p, err := head.Locations.Resolve(added.Path)
		require.NoError(t, err)
		st.Use(p)
		fresh, err := a.added(ctx, []*manifests.Entry{added})
		require.NoError(t, err)
		return a.sn.Finish(ctx, "delete", append(fresh, list...), commit.Summary{
			AddedDeleteFiles: 1, AddedVectors: 1, AddedPositions: added.Records, AddedBytes: contentBytes(added),
		})
	})
}

func peerAttempt(t testing.TB, head *iceberg.View, st *commit.Stage) *attempt {
	t.Helper()
	place, err := newPlacement(head)
	require.NoError(t, err)
	x := &execution{tools: realTools(), st: st, place: place, p: &Plan{}, pr: ops.Silent{}}
	x.known.init()
	a := &attempt{x: x, st: st, head: head}
	a.sn, err = st.Begin(head, iceberg.MainBranch)
	require.NoError(t, err)
	return a
}

// peerCommits commits a change of somebody else.
func peerCommits(t testing.TB, fl *filertest.Filer, tb *model.Scene, rebuild func(context.Context, *iceberg.View, *commit.Stage) (commit.Next, error)) {
	t.Helper()
	peer := fl.Reopen()
	v, err := iceberg.Load(t.Context(), peer, tableID)
	require.NoError(t, err)
	run, err := journal.New(peer, fl.Virtual()).Open(t.Context(), journal.Options{
		Table: tableID, UUID: tb.UUID(), Op: "peer", Run: "peer", Base: v.MetadataLocation, Lease: time.Hour,
	})
	require.NoError(t, err)
	c := commit.New(peer, fl.Virtual(), commit.Options{})
	st := c.Stage(run, v)
	base, err := commit.BaseOf(v, iceberg.MainBranch)
	require.NoError(t, err)
	_, err = c.Commit(t.Context(), commit.Change{Operation: "peer", Base: base, Rebuild: rebuild}, st)
	require.NoError(t, err)
	require.NoError(t, run.Close(t.Context(), journal.Committed))
}

func replaceDeletes(ctx context.Context, t testing.TB, head *iceberg.View, st *commit.Stage, gone []*model.File, positions map[string][]int64) (commit.Next, error) {
	a := peerAttempt(t, head, st)
	list, err := a.sn.Manifests(ctx)
	require.NoError(t, err)
	paths := map[string]bool{}
	for _, f := range gone {
		paths[f.Path] = true
	}
	files := map[string]*manifests.Entry{}
	var seq manifests.Opt[iceberg.SeqNum]
	var sum commit.Summary
	var next []*manifests.ManifestFile
	for _, m := range list {
		r := &removal{data: map[string]bool{}, deletes: map[deleteKey]bool{}}
		for e, err := range manifests.EntriesOf(ctx, st.Reader(), head.Locations, m, manifests.ReadOptions{}) {
			require.NoError(t, err)
			if !e.Live() {
				continue
			}
			if e.Content == manifests.Data {
				files[e.Path] = e.Clone()
			}
			if paths[e.Path] {
				r.deletes[deleteKey{e.DeleteID(), e.DataSeq.Value}] = true
				seq = manifests.Some(max(seq.Value, e.DataSeq.Value))
				sum.RemovedDeleteFiles++
				sum.RemovedPositionFiles++
				sum.RemovedPositions += e.Records
				sum.RemovedBytes += e.Bytes
			}
		}
		if len(r.deletes) == 0 {
			next = append(next, m)
			continue
		}
		heirs, err := a.filter(ctx, m, r)
		require.NoError(t, err)
		next = append(next, heirs...)
	}
	var added []*manifests.Entry
	for path, at := range positions {
		f := files[path]
		require.NotNil(t, f)
		part, err := head.Metadata.PartitionType(f.SpecID)
		require.NoError(t, err)
		d, err := a.markFile(ctx, part, marking{file: f, rows: deletes.Of(at...), version: 2})
		require.NoError(t, err)
		e := &manifests.Entry{Status: manifests.Added, DataSeq: seq, File: d}
		added = append(added, e)
		sum.AddedDeleteFiles++
		sum.AddedPositionFiles++
		sum.AddedPositions += d.Records
		sum.AddedBytes += d.Bytes
	}
	fresh, err := a.added(ctx, added)
	require.NoError(t, err)
	for _, e := range added {
		p, err := head.Locations.Resolve(e.Path)
		require.NoError(t, err)
		st.Use(p)
	}
	return a.sn.Finish(ctx, "delete", append(fresh, next...), sum)
}
