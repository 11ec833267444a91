package deletes_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/deletes"
)

// drawPositions draws single ones, ranges and far ones, as positions and as a map.
func drawPositions(t *rapid.T, label string) (*deletes.Positions, map[int64]bool) {
	p, naive := &deletes.Positions{}, map[int64]bool{}
	base := rapid.SampledFrom([]int64{0, 0, 65530, math.MaxUint32 - 100, 5 << 32})
	for range rapid.IntRange(0, 12).Draw(t, label+" parts") {
		at := base.Draw(t, "base") + rapid.Int64Range(0, 300).Draw(t, "pos")
		n := rapid.SampledFrom([]int64{1, 1, 2, 50, 200}).Draw(t, "run")
		if n == 1 {
			p.Add(at)
		} else {
			p.AddRange(at, at+n)
		}
		for i := range n {
			naive[at+i] = true
		}
	}
	return p, naive
}

func requireSame(t require.TestingT, naive map[int64]bool, p *deletes.Positions) {
	want := slices.Sorted(maps.Keys(naive))
	require.Equal(t, want, slices.Collect(p.All()))
	require.EqualValues(t, len(want), p.Len())
	require.Equal(t, len(want) == 0, p.Empty())
	if len(want) > 0 {
		require.Equal(t, want[0], p.Min())
		require.Equal(t, want[len(want)-1], p.Max())
	} else {
		require.EqualValues(t, -1, p.Max())
		require.EqualValues(t, -1, p.Min())
	}
	var ranged []int64
	last := int64(-2)
	for from, to := range p.Ranges() {
		require.Greater(t, from, last, "ranges do not touch")
		for ; from < to; from++ {
			ranged = append(ranged, from)
		}
		last = to
	}
	require.Equal(t, want, ranged)
}

func TestPositionsAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, a := drawPositions(t, "a")
		q, b := drawPositions(t, "b")
		requireSame(t, a, p)
		both := func(keep func(inA, inB bool) bool) map[int64]bool {
			out := map[int64]bool{}
			for x := range a {
				if keep(true, b[x]) {
					out[x] = true
				}
			}
			for x := range b {
				if keep(a[x], true) {
					out[x] = true
				}
			}
			return out
		}
		or, and, not := p.Clone(), p.Clone(), p.Clone()
		or.Or(q)
		and.And(q)
		not.AndNot(q)
		requireSame(t, both(func(x, y bool) bool { return x || y }), or)
		requireSame(t, both(func(x, y bool) bool { return x && y }), and)
		requireSame(t, both(func(x, y bool) bool { return x && !y }), not)
		requireSame(t, a, p)
		requireSame(t, b, q)
		require.Equal(t, maps.Equal(a, b), p.Equal(q))
		require.True(t, p.Equal(p.Clone()))

		begin := rapid.SampledFrom([]int64{0, 65500, math.MaxUint32 - 50, math.MaxUint32 + 1, 5 << 32}).Draw(t, "begin") + rapid.Int64Range(0, 200).Draw(t, "plus")
		end := begin + rapid.Int64Range(0, 400).Draw(t, "length")
		n, inside, kept := int64(0), []int64(nil), []int64(nil)
		next := int64(-1)
		for x := range a {
			if x >= begin && (next < 0 || x < next) {
				next = x
			}
		}
		for x := begin; x < end; x++ {
			require.Equal(t, a[x], p.Contains(x))
			if a[x] {
				n++
				inside = append(inside, x)
			} else {
				kept = append(kept, x)
			}
		}
		require.Equal(t, n, p.Count(begin, end))
		require.Equal(t, next, p.Next(begin))
		require.Equal(t, inside, unroll(p.Within(begin, end)))
		require.Equal(t, kept, unroll(p.Kept(begin, end)))
	})
}

func unroll(ranges func(func(int64, int64) bool)) []int64 {
	var out []int64
	for from, to := range ranges {
		for ; from < to; from++ {
			out = append(out, from)
		}
	}
	return out
}

func TestPositionsOfNilAndSelf(t *testing.T) {
	var none *deletes.Positions
	require.True(t, none.Empty())
	require.False(t, none.Contains(0))
	require.EqualValues(t, -1, none.Next(3))
	require.True(t, none.Equal(&deletes.Positions{}))
	require.True(t, none.Clone().Empty())
	require.Equal(t, []int64{0, 1, 2}, unroll(none.Kept(-5, 3)))
	p := deletes.Of(3, 1, 2)
	p.Or(p)
	p.And(p)
	p.Or(none)
	require.Equal(t, []int64{1, 2, 3}, slices.Collect(p.All()))
	require.False(t, p.Contains(-1))
	p.AndNot(p)
	require.True(t, p.Empty())
	p.Add(9)
	p.And(none)
	require.True(t, p.Empty())
	require.Panics(t, func() { p.Add(-1) })
}

func TestHugeRangesStaySmall(t *testing.T) {
	p := &deletes.Positions{}
	p.AddRange(7, 3<<32)
	require.EqualValues(t, 3<<32-7, p.Len())
	require.Less(t, p.Bytes(), int64(8<<20))
	got := 0
	for from, to := range p.Ranges() {
		require.EqualValues(t, 7, from)
		require.EqualValues(t, 3<<32, to)
		got++
	}
	require.Equal(t, 1, got)
	blob, err := p.AppendVector(nil)
	require.NoError(t, err)
	back, err := deletes.ParseVector(blob, 3<<32)
	require.NoError(t, err)
	require.True(t, p.Equal(back))
}
