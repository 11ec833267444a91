package deletes_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
)

var (
	intNode    = parquet.Leaf(parquet.Int32Type)
	longNode   = parquet.Leaf(parquet.Int64Type)
	floatNode  = parquet.Leaf(parquet.FloatType)
	doubleNode = parquet.Leaf(parquet.DoubleType)
	textNode   = parquet.String()
)

// TestEqualityAgreesWithANaiveJoin draws tables with promoted, absent and nested
// key columns, deletes of several key sets and sequence numbers, and tables so
// small that many passes are needed.
func TestEqualityAgreesWithANaiveJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n1, n2 := icego.PrimitiveTypes.Int32, icego.PrimitiveTypes.Float32
		structOf := func(typ icego.Type) icego.Type {
			return &icego.StructType{FieldList: []icego.NestedField{optional(4, "k", typ)}}
		}
		withDefault := optional(3, "c", icego.PrimitiveTypes.String)
		withDefault.InitialDefault = "dflt"
		h := history(t,
			[]icego.NestedField{optional(1, "a", n1), optional(2, "b", n2), optional(5, "s", structOf(n1))},
			[]icego.NestedField{optional(2, "b", icego.PrimitiveTypes.Float64), withDefault, optional(5, "s", structOf(icego.PrimitiveTypes.Int64))},
		) // a was dropped, b and s.k promoted, c added
		numbers := []any{nil, int32(0), int32(1), int32(-1), int32(math.MaxInt32), int32(7)}
		longs := []any{nil, int64(0), int64(1), int64(-1), int64(math.MaxInt32), int64(1 << 40)}
		nan := math.Float32frombits(0x7fc00123)
		floats := []any{nil, float32(0), float32(math.Copysign(0, -1)), nan, float32(1.5), float32(math.Inf(1))}
		doubles := []any{nil, 0.0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xfff8000000000001), 1.5, math.Inf(1)}
		texts := []any{nil, "", "a", "dflt", strings.Repeat("long", 30)}

		type column struct {
			col
			values []any
		}
		draw := func(label string, needed map[int]bool) ([]column, [][]any) {
			var cols []column
			have := func(id int) bool { return needed[id] || needed == nil && rapid.IntRange(0, 3).Draw(t, "present") > 0 }
			// The struct is always there in data files: a file must hold a column of the table.
			if have(1) {
				cols = append(cols, column{col{name: "a", id: 1, node: intNode}, numbers})
			}
			if have(2) {
				c := column{col{name: "b", id: 2, node: floatNode}, floats}
				if rapid.Bool().Draw(t, "wide") {
					c = column{col{name: "b", id: 2, node: doubleNode}, doubles}
				}
				cols = append(cols, c)
			}
			if have(3) {
				cols = append(cols, column{col{name: "c", id: 3, node: textNode}, texts})
			}
			if needed == nil || needed[4] {
				c := column{col{name: "k", id: 4, node: intNode, in: "s", inID: 5}, append([]any{absent{}}, numbers...)}
				if rapid.Bool().Draw(t, "wide") {
					c = column{col{name: "k", id: 4, node: longNode, in: "s", inID: 5}, append([]any{absent{}}, longs...)}
				}
				cols = append(cols, c)
			}
			rows := make([][]any, rapid.IntRange(1, 30).Draw(t, label+" rows"))
			for i := range rows {
				for _, c := range cols {
					rows[i] = append(rows[i], rapid.SampledFrom(c.values).Draw(t, "value"))
				}
			}
			return cols, rows
		}
		file := func(cols []column, rows [][]any) []byte {
			var plain []col
			for _, c := range cols {
				plain = append(plain, c.col)
			}
			return content(t, plain, rows, parquet.PageBufferSize(rapid.SampledFrom([]int{32, 1 << 20}).Draw(t, "page")))
		}
		keyOf := func(cols []column, row []any, ids []iceberg.FieldID) string {
			var key []string
			for _, id := range ids {
				v := any(nil)
				if id == 3 {
					v = "dflt"
				}
				for i, c := range cols {
					if c.id == int(id) {
						v = row[i]
					}
				}
				key = append(key, canonical(v))
			}
			return strings.Join(key, "\x00")
		}

		w := newBench(t, h)
		w.q.TableBytes = rapid.SampledFrom([]int64{1, 1000, 1 << 20}).Draw(t, "table")
		w.q.Columns = columnOptions(rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "whole"))
		var cols [][]column
		var rows [][][]any
		for range rapid.IntRange(1, 4).Draw(t, "data files") {
			c, r := draw("data", nil)
			cols, rows = append(cols, c), append(rows, r)
			n := w.data(file(c, r), len(r))
			if rapid.Bool().Draw(t, "bounds") {
				d := &w.q.Data[n]
				d.Lower, d.Upper = map[iceberg.FieldID][]byte{}, map[iceberg.FieldID][]byte{}
				for i, x := range c {
					bound(d, iceberg.FieldID(x.id), r, i)
				}
			}
		}
		want := make([]*deletes.Positions, len(cols))
		for i := range want {
			want[i] = &deletes.Positions{}
		}
		for range rapid.IntRange(0, 6).Draw(t, "deletes") {
			ids := rapid.SampledFrom([][]iceberg.FieldID{{1}, {2}, {3}, {4}, {1, 2}, {4, 3}, {3, 2, 1}}).Draw(t, "ids")
			needed := map[int]bool{}
			for _, id := range ids {
				needed[int(id)] = true
			}
			c, r := draw("delete", needed)
			var applies []int
			if rapid.Bool().Draw(t, "nested") {
				for n := range rapid.IntRange(0, len(cols)).Draw(t, "up to") {
					applies = append(applies, n)
				}
			} else {
				for n := range cols {
					if rapid.Bool().Draw(t, "applies") {
						applies = append(applies, n)
					}
				}
			}
			w.equality(file(c, r), len(r), ids, applies...)
			keys := map[string]bool{}
			for _, row := range r {
				keys[keyOf(c, row, ids)] = true
			}
			for _, n := range applies {
				for i, row := range rows[n] {
					if keys[keyOf(cols[n], row, ids)] {
						want[n].Add(int64(i))
					}
				}
			}
		}
		res, err := w.load()
		require.NoError(t, err)
		for n := range want {
			require.True(t, want[n].Equal(res.Positions[n]), "file %d: want %v, got %v", n, want[n], res.Positions[n])
		}
		for i, d := range w.q.Deletes {
			if len(d.Applies) > 0 {
				require.Equal(t, d.Records, res.Deletes[i].Rows)
			}
		}
	})
}

func columnOptions(whole int64) column.Options {
	if whole == 0 {
		return column.Options{Whole: -1, Window: 64, Budget: column.NewBudget(64 << 20)}
	}
	return column.Options{Whole: whole}
}

// bound sets the bounds of a column as a manifest has them: none where there is no
// value, nor of floats.
func bound(d *deletes.DataFile, id iceberg.FieldID, rows [][]any, at int) {
	var least, greatest []byte
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range rows {
		n := int64(0)
		switch v := r[at].(type) {
		case int32:
			n = int64(v)
		case int64:
			n = v
		case string:
			if least == nil || v < string(least) {
				least = []byte(v)
			}
			if greatest == nil || v > string(greatest) {
				greatest = []byte(v)
			}
			continue
		default:
			continue
		}
		low, high = min(low, n), max(high, n)
	}
	if low <= high {
		switch rows[0][at].(type) {
		default:
			least, greatest = number(rows, at, low), number(rows, at, high)
		}
	}
	if least != nil {
		d.Lower[id], d.Upper[id] = least, greatest[:min(len(greatest), 16)]
	}
}

// number is a bound in the length the column had when it was written.
func number(rows [][]any, at int, v int64) []byte {
	for _, r := range rows {
		if _, short := r[at].(int32); short {
			return binary.LittleEndian.AppendUint32(nil, uint32(v))
		}
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))
}

func one(name string, id int, node parquet.Node) []col {
	return []col{{name: name, id: id, node: node}}
}

func column1(values ...any) [][]any {
	var rows [][]any
	for _, v := range values {
		rows = append(rows, []any{v})
	}
	return rows
}

func TestF011NullIsOnlyNull(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  icego.Type
		node parquet.Node
		rows []any // null, the zero, another
	}{
		{"int", icego.PrimitiveTypes.Int32, intNode, []any{nil, int32(0), int32(1)}},
		{"date", icego.PrimitiveTypes.Date, parquet.Date(), []any{nil, int32(0), int32(1)}},
		{"timestamp", icego.PrimitiveTypes.Timestamp, parquet.TimestampAdjusted(parquet.Microsecond, false), []any{nil, int64(0), int64(1)}},
		{"string", icego.PrimitiveTypes.String, textNode, []any{nil, "", "x"}},
		{"boolean", icego.PrimitiveTypes.Bool, parquet.Leaf(parquet.BooleanType), []any{nil, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := history(t, []icego.NestedField{optional(1, "k", c.typ)})
			for i := range c.rows {
				w := newBench(t, h)
				n := w.data(content(t, one("k", 1, c.node), column1(c.rows...)), 3)
				w.equality(content(t, one("k", 1, c.node), column1(c.rows[i])), 1, []iceberg.FieldID{1}, n)
				w.deleted(n, int64(i))
			}
		})
	}
	h := history(t, []icego.NestedField{optional(1, "k", icego.PrimitiveTypes.Int32), optional(2, "s", icego.PrimitiveTypes.String)})
	w := newBench(t, h)
	cols := []col{{name: "k", id: 1, node: intNode}, {name: "s", id: 2, node: textNode}}
	n := w.data(content(t, cols, [][]any{{nil, "x"}, {int32(0), "x"}, {nil, ""}, {nil, nil}, {nil, "x"}}), 5)
	w.equality(content(t, cols, [][]any{{nil, "x"}}), 1, []iceberg.FieldID{1, 2}, n)
	w.deleted(n, 0, 4)
}

func TestF012DroppedKeyColumn(t *testing.T) {
	h := history(t,
		[]icego.NestedField{optional(1, "id", icego.PrimitiveTypes.Int32), optional(2, "data", icego.PrimitiveTypes.String)},
		[]icego.NestedField{optional(2, "data", icego.PrimitiveTypes.String)})
	w := newBench(t, h)
	n := w.data(content(t, []col{{name: "data", id: 2, node: textNode}, {name: "id", id: 1, node: intNode}}, [][]any{{"keep", int32(1)}, {"del", int32(2)}}), 2)
	later := w.data(content(t, one("data", 2, textNode), column1("new")), 1)
	w.equality(content(t, one("id", 1, intNode), column1(int32(2))), 1, []iceberg.FieldID{1}, n, later)
	w.deleted(n, 1)
	w.deleted(later)
}

// TestP2bKeysFollowTheirColumn has a list before the key column, whose element has
// the id an older writer took for a position, and keys that were promoted.
func TestP2bKeysFollowTheirColumn(t *testing.T) {
	h := history(t,
		[]icego.NestedField{{ID: 1, Name: "tags", Type: &icego.ListType{ElementID: 3, Element: icego.PrimitiveTypes.Int64}}, optional(2, "id", icego.PrimitiveTypes.Int32)},
		[]icego.NestedField{{ID: 1, Name: "tags", Type: &icego.ListType{ElementID: 3, Element: icego.PrimitiveTypes.Int64}}, optional(2, "id", icego.PrimitiveTypes.Int64)})
	type row struct {
		Tags []int64 `parquet:"tags,list,id(1)"`
		ID   int32   `parquet:"id,id(2)"`
	}
	w := newBench(t, h)
	n := w.data(written(t, []row{{[]int64{5, 2, 9}, 1}, {[]int64{2, 8, 9}, 3}, {nil, 2}}), 3)
	w.equality(content(t, one("id", 2, longNode), column1(int64(2), int64(1<<32+1))), 2, []iceberg.FieldID{2}, n)
	w.deleted(n, 2)

	w = newBench(t, h)
	n = w.data(written(t, []row{{[]int64{5}, 1}}), 1)
	w.equality(content(t, one("x", 3, longNode), column1(int64(5))), 1, []iceberg.FieldID{3}, n)
	_, err := w.load()
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	require.ErrorContains(t, err, "3")
}

func TestPromotedKeys(t *testing.T) {
	day := int64(86_400_000_000)
	for _, c := range []struct {
		name     string
		old, now icego.Type
		from, to parquet.Node
		data     []any
		keys     []any
		want     []int64
	}{
		{"date to timestamp", icego.PrimitiveTypes.Date, icego.PrimitiveTypes.Timestamp, parquet.Date(), parquet.TimestampAdjusted(parquet.Microsecond, false),
			[]any{int32(1), int32(2), int32(-1)}, []any{2 * day, -day, day + 1}, []int64{1, 2}},
		{"decimal", icego.DecimalTypeOf(9, 2), icego.DecimalTypeOf(30, 2), parquet.Decimal(2, 9, parquet.Int32Type), parquet.Decimal(2, 30, parquet.FixedLenByteArrayType(13)),
			[]any{int32(150), int32(-1), int32(0)}, []any{[13]byte{12: 150}, [13]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}}, []int64{0, 1}},
		{"float to double", icego.PrimitiveTypes.Float32, icego.PrimitiveTypes.Float64, floatNode, doubleNode,
			[]any{float32(0.1), float32(0), float32(math.Copysign(0, -1)), float32(math.NaN())}, []any{0.1, 0.0, math.Float64frombits(0x7ff8000000000099)}, []int64{1, 3}},
		{"int to long", icego.PrimitiveTypes.Int32, icego.PrimitiveTypes.Int64, intNode, longNode,
			[]any{int32(-5), int32(5)}, []any{int64(-5), int64(1<<32 - 5)}, []int64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := history(t, []icego.NestedField{optional(1, "k", c.old)}, []icego.NestedField{optional(1, "k", c.now)})
			w := newBench(t, h)
			n := w.data(content(t, one("k", 1, c.from), column1(c.data...)), len(c.data))
			w.equality(content(t, one("k", 1, c.to), column1(c.keys...)), len(c.keys), []iceberg.FieldID{1}, n)
			w.deleted(n, c.want...)
		})
	}
}

// TestKeysThatOnlyThePartitionTells has data files without the column, whose tuple
// tells its value, in a table in which the column has a default, too.
func TestKeysThatOnlyThePartitionTells(t *testing.T) {
	withDefault := optional(1, "region", icego.PrimitiveTypes.String)
	withDefault.InitialDefault = "none"
	h := history(t, []icego.NestedField{withDefault, optional(2, "v", icego.PrimitiveTypes.Int32)})
	typ := &iceberg.PartitionType{Fields: []iceberg.PartitionField{{ID: 1000, Name: "region", Transform: icego.IdentityTransform{}, SourceIDs: []iceberg.FieldID{1}, Source: icego.PrimitiveTypes.String, Result: icego.PrimitiveTypes.String}}}
	w := newBench(t, h)
	body := content(t, one("v", 2, intNode), column1(int32(1), int32(2)))
	for _, region := range []any{"eu", "us", nil} {
		n := w.data(body, 2)
		tuple, err := typ.TupleAt(func(int) any { return region })
		require.NoError(t, err)
		w.q.Data[n].Type, w.q.Data[n].Partition = typ, tuple
	}
	plain := w.data(body, 2)
	cols := []col{{name: "region", id: 1, node: textNode}, {name: "v", id: 2, node: intNode}}
	w.equality(content(t, cols, [][]any{{"eu", int32(2)}, {nil, int32(1)}, {"none", int32(1)}}), 3, []iceberg.FieldID{1, 2}, 0, 1, 2, plain)
	w.deleted(0, 1)
	w.deleted(1)
	w.deleted(2, 0)
	w.deleted(plain, 0)

	// A key that is the same in all rows of a file.
	w.equality(content(t, one("region", 1, textNode), column1("us")), 1, []iceberg.FieldID{1}, 0, 1, 2, plain)
	w.deleted(1, 0, 1)
	w.deleted(0, 1)
}

func TestEqualityDeletesThatCannotBeRead(t *testing.T) {
	h := history(t, []icego.NestedField{optional(1, "k", icego.PrimitiveTypes.Int32), optional(2, "v", icego.PrimitiveTypes.Int32)})
	data := content(t, one("k", 1, intNode), column1(int32(1)))
	for name, c := range map[string]struct {
		kind   fault.Kind
		change func(w *bench)
	}{
		"Avro":                    {fault.Unsupported, func(w *bench) { w.q.Deletes[0].Format = "avro" }},
		"ORC":                     {fault.Unsupported, func(w *bench) { w.q.Deletes[0].Format = "ORC" }},
		"no key":                  {fault.Corrupt, func(w *bench) { w.q.Deletes[0].EqualityIDs = nil }},
		"unknown key":             {fault.Corrupt, func(w *bench) { w.q.Deletes[0].EqualityIDs = []iceberg.FieldID{77} }},
		"key not in the delete":   {fault.Corrupt, func(w *bench) { w.q.Deletes[0].EqualityIDs = []iceberg.FieldID{1, 2} }},
		"other number of records": {fault.Corrupt, func(w *bench) { w.q.Deletes[0].Records = 2 }},
		"negative records":        {fault.Corrupt, func(w *bench) { w.q.Deletes[0].Records = -1 }},
		"other number of rows":    {fault.Corrupt, func(w *bench) { w.q.Data[0].Records = 2 }},
		"too many keys":           {fault.TooLarge, func(w *bench) { w.q.Deletes[0].Records, w.q.MaxKeys = 1001, 1000 }},
		"overflowing keys":        {fault.TooLarge, func(w *bench) { w.q.Deletes[0].Records = math.MaxInt64 }},
		"no room":                 {fault.TooLarge, func(w *bench) { w.q.Deletes[0].Records, w.q.Columns.Budget = 1<<20, column.NewBudget(1000) }},
		"delete is missing":       {fault.Corrupt, func(w *bench) { w.q.Deletes[0].At = "/buckets/b/none" }},
		"data is missing":         {fault.Corrupt, func(w *bench) { w.q.Data[0].At = "/buckets/b/none" }},
		"no such data file":       {fault.Halt, func(w *bench) { w.q.Deletes[0].Applies = []int{1} }},
		"no history":              {fault.Halt, func(w *bench) { w.q.History = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, h)
			n := w.data(data, 1)
			w.equality(content(t, one("k", 1, intNode), column1(int32(1))), 1, []iceberg.FieldID{1}, n)
			w.deleted(n, 0)
			c.change(w)
			_, err := w.load()
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
		})
	}
}

// TestKeysOutsideTheBoundsAreNotCounted shows what is skipped early.
func TestKeysOutsideTheBoundsAreNotCounted(t *testing.T) {
	h := history(t, []icego.NestedField{optional(1, "k", icego.PrimitiveTypes.Int64)})
	w := newBench(t, h)
	n := w.data(content(t, one("k", 1, longNode), column1(int64(10), int64(20), nil)), 3)
	w.q.Data[n].Lower = map[iceberg.FieldID][]byte{1: binary.LittleEndian.AppendUint64(nil, 10)}
	w.q.Data[n].Upper = map[iceberg.FieldID][]byte{1: binary.LittleEndian.AppendUint64(nil, 20)}
	i := w.equality(content(t, one("k", 1, longNode), column1(int64(9), int64(10), int64(15), int64(21), nil)), 5, []iceberg.FieldID{1}, n)
	res, err := w.load()
	require.NoError(t, err)
	require.True(t, deletes.Of(0, 2).Equal(res.Positions[n]))
	require.Equal(t, deletes.Counts{Rows: 5, Taken: 3}, res.Deletes[i])
	require.Equal(t, 1, res.Passes)
}

// TestManySmallDeletesAreOnePass has as many sequence numbers as a streaming
// writer makes.
func TestManySmallDeletesAreOnePass(t *testing.T) {
	h := history(t, []icego.NestedField{optional(1, "k", icego.PrimitiveTypes.Int64)})
	w := newBench(t, h)
	var upTo []int
	for i := range 40 {
		var values []any
		for k := range 40 {
			values = append(values, int64(k))
		}
		upTo = append(upTo, w.data(content(t, one("k", 1, longNode), column1(values...)), 40))
		// Key i is deleted from all files so far.
		w.equality(content(t, one("k", 1, longNode), column1(int64(i))), 1, []iceberg.FieldID{1}, upTo...)
	}
	res, err := w.load()
	require.NoError(t, err)
	require.Equal(t, 1, res.Passes)
	for n, p := range res.Positions {
		want := &deletes.Positions{}
		want.AddRange(int64(n), 40)
		require.True(t, want.Equal(p), fmt.Sprint(n))
	}
}
