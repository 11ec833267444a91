package filertest_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/measure"
)

const root filer.Path = "/buckets/lake/ns/t"

func TestSuiteOnFake(t *testing.T) {
	for name, o := range map[string]filertest.Options{
		"default": {},
		"small":   {ChunkSize: 300_001, PageSize: 3},
		"skewed":  {Skew: 2 * time.Hour},
		"cipher":  {Capabilities: &filer.Capabilities{ConditionalUpdate: true, Transactions: true, Cipher: true}},
	} {
		t.Run(name, func(t *testing.T) {
			filertest.Suite(t, func(*testing.T) filertest.Env {
				f := filertest.New(o)
				return filertest.Env{
					Filer: f, Root: root, Other: "/buckets/other/x", Skew: o.Skew,
					Twin: func(_ *testing.T, e *filer.Entry, to filer.Path) {
						pb := proto.CloneOf(e.PB)
						pb.Name = to.Name()
						f.SetEntry(to.Dir(), pb)
					},
				}
			})
		})
	}
}

func TestSnapshotRestoreAndFork(t *testing.T) {
	f := filertest.New(filertest.Options{})
	f.PutFile(root.Join("a"), []byte("1"))
	empty := f.Dump()
	st := f.Snapshot()
	big := make([]byte, 1<<20)
	f.PutFile(root.Join("a"), big)
	f.PutFile(root.Join("b"), []byte("2"))
	full := f.Dump()
	fork := f.Fork()
	f.Restore(st)
	require.Equal(t, empty, f.Dump())
	require.Equal(t, full, fork.Dump())
	require.Equal(t, big, fork.Content(root.Join("a")), "chunks come with the state")

	fork.RemoveAll(root)
	fork.Virtual().Advance(time.Hour)
	require.Equal(t, empty, f.Dump())
	require.Equal(t, filertest.Epoch, f.Virtual().Now())
	f.PutFile(root.Join("c"), nil)
	f.Restore(st)
	require.Equal(t, empty, f.Dump(), "a snapshot can be restored again and again")
	require.Equal(t, []byte("1"), f.Content(root.Join("a")))
}

// A random history on several copies of the state stays equal to a plain map.
func TestTreeAgainstModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type world struct {
			f     *filertest.Filer
			model map[filer.Path]string
		}
		worlds := []world{{filertest.New(filertest.Options{PageSize: 2}), map[filer.Path]string{}}}
		names := rapid.SampledFrom([]string{"a", "ab", "b", "b/c", "b/d", "\\", "é", "z z"})
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			w := worlds[rapid.IntRange(0, len(worlds)-1).Draw(r, "world")]
			p := root.Join(names.Draw(r, "name"))
			if p == root.Join("b") {
				p = root.Join("b!")
			}
			switch rapid.IntRange(0, 3).Draw(r, "op") {
			case 0, 1:
				v := rapid.StringN(0, 5, 20).Draw(r, "value")
				w.f.PutFile(p, []byte(v))
				w.model[p] = v
			case 2:
				err := w.f.Delete(context.Background(), p, filer.Guard{})
				_, had := w.model[p]
				require.Equal(r, had, err == nil)
				delete(w.model, p)
			case 3:
				copied := map[filer.Path]string{}
				for k, v := range w.model {
					copied[k] = v
				}
				worlds = append(worlds, world{w.f.Fork(), copied})
			}
		}
		for _, w := range worlds {
			got := map[filer.Path]string{}
			for _, p := range w.f.Files("/") {
				got[p] = string(w.f.Content(p))
			}
			require.Equal(r, w.model, got)
			var listed []string
			for e, err := range w.f.List(context.Background(), root, filer.ListOptions{}) {
				require.NoError(r, err)
				listed = append(listed, e.Path.Name())
			}
			require.IsNonDecreasing(r, listed)
		}
	})
}

func TestEntriesAreCopies(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{})
	f.Mkdir(root, map[string][]byte{"k": []byte("v")})
	f.PutFile(root.Join("f"), make([]byte, 1<<20))
	before := f.Dump()
	e, err := f.Stat(ctx, root)
	require.NoError(t, err)
	e.Extended["k"] = []byte("changed")
	e.PB.Attributes.Mtime = 0
	for e, err := range f.List(ctx, root, filer.ListOptions{}) {
		require.NoError(t, err)
		e.PB.Chunks[0] = nil
		e.PB.Attributes.Mtime = 0
	}
	set := map[string][]byte{"x": []byte("1")}
	base, err := f.Stat(ctx, root)
	require.NoError(t, err)
	_, err = f.Update(ctx, filer.Update{Base: base, Expect: filer.Expectation(base), Set: set})
	require.NoError(t, err)
	set["x"][0] = '9'
	base.Extended["k"] = nil
	now, err := f.Stat(ctx, root)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"k": []byte("v"), "x": []byte("1")}, now.Extended)
	require.Len(t, before.Changes(f.Dump()), 1)
}

func TestReplayForgets(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{})
	e := f.PutFile(root.Join("f"), []byte("x"))
	set := map[string][]byte{"n": []byte("1")}
	require.NoError(t, f.Patch(ctx, e, set, "id"))
	f.Virtual().Advance(2 * time.Minute)
	require.NoError(t, f.Patch(ctx, e, set, "id"), "replayed for two minutes")
	f.Virtual().Advance(time.Nanosecond)
	require.ErrorIs(t, f.Patch(ctx, e, set, "id"), filer.ErrPrecondition, "applied anew, on what is there now")

	now, err := f.Stat(ctx, e.Path)
	require.NoError(t, err)
	m := filer.Move{From: now, To: root.Join("g"), ID: "move"}
	require.NoError(t, f.Move(ctx, m))
	require.NoError(t, f.Move(ctx, m))
	f.ForgetRequests()
	require.NoError(t, f.Move(ctx, m), "forgotten, but it can be seen to have happened")
	f.SetAttributes(root.Join("g"), map[string][]byte{"other": nil, "k": []byte("v")})
	f.ForgetRequests()
	require.ErrorIs(t, f.Move(ctx, m), filer.ErrNotFound)

	g, err := f.Stat(ctx, root.Join("g"))
	require.NoError(t, err)
	f.PutFile(root.Join("h"), nil)
	refused := filer.Move{From: g, To: root.Join("h"), ID: "refused"}
	require.ErrorIs(t, f.Move(ctx, refused), filer.ErrExists)
	f.RemoveAll(root.Join("h"))
	require.ErrorIs(t, f.Move(ctx, refused), filer.ErrExists, "a refusal is replayed too")
	require.Error(t, f.Move(ctx, filer.Move{From: g, To: "/buckets/other/g", ID: "o"}))
}

// F12 of the measured facts: an old filer ignores conditions and overwrites.
func TestOldFiler(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{Capabilities: &filer.Capabilities{}})
	c, err := f.Probe(ctx, root)
	require.NoError(t, err)
	require.False(t, c.ConditionalUpdate)
	e := f.PutFile(root.Join("f"), nil)
	_, err = f.Update(ctx, filer.Update{Base: e, Expect: map[string][]byte{"k": []byte("wrong")}, Set: map[string][]byte{"k": []byte("v")}})
	require.NoError(t, err)
	now, err := f.Stat(ctx, e.Path)
	require.NoError(t, err)
	require.Equal(t, []byte("v"), now.Extended["k"])
	require.True(t, fault.Is(f.Patch(ctx, now, map[string][]byte{"k": nil}, "id"), fault.Unsupported))
	m := filer.Move{From: now, To: root.Join("g"), ID: "id"}
	require.NoError(t, f.Move(ctx, m), "renamed")
	require.NoError(t, f.Move(ctx, m), "it can be seen to have happened")
	f.PutFile(now.Path, nil)
	require.ErrorIs(t, f.Move(ctx, m), filer.ErrPrecondition)
	f.SetTimes(root.Join("g"), filertest.Times{})
	require.True(t, fault.Is(f.Delete(ctx, root.Join("g"), filer.Guard{}), fault.Unsupported))
}

func TestSubscribeUntilMovesTheClock(t *testing.T) {
	clk := clock.NewVirtual(filertest.Epoch)
	f := filertest.New(filertest.Options{Clock: clk, Skew: time.Minute})
	f.PutFile(root.Join("f"), nil)
	until := filertest.Epoch.Add(10 * time.Minute)
	n := 0
	for _, err := range f.Subscribe(t.Context(), filer.SubscribeOptions{Prefix: root, Since: filertest.Epoch, Until: until}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n, "the directory itself is not below it")
	require.Equal(t, until, clk.Now().Add(time.Minute), "the filer's clock reached it")
}

func TestReadCounts(t *testing.T) {
	f := filertest.New(filertest.Options{ChunkSize: 1000})
	p := root.Join("f")
	f.PutFile(p, make([]byte, 2500))
	_, _, err := filer.ReadAll(t.Context(), f, p, 5000)
	require.NoError(t, err)
	require.Equal(t, map[filer.Path]filertest.Reads{p: {Opens: 1, Calls: 3, Bytes: 2500}}, f.ReadCounts())
	require.Empty(t, f.Reopen().ReadCounts(), "a new handle counts from zero")
}

func TestClosedHandle(t *testing.T) {
	f := filertest.New(filertest.Options{})
	f.PutFile(root.Join("f"), []byte("x"))
	o, err := f.Open(t.Context(), root.Join("f"))
	require.NoError(t, err)
	require.NoError(t, o.Close())
	_, err = io.ReadAll(o.Stream(0, -1))
	require.Error(t, err)
	require.NoError(t, f.Close())
	_, err = f.Stat(t.Context(), root)
	require.Error(t, err)
	_, err = f.Reopen().Stat(t.Context(), root)
	require.NoError(t, err)
}

// A million entries in one directory list in order, in pages and from anywhere.
func TestMillionEntries(t *testing.T) {
	n := 1_000_000
	if measure.Race || testing.Short() {
		n = 50_000
	}
	f := filertest.New(filertest.Options{})
	pb := &filer_pb.Entry{Attributes: &filer_pb.FuseAttributes{Mtime: 1, FileSize: 3}, Content: []byte("abc")}
	for i := range n {
		pb.Name = fmt.Sprintf("n-%07d", (i*7919)%n)
		f.SetEntry(root, pb)
	}
	count, last := 0, ""
	for e, err := range f.List(t.Context(), root, filer.ListOptions{}) {
		require.NoError(t, err)
		if name := e.Path.Name(); name <= last {
			t.Fatalf("%s after %s", name, last)
		}
		last = e.Path.Name()
		count++
	}
	require.Equal(t, n, count)
	var got []string
	for e, err := range f.List(t.Context(), root, filer.ListOptions{After: "n-0049990", Limit: 2}) {
		require.NoError(t, err)
		got = append(got, e.Path.Name())
	}
	require.Equal(t, []string{"n-0049991", "n-0049992"}, got)
	st := f.Snapshot()
	require.NoError(t, f.Delete(t.Context(), root.Join("n-0000005"), filer.Guard{}))
	require.False(t, f.Exists(root.Join("n-0000005")))
	f.Restore(st)
	require.True(t, f.Exists(root.Join("n-0000005")))
}

func TestManyHandlesAtOnce(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{PageSize: 5, ChunkSize: 1000})
	f.PutFile(root.Join("shared"), nil)
	const workers, each = 6, 40
	var wg sync.WaitGroup
	for w := range workers {
		h := f
		if w%2 == 1 {
			h = f.Reopen()
		}
		wg.Go(func() {
			for i := range each {
				p := root.Join(fmt.Sprintf("w%d/%d", w, i))
				e, err := h.Put(ctx, p, make([]byte, 100*i), filer.CreateOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				for try := 0; ; try++ {
					s, err := h.Stat(ctx, root.Join("shared"))
					if err != nil {
						t.Error(err)
						return
					}
					n := len(s.Extended["n"])
					_, err = h.Update(ctx, filer.Update{Base: s, Expect: filer.Expectation(s, "n"), Set: map[string][]byte{"n": make([]byte, n+1)}})
					if err == nil {
						break
					}
				}
				if i%3 == 0 {
					if err := h.Move(ctx, filer.Move{From: e, To: p.Dir().Join("moved", p.Name()), ID: p.String()}); err != nil {
						t.Error(err)
					}
				}
				for _, err := range h.List(ctx, root, filer.ListOptions{}) {
					if err != nil {
						t.Error(err)
					}
				}
				fork := h.Fork()
				fork.RemoveAll(root)
				_ = h.Dump()
			}
		})
	}
	wg.Wait()
	s, err := f.Stat(ctx, root.Join("shared"))
	require.NoError(t, err)
	require.Len(t, s.Extended["n"], workers*each, "no update is lost")
	require.Len(t, f.Files(root), 1+workers*each)
	require.Empty(t, f.OrphanChunks())
}
