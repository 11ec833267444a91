package rewrite

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestStreamHashIsThatOfTheBytes cuts the same bytes in two ways, and changes one.
func TestStreamHashIsThatOfTheBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 200, hashBlock - 1, hashBlock, hashBlock + 1, 5 * hashBlock, 3*hashBlock + 7}).Draw(t, "size")
		all := make([]byte, size)
		x := rapid.Uint64().Draw(t, "seed")
		for i := range all {
			x = x*6364136223846793005 + 1442695040888963407
			all[i] = byte(x >> 56)
		}
		cut := func(name string) uint64 {
			var h streamHash
			for rest := all; len(rest) > 0; {
				n := rapid.SampledFrom([]int{0, 1, 63, 1000, hashBlock, 2*hashBlock + 1, size}).Draw(t, name)
				n = min(n, len(rest))
				h.write(rest[:n])
				rest = rest[n:]
			}
			return h.sum()
		}
		want := cut("one")
		require.Equal(t, want, cut("other"))
		at := rapid.IntRange(0, size-1).Draw(t, "at")
		all[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		require.NotEqual(t, want, cut("changed"))
		all = all[:size-1]
		require.NotEqual(t, want, cut("shorter"))
	})
}
