package filertest

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

func isAny(err error, sentinels []error) bool {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

func testPutAndRead(t *testing.T, s *suite) {
	for _, size := range []int{0, 1, filer.InlineLimit, filer.InlineLimit + 1, 8<<20 - 1, 8 << 20, 8<<20 + 1, 20 << 20} {
		want := noise(uint64(size), size)
		for _, way := range []string{"put", "stream"} {
			if size > 9<<20 && way == "put" {
				continue
			}
			name := fmt.Sprintf("%s-%d", way, size)
			var e *filer.Entry
			if way == "put" {
				e = s.put(name, want)
			} else {
				e = s.stream(name, want, filer.CreateOptions{})
			}
			require.Equal(t, s.path(name), e.Path)
			require.Equal(t, int64(size), e.Size, name)
			require.False(t, e.IsDir)
			got := s.stat(name)
			require.Equal(t, int64(size), got.Size, name)
			require.Equal(t, e.Identity(), got.Identity(), "%s: the entry as written is the entry as read", name)
			if way == "put" && size > 0 && size <= filer.InlineLimit && len(got.PB.GetContent()) > 0 {
				require.Empty(t, got.PB.GetChunks(), "%s: inline content has no chunks", name)
			}
			same(t, want, s.content(name))
		}
	}
	want := text(3 << 20)
	s.stream("compressible", want, filer.CreateOptions{Mime: "text/plain"})
	same(t, want, s.content("compressible"))
	s.stream("deep/er/file", []byte("x"), filer.CreateOptions{})
	require.True(t, s.stat("deep").IsDir, "parents are made")
	require.True(t, s.stat("deep/er").IsDir)
}

func testRangedReads(t *testing.T, s *suite) {
	rnd := s.seeded()
	for name, want := range map[string][]byte{"big": noise(1, 9<<20+17), "inline": noise(2, 5000), "text": text(1 << 20), "empty": nil} {
		s.stream(name, want, filer.CreateOptions{})
		o, err := s.Filer.Open(s.ctx, s.path(name))
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), o.Size())
		require.Equal(t, s.path(name), o.Entry().Path)
		for range 20 {
			off := rnd.Int64N(int64(len(want)) + 1)
			b := make([]byte, rnd.IntN(1<<18))
			n, err := o.ReadAt(b, off)
			left := int64(len(want)) - off
			if int64(len(b)) > left {
				require.ErrorIs(t, err, io.EOF)
				require.EqualValues(t, left, n)
			} else {
				require.NoError(t, err)
				require.Equal(t, len(b), n)
			}
			same(t, want[off:off+int64(n)], b[:n])
		}
		for _, off := range []int64{int64(len(want)), int64(len(want)) + 1, 1 << 40} {
			n, err := o.ReadAt(make([]byte, 1), off)
			require.Zero(t, n)
			require.ErrorIs(t, err, io.EOF, "read behind the end")
		}
		_, err = o.ReadAt(make([]byte, 1), -1)
		require.Error(t, err)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				half := int64(len(want)) / 5 * int64(i)
				b := make([]byte, min(70_000, int64(len(want))-half))
				n, err := o.ReadAt(b, half)
				if err != nil && !errors.Is(err, io.EOF) || n != len(b) || string(b) != string(want[half:half+int64(n)]) {
					t.Errorf("concurrent read of %s at %d: %d bytes, %v", name, half, n, err)
				}
			})
		}
		wg.Wait()
		require.NoError(t, o.Close())
	}
}

func testStreams(t *testing.T, s *suite) {
	want := noise(3, 9<<20+5)
	s.stream("f", want, filer.CreateOptions{})
	o, err := s.Filer.Open(s.ctx, s.path("f"))
	require.NoError(t, err)
	defer o.Close()
	size := int64(len(want))
	for _, r := range []struct{ off, n int64 }{
		{0, -1}, {0, 0}, {0, 1}, {1, 8<<20 - 1}, {8<<20 - 3, 6}, {size - 1, 1}, {size - 1, 100}, {size, -1}, {size, 5}, {4 << 20, -1},
	} {
		st := o.Stream(r.off, r.n)
		got, err := io.ReadAll(st)
		require.NoError(t, err, "%+v", r)
		end := size
		if r.n >= 0 {
			end = min(size, r.off+r.n)
		}
		same(t, want[r.off:end], got)
		require.NoError(t, st.Close())
	}
	st := o.Stream(0, -1)
	_, err = io.ReadFull(st, make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, st.Close(), "a stream may be left half read")
}

func testReadAll(t *testing.T, s *suite) {
	s.put("f", noise(4, 1000))
	b, e, err := filer.ReadAll(s.ctx, s.Filer, s.path("f"), 1000)
	require.NoError(t, err)
	require.Len(t, b, 1000)
	require.Equal(t, s.stat("f").Identity(), e.Identity())
	_, _, err = filer.ReadAll(s.ctx, s.Filer, s.path("f"), 999)
	s.is(err, fault.TooLarge)
	_, _, err = filer.ReadAll(s.ctx, s.Filer, s.path("none"), 999)
	s.is(err, fault.Stale, filer.ErrNotFound)
}

func testOpenRefuses(t *testing.T, s *suite) {
	_, err := s.Filer.Open(s.ctx, s.path("none"))
	s.is(err, fault.Stale, filer.ErrNotFound)
	require.True(t, filer.NotFound(err))
	s.put("d/f", nil)
	_, err = s.Filer.Open(s.ctx, s.path("d"))
	require.Error(t, err, "a directory is no file")
}

func testStat(t *testing.T, s *suite) {
	s.absent("none")
	s.absent("none/deeper")
	before, err := s.Filer.Clock(s.ctx)
	require.NoError(t, err)
	s.put("dir/f", []byte("abc"))
	e := s.stat("dir/f")
	require.Equal(t, s.path("dir/f"), e.Path)
	require.EqualValues(t, 3, e.Size)
	require.False(t, e.IsDir)
	for name, at := range map[string]time.Time{"mtime": e.Mtime, "newest": e.Newest} {
		require.WithinDuration(t, before, at.Add(s.Skew), time.Minute, name)
	}
	require.False(t, e.Newest.Before(e.Mtime))
	d := s.stat("dir")
	require.True(t, d.IsDir)
	require.Zero(t, d.Size)
	root, err := s.Filer.Stat(s.ctx, s.Root)
	require.NoError(t, err)
	require.True(t, root.IsDir)
}

// testIdentity: size, time and what holds the data tell one file from another.
func testIdentity(t *testing.T, s *suite) {
	for _, size := range []int{10, filer.InlineLimit + 10} {
		name := fmt.Sprintf("f-%d", size)
		a := noise(5, size)
		first := s.put(name, a)
		require.Equal(t, first.Identity(), s.stat(name).Identity())
		again, err := s.Filer.Put(s.ctx, s.path(name), a, filer.CreateOptions{Replace: true})
		require.NoError(t, err)
		require.NotEqual(t, first.Identity(), again.Identity(), "the same bytes written again")
		require.NoError(t, s.Filer.Delete(s.ctx, s.path(name), filer.Guard{}))
		third := s.put(name, a)
		require.NotEqual(t, first.Identity(), third.Identity(), "removed and written again")
		require.NotEqual(t, again.Identity(), third.Identity())
	}
}

// Names in byte order: F114 and the likes.
var trickyNames = []string{
	" leading", "!", "%2F", "%25", "A", "Z", "\\", "a", "a b", "a b ", "a%20b", "a+b", "a,b", "a.b", "a\\b", "a~", "aa", "ab", "b=1",
	"k=v w", "{x}", "é", "日本", "\U0001F600", "z\tz", "ÿ", "'", "\"", "#frag", "?q", "&", "*", "[x]",
}

func testList(t *testing.T, s *suite) {
	require.Empty(t, s.names(filer.ListOptions{}), "a directory that does not exist is empty")
	for _, n := range []string{"b", "a/1", "ab", "abc", "abd", "ac", "c"} {
		s.put(n, []byte(n))
	}
	for _, c := range []struct {
		o    filer.ListOptions
		want []string
	}{
		{filer.ListOptions{}, []string{"a", "ab", "abc", "abd", "ac", "b", "c"}},
		{filer.ListOptions{Prefix: "ab"}, []string{"ab", "abc", "abd"}},
		{filer.ListOptions{Prefix: "x"}, nil},
		{filer.ListOptions{After: "ab"}, []string{"abc", "abd", "ac", "b", "c"}},
		{filer.ListOptions{After: "aba"}, []string{"abc", "abd", "ac", "b", "c"}},
		{filer.ListOptions{After: "c"}, nil},
		{filer.ListOptions{Limit: 2}, []string{"a", "ab"}},
		{filer.ListOptions{Limit: 100}, []string{"a", "ab", "abc", "abd", "ac", "b", "c"}},
		{filer.ListOptions{Prefix: "ab", After: "ab"}, []string{"abc", "abd"}},
		{filer.ListOptions{Prefix: "ab", After: "abc", Limit: 1}, []string{"abd"}},
		{filer.ListOptions{Prefix: "b", After: "a"}, []string{"b"}},
		{filer.ListOptions{Prefix: "a", After: "b"}, nil},
		{filer.ListOptions{After: "ab", Limit: 2}, []string{"abc", "abd"}},
	} {
		require.Equal(t, c.want, s.names(c.o), "%+v", c.o)
	}
	for e, err := range s.Filer.List(s.ctx, s.Root, filer.ListOptions{}) {
		require.NoError(t, err)
		require.Equal(t, e.Path.Name() == "a", e.IsDir)
		if !e.IsDir {
			require.Equal(t, s.stat(e.Path.Name()).Identity(), e.Identity())
		}
	}
	for _, err := range s.Filer.List(s.ctx, s.Root, filer.ListOptions{}) {
		require.NoError(t, err)
		break
	}
}

func testListNames(t *testing.T, s *suite) {
	for _, n := range trickyNames {
		s.put(n, []byte(n))
	}
	want := sorted(trickyNames)
	require.Equal(t, want, s.names(filer.ListOptions{}))
	for i, n := range want {
		same(t, []byte(n), s.content(n))
		require.Equal(t, s.path(n), s.stat(n).Path)
		rest := s.names(filer.ListOptions{After: n})
		require.Equal(t, want[i+1:], append([]string{}, rest...), "after %q", n)
		require.Contains(t, s.names(filer.ListOptions{Prefix: n}), n)
	}
	for _, n := range trickyNames[:8] {
		require.NoError(t, s.Filer.Delete(s.ctx, s.path(n), filer.Guard{}))
	}
	require.Equal(t, sorted(trickyNames[8:]), s.names(filer.ListOptions{}))
}

// testListPages has more entries than the page of any implementation.
func testListPages(t *testing.T, s *suite) {
	const n = 2300
	var want []string
	var wg sync.WaitGroup
	gate := make(chan struct{}, 16)
	for i := range n {
		name := fmt.Sprintf("n-%05d", i)
		want = append(want, name)
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if _, err := s.Filer.Put(s.ctx, s.path(name), []byte(name), filer.CreateOptions{}); err != nil {
				t.Errorf("put %s: %v", name, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, want, s.names(filer.ListOptions{}))
	require.Equal(t, want[1999:], s.names(filer.ListOptions{After: want[1998]}))
	require.Equal(t, want[:1500], s.names(filer.ListOptions{Limit: 1500}))
	require.Equal(t, want[1000:2000], s.names(filer.ListOptions{Prefix: "n-01"}))
}

func testClock(t *testing.T, s *suite) {
	a, err := s.Filer.Clock(s.ctx)
	require.NoError(t, err)
	require.False(t, a.IsZero())
	e := s.put("f", nil)
	b, err := s.Filer.Clock(s.ctx)
	require.NoError(t, err)
	require.False(t, b.Before(a))
	require.WithinDuration(t, b, e.Newest.Add(s.Skew), time.Minute)
}

func testProbe(t *testing.T, s *suite) {
	c, err := s.Filer.Probe(s.ctx, s.Root)
	require.NoError(t, err)
	require.True(t, c.ConditionalUpdate, "the suite needs a filer that keeps its conditions")
	require.True(t, c.Transactions)
	again, err := s.Filer.Probe(s.ctx, s.Root)
	require.NoError(t, err)
	require.Equal(t, c, again)
	for _, n := range s.names(filer.ListOptions{}) {
		require.True(t, s.stat(n).IsDir, "probe leaves no file behind: %s", n)
	}
}

func testWalkTree(t *testing.T, s *suite) {
	for _, n := range []string{"b/2", "b/1/x", "a", "b-", "c/d/e/f", "skip/x"} {
		s.put(n, nil)
	}
	var got []string
	for e, err := range filer.WalkTree(s.ctx, s.Filer, s.Root, filer.WalkOptions{
		SkipDir: func(e *filer.Entry) bool { return e.Path.Name() == "skip" },
	}) {
		require.NoError(t, err)
		got = append(got, e.Path.Rel(s.Root))
	}
	require.Equal(t, []string{"a", "b", "b/1", "b/1/x", "b/2", "b-", "c", "c/d", "c/d/e", "c/d/e/f", "skip"}, got)
	for _, err := range filer.WalkTree(s.ctx, s.Filer, s.path("none"), filer.WalkOptions{}) {
		require.Fail(t, "a tree that does not exist is empty", "%v", err)
	}
}
