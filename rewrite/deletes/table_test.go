package deletes

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTablesAgreeWithMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wide, ranked := rapid.Bool().Draw(t, "wide"), rapid.Bool().Draw(t, "ranked")
		s := newSecret()
		old := newTable(s, rapid.Int64Range(0, 4000).Draw(t, "old bytes"), !wide, true, nil)
		old.add(key{at: 1, lo: 1, hi: 1}, 7)
		tab := newTable(s, rapid.Int64Range(0, 4000).Draw(t, "bytes"), wide, ranked, old)
		draw := func() key {
			n := rapid.Uint64Range(0, 60).Draw(t, "key")
			switch {
			case wide:
				form := append(make([]byte, 16), byte(n))
				return s.hash(form, s.quick(form)%20+1) // places that many share
			case n == 60:
				return key{null: true}
			}
			return key{at: n * 0x0101010101010101}
		}
		for range 2 {
			naive := map[key]rank{}
			for !tab.full() && len(naive) < 50 && rapid.IntRange(0, 50).Draw(t, "go on") > 0 {
				k, r := draw(), rank(1)
				if ranked {
					r = rank(rapid.IntRange(1, 5).Draw(t, "rank"))
				}
				tab.add(k, r)
				naive[k] = max(naive[k], r)
			}
			require.Equal(t, len(naive) == 0, tab.empty())
			for range 100 {
				k := draw()
				require.Equal(t, naive[k], tab.rankOf(k), "%v", k)
				if wide && naive[k] > 0 {
					require.True(t, tab.mayHave(k.at))
				}
			}
			tab.reset()
			require.True(t, tab.empty())
		}
	})
}

func TestTablesTakeTheBytesTheySay(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, ranked := range []bool{false, true} {
			n := int64(10_000)
			tab := newTable(newSecret(), tableBytes(n, wide, ranked), wide, ranked, nil)
			require.LessOrEqual(t, int64(len(tab.slots))*8+int64(len(tab.ranks))*2, tableBytes(n, wide, ranked))
			r := rand.New(rand.NewPCG(1, 2))
			for i := range n {
				require.False(t, tab.full(), "%d keys", i)
				tab.add(key{at: r.Uint64()}, 1)
			}
		}
	}
}

func TestChainsReachWhatTheirDeletesReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nested := rapid.Bool().Draw(t, "nested")
		sets := make([][]int, rapid.IntRange(0, 12).Draw(t, "deletes"))
		var all []int
		for d := range sets {
			all = append(all, d)
			if nested {
				for f := range rapid.IntRange(0, 8).Draw(t, "files") {
					sets[d] = append(sets[d], f)
				}
				continue
			}
			sets[d] = rapid.SliceOfDistinct(rapid.IntRange(0, 8), rapid.ID).Draw(t, "files")
		}
		got := chains(all, func(d int) []int { return sets[d] })
		if nested {
			require.LessOrEqual(t, len(got), 1)
		}
		seen := map[int]bool{}
		for _, c := range got {
			for _, m := range c.members {
				require.False(t, seen[m.delete])
				seen[m.delete] = true
				for f := range 10 {
					reaches := c.level[f] > 0 && m.rank >= c.level[f]
					require.Equal(t, slices.Contains(sets[m.delete], f), reaches)
				}
			}
		}
		for d := range sets {
			require.Equal(t, len(sets[d]) > 0, seen[d])
		}
	})
}
