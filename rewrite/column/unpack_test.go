package column

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
)

// packed is src packed bit by bit, the last group filled up with zeros.
func packed(src []uint32, width int) []byte {
	out := make([]byte, (len(src)+7)/8*width)
	for i, v := range src {
		for k := range width {
			bit := i*width + k
			out[bit>>3] |= byte(v>>k&1) << (bit & 7)
		}
	}
	return out
}

// TestEveryWidthIsUnpacked compares the loops of all widths with packing bit by
// bit, over lengths around the groups, with and without bytes behind them.
func TestEveryWidthIsUnpacked(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible data
	for width := range 33 {
		for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 200} {
			for _, behind := range []int{0, 1, 7, 8, 9, 50} {
				src := make([]uint32, n)
				for i := range src {
					src[i] = uint32(rng.Uint64() & (1<<width - 1))
				}
				b := packed(src, width)
				for range behind {
					b = append(b, byte(rng.Uint32()))
				}
				got := make([]uint32, n+1)
				got[n] = 0xabcd
				unpack32(got[:n], b, width)
				require.Equal(t, append(src, 0xabcd), got, "width %d, %d values, %d bytes behind", width, n, behind)
			}
		}
	}
}

// hybrid draws runs of codes of a width, packed and not, with what they hold.
func hybrid(t *rapid.T, width int) (b []byte, want []uint32) {
	most := uint32(uint64(1)<<width - 1)
	for range rapid.IntRange(0, 6).Draw(t, "runs") {
		if rapid.Bool().Draw(t, "packed") {
			src := make([]uint32, 8*rapid.IntRange(0, 80).Draw(t, "groups"))
			v, step := rapid.Uint32Range(0, most).Draw(t, "code"), rapid.Uint32().Draw(t, "step")
			for i := range src {
				src[i] = v & most
				v += step
			}
			b = append(binary.AppendUvarint(b, uint64(len(src)/8)<<1|1), packed(src, width)...)
			want = append(want, src...)
			continue
		}
		v, n := rapid.Uint32Range(0, most).Draw(t, "code"), rapid.IntRange(0, 200).Draw(t, "length")
		b = binary.AppendUvarint(b, uint64(n)<<1)
		for k := 0; k < width; k += 8 {
			b = append(b, byte(v>>k))
		}
		for range n {
			want = append(want, v)
		}
	}
	return b, want
}

func TestCodesAreReadFromRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, 32).Draw(t, "width")
		b, want := hybrid(t, width)
		b = append([]byte{byte(width)}, b...)
		n := rapid.IntRange(0, len(want)).Draw(t, "values")
		got := make([]uint32, n)
		require.NoError(t, AnyCodes(got, b))
		require.Equal(t, append([]uint32{}, want[:n]...), got)

		most := uint32(0)
		for _, v := range got {
			most = max(most, v)
		}
		require.NoError(t, Codes(got, b, int(most)+1))
		if n > 0 {
			require.Equal(t, fault.Corrupt, fault.Of(Codes(got, b, int(most))))
			require.Equal(t, fault.Corrupt, fault.Of(AnyCodes(make([]uint32, len(want)+1), b)), "more than there are")
		}
		for cut := range min(len(b), 40) {
			if err := AnyCodes(make([]uint32, len(want)), b[:cut]); err != nil {
				require.Equal(t, fault.Corrupt, fault.Of(err))
			}
		}
	})
}

func TestLevelsAreCountedAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		greatest := rapid.IntRange(1, 9).Draw(t, "greatest")
		width := 1
		for greatest>>width > 0 {
			width++
		}
		b, want := hybrid(t, width)
		n := rapid.IntRange(0, len(want)+2).Draw(t, "levels")
		levels := make([]byte, n)
		read := DefinitionLevels(levels, b, greatest)
		count, err := CountLevels(b, n, greatest)
		require.Equal(t, read == nil, err == nil, "%v, %v", read, err)
		if err == nil {
			require.Equal(t, bytes.Count(levels, []byte{byte(greatest)}), count)
		} else {
			require.Equal(t, fault.Corrupt, fault.Of(err))
		}
	})
}

// FuzzCodes feeds codes that no writer makes: they are read as they are bit by bit,
// or refused.
func FuzzCodes(f *testing.F) {
	f.Add([]byte{3, 3, 0x88, 0xc6, 0xfa}, 8)
	f.Add([]byte{13, 20, 1, 2}, 10)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 0), 4096)
		got := make([]uint32, n)
		err := AnyCodes(got, b)
		if err != nil {
			require.Equal(t, fault.Corrupt, fault.Of(err))
			return
		}
		if n == 0 {
			return
		}
		width := int(b[0])
		b = b[1:]
		for at := 0; at < n; {
			head, size := binary.Uvarint(b)
			require.Positive(t, size)
			b = b[size:]
			if head&1 == 0 {
				var v uint32
				for k := range (width + 7) / 8 {
					v |= uint32(b[k]) << (8 * k)
				}
				b = b[(width+7)/8:]
				for range min(head>>1, uint64(n-at)) {
					require.Equal(t, v, got[at])
					at++
				}
				continue
			}
			for i := 0; i < int(min(head>>1*8, 1<<20)) && at < n; i++ {
				v := uint32(0)
				for k := range width {
					bit := i*width + k
					v |= uint32(b[bit>>3]>>(bit&7)&1) << k
				}
				require.Equal(t, v, got[at])
				at++
			}
			b = b[min(uint64(len(b)), head>>1*uint64(width)):]
		}
	})
}

// BenchmarkCodes reads pages of packed codes of some widths.
func BenchmarkCodes(b *testing.B) {
	for _, width := range []int{1, 6, 13, 20} {
		src := make([]uint32, 50_000)
		for i := range src {
			src[i] = uint32(i*7919) & (1<<width - 1)
		}
		page := append(binary.AppendUvarint([]byte{byte(width)}, uint64(len(src)/8)<<1|1), packed(src, width)...)
		b.Run(string(rune('0'+width/10))+string(rune('0'+width%10)), func(b *testing.B) {
			b.SetBytes(int64(4 * len(src)))
			for b.Loop() {
				if AnyCodes(src, page) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}
