package encode

import (
	"testing"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// symbols draws runs and noise of symbols of a width.
func symbols(t *rapid.T, width int) []uint32 {
	most := uint32(uint64(1)<<width - 1)
	var out []uint32
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		v := rapid.Uint32Range(0, most).Draw(t, "symbol")
		n := rapid.IntRange(0, 70).Draw(t, "length")
		step := rapid.Uint32Range(0, 3).Draw(t, "step")
		for range n {
			out = append(out, v)
			if v = v + step; v > most {
				v = 0
			}
		}
	}
	return out
}

func TestHybridIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 32).Draw(t, "width")
		src := symbols(t, width)
		enc := appendHybrid(nil, src, width)

		identity := func(n int) []uint32 {
			m := make([]uint32, n)
			for i := range m {
				m[i] = uint32(i)
			}
			return m
		}
		if width <= 12 {
			got, err := decodeCodes(nil, append([]byte{byte(width)}, enc...), len(src), identity(1<<width))
			require.NoError(t, err)
			require.Equal(t, src, append([]uint32(nil), got...))
		}
		peer, err := (&rle.Encoding{BitWidth: width}).DecodeInt32(nil, enc)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(peer), len(src))
		for i, s := range src {
			require.Equal(t, s, uint32(peer[i]))
		}
		if width > 8 {
			return
		}
		small := make([]byte, len(src))
		for i, s := range src {
			small[i] = byte(s)
		}
		require.Equal(t, enc, appendHybrid(nil, small, width), "levels and codes are encoded alike")
	})
}

func TestHybridIsShort(t *testing.T) {
	require.Len(t, appendHybrid(nil, make([]byte, 1_000_000), 1), 4, "one run")
	require.Equal(t, []byte{20}, appendHybrid(nil, make([]uint32, 10), 0))
	noise := make([]uint32, 8000)
	for i := range noise {
		noise[i] = uint32(i*7) & 0x3ff
	}
	require.LessOrEqual(t, len(appendHybrid(nil, noise, 10)), 8000*10/8+2)
}

func TestLevelsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := symbols(t, 2)
		levels, want := make([]byte, len(src)), 0
		for i, s := range src {
			levels[i] = byte(s)
			if s == 3 {
				want++
			}
		}
		got, err := countLevels(appendHybrid(nil, levels, 2), 3, len(levels))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// TestBrokenCodesAreRefused feeds codes that no writer makes.
func TestBrokenCodesAreRefused(t *testing.T) {
	mapping := []uint32{0, 1, 2}
	for name, b := range map[string][]byte{
		"nothing":              {},
		"width only":           {2},
		"width too great":      {33, 2, 0},
		"run without value":    {2, 8},
		"packed without bytes": {2, 3},
		"code beyond":          {2, 8, 3},
		"packed code beyond":   {2, 3, 0xff, 0xff},
		"too few":              {2, 2, 1},
		"endless header":       {2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"huge packed run":      {2, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0},
	} {
		_, err := decodeCodes(nil, b, 4, mapping)
		require.Error(t, err, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		codes, err := decodeCodes(nil, b, 20, mapping)
		require.True(t, err != nil || len(codes) == 20)
		_, err = countLevels(b, 2, 100)
		_ = err
	})
}
