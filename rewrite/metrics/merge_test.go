package metrics_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
)

func n(v *int64) any { // for messages
	if v == nil {
		return nil
	}
	return *v
}

// TestPartsMergeToTheWhole splits values at random and compares.
func TestPartsMergeToTheWhole(t *testing.T) {
	gens := map[string]struct {
		typ icego.Type
		gen func(*rapid.T) []byte
	}{
		"int":  {types.Int32, func(t *rapid.T) []byte { return i32(rapid.Int32().Draw(t, "v")) }},
		"long": {types.Int64, func(t *rapid.T) []byte { return i64(rapid.Int64().Draw(t, "v")) }},
		"double": {types.Float64, func(t *rapid.T) []byte {
			return f64(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1)}).Draw(t, "v"))
		}},
		"bool": {types.Bool, func(t *rapid.T) []byte { return []byte{byte(rapid.IntRange(0, 1).Draw(t, "v"))} }},
		"text": {types.String, func(t *rapid.T) []byte {
			return text(rapid.StringOfN(rapid.SampledFrom([]rune("ab\uD7FF\uE000\U0010FFFF")), 0, 6, -1).Draw(t, "v"))
		}},
		"bytes": {types.Binary, func(t *rapid.T) []byte {
			return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xff}), 0, 6).Draw(t, "v")
		}},
		"decimal": {icego.DecimalTypeOf(38, 2), func(t *rapid.T) []byte {
			return decimal(&format.Node{Type: format.FixedLenByteArray, TypeLength: 16}, rapid.Int64().Draw(t, "v"))
		}},
	}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(slices.Sorted(func(yield func(string) bool) {
			for k := range gens {
				if !yield(k) {
					return
				}
			}
		})).Draw(rt, "type")
		g := gens[name]
		mode := rapid.SampledFrom([]string{"full", "truncate(1)", "truncate(3)", "counts", "none"}).Draw(rt, "mode")
		c, target := one(rt, g.typ, mode)
		leaf := &target.Leaves[0]
		whole := c.Collect()
		var parts []metrics.Stats
		var all [][]byte
		for range rapid.IntRange(0, 4).Draw(rt, "parts") {
			part := c.Collect()
			for range rapid.IntRange(0, 2).Draw(rt, "batches") {
				var values [][]byte
				for range rapid.IntRange(0, 4).Draw(rt, "values") {
					v := g.gen(rt)
					if rapid.IntRange(0, 4).Draw(rt, "null") == 0 {
						v = nil
					}
					values = append(values, v)
				}
				all = append(all, values...)
				part.Add(batch(leaf, values...))
				whole.Add(batch(leaf, values...))
			}
			parts = append(parts, part.Stats())
		}
		want := whole.Stats()
		got := c.Merge(parts...)
		require.Equal(rt, n(want.Values), n(got.Values))
		require.Equal(rt, n(want.Nulls), n(got.Nulls))
		require.Equal(rt, n(want.NaNs), n(got.NaNs))
		require.Equal(rt, want.Lower, got.Lower)
		if want.Upper != nil {
			require.Equal(rt, want.Upper, got.Upper)
		}
		if mode == "none" {
			require.Equal(rt, metrics.Stats{}, got)
			return
		}
		require.Equal(rt, int64(len(all)), *got.Values)
		for _, v := range all {
			inside(rt, g.typ, v, got)
		}
	})
}

// inside checks a value against bounds in its own way.
func inside(t *rapid.T, typ icego.Type, v []byte, s metrics.Stats) {
	if v == nil || len(v) == 8 && typ.Equals(types.Float64) && math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(v))) {
		return
	}
	if typ.Equals(types.String) && s.Lower != nil {
		require.True(t, utf8.Valid(s.Lower))
		require.LessOrEqual(t, string(s.Lower), string(v))
	}
	if typ.Equals(types.String) && s.Upper != nil {
		require.True(t, utf8.Valid(s.Upper))
		require.GreaterOrEqual(t, string(s.Upper), string(v))
	}
	if typ.Equals(types.Binary) {
		if s.Lower != nil {
			require.LessOrEqual(t, bytes.Compare(s.Lower, v), 0)
		}
		if s.Upper != nil {
			require.GreaterOrEqual(t, bytes.Compare(s.Upper, v), 0)
		}
		return
	}
	value, err := iceberg.DecodeBound(typ, v)
	require.NoError(t, err)
	for sign, b := range map[int][]byte{-1: s.Lower, 1: s.Upper} {
		if b == nil {
			continue
		}
		bound, err := iceberg.DecodeBound(typ, b)
		require.NoError(t, err)
		order, err := bound.Compare(value)
		require.NoError(t, err)
		require.GreaterOrEqual(t, order*sign, 0, fmt.Sprintf("%v %v", bound, value))
	}
}
