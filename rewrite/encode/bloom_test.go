package encode

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go/bloom"
	"github.com/stretchr/testify/require"
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
