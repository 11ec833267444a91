package codec_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

var written = []format.Codec{format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.LZ4Raw}

func inputs() [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 70_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	return [][]byte{nil, {7}, bytes.Repeat([]byte("abc"), 1000), make([]byte, 3<<20), noise}
}

func TestContentComesBackAtEveryLevel(t *testing.T) {
	for _, c := range written {
		for _, level := range []int{codec.DefaultLevel, -7, 0, 1, 3, 9, 22} {
			if c == format.Brotli && level > 9 {
				continue // slow, and the same code
			}
			for _, in := range inputs() {
				out, err := codec.Compress([]byte("before"), in, c, level)
				require.NoError(t, err)
				require.Equal(t, "before", string(out[:6]))
				got := make([]byte, len(in))
				require.NoError(t, codec.Decompress(got, out[6:], c), "%s %d %d", codec.Name(c), level, len(in))
				require.True(t, bytes.Equal(in, got))
			}
		}
	}
}

func TestOtherLengthsAreCorrupt(t *testing.T) {
	for _, c := range written {
		for _, in := range inputs()[1:4] {
			out, err := codec.Compress(nil, in, c, codec.DefaultLevel)
			require.NoError(t, err)
			for _, n := range []int{0, len(in) - 1, len(in) + 1, 2 * len(in)} {
				err := codec.Decompress(make([]byte, n), out, c)
				require.True(t, fault.Is(err, fault.Corrupt), "%s %d for %d: %v", codec.Name(c), n, len(in), err)
			}
			require.True(t, fault.Is(codec.Decompress(make([]byte, len(in)), out[:len(out)-1], c), fault.Corrupt), codec.Name(c))
			require.True(t, fault.Is(codec.Decompress(make([]byte, len(in)), nil, c), fault.Corrupt), codec.Name(c))
		}
	}
}

func TestBrokenInputNeverPanics(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range append(written, format.LZ4) {
		name := c
		if c == format.LZ4 {
			name = format.LZ4Raw
		}
		in := inputs()[2]
		out, err := codec.Compress(nil, in, name, codec.DefaultLevel)
		require.NoError(t, err)
		for range 500 {
			b := bytes.Clone(out)
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
			}
			if err := codec.Decompress(make([]byte, len(in)), b[:rng.IntN(len(b)+1)], c); err != nil {
				require.Equal(t, fault.Corrupt, fault.Of(err), "%v", err)
			}
		}
	}
}

func TestGzipOfSeveralMembers(t *testing.T) {
	var b bytes.Buffer
	for _, part := range []string{"one, ", "two"} {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	got := make([]byte, 8)
	require.NoError(t, codec.Decompress(got, b.Bytes(), format.Gzip))
	require.Equal(t, "one, two", string(got))
}

func TestHadoopFramesAndBareBlocks(t *testing.T) {
	in := bytes.Repeat([]byte("seaice "), 300)
	block := func(src []byte) []byte {
		out := make([]byte, lz4.CompressBlockBound(len(src)))
		n, err := lz4.CompressBlock(src, out, nil)
		require.NoError(t, err)
		return out[:n]
	}
	var framed []byte
	for _, frame := range [][][]byte{{in[:500], in[500:700]}, {in[700:]}} {
		n := 0
		for _, part := range frame {
			n += len(part)
		}
		framed = binary.BigEndian.AppendUint32(framed, uint32(n))
		for _, part := range frame {
			b := block(part)
			framed = binary.BigEndian.AppendUint32(framed, uint32(len(b)))
			framed = append(framed, b...)
		}
	}
	for _, src := range [][]byte{framed, block(in)} {
		got := make([]byte, len(in))
		require.NoError(t, codec.Decompress(got, src, format.LZ4))
		require.True(t, bytes.Equal(in, got))
		require.True(t, fault.Is(codec.Decompress(make([]byte, len(in)-1), src, format.LZ4), fault.Corrupt))
	}
}

func TestWhatIsNotHandledIsUnsupported(t *testing.T) {
	require.Equal(t, fault.Unsupported, fault.Of(codec.Decompress(make([]byte, 4), []byte{1}, format.LZO)))
	require.Equal(t, fault.Unsupported, fault.Of(codec.Decompress(make([]byte, 4), []byte{1}, format.Codec(99))))
	for _, c := range []format.Codec{format.LZO, format.LZ4} {
		_, err := codec.Compress(nil, []byte("x"), c, 1)
		require.Equal(t, fault.Unsupported, fault.Of(err))
	}
}

func TestManyAtOnce(t *testing.T) {
	in := inputs()[2]
	var wg sync.WaitGroup
	for _, c := range written {
		for range 4 {
			wg.Go(func() {
				for range 20 {
					out, err := codec.Compress(nil, in, c, codec.DefaultLevel)
					if err == nil {
						got := make([]byte, len(in))
						err = codec.Decompress(got, out, c)
						if err == nil && !bytes.Equal(in, got) {
							t.Error("content differs")
						}
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
}
