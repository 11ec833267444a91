package codec_test

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

func TestBeginsAreThoseOfTheContent(t *testing.T) {
	for _, c := range written {
		for _, in := range inputs() {
			out, err := codec.Compress(nil, in, c, codec.DefaultLevel)
			require.NoError(t, err)
			for _, n := range []int{0, 1, 100, 50_000, len(in)} {
				if n > len(in) {
					continue
				}
				got := make([]byte, n)
				require.NoError(t, codec.Begin(got, out, len(in), c), "%s %d of %d", codec.Name(c), n, len(in))
				require.True(t, bytes.Equal(in[:n], got))
			}
			require.True(t, fault.Is(codec.Begin(make([]byte, len(in)+1), out, len(in), c), fault.Corrupt))
		}
	}
}

func TestBeginOfALargeWindow(t *testing.T) {
	in := bytes.Repeat([]byte("0123456789abcdef"), 2<<20)
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithWindowSize(64<<20))
	require.NoError(t, err)
	for at := 0; at < len(in); at += 1 << 20 { // as a stream, whose header states the window
		_, err := w.Write(in[at : at+1<<20])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	got := make([]byte, 1000)
	require.NoError(t, codec.Begin(got, out.Bytes(), len(in), format.Zstd))
	require.Equal(t, in[:1000], got)
}

func TestBeginOfBrokenContent(t *testing.T) {
	for _, c := range written {
		got := make([]byte, 100)
		err := codec.Begin(got, nil, 1000, c)
		require.True(t, fault.Is(err, fault.Corrupt), "%s: %v", codec.Name(c), err)
		if c != format.Uncompressed {
			err = codec.Begin(got, []byte("no codec writes this, whatever it is"), 1000, c)
			require.True(t, fault.Is(err, fault.Corrupt), "%s: %v", codec.Name(c), err)
		}
	}
}
