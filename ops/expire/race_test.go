package expire_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
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
