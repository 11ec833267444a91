package encode

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// drawnMapping maps entries to codes of a width, each to another while there are
// enough.
func drawnMapping(t *rapid.T, entries, width int) []uint32 {
	most := uint32(uint64(1)<<width - 1)
	m := make([]uint32, entries)
	v := rapid.Uint32().Draw(t, "first")
	for i := range m {
		m[i] = v & most
		v += 2*rapid.SampledFrom([]uint32{0, 1, 7918}).Draw(t, "step") + 1
	}
	return m
}

// TestMappedCodesAreReadBack maps runs and noise of codes, in all widths.
func TestMappedCodesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 32).Draw(t, "width")
		src := symbols(t, rapid.IntRange(1, 7).Draw(t, "source width"))
		mapping := drawnMapping(t, 128, width)
		enc, err := appendMapped([]byte{byte(width)}, src, mapping, width)
		require.NoError(t, err)
		got := make([]uint32, len(src))
		require.NoError(t, column.AnyCodes(got, enc))
		want := make([]uint32, len(src))
		for i, c := range src {
			want[i] = mapping[c]
		}
		require.Equal(t, want, got)
		same := make([]uint32, 128)
		for i := range same {
			same[i] = uint32(i)
		}
		if width >= 7 {
			enc, err := appendMapped(nil, src, same, width)
			require.NoError(t, err)
			require.Equal(t, appendHybrid(nil, src, width), enc, "codes that stay as they are are encoded alike")
		}
		if len(src) > 0 {
			src[rapid.IntRange(0, len(src)-1).Draw(t, "at")] = 128 + rapid.Uint32Range(0, 1<<32-129).Draw(t, "beyond")
			_, err = appendMapped(nil, src, mapping, width)
			require.Equal(t, fault.Corrupt, fault.Of(err))
		}
	})
}

// TestPagesOfCodesAreStoredWhereCompressionGainsLittle remaps codes of which a
// tenth can be saved, and others: what is stored is as long as it is plain.
func TestPagesOfCodesAreStoredWhereCompressionGainsLittle(t *testing.T) {
	const entries, values = 150, 20_000
	many, few := make([]uint32, values), make([]uint32, values)
	x := uint32(1)
	for i := range many {
		x = x*1664525 + 1013904223
		many[i] = x >> 8 % entries
		few[i] = x >> 24 & 0x11
	}
	identity, mapping := make([]uint32, entries), make([]uint32, entries)
	for i := range mapping {
		identity[i], mapping[i] = uint32(i), uint32(entries-1-i)
	}
	leaf := &format.Node{Name: "x", Type: format.Int64}
	for _, c := range []struct {
		name   string
		codes  []uint32
		from   format.Codec
		spare  float64
		level  int
		size   int
		stored bool
	}{
		{name: "many codes", codes: many, from: format.Zstd, spare: 0.125, size: entries, stored: true},
		{name: "many codes, not compressed before", codes: many, from: format.Uncompressed, spare: 0.125, size: entries, stored: true},
		{name: "less may be given up", codes: many, from: format.Zstd, spare: 0.03, size: entries},
		{name: "less may be given up, not compressed before", codes: many, from: format.Uncompressed, spare: 0.03, size: entries},
		{name: "nothing may be given up", codes: many, from: format.Zstd, size: entries},
		{name: "a level is asked for", codes: many, from: format.Uncompressed, spare: 0.125, level: 3, size: entries},
		{name: "few codes", codes: few, from: format.Zstd, spare: 0.125, size: entries},
		{name: "few codes, not compressed before", codes: few, from: format.Uncompressed, spare: 0.125, size: entries},
		{name: "the codes become wider", codes: many, from: format.Uncompressed, spare: 0.125, size: 1 << 12},
	} {
		for _, h := range []format.PageHeader{
			{Type: format.DataPage, Values: values, RepEncoding: format.RLE, DefEncoding: format.RLE}, {Type: format.DataPageV2, Values: values, Rows: values},
		} {
			source, err := NewRemapper(leaf, Options{Codec: c.from}).Codes(h, Coded{Codes: c.codes}, identity, entries, 0, UnknownIndex())
			require.NoError(t, err)
			r := NewRemapper(leaf, Options{Codec: format.Zstd, Level: c.level, CRC: true})
			for range 3 { // the first page is judged
				read, err := r.Open(source, c.from)
				require.NoError(t, err)
				page, err := r.Codes(source.Header, read, mapping, c.size, c.spare, UnknownIndex())
				require.NoError(t, err)
				plain := int(page.Header.UncompressedSize)
				require.Equal(t, c.stored, len(page.Body) >= plain, "%s: %d of %d bytes", c.name, len(page.Body), plain)
				require.LessOrEqual(t, len(page.Body), plain+12)
				made, err := NewRemapper(leaf, Options{}).Open(page, format.Zstd)
				require.NoError(t, err)
				want := make([]uint32, values)
				for i, code := range c.codes {
					want[i] = mapping[code]
				}
				require.Equal(t, want, made.Codes)
			}
		}
	}
}
