package expire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// disturbed is a table whose expiry is disturbed: data replaced and deleted,
// statistics, a tag that expires, metadata that falls out of the log.
type disturbed struct {
	tb     *model.Scene
	tag    iceberg.SnapshotID // expires, unless somebody tags it
	old    []*model.File
	before filertest.Listing
	files  []filer.Path
}

var disturbing = map[string]string{"max_snapshots_to_keep": "1", "clean_expired_metadata": "true"}

func (d *disturbed) start(t testing.TB, fl *filertest.Filer) {
	tb := newTable(t, fl, model.Config{Version: 2, Properties: map[string]string{
		"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "6",
	}})
	d.tb = tb
	a, b := tb.File(tb.R(int64(1), "a"), tb.R(int64(2), "a")), tb.File(tb.R(int64(3), "b"))
	d.tag = tb.Head("").ID
	_, err := tb.SetStatistics(t.Context(), d.tag)
	require.NoError(t, err)
	tb.Do(tb.CreateTag(t.Context(), "short", d.tag, model.Retention{MaxRefAgeMs: day.Milliseconds()}))
	tb.DeleteAt(a, 0)
	tb.Rewrite(a)
	tb.Overwrite(tb.By("id", int64(3)), tb.R(int64(4), "a"))
	d.old = []*model.File{a, b}
	pass(fl, 30)
	fl.Mkdir("/etc", nil) // as on every filer
	d.before, d.files = fl.Dump(), fl.Files(tb.Root)
}

// later ends what a run left open: the lease runs out, somebody resolves the
// journal and expires again, and once staged files are old enough they go.
func later(t testing.TB, fl *filertest.Filer) error {
	for _, wait := range []time.Duration{15 * time.Minute, 80 * time.Hour} {
		fl.Virtual().Advance(wait)
		if _, err := run(t.Context(), fl, disturbing); err != nil {
			return err
		}
	}
	return nil
}

// verify: every retained snapshot and ref reads as it should, no file it needs
// is missing, nothing staged is left, nothing elsewhere changed (O10).
func (d *disturbed) verify(t testing.TB, fl *filertest.Filer) *model.Table {
	tb := d.tb.Fork(fl)
	retained(t, fl, tb)
	needed := tb.Live()
	for _, p := range fl.Files(tb.Root) {
		require.True(t, needed[p] || slices.Contains(d.files, p), "%s was staged and left", p)
	}
	require.Empty(t, d.before.Changes(fl.Dump(), tb.Record(), tb.Root, "/etc/seaice", "/buckets/lake/.seaice-trash"), "O10")
	for _, p := range fl.Files("/buckets/lake/.seaice-trash") {
		for n := range needed {
			require.False(t, strings.HasSuffix(p.String(), n.Rel("/buckets/lake")), "%s is needed and in the trash", n)
		}
	}
	return tb
}

func TestExpiryFailingAtEveryCall(t *testing.T) {
	var d disturbed
	tally := filertest.EveryCall(t, filertest.Scenario{
		Long:    true,
		Options: filertest.Options{Count: filertest.CountWrites, Seed: 1},
		Start:   d.start,
		Run: func(t testing.TB, fl *filertest.Filer) error {
			_, err := run(t.Context(), fl, disturbing)
			return err
		},
		Recover: later,
		Verify: func(t testing.TB, fl *filertest.Filer, in filertest.Injection) {
			tb := d.verify(t, fl)
			require.Len(t, tb.Snapshots(), 1, "%s", in)
			require.Len(t, tb.Refs(), 1)
			if in.Call.Op == "" {
				gone(t, fl, paths(d.old...)...)
			}
		},
	})
	require.Positive(t, tally.Fired)
	require.Equal(t, tally.Runs, tally.Fired)
}

func TestExpiryWithReadsFailing(t *testing.T) {
	var d disturbed
	tally := filertest.EveryCall(t, filertest.Scenario{
		Long:  true,
		Start: d.start,
		Run: func(t testing.TB, fl *filertest.Filer) error {
			_, err := run(t.Context(), fl, disturbing)
			return err
		},
		Recover: later,
		Reads:   true,
		Pick:    func(c filertest.Call) bool { return !c.Op.Writes() },
		Verify:  func(t testing.TB, fl *filertest.Filer, _ filertest.Injection) { d.verify(t, fl) },
	})
	require.Positive(t, tally.Fired)
}

// TestExpiryWithAPeerInEveryGap lets others append, tag what expires, or expire
// as well, before every call, reads included.
func TestExpiryWithAPeerInEveryGap(t *testing.T) {
	for name, x := range map[string]struct {
		peer  func(t testing.TB, d *disturbed, fl *filertest.Filer)
		after func(t testing.TB, d *disturbed, fl *filertest.Filer, tb *model.Table)
	}{
		"append": {
			func(t testing.TB, d *disturbed, fl *filertest.Filer) {
				tb := d.tb.Fork(fl)
				row, err := tb.Row(int64(100), "z")
				require.NoError(t, err)
				_, err = tb.Append(t.Context(), []model.Row{row}, model.Options{})
				require.NoError(t, err)
			},
			func(t testing.TB, d *disturbed, _ *filertest.Filer, tb *model.Table) {
				require.Len(t, tb.Where("", func(r model.Row) bool { return r[1] == int64(100) }), 1)
			},
		},
		"tag": {
			func(t testing.TB, d *disturbed, fl *filertest.Filer) {
				tb := d.tb.Fork(fl)
				require.NoError(t, tb.Refresh(t.Context()))
				if tb.Snapshot(d.tag) != nil {
					require.NoError(t, tb.CreateTag(t.Context(), "late", d.tag, model.Retention{}))
				}
			},
			func(t testing.TB, d *disturbed, fl *filertest.Filer, tb *model.Table) {
				if tb.Head("late") == nil {
					gone(t, fl, paths(d.old...)...)
					return
				}
				there(t, fl, paths(d.old...)...)
			},
		},
		"expire": {
			func(t testing.TB, _ *disturbed, fl *filertest.Filer) {
				res, err := run(t.Context(), fl, map[string]string{"max_snapshots_to_keep": "3"})
				require.NoError(t, err)
				require.NotEqual(t, ops.Failed, res.Status)
			},
			func(t testing.TB, _ *disturbed, _ *filertest.Filer, tb *model.Table) {
				require.Len(t, tb.Snapshots(), 1)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d disturbed
			tally := filertest.EveryGap(t, filertest.Scenario{
				Long:  true,
				Start: d.start,
				Run: func(t testing.TB, fl *filertest.Filer) error {
					_, err := run(t.Context(), fl, disturbing)
					return err
				},
				Recover: later,
				Verify: func(t testing.TB, fl *filertest.Filer, in filertest.Injection) {
					if tb := d.verify(t, fl); in.Fired {
						x.after(t, &d, fl, tb)
					}
				},
			}, func(t testing.TB, fl *filertest.Filer) { x.peer(t, &d, fl) })
			require.Positive(t, tally.Fired)
		})
	}
}

// meanwhile runs fn once, right before the n-th look at the record after the
// swap. It reports whether it ran.
func meanwhile(fl *filertest.Filer, record filer.Path, n int, fn func(peer *filertest.Filer)) *bool {
	swapped, looks, ran := false, 0, false
	fl.OnCall(func(c filertest.Call) *filertest.Fault {
		switch {
		case c.Path != record:
		case c.Op == filertest.OpUpdate:
			swapped = true
		case c.Op == filertest.OpStat && swapped:
			if looks++; looks == n {
				ran = true
				fn(fl.Reopen())
			}
		}
		return nil
	})
	return &ran
}

// TestHeadIsReadBeforeEveryBatch: what happens to the table between the commit
// and a batch of removals counts, however late.
func TestHeadIsReadBeforeEveryBatch(t *testing.T) {
	start := filertest.New(filertest.Options{})
	tb := newTable(t, start, model.Config{})
	old := tb.File(tb.R(int64(1), "a"))
	tb.Overwrite(tb.By("id", int64(1)), tb.R(int64(2), "a"))
	pass(start, 30)
	list := pathOf(tb.Snapshots()[0].List)
	for name, x := range map[string]struct {
		change func(t *testing.T, fl *filertest.Filer, tb *model.Table)
		data   func(n int) bool // whether the file is kept, if n looks came before
	}{
		"nothing":         {func(*testing.T, *filertest.Filer, *model.Table) {}, func(int) bool { return false }},
		"file comes back": {func(t *testing.T, fl *filertest.Filer, tb *model.Table) { comesBack(t, fl, tb, old.At) }, func(n int) bool { return n <= 2 }},
		"gc is disabled": {func(t *testing.T, _ *filertest.Filer, tb *model.Table) {
			require.NoError(t, tb.SetProperties(t.Context(), map[string]string{"gc.enabled": "False"}))
		}, func(n int) bool { return n <= 2 }},
		"another table": {func(t *testing.T, _ *filertest.Filer, tb *model.Table) {
			require.NoError(t, tb.Edit(t.Context(), func(doc map[string]any) { doc["table-uuid"] = "9d2a3e6b-0d2f-4a64-9a4e-7d7a1f0f3b11" }))
		}, func(n int) bool { return n <= 2 }},
		"retained list is lost": {func(t *testing.T, fl *filertest.Filer, tb *model.Table) {
			row, err := tb.Row(int64(7), "x")
			require.NoError(t, err)
			s, err := tb.Append(t.Context(), []model.Row{row}, model.Options{})
			require.NoError(t, err)
			fl.RemoveAll(pathOf(tb.Snapshot(s).List))
		}, func(n int) bool { return n <= 2 }},
	} {
		// The looks are: after the commit, before the data, before the metadata.
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				fl := start.Fork()
				ran := meanwhile(fl, tb.Record(), n, func(peer *filertest.Filer) {
					there(t, fl, list)
					x.change(t, peer, tb.Fork(peer))
				})
				res := finished(t, fl, fewest)
				require.True(t, *ran)
				require.Equal(t, x.data(n), fl.Exists(old.At))
				require.Equal(t, name != "nothing" && name != "file comes back", fl.Exists(list), "%v", res.Warnings)
			})
		}
	}
}

// comesBack commits a snapshot that has a file live that nothing references.
func comesBack(t *testing.T, fl *filertest.Filer, tb *model.Table, file filer.Path) {
	t.Helper()
	if !fl.Exists(file) {
		return
	}
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	m := manifestOf(t, fl, v.Metadata, tb.Root.Join("metadata", "back-m.avro"), 77, []string{"s3://" + file.Rel(filer.BucketsRoot)}, nil)
	at := tb.Root.Join("metadata", "back.avro")
	fl.PutFile(at, encodeList(t, v.Metadata.FormatVersion, []*manifests.ManifestFile{m}))
	require.NoError(t, tb.Edit(t.Context(), func(doc map[string]any) {
		seq := int64(v.Metadata.LastSequenceNumber) + 1
		doc["snapshots"] = append(doc["snapshots"].([]any), map[string]any{
			"snapshot-id": int64(77), "parent-snapshot-id": int64(v.Metadata.Current().ID), "sequence-number": seq, "schema-id": int64(0),
			"timestamp-ms": fl.Virtual().Now().UnixMilli(), "manifest-list": "s3://" + at.Rel(filer.BucketsRoot), "summary": map[string]any{"operation": "append"},
		})
		doc["last-sequence-number"], doc["current-snapshot-id"] = seq, int64(77)
		doc["refs"] = map[string]any{"main": map[string]any{"type": "branch", "snapshot-id": int64(77)}}
	}))
}

// TestFilesOfWhatOthersExpiredAreTheirs: a snapshot of the plan is expired by a
// peer that keeps its files.
func TestFilesOfWhatOthersExpiredAreTheirs(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	theirs := tb.File(tb.R(int64(1), "a"))
	s := tb.Head("").ID
	tb.Overwrite(tb.By("id", int64(1)))
	ours := tb.File(tb.R(int64(2), "a"))
	tb.Overwrite(tb.By("id", int64(2)))
	pass(fl, 30)
	q := request(fewest)
	q.Planned = func(ops.Plan) error { return tb.Fork(fl.Reopen()).DropSnapshots(t.Context(), s) }
	res, err := first(runner(fl).Run(t.Context(), q))
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, res.Message)
	require.Equal(t, int64(1), reason(t, res.Reasons, "needed-meanwhile").Count)
	there(t, fl, theirs.At)
	gone(t, fl, ours.At)
	require.Len(t, retained(t, fl, tb.Table), 1)
}
