package rewrite_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

// TestMergeLeavesRowsOutOfPages merges flat columns of which some rows are deleted
// in every page: nothing but dictionaries is encoded, whatever the pages are like,
// and another reader finds the rows that stay.
func TestMergeLeavesRowsOutOfPages(t *testing.T) {
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 2, Name: "s", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 3, Name: "f", Type: icego.PrimitiveTypes.Float64},
		icego.NestedField{ID: 4, Name: "b", Type: icego.PrimitiveTypes.Bool},
		icego.NestedField{ID: 5, Name: "d", Type: icego.DecimalTypeOf(20, 2)},
		icego.NestedField{ID: 6, Name: "st", Type: &icego.StructType{FieldList: []icego.NestedField{
			{ID: 7, Name: "x", Type: icego.PrimitiveTypes.Int32},
		}}},
	)
	for n := range 16 {
		s := style{
			Codec: compress.Codecs.Snappy, V2: n&1 > 0, Dictionary: n&2 > 0, PageBytes: 2048, GroupRows: 400, Index: n&4 > 0,
		}
		wide := n&8 > 0
		t.Run(fmt.Sprintf("%+v wide %v", s, wide), func(t *testing.T) {
			w := newWorld(t, schema, 2)
			w.request.Verify = rewrite.VerifyRows
			if n&4 > 0 {
				w.request.Table.Properties["write.parquet.compression-codec"] = "zstd"
			}
			for i := range 3 {
				d := drawer{rng: &lcg{x: uint64(i + 3*n)}, nulls: 10 * i, few: 20}
				rows := make([]row, 1000)
				for k := range rows {
					rows[k] = d.row(schema.Fields())
				}
				gone := &deletes.Positions{}
				for k := 7 * i; k < len(rows); k += 16 {
					gone.Add(int64(k))
				}
				if wide { // whole pages, and most of others
					gone.AddRange(100, 310)
					gone.AddRange(950, 1000)
				}
				w.add(writeRows(t, schema, rows, s, false), rows, gone)
			}
			res := w.merge(t)
			require.Positive(t, res.Proof.Proved)
			require.Positive(t, res.Proof.Remapped+res.Proof.Recompressed)
			switch {
			case wide:
			case s.Dictionary:
				require.Positive(t, res.Proof.Remapped)
				require.Less(t, res.Proof.Encoded, res.Proof.Remapped+res.Proof.Recompressed)
			default:
				require.Zero(t, res.Proof.Encoded)
			}
		})
	}
}
