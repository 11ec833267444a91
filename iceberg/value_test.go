package iceberg_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

func value(t require.TestingT, typ icego.Type, v any) iceberg.Value {
	out, err := iceberg.NewValue(typ, v)
	require.NoError(t, err)
	return out
}

func bound(t require.TestingT, typ icego.Type, hexText string) iceberg.Value {
	b, err := hex.DecodeString(hexText)
	require.NoError(t, err)
	v, err := iceberg.DecodeBound(typ, b)
	require.NoError(t, err)
	return v
}

var id16 = uuid.MustParse("f79c3e09-677c-4bbd-a479-3f349cb785e7")

// The bytes are those of the examples in appendix D of the specification, or
// follow from its rules.
func TestF050SingleValues(t *testing.T) {
	dec := icego.DecimalTypeOf(9, 2)
	for _, c := range []struct {
		typ  icego.Type
		from []any
		hex  string
		any  any
		text string
	}{
		{icego.BooleanType{}, []any{true, ptr(true)}, "01", true, "true"},
		{icego.Int32Type{}, []any{34, int32(34), int64(34), uint8(34), ptr(int32(34))}, "22000000", int32(34), "34"},
		{icego.Int64Type{}, []any{34, int32(34), int64(34)}, "2200000000000000", int64(34), "34"},
		{icego.Float32Type{}, []any{float32(1), float64(1)}, "0000803f", float32(1), "1"},
		{icego.Float64Type{}, []any{float32(1), float64(1)}, "000000000000f03f", float64(1), "1"},
		{icego.DateType{}, []any{int32(17501), 17501, icego.Date(17501), time.Date(2017, 12, 1, 23, 0, 0, 0, time.UTC)}, "5d440000", icego.Date(17501), "2017-12-01"},
		{icego.DateType{}, []any{-1, time.Date(1969, 12, 31, 1, 0, 0, 0, time.UTC)}, "ffffffff", icego.Date(-1), "1969-12-31"},
		{icego.TimeType{}, []any{int64(36775038194), icego.Time(36775038194), 36775038194 * time.Microsecond, time.Date(2020, 1, 1, 10, 12, 55, 38194000, time.UTC)}, "f28cf68f08000000", icego.Time(36775038194), "10:12:55.038194"},
		{icego.TimestampType{}, []any{int64(1512123175038194), icego.Timestamp(1512123175038194), icego.TimestampNano(1512123175038194000), time.Date(2017, 12, 1, 10, 12, 55, 38194000, time.UTC)},
			"f26cb49c445f0500", icego.Timestamp(1512123175038194), "2017-12-01T10:12:55.038194"},
		{icego.TimestampTzType{}, []any{int64(1512123175038194)}, "f26cb49c445f0500", icego.Timestamp(1512123175038194), "2017-12-01T10:12:55.038194+00:00"},
		{icego.TimestampNsType{}, []any{int64(1000), icego.TimestampNano(1000), icego.Timestamp(1), time.Unix(0, 1000)}, "e803000000000000", icego.TimestampNano(1000), "1970-01-01T00:00:00.000001"},
		{icego.StringType{}, []any{"iceberg", []byte("iceberg")}, "69636562657267", "iceberg", "iceberg"},
		{icego.BinaryType{}, []any{[]byte{0, 1}, "\x00\x01", [2]byte{0, 1}}, "0001", []byte{0, 1}, "AAE="},
		{icego.FixedTypeOf(2), []any{[]byte{0, 1}, [2]byte{0, 1}, icego.FixedLiteral{0, 1}}, "0001", []byte{0, 1}, "AAE="},
		{icego.UUIDType{}, []any{id16, [16]byte(id16), id16[:], id16.String(), string(id16[:])}, "f79c3e09677c4bbda4793f349cb785e7", id16, id16.String()},
		{dec, []any{icego.Decimal{Val: decimal128.FromI64(1420), Scale: 2}, decimal128.FromI64(1420), big.NewInt(1420), big.NewRat(142, 10), []byte{5, 0x8c}, []byte{0, 0, 5, 0x8c},
			icego.DecimalLiteral{Val: decimal128.FromI64(1420), Scale: 2}}, "058c", icego.Decimal{Val: decimal128.FromI64(1420), Scale: 2}, "14.20"},
		{dec, []any{big.NewInt(-1), []byte{0xff, 0xff}}, "ff", icego.Decimal{Val: decimal128.FromI64(-1), Scale: 2}, "-0.01"},
		{dec, []any{big.NewInt(128), []byte{0, 0x80}}, "0080", icego.Decimal{Val: decimal128.FromI64(128), Scale: 2}, "1.28"},
		{dec, []any{big.NewInt(0), []byte{0}}, "00", icego.Decimal{Val: decimal128.FromI64(0), Scale: 2}, "0.00"},
	} {
		for _, from := range c.from {
			v := value(t, c.typ, from)
			require.Equal(t, c.hex, hex.EncodeToString(v.Bytes()), "%s %T %v", c.typ, from, from)
			require.Equal(t, c.any, v.Any())
			require.Equal(t, c.text, v.String())
			require.False(t, v.IsNull())
			require.Equal(t, c.typ, v.Type())
			require.True(t, bound(t, c.typ, c.hex) == v)
		}
	}
}

func TestF072NullIsAValue(t *testing.T) {
	v := value(t, icego.StringType{}, nil)
	require.True(t, v.IsNull())
	require.Nil(t, v.Any())
	require.Nil(t, v.Bytes())
	require.Equal(t, "null", v.String())
	require.True(t, v == value(t, icego.StringType{}, (*string)(nil)))
	require.False(t, v == value(t, icego.StringType{}, ""))
	n, err := v.Compare(value(t, icego.StringType{}, ""))
	require.NoError(t, err)
	require.Equal(t, -1, n)
}

func TestF058OldBoundsArePromoted(t *testing.T) {
	require.Equal(t, int64(math.MaxInt32), bound(t, icego.Int64Type{}, "ffffff7f").Any())
	require.Equal(t, int64(-2), bound(t, icego.Int64Type{}, "feffffff").Any())
	require.Equal(t, 1.5, bound(t, icego.Float64Type{}, "0000c03f").Any())
	require.Equal(t, icego.Timestamp(-86400e6), bound(t, icego.TimestampType{}, "ffffffff").Any())
	require.Equal(t, icego.TimestampNano(86400e9), bound(t, icego.TimestampNsType{}, "01000000").Any())
	require.Equal(t, "0.01", bound(t, icego.DecimalTypeOf(18, 2), "00000001").String())
	require.Equal(t, []byte{1, 0, 0}, bound(t, icego.FixedTypeOf(3), "01").Any())
	for typ, texts := range map[icego.Type][]string{
		icego.BooleanType{}: {"", "02", "0100"}, icego.Int32Type{}: {"", "01", "0100000000000000"}, icego.Int64Type{}: {"", "010000", "010000000000000000"},
		icego.Float32Type{}: {"00", "0000000000000000"}, icego.Float64Type{}: {"00"}, icego.DateType{}: {"0100000000000000"}, icego.TimeType{}: {"01000000"},
		icego.TimestampTzType{}: {"01000000"}, icego.TimestampTzNsType{}: {"01000000"}, icego.TimestampNsType{}: {"ffffff7f", "00000080"}, icego.UUIDType{}: {"00"},
		icego.FixedTypeOf(1): {"0001"}, icego.DecimalTypeOf(9, 2): {"", "0100000000000000000000000000000000"}, icego.GeometryType{}: {"00"},
	} {
		for _, text := range texts {
			b, _ := hex.DecodeString(text)
			_, err := iceberg.DecodeBound(typ, b)
			requireKind(t, fault.Corrupt, err, typ.String())
		}
	}
	_, err := iceberg.DecodeBound(icego.VariantType{}, nil)
	requireKind(t, fault.Unsupported, err)
}

func TestValuesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		typ icego.Type
		v   any
	}{
		{icego.Int32Type{}, int64(1) << 31}, {icego.Int32Type{}, "1"}, {icego.Int64Type{}, uint64(1) << 63}, {icego.Int64Type{}, 1.5},
		{icego.Float32Type{}, 0.1}, {icego.Float64Type{}, 1}, {icego.BooleanType{}, 1}, {icego.StringType{}, 1}, {icego.FixedTypeOf(2), "abc"},
		{icego.UUIDType{}, "abc"}, {icego.DecimalTypeOf(9, 2), 1.5}, {icego.DecimalTypeOf(9, 2), big.NewRat(1, 3)},
		{icego.DecimalTypeOf(9, 2), icego.Decimal{Scale: 3}}, {icego.DecimalTypeOf(38, 0), new(big.Int).Lsh(big.NewInt(1), 127)},
		{icego.TimestampType{}, icego.TimestampNano(1)}, {icego.TimestampType{}, time.Second}, {icego.TimestampNsType{}, time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)},
		{icego.TimestampNsType{}, icego.Timestamp(math.MaxInt64)}, {icego.TimestampNsType{}, icego.Date(math.MaxInt32)},
	} {
		_, err := iceberg.NewValue(c.typ, c.v)
		requireKind(t, fault.Corrupt, err, c.typ.String())
	}
	_, err := iceberg.NewValue(&icego.ListType{}, 1)
	requireKind(t, fault.Unsupported, err)
}

func TestFloatsAreEqualByBits(t *testing.T) {
	for _, typ := range []icego.Type{icego.Float32Type{}, icego.Float64Type{}} {
		nan, otherNaN := math.NaN(), math.Float64frombits(0xfff8000000000001)
		require.True(t, value(t, typ, nan) == value(t, typ, otherNaN))
		require.True(t, value(t, typ, float32(nan)) == value(t, typ, nan))
		zero, minus := value(t, typ, 0.0), value(t, typ, math.Copysign(0, -1))
		require.False(t, zero == minus)
		order := []iceberg.Value{iceberg.Null(typ), value(t, typ, math.Inf(-1)), value(t, typ, -1.0), minus, zero, value(t, typ, 1.0), value(t, typ, math.Inf(1)), value(t, typ, nan)}
		for i, a := range order {
			for j, b := range order {
				n, err := a.Compare(b)
				require.NoError(t, err)
				require.Equal(t, sign(i-j), n, "%v %v", a, b)
			}
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestCompare(t *testing.T) {
	for _, order := range [][]iceberg.Value{
		{value(t, icego.Int32Type{}, -5), value(t, icego.Int32Type{}, 3), value(t, icego.Int32Type{}, 300)},
		{value(t, icego.BooleanType{}, false), value(t, icego.BooleanType{}, true)},
		{value(t, icego.StringType{}, "a"), value(t, icego.StringType{}, "ab"), value(t, icego.StringType{}, "\uffff"), value(t, icego.StringType{}, "😀")},
		{value(t, icego.BinaryType{}, "\x01"), value(t, icego.BinaryType{}, "\xff")},
		{value(t, icego.DecimalTypeOf(20, 1), big.NewInt(-300)), value(t, icego.DecimalTypeOf(20, 1), big.NewInt(-2)), value(t, icego.DecimalTypeOf(20, 1), big.NewInt(200))},
	} {
		for i, a := range order {
			for j, b := range order {
				n, err := a.Compare(b)
				require.NoError(t, err)
				require.Equal(t, sign(i-j), n, "%v %v", a, b)
			}
		}
	}
	_, err := value(t, icego.Int32Type{}, 1).Compare(value(t, icego.Int64Type{}, 1))
	requireKind(t, fault.Unsupported, err)
	_, err = iceberg.Value{}.Compare(iceberg.Value{})
	requireKind(t, fault.Unsupported, err)
	geo := bound(t, icego.GeometryType{}, "00000000000000000000000000000000")
	_, err = geo.Compare(geo)
	requireKind(t, fault.Unsupported, err)
}

func TestDecimalsAgreeWithBig(t *testing.T) {
	typ := icego.DecimalTypeOf(38, 5)
	rapid.Check(t, func(t *rapid.T) {
		draw := func() *big.Int {
			b := rapid.SliceOfN(rapid.Byte(), 0, 15).Draw(t, "bytes")
			n := new(big.Int).SetBytes(b)
			if rapid.Bool().Draw(t, "minus") {
				n.Neg(n)
			}
			return n
		}
		a, b := draw(), draw()
		va, vb := value(t, typ, a), value(t, typ, b)
		n, err := va.Compare(vb)
		require.NoError(t, err)
		require.Equal(t, a.Cmp(b), n)
		require.Equal(t, a.Cmp(b) == 0, va == vb)
		require.Zero(t, va.Any().(icego.Decimal).Val.BigInt().Cmp(a))
		padded := append(make([]byte, 3), va.Bytes()...)
		if a.Sign() < 0 {
			padded[0], padded[1], padded[2] = 0xff, 0xff, 0xff
		}
		again, err := iceberg.DecodeBound(typ, padded)
		require.NoError(t, err)
		require.True(t, again == va)
	})
}

func partitioned(t require.TestingT, version int, fields map[string]any, id iceberg.SpecID) (*iceberg.Metadata, *iceberg.PartitionType) {
	m := parse(t, tableJSON(version, fields))
	p, err := m.PartitionType(id)
	require.NoError(t, err)
	return m, p
}

func schema(id int, fields ...any) map[string]any {
	return map[string]any{"type": "struct", "schema-id": id, "fields": append([]any{}, fields...)}
}

func TestF069DaysAreDates(t *testing.T) {
	_, p := partitioned(t, 2, map[string]any{"partition-specs": []any{spec(0, partition(1000, 3, "d", "day"))}, "last-partition-id": 1000}, 0)
	var keys []iceberg.TupleKey
	for _, v := range []any{int32(17501), int64(17501), icego.Date(17501), time.Date(2017, 12, 1, 0, 0, 0, 0, time.UTC), ptr(int32(17501))} {
		tuple, err := p.Tuple(map[iceberg.FieldID]any{1000: v})
		require.NoError(t, err)
		require.Equal(t, "d=2017-12-01", p.Text(tuple))
		require.Equal(t, "d=2017-12-01", p.Dir(tuple))
		require.Equal(t, icego.Date(17501), tuple.At(0).Any())
		keys = append(keys, tuple.Key())
	}
	for _, k := range keys {
		require.Equal(t, keys[0], k)
	}
}

func TestTuples(t *testing.T) {
	_, p := partitioned(t, 2, map[string]any{"partition-specs": []any{spec(0, partition(1000, 1, "x", "identity"), partition(1001, 2, "y", "truncate[4]"),
		partition(1002, 3, "h", "hour"), partition(1003, 3, "mo", "month"), partition(1004, 3, "yr", "year"), partition(1005, 2, "b", "bucket[16]"))}, "last-partition-id": 1005}, 0)
	tuple, err := p.Tuple(map[iceberg.FieldID]any{1000: int32(5), 1001: "a/b~*", 1002: 417, 1003: -1, 1004: 47, 1005: 3})
	require.NoError(t, err)
	require.Equal(t, "x=5/y=a%2Fb%7E*/h=1970-01-18-09/mo=1969-12/yr=2017/b=3", p.Dir(tuple))
	wide, err := p.Tuple(map[iceberg.FieldID]any{1000: int64(5), 1001: "a/b~*", 1002: 417, 1003: -1, 1004: 47, 1005: 3})
	require.NoError(t, err)
	require.Equal(t, tuple.Key(), wide.Key(), "promoted and unpromoted values are equal")
	none, err := p.Tuple(nil)
	require.NoError(t, err)
	require.Equal(t, "x=null, y=null, h=null, mo=null, yr=null, b=null", p.Text(none))
	require.NotEqual(t, tuple.Key(), none.Key())
	_, err = p.Tuple(map[iceberg.FieldID]any{1000: "5"})
	requireKind(t, fault.Corrupt, err, `"x"`)

	key := iceberg.PartitionKey{Spec: 0, Tuple: tuple.Key()}
	text, err := json.Marshal(key)
	require.NoError(t, err)
	var back iceberg.PartitionKey
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, key, back)
	again, err := p.Decode(back.Tuple)
	require.NoError(t, err)
	require.Equal(t, tuple, again)
	for _, bad := range []iceberg.TupleKey{"", tuple.Key() + "x", tuple.Key()[1:], "\x02", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, err := p.Decode(bad)
		requireKind(t, fault.Corrupt, err)
	}
	require.Error(t, json.Unmarshal([]byte(`{"tuple":"!"}`), &back))

	_, empty := partitioned(t, 2, nil, 0)
	tuple, err = empty.Tuple(nil)
	require.NoError(t, err)
	require.Empty(t, tuple.Key())
	require.Empty(t, empty.Dir(tuple))
	require.True(t, empty.Unpartitioned())
}

// TestTupleKeysAreInjective draws pairs of tuples over strings, whose
// encodings could run into each other.
func TestTupleKeysAreInjective(t *testing.T) {
	_, p := partitioned(t, 2, map[string]any{"partition-specs": []any{spec(0, partition(1000, 2, "a", "identity"), partition(1001, 2, "b", "truncate[9]"))}, "last-partition-id": 1001}, 0)
	rapid.Check(t, func(t *rapid.T) {
		draw := func() (map[iceberg.FieldID]any, iceberg.TupleKey) {
			values := map[iceberg.FieldID]any{}
			for _, id := range []iceberg.FieldID{1000, 1001} {
				if rapid.Bool().Draw(t, "set") {
					values[id] = rapid.StringMatching(`[\x00-\x02a]{0,3}`).Draw(t, "value")
				}
			}
			tuple, err := p.Tuple(values)
			require.NoError(t, err)
			back, err := p.Decode(tuple.Key())
			require.NoError(t, err)
			require.Equal(t, tuple, back)
			return values, tuple.Key()
		}
		a, keyA := draw()
		b, keyB := draw()
		equal := len(a) == len(b)
		for k, v := range a {
			other, ok := b[k]
			equal = equal && ok && v == other
		}
		require.Equal(t, equal, keyA == keyB)
	})
}

func TestF066F067DroppedSourcesKeepTheirTypes(t *testing.T) {
	fields := map[string]any{
		"schemas": []any{
			schema(0, column(1, "a", "int"), column(3, "ts", "timestamp"), column(4, "s", map[string]any{"type": "struct", "fields": []any{column(5, "a.b", "decimal(9,2)")}}),
				column(6, "l", map[string]any{"type": "list", "element-id": 7, "element-required": false, "element": "string"})),
			schema(1, column(3, "time", "timestamp"), column(4, "s", map[string]any{"type": "struct", "fields": []any{column(5, "a.b", "decimal(18,2)")}})),
		},
		"current-schema-id": 1, "last-column-id": 9,
		"partition-specs": []any{
			spec(0, partition(1000, 1, "a", "identity"), partition(1001, 3, "d", "day"), partition(1002, 5, "a.b", "identity"), partition(1003, 9, "gone", "identity"), partition(1004, 9, "gb", "bucket[4]")),
			spec(1, partition(1001, 3, "d", "day")), spec(2, partition(1005, 3, "z", "zorder9")),
		},
		"default-spec-id": 1, "last-partition-id": 1005,
	}
	m, p := partitioned(t, 2, fields, 0)
	require.Len(t, p.Fields, 5)
	require.Equal(t, icego.Int32Type{}, p.Fields[0].Result)
	require.Equal(t, icego.DateType{}, p.Fields[1].Result)
	require.Equal(t, icego.DecimalTypeOf(18, 2), p.Fields[2].Result)
	require.Nil(t, p.Fields[3].Result)
	require.Equal(t, icego.Int32Type{}, p.Fields[4].Result)
	tuple, err := p.Tuple(map[iceberg.FieldID]any{1000: int32(7), 1001: 1, 1002: big.NewRat(5, 4), 1003: int32(8), 1004: 3})
	require.NoError(t, err)
	require.Equal(t, "a=7, d=1970-01-02, a.b=1.25, gone=8, gb=3", p.Text(tuple))
	require.Equal(t, "a=7/d=1970-01-02/a.b=1.25/gone=8/gb=3", p.Dir(tuple))
	wide, err := p.Tuple(map[iceberg.FieldID]any{1000: int32(7), 1001: 1, 1002: []byte{125}, 1003: int64(8), 1004: 3})
	require.NoError(t, err)
	require.Equal(t, tuple.Key(), wide.Key())
	back, err := p.Decode(tuple.Key())
	require.NoError(t, err)
	require.Equal(t, tuple.Key(), back.Key())
	requireKind(t, fault.Unsupported, p.Writable(m), `"a"`, "dropped")

	current, err := m.PartitionType(1)
	require.NoError(t, err)
	require.NoError(t, current.Writable(m))
	unknown, err := m.PartitionType(2)
	require.NoError(t, err)
	requireKind(t, fault.Unsupported, unknown.Writable(m), "zorder9")
	_, err = m.PartitionType(9)
	requireKind(t, fault.Corrupt, err, "9")

	h := m.History()
	c, ok := h.Column(1)
	require.True(t, ok)
	require.False(t, c.Current)
	require.Equal(t, iceberg.SchemaID(0), c.Schema)
	c, ok = h.Column(3)
	require.True(t, ok && c.Current)
	require.Equal(t, []string{"time"}, c.Path)
	c, ok = h.Column(5)
	require.True(t, ok)
	require.Equal(t, []string{"s", "a.b"}, c.Path)
	require.Equal(t, iceberg.FieldID(4), c.Parent)
	require.Equal(t, []icego.Type{icego.DecimalTypeOf(9, 2), icego.DecimalTypeOf(18, 2)}, h.Types(5))
	c, ok = h.Column(7)
	require.True(t, ok)
	require.Equal(t, []string{"l", "element"}, c.Path)
	_, ok = h.Column(99)
	require.False(t, ok)
}

func TestF065VoidFields(t *testing.T) {
	fields := map[string]any{
		"partition-specs": []any{spec(0, partition(1000, 1, "x", "bucket[2]"), partition(1001, 2, "y", "identity")),
			spec(1, partition(1000, 1, "x", "void"), map[string]any{"field-id": 1001, "name": "y", "transform": "void"})},
		"default-spec-id": 1, "last-partition-id": 1001,
	}
	m, old := partitioned(t, 1, fields, 0)
	require.False(t, old.Unpartitioned())
	tuple, err := old.Tuple(map[iceberg.FieldID]any{1000: 1, 1001: "v"})
	require.NoError(t, err)
	require.Equal(t, "x=1, y=v", old.Text(tuple))
	void, err := m.PartitionType(1)
	require.NoError(t, err)
	require.True(t, void.Unpartitioned())
	require.NoError(t, void.Writable(m))
	require.Equal(t, icego.Int64Type{}, void.Fields[0].Result)
	require.Empty(t, void.Fields[1].SourceIDs)
	tuple, err = void.Tuple(nil)
	require.NoError(t, err)
	require.Equal(t, "x=null, y=null", void.Text(tuple))
}

func TestF070TwoIdsForOneFieldAreTwoPartitions(t *testing.T) {
	m := parse(t, tableJSON(2, map[string]any{"partition-specs": []any{spec(0, partition(1000, 1, "x", "identity")), spec(1), spec(2, partition(1001, 1, "x", "identity"))},
		"last-partition-id": 1001}))
	a, err := m.PartitionType(0)
	require.NoError(t, err)
	b, err := m.PartitionType(2)
	require.NoError(t, err)
	ta, err := a.Tuple(map[iceberg.FieldID]any{1000: 1})
	require.NoError(t, err)
	tb, err := b.Tuple(map[iceberg.FieldID]any{1001: 1})
	require.NoError(t, err)
	require.NotEqual(t, iceberg.PartitionKey{Spec: a.Spec, Tuple: ta.Key()}, iceberg.PartitionKey{Spec: b.Spec, Tuple: tb.Key()})
}

func TestCanPromote(t *testing.T) {
	types := []icego.Type{icego.Int32Type{}, icego.Int64Type{}, icego.Float32Type{}, icego.Float64Type{}, icego.DateType{}, icego.TimestampType{}, icego.TimestampTzType{},
		icego.TimestampNsType{}, icego.DecimalTypeOf(9, 2), icego.DecimalTypeOf(18, 2), icego.DecimalTypeOf(18, 3), icego.StringType{}, icego.BinaryType{}, icego.UnknownType{}}
	want := map[string]int{ // from the format version on
		"int long": 1, "float double": 1, "decimal(9, 2) decimal(18, 2)": 1, "date timestamp": 3, "date timestamp_ns": 3,
	}
	for _, from := range types {
		for _, to := range types {
			since, ok := want[from.String()+" "+to.String()]
			if from.Equals(to) {
				since, ok = 1, true
			} else if _, unknown := from.(icego.UnknownType); unknown {
				since, ok = 3, true
			}
			for version := 1; version <= 3; version++ {
				require.Equal(t, ok && version >= since, iceberg.CanPromote(from, to, version), "%s to %s in v%d", from, to, version)
			}
		}
	}
}

func TestF060F061NameMapping(t *testing.T) {
	read := func(text string) (icego.NameMapping, bool, error) {
		return parse(t, tableJSON(2, map[string]any{"properties": map[string]any{iceberg.NameMappingProperty: text}})).NameMapping()
	}
	mapping, ok, err := read(`[{"field-id":1,"names":["x","old"]},{"field-id":4,"names":["s"],"fields":[{"field-id":5,"names":["x"]}]}]`)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 5, mapping[1].Fields[0].ID())
	_, ok, err = parse(t, tableJSON(2, nil)).NameMapping()
	require.NoError(t, err)
	require.False(t, ok)
	for text, mapping := range map[string]string{
		`name "x"`:          `[{"field-id":1,"names":["x"]},{"field-id":2,"names":["y","x"]}]`,
		"field id 5":        `[{"field-id":5,"names":["x"]},{"field-id":4,"names":["s"],"fields":[{"field-id":5,"names":["x"]}]}]`,
		"schema.name-mappi": `{`,
	} {
		_, ok, err := read(mapping)
		requireKind(t, fault.Unsupported, err, text)
		require.False(t, ok)
	}
}
