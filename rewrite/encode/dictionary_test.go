package encode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

func plainLeaf(t format.Type, length int32) *format.Node {
	return &format.Node{Name: "x", Type: t, TypeLength: length}
}

func valuesOf(leaf *format.Node, all ...[]byte) *column.Values {
	v := new(column.Values)
	v.Reset(leaf.Type, leaf.Width())
	for _, b := range all {
		v.Append(b)
	}
	return v
}

// TestUnionGivesEveryValueItsCode unites random dictionaries of every width.
func TestUnionGivesEveryValueItsCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.SampledFrom([]*format.Node{
			plainLeaf(format.Int32, 0), plainLeaf(format.Int64, 0), plainLeaf(format.ByteArray, 0), plainLeaf(format.FixedLenByteArray, 5),
		}).Draw(t, "leaf")
		limit := rapid.SampledFrom([]int{100, 100_000}).Draw(t, "limit")
		d, err := NewDictionary(leaf, limit)
		require.NoError(t, err)
		var have [][]byte
		for range rapid.IntRange(1, 4).Draw(t, "sources") {
			src := valuesOf(leaf)
			for range rapid.IntRange(0, 400).Draw(t, "entries") {
				x := rapid.IntRange(0, 600).Draw(t, "entry")
				b := binary.BigEndian.AppendUint64(nil, uint64(x))
				if w := leaf.Width(); w > 0 {
					b = append(b, b...)[8-min(w, 8):][:w]
				} else {
					b = []byte(fmt.Sprint(x % 50))
				}
				src.Append(b)
			}
			m, ok, err := d.Union(src)
			require.NoError(t, err)
			if !ok {
				require.Equal(t, len(have), d.Len(), "a union that fails adds nothing")
			} else {
				identity := true
				for i, c := range m.Codes {
					require.Equal(t, src.At(i), d.Values().At(int(c)))
					identity = identity && int(c) == i
				}
				require.Equal(t, identity, m.Identity)
			}
			require.LessOrEqual(t, d.Size(), limit)
			size := 0
			have = have[:0]
			for i := range d.Len() {
				v := bytes.Clone(d.Values().At(i))
				have = append(have, v)
				size += d.plainSize(v)
				code, found := d.Code(v)
				require.True(t, found)
				require.EqualValues(t, i, code, "no value is there twice")
			}
			require.Equal(t, size, d.Size())
		}
	})
}

func TestUnionOfOtherTypesIsHalted(t *testing.T) {
	d, err := NewDictionary(plainLeaf(format.Int32, 0), 100)
	require.NoError(t, err)
	_, _, err = d.Union(valuesOf(plainLeaf(format.Int64, 0), eight(1)))
	require.Equal(t, fault.Halt, fault.Of(err))
	_, err = NewDictionary(plainLeaf(format.Boolean, 0), 100)
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

// TestZerosAndNaNsStayApart: a dictionary compares bits.
func TestZerosAndNaNsStayApart(t *testing.T) {
	d, err := NewDictionary(plainLeaf(format.Double, 0), 1000)
	require.NoError(t, err)
	nan := math.Float64bits(math.NaN())
	src := valuesOf(plainLeaf(format.Double, 0), eight(0), eight(1<<63), eight(nan), eight(nan|1<<50), eight(nan), eight(0))
	m, ok, err := d.Union(src)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []uint32{0, 1, 2, 3, 2, 0}, m.Codes)
}

func TestCodeWidth(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 256: 8, 257: 9} {
		require.Equal(t, want, CodeWidth(n), n)
	}
}
