package trash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

// contents are the bytes of all files of the bucket.
func contents(f *filertest.Filer) []string {
	var out []string
	for _, p := range f.Files("/buckets/lake") {
		out = append(out, string(f.Content(p)))
	}
	return out
}

// half leaves file i as a move that was cut short does: at both places, with the
// same chunks.
func half(t testing.TB, f *filertest.Filer, run string, i int) journal.Removal {
	t.Helper()
	e, err := f.Reopen().Stat(t.Context(), path(i))
	require.NoError(t, err)
	rm := journal.Removal{
		File: journal.File{Path: path(i), Identity: e.Identity(), Reason: "expired"},
		To:   trash.Place(run, path(i)), PurgeAfter: f.Virtual().Now().Add(grace), Move: "m",
	}
	f.SetEntry(rm.To.Dir(), e.PB)
	f.SetAttributes(rm.To, map[string][]byte{
		trash.AttrOrigin: []byte(path(i)), trash.AttrRun: []byte(run), trash.AttrPurgeAfter: []byte(rm.PurgeAfter.Format(time.RFC3339Nano)),
	})
	return rm
}

// halfway is a filer that cuts moves short behind their first half, as one that
// restarts does.
type halfway struct {
	filer.Filer
	f *filertest.Filer
	// cut decides for each move.
	cut func() bool
}

func (h *halfway) Move(ctx context.Context, m filer.Move) error {
	if !h.cut() {
		return h.Filer.Move(ctx, m)
	}
	quiet := h.f.Reopen()
	e, err := quiet.Stat(ctx, m.From.Path)
	if err != nil || e.Identity() != m.From.Identity() || quiet.Exists(m.To) {
		return h.Filer.Move(ctx, m)
	}
	pb := proto.CloneOf(e.PB)
	pb.Name = m.To.Name()
	quiet.SetEntry(m.To.Dir(), pb)
	quiet.SetAttributes(m.To, m.Set)
	return fault.New(fault.Unknown, "move "+m.From.Path.String()+": cut short")
}

// Every move is cut short in turn, and then the process goes on or dies. What
// was removed can be brought back and what was not is there; purging in between,
// or removing again, takes no data from anybody.
func TestEveryMoveCutShort(t *testing.T) {
	for what, op := range map[string]func(t testing.TB, f *filertest.Filer, fl filer.Filer){
		"remove": func(t testing.TB, f *filertest.Filer, fl filer.Filer) { _, _ = removeAll(t, f, fl, "one", grace) },
		"restore": func(t testing.TB, f *filertest.Filer, fl filer.Filer) {
			_, err := again(t, f.Reopen(), "one", grace)
			require.NoError(t, err)
			tr, err := trash.New(fl, f.Virtual(), trash.Options{Grace: grace, Concurrency: 1})
			require.NoError(t, err)
			_, _ = tr.Restore(t.Context(), lake)
		},
	} {
		for _, die := range []string{"goes on", "dies"} {
			for k := range count {
				t.Run(fmt.Sprintf("%s, move %d, %s", what, k, die), func(t *testing.T) {
					f := filertest.New(filertest.Options{})
					filled(t, f)
					n, struck := 0, false
					op(t, f, &halfway{Filer: f, f: f, cut: func() bool {
						n++
						if n != k+1 {
							return false
						}
						struck = true
						if die == "dies" {
							f.OnCall(func(filertest.Call) *filertest.Fault {
								return &filertest.Fault{Mode: filertest.CrashBefore}
							})
						}
						return true
					}})
					require.True(t, struck)
					f = f.Reopen()
					// Another run removes what is at its origin; then the first trash is due,
					// and the second is not.
					half := f.Virtual().Now()
					f.Virtual().Advance(grace / 2)
					require.NoError(t, resolve(t, f, grace))
					_, err := again(t, f, "two", grace)
					require.NoError(t, err)
					require.Empty(t, f.Files(root))
					f.Virtual().Advance(grace/2 + time.Minute)
					tr := newTrash(t, f, grace)
					rep, err := tr.Purge(t.Context(), lake, half.Add(grace+time.Minute), references{})
					require.NoError(t, err)
					purged := map[filer.Path]bool{}
					for _, r := range rep.Results {
						require.Equal(t, trash.Purged, r.Outcome, "%v", r)
						purged[r.Path] = true
					}
					rep, err = tr.Restore(t.Context(), lake)
					require.NoError(t, err)
					require.Empty(t, rep.Problems())
					for i := range count {
						if purged[path(i)] {
							require.Empty(t, places(f, i))
							continue
						}
						require.Equal(t, []filer.Path{path(i)}, places(f, i))
						require.Equal(t, content(i), f.Content(path(i)))
						e, err := f.Stat(t.Context(), path(i))
						require.NoError(t, err)
						require.Empty(t, e.Extended)
					}
					require.Empty(t, f.OrphanChunks())
				})
			}
		}
	}
}

// A file at two places is one file: whatever is done next ends with it at one
// of them, with all its bytes.
func TestHalfMovesLoseNothing(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(t testing.TB, b *bed, rm journal.Removal)
		want func(rm journal.Removal) filer.Path
	}{
		"remove goes on": {func(t testing.TB, b *bed, rm journal.Removal) {
			require.Equal(t, 1, ptr(b.remove(rm.File)).Count(trash.Moved))
		}, func(rm journal.Removal) filer.Path { return rm.To }},
		"restore takes it back": {func(t testing.TB, b *bed, _ journal.Removal) {
			rep, err := b.tr.Restore(t.Context(), lake)
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Restored))
		}, func(rm journal.Removal) filer.Path { return rm.Path }},
		"repair takes it back": {func(t testing.TB, b *bed, rm journal.Removal) {
			require.NoError(t, b.tr.Repair(t.Context(), b.run, []journal.Removal{rm}))
		}, func(rm journal.Removal) filer.Path { return rm.Path }},
		"purge deletes no data": {func(t testing.TB, b *bed, _ journal.Removal) {
			b.f.Virtual().Advance(2 * grace)
			rep, err := b.tr.Purge(t.Context(), lake, b.f.Virtual().Now(), references{})
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Restored))
		}, func(rm journal.Removal) filer.Path { return rm.Path }},
		"purge of a referenced file": {func(t testing.TB, b *bed, rm journal.Removal) {
			b.f.Virtual().Advance(2 * grace)
			rep, err := b.tr.Purge(t.Context(), lake, b.f.Virtual().Now(), references{rm.Path: true})
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Restored))
		}, func(rm journal.Removal) filer.Path { return rm.Path }},
		"its origin grew": {func(t testing.TB, b *bed, rm journal.Removal) {
			// Somebody appended in place: other identity, shared chunks.
			pb := b.entry(rm.Path).PB
			pb.Attributes.Mtime++
			b.f.SetEntry(rm.Path.Dir(), pb)
			b.f.Virtual().Advance(2 * grace)
			rep, err := b.tr.Purge(t.Context(), lake, b.f.Virtual().Now(), references{})
			require.NoError(t, err)
			require.Equal(t, 1, rep.Count(trash.Restored))
		}, func(rm journal.Removal) filer.Path { return rm.Path }},
	} {
		t.Run(what, func(t *testing.T) {
			for i := range 2 { // inline and in chunks
				if i == 0 && what == "its origin grew" {
					continue // two inline entries share nothing
				}
				b := newBed(t)
				b.put(path(i), content(i))
				rm := half(t, b.f, "r", i)
				c.do(t, b, rm)
				require.Equal(t, []filer.Path{c.want(rm)}, places(b.f, i))
				require.Equal(t, content(i), b.f.Content(c.want(rm)))
				require.Empty(t, b.f.OrphanChunks())
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// A move that is being made looks like one that was cut short. It ends while
// somebody settles it, at any call but between the two that the lock of the kept
// entry holds together: nothing is lost, whichever way the move goes.
func TestMovesUnderWayAreNotMistaken(t *testing.T) {
	settle := map[string]func(t testing.TB, b *bed, rm journal.Removal){
		"remove":  func(t testing.TB, b *bed, rm journal.Removal) { b.remove(rm.File) },
		"restore": func(t testing.TB, b *bed, _ journal.Removal) { _, _ = b.tr.Restore(t.Context(), lake) },
		"repair": func(t testing.TB, b *bed, rm journal.Removal) {
			require.NoError(t, b.tr.Repair(t.Context(), b.run, []journal.Removal{rm}))
		},
		"purge": func(t testing.TB, b *bed, _ journal.Removal) {
			_, err := b.tr.Purge(t.Context(), lake, b.f.Virtual().Now(), references{path(1): true})
			require.NoError(t, err)
		},
	}
	for what, do := range settle {
		for way, second := range map[string]func(rm journal.Removal) filer.Path{
			"trashing":  func(rm journal.Removal) filer.Path { return rm.Path },
			"restoring": func(rm journal.Removal) filer.Path { return rm.To },
		} {
			t.Run(what+" while "+way, func(t *testing.T) {
				var rm journal.Removal
				patched := false
				filertest.EveryGap(t, filertest.Scenario{
					Start: func(t testing.TB, f *filertest.Filer) {
						b := bedOn(t, f, grace)
						b.put(path(1), content(1))
						rm = half(t, f, "again", 1)
						if what == "purge" {
							f.Virtual().Advance(2 * grace)
						}
					},
					Run: func(t testing.TB, f *filertest.Filer) error {
						r, err := journal.New(f, f.Virtual()).Open(t.Context(), optionsOf("again"))
						if err != nil {
							return err
						}
						patched = false
						f.OnCall(func(c filertest.Call) *filertest.Fault {
							patched = patched || c.Op == filertest.OpUnlink
							return nil
						})
						do(t, &bed{TB: t, f: f, run: r, tr: newTrash(t, f, grace)}, rm)
						return nil
					},
					Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
						at := places(f, 1)
						require.Len(t, at, 1, "after %s", in)
						require.Equal(t, content(1), f.Content(at[0]))
					},
					Pick: func(c filertest.Call) bool { return c.Op != filertest.OpUnlink },
				}, func(t testing.TB, peer *filertest.Filer) {
					// The second half of the move, if it is still to come.
					p := second(rm)
					e, err := peer.Stat(t.Context(), p)
					if err != nil || patched || len(places(peer, 1)) < 2 {
						return
					}
					require.NoError(t, peer.Unlink(t.Context(), p, filer.Guard{Identity: e.Identity()}))
				})
			})
		}
	}
}

// Through a filer without transactions nothing can be patched under the lock:
// what looks cut short is given time to end, and then settled.
func TestHalfMovesWithoutTransactions(t *testing.T) {
	for what, ends := range map[string]bool{"cut short": false, "ends meanwhile": true} {
		t.Run(what, func(t *testing.T) {
			b := bedOn(t, filertest.New(filertest.Options{Capabilities: &filer.Capabilities{ConditionalUpdate: true}}), grace)
			b.put(path(1), content(1))
			rm := half(t, b.f, "r", 1)
			b.f.OnCall(func(c filertest.Call) *filertest.Fault {
				if ends && c.Op == filertest.OpPatch {
					peer := b.f.Reopen()
					require.NoError(t, peer.Unlink(t.Context(), rm.Path, filer.Guard{}))
				}
				return nil
			})
			before := b.f.Virtual().Now()
			require.NoError(t, b.tr.Repair(t.Context(), b.run, []journal.Removal{rm}))
			require.GreaterOrEqual(t, b.f.Virtual().Now().Sub(before), 30*time.Second)
			want := rm.Path
			if ends {
				want = rm.To
			}
			require.Equal(t, []filer.Path{want}, places(b.f, 1))
			require.Equal(t, content(1), b.f.Content(want))
		})
	}
}

// Repair gives a file whose move was cut short behind the rename the attributes
// it should have, and leaves all else.
func TestRepairLabels(t *testing.T) {
	b := newBed(t)
	b.put(path(1), content(1))
	rm := half(t, b.f, "r", 1)
	require.NoError(t, b.f.Unlink(t.Context(), path(1), filer.Guard{}))
	b.f.SetAttributes(rm.To, map[string][]byte{trash.AttrOrigin: nil, trash.AttrRun: nil, trash.AttrPurgeAfter: nil})
	require.NoError(t, b.tr.Repair(t.Context(), b.run, []journal.Removal{rm}))
	it := b.items(trash.Selection{})[0]
	require.Equal(t, path(1), it.Origin)
	require.True(t, rm.PurgeAfter.Equal(it.PurgeAfter))
	require.Equal(t, "expired", it.Reason)
	before := b.f.Dump()
	other := rm
	other.Identity = "another file"
	require.NoError(t, b.tr.Repair(t.Context(), b.run, []journal.Removal{rm, other, {File: journal.File{Path: path(3)}, To: trash.Place("r", path(3))}}))
	require.Empty(t, before.Changes(b.f.Dump()))
}

// refusing is a filer that refuses the first move of every file and remembers
// that under its id, as filers do.
type refusing struct {
	filer.Filer
	ids map[string]bool
}

func (r *refusing) Move(ctx context.Context, m filer.Move) error {
	if len(r.ids) == 0 {
		r.ids[m.ID] = true
	}
	if r.ids[m.ID] {
		return fault.Wrap(fault.Stale, "move "+m.From.Path.String(), filer.ErrPrecondition)
	}
	return r.Filer.Move(ctx, m)
}

// A refusal that does not hold any more is not replayed for ever: the next try
// has an id of its own.
func TestRefusedMovesGetANewID(t *testing.T) {
	b := newBed(t)
	f := b.put(path(1), content(1))
	tr, err := trash.New(&refusing{Filer: b.f, ids: map[string]bool{}}, b.f.Virtual(), trash.Options{Grace: grace})
	require.NoError(t, err)
	rep, err := tr.Remove(t.Context(), b.run, trash.Batch{Files: []journal.File{f}, Allowed: inTable})
	require.NoError(t, err)
	require.Equal(t, 1, rep.Count(trash.Moved))
	tr, err = trash.New(&refusing{Filer: b.f, ids: map[string]bool{}}, b.f.Virtual(), trash.Options{Grace: grace})
	require.NoError(t, err)
	rep, err = tr.Restore(t.Context(), lake)
	require.NoError(t, err)
	require.Equal(t, 1, rep.Count(trash.Restored))
}
