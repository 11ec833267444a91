package compact

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

// disturbed is a table whose compaction is disturbed: two units, with deletes of
// each kind.
type disturbed struct {
	tb     *model.Scene
	eu, us []*model.File
	before filertest.Listing
	files  []string
}

func (d *disturbed) start(version int) func(t testing.TB, fl *filertest.Filer) {
	return func(t testing.TB, fl *filertest.Filer) {
		fl.Mkdir("/etc", nil) // as on every filer
		d.tb = scene(t, fl, model.Config{Version: version, Spec: "region"})
		d.eu, d.us = together(t, d.tb)
		if version > 1 {
			d.tb.DeleteAt(d.eu[0], 0, 2)
			d.tb.EqualityDelete([]string{"id", "region"}, d.tb.R(int64(101), "us"))
		}
		d.before = fl.Dump()
		d.files = nil
		for _, p := range fl.Files(d.tb.Root) {
			d.files = append(d.files, p.String())
		}
	}
}

// together appends three files in each of two regions in one commit: every
// snapshot is checked after every run.
func together(t testing.TB, tb *model.Scene) (eu, us []*model.File) {
	t.Helper()
	var files [][]model.Row
	for i := range 6 {
		region := []string{"eu", "us"}[i/3]
		var rows []model.Row
		for k := range 4 {
			rows = append(rows, tb.R(int64(100*(i/3)+4*(i%3)+k+1-i/3), region))
		}
		files = append(files, rows)
	}
	all := appended(t, tb, files)
	return all[:3], all[3:]
}

// appended are data files of these rows, added by one commit. Ids are in the column of
// field 1.
func appended(t testing.TB, tb *model.Scene, files [][]model.Row) []*model.File {
	t.Helper()
	_, err := tb.AppendFiles(t.Context(), files, model.Options{})
	require.NoError(t, err)
	byID := map[any]*model.File{}
	for _, e := range tb.Head("").DataFiles() {
		byID[tb.Values(e.File.Rows[0])[1]] = e.File
	}
	var out []*model.File
	for _, rows := range files {
		require.Contains(t, byID, rows[0][1])
		out = append(out, byID[rows[0][1]])
	}
	return out
}

func compactOnce(t testing.TB, fl *filertest.Filer) error {
	_, err := runTools(t.Context(), fl, fakeTools(), nil)
	return err
}

// later ends what a run left open: the lease runs out, somebody compacts again,
// and once staged files are old enough they go.
func later(t testing.TB, fl *filertest.Filer) error {
	for _, wait := range []time.Duration{15 * time.Minute, 80 * time.Hour, 80 * time.Hour} {
		fl.Virtual().Advance(wait)
		if err := compactOnce(t, fl); err != nil {
			return err
		}
	}
	return nil
}

// verify: every retained snapshot reads as it should, no file it needs is
// missing, nothing staged is left, nothing elsewhere changed (O10).
func (d *disturbed) verify(t testing.TB, fl *filertest.Filer) *model.Table {
	t.Helper()
	tb := d.tb.Fork(fl)
	sound(t, fl, tb)
	needed := tb.Live()
	for _, p := range fl.Files(tb.Root) {
		require.True(t, needed[p] || slices.Contains(d.files, p.String()), "%s was staged and left", p)
	}
	require.Empty(t, d.before.Changes(fl.Dump(), tb.Record(), tb.Root, "/etc/seaice", "/buckets/lake/.seaice-trash"), "O10")
	return tb
}

func TestCompactionFailingAtEveryCall(t *testing.T) {
	t.Parallel()
	versions(t, 1, func(t *testing.T, version int) {
		var d disturbed
		modes := filertest.AllModes()
		if version != 2 {
			modes = []filertest.Mode{filertest.AfterEffect, filertest.CrashBefore}
		}
		tally := filertest.EveryCall(t, filertest.Scenario{
			Long:    true,
			Options: filertest.Options{Count: filertest.CountWrites, Seed: 1},
			Start:   d.start(version), Run: compactOnce, Recover: later, Modes: modes,
			Verify: func(t testing.TB, fl *filertest.Filer, in filertest.Injection) {
				tb := d.verify(t, fl)
				require.Len(t, dataFiles(tb), 2, "%s", in)
				require.Empty(t, deleteFiles(tb), "%s", in)
			},
		})
		require.Positive(t, tally.Fired)
	})
}

func TestCompactionWithReadsFailing(t *testing.T) {
	t.Parallel()
	var d disturbed
	tally := filertest.EveryCall(t, filertest.Scenario{
		Long:  true,
		Start: d.start(2), Run: compactOnce, Recover: later, Reads: true,
		Pick:   func(c filertest.Call) bool { return !c.Op.Writes() },
		Verify: func(t testing.TB, fl *filertest.Filer, _ filertest.Injection) { d.verify(t, fl) },
	})
	require.Positive(t, tally.Fired)
}

// TestCompactionWithAPeerInEveryGap lets others commit before every call.
func TestCompactionWithAPeerInEveryGap(t *testing.T) {
	t.Parallel()
	for name, peer := range map[string]func(t testing.TB, d *disturbed, tb *model.Table){
		"append": func(t testing.TB, d *disturbed, tb *model.Table) {
			row, err := tb.Row(int64(900), "eu")
			require.NoError(t, err)
			_, err = tb.Append(t.Context(), []model.Row{row}, model.Options{})
			require.NoError(t, err)
		},
		"delete": func(t testing.TB, d *disturbed, tb *model.Table) {
			rows := slices.Concat(d.eu[0].RowsAt(1), d.eu[1].RowsAt(0, 3), d.us[2].RowsAt(2))
			var err error
			if tb.Version() >= 3 {
				_, err = tb.VectorDelete(t.Context(), rows, model.Options{})
			} else {
				_, err = tb.PositionDelete(t.Context(), rows, model.PerFile, model.Options{})
			}
			require.NoError(t, err)
		},
		"delete by key": func(t testing.TB, d *disturbed, tb *model.Table) {
			row, err := tb.Row(int64(6), "eu")
			require.NoError(t, err)
			_, err = tb.EqualityDelete(t.Context(), []model.Row{row}, columnsNamed(tb, "id", "region"), model.Options{})
			require.NoError(t, err)
		},
		"overwrite": func(t testing.TB, d *disturbed, tb *model.Table) {
			_, err := tb.Overwrite(t.Context(), d.us[0].RowsAt(2), nil, model.Options{})
			require.NoError(t, err)
		},
		"compact": func(t testing.TB, d *disturbed, tb *model.Table) {
			live := map[string]bool{}
			for _, e := range tb.Head("").DataFiles() {
				live[e.File.Path] = true
			}
			if live[d.eu[0].Path] && live[d.eu[1].Path] {
				_, err := tb.Rewrite(t.Context(), d.eu[:2], model.Options{})
				require.NoError(t, err)
			}
		},
	} {
		for version := 2; version <= 3; version++ {
			if version == 3 && name != "delete" {
				continue // nothing of the others depends on the version
			}
			t.Run(name, func(t *testing.T) {
				var d disturbed
				tally := filertest.EveryGap(t, filertest.Scenario{
					Long:    true,
					Options: filertest.Options{Count: filertest.CountWrites},
					Start:   d.start(version), Run: compactOnce, Recover: later,
					Verify: func(t testing.TB, fl *filertest.Filer, _ filertest.Injection) { d.verify(t, fl) },
				}, func(t testing.TB, fl *filertest.Filer) {
					tb := d.tb.Fork(fl)
					require.NoError(t, tb.Refresh(t.Context()))
					if stillThere(tb, &d) {
						peer(t, &d, tb)
					}
				})
				require.Positive(t, tally.Fired)
			})
		}
	}
}
