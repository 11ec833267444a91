package encode

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
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

		got := make([]uint32, len(src))
		require.NoError(t, column.AnyCodes(got, append([]byte{byte(width)}, enc...)))
		require.Equal(t, append([]uint32{}, src...), got)
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
		got, err := column.CountLevels(appendHybrid(nil, levels, 2), len(levels), 3)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// TestBrokenCodesAreRefused feeds codes that no writer makes.
func TestBrokenCodesAreRefused(t *testing.T) {
	codes := make([]uint32, 20)
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
		require.Equal(t, fault.Corrupt, fault.Of(column.Codes(codes[:4], b, 3)), name)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		for i := range codes {
			codes[i] = 99
		}
		if column.Codes(codes, b, 3) == nil {
			require.Less(t, slices.Max(codes), uint32(3))
		}
		if n, err := column.CountLevels(b, 100, 2); err == nil {
			levels := make([]byte, 100)
			require.NoError(t, column.DefinitionLevels(levels, b, 2))
			require.Equal(t, bytes.Count(levels, []byte{2}), n)
		}
	})
}
