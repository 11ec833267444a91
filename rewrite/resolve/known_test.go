package resolve_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// Short forms for nodes of files.
func group(name string, r format.Repetition, children ...*format.Node) *format.Node {
	return &format.Node{Name: name, Group: true, Repetition: r, Children: children}
}

func leaf(name string, r format.Repetition, t format.Type) *format.Node {
	return &format.Node{Name: name, Repetition: r, Type: t}
}

func withID(id int32, n *format.Node) *format.Node { n.FieldID = &id; return n }

func converted(c int32, n *format.Node) *format.Node { n.Converted = &c; return n }

func logical(l format.Logical, n *format.Node) *format.Node { n.Logical = &l; return n }

func fixedLeaf(name string, length int32) *format.Node {
	return &format.Node{Name: name, Repetition: format.Optional, Type: format.FixedLenByteArray, TypeLength: length}
}

func decimalNode(p, s int32, n *format.Node) *format.Node {
	return logical(format.Logical{Kind: format.LogicalDecimal, Precision: p, Scale: s}, n)
}

func footer(t *testing.T, children ...*format.Node) *format.Footer {
	t.Helper()
	s, err := format.NewSchema(group("root", format.Required, children...))
	require.NoError(t, err)
	return &format.Footer{Schema: s}
}

func target(t *testing.T, fields ...icego.NestedField) *resolve.Target {
	t.Helper()
	out, err := resolve.NewTarget(icego.NewSchema(0, fields...), resolve.Options{})
	require.NoError(t, err)
	return out
}

func optional(id int, name string, typ icego.Type) icego.NestedField {
	return icego.NestedField{ID: id, Name: name, Type: typ}
}

func required(id int, name string, typ icego.Type) icego.NestedField {
	return icego.NestedField{ID: id, Name: name, Type: typ, Required: true}
}

var v3 = resolve.Context{FormatVersion: 3}

// values are a batch of a flat optional leaf without nulls.
func values(n *format.Node, vs ...[]byte) *column.Batch {
	b := &column.Batch{Levels: len(vs), Rows: len(vs)}
	if n.MaxDef > 0 {
		b.Def = make([]byte, len(vs))
		for i := range b.Def {
			b.Def[i] = byte(n.MaxDef)
		}
	}
	b.Values.Reset(n.Type, n.Width())
	for _, v := range vs {
		b.Values.Append(v)
	}
	return b
}

func le32(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
func le64(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func bytesOf(n int, b byte) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b
	}
	return out
}

func TestTypesThatLoseSomethingAreRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	date := func() *format.Node { return converted(6, leaf("c", format.Optional, format.Int32)) }
	for _, c := range []struct {
		name    string
		node    *format.Node
		typ     icego.Type
		version int
	}{
		{"long as int", leaf("c", format.Optional, format.Int64), p.Int32, 3},
		{"double as float", leaf("c", format.Optional, format.Double), p.Float32, 3},
		{"int as double", leaf("c", format.Optional, format.Int32), p.Float64, 3},
		{"another scale", decimalNode(9, 3, leaf("c", format.Optional, format.Int32)), icego.DecimalTypeOf(18, 2), 3},
		{"narrower decimal", decimalNode(18, 2, leaf("c", format.Optional, format.Int64)), icego.DecimalTypeOf(9, 2), 3},
		{"int as decimal", leaf("c", format.Optional, format.Int32), icego.DecimalTypeOf(9, 0), 3},
		{"date as timestamp before v3", date(), p.Timestamp, 2},
		{"date as timestamptz", date(), p.TimestampTz, 3},
		{"date as timestamptz_ns", date(), p.TimestampTzNs, 3},
		{"timestamp as date", converted(10, leaf("c", format.Optional, format.Int64)), p.Date, 3},
		{"plain int as date", leaf("c", format.Optional, format.Int32), p.Date, 3},
		{"plain long as timestamp", leaf("c", format.Optional, format.Int64), p.Timestamp, 3},
		{"bson as text", converted(20, leaf("c", format.Optional, format.ByteArray)), p.String, 3},
		{"fixed of another length", fixedLeaf("c", 4), icego.FixedTypeOf(5), 3},
		{"interval", converted(21, fixedLeaf("c", 12)), icego.FixedTypeOf(12), 3},
		{"float16", logical(format.Logical{Kind: format.LogicalFloat16}, fixedLeaf("c", 2)), p.Float32, 3},
		{"annotation that is not known", logical(format.Logical{Kind: 99}, leaf("c", format.Optional, format.Int64)), p.Int64, 3},
		{"annotation that does not fit", logical(format.Logical{Kind: format.LogicalString}, leaf("c", format.Optional, format.Int64)), p.Int64, 3},
		{"bytes as geometry", leaf("c", format.Optional, format.ByteArray), icego.GeometryType{}, 3},
		{"repeated", leaf("c", format.Repeated, format.Int32), p.Int32, 3},
		{"group", group("c", format.Optional, leaf("x", format.Optional, format.Int32)), p.Int32, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := resolve.File(target(t, optional(1, "c", c.typ)), footer(t, withID(1, c.node)), resolve.Context{FormatVersion: c.version})
			require.Equal(t, fault.Unsupported, fault.Of(err), "%v", err)
			require.ErrorContains(t, err, "column c")
		})
	}
}

func TestF053ColumnsAreFoundByID(t *testing.T) {
	// A renamed column, one dropped and added again under its name, and a field
	// of a struct of either kind.
	tgt := target(t, optional(1, "new", icego.PrimitiveTypes.String), optional(9, "value", icego.PrimitiveTypes.String),
		optional(3, "s", &icego.StructType{FieldList: []icego.NestedField{
			optional(4, "y", icego.PrimitiveTypes.Int32), optional(8, "x", icego.PrimitiveTypes.Int32),
		}}))
	text := func(name string) *format.Node { return converted(0, leaf(name, format.Optional, format.ByteArray)) }
	m, err := resolve.File(tgt, footer(t, withID(2, text("value")), withID(1, text("old")),
		withID(3, group("s", format.Optional, withID(5, leaf("y", format.Optional, format.Int32)), withID(4, leaf("x", format.Optional, format.Int32))))), v3)
	require.NoError(t, err)
	var leaves []int
	var synthetic []bool
	for _, s := range m.Leaves {
		leaves, synthetic = append(leaves, s.Leaf), append(synthetic, s.Synthetic)
	}
	require.Equal(t, []int{1, -1, 3, 2}, leaves)
	require.Equal(t, []bool{false, true, false, true}, synthetic)
	require.True(t, m.Leaves[0].Copyable)
}

func TestF057RequiredColumnsMustBeThere(t *testing.T) {
	file := func() *format.Footer { return footer(t, withID(1, leaf("a", format.Optional, format.Int32))) }
	a := optional(1, "a", icego.PrimitiveTypes.Int32)
	_, err := resolve.File(target(t, a, required(2, "req", icego.PrimitiveTypes.Int32)), file(), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.ErrorContains(t, err, "req")

	inner := &icego.StructType{FieldList: []icego.NestedField{required(3, "x", icego.PrimitiveTypes.Int32)}}
	_, err = resolve.File(target(t, a, required(2, "req", inner)), file(), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	_, err = resolve.File(target(t, a, optional(2, "opt", inner)), file(), v3)
	require.NoError(t, err)

	with := required(2, "req", icego.PrimitiveTypes.Int64)
	with.InitialDefault = json.Number("9007199254740993")
	m, err := resolve.File(target(t, a, with), file(), v3)
	require.NoError(t, err)
	require.Equal(t, le64(9007199254740993), m.Leaves[1].Constant)

	// A column that became required holds a null.
	f := file()
	m, err = resolve.File(target(t, required(1, "a", icego.PrimitiveTypes.Int32)), f, v3)
	require.NoError(t, err)
	require.False(t, m.Leaves[0].Copyable)
	var out column.Batch
	b := values(f.Schema.Leaves[0], le32(1), le32(2))
	got, err := m.Leaves[0].Apply(b, &out)
	require.NoError(t, err)
	require.Nil(t, got.Def)
	b.Def, b.Levels, b.Rows = append(b.Def, 0), 3, 3
	_, err = m.Leaves[0].Apply(b, &out)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.ErrorContains(t, err, "column a is required")
	b.Def[0] = 7
	_, err = m.Leaves[0].Apply(b, &out)
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

func TestF055DefaultsAreInitialOnes(t *testing.T) {
	c := optional(2, "c", icego.PrimitiveTypes.Int32)
	c.InitialDefault, c.WriteDefault = float64(7), float64(9)
	d := optional(3, "d", icego.PrimitiveTypes.Int32)
	d.WriteDefault = float64(9)
	m, err := resolve.File(target(t, optional(1, "a", icego.PrimitiveTypes.Int32), c, d),
		footer(t, withID(1, leaf("a", format.Optional, format.Int32))), v3)
	require.NoError(t, err)
	require.Equal(t, le32(7), m.Leaves[1].Constant)
	require.Nil(t, m.Leaves[2].Constant)
	require.True(t, m.Leaves[2].Nulls())
	var out column.Batch
	require.NoError(t, m.Leaves[1].Fill(&out, 2))
	require.Equal(t, append(le32(7), le32(7)...), out.Values.Data)
	require.Equal(t, []byte{1, 1}, out.Def)
}

func TestDefaultsThatDoNotFitAreRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	for _, c := range []struct {
		typ icego.Type
		v   any
	}{
		{p.Int32, float64(1 << 31)}, {p.Int32, 1.5}, {p.Int64, float64(1 << 53)}, {p.Int64, "x"}, {p.Int64, true},
		{p.Date, "2020-13-01"}, {p.Date, float64(3)}, {p.Timestamp, "2020-01-01T00:00:00.0000001"}, {p.TimestampTz, "2020-01-01T00:00:00"},
		{p.TimestampNs, "3000-01-01T00:00:00"}, {p.UUID, "x"}, {icego.FixedTypeOf(2), "00"}, {p.Binary, "0"},
		{icego.DecimalTypeOf(4, 2), "1.234"}, {icego.DecimalTypeOf(4, 2), "123.45"}, {p.Bool, "true"},
		{&icego.ListType{ElementID: 3, Element: p.Int32}, []any{float64(1)}},
		{&icego.StructType{FieldList: []icego.NestedField{optional(3, "x", p.Int32)}}, map[string]any{"3": float64(1)}},
	} {
		f := optional(2, "c", c.typ)
		f.InitialDefault = c.v
		_, err := resolve.File(target(t, optional(1, "a", p.Int32), f), footer(t, withID(1, leaf("a", format.Optional, format.Int32))), v3)
		require.Equal(t, fault.Unsupported, fault.Of(err), "%s %v: %v", c.typ, c.v, err)
		require.ErrorContains(t, err, "column c")
	}
}

func TestF060FilesWithoutIDsNeedAMapping(t *testing.T) {
	tgt := target(t, optional(1, "s", &icego.StructType{FieldList: []icego.NestedField{optional(2, "x", icego.PrimitiveTypes.Int32)}}),
		optional(3, "renamed", icego.PrimitiveTypes.Int32), optional(4, "unmapped", icego.PrimitiveTypes.Int32))
	file := func() *format.Footer {
		return footer(t, group("s", format.Optional, leaf("x", format.Optional, format.Int32)),
			leaf("old", format.Optional, format.Int32), leaf("unmapped", format.Optional, format.Int32))
	}
	_, err := resolve.File(tgt, file(), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))

	mapping := icego.NameMapping{
		{Names: []string{"s"}, FieldID: pointer(1), Fields: []icego.MappedField{{Names: []string{"x"}, FieldID: pointer(2)}}},
		{Names: []string{"renamed", "old"}, FieldID: pointer(3)},
	}
	m, err := resolve.File(tgt, file(), resolve.Context{FormatVersion: 2, HasNames: true, Names: mapping})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, -1}, []int{m.Leaves[0].Leaf, m.Leaves[1].Leaf, m.Leaves[2].Leaf})

	// The mapping does not count when the file has ids, and is no help when it
	// names nothing of the file.
	ids := file()
	ids.Schema.Root.Children[2].FieldID = pointer(int32(99))
	_, err = resolve.File(tgt, ids, resolve.Context{HasNames: true, Names: mapping})
	require.Equal(t, fault.Unsupported, fault.Of(err))
	_, err = resolve.File(tgt, file(), resolve.Context{HasNames: true, Names: icego.NameMapping{{Names: []string{"z"}, FieldID: pointer(1)}}})
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

func TestF061AmbiguousColumnsAreRefused(t *testing.T) {
	tgt := target(t, optional(3, "renamed", icego.PrimitiveTypes.Int32))
	mapping := icego.NameMapping{{Names: []string{"renamed", "old"}, FieldID: pointer(3)}}
	_, err := resolve.File(tgt, footer(t, leaf("old", format.Optional, format.Int32)), resolve.Context{HasNames: true, Names: mapping})
	require.NoError(t, err)
	both := footer(t, leaf("old", format.Optional, format.Int32), leaf("renamed", format.Optional, format.Int32))
	_, err = resolve.File(tgt, both, resolve.Context{HasNames: true, Names: mapping})
	require.Equal(t, fault.Unsupported, fault.Of(err))
	twice := footer(t, withID(3, leaf("a", format.Optional, format.Int32)), withID(3, leaf("b", format.Optional, format.Int32)))
	_, err = resolve.File(tgt, twice, v3)
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

func TestF049NestedFieldsWithoutIDsAreRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	list := func(inner ...*format.Node) *format.Node {
		return converted(3, group("l", format.Optional, group("list", format.Repeated, inner...)))
	}
	for _, c := range []struct {
		typ  icego.Type
		node *format.Node
	}{
		{&icego.StructType{FieldList: []icego.NestedField{optional(2, "x", p.Int32)}}, group("s", format.Optional, leaf("x", format.Optional, format.Int32))},
		{&icego.ListType{ElementID: 2, Element: p.Int32}, list(leaf("element", format.Optional, format.Int32))},
		{&icego.ListType{ElementID: 2, Element: p.Int32}, list(withID(7, leaf("element", format.Optional, format.Int32)))},
		{&icego.MapType{KeyID: 2, KeyType: p.Int32, ValueID: 3, ValueType: p.Int32},
			converted(1, group("m", format.Optional, group("key_value", format.Repeated, leaf("key", format.Required, format.Int32), withID(3, leaf("value", format.Optional, format.Int32)))))},
		{&icego.ListType{ElementID: 2, Element: p.Int32}, leaf("l", format.Repeated, format.Int32)},
	} {
		_, err := resolve.File(target(t, optional(1, "c", c.typ)), footer(t, withID(1, c.node)), v3)
		require.Equal(t, fault.Unsupported, fault.Of(err), "%v", err)
		require.ErrorContains(t, err, "column c")
	}
}

func TestF049EveryNodeHasItsID(t *testing.T) {
	p := icego.PrimitiveTypes
	ab := &icego.StructType{FieldList: []icego.NestedField{required(5, "a", p.Int32), optional(6, "b", p.String)}}
	tgt := target(t, optional(1, "l", &icego.ListType{ElementID: 2, Element: ab, ElementRequired: true}),
		required(3, "m", &icego.MapType{KeyID: 7, KeyType: p.String, ValueID: 8, ValueType: p.Int64}))
	require.Equal(t, `0 table type=0 group=true
  1 l type=0 group=true id=1
    2 list type=0 group=true
      0 element type=0 group=true id=2
        0 a type=1 group=false id=5
        1 b type=6 group=false id=6
  0 m type=0 group=true id=3
    2 key_value type=0 group=true
      0 key type=6 group=false id=7
      1 value type=2 group=false id=8
`, show(tgt.Schema.Root, 0))
	require.Equal(t, []iceberg.FieldID{1, 2, 5}, tgt.Leaves[0].Path)
	require.Equal(t, "l.element.a", tgt.Leaves[0].Name)
	require.Equal(t, "m.value", tgt.Leaves[3].Name)
	require.True(t, tgt.Leaves[3].Repeated)
	require.Equal(t, 2, tgt.Leaf(7))
	require.Equal(t, -1, tgt.Leaf(1))
}

func TestEveryTypeIsStoredAsIcebergDoes(t *testing.T) {
	p := icego.PrimitiveTypes
	geography, err := icego.GeographyTypeOf("srid:5070", "karney")
	require.NoError(t, err)
	for _, c := range []struct {
		typ  icego.Type
		want string
	}{
		{p.Bool, "0"}, {p.Int32, "1"}, {p.Int64, "2"}, {p.Float32, "4"}, {p.Float64, "5"},
		{p.Date, "1 converted=6 logical=6"},
		{p.Time, "2 converted=8 logical=7 unit=2 utc=false"},
		{p.Timestamp, "2 converted=10 logical=8 unit=2 utc=false"},
		{p.TimestampTz, "2 converted=10 logical=8 unit=2 utc=true"},
		{p.TimestampNs, "2 logical=8 unit=3 utc=false"},
		{p.TimestampTzNs, "2 logical=8 unit=3 utc=true"},
		{p.String, "6 converted=0 logical=1"}, {p.Binary, "6"}, {p.UUID, "7(16) logical=14"}, {icego.FixedTypeOf(3), "7(3)"},
		{icego.DecimalTypeOf(9, 2), "1 converted=5 logical=5(9,2) (9,2)"},
		{icego.DecimalTypeOf(10, 2), "2 converted=5 logical=5(10,2) (10,2)"},
		{icego.DecimalTypeOf(18, 0), "2 converted=5 logical=5(18,0) (18,0)"},
		{icego.DecimalTypeOf(19, 2), "7(9) converted=5 logical=5(19,2) (19,2)"},
		{icego.DecimalTypeOf(38, 10), "7(16) converted=5 logical=5(38,10) (38,10)"},
		{icego.GeometryType{}, "6 logical=17"}, {geography, "6 logical=18 crs=srid:5070 algorithm=4"},
	} {
		n := target(t, optional(1, "c", c.typ)).Schema.Leaves[0]
		got := fmt.Sprint(int(n.Type))
		if n.TypeLength > 0 {
			got += fmt.Sprintf("(%d)", n.TypeLength)
		}
		if n.Converted != nil {
			got += fmt.Sprintf(" converted=%d", *n.Converted)
		}
		if l := n.Logical; l != nil {
			got += fmt.Sprintf(" logical=%d", l.Kind)
			switch {
			case l.Unit != 0:
				got += fmt.Sprintf(" unit=%d utc=%v", l.Unit, l.UTC)
			case l.Precision != 0:
				got += fmt.Sprintf("(%d,%d)", l.Precision, l.Scale)
			}
			if l.CRS != "" {
				got += " crs=" + l.CRS
			}
			if l.Algorithm != nil {
				got += fmt.Sprintf(" algorithm=%d", *l.Algorithm)
			}
		}
		if n.Precision != nil {
			got += fmt.Sprintf(" (%d,%d)", *n.Precision, *n.Scale)
		}
		require.Equal(t, c.want, got, "%s", c.typ)
		require.Equal(t, format.Optional, n.Repetition)
	}
}

func TestNamesAreMadeLegal(t *testing.T) {
	p := icego.PrimitiveTypes
	tgt := target(t, optional(1, "a.b", p.Int32), optional(2, "1x", p.Int32), optional(3, "höhe", p.Int32), optional(4, "日付", p.Int32),
		optional(5, "a_x2Eb", p.Int32), optional(6, "😀", p.Int32), optional(7, "a b", p.Int32), optional(8, "u", p.Unknown))
	var got []string
	for _, n := range tgt.Schema.Leaves {
		got = append(got, n.Name)
	}
	require.Equal(t, []string{"a_x2Eb", "_1x", "höhe", "日付", "a_x2Eb_5", "_xD83D_xDE00", "a_x20b"}, got)
	require.Equal(t, "a.b", tgt.Leaves[0].Name)
}

func TestTypesThatCannotBeStoredAreRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	deep := icego.Type(p.Int32)
	for i := range 150 {
		deep = &icego.ListType{ElementID: 10 + i, Element: deep}
	}
	for _, typ := range []icego.Type{
		p.Unknown, icego.FixedTypeOf(0), deep,
		&icego.StructType{FieldList: []icego.NestedField{optional(2, "u", p.Unknown)}}, &icego.StructType{},
		&icego.ListType{ElementID: 2, Element: p.Unknown},
	} {
		_, err := resolve.NewTarget(icego.NewSchema(0, optional(1, "c", typ)), resolve.Options{})
		require.Equal(t, fault.Unsupported, fault.Of(err), "%s", typ.Type())
	}
}
