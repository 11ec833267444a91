package rewritemanifests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/worker"
)

// between runs the operation with peer acting once, after the new manifests were
// written and before they are committed.
func between(t *testing.T, fl *filertest.Filer, tb *model.Table, peer func()) (ops.Result, error) {
	t.Helper()
	record, done := tb.Record(), false
	fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpUpdate && c.Path == record && !done {
			done = true
			peer()
		}
		return nil
	})
	defer fl.OnCall(nil)
	res, err := run(t.Context(), fl, nil)
	require.True(t, done)
	return res, err
}

func check(t testing.TB, tb *model.Table) {
	t.Helper()
	require.NoError(t, tb.Refresh(t.Context()))
	require.NoError(t, model.Check(t.Context(), tb))
}

// F006: a concurrent commit removed a data file. The rewritten manifest that
// holds it must not bring it back: its group is dropped.
func TestF006RemovedFileStaysRemoved(t *testing.T) {
	for version := 1; version <= 3; version++ {
		fl := filertest.New(filertest.Options{})
		tb := table(t, fl, version, "", 7)
		res, err := between(t, fl, tb, func() {
			gone := tb.Where("", func(r model.Row) bool { return r[1].(int64) == 22 })
			require.Len(t, gone, 1)
			_, err := tb.Overwrite(t.Context(), gone, nil, model.Options{})
			require.NoError(t, err)
		})
		require.NoError(t, err)
		require.Equal(t, ops.NothingToDo, res.Status, "the only group lost a manifest: %s", res.Message)
		check(t, tb)
		// Nothing of the peer's was undone, and what is left can be rewritten.
		_, err = run(t.Context(), fl, map[string]string{"min_manifests_to_rewrite": "2"})
		require.NoError(t, err)
		check(t, tb)
	}
}

// P13: appends, other branches and properties between planning and commit cost a
// rebase and no work.
func TestP13HeadMoves(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 2, "region", 7)
	require.NoError(t, tb.CreateBranch(t.Context(), "dev", 0, model.Retention{}))
	res, err := between(t, fl, tb, func() {
		for _, branch := range []string{"", "dev"} {
			r, err := tb.Row(int64(900), "new", 1.0)
			require.NoError(t, err)
			_, err = tb.Append(t.Context(), []model.Row{r}, model.Options{Branch: branch})
			require.NoError(t, err)
		}
		require.NoError(t, tb.SetProperties(t.Context(), map[string]string{"x": "y"}))
	})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	require.Equal(t, 2, res.Commit.Attempts)
	require.Equal(t, 1, res.Commit.Rebases)
	check(t, tb)
	require.Equal(t, int64(len(tb.Head("").Manifests)), res.Actual.After.Manifests)
}

// F025: manifests with DELETED entries, of an overwrite, are rewritten without
// reviving what was removed.
func TestF025DeletedEntriesStayDeleted(t *testing.T) {
	for version := 1; version <= 3; version++ {
		fl := filertest.New(filertest.Options{})
		tb := table(t, fl, version, "region", 9)
		gone := tb.Where("", func(r model.Row) bool { return r[1].(int64)%3 == 0 })
		_, err := tb.Overwrite(t.Context(), gone, nil, model.Options{KeepDead: true})
		require.NoError(t, err)
		before := files(tb)
		res, err := run(t.Context(), fl, map[string]string{"min_manifests_to_rewrite": "2"})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status)
		check(t, tb)
		require.Equal(t, before, files(tb))
		for _, m := range tb.Head("").Manifests {
			for _, e := range m.Entries {
				if m.Snapshot == tb.Head("").ID {
					require.NotEqual(t, model.Deleted, e.Status)
				}
			}
		}
	}
}

// files are the live files of the head with their sequence numbers.
func files(tb *model.Table) map[string]string {
	out := map[string]string{}
	for _, m := range tb.Head("").Manifests {
		for _, e := range m.Entries {
			if e.Live() {
				row := int64(-1)
				if e.FirstRowID != nil {
					row = *e.FirstRowID
				}
				out[fmt.Sprintf("%s@%d", e.File.Path, e.File.Offset)] = fmt.Sprintf("%d %d %d %d", e.Snapshot, e.Seq, e.FileSeq, row)
			}
		}
	}
	return out
}

// F007: an entry with an explicit, older sequence number keeps it, so that a
// newer equality delete goes on applying.
func TestF007ExplicitSequenceNumberIsKept(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 2, "", 5)
	key, err := tb.Row(int64(30))
	require.NoError(t, err)
	data := tb.Head("").DataFiles()
	_, err = tb.Rewrite(t.Context(), []*model.File{data[0].File, data[1].File}, model.Options{})
	require.NoError(t, err)
	_, err = tb.EqualityDelete(t.Context(), []model.Row{{1: key[1]}}, []iceberg.FieldID{1}, model.Options{})
	require.NoError(t, err)
	check(t, tb)
	before := files(tb)
	res, err := run(t.Context(), fl, nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	check(t, tb)
	require.Equal(t, before, files(tb))
}

// F056: schemas with defaults are byte for byte the same after the commit.
func TestF056SchemasAreUntouched(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 3, "", 5)
	_, err := tb.AddColumn(t.Context(), model.Column{Name: "c", Type: tb.Schema().Field(0).Type, Initial: int64(7), Default: int64(9)})
	require.NoError(t, err)
	before := member(t, tb, "schemas")
	require.Contains(t, before, "initial-default")
	res, err := run(t.Context(), fl, nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	check(t, tb)
	require.Equal(t, before, member(t, tb, "schemas"))
}

func member(t *testing.T, tb *model.Table, key string) string {
	t.Helper()
	raw, err := tb.MetadataJSON()
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &all))
	return string(all[key])
}

// F078: a peer rewrote one of our inputs first. Nothing of the merge that was
// prepared is used, and nothing of it is left behind.
func TestF078PreparedMergeIsNotReused(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 2, "", 7)
	before := files(tb)
	res, err := between(t, fl, tb, func() {
		peer, err := runner(fl.Reopen()).Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}})
		require.NoError(t, err)
		require.Equal(t, ops.Finished, peer[0].Status)
	})
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res.Status)
	require.NotEmpty(t, res.Commit.Attempts)
	check(t, tb)
	require.Equal(t, before, files(tb))
}

// F090: two rewrites plan on one state; one commits, and the old manifests are
// gone when the other executes. The loser is stale or corrupt on its own, leaves
// no staged files and does no harm.
func TestF090LoserOfTwoRewrites(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 2, "", 7)
	r := runner(fl)
	target, err := r.Load(t.Context(), id, config.Layers{})
	require.NoError(t, err)
	late, err := r.Plan(t.Context(), config.RewriteManifests, target)
	require.NoError(t, err)
	old := tb.Head("").Manifests
	res, err := run(t.Context(), fl, nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	check(t, tb)
	var ids []iceberg.SnapshotID
	for _, s := range tb.Snapshots() {
		if s.ID != tb.Head("").ID {
			ids = append(ids, s.ID)
		}
	}
	require.NoError(t, tb.DropSnapshots(t.Context(), ids...))
	for _, m := range old {
		kept := false
		for _, n := range tb.Head("").Manifests {
			kept = kept || n.At == m.At
		}
		if !kept {
			fl.RemoveAll(m.At)
		}
	}
	staged := fl.Files(tb.Root.Join("metadata"))
	out, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}, Plan: late})
	require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
	require.Equal(t, ops.Failed, out[0].Status)
	require.Equal(t, staged, fl.Files(tb.Root.Join("metadata")))
	check(t, tb)
}

// F124: every path that is written is absolute, whatever the table's own are.
func TestF124WrittenPathsAreAbsolute(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	schema, err := model.ParseSchema("id long!, region string, amount double")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{ID: id, Schema: schema, Seed: 1, Clock: fl.Virtual(), Spelling: model.TableRelative})
	require.NoError(t, err)
	for i := range int64(6) {
		r, err := tb.Row(i, "x", 1.0)
		require.NoError(t, err)
		_, err = tb.Append(t.Context(), []model.Row{r}, model.Options{})
		require.NoError(t, err)
	}
	res, err := run(t.Context(), fl, nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	require.Contains(t, v.MetadataLocation, "s3://lake/")
	require.Contains(t, v.Metadata.Current().ManifestList, "s3://lake/")
	require.NoError(t, tb.Refresh(t.Context()))
	for _, m := range tb.Head("").Manifests {
		require.Contains(t, m.Path, "s3://lake/")
	}
}

// F128: what the head's summary did not state is not made up, and totals stay.
func TestF128SummaryTotalsAreCarried(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := table(t, fl, 2, "", 7)
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	before := v.Metadata.Current().Summary()
	res, err := run(t.Context(), fl, nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status)
	v, err = iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	after := v.Metadata.Current().Summary()
	require.Equal(t, "replace", after["operation"])
	for _, k := range []string{"total-data-files", "total-records", "total-delete-files", "total-files-size"} {
		require.Equal(t, before[k], after[k], k)
	}
	require.Equal(t, fmt.Sprint(res.Counters["manifests-replaced"]), after["manifests-replaced"])
	require.NotContains(t, after, "added-records")
	check(t, tb)
}

// Whatever call fails, in whatever way: rows, lineage and history are as before,
// and once the journal is resolved nothing that was staged is left.
func TestP9F123EveryCallOfARewrite(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			if testing.Short() && version == 2 {
				t.Skip("v1 and v3 bracket it")
			}
			var before map[iceberg.SnapshotID]model.Rows
			var tb *model.Table
			start := func(t testing.TB, fl *filertest.Filer) {
				tb = small(t, fl, version)
				before = rowsOf(t, fl, tb)
			}
			tally := filertest.EveryCall(t, filertest.Scenario{
				Long:  true,
				Start: start,
				Run: func(t testing.TB, fl *filertest.Filer) error {
					_, err := run(context.WithoutCancel(t.Context()), fl, nil)
					return err
				},
				Recover: resolve,
				Verify: func(t testing.TB, fl *filertest.Filer, _ filertest.Injection) {
					require.Equal(t, before, rowsOf(t, fl, tb))
					noneLeft(t, fl)
				},
			})
			require.GreaterOrEqual(t, tally.Fired, 12)
			if !testing.Short() {
				require.Greater(t, tally.Fired, 30)
			}
		})
	}
}

// A peer in every gap: an append, an overwrite of a file in a rewritten
// manifest, another rewrite.
func TestF123PeersInEveryGap(t *testing.T) {
	peers := map[string]func(t testing.TB, fl *filertest.Filer){
		"append": func(t testing.TB, fl *filertest.Filer) {
			tb, err := model.Attach(t.Context(), fl, model.Config{ID: id, Clock: fl.Virtual(), Seed: 99})
			require.NoError(t, err)
			r, err := tb.Row(int64(500), "r1", 0.5)
			require.NoError(t, err)
			_, err = tb.Append(t.Context(), []model.Row{r}, model.Options{})
			require.NoError(t, err)
		},
		"overwrite": func(t testing.TB, fl *filertest.Filer) {
			tb, err := model.Attach(t.Context(), fl, model.Config{ID: id, Clock: fl.Virtual(), Seed: 99})
			require.NoError(t, err)
			_, err = tb.RemoveFiles(t.Context(), []*model.File{tb.Head("").DataFiles()[0].File}, model.Options{})
			require.NoError(t, err)
		},
		"rewrite": func(t testing.TB, fl *filertest.Filer) {
			_, err := run(t.Context(), fl, nil)
			require.NoError(t, err)
		},
	}
	for name, peer := range peers {
		t.Run(name, func(t *testing.T) {
			tally := filertest.EveryGap(t, filertest.Scenario{
				Long:    true,
				Options: filertest.Options{Count: filertest.CountWrites},
				Start:   func(t testing.TB, fl *filertest.Filer) { small(t, fl, 2) },
				Run: func(t testing.TB, fl *filertest.Filer) error {
					_, err := run(context.WithoutCancel(t.Context()), fl, nil)
					return err
				},
				Recover: resolve,
				Verify: func(t testing.TB, fl *filertest.Filer, in filertest.Injection) {
					require.NoError(t, in.Err)
					tb, err := model.Attach(t.Context(), fl, model.Config{ID: id, Clock: fl.Virtual()})
					require.NoError(t, err)
					require.NoError(t, model.Check(t.Context(), tb))
					noneLeft(t, fl)
				},
			}, peer)
			require.Positive(t, tally.Fired)
		})
	}
}

func rowsOf(t testing.TB, fl *filertest.Filer, tb *model.Table) map[iceberg.SnapshotID]model.Rows {
	t.Helper()
	out := map[iceberg.SnapshotID]model.Rows{}
	all := tb.Snapshots()
	for _, s := range []*model.Snapshot{{}, all[0], all[len(all)/2]} {
		rows, err := model.ReadRows(t.Context(), fl, id, model.View{Snapshot: s.ID, Lineage: tb.Version() == 3})
		require.NoError(t, err)
		out[s.ID] = rows
	}
	return out
}

// resolve lets leases and the orphan age pass and runs the operation again each
// time, which brings open runs to their end.
func resolve(t testing.TB, fl *filertest.Filer) error {
	for _, wait := range []time.Duration{15 * time.Minute, 80 * time.Hour} {
		fl.Virtual().Advance(wait)
		if _, err := run(context.WithoutCancel(t.Context()), fl, nil); err != nil {
			return err
		}
	}
	return nil
}

// noneLeft looks for metadata files of this program that nothing references.
func noneLeft(t testing.TB, fl *filertest.Filer) {
	t.Helper()
	for st, err := range runner(fl).Journals().List(t.Context()) {
		require.NoError(t, err)
		require.False(t, st.Live(), st.Run())
	}
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	named := map[filer.Path]bool{}
	add := func(s string) {
		p, err := v.Locations.Resolve(s)
		require.NoError(t, err)
		named[p] = true
	}
	add(v.MetadataLocation)
	for _, e := range v.Metadata.MetadataLog {
		add(e.MetadataFile)
	}
	tb, err := model.Attach(t.Context(), fl, model.Config{ID: id, Clock: fl.Virtual()})
	require.NoError(t, err)
	for _, s := range tb.Snapshots() {
		if s.List != "" {
			add(s.List)
		}
		for _, m := range s.Manifests {
			named[m.At] = true
		}
	}
	for _, p := range fl.Files(tb.Root.Join("metadata")) {
		require.True(t, named[p], "%s is referenced by nothing", p)
	}
}

// A plan is data: it survives being stored, and its digest tells decisions apart.
func TestPlanRoundTrip(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	table(t, fl, 2, "region", 7)
	r := runner(fl)
	target, err := r.Load(t.Context(), id, config.Layers{})
	require.NoError(t, err)
	p, err := r.Plan(t.Context(), config.RewriteManifests, target)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	back, err := rewritemanifests.New().Decode(raw)
	require.NoError(t, err)
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(again))
	second, err := r.Plan(t.Context(), config.RewriteManifests, target)
	require.NoError(t, err)
	require.Equal(t, p.Head().Digest, second.Head().Digest)
	target, err = r.Load(t.Context(), id, config.Layers{Flags: map[string]string{"manifest_target_size_mb": "1"}})
	require.NoError(t, err)
	other, err := r.Plan(t.Context(), config.RewriteManifests, target)
	require.NoError(t, err)
	require.NotEqual(t, p.Head().Digest, other.Head().Digest)
	res, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.RewriteManifests}, Plan: back})
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res[0].Status)
	altered := bytes.Replace(raw, []byte(`"target-bytes":`), []byte(`"target-bytes":1`), 1)
	require.NotEqual(t, raw, altered)
	_, err = rewritemanifests.New().Decode(altered)
	require.ErrorContains(t, err, "digest")
	_, err = rewritemanifests.New().Decode([]byte(`{"format":99,"operation":"rewrite_manifests"}`))
	require.Equal(t, fault.Unsupported, fault.Of(err))
	_, err = rewritemanifests.New().Decode([]byte(`{"format":1,"operation":"compact"}`))
	require.Equal(t, fault.Unsupported, fault.Of(err))
}
