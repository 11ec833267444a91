package trash_test

import (
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
	"github.com/seaice/seaice/trash"
)

// Random histories of removing, restoring, purging and writing again, with
// random faults: the bytes last written at a path, or removed from it, are
// always somewhere until they are purged, and nothing is purged early or while
// referenced.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		f := filertest.New(filertest.Options{Seed: seed})
		f.Mkdir("/buckets/lake", nil)
		quiet := f.Reopen()
		f.OnCall(func(c filertest.Call) *filertest.Fault { return strike(seed, c) })
		moves := uint64(0)
		cutting := &halfway{Filer: f, f: f, cut: func() bool {
			moves++
			return rand.New(rand.NewPCG(seed, moves)).IntN(10) == 0
		}}
		tr, err := trash.New(cutting, f.Virtual(), trash.Options{Grace: grace, Concurrency: 1})
		require.NoError(t, err)
		refs := references{}
		runs, version := 0, 0
		alive := map[string]time.Time{} // content and the earliest time it may be purged
		pick := func() int { return rapid.IntRange(0, count-1).Draw(rt, "file") }
		text := func(p filer.Path) string { return string(quiet.Content(p)) }
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(*rapid.T) {
				i := pick()
				version++
				if at := places(quiet, i); quiet.Exists(path(i)) && len(at) > 1 {
					return // whoever overwrites one of two entries frees the data of both
				}
				if quiet.Exists(path(i)) {
					delete(alive, text(path(i)))
				}
				c := string(content(i)) + fmt.Sprint(version)
				quiet.PutFile(path(i), []byte(c))
				alive[c] = time.Time{}
			},
			"remove": func(*rapid.T) {
				runs++
				_ = resolve(t, f, grace)
				_, _ = removeAll(t, f, cutting, fmt.Sprintf("run-%d", runs), grace)
			},
			"restore": func(*rapid.T) {
				_, _ = tr.Restore(t.Context(), trash.Selection{Bucket: "lake", Paths: []filer.Path{path(pick())}})
			},
			"reference": func(*rapid.T) {
				p := path(pick())
				refs[p] = !refs[p]
			},
			"wait": func(*rapid.T) {
				f.Virtual().Advance(time.Duration(rapid.IntRange(1, 200).Draw(rt, "hours")) * time.Hour)
			},
			"purge": func(*rapid.T) {
				now := f.Virtual().Now()
				before := map[filer.Path]string{}
				for _, p := range quiet.Files(trash.Root("lake")) {
					before[p] = text(p)
				}
				rep, err := tr.Purge(t.Context(), lake, now, refs)
				if err != nil && fault.Of(err) != fault.Transient && fault.Of(err) != fault.Unknown {
					rt.Fatal(err)
				}
				for _, r := range rep.Results {
					if r.Outcome != trash.Purged && r.Outcome != trash.Failed && r.Outcome != trash.Gone {
						continue
					}
					if slices.Contains(contents(quiet), before[r.Trash]) {
						continue
					}
					if refs[r.Path] {
						rt.Fatalf("%s was purged while referenced", r.Trash)
					}
					if since := alive[before[r.Trash]]; now.Before(since) {
						rt.Fatalf("%s was purged at %s, not before %s", r.Trash, now, since)
					}
					delete(alive, before[r.Trash])
				}
			},
			"": func(rt *rapid.T) {
				found := map[string]int{}
				for _, p := range quiet.Files("/buckets/lake") {
					c := text(p)
					found[c]++
					if p.Within(trash.Root("lake")) && alive[c].IsZero() {
						alive[c] = f.Virtual().Now().Add(grace - time.Minute)
					}
					if !p.Within(trash.Root("lake")) {
						alive[c] = time.Time{}
					}
				}
				for c := range alive {
					if found[c] == 0 {
						rt.Fatalf("a file of %d bytes is nowhere", len(c))
					}
				}
				if o := quiet.OrphanChunks(); len(o) > 0 {
					rt.Fatalf("%d chunks belong to nothing", len(o))
				}
			},
		})
		// Undisturbed at last, every file comes to be at one place.
		f.OnCall(nil)
		require.NoError(t, resolve(t, f, grace))
		_, err = again(t, f, "last", grace)
		require.NoError(t, err)
		once := contents(quiet)
		slices.Sort(once)
		if n := len(once); n != len(slices.Compact(once)) {
			rt.Fatal("a file is at two places")
		}
	})
}
