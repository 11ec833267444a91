package metrics_test

import (
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// BenchmarkCollect adds 20,000 values at a time.
func BenchmarkCollect(b *testing.B) {
	for _, c := range []struct {
		name string
		typ  icego.Type
		gen  func(i int) []byte
	}{
		{"long", types.Int64, func(i int) []byte { return i64(int64(i * 7919 % 20011)) }},
		{"double", types.Float64, func(i int) []byte { return f64(float64(i * 7919 % 20011)) }},
		{"text", types.String, func(i int) []byte { return text(fmt.Sprintf("customer-%08d", i*7919%20011)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			column, target := one(b, c.typ, "truncate(16)")
			var values [][]byte
			for i := range 20000 {
				values = append(values, c.gen(i))
			}
			in := batch(&target.Leaves[0], values...)
			k := column.Collect()
			b.SetBytes(int64(in.Bytes()))
			b.ReportAllocs()
			for b.Loop() {
				k.Add(in)
			}
			require.NotNil(b, k.Stats().Lower)
		})
	}
}
