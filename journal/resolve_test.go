package journal_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/journal"
)

const age = 72 * time.Hour

// abandoned is a table with a run that staged three files and is gone.
func abandoned(t testing.TB) (*world, *journal.Run) {
	t.Helper()
	f := filertest.New(filertest.Options{})
	createTable(f)
	w := newWorld(t, f)
	r := open(t, f, "r")
	require.NoError(t, w.stage(t.Context(), r, name(r, 1), name(r, 2), name(r, 3)))
	return w, r
}

func (w *world) once(t testing.TB, run string) journal.Resolution {
	t.Helper()
	res, err := store(w.f).Resolve(t.Context(), load(t, w.f, run), w, w.trash, journal.ResolveOptions{OrphanAge: age})
	require.NoError(t, err)
	return res
}

func TestResolveLeavesALivingRunAlone(t *testing.T) {
	w, r := abandoned(t)
	before := w.f.Dump()
	res := w.once(t, "r")
	require.Equal(t, journal.Resolution{Run: "r", Phase: journal.Open, Until: load(t, w.f, "r").Expires()}, res)
	require.Empty(t, before.Changes(w.f.Dump()))
	require.NoError(t, r.Check(t.Context()))
}

// F090, F123: what a dead run left goes to the trash once it is old enough,
// exactly that, and can be brought back.
func TestF123LeftoversGoToTheTrash(t *testing.T) {
	w, r := abandoned(t)
	other := root.Join("data/other.parquet")
	w.f.PutFile(other, []byte("x"))
	require.NoError(t, r.Record(t.Context(), name(r, 4)), "named and never created")
	f := w.f
	f.Virtual().Advance(time.Hour)
	res := w.once(t, "r")
	require.Equal(t, journal.Settled, res.Phase)
	require.Equal(t, journal.Refused, res.Outcome)
	require.Equal(t, 3, res.Waiting)
	require.Equal(t, f.Virtual().Now().Add(age), res.Until, "the revocation counts too")
	require.True(t, f.Exists(name(r, 1)))
	f.Virtual().Advance(age - time.Second)
	looks := w.looks
	require.Equal(t, 3, w.once(t, "r").Waiting)
	require.Equal(t, looks, w.looks, "nothing is read before its time")
	f.Virtual().Advance(time.Second)
	before := f.Dump()
	res = w.once(t, "r")
	require.True(t, res.Done())
	require.Equal(t, journal.Refused, res.Outcome)
	require.Equal(t, journal.Discarded{Moved: 3}, res.Discarded)
	for i := range 4 {
		require.False(t, f.Exists(name(r, i)))
	}
	require.True(t, f.Exists(other))
	require.Len(t, f.Files("/buckets/lake/.seaice-trash/r"), 3)
	require.Len(t, before.Changes(f.Dump(), "/buckets/lake/.seaice-trash", "/etc/seaice"), 3, "O10")
	again := w.once(t, "r")
	require.Equal(t, journal.Resolution{Run: "r", Phase: journal.Closed, Outcome: journal.Refused}, again)

	rep, err := w.trash.RestoreRun(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, 3, rep.Count("restored"))
	require.True(t, f.Exists(name(r, 1)))
}

func TestResolveFindsTheCommit(t *testing.T) {
	w, r := abandoned(t)
	require.NoError(t, w.commit(t.Context(), r, "loc", name(r, 1), name(r, 2)))
	w.f.Virtual().Advance(time.Hour)
	res := w.once(t, "r")
	require.Equal(t, journal.Settled, res.Phase)
	require.Equal(t, journal.Committed, res.Outcome)
	require.Equal(t, 1, res.Waiting, "a file of a failed attempt is left")
	w.f.Virtual().Advance(age)
	require.True(t, w.once(t, "r").Done())
	w.consistent(t, "r")
	require.True(t, w.f.Exists(name(r, 1)))
}

func TestResolveClosesAtOnceWithNothingLeft(t *testing.T) {
	w, r := abandoned(t)
	require.NoError(t, w.commit(t.Context(), r, "loc", name(r, 1), name(r, 2), name(r, 3)))
	w.f.Virtual().Advance(time.Hour)
	res := w.once(t, "r")
	require.True(t, res.Done())
	require.Equal(t, journal.Committed, res.Outcome)
	empty := open(t, w.f, "empty")
	require.NoError(t, empty.Release(t.Context()))
	res = w.once(t, "empty")
	require.True(t, res.Done())
	require.Equal(t, journal.Refused, res.Outcome)
}

// F115: while it cannot be read what is referenced nothing is concluded and
// nothing removed, and the journal stays open.
func TestF115UnreadableReferencesKeepEverything(t *testing.T) {
	w, r := abandoned(t)
	require.NoError(t, r.Decide(t.Context(), journal.Decision{MetadataLocation: "loc"}))
	w.f.Virtual().Advance(1000 * time.Hour)
	w.unreadable = fault.New(fault.Corrupt, "read manifest x.avro: checksum")
	before := w.f.Dump()
	res := w.once(t, "r")
	require.True(t, res.Unknown)
	require.Contains(t, res.Why, "x.avro")
	require.Equal(t, journal.Revoked, res.Phase)
	require.Empty(t, before.Changes(w.f.Dump(), "/etc/seaice", record))
	require.True(t, load(t, w.f, "r").Live())
	w.unreadable = nil
	w.f.Virtual().Advance(age)
	require.True(t, w.once(t, "r").Done())
	w.consistent(t, "r")
}

// F111: the references are read again right before the batch.
func TestF111ReferencesAreReadRightBeforeTheBatch(t *testing.T) {
	w, r := abandoned(t)
	f := w.f
	f.Virtual().Advance(time.Hour)
	w.once(t, "r")
	f.Virtual().Advance(age)
	// Somebody references a staged file between the two looks.
	peer := newWorld(t, f.Reopen())
	first := true
	f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpStat && c.Path == name(r, 2) && first {
			first = false
			e, err := peer.f.Stat(t.Context(), record)
			require.NoError(t, err)
			require.NoError(t, peer.swap(t.Context(), e, map[string][]byte{keyRefs: []byte(name(r, 2))}))
		}
		return nil
	})
	res := w.once(t, "r")
	require.False(t, first)
	require.Equal(t, 2, res.Moved)
	require.True(t, f.Exists(name(r, 2)))
	w.consistent(t, "r")
}

// A fenced run can commit no more: if its snapshot turns up after all, deleting
// stops.
func TestCommitBehindTheFenceHalts(t *testing.T) {
	w, r := abandoned(t)
	require.NoError(t, r.Decide(t.Context(), journal.Decision{MetadataLocation: "loc"}))
	w.f.Virtual().Advance(time.Hour)
	require.Equal(t, journal.Refused, w.once(t, "r").Outcome)
	w.f.SetAttributes(record, map[string][]byte{keyLog: []byte("loc")})
	w.f.Virtual().Advance(age)
	before := w.f.Dump()
	_, err := store(w.f).Resolve(t.Context(), load(t, w.f, "r"), w, w.trash, journal.ResolveOptions{OrphanAge: age})
	is(t, err, fault.Halt)
	require.Empty(t, before.Changes(w.f.Dump(), "/etc/seaice"))
}

func TestResolveRefusesAnUntrustedClock(t *testing.T) {
	f := filertest.New(filertest.Options{Skew: -10 * time.Minute})
	createTable(f)
	w := newWorld(t, f)
	r := open(t, f, "r")
	require.NoError(t, w.stage(t.Context(), r, name(r, 1)))
	f.Virtual().Advance(1000 * time.Hour)
	before := f.Dump()
	_, err := store(f).Resolve(t.Context(), load(t, f, "r"), w, w.trash, journal.ResolveOptions{OrphanAge: age})
	is(t, err, fault.Halt)
	_, err = store(f).Prune(t.Context(), erase(f), journal.PruneOptions{})
	is(t, err, fault.Halt)
	require.Empty(t, before.Changes(f.Dump()))
	_, err = store(f).Resolve(t.Context(), load(t, f, "r"), w, w.trash, journal.ResolveOptions{OrphanAge: -1})
	is(t, err, fault.Unsupported)
}

// Files that another open run holds, because it adopted them, are not removed.
func TestOpenJournalsAreReferences(t *testing.T) {
	w, r := abandoned(t)
	w.f.Virtual().Advance(time.Hour)
	next := open(t, w.f, "next")
	res, err := store(w.f).Adopt(t.Context(), load(t, w.f, "r"), w, next)
	require.NoError(t, err)
	require.Equal(t, journal.Adopted, res.Outcome)
	require.True(t, res.Done())
	require.Equal(t, []filer.Path{name(r, 1), name(r, 2), name(r, 3)}, staged(t, load(t, w.f, "next")))
	require.Equal(t, []journal.Adoption{{Run: "r", Token: r.Token()}}, load(t, w.f, "next").Adopted())
	_, err = store(w.f).Adopt(t.Context(), load(t, w.f, "r"), w, next)
	is(t, err, fault.Stale)

	// A third run that died with one of these names in its own journal.
	third := open(t, w.f, "third")
	w.f.Virtual().Advance(time.Hour)
	_, err = store(w.f).Adopt(t.Context(), load(t, w.f, "next"), w, third)
	require.NoError(t, err)
	require.NoError(t, third.Record(t.Context(), name(r, 1)), "tokens are inherited")
	require.NoError(t, w.commit(t.Context(), third, "loc", name(r, 1)))
	require.NoError(t, third.Release(t.Context()))
	w.f.Virtual().Advance(age)
	_, err = w.resolve(t.Context(), "third")
	require.NoError(t, err)
	w.consistent(t, "third")
	require.True(t, w.f.Exists(name(r, 1)))
	require.False(t, w.f.Exists(name(r, 2)))
}

// An adopter that dies between naming the files and closing the old journal
// leaves both open: neither resolution takes from the other what it holds.
func TestDeadAdopterHoldsWhatItNamed(t *testing.T) {
	w, r := abandoned(t)
	w.f.Virtual().Advance(time.Hour)
	open(t, w.f, "next")
	adopt := func(f *filertest.Filer) error {
		next, err := store(f).Open(t.Context(), options("adopter"))
		if err != nil {
			return err
		}
		_, err = store(f).Adopt(t.Context(), load(t, f, "r"), newWorld(t, f), next)
		return err
	}
	dry := w.f.Fork()
	require.NoError(t, adopt(dry))
	last := 0
	for _, c := range dry.Calls() {
		if c.Op == filertest.OpUpdate && c.Path == r.Path() {
			last = c.N
		}
	}
	f := w.f.Reopen()
	f.Fail(filertest.Fault{Call: last, Mode: filertest.CrashBefore})
	require.ErrorIs(t, adopt(f), filertest.ErrCrashed)
	require.Len(t, staged(t, load(t, w.f, "adopter")), 3)
	require.True(t, load(t, w.f, "r").Live())

	w.f.Virtual().Advance(age)
	res := w.once(t, "r")
	require.True(t, res.Done())
	require.Zero(t, res.Moved)
	require.True(t, w.f.Exists(name(r, 1)), "the adopter's journal still holds it")
	_, err := w.resolve(t.Context(), "adopter")
	require.NoError(t, err)
	w.consistent(t, "adopter")
	require.False(t, w.f.Exists(name(r, 1)))
}

func TestResolveStopsAtADamagedNeighbour(t *testing.T) {
	w, r := abandoned(t)
	w.f.PutFile(journal.Root.Join(uuid, "x.json"), []byte("{"))
	w.f.Virtual().Advance(1000 * time.Hour)
	_, err := store(w.f).Resolve(t.Context(), load(t, w.f, "r"), w, w.trash, journal.ResolveOptions{OrphanAge: age})
	is(t, err, fault.Corrupt)
	require.True(t, w.f.Exists(name(r, 1)))
	require.True(t, load(t, w.f, "r").Live())
}

func TestAdoptTakesOverOnlyWhatIsUncommitted(t *testing.T) {
	w, r := abandoned(t)
	next := open(t, w.f, "next")
	_, err := store(w.f).Adopt(t.Context(), load(t, w.f, "r"), w, next)
	is(t, err, fault.Stale)
	require.NoError(t, r.Check(t.Context()), "a living run is not adopted")
	_, err = store(w.f).Adopt(t.Context(), load(t, w.f, "next"), w, next)
	is(t, err, fault.Unsupported)

	require.NoError(t, w.commit(t.Context(), r, "loc", name(r, 1)))
	require.NoError(t, r.Release(t.Context()))
	res, err := store(w.f).Adopt(t.Context(), load(t, w.f, "r"), w, next)
	require.NoError(t, err)
	require.Equal(t, journal.Committed, res.Outcome)
	require.Empty(t, staged(t, load(t, w.f, "next")))
	w.unreadable = errors.New("no")
	res, err = store(w.f).Adopt(t.Context(), load(t, w.f, "r"), w, next)
	require.NoError(t, err)
	require.True(t, res.Unknown)
}

// A movement map that nothing references is deleted, not moved: it lies outside
// of every bucket.
func TestResolveDiscardsMaps(t *testing.T) {
	w, r := abandoned(t)
	mp, kept := journal.Maps.Join(uuid, "m-"+r.Token()), journal.Maps.Join(uuid, "m-other")
	w.f.PutFile(mp, []byte("map"))
	w.f.PutFile(kept, []byte("map"))
	require.NoError(t, r.Record(t.Context(), mp))
	w.f.Virtual().Advance(1000 * time.Hour)
	w.once(t, "r")
	w.f.Virtual().Advance(age)
	require.Equal(t, 4, w.once(t, "r").Moved)
	require.False(t, w.f.Exists(mp))
	require.True(t, w.f.Exists(kept))
}

// A map of a run that was committed is its snapshot's.
func TestResolveKeepsMapsOfCommittedRuns(t *testing.T) {
	w, r := abandoned(t)
	mp := journal.Maps.Join(uuid, "m-"+r.Token())
	w.f.PutFile(mp, []byte("map"))
	require.NoError(t, r.Record(t.Context(), mp))
	require.NoError(t, w.commit(t.Context(), r, "loc", name(r, 1), name(r, 2), name(r, 3)))
	w.f.Virtual().Advance(1000 * time.Hour)
	require.True(t, w.once(t, "r").Done())
	require.True(t, w.f.Exists(mp))
}

// The maps of a run that another one adopted are the adopter's: they stay when the
// old journal is pruned.
func TestPruneLeavesMapsOfAdoptedRuns(t *testing.T) {
	w, r := abandoned(t)
	mp := journal.Maps.Join(uuid, "m-"+r.Token())
	w.f.PutFile(mp, []byte("map"))
	require.NoError(t, r.Record(t.Context(), mp))
	w.f.Virtual().Advance(1000 * time.Hour)
	into := open(t, w.f, "into")
	st, err := store(w.f).Load(t.Context(), uuid, "r")
	require.NoError(t, err)
	require.False(t, into.Holds(mp))
	res, err := store(w.f).Adopt(t.Context(), st, w, into)
	require.NoError(t, err)
	require.Equal(t, journal.Adopted, res.Outcome)
	require.True(t, into.Holds(mp))
	w.f.Virtual().Advance(1000 * time.Hour)
	p, err := store(w.f).Prune(t.Context(), erase(w.f), journal.PruneOptions{Keep: time.Hour})
	require.NoError(t, err)
	require.Equal(t, 1, p.Removed)
	require.True(t, w.f.Exists(mp))
}

// A run whose removals may be half made does not close before they are repaired.
func TestUnsettledRunIsRepaired(t *testing.T) {
	w, r := abandoned(t)
	f := w.f
	old := root.Join("data/old.parquet")
	e := f.PutFile(old, make([]byte, 1<<20))
	place := filer.Path("/buckets/lake/.seaice-trash/r").Join(old.Rel("/buckets/lake"))
	require.NoError(t, w.commit(t.Context(), r, "loc", name(r, 1), name(r, 2), name(r, 3)))
	require.NoError(t, r.Removals(t.Context(), journal.Removal{
		File: journal.File{Path: old, Identity: e.Identity(), Reason: "x"}, To: place, PurgeAfter: f.Virtual().Now().Add(time.Hour), Move: "m",
	}))
	f.SetEntry(place.Dir(), e.PB)
	r.Unsettled()
	require.NoError(t, r.Close(t.Context(), journal.Committed))
	require.NoError(t, r.Close(t.Context(), journal.Committed), "closing again is the same")
	st := load(t, f, "r")
	require.True(t, st.Live())
	require.Equal(t, journal.Committed, st.Outcome())
	is(t, r.Renew(t.Context()), fault.Stale)
	require.True(t, w.once(t, "r").Done())
	require.False(t, f.Exists(place))
	require.Len(t, f.Content(old), 1<<20)
}

// A file that cannot be removed is named and does not hold the journal open.
func TestResolveNamesWhatItKeeps(t *testing.T) {
	w, r := abandoned(t)
	w.f.SetAttributes(name(r, 2), map[string][]byte{"Seaweed-X-Amz-Legal-Hold": []byte("ON")})
	w.f.Virtual().Advance(1000 * time.Hour)
	w.once(t, "r")
	w.f.Virtual().Advance(age)
	res := w.once(t, "r")
	require.True(t, res.Done())
	require.Equal(t, 2, res.Moved)
	require.Len(t, res.Kept, 1)
	require.Equal(t, name(r, 2), res.Kept[0].Path)
	require.Contains(t, res.Kept[0].Reason, "legal hold")
	require.True(t, w.f.Exists(name(r, 2)))
}

// A removal that was cut short when its run died leaves the file at its origin,
// with all its bytes.
func TestResolveRepairsRemovals(t *testing.T) {
	w, r := abandoned(t)
	f := w.f
	old := root.Join("data/old.parquet")
	e := f.PutFile(old, make([]byte, 1<<20))
	place := filer.Path("/buckets/lake/.seaice-trash/r").Join(old.Rel("/buckets/lake"))
	require.NoError(t, r.Removals(t.Context(), journal.Removal{
		File: journal.File{Path: old, Identity: e.Identity(), Reason: "x"}, To: place, PurgeAfter: f.Virtual().Now().Add(time.Hour), Move: "m",
	}))
	f.SetEntry(place.Dir(), e.PB)
	f.Virtual().Advance(1000 * time.Hour)
	w.once(t, "r")
	f.Virtual().Advance(age)
	require.True(t, w.once(t, "r").Done())
	require.False(t, f.Exists(place))
	require.Len(t, f.Content(old), 1<<20)
}

func TestPruneKeepsHistoryAsLongAsItIsOfUse(t *testing.T) {
	f := filertest.New(filertest.Options{})
	ctx, keep := t.Context(), 24*time.Hour
	prune := func() journal.Pruned {
		p, err := store(f).Prune(ctx, erase(f), journal.PruneOptions{Keep: keep})
		require.NoError(t, err)
		return p
	}
	closed, held := open(t, f, "closed"), open(t, f, "held")
	open(t, f, "live")
	require.NoError(t, closed.Record(ctx, name(closed, 1)))
	require.NoError(t, held.Removals(ctx, journal.Removal{
		File: journal.File{Path: root.Join("x"), Identity: "i"}, To: root.Join("y"), PurgeAfter: f.Virtual().Now().Add(100 * time.Hour),
	}))
	require.NoError(t, closed.Close(ctx, journal.Committed))
	require.NoError(t, held.Close(ctx, journal.Committed))
	f.Virtual().Advance(keep)
	require.Equal(t, journal.Pruned{Kept: 2, Live: 1}, prune())
	f.Virtual().Advance(time.Second)
	require.Equal(t, journal.Pruned{Removed: 1, Kept: 1, Live: 1}, prune())
	require.False(t, slices.Contains(f.Files(journal.Root), closed.Path()))
	f.Virtual().Advance(100 * time.Hour)
	require.Equal(t, journal.Pruned{Removed: 1, Live: 1}, prune())
	f.Virtual().Advance(100000 * time.Hour)
	require.Equal(t, journal.Pruned{Live: 1}, prune(), "an open journal stays for ever")
	require.Len(t, f.Files(journal.Root), 1)

	for i := range 5 {
		require.NoError(t, open(t, f, string(rune('a'+i))).Close(ctx, journal.Refused))
	}
	f.Virtual().Advance(100 * time.Hour)
	p, err := store(f).Prune(ctx, erase(f), journal.PruneOptions{Keep: keep, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, journal.Pruned{Removed: 2, Kept: 3, Live: 1}, p)
	_, err = store(f).Prune(ctx, erase(f), journal.PruneOptions{Keep: -1})
	is(t, err, fault.Unsupported)
}
