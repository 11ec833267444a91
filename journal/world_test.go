package journal_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

const (
	record   = filer.Path("/buckets/lake/sales/orders")
	keyToken = "token"
	keyLog   = "log"
	keyRefs  = "refs"
)

// world is a table reduced to what fences and references need: a record whose
// token every commit changes, a log of the metadata locations it has had, and
// the files it references.
type world struct {
	f     *filertest.Filer
	trash *trash.Trash
	// unreadable makes References say so.
	unreadable error
	looks      int
}

func newWorld(t testing.TB, f *filertest.Filer) *world {
	t.Helper()
	tr, err := trash.New(f, f.Virtual(), trash.Options{Grace: 240 * time.Hour, Concurrency: 1})
	require.NoError(t, err)
	return &world{f: f, trash: tr}
}

func erase(f *filertest.Filer) journal.Eraser {
	tr, err := trash.New(f, f.Virtual(), trash.Options{})
	if err != nil {
		panic(err)
	}
	return tr
}

func createTable(f *filertest.Filer) {
	f.Mkdir(record, map[string][]byte{keyToken: []byte("1")})
}

// change swaps the record until it is known whether edit happened.
func (w *world) swap(ctx context.Context, base *filer.Entry, set map[string][]byte) error {
	n, _ := strconv.Atoi(string(base.Extended[keyToken]))
	all := map[string][]byte{keyToken: []byte(strconv.Itoa(n + 1))}
	for k, v := range set {
		all[k] = v
	}
	_, err := w.f.Update(ctx, filer.Update{Base: base, Expect: filer.Expectation(base, keyLog, keyRefs), Set: all})
	return err
}

func (w *world) Bump(ctx context.Context, _ *journal.State) error {
	e, err := w.f.Stat(ctx, record)
	if err != nil {
		return err
	}
	err = w.swap(ctx, e, nil)
	if errors.Is(err, filer.ErrPrecondition) {
		return nil // it has changed since the run was revoked
	}
	return err
}

func (w *world) References(ctx context.Context, st *journal.State) (journal.References, error) {
	w.looks++
	if w.unreadable != nil {
		return journal.References{}, w.unreadable
	}
	e, err := w.f.Stat(ctx, record)
	if err != nil {
		return journal.References{}, err
	}
	refs := strings.Fields(string(e.Extended[keyRefs]))
	out := journal.References{
		Verdict:    journal.NotCommitted,
		Referenced: func(p filer.Path) bool { return slices.Contains(refs, string(p)) },
	}
	log := strings.Fields(string(e.Extended[keyLog]))
	if d := st.Decisions(); len(d) > 0 && slices.Contains(log, d[len(d)-1].MetadataLocation) {
		out.Verdict = journal.CommitFound
	}
	return out, nil
}

// commit is what an owner does at the end: decide, check the fence, swap.
func (w *world) commit(ctx context.Context, r *journal.Run, location string, files ...filer.Path) error {
	if err := r.Decide(ctx, journal.Decision{SnapshotID: 1, MetadataLocation: location}); err != nil {
		return err
	}
	e, err := w.f.Stat(ctx, record)
	if err != nil {
		return err
	}
	if err := r.Check(ctx); err != nil {
		return err
	}
	refs := strings.Fields(string(e.Extended[keyRefs]))
	for _, p := range files {
		refs = append(refs, string(p))
	}
	return w.swap(ctx, e, map[string][]byte{
		keyLog:  []byte(string(e.Extended[keyLog]) + " " + location),
		keyRefs: []byte(strings.Join(refs, " ")),
	})
}

// stage records and creates files as a stage does.
func (w *world) stage(ctx context.Context, r *journal.Run, files ...filer.Path) error {
	if err := r.Record(ctx, files...); err != nil {
		return err
	}
	for _, p := range files {
		if _, err := w.f.Put(ctx, p, []byte("rows of "+p), filer.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// resolve resolves a run until it is closed, moving the clock as it is told.
func (w *world) resolve(ctx context.Context, run string) (journal.Resolution, error) {
	s := store(w.f)
	for range 10 {
		st, err := s.Load(ctx, uuid, run)
		if filer.NotFound(err) {
			return journal.Resolution{}, nil
		}
		if err != nil {
			return journal.Resolution{}, err
		}
		res, err := s.Resolve(ctx, st, w, w.trash, journal.ResolveOptions{OrphanAge: 72 * time.Hour})
		if err != nil || res.Done() || res.Unknown {
			return res, err
		}
		now, err := w.f.Clock(ctx)
		if err != nil {
			return res, err
		}
		w.f.Virtual().Advance(res.Until.Sub(now))
	}
	return journal.Resolution{}, fault.New(fault.Halt, "it does not end")
}

// consistent requires what must hold whenever a run is resolved: a referenced
// file is there with its bytes, a staged file that is not referenced is in the
// trash or was never created, and the journal says what the table says.
func (w *world) consistent(t testing.TB, run string) {
	t.Helper()
	st, err := store(w.f).Load(t.Context(), uuid, run)
	if filer.NotFound(err) {
		return
	}
	require.NoError(t, err)
	require.False(t, st.Live(), "closed")
	e, err := w.f.Stat(t.Context(), record)
	require.NoError(t, err)
	refs := strings.Fields(string(e.Extended[keyRefs]))
	for _, p := range refs {
		require.Equal(t, "rows of "+p, string(w.f.Content(filer.Path(p))), "a referenced file")
	}
	for p, err := range st.Staged(t.Context()) {
		require.NoError(t, err)
		if !slices.Contains(refs, string(p)) && !(p.Within(journal.Maps) && st.Outcome() == journal.Committed) {
			require.False(t, w.f.Exists(p), "%s is staged, not referenced and not removed", p)
		}
	}
	var d []string
	for _, x := range st.Decisions() {
		d = append(d, x.MetadataLocation)
	}
	log := strings.Fields(string(e.Extended[keyLog]))
	in := slices.ContainsFunc(d, func(l string) bool { return slices.Contains(log, l) })
	require.Equal(t, in, st.Outcome() == journal.Committed, "the journal says %q, the table's log is %v", st.Outcome(), log)
	require.Empty(t, w.f.OrphanChunks())
}

// entry looks at p through a handle that nothing disturbs; nil if nothing is
// there.
func (w *world) entry(p filer.Path) *filer.Entry {
	e, err := w.f.Reopen().Stat(context.Background(), p)
	if err != nil {
		return nil
	}
	return e
}

func (w *world) identity(p filer.Path) filer.Identity {
	if e := w.entry(p); e != nil {
		return e.Identity()
	}
	return "none"
}

func (w *world) refs() []string { return strings.Fields(string(w.entry(record).Extended[keyRefs])) }

func (w *world) log() []string { return strings.Fields(string(w.entry(record).Extended[keyLog])) }
