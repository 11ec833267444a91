package trash_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

func TestRestoreNeverOverwrites(t *testing.T) {
	b := newBed(t)
	b.remove(b.put(path(1), []byte("old")), b.put(path(2), []byte("two")), b.put(path(3), []byte("three")), b.put(path(4), []byte("four")))
	b.put(path(1), []byte("new"))
	b.f.RemoveAll(trash.Place("r", path(2)))
	b.f.RemoveAll(trash.Place("r", path(3)))
	b.put(path(3), []byte("another"))
	b.f.SetAttributes(trash.Place("r", path(4)), map[string][]byte{trash.AttrOrigin: []byte("/buckets/lake/elsewhere")})
	rep, err := b.tr.RestoreRun(t.Context(), "r")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		path(1).Name() + " conflict", path(2).Name() + " gone", path(3).Name() + " stale", path(4).Name() + " kept",
	}, outcomes(rep))
	for _, r := range rep.Results {
		require.NotEmpty(t, r.Detail)
	}
	require.Equal(t, []byte("new"), b.f.Content(path(1)))
	require.Equal(t, []byte("old"), b.f.Content(trash.Place("r", path(1))))
	_, err = b.tr.RestoreRun(t.Context(), "nobody")
	is(t, err, fault.Stale)
	for _, s := range []trash.Selection{{}, {Bucket: "a/b"}, {Bucket: ".."}, {Bucket: "lake", Run: "../x"}} {
		_, err = b.tr.Restore(t.Context(), s)
		is(t, err, fault.Unsupported)
	}
}

func TestPurge(t *testing.T) {
	b := newBed(t)
	// 1 is plain, 2 referenced, 3 too with its origin taken, 4 held, 5 has an odd
	// attribute, 6 no purge time but a journal, 7 neither.
	for i := 1; i <= 7; i++ {
		b.remove(b.put(path(i), big(i)))
	}
	late := b.f.Virtual().Now()
	b.f.Virtual().Advance(time.Hour)
	require.NoError(t, b.run.Renew(t.Context()))
	b.remove(b.put(path(8), big(8)))
	at := func(i int) filer.Path { return trash.Place("r", path(i)) }
	b.put(path(3), []byte("taken"))
	b.f.SetAttributes(at(4), map[string][]byte{"Seaweed-X-Amz-Legal-Hold": []byte("ON")})
	b.f.SetAttributes(at(5), map[string][]byte{trash.AttrPurgeAfter: []byte("soon")})
	clear := map[string][]byte{trash.AttrPurgeAfter: nil, trash.AttrOrigin: nil, trash.AttrRun: nil}
	b.f.SetAttributes(at(6), clear)
	b.f.SetAttributes(at(7), clear)
	b.f.PutFile(at(7), big(77)) // the journal names another file
	b.f.PutFile("/buckets/lake/.seaice-trash/stray", nil)
	b.f.PutFile("/buckets/lake/.seaice-trash/no run/f", nil)
	b.f.PutFile("/buckets/lake/.seaice-trash/unknown-run/f", nil)
	refs := references{path(2): true, path(3): true}

	before := b.f.Dump()
	rep, err := b.tr.Purge(t.Context(), lake, b.f.Virtual().Now(), refs)
	require.NoError(t, err)
	require.Equal(t, 6, rep.Waiting)
	require.Empty(t, before.Changes(b.f.Dump()), "not yet")

	b.f.Virtual().Advance(grace - time.Hour + time.Minute)
	rep, err = b.tr.Purge(t.Context(), lake, late.Add(grace+time.Second), refs)
	require.NoError(t, err)
	require.Equal(t, 1, rep.Waiting)
	got := map[string]trash.Outcome{}
	for _, r := range rep.Results {
		got[r.Trash.Name()+"@"+r.Path.Name()] = r.Outcome
		require.True(t, r.Outcome == trash.Purged || r.Detail != "", "%v", r)
	}
	key := func(i int) string { return path(i).Name() + "@" + path(i).Name() }
	require.Equal(t, map[string]trash.Outcome{
		key(1): trash.Purged, key(2): trash.Restored, key(3): trash.Kept, key(4): trash.Kept, key(5): trash.Kept,
		key(6): trash.Purged, key(7): trash.Kept, "stray@.": trash.Kept, "f@.": trash.Kept, "f@f": trash.Kept,
	}, got)
	require.False(t, b.f.Exists(at(1)))
	require.Equal(t, big(2), b.f.Content(path(2)))
	require.Empty(t, b.entry(path(2)).Extended)
	require.Equal(t, []byte("taken"), b.f.Content(path(3)))
	require.Equal(t, big(3), b.f.Content(at(3)))
	require.True(t, b.f.Exists(at(8)))
	require.Empty(t, b.f.OrphanChunks(), "purging frees the data")
	require.Len(t, before.Changes(b.f.Dump(), "/buckets/lake/.seaice-trash"), 1, "O10: only the restored file")
}

func TestPurgeKeepsWhatItCannotJudge(t *testing.T) {
	b := newBed(t)
	b.remove(b.put(path(1), big(1)))
	b.f.Virtual().Advance(grace + time.Hour)
	now := b.f.Virtual().Now()
	before := b.f.Dump()
	rep, err := b.tr.Purge(t.Context(), lake, now, unreadable{fault.New(fault.Corrupt, "read manifest list")})
	require.NoError(t, err)
	require.Equal(t, 1, rep.Count(trash.Kept))
	require.Contains(t, rep.Results[0].Detail, "read manifest list")
	_, err = b.tr.Purge(t.Context(), lake, now, nil)
	is(t, err, fault.Halt)
	_, err = b.tr.Purge(t.Context(), lake, now.Add(time.Hour), references{})
	is(t, err, fault.Unsupported)
	_, err = b.tr.Purge(t.Context(), trash.Selection{}, now, references{})
	is(t, err, fault.Unsupported)
	b.f.Mkdir("/buckets/lake", map[string][]byte{"Seaweed-X-Amz-Object-Lock-Enabled": []byte("Enabled")})
	_, err = b.tr.Purge(t.Context(), lake, now, references{})
	is(t, err, fault.Unsupported)
	b.f.Mkdir("/buckets/lake", map[string][]byte{"Seaweed-X-Amz-Object-Lock-Enabled": nil})
	require.Empty(t, before.Changes(b.f.Dump()))

	// Something is written at its place while it is looked at.
	b.f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpDelete {
			b.f.Reopen().PutFile(c.Path, []byte("newer"))
		}
		return nil
	})
	rep, err = b.tr.Purge(t.Context(), lake, now, references{})
	require.NoError(t, err)
	require.Equal(t, 1, rep.Count(trash.Stale))
	require.Equal(t, []byte("newer"), b.f.Content(trash.Place("r", path(1))))
}

func TestNoGracePurgesAtOnce(t *testing.T) {
	b := bedOn(t, filertest.New(filertest.Options{}), 0)
	keep := b.put(path(2), big(2))
	b.put(path(2), big(22))
	rep := b.remove(b.put(path(1), big(1)), keep)
	require.Equal(t, 1, rep.Count(trash.Purged))
	require.Equal(t, 1, rep.Count(trash.Stale))
	require.False(t, b.f.Exists(path(1)))
	require.Empty(t, b.items(trash.Selection{}))
	require.Empty(t, b.f.OrphanChunks())
	rep, err := b.tr.RestoreRun(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, []string{path(1).Name() + " gone"}, outcomes(rep))
}

func TestEraseStaysAtHome(t *testing.T) {
	b := newBed(t)
	e := b.f.PutFile("/etc/seaice/maps/m", []byte("m"))
	require.NoError(t, b.tr.Erase(t.Context(), e))
	require.NoError(t, b.tr.Erase(t.Context(), e), "a missing one is fine")
	e = b.f.PutFile("/etc/seaice/maps/m", []byte("m"))
	b.f.PutFile("/etc/seaice/maps/m", []byte("newer"))
	is(t, b.tr.Erase(t.Context(), e), fault.Stale)
	for _, e := range []*filer.Entry{b.f.PutFile("/etc/other", nil), b.f.PutFile(path(1), nil), b.entry("/etc/seaice/maps"), b.entry("/etc/seaice")} {
		is(t, b.tr.Erase(t.Context(), e), fault.Halt)
		require.True(t, b.f.Exists(e.Path))
	}
}

func TestDiscardTakesOnlyWhatTheRunStaged(t *testing.T) {
	b := newBed(t)
	own := b.put(root.Join("data", "a-"+b.run.Token()), big(1))
	foreign := b.put(root.Join("data", "b-somebody"), big(2))
	foreignMap := b.put(journal.Maps.Join("m-somebody"), nil)
	changed := b.put(journal.Maps.Join("n-"+b.run.Token()), nil)
	b.put(changed.Path, []byte("newer"))
	d, err := b.tr.Discard(t.Context(), b.run, []journal.File{
		own, foreign, foreignMap, changed, {Path: journal.Maps.Join("gone-" + b.run.Token()), Identity: "x"}, {Path: root.Join("gone-" + b.run.Token()), Identity: "x"},
	})
	require.NoError(t, err)
	require.Equal(t, 1, d.Moved)
	require.Equal(t, 2, d.Gone)
	var kept []filer.Path
	for _, k := range d.Kept {
		kept = append(kept, k.Path)
	}
	require.ElementsMatch(t, []filer.Path{foreign.Path, foreignMap.Path, changed.Path}, kept)

	// What may go better the next time is an error, so that the journal stays open.
	b.f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpMove {
			return &filertest.Fault{Mode: filertest.BeforeEffect}
		}
		return nil
	})
	_, err = b.tr.Discard(t.Context(), b.run, []journal.File{b.put(own.Path+"2", big(3))})
	is(t, err, fault.Transient)
	require.ErrorIs(t, err, filertest.ErrInjected)
	require.True(t, b.f.Exists(own.Path+"2"))
}
