package filertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func testCreateIsExclusive(t *testing.T, s *suite) {
	small, large := []byte("first"), noise(6, filer.InlineLimit+1)
	first := s.put("f", small)
	for _, content := range [][]byte{[]byte("second"), large, nil} {
		_, err := s.Filer.Put(s.ctx, s.path("f"), content, filer.CreateOptions{})
		s.is(err, fault.Stale, filer.ErrExists)
	}
	u, err := s.Filer.Create(s.ctx, s.path("f"), filer.CreateOptions{})
	if err == nil {
		_, err = u.Write(large)
		require.NoError(t, err)
		_, err = u.Commit(s.ctx)
		u.Abort(s.ctx)
	}
	s.is(err, fault.Stale, filer.ErrExists)
	require.Equal(t, first.Identity(), s.stat("f").Identity())
	same(t, small, s.content("f"))

	s.put("dir/f", nil)
	for _, o := range []filer.CreateOptions{{}, {Replace: true}} {
		_, err = s.Filer.Put(s.ctx, s.path("dir"), small, o)
		require.Error(t, err, "a directory is not replaced by a file")
		require.True(t, s.stat("dir").IsDir)
		s.stat("dir/f")
	}
}

// testCreateRace: of many exclusive creations exactly one succeeds.
func testCreateRace(t *testing.T, s *suite) {
	const n = 8
	var won atomic.Int32
	var winner atomic.Int32
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, err := s.Filer.Put(s.ctx, s.path("f"), fmt.Append(nil, i), filer.CreateOptions{})
			switch {
			case err == nil:
				won.Add(1)
				winner.Store(int32(i))
			case !isAny(err, []error{filer.ErrExists}) || !fault.Is(err, fault.Stale):
				t.Errorf("loser %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
	same(t, fmt.Append(nil, winner.Load()), s.content("f"))
}

func testReplace(t *testing.T, s *suite) {
	sizes := []int{5, filer.InlineLimit + 9, 0, 3 << 20}
	for i, size := range sizes {
		want := noise(uint64(i), size)
		var before filer.Identity
		if i > 0 {
			before = s.stat("f").Identity()
		}
		e, err := s.Filer.Put(s.ctx, s.path("f"), want, filer.CreateOptions{Replace: true, Extended: map[string][]byte{"n": fmt.Append(nil, i)}})
		require.NoError(t, err)
		require.NotEqual(t, before, e.Identity())
		same(t, want, s.content("f"))
		require.Equal(t, map[string][]byte{"n": fmt.Append(nil, i)}, s.stat("f").Extended, "attributes are replaced as a whole")
	}
	want := noise(9, 100)
	s.stream("f", want, filer.CreateOptions{Replace: true})
	same(t, want, s.content("f"))
}

func testUploadIsInvisible(t *testing.T, s *suite) {
	u, err := s.Filer.Create(s.ctx, s.path("f"), filer.CreateOptions{})
	require.NoError(t, err)
	want := noise(7, 9<<20)
	_, err = u.Write(want)
	require.NoError(t, err)
	s.absent("f")
	require.Empty(t, s.names(filer.ListOptions{}))
	e, err := u.Commit(s.ctx)
	require.NoError(t, err)
	require.EqualValues(t, len(want), e.Size)
	u.Abort(s.ctx)
	u.Abort(s.ctx)
	_, err = u.Commit(s.ctx)
	require.Error(t, err, "an upload is committed once")
	same(t, want, s.content("f"))
}

func testUploadAbort(t *testing.T, s *suite) {
	for _, size := range []int{0, 10, 9 << 20} {
		u, err := s.Filer.Create(s.ctx, s.path("f"), filer.CreateOptions{})
		require.NoError(t, err)
		_, err = u.Write(noise(8, size))
		require.NoError(t, err)
		u.Abort(s.ctx)
		u.Abort(s.ctx)
		s.absent("f")
		_, err = u.Commit(s.ctx)
		require.Error(t, err, "an aborted upload does not come back")
		s.absent("f")
	}
	require.Empty(t, s.names(filer.ListOptions{}))
}

func testAttributes(t *testing.T, s *suite) {
	value := []byte{0, 1, 0xff, '"', '\n'}
	ext := map[string][]byte{"s3tables.metadata": value, "x-empty": {}, "é": []byte("é")}
	_, err := s.Filer.Put(s.ctx, s.path("f"), []byte("x"), filer.CreateOptions{Mime: "text/x-seaice", Extended: ext})
	require.NoError(t, err)
	value[0] = 9
	e := s.stat("f")
	require.Equal(t, []byte{0, 1, 0xff, '"', '\n'}, e.Extended["s3tables.metadata"])
	require.Equal(t, []byte("é"), e.Extended["é"])
	require.Empty(t, e.Extended["x-empty"])
	require.Equal(t, "text/x-seaice", e.PB.GetAttributes().GetMime())
	s.stream("g", []byte("x"), filer.CreateOptions{Mime: "a/b", Extended: map[string][]byte{"k": []byte("v")}})
	require.Equal(t, map[string][]byte{"k": []byte("v")}, s.stat("g").Extended)
	require.Equal(t, "a/b", s.stat("g").PB.GetAttributes().GetMime())
	s.put("h", nil)
	require.Contains(t, []string{"", octetStream}, s.stat("h").PB.GetAttributes().GetMime(), "the filer leaves the default out")
}

func testDelete(t *testing.T, s *suite) {
	s.is(s.Filer.Delete(s.ctx, s.path("none"), filer.Guard{}), fault.Stale, filer.ErrNotFound)
	for _, size := range []int{0, 5, filer.InlineLimit + 1} {
		s.put("f", noise(1, size))
		require.NoError(t, s.Filer.Delete(s.ctx, s.path("f"), filer.Guard{}))
		s.absent("f")
		s.is(s.Filer.Delete(s.ctx, s.path("f"), filer.Guard{}), fault.Stale, filer.ErrNotFound)
	}
}

func testDeleteGuards(t *testing.T, s *suite) {
	old := s.put("f", []byte("old"))
	cur, err := s.Filer.Put(s.ctx, s.path("f"), []byte("new"), filer.CreateOptions{Replace: true})
	require.NoError(t, err)
	hour := time.Hour
	for name, g := range map[string]filer.Guard{
		"other file":     {Identity: old.Identity()},
		"modified since": {NotModifiedAfter: cur.Mtime.Add(-hour)},
		"both":           {Identity: old.Identity(), NotModifiedAfter: cur.Mtime.Add(hour)},
		"time of right":  {Identity: cur.Identity(), NotModifiedAfter: cur.Mtime.Add(-hour)},
	} {
		s.is(s.Filer.Delete(s.ctx, s.path("f"), g), fault.Stale, filer.ErrPrecondition)
		require.Equal(t, cur.Identity(), s.stat("f").Identity(), name)
	}
	s.is(s.Filer.Delete(s.ctx, s.path("none"), filer.Guard{Identity: old.Identity()}), fault.Stale, filer.ErrNotFound)
	require.NoError(t, s.Filer.Delete(s.ctx, s.path("f"), filer.Guard{Identity: cur.Identity(), NotModifiedAfter: cur.Mtime.Add(hour)}))
	s.absent("f")
	g := s.put("g", []byte("g"))
	require.NoError(t, s.Filer.Delete(s.ctx, s.path("g"), filer.Guard{NotModifiedAfter: g.Newest.Add(time.Second)}))
	s.absent("g")
}

func testDeleteDirectory(t *testing.T, s *suite) {
	s.put("d/f", []byte("x"))
	for _, g := range []filer.Guard{{}, {NotModifiedAfter: s.stat("d").Mtime.Add(time.Hour)}} {
		require.Error(t, s.Filer.Delete(s.ctx, s.path("d"), g))
		require.True(t, s.stat("d").IsDir)
		same(t, []byte("x"), s.content("d/f"))
	}
}

// testUnlink: the entry goes as with Delete; of two entries with the same
// chunks the other can still be read.
func testUnlink(t *testing.T, s *suite) {
	s.is(s.Filer.Unlink(s.ctx, s.path("none"), filer.Guard{}), fault.Stale, filer.ErrNotFound)
	want := noise(3, filer.InlineLimit+1)
	f, other := s.put("f", want), s.put("other", []byte("other"))
	if s.Twin != nil {
		s.Twin(t, f, s.path("g"))
		require.Equal(t, f.Identity(), s.stat("g").Identity())
	}
	s.is(s.Filer.Unlink(s.ctx, s.path("f"), filer.Guard{Identity: other.Identity()}), fault.Stale, filer.ErrPrecondition)
	s.is(s.Filer.Unlink(s.ctx, s.path("f"), filer.Guard{NotModifiedAfter: f.Mtime.Add(-time.Hour)}), fault.Stale, filer.ErrPrecondition)
	same(t, want, s.content("f"))
	require.NoError(t, s.Filer.Unlink(s.ctx, s.path("f"), filer.Guard{Identity: f.Identity()}))
	s.absent("f")
	if s.Twin != nil {
		same(t, want, s.content("g"))
	}
	s.is(s.Filer.Unlink(s.ctx, s.path("f"), filer.Guard{}), fault.Stale, filer.ErrNotFound)

	s.put("d/f", []byte("x"))
	require.Error(t, s.Filer.Unlink(s.ctx, s.path("d"), filer.Guard{}))
	same(t, []byte("x"), s.content("d/f"))
}

func testSubscribe(t *testing.T, s *suite) {
	if s.SkipSubscribe {
		t.Skip("no change feed here")
	}
	since, err := s.Filer.Clock(s.ctx)
	require.NoError(t, err)
	s.put("d/a", []byte("1"))
	a := s.stat("d/a")
	_, err = s.Filer.Update(s.ctx, filer.Update{Base: a, Expect: filer.Expectation(a, "k"), Set: map[string][]byte{"k": []byte("v")}})
	require.NoError(t, err)
	b := s.put("b", []byte("2"))
	require.NoError(t, s.Filer.Move(s.ctx, filer.Move{From: b, To: s.path("moved/b"), ID: "subscribe-move"}))
	require.NoError(t, s.Filer.Delete(s.ctx, s.path("d/a"), filer.Guard{}))
	until, err := s.Filer.Clock(s.ctx)
	require.NoError(t, err)

	var got []string
	last, created := since, since
	for ev, err := range s.Filer.Subscribe(s.ctx, filer.SubscribeOptions{Prefix: s.Root, Since: since, Until: until}) {
		require.NoError(t, err)
		require.False(t, ev.Time.Before(last), "in order of time")
		last = ev.Time
		got = append(got, s.describe(ev)...)
		if ev.New != nil && ev.New.Path == b.Path {
			created = ev.Time
		}
	}
	require.Equal(t, []string{"+d/a", "~d/a", "+b", "+moved/b", "-b", "-d/a"}, got)

	got = nil
	for ev, err := range s.Filer.Subscribe(s.ctx, filer.SubscribeOptions{Prefix: s.Root, Since: since, Until: created}) {
		require.NoError(t, err)
		require.False(t, ev.Time.After(created))
		got = append(got, s.describe(ev)...)
	}
	require.Equal(t, []string{"+d/a", "~d/a", "+b"}, got, "until is inclusive")

	got = nil
	for ev, err := range s.Filer.Subscribe(s.ctx, filer.SubscribeOptions{Prefix: s.path("moved"), Since: since, Until: until}) {
		require.NoError(t, err)
		got = append(got, s.describe(ev)...)
	}
	require.Equal(t, []string{"+moved/b"}, got)
	for ev, err := range s.Filer.Subscribe(s.ctx, filer.SubscribeOptions{Prefix: s.Root, Since: last, Until: until}) {
		require.NoError(t, err)
		require.Fail(t, "since is exclusive", "%+v", ev)
	}
}

// describe names what an event did to files, relative to the root. A rename
// counts as a creation and a removal.
func (s *suite) describe(ev filer.Event) []string {
	s.Helper()
	require.True(s, ev.Old != nil || ev.New != nil)
	if ev.New != nil && ev.New.IsDir || ev.Old != nil && ev.Old.IsDir {
		return nil
	}
	switch {
	case ev.Old == nil:
		return []string{"+" + ev.New.Path.Rel(s.Root)}
	case ev.New == nil:
		return []string{"-" + ev.Old.Path.Rel(s.Root)}
	case ev.Old.Path == ev.New.Path:
		return []string{"~" + ev.New.Path.Rel(s.Root)}
	}
	return []string{"+" + ev.New.Path.Rel(s.Root), "-" + ev.Old.Path.Rel(s.Root)}
}

// testSubscribeLive: without an end the feed waits for what comes.
func testSubscribeLive(t *testing.T, s *suite) {
	if s.SkipSubscribe {
		t.Skip("no change feed here")
	}
	since, err := s.Filer.Clock(s.ctx)
	require.NoError(t, err)
	s.put("0", nil)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var got []string
	for ev, err := range s.Filer.Subscribe(ctx, filer.SubscribeOptions{Prefix: s.Root, Since: since}) {
		if ctx.Err() != nil {
			break
		}
		require.NoError(t, err)
		d := s.describe(ev)
		got = append(got, d...)
		if len(got) == 3 {
			cancel()
			continue
		}
		if len(d) > 0 {
			s.put(fmt.Sprint(len(got)), nil)
		}
	}
	require.Equal(t, []string{"+0", "+1", "+2"}, got)
}

func testCanceled(t *testing.T, s *suite) {
	e := s.put("f", []byte("x"))
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.Filer.Stat(ctx, s.path("f"))
	s.is(err, fault.Canceled)
	_, err = s.Filer.Open(ctx, s.path("f"))
	s.is(err, fault.Canceled)
	for _, err := range s.Filer.List(ctx, s.Root, filer.ListOptions{}) {
		s.is(err, fault.Canceled)
	}
	require.Error(t, s.Filer.Delete(ctx, s.path("f"), filer.Guard{}))
	require.Error(t, s.Filer.Move(ctx, filer.Move{From: e, To: s.path("g"), ID: "canceled"}))
	_, err = s.Filer.Put(ctx, s.path("h"), nil, filer.CreateOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"f"}, s.names(filer.ListOptions{}))
}
