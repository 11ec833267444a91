package commit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

// fixture is a table in a filer in memory, and a run on it.
type fixture struct {
	t     testing.TB
	fl    *filertest.Filer
	table *model.Table
}

func newFixture(t *testing.T, version int) *fixture {
	t.Helper()
	return fill(t, filertest.New(filertest.Options{}), version)
}

func fill(t testing.TB, fl *filertest.Filer, version int) *fixture {
	t.Helper()
	schema, err := model.ParseSchema("id long!, name string")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{
		ID:      iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"},
		Version: version, Schema: schema, Seed: 1, Clock: fl.Virtual(),
	})
	require.NoError(t, err)
	f := &fixture{t: t, fl: fl, table: tb}
	f.append(1, 2)
	f.append(3, 4)
	return f
}

func (f *fixture) append(ids ...int64) {
	f.t.Helper()
	rows := make([]model.Row, 0, len(ids))
	for _, id := range ids {
		r, err := f.table.Row(id, "x")
		require.NoError(f.t, err)
		rows = append(rows, r)
	}
	_, err := f.table.Append(f.t.Context(), rows, model.Options{})
	require.NoError(f.t, err)
}

// attempt is one run of a change through a handle.
type attempt struct {
	c   *commit.Committer
	st  *commit.Stage
	run *journal.Run
	tr  *trash.Trash
	ch  commit.Change
}

func begin(t testing.TB, fl *filertest.Filer, name string, o commit.Options, change func(*iceberg.View) commit.Change) (*attempt, error) {
	t.Helper()
	ctx := t.Context()
	id := iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}
	v, err := iceberg.Load(ctx, fl, id)
	if err != nil {
		return nil, err
	}
	base, err := commit.BaseOf(v, iceberg.MainBranch)
	if err != nil {
		return nil, err
	}
	run, err := journal.New(fl, fl.Virtual()).Open(ctx, journal.Options{
		Table: id, UUID: base.UUID, Op: "test", Run: name, PlanDigest: "d", Base: base.MetadataLocation, Lease: 10 * time.Minute,
	})
	if err != nil {
		return nil, err
	}
	tr, err := trash.New(fl, fl.Virtual(), trash.Options{Grace: time.Hour})
	if err != nil {
		return nil, err
	}
	c := commit.New(fl, fl.Virtual(), o)
	ch := change(v)
	ch.Base = base
	return &attempt{c: c, st: c.Stage(run, v), run: run, tr: tr, ch: ch}, nil
}

func (a *attempt) commit(ctx context.Context) (commit.Result, error) {
	res, err := a.c.Commit(ctx, a.ch, a.st)
	a.c.Finish(ctx, a.st, &res, a.tr)
	return res, err
}

// setProperty is a change without a snapshot.
func setProperty(*iceberg.View) commit.Change {
	return commit.Change{Operation: "test", Rebuild: func(_ context.Context, head *iceberg.View, _ *commit.Stage) (commit.Next, error) {
		e := head.Metadata.Edit()
		e.SetProperties(map[string]string{"seaice.test": "1"})
		return commit.Next{Edit: e}, nil
	}}
}

// relist is a change with a snapshot: the same manifests in a new list.
func relist(*iceberg.View) commit.Change {
	return commit.Change{Operation: "test", Rebuild: func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
		sn, err := st.Begin(head, iceberg.MainBranch)
		if err != nil {
			return commit.Next{}, err
		}
		list, err := sn.Manifests(ctx)
		if err != nil {
			return commit.Next{}, err
		}
		return sn.Finish(ctx, "replace", list, commit.Summary{})
	}}
}

var changes = map[string]func(*iceberg.View) commit.Change{"property": setProperty, "snapshot": relist}

func profiles(t *testing.T, run func(t *testing.T, o commit.Options)) {
	t.Helper()
	for _, p := range []commit.Profile{commit.FilerCAS, commit.FilerTxn} {
		t.Run(string(p), func(t *testing.T) { run(t, commit.Options{Profile: p, Retries: 3}) })
	}
}

func (f *fixture) rows() {
	f.t.Helper()
	require.NoError(f.t, f.table.Refresh(f.t.Context()))
	require.NoError(f.t, model.Check(f.t.Context(), f.table))
}

func TestCommitMovesThePointer(t *testing.T) {
	for _, version := range []int{1, 2, 3} {
		for name, change := range changes {
			profiles(t, func(t *testing.T, o commit.Options) {
				f := newFixture(t, version)
				before := f.table.MetadataLocation()
				a, err := begin(t, f.fl, "r1", o, change)
				require.NoError(t, err)
				res, err := a.commit(t.Context())
				require.NoError(t, err, name)
				require.Equal(t, commit.Committed, res.Outcome)
				require.Empty(t, res.Warnings)
				require.Equal(t, 1, res.Attempts)
				f.rows()
				require.Equal(t, res.MetadataLocation, f.table.MetadataLocation())
				require.NotEqual(t, before, res.MetadataLocation)
				st, err := journal.New(f.fl, f.fl.Virtual()).Find(t.Context(), "r1")
				require.NoError(t, err)
				require.Equal(t, journal.Committed, st.Outcome())
			})
		}
	}
}

// F115: the swap took effect and its answer was lost, for each way the head can
// look afterwards.
func TestF115LostAnswer(t *testing.T) {
	for name, change := range changes {
		profiles(t, func(t *testing.T, o commit.Options) {
			swap := filertest.OpUpdate
			if o.Profile == commit.FilerTxn {
				swap = filertest.OpPatch
			}
			for _, mode := range []filertest.Mode{filertest.AfterEffect, filertest.Ambiguous, filertest.BeforeEffect} {
				f := newFixture(t, 2)
				a, err := begin(t, f.fl, "r1", o, change)
				require.NoError(t, err)
				record := f.table.Record()
				once := false
				f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
					if c.Op == swap && c.Path == record && !once {
						once = true
						return &filertest.Fault{Mode: mode}
					}
					return nil
				})
				res, err := a.commit(t.Context())
				require.NoError(t, err, "%s %v", name, mode)
				require.True(t, once)
				require.Equal(t, commit.Committed, res.Outcome)
				f.rows()
			}
		})
	}
}

// F115 (c): by the time the record can be read again a successor of ours is the
// head.
func TestF115SuccessorBuiltOnOurs(t *testing.T) {
	for name, change := range changes {
		profiles(t, func(t *testing.T, o commit.Options) {
			f := newFixture(t, 2)
			a, err := begin(t, f.fl, "r1", o, change)
			require.NoError(t, err)
			record := f.table.Record()
			swapped := false
			f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
				switch {
				case c.Path == record && (c.Op == filertest.OpUpdate || c.Op == filertest.OpPatch) && !swapped:
					swapped = true
					return &filertest.Fault{Mode: filertest.AfterEffect}
				case c.Path == record && c.Op == filertest.OpStat && swapped:
					f.fl.OnCall(nil)
					require.NoError(t, f.table.Refresh(t.Context()))
					f.append(9)
				}
				return nil
			})
			res, err := a.commit(t.Context())
			require.NoError(t, err, name)
			require.Equal(t, commit.Committed, res.Outcome)
			f.rows()
		})
	}
}

// F115 (d): the record cannot be read any more. Nothing is removed, the journal
// stays open, and resolving it later finds the commit.
func TestF115UnreadableIsUnknown(t *testing.T) {
	for name, change := range changes {
		profiles(t, func(t *testing.T, o commit.Options) {
			f := newFixture(t, 2)
			a, err := begin(t, f.fl, "r1", o, change)
			require.NoError(t, err)
			record := f.table.Record()
			swapped := false
			f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
				if c.Path == record && (c.Op == filertest.OpUpdate || c.Op == filertest.OpPatch) {
					swapped = true
					return &filertest.Fault{Mode: filertest.AfterEffect}
				}
				if c.Path == record && c.Op == filertest.OpStat && swapped {
					return &filertest.Fault{Mode: filertest.BeforeEffect}
				}
				return nil
			})
			res, err := a.commit(t.Context())
			require.Error(t, err)
			require.Equal(t, fault.Unknown, fault.Of(err))
			require.NotEmpty(t, fault.Hints(err))
			require.Equal(t, commit.Unknown, res.Outcome)
			f.fl.OnCall(nil)
			for _, s := range a.st.Files() {
				require.True(t, f.fl.Exists(s.Path), "%s %s", name, s.Path)
			}
			f.rows()
			store := journal.New(f.fl, f.fl.Virtual())
			st, err := store.Find(t.Context(), "r1")
			require.NoError(t, err)
			require.True(t, st.Live())
			done, err := store.Resolve(t.Context(), st, a.c.Resolver(), a.tr, journal.ResolveOptions{OrphanAge: time.Hour})
			require.NoError(t, err)
			require.Equal(t, journal.Committed, done.Outcome)
			f.rows()
		})
	}
}

// F116: the first swap took effect unseen, a layer below sent it again and got a
// refusal. The conflict is with ourselves.
func TestF116ConflictWithOurselves(t *testing.T) {
	for _, change := range changes {
		f := newFixture(t, 2)
		a, err := begin(t, f.fl, "r1", commit.Options{Retries: 3}, change)
		require.NoError(t, err)
		record := f.table.Record()
		n := 0
		f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Path == record && c.Op == filertest.OpUpdate {
				n++
				return &filertest.Fault{Mode: filertest.AfterEffect, Kind: fault.Stale, Err: filer.ErrPrecondition}
			}
			return nil
		})
		res, err := a.commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, commit.Committed, res.Outcome)
		require.Equal(t, 1, n)
		f.rows()
	}
}

// F005, F119: a peer commits before each of the first swaps; every retry is built
// on the fresh head, nothing of the peer is lost and what lost attempts wrote is
// gone afterwards.
func TestF005RetryRebuildsOnTheFreshHead(t *testing.T) {
	profiles(t, func(t *testing.T, o commit.Options) {
		f := newFixture(t, 2)
		a, err := begin(t, f.fl, "r1", o, relist)
		require.NoError(t, err)
		record := f.table.Record()
		peers := 0
		f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Path == record && (c.Op == filertest.OpUpdate || c.Op == filertest.OpPatch) && peers < 2 {
				peers++
				n := peers
				peers = 9 // the peer's own swap passes through here too
				f.append(int64(100 + n))
				peers = n
			}
			return nil
		})
		res, err := a.commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, commit.Committed, res.Outcome)
		require.Equal(t, 3, res.Attempts)
		require.Equal(t, 2, res.Rebases)
		require.Empty(t, res.Warnings)
		parent := f.table.Head("")
		f.rows()
		head := f.table.Head("")
		require.Equal(t, parent.ID, head.Parent)
		require.Equal(t, 6, len(head.Rows))
		root := f.table.Root.Join("metadata")
		staged := 0
		for _, p := range f.fl.Files(root) {
			if containsToken(p, a.run.Token()) {
				staged++
			}
		}
		require.Equal(t, 2, staged, "one list and one metadata file are left of three attempts")
	})
}

func containsToken(p filer.Path, token string) bool {
	name := p.Name()
	for i := 0; i+len(token) <= len(name); i++ {
		if name[i:i+len(token)] == token {
			return true
		}
	}
	return false
}

// F120: the table was dropped and made again under its name.
func TestF120ReplacedTable(t *testing.T) {
	f := newFixture(t, 2)
	a, err := begin(t, f.fl, "r1", commit.Options{Retries: 3}, relist)
	require.NoError(t, err)
	f.fl.RemoveAll(f.table.Record())
	schema, err := model.ParseSchema("id long!, name string")
	require.NoError(t, err)
	_, err = model.NewTable(t.Context(), f.fl, model.Config{ID: f.table.ID, Version: 2, Schema: schema, Seed: 2, Clock: f.fl.Virtual()})
	require.NoError(t, err)
	res, err := a.commit(t.Context())
	require.Equal(t, commit.Refused, res.Outcome)
	require.Equal(t, fault.Stale, fault.Of(err))
}

// P9 and F123: whatever call of a commit fails, in whatever way, the table reads
// as the model says, and once the journal is resolved no staged file is left
// that nothing references.
func TestP9F123EveryCallOfACommit(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			var want model.Rows
			start := func(t testing.TB, fl *filertest.Filer) {
				f := fill(t, fl, 2)
				want = expect(t, f.table)
			}
			tally := filertest.EveryCall(t, filertest.Scenario{
				Start: start,
				Run: func(t testing.TB, fl *filertest.Filer) error {
					a, err := begin(t, fl, "r1", commit.Options{Retries: 2}, change)
					if err != nil {
						return err
					}
					_, err = a.commit(context.WithoutCancel(t.Context()))
					return err
				},
				Recover: resolveAll,
				Verify: func(t testing.TB, fl *filertest.Filer, in filertest.Injection) {
					verifyNothingLost(t, fl, want)
					if in.Err == nil {
						require.Equal(t, 1, committedRuns(t, fl))
					}
				},
			})
			require.Greater(t, tally.Fired, 20)
		})
	}
}

// resolveAll is what the next process does, at once and after the orphan age.
func resolveAll(t testing.TB, fl *filertest.Filer) error {
	ctx := t.Context()
	store := journal.New(fl, fl.Virtual())
	tr, err := trash.New(fl, fl.Virtual(), trash.Options{Grace: time.Hour})
	if err != nil {
		return err
	}
	c := commit.New(fl, fl.Virtual(), commit.Options{})
	for range 3 {
		for st, err := range store.List(ctx) {
			if err != nil {
				return err
			}
			if _, err := store.Resolve(ctx, st, c.Resolver(), tr, journal.ResolveOptions{OrphanAge: 24 * time.Hour}); err != nil {
				return err
			}
		}
		fl.Virtual().Advance(25 * time.Hour)
	}
	return nil
}

func expect(t testing.TB, tb *model.Table) model.Rows {
	t.Helper()
	rows, err := tb.Expect(model.View{})
	require.NoError(t, err)
	return rows
}

func committedRuns(t testing.TB, fl *filertest.Filer) int {
	n := 0
	for st, err := range journal.New(fl, fl.Virtual()).List(t.Context()) {
		require.NoError(t, err)
		if st.Outcome() == journal.Committed {
			n++
		}
	}
	return n
}

// verifyNothingLost reads the table with a foreign reader and looks for staged
// files that nothing references and no journal holds.
func verifyNothingLost(t testing.TB, fl *filertest.Filer, want model.Rows) {
	t.Helper()
	ctx := t.Context()
	id := iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}
	got, err := model.ReadRows(ctx, fl, id, model.View{})
	require.NoError(t, err)
	require.Empty(t, model.Diff(want, got))
	v, err := iceberg.Load(ctx, fl, id)
	require.NoError(t, err)
	tb, err := model.Attach(ctx, fl, model.Config{ID: id, Clock: fl.Virtual()})
	require.NoError(t, err)
	require.NoError(t, model.Check(ctx, tb))
	held := map[filer.Path]bool{}
	live := 0
	for st, err := range journal.New(fl, fl.Virtual()).List(ctx) {
		require.NoError(t, err)
		if st.Live() {
			live++
			continue
		}
		for p, err := range st.Staged(ctx) {
			require.NoError(t, err)
			if fl.Exists(p) {
				held[p] = true
			}
		}
	}
	require.Zero(t, live, "every journal can be brought to its end")
	for _, ref := range commit.ReferencedPaths(t, fl, v) {
		delete(held, ref)
	}
	require.Empty(t, held, "staged files that nothing references")
}
