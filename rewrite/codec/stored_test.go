package codec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/format"
)

// TestStoredFramesAreReadBack stores content of lengths around every form of the
// header, and around blocks.
func TestStoredFramesAreReadBack(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{1})
	for _, n := range []int{
		0, 1, 255, 256, 257, 1<<16 + 255, 1<<16 + 256, zstdBlock - 1, zstdBlock, zstdBlock + 1, 3 * zstdBlock, 8<<20 - 1, 8 << 20, 8<<20 + 1, 20 << 20,
	} {
		src := make([]byte, n)
		_, _ = rng.Read(src)
		out := AppendStored([]byte("before"), src)
		require.Equal(t, "before", string(out[:6]))
		frame := out[6:]
		require.LessOrEqual(t, len(frame), n+12+3*(n/zstdBlock+1), fmt.Sprint(n))
		got := make([]byte, n)
		require.NoError(t, Decompress(got, frame, format.Zstd))
		require.Equal(t, src, got)
		var h zstd.Header
		require.NoError(t, h.Decode(frame))
		require.True(t, h.HasFCS)
		require.Equal(t, uint64(n), h.FrameContentSize)
		require.LessOrEqual(t, h.WindowSize, uint64(zstdWindow))
	}
}
