package metrics_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/resolve"
)

var types = icego.PrimitiveTypes

// one is the column of a table of one column c with id 1.
func one(t require.TestingT, typ icego.Type, mode string) (*metrics.Column, *resolve.Target) {
	s := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "c", Type: typ})
	target, err := resolve.NewTarget(s, resolve.Options{})
	require.NoError(t, err)
	c := metrics.NewConfig(map[string]string{metrics.DefaultProperty: mode}, s, nil)
	return metrics.For(&target.Leaves[0], c), target
}

// batch is values of the leaf; nil is null.
func batch(leaf *resolve.Leaf, values ...[]byte) *column.Batch {
	b := &column.Batch{Levels: len(values), Rows: len(values)}
	b.Values.Reset(leaf.Node.Type, leaf.Node.Width())
	for _, v := range values {
		if v == nil {
			b.Def = append(b.Def, 0)
			continue
		}
		b.Def = append(b.Def, 1)
		b.Values.Append(v)
	}
	return b
}

func f64(v float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
}
func f32(v float32) []byte {
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
}
func i32(v int32) []byte    { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
func i64(v int64) []byte    { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func pointer[T any](v T) *T { return &v }
func text(s string) []byte  { return []byte(s) }

// collect are the statistics of values under a mode.
func collect(t *testing.T, typ icego.Type, mode string, values ...[]byte) metrics.Stats {
	t.Helper()
	c, target := one(t, typ, mode)
	k := c.Collect()
	k.Add(batch(&target.Leaves[0], values...))
	return k.Stats()
}

func TestF040NaNsAreCountedAndNeverBounds(t *testing.T) {
	nan, odd := math.NaN(), math.Float64frombits(0xfff8000000000123)
	for _, c := range []struct {
		values       [][]byte
		nulls, nans  int64
		lower, upper []byte
	}{
		{[][]byte{f64(nan)}, 0, 1, nil, nil},
		{[][]byte{f64(1), f64(nan)}, 0, 1, f64(1), f64(1)},
		{[][]byte{f64(nan), f64(odd), f64(2), f64(1)}, 0, 2, f64(1), f64(2)},
		{[][]byte{nil, f64(nan)}, 1, 1, nil, nil},
		{[][]byte{nil}, 1, 0, nil, nil},
	} {
		s := collect(t, types.Float64, "truncate(16)", c.values...)
		require.Equal(t, metrics.Stats{Values: pointer(int64(len(c.values))), Nulls: &c.nulls, NaNs: &c.nans, Lower: c.lower, Upper: c.upper}, s)
	}
	s := collect(t, types.Float32, "full", f32(float32(nan)), f32(-1))
	require.Equal(t, f32(-1), s.Lower)
	require.Equal(t, int64(1), *s.NaNs)
	require.Nil(t, collect(t, types.Int64, "full", i64(1)).NaNs)
}

func TestF041ZerosAndInfinitiesOfBounds(t *testing.T) {
	minus := math.Copysign(0, -1)
	for _, values := range [][][]byte{{f64(minus)}, {f64(0)}, {f64(minus), f64(0)}, {f64(0), f64(minus)}} {
		s := collect(t, types.Float64, "full", values...)
		require.Equal(t, f64(minus), s.Lower)
		require.Equal(t, f64(0), s.Upper)
	}
	s := collect(t, types.Float32, "full", f32(0))
	require.Equal(t, f32(float32(minus)), s.Lower)
	s = collect(t, types.Float64, "full", f64(math.Inf(1)))
	require.Equal(t, f64(math.Inf(1)), s.Lower)
	s = collect(t, types.Float64, "full", f64(math.Inf(-1)))
	require.Equal(t, f64(math.Inf(-1)), s.Upper)
}

func TestF042CountsAreStatedEvenIfNone(t *testing.T) {
	s := collect(t, types.String, "counts", text("a"), text(""))
	require.Equal(t, metrics.Stats{Values: pointer[int64](2), Nulls: pointer[int64](0)}, s)
	s = collect(t, types.String, "full", nil, nil)
	require.Equal(t, metrics.Stats{Values: pointer[int64](2), Nulls: pointer[int64](2)}, s)

	// Of lists the leaves are counted, and have no bounds.
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "l", Type: &icego.ListType{ElementID: 2, Element: types.Float64}})
	target, err := resolve.NewTarget(schema, resolve.Options{})
	require.NoError(t, err)
	k := metrics.For(&target.Leaves[0], metrics.NewConfig(nil, schema, nil)).Collect()
	b := &column.Batch{Levels: 5, Rows: 3, Rep: []byte{0, 0, 0, 1, 1}, Def: []byte{0, 1, 3, 2, 3}}
	b.Values.Reset(format.Double, 8)
	b.Values.Append(f64(1))
	b.Values.Append(f64(math.NaN()))
	k.Add(b)
	require.Equal(t, metrics.Stats{Values: pointer[int64](5), Nulls: pointer[int64](3), NaNs: pointer[int64](1)}, k.Stats())
}

func TestF044BoundsAreOwnedCopies(t *testing.T) {
	c, target := one(t, types.String, "full")
	k := c.Collect()
	b := batch(&target.Leaves[0], text("b"), text("a"))
	k.Add(b)
	for i := range b.Values.Data {
		b.Values.Data[i] = 'z'
	}
	s := k.Stats()
	require.Equal(t, "a", string(s.Lower))
	require.Equal(t, "b", string(s.Upper))
	s.Lower[0] = 'x'
	require.Equal(t, "a", string(k.Stats().Lower))
	m := c.Merge(k.Stats(), s)
	m.Upper[0] = 'y'
	require.Equal(t, "b", string(s.Upper))
}

func TestF045TextIsCutAtCodePoints(t *testing.T) {
	long := strings.Repeat("a", 15)
	for _, c := range []struct {
		mode, value  string
		lower, upper any
	}{
		{"truncate(16)", long + "\u2022", long + "\u2022", long + "\u2022"},
		{"truncate(16)", long + "\u2022x", long + "\u2022", long + "\u2023"},
		{"truncate(2)", "a\uD7FFb", "a\uD7FF", "a\uE000"},
		{"truncate(2)", "\U0010FFFF\U0010FFFF\U0010FFFF", "\U0010FFFF\U0010FFFF", nil},
		{"truncate(2)", "a\U0010FFFFz", "a\U0010FFFF", "b"},
		{"truncate(1)", "\U0010FFFE!", "\U0010FFFE", "\U0010FFFF"},
		{"truncate(16)", "", "", ""},
		{"full", long + long, long + long, long + long},
		{"full", "\xff", nil, nil},
		{"truncate(2)", "a\xffb", nil, nil},
		{"counts", "a", nil, nil},
	} {
		s := collect(t, types.String, c.mode, text(c.value))
		same(t, c.lower, s.Lower, c.value)
		same(t, c.upper, s.Upper, c.value)
	}
	// Bounds of entries that are not UTF-8 are not taken over.
	c, _ := one(t, types.String, "full")
	s := c.Entry(&resolve.Source{}, metrics.Stats{Lower: text("a\xe2"), Upper: text("b")}, 3)
	require.Nil(t, s.Lower)
	require.Equal(t, "b", string(s.Upper))
}

func same(t *testing.T, want any, got []byte, of string) {
	t.Helper()
	if want == nil {
		require.Nil(t, got, "%q", of)
		return
	}
	require.NotNil(t, got, "%q", of)
	require.Equal(t, want, string(got), "%q", of)
}

func TestF046BytesAreRoundedUpAndNotChanged(t *testing.T) {
	value := bytes.Repeat([]byte{0x61}, 20)
	s := collect(t, types.Binary, "truncate(16)", value)
	require.Equal(t, bytes.Repeat([]byte{0x61}, 16), s.Lower)
	require.Equal(t, append(bytes.Repeat([]byte{0x61}, 15), 0x62), s.Upper)
	require.Equal(t, bytes.Repeat([]byte{0x61}, 20), value)
	s = collect(t, types.Binary, "truncate(16)", bytes.Repeat([]byte{0xff}, 20))
	require.NotNil(t, s.Lower)
	require.Nil(t, s.Upper)
	s = collect(t, types.Binary, "truncate(2)", []byte{1, 0xff, 0})
	require.Equal(t, []byte{2}, s.Upper)
	// Fixed values keep their length.
	s = collect(t, icego.FixedTypeOf(20), "truncate(16)", value)
	require.Equal(t, value, s.Upper)
}

func TestF035DecimalsAreAsShortAsTheirSign(t *testing.T) {
	for unscaled, length := range map[int64]int{127: 1, 128: 2, 32767: 2, 32768: 3, -128: 1, -129: 2, -32768: 2, 0: 1, -1: 1} {
		for _, precision := range []int{9, 18, 38} {
			typ := icego.DecimalTypeOf(precision, 2)
			_, target := one(t, typ, "full")
			s := collect(t, typ, "full", decimal(target.Leaves[0].Node, unscaled))
			require.Len(t, s.Lower, length, "%d as decimal(%d)", unscaled, precision)
			v, err := iceberg.DecodeBound(typ, s.Upper)
			require.NoError(t, err)
			require.Equal(t, unscaled, int64(v.Any().(icego.Decimal).Val.LowBits()))
		}
	}
	// Signed, whatever the physical type (F032).
	for _, precision := range []int{9, 18, 38} {
		typ := icego.DecimalTypeOf(precision, 2)
		_, target := one(t, typ, "full")
		d := func(v int64) []byte { return decimal(target.Leaves[0].Node, v) }
		s := collect(t, typ, "full", d(100), d(-100), d(0))
		require.Equal(t, []byte{0x9c}, s.Lower)
		require.Equal(t, []byte{0x64}, s.Upper)
	}
}

func decimal(n *format.Node, v int64) []byte {
	switch n.Type {
	case format.Int32:
		return i32(int32(v))
	case format.Int64:
		return i64(v)
	}
	x := big.NewInt(v)
	if v < 0 {
		x.Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n.TypeLength)))
	}
	return x.FillBytes(make([]byte, n.TypeLength))
}

func TestF058EntriesOfOlderTypesArePromoted(t *testing.T) {
	c, _ := one(t, types.Int64, "full")
	old := c.Entry(&resolve.Source{}, metrics.Stats{Nulls: pointer[int64](0), Lower: i32(1), Upper: i32(math.MaxInt32)}, 2)
	later := c.Entry(&resolve.Source{}, metrics.Stats{Nulls: pointer[int64](1), Lower: i64(1 << 40), Upper: i64(1 << 40)}, 2)
	require.Equal(t, metrics.Stats{Values: pointer[int64](4), Nulls: pointer[int64](1), Lower: i64(1), Upper: i64(1 << 40)}, c.Merge(old, later))

	c, _ = one(t, types.Float64, "full")
	s := c.Entry(&resolve.Source{}, metrics.Stats{Lower: f32(0), Upper: f32(0.5)}, 1)
	require.Equal(t, f64(math.Copysign(0, -1)), s.Lower)
	require.Equal(t, f64(0.5), s.Upper)
	s = c.Entry(&resolve.Source{}, metrics.Stats{Lower: f64(math.NaN()), Upper: f64(1)}, 1)
	require.Nil(t, s.Lower)
	c, _ = one(t, types.Timestamp, "full")
	s = c.Entry(&resolve.Source{}, metrics.Stats{Lower: i32(-1), Upper: i32(1)}, 1)
	require.Equal(t, i64(-86_400_000_000), s.Lower)
}

func TestEntriesThatCannotBeRightAreNotTaken(t *testing.T) {
	c, _ := one(t, types.Float64, "full")
	e := func(s metrics.Stats) metrics.Stats { return c.Entry(&resolve.Source{}, s, 10) }
	ten := pointer[int64](10)
	for name, c := range map[string]struct{ in, want metrics.Stats }{
		"nothing stated":    {metrics.Stats{}, metrics.Stats{Values: ten}},
		"rows are known":    {metrics.Stats{Values: pointer[int64](9)}, metrics.Stats{Values: ten}},
		"negative":          {metrics.Stats{Nulls: pointer[int64](-1)}, metrics.Stats{Values: ten}},
		"more than all":     {metrics.Stats{Nulls: pointer[int64](11)}, metrics.Stats{Values: ten}},
		"together too many": {metrics.Stats{Nulls: pointer[int64](6), NaNs: pointer[int64](5)}, metrics.Stats{Values: ten}},
		"out of order":      {metrics.Stats{Lower: f64(2), Upper: f64(1)}, metrics.Stats{Values: ten}},
		"wrong length":      {metrics.Stats{Lower: []byte{1}}, metrics.Stats{Values: ten}},
	} {
		require.Equal(t, c.want, e(c.in), name)
	}
	// Bounds of uuid may have been compared as signed, those of geometry are boxes.
	c, _ = one(t, types.UUID, "full")
	s := c.Entry(&resolve.Source{}, metrics.Stats{Nulls: pointer[int64](0), Lower: make([]byte, 16), Upper: bytes.Repeat([]byte{1}, 16)}, 10)
	require.Equal(t, metrics.Stats{Values: ten, Nulls: pointer[int64](0)}, s)
	c, _ = one(t, icego.GeometryType{}, "full")
	s = c.Entry(&resolve.Source{}, metrics.Stats{Nulls: pointer[int64](0), Lower: make([]byte, 16), Upper: make([]byte, 16)}, 10)
	require.Equal(t, metrics.Stats{Values: ten, Nulls: pointer[int64](0)}, s)
}

func TestWhatOnePartDoesNotStateIsNotStated(t *testing.T) {
	c, _ := one(t, types.Float64, "truncate(16)")
	full := metrics.Stats{Values: pointer[int64](2), Nulls: pointer[int64](1), NaNs: pointer[int64](0), Lower: f64(1), Upper: f64(2)}
	bare := metrics.Stats{Values: pointer[int64](3), Nulls: pointer[int64](3)}
	nans := metrics.Stats{Values: pointer[int64](3), Nulls: pointer[int64](1), NaNs: pointer[int64](2)}
	require.Equal(t, metrics.Stats{Values: pointer[int64](8), Nulls: pointer[int64](5), NaNs: pointer[int64](2), Lower: f64(1), Upper: f64(2)}, c.Merge(full, bare, nans))
	without := func(change func(*metrics.Stats)) metrics.Stats {
		s := full
		change(&s)
		return c.Merge(full, s, bare)
	}
	require.Nil(t, without(func(s *metrics.Stats) { s.Values = nil }).Values)
	require.Nil(t, without(func(s *metrics.Stats) { s.Nulls = nil }).Nulls)
	require.Nil(t, without(func(s *metrics.Stats) { s.NaNs = nil }).NaNs)
	require.Nil(t, without(func(s *metrics.Stats) { s.Lower = nil }).Lower)
	require.Nil(t, without(func(s *metrics.Stats) { s.Upper = nil }).Upper)
	require.NotNil(t, without(func(s *metrics.Stats) { s.Upper = nil }).Lower)
	// Not known to be all null.
	require.Nil(t, c.Merge(full, metrics.Stats{Values: pointer[int64](3)}).Lower)
	require.Equal(t, metrics.Stats{}, func() metrics.Stats { c, _ := one(t, types.Int64, "none"); return c.Merge(full) }())
}

func TestF055AbsentColumnsCountAsTheirConstant(t *testing.T) {
	c, target := one(t, types.Int64, "full")
	s := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "c", Type: types.Int64, InitialDefault: float64(7)}, icego.NestedField{ID: 2, Name: "d", Type: types.Int32})
	with, err := resolve.NewTarget(s, resolve.Options{})
	require.NoError(t, err)
	other, err := resolve.NewTarget(icego.NewSchema(0, icego.NestedField{ID: 2, Name: "d", Type: types.Int32}), resolve.Options{})
	require.NoError(t, err)
	m, err := resolve.File(with, &format.Footer{Schema: other.Schema}, resolve.Context{FormatVersion: 3})
	require.NoError(t, err)
	part := c.Entry(&m.Leaves[0], metrics.Stats{Lower: i64(99)}, 4)
	require.Equal(t, metrics.Stats{Values: pointer[int64](4), Nulls: pointer[int64](0), Lower: i64(7), Upper: i64(7)}, part)
	k := c.Collect()
	k.Add(batch(&target.Leaves[0], i64(1), nil))
	require.Equal(t, metrics.Stats{Values: pointer[int64](6), Nulls: pointer[int64](1), Lower: i64(1), Upper: i64(7)}, c.Merge(part, k.Stats()))

	null := c.Entry(&resolve.Source{Leaf: -1, Synthetic: true}, metrics.Stats{}, 4)
	require.Equal(t, metrics.Stats{Values: pointer[int64](4), Nulls: pointer[int64](4)}, null)
	// What is completed later is not known.
	require.Equal(t, metrics.Stats{}, c.Entry(&resolve.Source{Leaf: -1, Synthetic: true, Lineage: resolve.RowID}, metrics.Stats{}, 4))
	require.Equal(t, metrics.Stats{}, c.Entry(&resolve.Source{Lineage: resolve.RowID}, metrics.Stats{Nulls: pointer[int64](1)}, 4))
}

func TestSomeRowsKeepOnlyWhatStaysExact(t *testing.T) {
	three := pointer[int64](3)
	c, _ := one(t, types.Int64, "truncate(16)")
	ten := metrics.Stats{Values: pointer[int64](10), Nulls: pointer[int64](0), Lower: i64(1), Upper: i64(2)}
	require.Equal(t, metrics.Stats{Values: three, Nulls: pointer[int64](0)}, c.Some(ten, 3))
	ten.Nulls = pointer[int64](1)
	require.Equal(t, metrics.Stats{Values: three}, c.Some(ten, 3))
	ten.Nulls = pointer[int64](10)
	require.Equal(t, metrics.Stats{Values: three, Nulls: three}, c.Some(ten, 3))
	s := metrics.Stats{Values: pointer[int64](10), Lower: text("a"), Upper: text("b")}
	c, _ = one(t, types.String, "truncate(16)")
	require.Equal(t, "a", string(c.Some(s, 3).Lower))
	c, _ = one(t, types.String, "full")
	require.Nil(t, c.Some(s, 3).Lower, "engines take bounds for values")
	c, _ = one(t, types.Binary, "truncate(16)")
	require.Nil(t, c.Some(s, 3).Upper)
}

// source resolves a leaf of a file as the column.
func source(t *testing.T, target *resolve.Target, file *format.Node) (*resolve.Source, *format.Node) {
	t.Helper()
	file.FieldID = pointer[int32](1)
	file.Name, file.Repetition = "c", format.Optional
	s, err := format.NewSchema(&format.Node{Group: true, Children: []*format.Node{file}})
	require.NoError(t, err)
	m, err := resolve.File(target, &format.Footer{Schema: s}, resolve.Context{FormatVersion: 3})
	require.NoError(t, err)
	return &m.Leaves[0], s.Leaves[0]
}

func TestF033StatisticsOfParquetAreConverted(t *testing.T) {
	decimalNode := func(typ format.Type, length, p int32) *format.Node {
		return &format.Node{Type: typ, TypeLength: length, Logical: &format.Logical{Kind: format.LogicalDecimal, Precision: p, Scale: 0}}
	}
	millis := &format.Node{Type: format.Int64, Logical: &format.Logical{Kind: format.LogicalTimestamp, Unit: format.Millis}}
	d38 := icego.DecimalTypeOf(38, 0)
	yes, no := pointer(true), pointer(false)
	for name, c := range map[string]struct {
		typ          icego.Type
		mode         string
		node         *format.Node
		min, max     []byte
		exact        *bool
		order        format.Order
		lower, upper []byte
	}{
		"decimal in 4 bytes":     {d38, "full", decimalNode(format.Int32, 0, 3), i32(-5), i32(500), nil, format.OrderByType, []byte{0xfb}, []byte{0x01, 0xf4}},
		"decimal in 16 bytes":    {d38, "full", decimalNode(format.FixedLenByteArray, 16, 38), bytes.Repeat([]byte{0xff}, 16), make([]byte, 16), nil, format.OrderByType, []byte{0xff}, []byte{0}},
		"decimal in bytes":       {d38, "full", decimalNode(format.ByteArray, 0, 38), []byte{1}, []byte{2}, nil, format.OrderByType, nil, nil},
		"cut decimal":            {d38, "full", decimalNode(format.FixedLenByteArray, 16, 38), []byte{1}, []byte{2}, nil, format.OrderByType, nil, nil},
		"promoted":               {types.Int64, "full", &format.Node{Type: format.Int32}, i32(-1), i32(7), nil, format.OrderByType, i64(-1), i64(7)},
		"inexact number":         {types.Int64, "full", &format.Node{Type: format.Int64}, i64(-1), i64(7), no, format.OrderByType, nil, nil},
		"no order":               {types.Int64, "full", &format.Node{Type: format.Int64}, i64(-1), i64(7), nil, format.OrderUnknown, nil, nil},
		"out of order":           {types.Int64, "full", &format.Node{Type: format.Int64}, i64(7), i64(-1), nil, format.OrderByType, nil, nil},
		"millis":                 {types.Timestamp, "full", millis, i64(-1), i64(1), nil, format.OrderByType, i64(-1000), i64(1000)},
		"INT96":                  {types.Timestamp, "full", &format.Node{Type: format.Int96}, make([]byte, 12), make([]byte, 12), nil, format.OrderByType, nil, nil},
		"NaN":                    {types.Float64, "full", &format.Node{Type: format.Double}, f64(math.NaN()), f64(1), nil, format.OrderByType, nil, f64(1)},
		"zeros":                  {types.Float64, "full", &format.Node{Type: format.Double}, f64(0), f64(math.Copysign(0, -1)), nil, format.OrderIEEE, f64(math.Copysign(0, -1)), f64(0)},
		"zero":                   {types.Float64, "full", &format.Node{Type: format.Double}, f64(0), f64(0), nil, format.OrderByType, f64(math.Copysign(0, -1)), f64(0)},
		"text, perhaps cut":      {types.String, "truncate(16)", &format.Node{Type: format.ByteArray}, text("a"), text("b"), nil, format.OrderByType, text("a"), text("b")},
		"text, known to be cut":  {types.String, "truncate(1)", &format.Node{Type: format.ByteArray}, text("aa"), text("bb"), no, format.OrderByType, text("a"), text("c")},
		"text in full":           {types.String, "full", &format.Node{Type: format.ByteArray}, text("a"), text("b"), yes, format.OrderByType, text("a"), text("b")},
		"text, perhaps not full": {types.String, "full", &format.Node{Type: format.ByteArray}, text("a"), text("b"), nil, format.OrderByType, nil, nil},
		"no UTF-8":               {types.String, "truncate(16)", &format.Node{Type: format.ByteArray}, text("\xe2"), text("\xff"), nil, format.OrderByType, nil, nil},
		"bytes, exact":           {types.Binary, "truncate(2)", &format.Node{Type: format.ByteArray}, text("a"), text("b"), yes, format.OrderByType, text("a"), text("b")},
		"bytes, perhaps cut":     {types.Binary, "truncate(2)", &format.Node{Type: format.ByteArray}, text("a"), text("bbb"), nil, format.OrderByType, nil, text("bc")},
		"uuid":                   {types.UUID, "full", &format.Node{Type: format.FixedLenByteArray, TypeLength: 16}, make([]byte, 16), bytes.Repeat([]byte{0xff}, 16), nil, format.OrderByType, make([]byte, 16), bytes.Repeat([]byte{0xff}, 16)},
	} {
		t.Run(name, func(t *testing.T) {
			column, target := one(t, c.typ, c.mode)
			src, leaf := source(t, target, c.node)
			chunk := metrics.Chunk{Values: 3, Order: c.order, Trusted: true, Statistics: &format.Statistics{
				Min: c.min, Max: c.max, MinExact: c.exact, MaxExact: c.exact, NullCount: pointer[int64](1),
			}}
			s := column.Parquet(src, leaf, chunk)
			require.Equal(t, c.lower, s.Lower)
			require.Equal(t, c.upper, s.Upper)
			require.Equal(t, int64(1), *s.Nulls)
			chunk.Trusted = false
			s = column.Parquet(src, leaf, chunk)
			require.Nil(t, s.Lower)
			require.Nil(t, s.Upper)
			// Legacy bounds are not read.
			chunk.Trusted, chunk.Statistics = true, &format.Statistics{LegacyMin: c.min, LegacyMax: c.max}
			require.Equal(t, metrics.Stats{Values: pointer[int64](3)}, column.Parquet(src, leaf, chunk))
		})
	}
}

func TestF141FilesWithoutStatisticsStateNothing(t *testing.T) {
	c, target := one(t, types.Float64, "full")
	src, leaf := source(t, target, &format.Node{Type: format.Double})
	none := c.Parquet(src, leaf, metrics.Chunk{Values: 2, Order: format.OrderByType, Trusted: true})
	require.Equal(t, metrics.Stats{Values: pointer[int64](2)}, none)
	some := c.Parquet(src, leaf, metrics.Chunk{Values: 2, Order: format.OrderByType, Trusted: true,
		Statistics: &format.Statistics{Min: f64(1), Max: f64(2), NullCount: pointer[int64](0), NaNCount: pointer[int64](0)}})
	require.Equal(t, metrics.Stats{Values: pointer[int64](4)}, c.Merge(none, some))
	require.Equal(t, metrics.Stats{Values: pointer[int64](4), Nulls: pointer[int64](0), NaNs: pointer[int64](0), Lower: f64(1), Upper: f64(2)}, c.Merge(some, some))
}

func TestVariantsCountByTheirMetadata(t *testing.T) {
	s := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "v", Type: icego.VariantType{}})
	target, err := resolve.NewTarget(s, resolve.Options{})
	require.NoError(t, err)
	c := metrics.NewConfig(nil, s, nil)
	require.True(t, metrics.For(&target.Leaves[0], c).Reported())
	require.False(t, metrics.For(&target.Leaves[1], c).Reported())
	k := metrics.For(&target.Leaves[0], c).Collect()
	k.Add(batch(&target.Leaves[0], []byte{1}, nil))
	require.Equal(t, metrics.Stats{Values: pointer[int64](2), Nulls: pointer[int64](1)}, k.Stats())
}

func TestF050BoundsOfUUIDAreItsBytesUnsigned(t *testing.T) {
	low, high := append([]byte{0x01}, make([]byte, 15)...), append([]byte{0x90}, make([]byte, 15)...)
	s := collect(t, types.UUID, "truncate(4)", high, low)
	require.Equal(t, low, s.Lower)
	require.Equal(t, high, s.Upper)
}
