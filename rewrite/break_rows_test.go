package rewrite_test

import (
	"context"
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

func listSchema() *icego.Schema {
	return icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 3, Name: "l", Type: &icego.ListType{ElementID: 4, Element: icego.PrimitiveTypes.Int32}},
	)
}

// splitRows are six rows whose lists lie in pages that do not all begin at a row.
// claimed says how many rows are said to begin in each.
func splitRows(t require.TestingT, v2 bool, claimed [4]int64) ([]byte, []row) {
	rows := []row{}
	for i, l := range [][]any{{int32(1), int32(2)}, {int32(3), int32(4), int32(5), int32(6)}, {int32(7)}, {int32(8)}, {int32(9)}, {int32(10)}} {
		rows = append(rows, row{1: int64(i), 3: l})
	}
	d := func(n int) (out []byte) {
		for range n {
			out = append(out, 3)
		}
		return out
	}
	list := handChunk{pages: []handPage{
		{rep: []byte{0, 1, 0, 1}, def: d(4), values: handInts(1, 2, 3, 4), rows: claimed[0], v2: v2},
		{rep: []byte{1, 1}, def: d(2), values: handInts(5, 6), rows: claimed[1], v2: v2},
		{rep: []byte{0, 0}, def: d(2), values: handInts(7, 8), rows: claimed[2], v2: v2},
		{rep: []byte{0, 0}, def: d(2), values: handInts(9, 10), rows: claimed[3], v2: v2},
	}}
	id := handChunk{pages: []handPage{{values: handLongs(0, 1, 2, 3, 4, 5), rows: 6}}}
	return handFile(t, listSchema(), 6, "parquet-mr version 1.13.1 (build x)", id, list), rows
}

// TestPagesWithinRowsAreNeverLost merges files whose pages go on with a row of the
// page before, though an offset index or a header says where rows begin. Where pages
// are left out or cut by these numbers the file is refused; nothing may be lost.
func TestPagesWithinRowsAreNeverLost(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		for _, claimed := range [][4]int64{{2, 0, 2, 2}, {1, 1, 2, 2}, {2, 1, 1, 2}} {
			for _, gone := range [][]int64{nil, {5}, {4}, {0}, {1}, {2}, {3}, {2, 3}, {4, 5}, {0, 1}} {
				for _, most := range []int64{0, 1, 2, 3, 4} {
					t.Run(fmt.Sprint(v2, claimed, gone, most), func(t *testing.T) {
						content, rows := splitRows(t, v2, claimed)
						w := newWorld(t, listSchema(), 2)
						w.request.MaxRows = most
						w.request.Copying = rewrite.CopyForced
						var d *deletes.Positions
						if gone != nil {
							d = deletes.Of(gone...)
						}
						w.add(content, rows, d)
						w.add(content, rows, d)
						res, err := rewrite.Merge(context.Background(), w.request)
						if err != nil {
							t.Log(err)
							require.Equal(t, fault.Corrupt, fault.Of(err), "v2 %v claimed %v gone %v: %v", v2, claimed, gone, err)
							return
						}
						w.check(t, res)
						for _, o := range res.Outputs {
							if v2 { // what an index of version 1 says is believed where nothing is cut
								audit(t, w.filer.Content(o.At))
							}
						}
					})
				}
			}
		}
	}
}
