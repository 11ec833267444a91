package codec_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// values makes n values of a stride of which some repeat bytes of the one before,
// on either side.
func values(rng *rand.Rand, n, stride int) []byte {
	out := make([]byte, 0, n*stride)
	symbols := 1 + rng.IntN(256)
	front, back := rng.IntN(stride+1), rng.IntN(stride+1)
	odd := []int{0, 1, 3, 200, 1000}[rng.IntN(5)]
	for i := range n {
		v := make([]byte, stride)
		for j := range v {
			v[j] = byte(rng.IntN(symbols))
		}
		if i > 0 && (odd == 0 || rng.IntN(odd) > 0) {
			copy(v[:front], out[len(out)-stride:])
			copy(v[stride-back:], out[len(out)-back:])
		}
		out = append(out, v...)
	}
	return out
}

func TestStridedReadsBack(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		stride := rapid.IntRange(1, codec.MaxStride+1).Draw(t, "stride")
		head := rapid.SampledFrom([]int{0, 1, 5, 300, 2000, 140000}).Draw(t, "head")
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 40, 1000, 5000, 20000}).Draw(t, "values")
		src := append(values(rng, head, 1), values(rng, n, stride)...)
		side := codec.Side(rapid.IntRange(0, 1).Draw(t, "side"))
		out, ok, err := codec.AppendStrided([]byte("before"), src, head, stride, side)
		require.NoError(t, err)
		require.Equal(t, "before", string(out[:6]))
		if !ok {
			require.Len(t, out, 6)
			return
		}
		taken++
		require.Less(t, len(out)-6, len(src)+64)
		got := make([]byte, len(src))
		require.NoError(t, codec.Decompress(got, out[6:], format.Zstd))
		require.Equal(t, src, got)
		// A decoder that streams takes other ways than one that has everything.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		require.NoError(t, err)
		defer d.Close()
		all, err := d.DecodeAll(out[6:], nil)
		require.NoError(t, err)
		require.Equal(t, src, all)
	})
	require.Positive(t, taken)
}

func columns() map[string]struct {
	values []byte
	stride int
	side   codec.Side
} {
	rng := rand.New(rand.NewPCG(1, 2))
	type column = struct {
		values []byte
		stride int
		side   codec.Side
	}
	var key, amount, id, ts []byte
	for i := range 60_000 {
		k := fmt.Sprintf("%016x-%08x", rng.Uint64(), rng.Uint32())
		key = append(binary.LittleEndian.AppendUint32(key, uint32(len(k))), k...)
		amount = append(amount, 0, 0, 0)
		v := rng.IntN(1_000_000)
		amount = append(amount, byte(v>>16), byte(v>>8), byte(v))
		id = binary.LittleEndian.AppendUint64(id, uint64(i))
		ts = binary.LittleEndian.AppendUint64(ts, uint64(1_760_000_000_000_000+rng.IntN(1<<32)))
	}
	return map[string]column{
		"key": {key, 29, codec.Leading}, "amount": {amount, 6, codec.Leading},
		"id": {id, 8, codec.Trailing}, "ts": {ts, 8, codec.Trailing},
	}
}

func BenchmarkStrided(b *testing.B) {
	for name, c := range columns() {
		for _, level := range []struct {
			name     string
			compress func(dst []byte) ([]byte, error)
		}{
			{"strided", func(dst []byte) ([]byte, error) {
				out, _, err := codec.AppendStrided(dst, c.values, 0, c.stride, c.side)
				return out, err
			}},
			{"quick", func(dst []byte) ([]byte, error) {
				return codec.Compress(dst, c.values, format.Zstd, codec.QuickLevel)
			}},
			{"default", func(dst []byte) ([]byte, error) {
				return codec.Compress(dst, c.values, format.Zstd, codec.DefaultLevel)
			}},
		} {
			b.Run(name+"/"+level.name, func(b *testing.B) {
				b.SetBytes(int64(len(c.values)))
				var out []byte
				for b.Loop() {
					var err error
					out, err = level.compress(out[:0])
					require.NoError(b, err)
				}
				b.ReportMetric(float64(len(out))/float64(len(c.values)), "ratio")
				if len(out) == 0 {
					return
				}
				got := make([]byte, len(c.values))
				require.NoError(b, codec.Decompress(got, out, format.Zstd))
			})
		}
	}
}
