package weed_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/cluster"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

// unreferenced is a table whose record is never touched and that names nothing.
type unreferenced struct{}

func (unreferenced) Bump(context.Context, *journal.State) error { return nil }

func (unreferenced) References(context.Context, *journal.State) (journal.References, error) {
	return journal.References{Verdict: journal.NotCommitted, Referenced: func(filer.Path) bool { return false }}, nil
}

func (unreferenced) Referenced(context.Context, filer.Path) (bool, error) { return false, nil }

// TestTrashAndJournalRealWeed: what the packages promise on the filer in memory
// holds on the real one, in particular that a file with two entries never loses
// its data.
func TestTrashAndJournalRealWeed(t *testing.T) {
	const uuid = "0f4c8a52-6c0e-4c6f-9d2e-3f1d3c0b7a11"
	c := startCluster(t, cluster.Options{Bucket: "lake"})
	fl := dial(t, c, filer.Config{})
	ctx, clk := t.Context(), clock.System()
	js := journal.New(fl, clk)
	root := filer.BucketPath("lake").Join("sales", "orders-"+uuid, "data")
	open := func(name string, lease time.Duration) *journal.Run {
		r, err := js.Open(ctx, journal.Options{
			Table: iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}, UUID: uuid, Op: "compact", Run: name, Lease: lease,
		})
		require.NoError(t, err)
		return r
	}
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i), 1, 2}, 1+i*filer.InlineLimit) }
	put := func(p filer.Path, i int) journal.File {
		e, err := fl.Put(ctx, p, content(i), filer.CreateOptions{})
		require.NoError(t, err)
		return journal.File{Path: p, Identity: e.Identity(), Reason: "expired"}
	}
	holds := func(p filer.Path, i int) {
		t.Helper()
		b, _, err := filer.ReadAll(ctx, fl, p, 1<<30)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content(i), b))
	}
	absent := func(p filer.Path) {
		t.Helper()
		_, err := fl.Stat(ctx, p)
		require.True(t, filer.NotFound(err), "%s: %v", p, err)
	}
	allowed := func(filer.Path) error { return nil }
	tr, err := trash.New(fl, clk, trash.Options{Grace: time.Hour})
	require.NoError(t, err)
	lake := trash.Selection{Bucket: "lake"}

	// Remove and undo.
	run := open("one", time.Hour)
	names := make([]filer.Path, 3)
	var files []journal.File
	for i := range names {
		names[i] = root.Join(fmt.Sprintf("p=%d", i), fmt.Sprintf("f %d%%2F.parquet", i))
		files = append(files, put(names[i], i))
	}
	rep, err := tr.Remove(ctx, run, trash.Batch{Files: files, Allowed: allowed})
	require.NoError(t, err)
	require.Equal(t, 3, rep.Count(trash.Moved), "%v", rep)
	for i, p := range names {
		absent(p)
		holds(trash.Place("one", p), i)
	}
	rep, err = tr.RestoreRun(ctx, "one")
	require.NoError(t, err)
	require.Equal(t, 3, rep.Count(trash.Restored), "%v", rep)
	for i, p := range names {
		holds(p, i)
		e, err := fl.Stat(ctx, p)
		require.NoError(t, err)
		require.Equal(t, files[i].Identity, e.Identity())
		require.NotContains(t, e.Extended, trash.AttrRestored)
	}

	// A move that was cut short, settled by each of those who may find it.
	for what, do := range map[string]func(run *journal.Run, f journal.File){
		"remove": func(run *journal.Run, f journal.File) {
			rep, err := tr.Remove(ctx, run, trash.Batch{Files: []journal.File{f}, Allowed: allowed})
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Moved), "%v", rep)
		},
		"restore": func(run *journal.Run, _ journal.File) {
			rep, err := tr.Restore(ctx, trash.Selection{Bucket: "lake", Run: run.ID()})
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Restored), "%v", rep)
		},
		"repair": func(run *journal.Run, f journal.File) {
			require.NoError(t, tr.Repair(ctx, run, []journal.Removal{{File: f, To: trash.Place(run.ID(), f.Path), PurgeAfter: clk.Now()}}))
		},
		"purge": func(run *journal.Run, f journal.File) {
			e, err := fl.Stat(ctx, trash.Place(run.ID(), f.Path))
			require.NoError(t, err)
			_, err = fl.Update(ctx, filer.Update{
				Base: e, Expect: filer.Expectation(e), Set: map[string][]byte{trash.AttrPurgeAfter: []byte(clk.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano))},
			})
			require.NoError(t, err)
			rep, err := tr.Purge(ctx, trash.Selection{Bucket: "lake", Run: run.ID()}, clk.Now(), unreferenced{})
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Restored), "%v", rep)
		},
	} {
		run := open("half-"+what, time.Hour)
		file := put(root.Join("half-"+what), 2)
		e, err := fl.Stat(ctx, file.Path)
		require.NoError(t, err)
		place := trash.Place(run.ID(), file.Path)
		twin(t, c, e, place)
		do(run, file)
		if what == "remove" {
			absent(file.Path)
			holds(place, 2)
			continue
		}
		absent(place)
		holds(file.Path, 2)
	}

	// Purging frees what nothing references.
	none, err := trash.New(fl, clk, trash.Options{})
	require.NoError(t, err)
	last := open("last", time.Hour)
	gone := put(root.Join("gone"), 2)
	rep, err = none.Remove(ctx, last, trash.Batch{Files: []journal.File{gone}, Allowed: allowed})
	require.NoError(t, err)
	require.Equal(t, 1, rep.Count(trash.Purged), "%v", rep)
	absent(gone.Path)
	absent(trash.Place("last", gone.Path))
	rep, err = tr.Purge(ctx, lake, clk.Now(), unreferenced{})
	require.NoError(t, err)
	require.Zero(t, rep.Count(trash.Purged))

	// A run that is left, fenced and resolved.
	dead := open("dead", time.Second)
	staged := root.Join("staged-" + dead.Token())
	require.NoError(t, dead.Record(ctx, staged))
	put(staged, 1)
	require.NoError(t, dead.Decide(ctx, journal.Decision{SnapshotID: 1, MetadataLocation: "s3://lake/x"}))
	require.NoError(t, dead.Check(ctx))
	require.NoError(t, clk.Sleep(ctx, 1100*time.Millisecond))
	require.Equal(t, fault.Stale, fault.Of(dead.Check(ctx)))
	st, err := js.Find(ctx, "dead")
	require.NoError(t, err)
	done, err := js.Resolve(ctx, st, unreferenced{}, tr, journal.ResolveOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, done.Waiting, "the revocation is younger than the look at the clock")
	require.NoError(t, clk.Sleep(ctx, 10*time.Millisecond))
	done, err = js.Resolve(ctx, st, unreferenced{}, tr, journal.ResolveOptions{})
	require.NoError(t, err)
	require.True(t, done.Done())
	require.Equal(t, journal.Refused, done.Outcome)
	require.Equal(t, 1, done.Moved)
	absent(staged)
	holds(trash.Place("dead", staged), 1)
	require.Equal(t, fault.Stale, fault.Of(dead.Record(ctx, root.Join("late-"+dead.Token()))))
	require.NoError(t, run.Close(ctx, journal.Committed))
	pruned, err := js.Prune(ctx, tr, journal.PruneOptions{})
	require.NoError(t, err)
	require.Zero(t, pruned.Removed, "undo still needs them")
	require.Zero(t, pruned.Unreadable)
}
