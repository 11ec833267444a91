package encode

import (
	"bytes"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/format"
)

// number reads big-endian two's complement.
func number(b []byte) *big.Int {
	x := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return x
}

func TestF032DecimalsCompareSigned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() []byte {
			b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}), 1, 5).Draw(t, "number")
			return b
		}
		a, b := draw(), draw()
		require.Equal(t, number(a).Cmp(number(b)), compareSigned(a, b))
	})
}

func TestOrderingOf(t *testing.T) {
	c := func(v int32) *int32 { return &v }
	l := func(k format.LogicalKind) *format.Logical { return &format.Logical{Kind: k} }
	for _, x := range []struct {
		n    format.Node
		want Ordering
	}{
		{format.Node{Type: format.Boolean}, Booleans},
		{format.Node{Type: format.Int32}, SignedInt32},
		{format.Node{Type: format.Int32, Converted: c(11)}, UnsignedInt32},
		{format.Node{Type: format.Int32, Converted: c(15)}, SignedInt32},
		{format.Node{Type: format.Int32, Converted: c(6)}, SignedInt32},
		{format.Node{Type: format.Int32, Converted: c(99)}, NoOrder},
		{format.Node{Type: format.Int64, Converted: c(14)}, UnsignedInt64},
		{format.Node{Type: format.Int64, Logical: &format.Logical{Kind: format.LogicalInteger, Signed: true, BitWidth: 64}}, SignedInt64},
		{format.Node{Type: format.Int64, Logical: &format.Logical{Kind: format.LogicalInteger, BitWidth: 64}, Converted: c(18)}, UnsignedInt64},
		{format.Node{Type: format.Int64, Logical: l(format.LogicalTimestamp)}, SignedInt64},
		{format.Node{Type: format.Int64, Logical: l(42)}, NoOrder},
		{format.Node{Type: format.Int96}, NoOrder},
		{format.Node{Type: format.Float}, Floats},
		{format.Node{Type: format.Double}, Doubles},
		{format.Node{Type: format.ByteArray}, UnsignedBytes},
		{format.Node{Type: format.ByteArray, Converted: c(0)}, UnsignedBytes},
		{format.Node{Type: format.ByteArray, Converted: c(5)}, SignedBytes},
		{format.Node{Type: format.ByteArray, Logical: l(format.LogicalString)}, UnsignedBytes},
		{format.Node{Type: format.ByteArray, Logical: l(format.LogicalGeometry)}, NoOrder},
		{format.Node{Type: format.FixedLenByteArray, TypeLength: 16, Logical: l(format.LogicalUUID)}, UnsignedBytes},
		{format.Node{Type: format.FixedLenByteArray, TypeLength: 2, Logical: l(format.LogicalFloat16)}, NoOrder},
		{format.Node{Type: format.FixedLenByteArray, TypeLength: 12, Converted: c(21)}, NoOrder},
		{format.Node{Type: format.FixedLenByteArray, TypeLength: 9, Logical: l(format.LogicalDecimal)}, SignedBytes},
		{format.Node{Type: 77}, NoOrder},
	} {
		require.Equal(t, x.want, OrderingOf(&x.n), "%+v", x.n)
	}
}

var (
	textLeaf  = &format.Node{Type: format.ByteArray, Logical: &format.Logical{Kind: format.LogicalString}}
	bytesLeaf = &format.Node{Type: format.ByteArray}
)

// TestF045TextBoundsAreCutBetweenCodePoints and TestF046BinaryBoundsAreRoundedUp
// check bounds that are shortened.
func TestF045TextBoundsAreCutBetweenCodePoints(t *testing.T) {
	low, exact := TruncateMin(textLeaf, []byte(strings.Repeat("a", 15)+"\u2022"), 16)
	require.Equal(t, strings.Repeat("a", 15), string(low))
	require.False(t, exact)

	up, exact, ok := TruncateMax(textLeaf, []byte(strings.Repeat("a", 15)+"\u2022x"), 16)
	require.True(t, ok)
	require.False(t, exact)
	require.Equal(t, strings.Repeat("a", 14)+"b", string(up))

	up, _, ok = TruncateMax(textLeaf, []byte("a\ud7ff\ud7ffz"), 4)
	require.True(t, ok)
	require.Equal(t, "a\ue000", string(up), "the surrogates are left out")

	_, _, ok = TruncateMax(textLeaf, []byte(strings.Repeat("\U0010ffff", 17)), 64)
	require.False(t, ok)

	up, exact, ok = TruncateMax(textLeaf, []byte("abc"), 3)
	require.True(t, ok && exact)
	require.Equal(t, "abc", string(up))
}

func TestF046BinaryBoundsAreRoundedUp(t *testing.T) {
	value := bytes.Repeat([]byte{'a'}, 20)
	up, _, ok := TruncateMax(bytesLeaf, value, 16)
	require.True(t, ok)
	require.Equal(t, strings.Repeat("a", 15)+"b", string(up))
	require.Equal(t, strings.Repeat("a", 20), string(value), "the value stays")
	_, _, ok = TruncateMax(bytesLeaf, bytes.Repeat([]byte{0xff}, 20), 16)
	require.False(t, ok)
	up, _, ok = TruncateMax(bytesLeaf, []byte{1, 0xff, 0xff, 0xff}, 3)
	require.True(t, ok)
	require.Equal(t, []byte{2}, up)
}

func TestShortBoundsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.SampledFrom([]*format.Node{textLeaf, bytesLeaf}).Draw(t, "leaf")
		var v []byte
		if rapid.Bool().Draw(t, "valid") {
			v = []byte(rapid.StringOf(rapid.SampledFrom([]rune{'a', 0x7f, 0x7ff, 0xd7ff, 0xffff, 0x10ffff})).Draw(t, "string"))
		} else {
			v = rapid.SliceOf(rapid.SampledFrom([]byte{0, 'a', 0x80, 0xf4, 0xff})).Draw(t, "bytes")
		}
		limit := rapid.IntRange(4, 12).Draw(t, "limit")
		low, exact := TruncateMin(leaf, v, limit)
		require.LessOrEqual(t, len(low), limit)
		require.LessOrEqual(t, bytes.Compare(low, v), 0)
		require.Equal(t, bytes.Equal(low, v), exact)
		up, exact, ok := TruncateMax(leaf, v, limit)
		if !ok {
			return
		}
		require.LessOrEqual(t, len(up), limit)
		require.GreaterOrEqual(t, bytes.Compare(up, v), 0)
		require.Equal(t, bytes.Equal(up, v), exact)
		if leaf == textLeaf && utf8.Valid(v) {
			require.True(t, utf8.Valid(low))
			require.True(t, utf8.Valid(up))
		}
	})
}
