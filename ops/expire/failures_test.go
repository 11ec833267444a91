package expire_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

// fewest keeps one snapshot a branch.
var fewest = map[string]string{"max_snapshots_to_keep": "1"}

func TestF091RefsProtectTheirHistory(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	s := appends(tb, 0, 5)
	tb.Do(tb.CreateTag(t.Context(), "v1", s[0], model.Retention{}))
	tb.Do(tb.CreateBranch(t.Context(), "dev", s[3], model.Retention{MinSnapshotsToKeep: 2}))
	tb.Do(tb.CreateBranch(t.Context(), "young", s[1], model.Retention{MaxSnapshotAgeMs: (40 * day).Milliseconds()}))
	appends(tb, 5, 4)
	pass(fl, 30)
	finished(t, fl, fewest)
	left := retained(t, fl, tb.Table)
	require.Equal(t, []iceberg.SnapshotID{s[0], s[1], s[2], s[3], tb.Head("").ID}, left)
	nothing(t, fl, fewest)
}

// TestF091TagMadeMeanwhile: the tag is made after planning, and again right
// before the swap.
func TestF091TagMadeMeanwhile(t *testing.T) {
	for _, clean := range []string{"false", "true"} {
		for _, maxRefAge := range []string{"", "1000"} {
			t.Run(fmt.Sprintf("clean=%s age=%s", clean, maxRefAge), func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				cfg := model.Config{Properties: map[string]string{}}
				if maxRefAge != "" {
					// A tag that is not in the plan does not expire with it.
					cfg.Properties["history.expire.max-ref-age-ms"] = maxRefAge
				}
				tb := newTable(t, fl, cfg)
				old := tb.File(tb.R(int64(1), "a"))
				s := tb.Head("").ID
				other := tb.File(tb.R(int64(2), "a"))
				tb.Overwrite(tb.By("id", int64(1)))
				tb.Overwrite(tb.By("id", int64(2)), tb.R(int64(3), "b"))
				pass(fl, 30)
				q := request(map[string]string{"max_snapshots_to_keep": "1", "clean_expired_metadata": clean})
				q.Planned = func(ops.Plan) error {
					return tb.CreateTag(t.Context(), "late", s, model.Retention{})
				}
				res, err := first(runner(fl).Run(t.Context(), q))
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, res.Message)
				require.Equal(t, int64(1), reason(t, res.Reasons, "needed-meanwhile").Count)
				require.ElementsMatch(t, []iceberg.SnapshotID{s, tb.Head("").ID}, retained(t, fl, tb.Table))
				there(t, fl, paths(old)...)
				gone(t, fl, paths(other)...)
			})
		}
	}
}

// TestF091NothingIsLeftToExpire: every planned snapshot is referenced by now.
func TestF091NothingIsLeftToExpire(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	s := appends(tb, 0, 2)
	pass(fl, 30)
	q := request(fewest)
	q.Planned = func(ops.Plan) error { return tb.CreateTag(t.Context(), "late", s[0], model.Retention{}) }
	res, err := first(runner(fl).Run(t.Context(), q))
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, res.Status)
	require.Equal(t, s, retained(t, fl, tb.Table))
}

func TestF092PickedFilesOutliveTheirSource(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	appends(tb, 0, 1)
	staged := tb.AppendWith(model.Options{Staged: "wap-1"}, tb.R(int64(10), "a"))
	never := tb.AppendWith(model.Options{Staged: "wap-2"}, tb.R(int64(11), "a"))
	lost := files(tb.Snapshot(never), never)
	_, err := tb.CherryPick(t.Context(), staged, model.Options{})
	require.NoError(t, err)
	picked := files(tb.Snapshot(staged), staged)
	pass(fl, 6)
	young := tb.AppendWith(model.Options{Staged: "wap-3"}, tb.R(int64(12), "a"))
	pass(fl, 2)
	finished(t, fl, fewest)
	left := retained(t, fl, tb.Table)
	require.NotContains(t, left, staged)
	require.NotContains(t, left, never)
	require.Contains(t, left, young, "staged snapshots go by age")
	there(t, fl, picked...)
	gone(t, fl, lost...)
}

// files are the data files that snapshot id added, as s has them.
func files(s *model.Snapshot, id iceberg.SnapshotID) []filer.Path {
	var out []filer.Path
	for _, e := range s.DataFiles() {
		if e.Snapshot == id {
			out = append(out, e.File.At)
		}
	}
	return out
}

// readded is a table in which one file is live in first, removed after it, and
// live again at the same path in second.
func readded(t *testing.T, fl *filertest.Filer) (tb *model.Scene, file *model.File, first, second iceberg.SnapshotID) {
	t.Helper()
	tb = newTable(t, fl, model.Config{})
	appends(tb, 0, 1)
	staged := tb.AppendWith(model.Options{Staged: "wap"}, tb.R(int64(10), "a"))
	for _, e := range tb.Snapshot(staged).DataFiles() {
		if e.Snapshot == staged {
			file = e.File
		}
	}
	first, err := tb.CherryPick(t.Context(), staged, model.Options{})
	require.NoError(t, err)
	_, err = tb.RemoveFiles(t.Context(), []*model.File{file}, model.Options{})
	require.NoError(t, err)
	second, err = tb.CherryPick(t.Context(), staged, model.Options{})
	require.NoError(t, err)
	return tb, file, first, second
}

func TestF094FileAddedAgainAtItsPathStays(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, file, _, _ := readded(t, fl)
	appends(tb, 20, 1)
	pass(fl, 30)
	finished(t, fl, fewest)
	there(t, fl, file.At)
	// The model takes rows for gone that were removed once, so only the files
	// are compared.
	require.NoError(t, tb.Refresh(t.Context()))
	require.Len(t, tb.Snapshots(), 1)
	whole(t, fl, tb.Table)
}

// TestF094OldManifestProtectsALaterCandidate: a tag holds the first life of the
// file. Its manifest is older than the second life, which expires.
func TestF094OldManifestProtectsALaterCandidate(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, file, firstLife, secondLife := readded(t, fl)
	_, err := tb.RemoveFiles(t.Context(), []*model.File{file}, model.Options{})
	require.NoError(t, err)
	tb.Do(tb.CreateTag(t.Context(), "first", firstLife, model.Retention{}))
	pass(fl, 30)
	p := plan(t, runner(fl), fewest)
	require.Contains(t, p.Snapshots(), secondLife)
	finished(t, fl, fewest)
	there(t, fl, file.At)
	require.NoError(t, tb.Refresh(t.Context()))
	whole(t, fl, tb.Table)
}

// TestF094FileAddedAgainMeanwhile: the path comes back after planning, once with
// the same file and once, while the files are looked at, with another one.
func TestF094FileAddedAgainMeanwhile(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, file, _, _ := readded(t, fl)
	staged := tb.Snapshots()[1].ID
	_, err := tb.RemoveFiles(t.Context(), []*model.File{file}, model.Options{})
	require.NoError(t, err)
	pass(fl, 30)

	alone := fl.Fork()
	finished(t, alone, fewest)
	gone(t, alone, file.At)

	t.Run("same", func(t *testing.T) {
		fl := fl.Fork()
		q := request(fewest)
		q.Planned = func(ops.Plan) error {
			_, err := tb.Fork(fl.Reopen()).CherryPick(t.Context(), staged, model.Options{})
			return err
		}
		res, err := first(runner(fl).Run(t.Context(), q))
		require.NoError(t, err)
		require.Equal(t, ops.Finished, res.Status, res.Message)
		there(t, fl, file.At)
	})
	t.Run("other", func(t *testing.T) {
		fl := fl.Fork()
		content, done := fl.Content(file.At), false
		fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if !done && c.Op == filertest.OpStat && c.Path == file.At {
				done = true
				fl.Reopen().PutFile(file.At, content)
			}
			return nil
		})
		res := finished(t, fl, fewest)
		require.True(t, done)
		there(t, fl, file.At)
		require.NotEmpty(t, res.Warnings)
	})
}

func TestF095RefsExpireByTheirOwnAgeOnly(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	ctx := t.Context()
	s := appends(tb, 0, 2)
	tb.Do(tb.CreateTag(ctx, "forever", s[0], model.Retention{}))
	tb.Do(tb.CreateTag(ctx, "short", s[1], model.Retention{MaxRefAgeMs: day.Milliseconds()}))
	tb.Do(tb.CreateBranch(ctx, "dead", s[1], model.Retention{MaxRefAgeMs: (10 * day).Milliseconds(), MinSnapshotsToKeep: 100}))
	onDead := tb.AppendWith(model.Options{Branch: "dead"}, tb.R(int64(50), "a"))
	pass(fl, 27)
	tb.Do(tb.CreateBranch(ctx, "alive", s[1], model.Retention{MaxRefAgeMs: (10 * day).Milliseconds()}))
	onAlive := tb.AppendWith(model.Options{Branch: "alive"}, tb.R(int64(51), "a"))
	kept := appends(tb, 2, 1)[0]
	back := appends(tb, 3, 1)[0]
	tb.Do(tb.Rollback(ctx, "", kept))
	pass(fl, 3)
	p := plan(t, runner(fl), fewest)
	require.Equal(t, []string{"dead", "short"}, p.Refs())
	reason(t, p.Head().Reasons, "unreferenced-too-young")
	finished(t, fl, fewest)
	require.ElementsMatch(t, []iceberg.SnapshotID{s[0], onAlive, kept, back}, retained(t, fl, tb.Table), "not %d", onDead)
	var names []string
	for _, r := range tb.Refs() {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"alive", "forever", "main"}, names)
}

// TestF095MainNeverExpires, though the table's limit for refs has passed; other
// refs go. What was on them stays while it is younger than a snapshot may get.
func TestF095MainNeverExpires(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{Properties: map[string]string{"history.expire.max-ref-age-ms": fmt.Sprint(day.Milliseconds())}})
	s := appends(tb, 0, 1)
	tb.Do(tb.CreateBranch(t.Context(), "dev", s[0], model.Retention{}))
	dev := tb.AppendWith(model.Options{Branch: "dev"}, tb.R(int64(50), "a"))
	pass(fl, 3)
	res := finished(t, fl, fewest)
	require.Equal(t, int64(1), res.Counters["refs-expired"])
	require.Zero(t, res.Counters["snapshots-expired"])
	require.Equal(t, []iceberg.SnapshotID{s[0], dev}, retained(t, fl, tb.Table))
	require.Len(t, tb.Refs(), 1)
	pass(fl, 30)
	finished(t, fl, fewest)
	require.Equal(t, s, retained(t, fl, tb.Table))
}

func TestF097StatisticsGoWithTheirSnapshotUnlessShared(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	ctx := t.Context()
	s := appends(tb, 0, 4)
	own, err := tb.SetStatistics(ctx, s[0])
	require.NoError(t, err)
	shared, err := tb.SetStatistics(ctx, s[1])
	require.NoError(t, err)
	live, err := tb.SetStatistics(ctx, s[3])
	require.NoError(t, err)
	partition, err := tb.SetStatistics(ctx, s[2])
	require.NoError(t, err)
	tb.Do(tb.Edit(ctx, func(m map[string]any) {
		stats := m["statistics"].([]any)
		at := slices.IndexFunc(stats, func(e any) bool { return fmt.Sprint(e.(map[string]any)["snapshot-id"]) == fmt.Sprint(s[2]) })
		moved := stats[at].(map[string]any)
		m["statistics"] = slices.Delete(stats, at, at+1)
		delete(moved, "blob-metadata")
		delete(moved, "file-footer-size-in-bytes")
		// The shared file is spelled otherwise in the entry that stays (F104).
		m["partition-statistics"] = []any{moved, map[string]any{
			"snapshot-id": int64(s[3]), "statistics-path": "s3a://" + shared.Rel(filer.BucketsRoot), "file-size-in-bytes": int64(1),
		}}
	}))
	pass(fl, 30)
	res := finished(t, fl, fewest)
	require.Empty(t, res.Warnings)
	require.Equal(t, res.Predicted, *res.Actual, "O9")
	gone(t, fl, own, partition)
	there(t, fl, shared, live)
	v, err := iceberg.Load(ctx, fl, id)
	require.NoError(t, err)
	require.Len(t, v.Metadata.Statistics, 1)
	require.Len(t, v.Metadata.PartitionStatistics, 1)
	retained(t, fl, tb.Table)
}

func TestF099EncryptedTablesAreLeftAlone(t *testing.T) {
	for name, encrypt := range map[string]func(tb *model.Scene, s []iceberg.SnapshotID){
		"keys": func(tb *model.Scene, _ []iceberg.SnapshotID) {
			tb.Do(tb.Edit(t.Context(), func(m map[string]any) {
				m["encryption-keys"] = []any{map[string]any{"key-id": "k", "encrypted-key-metadata": "eA=="}}
			}))
		},
		"property": func(tb *model.Scene, _ []iceberg.SnapshotID) { tb.Set("encryption.key-id", "k") },
		"snapshot": func(tb *model.Scene, s []iceberg.SnapshotID) {
			tb.Do(tb.Edit(t.Context(), func(m map[string]any) {
				m["snapshots"].([]any)[0].(map[string]any)["key-id"] = "k"
			}))
		},
		"file of an expiring snapshot": func(tb *model.Scene, _ []iceberg.SnapshotID) {
			tb.AppendWith(model.Options{Layout: model.Layout{KeyMetadata: []byte("k")}}, tb.R(int64(90), "a"))
			tb.Overwrite(tb.By("id", int64(90)))
		},
		"file of a retained snapshot": func(tb *model.Scene, _ []iceberg.SnapshotID) {
			tb.Overwrite(tb.By("id", int64(0)))
			tb.AppendWith(model.Options{Layout: model.Layout{KeyMetadata: []byte("k")}}, tb.R(int64(90), "a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := newTable(t, fl, model.Config{Version: 3})
			encrypt(tb, appends(tb, 0, 3))
			pass(fl, 30)
			before := fl.Dump()
			_, err := run(t.Context(), fl, fewest)
			require.ErrorContains(t, err, "encrypt")
			require.Equal(t, fault.Unsupported, fault.Of(err))
			require.Empty(t, before.Changes(fl.Dump()))
		})
	}
}

func TestF100OrderIsAncestryAndAgeIsTime(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	s := appends(tb, 0, 4)
	pass(fl, 8)
	now := fl.Virtual().Now()
	at := []time.Time{now.Add(-7*day - time.Hour), now.Add(-7*day - 2*time.Hour), now.Add(time.Hour), now.Add(-7*day - 3*time.Hour)}
	tb.Do(tb.Edit(t.Context(), func(m map[string]any) {
		for i, e := range m["snapshots"].([]any) {
			e.(map[string]any)["timestamp-ms"] = at[i].UnixMilli()
		}
	}))
	p := plan(t, runner(fl), map[string]string{"max_snapshots_to_keep": "2"})
	require.Equal(t, []iceberg.SnapshotID{s[0], s[1]}, p.Snapshots(), "the head and its parent stay, whatever their times")
	reason(t, p.Head().Reasons, "from-the-future")
	p = plan(t, runner(fl), fewest)
	require.Equal(t, []iceberg.SnapshotID{s[0], s[1]}, p.Snapshots(), "one from the future never expires")

	// Off every branch, it does not either.
	tb.Do(tb.Rollback(t.Context(), "", s[1]))
	p = plan(t, runner(fl), fewest)
	require.Equal(t, []iceberg.SnapshotID{s[0], s[3]}, p.Snapshots())
}

func TestF100NothingExpiresByAWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		fl := filertest.New(filertest.Options{Skew: skew})
		tb := newTable(t, fl, model.Config{})
		appends(tb, 0, 8)
		pass(fl, 30)
		before := fl.Dump()
		_, err := run(t.Context(), fl, nil)
		require.ErrorContains(t, err, "clock")
		require.Empty(t, before.Changes(fl.Dump()))
	}
}

func TestF103SnapshotLogIsCutAtTheLastGap(t *testing.T) {
	for name, log := range map[string]func(entries []any) []any{
		"complete": func(all []any) []any { return all },
		"empty":    func([]any) []any { return []any{} },
		"gap":      func(all []any) []any { return append(all[:1:1], all[3:]...) },
		"unknown id": func(all []any) []any {
			return append([]any{map[string]any{"snapshot-id": int64(42), "timestamp-ms": int64(1)}}, all...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := newTable(t, fl, model.Config{})
			s := appends(tb, 0, 6)
			tb.Do(tb.CreateTag(t.Context(), "old", s[1], model.Retention{}))
			tb.Do(tb.Edit(t.Context(), func(m map[string]any) { m["snapshot-log"] = log(m["snapshot-log"].([]any)) }))
			pass(fl, 30)
			finished(t, fl, map[string]string{"max_snapshots_to_keep": "2"})
			require.Equal(t, []iceberg.SnapshotID{s[1], s[4], s[5]}, retained(t, fl, tb.Table))
			v, err := iceberg.Load(t.Context(), fl, id)
			require.NoError(t, err)
			var left []iceberg.SnapshotID
			for _, e := range v.Metadata.SnapshotLog {
				left = append(left, e.SnapshotID)
			}
			if name == "empty" {
				require.Empty(t, left)
				return
			}
			require.Equal(t, s[4:], left, "what comes after the last removed one")
		})
	}
}
