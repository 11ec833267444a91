package encode

import (
	"fmt"
	"math"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go/bloom"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// TestBloomIsFoldedAndComplete fills filters of one greatest size with few and
// many values.
func TestBloomIsFoldedAndComplete(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 20_000, 100_000} {
		b, err := NewBloom(1<<20, 0.01)
		require.NoError(t, err)
		for i := range n {
			b.Add([]byte(fmt.Sprint("value ", i)))
		}
		bits := b.Bytes()
		t.Logf("%d values: %d bytes", n, len(bits))
		peer := bloom.MakeSplitBlockFilter(bits)
		for i := range n {
			h := xxhash.Sum64String(fmt.Sprint("value ", i))
			require.True(t, InBloom(bits, h))
			require.True(t, peer.Check(h))
		}
		wrong := 0
		for i := range 20_000 {
			h := xxhash.Sum64String(fmt.Sprint("other ", i))
			require.Equal(t, peer.Check(h), InBloom(bits, h))
			if InBloom(bits, h) {
				wrong++
			}
		}
		require.LessOrEqual(t, wrong, 20_000*2/100)
		require.LessOrEqual(t, len(bits), max(32, n*4), "about ten bits a value, to the next power of two")
	}
}

// TestBloomHasWhatFloatsAreEqualTo looks up zeros of either sign and NaNs: engines
// take them for equal.
func TestBloomHasWhatFloatsAreEqualTo(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, x := range [][2]float64{{0, negative}, {negative, 0}, {math.Float64frombits(0xfff8_0000_0000_1234), math.NaN()}} {
		for _, v := range []column.Values{
			{Type: format.Double, Width: 8, Data: eight(math.Float64bits(x[0]))}, {Type: format.Float, Width: 4, Data: four(math.Float32bits(float32(x[0])))},
		} {
			b, err := NewBloom(1<<10, 0.01)
			require.NoError(t, err)
			b.AddValues(&v, 0, 1)
			other := four(math.Float32bits(float32(x[1])))
			if v.Width == 8 {
				// The NaN of other languages, which is not Go's.
				bits := math.Float64bits(x[1])
				if x[1] != x[1] {
					bits = 0x7ff8_0000_0000_0000
				}
				other = eight(bits)
			}
			filter := b.Bytes()
			require.True(t, InBloom(filter, xxhash.Sum64(v.Data)))
			require.True(t, InBloom(filter, xxhash.Sum64(other)), "%v beside %v", x[1], x[0])
		}
	}
}

func TestBloomThatIsOfNoUseIsNone(t *testing.T) {
	b, err := NewBloom(32, 0.01)
	require.NoError(t, err)
	require.Nil(t, b.Bytes(), "empty")
	b, err = NewBloom(64, 0.01)
	require.NoError(t, err)
	for i := range 10_000 {
		b.Add([]byte(fmt.Sprint(i)))
	}
	require.Nil(t, b.Bytes(), "full")
	for _, size := range []int{0, 31, 1 << 40} {
		_, err := NewBloom(size, 0.01)
		require.Error(t, err)
	}
	for _, p := range []float64{0, 1, -1} {
		_, err := NewBloom(1024, p)
		require.Error(t, err)
	}
	require.True(t, InBloom([]byte{1, 2, 3}, 5))
}
