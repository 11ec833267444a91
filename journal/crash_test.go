package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/journal"
)

// life is a whole run: it stages three files, commits two and trashes an input.
func life(ctx context.Context, w *world) error {
	r, err := store(w.f).Open(ctx, options("r"))
	if err != nil {
		return err
	}
	if err := w.stage(ctx, r, name(r, 1), name(r, 2)); err != nil {
		return err
	}
	if err := r.Finish(ctx, journal.Unit{ID: "u", Outputs: []filer.Path{name(r, 1), name(r, 2)}}); err != nil {
		return err
	}
	if err := w.stage(ctx, r, name(r, 3)); err != nil {
		return err
	}
	if err := r.Renew(ctx); err != nil {
		return err
	}
	if err := w.commit(ctx, r, "loc", name(r, 1), name(r, 2)); err != nil {
		return err
	}
	d, err := w.trash.Discard(ctx, r, []journal.File{{Path: name(r, 3), Identity: w.identity(name(r, 3)), Reason: "not used"}})
	if err != nil {
		return err
	}
	if d.Moved+d.Gone != 1 {
		return fmt.Errorf("discarded %+v", d)
	}
	return r.Close(ctx, journal.Committed)
}

// F115, F118, F123, P9: a run is struck at every call in every way. Whoever
// resolves it afterwards finds a whole journal, the referenced files are all
// there, nothing that was staged and is not referenced is left, and the journal
// says what the table says.
func TestF123RunStruckAtEveryCall(t *testing.T) {
	tally := filertest.EveryCall(t, filertest.Scenario{
		Start: func(_ testing.TB, f *filertest.Filer) { createTable(f) },
		Run:   func(t testing.TB, f *filertest.Filer) error { return life(t.Context(), newWorld(t, f)) },
		Reads: true,
		Recover: func(t testing.TB, f *filertest.Filer) error {
			f.Virtual().Advance(time.Hour)
			_, err := newWorld(t, f).resolve(t.Context(), "r")
			return err
		},
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			newWorld(t, f).consistent(t, "r")
			if in.Err == nil && in.Fired {
				require.Equal(t, journal.Committed, load(t, f, "r").Outcome(), "a run that ended well was committed")
			}
		},
	})
	require.Greater(t, tally.Fired, 80)
}

// The resolver itself is struck at every call, and its successor too.
func TestF123ResolverStruckAtEveryCall(t *testing.T) {
	for what, committed := range map[string]bool{"refused": false, "committed": true} {
		t.Run(what, func(t *testing.T) {
			tally := filertest.EveryCall(t, filertest.Scenario{
				Start: func(t testing.TB, f *filertest.Filer) {
					createTable(f)
					w := newWorld(t, f)
					r := open(t, f, "r")
					require.NoError(t, w.stage(t.Context(), r, name(r, 1), name(r, 2), name(r, 3)))
					require.NoError(t, r.Record(t.Context(), journal.Maps.Join("m-"+r.Token())))
					f.PutFile(journal.Maps.Join("m-"+r.Token()), []byte("map"))
					require.NoError(t, r.Decide(t.Context(), journal.Decision{MetadataLocation: "loc"}))
					if committed {
						require.NoError(t, w.commit(t.Context(), r, "loc", name(r, 1)))
					}
					f.Virtual().Advance(time.Hour)
				},
				Run: func(t testing.TB, f *filertest.Filer) error {
					_, err := newWorld(t, f).resolve(t.Context(), "r")
					return err
				},
				Recover: func(t testing.TB, f *filertest.Filer) error {
					_, err := newWorld(t, f).resolve(t.Context(), "r")
					return err
				},
				Reads: true, Deep: true,
				Verify: func(t testing.TB, f *filertest.Filer, _ filertest.Injection) { newWorld(t, f).consistent(t, "r") },
			})
			require.Greater(t, tally.Fired, 80)
		})
	}
}

// A peer resolves the run completely, its lease being over, right before every
// call of the owner, who sleeps there and goes on afterwards. The owner may
// finish or find itself fenced; it never commits behind the resolver's back, and
// never loses a file it committed.
func TestSleepingOwnerIsFenced(t *testing.T) {
	tally := filertest.EveryGap(t, filertest.Scenario{
		Start: func(_ testing.TB, f *filertest.Filer) { createTable(f) },
		Run: func(t testing.TB, f *filertest.Filer) error {
			if err := life(t.Context(), newWorld(t, f)); err != nil && !errors.Is(err, filer.ErrPrecondition) {
				require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
			}
			return nil
		},
		Recover: func(t testing.TB, f *filertest.Filer) error {
			f.Virtual().Advance(time.Hour)
			_, err := newWorld(t, f).resolve(t.Context(), "r")
			return err
		},
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			w := newWorld(t, f)
			st := load(t, f, "r")
			refused := st.Outcome() == journal.Refused
			require.Equal(t, !refused, slices.Contains(w.log(), "loc"))
			for _, p := range w.refs() {
				require.Equal(t, "rows of "+p, string(f.Content(filer.Path(p))))
			}
			// A file that the owner created after the resolver was done is an
			// orphan like any other: named, unreferenced and harmless.
			if !refused {
				w.consistent(t, "r")
			}
		},
	}, func(t testing.TB, peer *filertest.Filer) {
		if len(peer.Files(journal.Root)) == 0 {
			return
		}
		peer.Virtual().Advance(time.Hour)
		_, err := newWorld(t, peer).resolve(t.Context(), "r")
		require.NoError(t, err)
	})
	require.Greater(t, tally.Fired, 20)
}

// Two resolvers at once, and an adopter against a resolver, in every
// interleaving of one whole run between two calls of the other.
func TestResolversDoNotDisturbEachOther(t *testing.T) {
	adopt := func(t testing.TB, f *filertest.Filer) {
		w := newWorld(t, f)
		next, err := store(f).Open(t.Context(), options("next"))
		require.NoError(t, err)
		res, err := store(f).Adopt(t.Context(), load(t, f, "r"), w, next)
		if err != nil {
			require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
			return
		}
		if res.Outcome == journal.Adopted {
			tok := load(t, f, "r").Token()
			for i := range 2 {
				p := root.Join("data", fmt.Sprintf("%05d-%s.parquet", i+1, tok))
				require.True(t, f.Exists(p), "an adopted file is there")
			}
		}
	}
	resolve := func(t testing.TB, f *filertest.Filer) {
		_, err := newWorld(t, f).resolve(t.Context(), "r")
		if err != nil {
			require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
		}
	}
	for what, c := range map[string]struct {
		run, peer func(testing.TB, *filertest.Filer)
	}{
		"resolve, resolve": {resolve, resolve}, "resolve, adopt": {resolve, adopt}, "adopt, resolve": {adopt, resolve},
	} {
		t.Run(what, func(t *testing.T) {
			filertest.EveryGap(t, filertest.Scenario{
				Start: func(t testing.TB, f *filertest.Filer) {
					createTable(f)
					w := newWorld(t, f)
					r := open(t, f, "r")
					require.NoError(t, w.stage(t.Context(), r, name(r, 1), name(r, 2)))
					f.Virtual().Advance(time.Hour)
				},
				Run: func(t testing.TB, f *filertest.Filer) error { c.run(t, f); return nil },
				Recover: func(t testing.TB, f *filertest.Filer) error {
					f.Virtual().Advance(1000 * time.Hour)
					w := newWorld(t, f)
					_, err := w.resolve(t.Context(), "r")
					_, err2 := w.resolve(t.Context(), "next")
					return errors.Join(err, err2)
				},
				Verify: func(t testing.TB, f *filertest.Filer, _ filertest.Injection) {
					w := newWorld(t, f)
					if st := load(t, f, "r"); st.Outcome() == journal.Adopted {
						w.consistent(t, "next")
						return
					}
					w.consistent(t, "r")
				},
			}, c.peer)
		})
	}
}

// F137: after a crash at any call a unit is either read whole, its files named
// before it, or it is not there.
func TestF137UnitsAreResumedWhole(t *testing.T) {
	unit := func(r *journal.Run, i int) journal.Unit {
		return journal.Unit{
			ID: fmt.Sprintf("u%d", i), Outputs: []filer.Path{name(r, 2*i), name(r, 2*i+1)},
			Map: journal.Maps.Join("m-" + r.Token()), Payload: journal.Raw(fmt.Sprintf(`{"rows":%d,"proof":"p%d"}`, i, i)),
		}
	}
	var finished []journal.Unit
	filertest.EveryCall(t, filertest.Scenario{
		Start: func(_ testing.TB, f *filertest.Filer) { createTable(f) },
		Run: func(t testing.TB, f *filertest.Filer) error {
			finished = nil
			r, err := store(f).Open(t.Context(), options("r"))
			for i := 0; i < 3 && err == nil; i++ {
				u := unit(r, i)
				if err = r.Record(t.Context(), append(u.Outputs, u.Map)...); err != nil {
					break
				}
				if err = r.Finish(t.Context(), u); err == nil {
					finished = append(finished, u)
				}
			}
			return err
		},
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			st, err := store(f).Load(t.Context(), uuid, "r")
			if filer.NotFound(err) {
				require.Empty(t, finished)
				return
			}
			require.NoError(t, err)
			units, err := st.Units(t.Context())
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(units), len(finished))
			require.LessOrEqual(t, len(units), len(finished)+1)
			require.Equal(t, finished, append([]journal.Unit(nil), units[:len(finished)]...))
			for _, u := range units {
				require.Len(t, u.Outputs, 2)
				require.NotEmpty(t, u.Payload)
			}
		},
	})
}

// A crash in the midst of pruning leaves a journal that is pruned later and
// never taken for damage.
func TestPruneStruckAtEveryCall(t *testing.T) {
	prune := func(t testing.TB, f *filertest.Filer) error {
		_, err := store(f).Prune(t.Context(), erase(f), journal.PruneOptions{Keep: time.Hour})
		return err
	}
	filertest.EveryCall(t, filertest.Scenario{
		Start: func(t testing.TB, f *filertest.Filer) {
			r := open(t, f, "r")
			for i := range 3 {
				require.NoError(t, r.Record(t.Context(), name(r, i)))
			}
			mp := journal.Maps.Join(uuid, "m-"+r.Token())
			require.NoError(t, r.Record(t.Context(), mp))
			f.PutFile(mp, []byte("map"))
			require.NoError(t, r.Close(t.Context(), journal.Committed))
			open(t, f, "live")
			f.Virtual().Advance(2 * time.Hour)
		},
		Run: prune,
		Recover: func(t testing.TB, f *filertest.Filer) error {
			for st, err := range store(f).List(t.Context()) {
				require.NoError(t, err)
				for _, err := range st.Staged(t.Context()) {
					require.NoError(t, err, "a journal that is being pruned is not damaged")
				}
			}
			return prune(t, f)
		},
		Reads: true, Deep: true,
		Verify: func(t testing.TB, f *filertest.Filer, _ filertest.Injection) {
			require.Equal(t, []filer.Path{journal.Root.Join(uuid, "live.json")}, f.Files(journal.Root))
			require.Empty(t, f.Files(journal.Maps), "its movement maps go with it")
		},
	})
}

// Random histories of one run, its lease and its resolvers, with random faults:
// what Record confirmed is in the journal, what is referenced is never removed,
// and the outcome is the table's.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		f := filertest.New(filertest.Options{Seed: seed})
		createTable(f)
		ctx := t.Context()
		quiet := newWorld(t, f.Reopen())
		w := newWorld(t, f)
		f.OnCall(func(c filertest.Call) *filertest.Fault {
			if rand.New(rand.NewPCG(seed, uint64(c.N))).IntN(10) > 0 {
				return nil
			}
			mode := filertest.Ambiguous
			if !c.Op.Writes() {
				mode = filertest.BeforeEffect
			}
			return &filertest.Fault{Mode: mode}
		})
		var r *journal.Run
		var err error
		for r == nil {
			o := options("r")
			o.Run = fmt.Sprintf("r%d", f.Count())
			if r, err = store(f).Open(ctx, o); err != nil {
				r = nil
			}
		}
		var confirmed []filer.Path
		files := 0
		rt.Repeat(map[string]func(*rapid.T){
			"stage": func(rt *rapid.T) {
				files++
				if r.Record(ctx, name(r, files)) == nil {
					confirmed = append(confirmed, name(r, files))
					quiet.f.PutFile(name(r, files), []byte("rows of "+name(r, files)))
				}
			},
			"commit": func(rt *rapid.T) {
				n := rapid.IntRange(0, len(confirmed)).Draw(rt, "n")
				var want []filer.Path
				for _, p := range confirmed[:n] {
					if quiet.f.Exists(p) {
						want = append(want, p)
					}
				}
				_ = w.commit(ctx, r, fmt.Sprintf("loc%d", files), want...)
			},
			"renew": func(*rapid.T) { _ = r.Renew(ctx) },
			"wait": func(rt *rapid.T) {
				f.Virtual().Advance(time.Duration(rapid.IntRange(1, 5000).Draw(rt, "minutes")) * time.Minute)
			},
			"resolve": func(*rapid.T) {
				st, err := store(f).Load(ctx, uuid, r.ID())
				if err == nil {
					_, err = store(f).Resolve(ctx, st, w, w.trash, journal.ResolveOptions{OrphanAge: age})
					if fault.Is(err, fault.Halt) || fault.Is(err, fault.Corrupt) {
						rt.Fatalf("resolve: %v", err)
					}
				}
			},
			"": func(rt *rapid.T) {
				st, err := store(quiet.f).Load(ctx, uuid, r.ID())
				if err != nil {
					rt.Fatal(err)
				}
				have := map[filer.Path]bool{}
				for p, err := range st.Staged(ctx) {
					if err != nil {
						rt.Fatal(err)
					}
					have[p] = true
				}
				for _, p := range confirmed {
					if !have[p] {
						rt.Fatalf("%s was recorded and is not in the journal", p)
					}
				}
				for _, p := range quiet.refs() {
					if !quiet.f.Exists(filer.Path(p)) {
						rt.Fatalf("%s is referenced and gone", p)
					}
				}
			},
		})
	})
}
