package expire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/filer"
)

// TestCandidatesAreASet compares the candidates with a plain map: paths that
// come again and again, spellings that may mean two paths, and paths that are
// spared before and between the batches.
func TestCandidatesAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := candidates{}
		defer c.close()
		type file struct {
			paths []filer.Path
			bytes int64
		}
		var all []file
		first := map[filer.Path]int{} // the earliest spelling whose likeliest meaning it is
		paths := map[filer.Path]bool{}
		name := rapid.Custom(func(t *rapid.T) filer.Path {
			return filer.Path(fmt.Sprintf("/buckets/b/t/data/%d", rapid.IntRange(0, 300).Draw(t, "n")))
		})
		for range rapid.IntRange(0, 600).Draw(t, "files") {
			f := file{paths: []filer.Path{name.Draw(t, "path")}, bytes: rapid.Int64Range(0, 1<<40).Draw(t, "bytes")}
			if rapid.IntRange(0, 9).Draw(t, "two") == 0 {
				if other := name.Draw(t, "other"); other != f.paths[0] {
					f.paths = append(f.paths, other)
				}
			}
			at, err := c.note(fmt.Sprint(len(all)), f.bytes)
			require.NoError(t, err)
			c.add(at, f.paths)
			if _, ok := first[f.paths[0]]; !ok {
				first[f.paths[0]] = len(all)
			}
			for _, p := range f.paths {
				paths[p] = true
			}
			all = append(all, f)
		}
		require.NoError(t, c.settle())
		require.Equal(t, len(paths), c.left)
		for _, p := range rapid.SliceOfN(name, 0, 50).Draw(t, "spared") {
			c.spare([]filer.Path{p})
			delete(first, p)
			delete(paths, p)
		}
		require.Equal(t, len(paths), c.left)
		var want []string
		var bytes int64
		for i := range all {
			if n, ok := first[all[i].paths[0]]; ok && n == i {
				want = append(want, fmt.Sprint(i))
				bytes += all[i].bytes
			}
		}
		files, size, err := c.totals()
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), files)
		require.Equal(t, bytes, size)
		var got []string
		require.NoError(t, c.batches(rapid.IntRange(1, 40).Draw(t, "batch"), func(batch []string) error {
			got = append(got, batch...)
			return nil
		}))
		require.Equal(t, want, got)
		for _, f := range all {
			free := !slices.ContainsFunc(f.paths, func(p filer.Path) bool { return !paths[p] })
			require.Equal(t, free, c.free(f.paths))
		}
	})
}

// TestRepetitionsTakeNoMemory: a path that is added again is not kept again.
func TestRepetitionsTakeNoMemory(t *testing.T) {
	c := candidates{}
	defer c.close()
	for range 50 {
		for i := range 10_000 {
			c.add(int64(i), []filer.Path{filer.Path(fmt.Sprintf("/buckets/b/t/data/%d", i))})
		}
	}
	require.NoError(t, c.settle())
	require.Equal(t, 10_000, c.left)
	require.Less(t, c.memory()/int64(c.left), int64(64))
}
