package encode

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// TestZstdWayByContent looks at which way is picked for a page, and that what it
// makes is the page and no larger than the usual level makes it.
func TestZstdWayByContent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	text := func(n int, one func(i int) string) (out []byte) {
		for i := range n {
			s := one(i)
			out = append(binary.LittleEndian.AppendUint32(out, uint32(len(s))), s...)
		}
		return out
	}
	numbers := func(n int, one func(i int) uint64) (out []byte) {
		for i := range n {
			out = binary.LittleEndian.AppendUint64(out, one(i))
		}
		return out
	}
	bytesLeaf, longLeaf := &format.Node{Type: format.ByteArray}, &format.Node{Type: format.Int64}
	for _, c := range []struct {
		name   string
		leaf   *format.Node
		values []byte
		stride int
		way    zstdWay
	}{
		{"keys of one length", bytesLeaf, text(20_000, func(int) string { return fmt.Sprintf("%016x-%08x", rng.Uint64(), rng.Uint32()) }), 29, strided},
		{"keys of two lengths", bytesLeaf, text(20_000, func(i int) string { return fmt.Sprintf("%0*x", 16+i%2, rng.Uint64()) }), 0, quick},
		{"text that repeats itself", bytesLeaf, text(20_000, func(i int) string { return strings.Repeat("ab", 10) + fmt.Sprintf("%04d", i%7) }), 28, quick},
		{"times in no order", longLeaf, numbers(40_000, func(int) uint64 { return 1_760_000_000_000_000 + rng.Uint64N(1<<36) }), 8, strided},
		{"noise", longLeaf, numbers(40_000, func(int) uint64 { return rng.Uint64() }), 8, quick},
		{"too little to judge", longLeaf, numbers(100, func(i int) uint64 { return uint64(i) }), 8, usual},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, head := range []int{0, 77} {
				z := zstdChoice{head: head, most: trialMost}
				z.reset()
				z.stride, z.side = strideOf(c.leaf, c.values)
				require.Equal(t, c.stride, z.stride)
				src := append(make([]byte, head), c.values...)
				out, err := z.compress([]byte("x"), src)
				require.NoError(t, err)
				kind := z.values
				if c.stride == 0 {
					kind = z.others
				}
				require.Equal(t, c.way, kind.way)
				got := make([]byte, len(src))
				require.NoError(t, codec.Decompress(got, out[1:], format.Zstd))
				require.Equal(t, src, got)
				whole, err := codec.Compress(nil, src, format.Zstd, codec.DefaultLevel)
				require.NoError(t, err)
				require.LessOrEqual(t, len(out)-1, len(whole)+len(whole)/quickMost+64)
				// A page the way is not for is compressed in another.
				odd := append([]byte(nil), src[:len(src)-1]...)
				z.stride = 0
				_, err = z.compress(nil, odd)
				require.NoError(t, err)
			}
		})
	}
}
