package resolve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

func variantNode(value format.Repetition, more ...*format.Node) *format.Node {
	return logical(format.Logical{Kind: format.LogicalVariant}, withID(1, group("v", format.Optional,
		append([]*format.Node{leaf("metadata", format.Required, format.ByteArray), leaf("value", value, format.ByteArray)}, more...)...)))
}

func TestF062VariantsAreCarriedOnlyInOneLayout(t *testing.T) {
	typed := func() *format.Node {
		return group("typed_value", format.Optional, group("a", format.Required,
			leaf("value", format.Optional, format.ByteArray), leaf("typed_value", format.Optional, format.Int64)))
	}
	schema := icego.NewSchema(0, optional(1, "v", icego.VariantType{}))
	plain, err := resolve.NewTarget(schema, resolve.Options{})
	require.NoError(t, err)
	require.Len(t, plain.Leaves, 2)
	require.True(t, plain.Leaves[0].Part)
	require.Equal(t, iceberg.FieldID(1), plain.Leaves[1].ID)

	m, err := resolve.File(plain, footer(t, variantNode(format.Required)), v3)
	require.NoError(t, err)
	require.True(t, m.Leaves[0].Copyable && m.Leaves[1].Copyable)

	shredded := footer(t, variantNode(format.Optional, typed()))
	_, err = resolve.File(plain, shredded, v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.ErrorContains(t, err, "column v")

	like, err := resolve.NewTarget(schema, resolve.Options{Like: shredded})
	require.NoError(t, err)
	m, err = resolve.File(like, footer(t, variantNode(format.Optional, typed())), v3)
	require.NoError(t, err)
	require.Len(t, m.Leaves, 4)
	for i, s := range m.Leaves {
		require.True(t, s.Copyable, "%d", i)
		require.Equal(t, i, s.Leaf)
	}
	_, err = resolve.File(like, footer(t, variantNode(format.Required)), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.Nil(t, shredded.Schema.Leaves[0].Parent.Parent.Parent, "the footer is not changed")

	// An absent variant is null.
	both, err := resolve.NewTarget(icego.NewSchema(0, optional(1, "v", icego.VariantType{}), optional(2, "a", icego.PrimitiveTypes.Int32)), resolve.Options{})
	require.NoError(t, err)
	m, err = resolve.File(both, footer(t, withID(2, leaf("a", format.Optional, format.Int32))), v3)
	require.NoError(t, err)
	require.True(t, m.Leaves[0].Nulls() && m.Leaves[1].Nulls())
}

// specOf is a spec and a tuple of one identity field.
func specOf(t *testing.T, source iceberg.FieldID, typ icego.Type, v any) resolve.Context {
	t.Helper()
	spec := &iceberg.PartitionType{Fields: []iceberg.PartitionField{
		{ID: 1000, Name: "p", Transform: icego.IdentityTransform{}, SourceIDs: []iceberg.FieldID{source}, Source: typ, Result: typ},
	}}
	tuple, err := spec.TupleAt(func(int) any { return v })
	require.NoError(t, err)
	return resolve.Context{FormatVersion: 2, Type: spec, Partition: tuple}
}

func TestIdentityPartitionsTellAbsentColumns(t *testing.T) {
	p := icego.PrimitiveTypes
	a := optional(1, "a", p.Int32)
	file := func() *format.Footer { return footer(t, withID(1, leaf("a", format.Optional, format.Int32))) }
	for _, c := range []struct {
		typ  icego.Type
		v    any
		want []byte
	}{
		{p.Int64, int64(5), le64(5)},
		{p.String, "", []byte{}},
		{icego.DecimalTypeOf(9, 2), []byte{0xff}, le32(-1)},
		{icego.DecimalTypeOf(18, 2), []byte{0x01, 0x00}, le64(256)},
		{icego.DecimalTypeOf(38, 2), []byte{0xff}, bytesOf(16, 0xff)},
		{p.Bool, true, []byte{1}},
		{p.Date, int32(-1), le32(-1)},
		{p.Float64, 0.5, le64(int64(math.Float64bits(0.5)))},
		{p.Int64, nil, nil},
	} {
		with := optional(2, "p", c.typ)
		with.InitialDefault = json.Number("7") // the partition comes first
		m, err := resolve.File(target(t, a, with), file(), specOf(t, 2, c.typ, c.v))
		require.NoError(t, err, "%s", c.typ)
		require.Equal(t, c.want, m.Leaves[1].Constant, "%s", c.typ)
		require.Equal(t, c.v == nil, m.Leaves[1].Nulls())
		require.Empty(t, m.Expected)
	}

	// The column was promoted after the tuple was typed.
	m, err := resolve.File(target(t, a, optional(2, "p", p.Int64)), file(), specOf(t, 2, p.Int32, int32(-5)))
	require.NoError(t, err)
	require.Equal(t, le64(-5), m.Leaves[1].Constant)

	_, err = resolve.File(target(t, a, required(2, "p", p.Int32)), file(), specOf(t, 2, p.Int32, nil))
	require.Equal(t, fault.Unsupported, fault.Of(err))
	context := specOf(t, 2, p.Int32, int32(1))
	context.Partition = iceberg.Tuple{}
	_, err = resolve.File(target(t, a), file(), context)
	require.Equal(t, fault.Corrupt, fault.Of(err))

	// In a struct: told where the struct is there, a contradiction where the file
	// lacks the struct.
	s := func(fields ...icego.NestedField) icego.NestedField {
		return optional(3, "s", &icego.StructType{FieldList: fields})
	}
	withStruct := footer(t, withID(1, leaf("a", format.Optional, format.Int32)), withID(3, group("s", format.Optional, withID(4, leaf("x", format.Optional, format.Int32)))))
	m, err = resolve.File(target(t, a, s(optional(2, "p", p.Int32))), withStruct, specOf(t, 2, p.Int32, int32(9)))
	require.NoError(t, err)
	got, err := m.Leaves[1].Apply(&column.Batch{Levels: 3, Rows: 3, Def: []byte{0, 1, 2}}, &column.Batch{})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 2, 2}, got.Def)
	require.Equal(t, append(le32(9), le32(9)...), got.Values.Data)
	_, err = resolve.File(target(t, a, s(optional(2, "p", p.Int32))), file(), specOf(t, 2, p.Int32, int32(9)))
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

func TestIdentityPartitionsOfPresentColumnsAreToBeProved(t *testing.T) {
	p := icego.PrimitiveTypes
	tgt := target(t, optional(1, "d", p.Float64), optional(2, "x", p.Int32))
	f := footer(t, withID(1, leaf("d", format.Optional, format.Double)), withID(2, leaf("x", format.Optional, format.Int32)))
	m, err := resolve.File(tgt, f, specOf(t, 1, p.Float64, math.NaN()))
	require.NoError(t, err)
	require.Len(t, m.Expected, 1)
	e := &m.Expected[0]
	require.Equal(t, 0, e.Leaf)
	bits := func(b uint64) []byte { return le64(int64(b)) }
	require.True(t, e.Holds(bits(0x7ff8000000000001)))
	require.True(t, e.Holds(bits(0xfff0000000000001)))
	require.False(t, e.Holds(bits(0)))
	require.NoError(t, e.Check(values(tgt.Schema.Leaves[0], bits(0x7ff8000000000000))))
	require.Equal(t, fault.Unsupported, fault.Of(e.Check(values(tgt.Schema.Leaves[0], bits(0x7ff8000000000000), bits(1)))))
	null := &column.Batch{Levels: 2, Rows: 2, Def: []byte{0, 1}}
	null.Values.Reset(format.Double, 8)
	null.Values.Append(bits(0x7ff8000000000000))
	require.Equal(t, fault.Unsupported, fault.Of(e.Check(null)))

	m, err = resolve.File(tgt, f, specOf(t, 1, p.Float64, 0.0))
	require.NoError(t, err)
	require.False(t, m.Expected[0].Holds(bits(1<<63)), "-0.0 is not +0.0")
	m, err = resolve.File(tgt, f, specOf(t, 1, p.Float64, nil))
	require.NoError(t, err)
	require.Error(t, m.Expected[0].Check(null))
	require.NoError(t, m.Expected[0].Check(&column.Batch{Levels: 2, Rows: 2, Def: []byte{0, 0}}))
}

func TestLineageColumnsAreCompletedByTheCaller(t *testing.T) {
	schema := icego.NewSchema(0, optional(1, "a", icego.PrimitiveTypes.Int32))
	tgt, err := resolve.NewTarget(schema, resolve.Options{Lineage: true})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "_row_id", "_last_updated_sequence_number"},
		[]string{tgt.Leaves[0].Node.Name, tgt.Leaves[1].Node.Name, tgt.Leaves[2].Node.Name})
	require.Equal(t, []int32{1, 2147483540, 2147483539},
		[]int32{*tgt.Leaves[0].Node.FieldID, *tgt.Leaves[1].Node.FieldID, *tgt.Leaves[2].Node.FieldID})
	require.Len(t, schema.Fields(), 1)

	m, err := resolve.File(tgt, footer(t, withID(1, leaf("a", format.Optional, format.Int32)),
		withID(2147483540, leaf("_row_id", format.Optional, format.Int64))), v3)
	require.NoError(t, err)
	require.Equal(t, resolve.RowID, m.Leaves[1].Lineage)
	require.Equal(t, 1, m.Leaves[1].Leaf)
	require.Equal(t, resolve.LastUpdated, m.Leaves[2].Lineage)
	require.Equal(t, -1, m.Leaves[2].Leaf)
	require.True(t, m.Leaves[2].Synthetic)

	// They make a file none of the table's.
	_, err = resolve.File(tgt, footer(t, withID(2147483540, leaf("_row_id", format.Optional, format.Int64))), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

// historyOf is the history of a table with schemas, the last of which is the
// current one.
func historyOf(t *testing.T, schemas ...string) *iceberg.History {
	t.Helper()
	list := ""
	for i, s := range schemas {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"type":"struct","schema-id":%d,"fields":[%s]}`, i, s)
	}
	m, err := iceberg.ParseMetadata([]byte(fmt.Sprintf(`{"format-version":2,"table-uuid":"f79c3e09-677c-4bbd-a479-3f349cb785e7",
		"location":"s3://b/t","last-sequence-number":0,"last-updated-ms":0,"last-column-id":9,"schemas":[%s],"current-schema-id":%d,
		"partition-specs":[{"spec-id":0,"fields":[]}],"default-spec-id":0,"last-partition-id":999,"sort-orders":[{"order-id":0,"fields":[]}],
		"default-sort-order-id":0,"properties":{},"snapshots":[]}`, list, len(schemas)-1)))
	require.NoError(t, err)
	return m.History()
}

func TestF012KeysOfDroppedColumnsAreFound(t *testing.T) {
	h := historyOf(t,
		`{"id":1,"name":"id","required":true,"type":"int"},{"id":2,"name":"data","required":false,"type":"string"},
		 {"id":3,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":4,"name":"x","required":true,"type":"int"},{"id":5,"name":"y","required":false,"type":"string"}]}},
		 {"id":6,"name":"l","required":false,"type":{"type":"list","element-id":7,"element":"int","element-required":false}}`,
		`{"id":2,"name":"data","required":false,"type":"string"},
		 {"id":3,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":4,"name":"x","required":true,"type":"long"}]}},
		 {"id":8,"name":"id","required":true,"type":"int"},
		 {"id":6,"name":"l","required":false,"type":{"type":"list","element-id":7,"element":"int","element-required":false}}`)
	tgt, err := resolve.NewFields(h, []iceberg.FieldID{4, 1, 5})
	require.NoError(t, err)
	require.Len(t, tgt.Leaves, 3)
	require.Equal(t, "s.x", tgt.Leaves[tgt.Leaf(4)].Name)
	require.Equal(t, icego.PrimitiveTypes.Int64, tgt.Leaves[tgt.Leaf(4)].Type)

	s := func() *format.Node {
		return withID(3, group("s", format.Optional, withID(4, leaf("x", format.Required, format.Int32))))
	}
	m, err := resolve.File(tgt, footer(t, withID(1, leaf("id", format.Required, format.Int32)), s()), v3)
	require.NoError(t, err)
	id, x, y := m.Leaves[tgt.Leaf(1)], m.Leaves[tgt.Leaf(4)], m.Leaves[tgt.Leaf(5)]
	require.Equal(t, []int{0, 1, 1}, []int{id.Leaf, x.Leaf, y.Leaf})
	require.True(t, y.Nulls())
	b := &column.Batch{Levels: 2, Rows: 2, Def: []byte{0, 1}}
	b.Values.Reset(format.Int32, 4)
	b.Values.Append(le32(-3))
	got, err := x.Apply(b, &column.Batch{})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 2}, got.Def)
	require.Equal(t, le64(-3), got.Values.At(0))

	// A file written when only other columns of the table were there.
	only, err := resolve.NewFields(h, []iceberg.FieldID{1})
	require.NoError(t, err)
	m, err = resolve.File(only, footer(t, withID(2, leaf("data", format.Optional, format.ByteArray))), v3)
	require.NoError(t, err)
	require.True(t, m.Leaves[0].Nulls())
	_, err = resolve.File(only, footer(t, withID(77, leaf("data", format.Optional, format.ByteArray))), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	// One that the current schema requires must be there.
	current, err := resolve.NewFields(h, []iceberg.FieldID{8})
	require.NoError(t, err)
	_, err = resolve.File(current, footer(t, withID(2, leaf("data", format.Optional, format.ByteArray))), v3)
	require.Equal(t, fault.Unsupported, fault.Of(err))

	for id, kind := range map[iceberg.FieldID]fault.Kind{99: fault.Corrupt, 3: fault.Unsupported, 6: fault.Unsupported, 7: fault.Unsupported} {
		_, err = resolve.NewFields(h, []iceberg.FieldID{id})
		require.Equal(t, kind, fault.Of(err), "%d: %v", id, err)
	}
	_, err = resolve.NewFields(h, nil)
	require.Error(t, err)
}

func TestF029ThreeOrdersOfColumnsAreOneSchema(t *testing.T) {
	p := icego.PrimitiveTypes
	tgt := target(t, optional(2, "b", p.Int64), optional(1, "a", p.Int64), optional(7, "c", p.Int64),
		optional(4, "d", &icego.StructType{FieldList: []icego.NestedField{optional(6, "y", p.Int64), optional(5, "x", p.Int64)}}))
	long := func(id int32, name string) *format.Node { return withID(id, leaf(name, format.Optional, format.Int64)) }
	for _, c := range []struct {
		file []*format.Node
		want []int
	}{
		{[]*format.Node{long(1, "a"), long(2, "b"), long(3, "c")}, []int{1, 0, -1, -1, -1}},
		{[]*format.Node{long(7, "c"), long(1, "a")}, []int{-1, 1, 0, -1, -1}},
		{[]*format.Node{long(2, "b"), long(1, "a"), long(7, "c"), withID(4, group("d", format.Optional, long(5, "x"), long(6, "y")))}, []int{0, 1, 2, 4, 3}},
	} {
		m, err := resolve.File(tgt, footer(t, c.file...), v3)
		require.NoError(t, err)
		var got []int
		for _, s := range m.Leaves {
			got = append(got, s.Leaf)
		}
		require.Equal(t, c.want, got)
	}
}

func TestCopyingNeedsEqualTypesAndRepetitions(t *testing.T) {
	p := icego.PrimitiveTypes
	x := func(r format.Repetition) *format.Node { return withID(2, leaf("x", r, format.Int32)) }
	s := func(r bool, f icego.NestedField) icego.NestedField {
		out := optional(1, "s", &icego.StructType{FieldList: []icego.NestedField{f}})
		out.Required = r
		return out
	}
	list := func(element *format.Node) *format.Node {
		return converted(3, withID(1, group("l", format.Optional, group("bag", format.Repeated, element))))
	}
	ints := optional(1, "l", &icego.ListType{ElementID: 2, Element: p.Int32})
	for _, c := range []struct {
		name  string
		field icego.NestedField
		node  *format.Node
		want  bool
	}{
		{"equal", s(false, required(2, "x", p.Int32)), withID(1, group("s", format.Optional, x(format.Required))), true},
		{"equal levels, other places", s(false, required(2, "x", p.Int32)), withID(1, group("s", format.Required, x(format.Optional))), false},
		{"optional became required", required(1, "c", p.Int32), withID(1, leaf("c", format.Optional, format.Int32)), false},
		{"required became optional", optional(1, "c", p.Int32), withID(1, leaf("c", format.Required, format.Int32)), false},
		{"other names in lists", ints, list(withID(2, leaf("array_element", format.Optional, format.Int32))), true},
		{"lists in two levels", optional(1, "l", &icego.ListType{ElementID: 2, Element: p.Int32, ElementRequired: true}),
			converted(3, withID(1, group("l", format.Optional, withID(2, leaf("array", format.Repeated, format.Int32))))), false},
		{"other precision", optional(1, "c", icego.DecimalTypeOf(9, 2)), withID(1, decimalNode(8, 2, leaf("c", format.Optional, format.Int32))), false},
		{"equal decimals", optional(1, "c", icego.DecimalTypeOf(9, 2)), withID(1, decimalNode(9, 2, leaf("c", format.Optional, format.Int32))), true},
		{"other unit", optional(1, "c", p.TimestampNs), withID(1, converted(10, leaf("c", format.Optional, format.Int64))), false},
		{"converted micros", optional(1, "c", p.Timestamp), withID(1, converted(10, leaf("c", format.Optional, format.Int64))), true},
		{"unsigned", optional(1, "c", p.Int64), withID(1, converted(14, leaf("c", format.Optional, format.Int64))), false},
		{"small unsigned", optional(1, "c", p.Int32), withID(1, converted(11, leaf("c", format.Optional, format.Int32))), false},
		{"small signed", optional(1, "c", p.Int32), withID(1, converted(15, leaf("c", format.Optional, format.Int32))), true},
		{"text without annotation", optional(1, "c", p.String), withID(1, leaf("c", format.Optional, format.ByteArray)), true},
		{"fixed as uuid", optional(1, "c", p.UUID), withID(1, fixedLeaf("c", 16)), false},
		{"promoted", optional(1, "c", p.Int64), withID(1, leaf("c", format.Optional, format.Int32)), false},
		{"always null", optional(1, "c", p.Int32), withID(1, logical(format.Logical{Kind: format.LogicalUnknown}, leaf("c", format.Optional, format.Int32))), false},
	} {
		m, err := resolve.File(target(t, c.field), footer(t, c.node), v3)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, m.Leaves[0].Copyable, c.name)
	}
}

// TestF031NullZeroAndEmptyStayDifferent covers every level of lists and maps in
// two and three levels.
func TestF031NullZeroAndEmptyStayDifferent(t *testing.T) {
	p := icego.PrimitiveTypes
	f := footer(t, converted(3, withID(1, group("l", format.Optional, withID(2, leaf("array", format.Repeated, format.Int32))))))
	m, err := resolve.File(target(t, optional(1, "l", &icego.ListType{ElementID: 2, Element: p.Int32})), f, v3)
	require.NoError(t, err)
	// null, [], [0], [0, 1]
	in := &column.Batch{Levels: 5, Rows: 4, Rep: []byte{0, 0, 0, 0, 1}, Def: []byte{0, 1, 2, 2, 2}}
	in.Values.Reset(format.Int32, 4)
	for _, v := range []int32{0, 0, 1} {
		in.Values.Append(le32(v))
	}
	before := bytes.Clone(in.Values.Data)
	got, err := m.Leaves[0].Apply(in, &column.Batch{})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 1, 3, 3, 3}, got.Def)
	require.Equal(t, in.Rep, got.Rep)
	require.Equal(t, before, got.Values.Data)
	got.Values.Data[0], got.Rep[0], got.Def[0] = 9, 9, 9
	require.Equal(t, before, in.Values.Data, "nothing is shared")
	require.Equal(t, byte(0), in.Rep[0])
}

func TestLegacyListsFollowTheRules(t *testing.T) {
	p := icego.PrimitiveTypes
	ints := &icego.ListType{ElementID: 2, Element: p.Int32}
	x := &icego.StructType{FieldList: []icego.NestedField{optional(3, "x", p.Int32)}}
	structs := &icego.ListType{ElementID: 2, Element: x}
	mapping := icego.NameMapping{{Names: []string{"l"}, FieldID: pointer(1), Fields: []icego.MappedField{
		{Names: []string{"element"}, FieldID: pointer(2), Fields: []icego.MappedField{{Names: []string{"x"}, FieldID: pointer(3)}, {Names: []string{"element"}, FieldID: pointer(3)}}},
	}}}
	l := func(n *format.Node) *format.Node { return converted(3, group("l", format.Optional, n)) }
	i32 := func(name string, r format.Repetition) *format.Node { return leaf(name, r, format.Int32) }
	for _, c := range []struct {
		name string
		typ  icego.Type
		node *format.Node
		// def is what the greatest definition level of the file becomes, 0 for refused.
		def int8
	}{
		{"repeated primitive", ints, l(i32("element", format.Repeated)), 3},
		{"group of many fields", structs, l(group("element", format.Repeated, i32("x", format.Optional), i32("z", format.Optional))), 4},
		{"named array", structs, l(group("array", format.Repeated, i32("x", format.Optional))), 4},
		{"named tuple", structs, l(group("l_tuple", format.Repeated, i32("x", format.Optional))), 4},
		{"named otherwise", ints, l(group("bag", format.Repeated, i32("x", format.Optional))), 3},
		{"named otherwise is no struct", structs, l(group("bag", format.Repeated, i32("x", format.Optional))), 0},
		{"not annotated", ints, i32("l", format.Repeated), 3},
		{"list of lists", &icego.ListType{ElementID: 2, Element: &icego.ListType{ElementID: 3, Element: p.Int32}},
			l(converted(3, group("element", format.Repeated, i32("y", format.Repeated)))), 5},
		{"two groups", ints, converted(3, group("l", format.Optional, i32("a", format.Repeated), i32("b", format.Repeated))), 0},
		{"not repeated", ints, l(i32("a", format.Optional)), 0},
		{"a map", ints, converted(1, group("l", format.Optional, i32("a", format.Repeated))), 0},
	} {
		f := footer(t, c.node)
		m, err := resolve.File(target(t, optional(1, "l", c.typ)), f, resolve.Context{HasNames: true, Names: mapping})
		if c.def == 0 {
			require.Equal(t, fault.Unsupported, fault.Of(err), "%s: %v", c.name, err)
			continue
		}
		require.NoError(t, err, c.name)
		got := int8(f.Schema.Leaves[m.Leaves[0].Leaf].MaxDef)
		if def := m.Leaves[0].Def; def != nil {
			got = def[len(def)-1]
		}
		require.Equal(t, c.def, got, c.name)
	}
}

func TestF050FixedValuesOfPartitionsKeepTheirBytes(t *testing.T) {
	a := optional(1, "a", icego.PrimitiveTypes.Int32)
	file := footer(t, withID(1, leaf("a", format.Optional, format.Int32)))
	for _, c := range []struct {
		typ  icego.Type
		want []byte
	}{
		{icego.PrimitiveTypes.UUID, []byte("\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7")},
		{icego.FixedTypeOf(4), []byte{0, 0xff, 0, 1}},
		{icego.PrimitiveTypes.Binary, []byte{0, 0xff}},
	} {
		m, err := resolve.File(target(t, a, optional(2, "p", c.typ)), file, specOf(t, 2, c.typ, c.want))
		require.NoError(t, err)
		require.Equal(t, c.want, m.Leaves[1].Constant)
		var out column.Batch
		require.NoError(t, m.Leaves[1].Fill(&out, 2))
		require.Equal(t, 2, out.Values.Len())
		require.Equal(t, c.want, out.Values.At(1))
	}
}

func TestTheSchemaIsStatedAsItsJSON(t *testing.T) {
	f := required(2, "d", icego.DecimalTypeOf(9, 2))
	f.InitialDefault = "1.50"
	want := icego.NewSchema(3, optional(1, "l", &icego.ListType{ElementID: 4, Element: icego.PrimitiveTypes.String}), f)
	text, err := resolve.SchemaJSON(want)
	require.NoError(t, err)
	var got icego.Schema
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.True(t, want.Equals(&got))
	require.Equal(t, 3, got.ID)
}
