package trash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

const count = 4

// filled is a bed with files to remove; one is stored inline.
func filled(t testing.TB, f *filertest.Filer) {
	b := bedOn(t, f, grace)
	for i := range count {
		b.put(path(i), content(i))
	}
}

func content(i int) []byte {
	if i == 0 {
		return []byte("inline")
	}
	return big(i)
}

// resolver is a table that references nothing.
type resolver struct{}

func (resolver) Bump(context.Context, *journal.State) error { return nil }

func (resolver) References(context.Context, *journal.State) (journal.References, error) {
	return journal.References{Verdict: journal.NotCommitted, Referenced: func(filer.Path) bool { return false }}, nil
}

// resolve brings all runs whose lease is over to their end, as a worker does
// before it begins.
func resolve(t testing.TB, f *filertest.Filer, g time.Duration) error {
	t.Helper()
	f.Virtual().Advance(time.Hour)
	js := journal.New(f, f.Virtual())
	for st, err := range js.OpenRuns(t.Context(), uuid) {
		if err != nil {
			return err
		}
		if _, err := js.Resolve(t.Context(), st, resolver{}, newTrash(t, f, g), journal.ResolveOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// again is a new run that removes what is left.
func again(t testing.TB, f *filertest.Filer, run string, g time.Duration) (trash.Report, error) {
	t.Helper()
	return removeAll(t, f, f, run, g)
}

// removeAll does it with the moves going through fl.
func removeAll(t testing.TB, f *filertest.Filer, fl filer.Filer, run string, g time.Duration) (trash.Report, error) {
	t.Helper()
	for n := 1; f.Exists(journal.Root.Join(uuid, run+".json")); n++ {
		run = fmt.Sprintf("%s-%d", run, n)
	}
	r, err := journal.New(f, f.Virtual()).Open(t.Context(), optionsOf(run))
	if err != nil {
		return trash.Report{}, err
	}
	var batch trash.Batch
	batch.Allowed = inTable
	quiet := f.Reopen()
	for i := range count {
		if e, err := quiet.Stat(t.Context(), path(i)); err == nil {
			batch.Files = append(batch.Files, journal.File{Path: path(i), Identity: e.Identity(), Reason: "expired"})
		}
	}
	tr, err := trash.New(fl, f.Virtual(), trash.Options{Grace: g, Concurrency: 1})
	require.NoError(t, err)
	rep, err := tr.Remove(t.Context(), r, batch)
	if err != nil {
		return rep, err
	}
	if err := r.Close(t.Context(), journal.Committed); err != nil {
		return rep, err
	}
	return rep, rep.Err()
}

// places are where a file is: at its origin or in the trash of any run.
func places(f *filertest.Filer, i int) []filer.Path {
	var out []filer.Path
	for _, p := range f.Files("/buckets/lake") {
		if p.Name() == path(i).Name() {
			out = append(out, p)
		}
	}
	return out
}

// F122, F123: removing is struck at every call in every way. Every file is at
// one place with all its bytes, at any time; the next run removes what is left,
// and everything can be brought back.
func TestF123RemoveStruckAtEveryCall(t *testing.T) {
	tally := filertest.EveryCall(t, filertest.Scenario{
		Start: func(t testing.TB, f *filertest.Filer) { filled(t, f) },
		Run:   func(t testing.TB, f *filertest.Filer) error { _, err := again(t, f, "one", grace); return err },
		Recover: func(t testing.TB, f *filertest.Filer) error {
			for i := range count {
				at := places(f, i)
				require.Len(t, at, 1)
				require.Equal(t, content(i), f.Content(at[0]))
			}
			if err := resolve(t, f, grace); err != nil {
				return err
			}
			_, err := again(t, f, "two", grace)
			return err
		},
		Reads: true, Deep: true,
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			require.Empty(t, f.Files(root), "all are removed")
			if in.Err == nil {
				require.Empty(t, f.Files(trash.Root("lake").Join("two")), "nothing was left to the second run")
			}
			tr := newTrash(t, f, grace)
			for it, err := range tr.List(t.Context(), "lake") {
				require.NoError(t, err)
				require.Empty(t, it.Problem)
				require.False(t, it.PurgeAfter.IsZero())
			}
			rep, err := tr.Restore(t.Context(), lake)
			require.NoError(t, err)
			require.Equal(t, count, rep.Count(trash.Restored))
			for i := range count {
				require.Equal(t, content(i), f.Content(path(i)))
			}
		},
	})
	require.Greater(t, tally.Fired, 50)
}

// Restoring, purging, and removing without grace, likewise.
func TestEveryOtherCallStruck(t *testing.T) {
	now := func(f *filertest.Filer) time.Time { return f.Virtual().Now() }
	removed := func(t testing.TB, f *filertest.Filer) {
		filled(t, f)
		_, err := again(t, f, "one", grace)
		require.NoError(t, err)
		f.Virtual().Advance(2 * grace)
	}
	restore := func(t testing.TB, f *filertest.Filer) error {
		rep, err := newTrash(t, f, grace).Restore(t.Context(), lake)
		if err != nil {
			return err
		}
		return rep.Err()
	}
	purge := func(t testing.TB, f *filertest.Filer) error {
		rep, err := newTrash(t, f, grace).Purge(t.Context(), lake, now(f), references{path(1): true})
		if err != nil {
			return err
		}
		return rep.Err()
	}
	for what, s := range map[string]filertest.Scenario{
		"restore": {
			Start: removed, Run: restore, Recover: restore,
			Verify: func(t testing.TB, f *filertest.Filer, _ filertest.Injection) {
				for i := range count {
					require.Equal(t, []filer.Path{path(i)}, places(f, i))
					require.Equal(t, content(i), f.Content(path(i)))
				}
			},
		},
		"purge": {
			Start: removed, Run: purge, Recover: purge,
			Verify: func(t testing.TB, f *filertest.Filer, _ filertest.Injection) {
				require.Equal(t, []filer.Path{path(1)}, f.Files("/buckets/lake"))
				require.Equal(t, content(1), f.Content(path(1)))
			},
		},
		"no grace": {
			Start: func(t testing.TB, f *filertest.Filer) { filled(t, f) },
			Run:   func(t testing.TB, f *filertest.Filer) error { _, err := again(t, f, "one", 0); return err },
			Recover: func(t testing.TB, f *filertest.Filer) error {
				if err := resolve(t, f, 0); err != nil {
					return err
				}
				if _, err := again(t, f, "two", 0); err != nil {
					return err
				}
				rep, err := newTrash(t, f, 0).Purge(t.Context(), lake, now(f), references{})
				if err != nil {
					return err
				}
				return rep.Err()
			},
			Verify: func(t testing.TB, f *filertest.Filer, _ filertest.Injection) {
				require.Empty(t, f.Files("/buckets/lake"))
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			verify := s.Verify
			s.Reads, s.Deep = true, true
			s.Verify = func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
				verify(t, f, in)
				require.Empty(t, f.OrphanChunks())
			}
			tally := filertest.EveryCall(t, s)
			require.Greater(t, tally.Fired, 30)
		})
	}
}
