package filertest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

func testUpdate(t *testing.T, s *suite) {
	_, err := s.Filer.Put(s.ctx, s.path("f"), []byte("x"), filer.CreateOptions{Extended: map[string][]byte{"a": []byte("1"), "b": []byte("2")}})
	require.NoError(t, err)
	base := s.stat("f")
	for name, expect := range map[string]map[string][]byte{
		"other value":        {"a": []byte("9")},
		"expected absent":    {"a": nil},
		"expected empty":     {"a": {}},
		"expected present":   {"c": []byte("1")},
		"one of many":        {"a": []byte("1"), "b": []byte("9")},
		"prefix of value":    {"b": []byte("")},
		"longer than value":  {"b": []byte("22")},
		"absent and present": {"a": []byte("1"), "b": nil, "c": nil},
	} {
		_, err := s.Filer.Update(s.ctx, filer.Update{Base: base, Expect: expect, Set: map[string][]byte{"a": []byte(name)}})
		s.is(err, fault.Stale, filer.ErrPrecondition)
		require.Equal(t, base.Extended, s.stat("f").Extended, name)
	}
	got, err := s.Filer.Update(s.ctx, filer.Update{
		Base: base, Expect: filer.Expectation(base, "c", "d"),
		Set: map[string][]byte{"a": []byte("new"), "b": nil, "c": []byte("3")},
	})
	require.NoError(t, err)
	want := map[string][]byte{"a": []byte("new"), "c": []byte("3")}
	require.Equal(t, want, got.Extended)
	now := s.stat("f")
	require.Equal(t, want, now.Extended)
	require.Equal(t, base.Identity(), now.Identity(), "attributes alone do not make another file")
	same(t, []byte("x"), s.content("f"))
	require.Equal(t, map[string][]byte{"a": []byte("1"), "b": []byte("2")}, base.Extended, "entries are immutable")

	_, err = s.Filer.Update(s.ctx, filer.Update{Base: base, Expect: filer.Expectation(base), Set: map[string][]byte{"z": nil}})
	s.is(err, fault.Stale, filer.ErrPrecondition)
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: now, Expect: map[string][]byte{"b": nil, "e": {}}, Set: map[string][]byte{"e": []byte("5")}})
	require.NoError(t, err, "nil and empty assert absence")
	now = s.stat("f")
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: now, Expect: filer.Expectation(now), Set: nil})
	require.NoError(t, err, "nothing to set is fine")

	require.NoError(t, s.Filer.Delete(s.ctx, s.path("f"), filer.Guard{}))
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: now, Expect: filer.Expectation(now), Set: map[string][]byte{"a": nil}})
	s.is(err, fault.Stale, filer.ErrNotFound)
	s.absent("f")
}

func testUpdateContent(t *testing.T, s *suite) {
	_, err := s.Filer.Put(s.ctx, s.path("f"), []byte("one"), filer.CreateOptions{Extended: map[string][]byte{"v": []byte("1")}})
	require.NoError(t, err)
	base := s.stat("f")
	got, err := s.Filer.Update(s.ctx, filer.Update{
		Base: base, Expect: filer.Expectation(base), Set: map[string][]byte{"v": []byte("2")}, Content: []byte("second"),
	})
	require.NoError(t, err)
	require.EqualValues(t, 6, got.Size)
	require.NotEqual(t, base.Identity(), got.Identity())
	require.Equal(t, s.stat("f").Identity(), got.Identity())
	same(t, []byte("second"), s.content("f"))
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: base, Expect: filer.Expectation(base), Content: []byte("third")})
	s.is(err, fault.Stale, filer.ErrPrecondition)
	same(t, []byte("second"), s.content("f"))
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: got, Expect: filer.Expectation(got), Content: []byte("s")})
	require.NoError(t, err)
	same(t, []byte("s"), s.content("f"))
}

// testUpdateData: an update writes the whole entry, so it must not bring back
// data that was replaced since, even if the attributes are the same.
func testUpdateData(t *testing.T, s *suite) {
	ext := map[string][]byte{"k": []byte("v")}
	o := filer.CreateOptions{Replace: true, Extended: ext}
	_, err := s.Filer.Put(s.ctx, s.path("f"), noise(1, filer.InlineLimit+1), o)
	require.NoError(t, err)
	base := s.stat("f")
	want := noise(2, filer.InlineLimit+1)
	_, err = s.Filer.Put(s.ctx, s.path("f"), want, o)
	require.NoError(t, err)
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: base, Expect: filer.Expectation(base), Set: map[string][]byte{"k": []byte("w")}})
	s.is(err, fault.Stale, filer.ErrPrecondition)
	same(t, want, s.content("f"))

	old := s.put("plain", []byte("1"))
	_, err = s.Filer.Put(s.ctx, s.path("plain"), []byte("2"), filer.CreateOptions{Replace: true})
	require.NoError(t, err)
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: old, Set: map[string][]byte{"k": []byte("w")}})
	s.is(err, fault.Stale, filer.ErrPrecondition)
	same(t, []byte("2"), s.content("plain"))
	now := s.stat("plain")
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: now, Set: map[string][]byte{"k": []byte("w")}})
	require.NoError(t, err, "with nothing to expect the entry as a whole is")
}

// testUpdateDirectory: table records are directories.
func testUpdateDirectory(t *testing.T, s *suite) {
	s.put("rec/data/f", nil)
	base := s.stat("rec")
	_, err := s.Filer.Update(s.ctx, filer.Update{
		Base: base, Expect: filer.Expectation(base, "s3tables.metadata"), Set: map[string][]byte{"s3tables.metadata": []byte(`{"v":1}`)},
	})
	require.NoError(t, err)
	now := s.stat("rec")
	require.True(t, now.IsDir)
	require.Equal(t, []byte(`{"v":1}`), now.Extended["s3tables.metadata"])
	_, err = s.Filer.Update(s.ctx, filer.Update{
		Base: base, Expect: filer.Expectation(base, "s3tables.metadata"), Set: map[string][]byte{"s3tables.metadata": []byte("lost")},
	})
	s.is(err, fault.Stale, filer.ErrPrecondition)
	s.stat("rec/data/f")
}

// testUpdateRace: F119. Of many updates from one base exactly one wins, round
// after round, and no round is lost.
func testUpdateRace(t *testing.T, s *suite) {
	_, err := s.Filer.Put(s.ctx, s.path("f"), nil, filer.CreateOptions{Extended: map[string][]byte{"n": []byte("0")}})
	require.NoError(t, err)
	for round := range 5 {
		base := s.stat("f")
		require.Equal(t, fmt.Append(nil, round), base.Extended["n"])
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := s.Filer.Update(s.ctx, filer.Update{
					Base: base, Expect: filer.Expectation(base),
					Set: map[string][]byte{"n": fmt.Append(nil, round+1), "by": fmt.Append(nil, i)},
				})
				switch {
				case err == nil:
					won.Add(1)
				case !isAny(err, []error{filer.ErrPrecondition}) || !fault.Is(err, fault.Stale):
					t.Errorf("loser %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, won.Load(), "round %d", round)
	}
}

func testPatch(t *testing.T, s *suite) {
	_, err := s.Filer.Put(s.ctx, s.path("f"), []byte("x"), filer.CreateOptions{Extended: map[string][]byte{"a": []byte("1"), "b": []byte("2")}})
	require.NoError(t, err)
	base := s.stat("f")
	require.NoError(t, s.Filer.Patch(s.ctx, base, map[string][]byte{"a": []byte("new"), "c": []byte("3")}, s.id("1")))
	now := s.stat("f")
	require.Equal(t, map[string][]byte{"a": []byte("new"), "b": []byte("2"), "c": []byte("3")}, now.Extended)
	same(t, []byte("x"), s.content("f"))
	require.Equal(t, base.Identity(), now.Identity())

	s.is(s.Filer.Patch(s.ctx, base, map[string][]byte{"a": []byte("stale")}, s.id("2")), fault.Stale, filer.ErrPrecondition)
	require.Equal(t, now.Extended, s.stat("f").Extended)
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: now, Expect: filer.Expectation(now), Set: map[string][]byte{"u": []byte("u")}})
	require.NoError(t, err)
	s.is(s.Filer.Patch(s.ctx, now, map[string][]byte{"a": []byte("stale")}, s.id("3")), fault.Stale, filer.ErrPrecondition)

	s.put("rec/f", nil)
	rec := s.stat("rec")
	require.NoError(t, s.Filer.Patch(s.ctx, rec, map[string][]byte{"m": []byte("1")}, s.id("4")))
	require.True(t, s.stat("rec").IsDir)
	require.Equal(t, []byte("1"), s.stat("rec").Extended["m"])

	gone := s.put("gone", nil)
	require.NoError(t, s.Filer.Delete(s.ctx, s.path("gone"), filer.Guard{}))
	s.is(s.Filer.Patch(s.ctx, gone, map[string][]byte{"a": []byte("1")}, s.id("5")), fault.Stale, filer.ErrPrecondition, filer.ErrNotFound)
	s.absent("gone")
}

// id is unique to the test's directory, because a real filer remembers ids.
func (s *suite) id(n string) string { return s.Root.String() + "#" + n }

func testPatchReplay(t *testing.T, s *suite) {
	s.put("f", []byte("x"))
	base := s.stat("f")
	require.NoError(t, s.Filer.Patch(s.ctx, base, map[string][]byte{"n": []byte("1")}, s.id("a")))
	one := s.stat("f")
	require.NoError(t, s.Filer.Patch(s.ctx, base, map[string][]byte{"n": []byte("1")}, s.id("a")), "the answer is replayed")
	require.Equal(t, one.Extended, s.stat("f").Extended)
	require.NoError(t, s.Filer.Patch(s.ctx, one, map[string][]byte{"n": []byte("2")}, s.id("b")))
	require.NoError(t, s.Filer.Patch(s.ctx, base, map[string][]byte{"n": []byte("1")}, s.id("a")), "replayed, not applied again")
	require.Equal(t, []byte("2"), s.stat("f").Extended["n"])
	s.is(s.Filer.Patch(s.ctx, base, map[string][]byte{"n": []byte("3")}, s.id("c")), fault.Stale, filer.ErrPrecondition)
	require.Equal(t, []byte("2"), s.stat("f").Extended["n"])
}

func testMove(t *testing.T, s *suite) {
	for _, size := range []int{0, 7, filer.InlineLimit + 1, 9 << 20} {
		from, to := fmt.Sprintf("from-%d", size), fmt.Sprintf("deep/er/to %%2F\\-%d", size)
		want := noise(uint64(size), size)
		s.stream(from, want, filer.CreateOptions{Extended: map[string][]byte{"keep": []byte("k"), "drop": []byte("d")}})
		e := s.stat(from)
		require.NoError(t, s.Filer.Move(s.ctx, filer.Move{
			From: e, To: s.path(to), ID: s.id(from), Set: map[string][]byte{"new": []byte("n"), "drop": nil},
		}))
		s.absent(from)
		got := s.stat(to)
		require.Equal(t, map[string][]byte{"keep": []byte("k"), "new": []byte("n")}, got.Extended)
		require.Equal(t, e.Identity(), got.Identity(), "a move copies nothing")
		require.Equal(t, e.Size, got.Size)
		require.Equal(t, e.Mtime, got.Mtime)
		same(t, want, s.content(to))
		back := s.stat(to)
		require.NoError(t, s.Filer.Move(s.ctx, filer.Move{From: back, To: s.path(from), ID: s.id("back" + from)}))
		s.absent(to)
		same(t, want, s.content(from))
	}
}

func testMoveReplay(t *testing.T, s *suite) {
	e := s.put("f", []byte("x"))
	m := filer.Move{From: e, To: s.path("g"), ID: s.id("m")}
	require.NoError(t, s.Filer.Move(s.ctx, m))
	require.NoError(t, s.Filer.Move(s.ctx, m), "the answer is replayed")
	s.absent("f")
	same(t, []byte("x"), s.content("g"))
	s.put("f", []byte("newer"))
	require.NoError(t, s.Filer.Move(s.ctx, m))
	same(t, []byte("newer"), s.content("f"))
	same(t, []byte("x"), s.content("g"))
}

func testMoveRefuses(t *testing.T, s *suite) {
	old := s.put("f", []byte("old"))
	_, err := s.Filer.Put(s.ctx, s.path("f"), []byte("new"), filer.CreateOptions{Replace: true})
	require.NoError(t, err)
	s.is(s.Filer.Move(s.ctx, filer.Move{From: old, To: s.path("g"), ID: s.id("1")}), fault.Stale, filer.ErrPrecondition)
	s.absent("g")
	same(t, []byte("new"), s.content("f"))

	cur := s.stat("f")
	s.put("taken", []byte("taken"))
	s.is(s.Filer.Move(s.ctx, filer.Move{From: cur, To: s.path("taken"), ID: s.id("2")}), fault.Stale, filer.ErrExists)
	same(t, []byte("taken"), s.content("taken"))
	same(t, []byte("new"), s.content("f"))
	s.put("dir/x", nil)
	s.is(s.Filer.Move(s.ctx, filer.Move{From: cur, To: s.path("dir"), ID: s.id("3")}), fault.Stale, filer.ErrExists)
	same(t, []byte("new"), s.content("f"))

	gone := s.put("gone", nil)
	require.NoError(t, s.Filer.Delete(s.ctx, s.path("gone"), filer.Guard{}))
	s.is(s.Filer.Move(s.ctx, filer.Move{From: gone, To: s.path("h"), ID: s.id("4")}), fault.Stale, filer.ErrPrecondition, filer.ErrNotFound)
	s.absent("h")

	require.Error(t, s.Filer.Move(s.ctx, filer.Move{From: s.stat("dir"), To: s.path("dir2"), ID: s.id("5")}), "directories do not move")
	s.absent("dir2")
	s.stat("dir/x")

	if s.Other != "" {
		to := s.Other.Join("stolen")
		require.Error(t, s.Filer.Move(s.ctx, filer.Move{From: cur, To: to, ID: s.id("6")}), "another bucket")
		_, err = s.Filer.Stat(s.ctx, to)
		s.is(err, fault.Stale, filer.ErrNotFound)
		same(t, []byte("new"), s.content("f"))
	}
	require.NoError(t, s.Filer.Move(s.ctx, filer.Move{From: cur, To: s.path("g"), ID: s.id("7")}))
	same(t, []byte("new"), s.content("g"))
}

// testMoveRace: of many moves of one file exactly one succeeds and the file is
// at one place.
func testMoveRace(t *testing.T, s *suite) {
	e := s.put("f", []byte("x"))
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			err := s.Filer.Move(s.ctx, filer.Move{From: e, To: s.path(fmt.Sprintf("to-%d", i)), ID: s.id(fmt.Sprint(i))})
			switch {
			case err == nil:
				won.Add(1)
			case !isAny(err, []error{filer.ErrPrecondition, filer.ErrNotFound}) || !fault.Is(err, fault.Stale):
				t.Errorf("loser %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
	require.Len(t, s.names(filer.ListOptions{}), 1)
}

// testHistory runs a random history and compares with a model after each step.
func testHistory(t *testing.T, s *suite) {
	rnd := s.seeded()
	model := map[string]string{}
	names := []string{"a", "b", "c c", "%41"}
	var steps []string
	for i := range 120 {
		from, to := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
		old, had := model[from]
		value := fmt.Sprintf("%d %s", i, noise(uint64(i), rnd.IntN(40)))
		var step string
		var err error
		ok := true
		switch rnd.IntN(5) {
		case 0:
			step, ok = "put "+from, !had
			_, err = s.Filer.Put(s.ctx, s.path(from), []byte(value), filer.CreateOptions{})
		case 1:
			step = "replace " + from
			_, err = s.Filer.Put(s.ctx, s.path(from), []byte(value), filer.CreateOptions{Replace: true})
		case 2:
			step, ok, value = "delete "+from, had, ""
			err = s.Filer.Delete(s.ctx, s.path(from), filer.Guard{})
			delete(model, from)
		case 3:
			_, taken := model[to]
			step, ok = "move "+from+" to "+to, had && !taken
			if !had || from == to {
				continue
			}
			err = s.Filer.Move(s.ctx, filer.Move{From: s.stat(from), To: s.path(to), ID: s.id(fmt.Sprint(i))})
			if ok {
				delete(model, from)
				from, value = to, old
			}
		case 4:
			if !had {
				continue
			}
			e := s.stat(from)
			step = "update " + from
			_, err = s.Filer.Update(s.ctx, filer.Update{Base: e, Expect: filer.Expectation(e, "n"), Set: map[string][]byte{"n": fmt.Append(nil, i)}, Content: []byte(value)})
		}
		steps = append(steps, step)
		require.Equal(t, ok, err == nil, "%v: %v", steps, err)
		if ok && value != "" {
			model[from] = value
		}
		require.Equal(t, sorted(slices.Collect(maps.Keys(model))), s.names(filer.ListOptions{}), "%v", steps)
		for n, want := range model {
			same(t, []byte(want), s.content(n))
		}
	}
}

// testLargeAttributes: a record holds the table's metadata, up to 10 MB.
func testLargeAttributes(t *testing.T, s *suite) {
	const name = "s3tables.metadata"
	big := func(c string) []byte { return bytes.Repeat([]byte(c), 9_900_000) }
	s.put("rec/x", nil)
	base := s.stat("rec")
	_, err := s.Filer.Update(s.ctx, filer.Update{Base: base, Expect: filer.Expectation(base, name), Set: map[string][]byte{name: big("a")}})
	require.NoError(t, err)
	base = s.stat("rec")
	same(t, big("a"), base.Extended[name])
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: base, Expect: filer.Expectation(base), Set: map[string][]byte{name: big("b")}})
	require.NoError(t, err)
	now := s.stat("rec")
	same(t, big("b"), now.Extended[name])
	require.NoError(t, s.Filer.Patch(s.ctx, now, map[string][]byte{name: big("c")}, s.id("1")))
	same(t, big("c"), s.stat("rec").Extended[name])
}
