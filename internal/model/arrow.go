package model

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// record builds one Arrow batch of the rows under schema s. Values are taken
// as resolve does, so rows written under an older schema can be rewritten. The
// caller releases it.
func record(s *icego.Schema, fieldIDs bool, rows []Row) (arrow.RecordBatch, error) {
	as, err := icetable.SchemaToArrowSchema(s, nil, fieldIDs, false)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "make arrow schema", err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for i, f := range s.Fields() {
		for _, row := range rows {
			v := resolve(f, row)
			if v == nil && f.Required {
				return nil, fault.New(fault.Unsupported, fmt.Sprintf("required column %q is null", f.Name))
			}
			if err := appendValue(b.Field(i), f.Type, v); err != nil {
				return nil, fault.In("column "+f.Name, err)
			}
		}
	}
	return b.NewRecordBatch(), nil
}

func appendValue(b array.Builder, t icego.Type, v Value) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	v = promote(t, v)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return put(b.Append, v)
	case *array.Int32Builder:
		return put(b.Append, v)
	case *array.Int64Builder:
		return put(b.Append, v)
	case *array.Float32Builder:
		return put(b.Append, v)
	case *array.Float64Builder:
		return put(b.Append, v)
	case *array.StringBuilder:
		return put(b.Append, v)
	case *array.BinaryBuilder:
		return put(b.Append, v)
	case *array.FixedSizeBinaryBuilder:
		return put(b.Append, v)
	case *extensions.UUIDBuilder:
		return put(b.Append, v)
	case *array.Decimal128Builder:
		return put(func(d icego.Decimal) { b.Append(d.Val) }, v)
	case *array.Date32Builder:
		return put(func(d icego.Date) { b.Append(arrow.Date32(d)) }, v)
	case *array.Time64Builder:
		return put(func(d icego.Time) { b.Append(arrow.Time64(d)) }, v)
	case *array.TimestampBuilder:
		if n, ok := v.(icego.TimestampNano); ok {
			b.Append(arrow.Timestamp(n))
			return nil
		}
		return put(func(d icego.Timestamp) { b.Append(arrow.Timestamp(d)) }, v)
	case *array.StructBuilder:
		return appendStruct(b, t, v)
	case *array.ListBuilder:
		return appendList(b, t, v)
	case *array.MapBuilder:
		return appendMap(b, t, v)
	case *array.ExtensionBuilder:
		return appendValue(b.StorageBuilder(), t, v)
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("values of type %s cannot be written (%T)", t, b))
}

func put[T any](add func(T), v Value) error {
	x, ok := v.(T)
	if !ok {
		return fault.New(fault.Unsupported, fmt.Sprintf("value is a %T, not a %T", v, x))
	}
	add(x)
	return nil
}

func appendStruct(b *array.StructBuilder, t icego.Type, v Value) error {
	st, isStruct := t.(*icego.StructType)
	row, isRow := v.(Row)
	if !isStruct || !isRow {
		return fault.New(fault.Unsupported, fmt.Sprintf("value is a %T, not a Row", v))
	}
	b.Append(true)
	for i, f := range st.FieldList {
		if err := appendValue(b.FieldBuilder(i), f.Type, resolve(f, row)); err != nil {
			return err
		}
	}
	return nil
}

func appendList(b *array.ListBuilder, t icego.Type, v Value) error {
	lt, isList := t.(*icego.ListType)
	list, isValues := v.([]Value)
	if !isList || !isValues {
		return fault.New(fault.Unsupported, fmt.Sprintf("value is a %T, not a list", v))
	}
	b.Append(true)
	for _, e := range list {
		if err := appendValue(b.ValueBuilder(), lt.Element, e); err != nil {
			return err
		}
	}
	return nil
}

func appendMap(b *array.MapBuilder, t icego.Type, v Value) error {
	mt, isMap := t.(*icego.MapType)
	pairs, isPairs := v.([]Pair)
	if !isMap || !isPairs {
		return fault.New(fault.Unsupported, fmt.Sprintf("value is a %T, not a map", v))
	}
	b.Append(true)
	for _, p := range pairs {
		if err := appendValue(b.KeyBuilder(), mt.KeyType, p.Key); err != nil {
			return err
		}
		if err := appendValue(b.ItemBuilder(), mt.ValueType, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// valueAt is element i of arr as a Value. The type comes from Arrow, because a
// file keeps the type it was written with; t, which may be nil, names the fields
// of structs that have no ids.
func valueAt(arr arrow.Array, i int, t icego.Type) (Value, error) {
	if arr.IsNull(i) {
		return nil, nil
	}
	switch a := arr.(type) {
	case *array.Null:
		return nil, nil
	case *array.Boolean:
		return a.Value(i), nil
	case *array.Int32:
		return a.Value(i), nil
	case *array.Int64:
		return a.Value(i), nil
	case *array.Float32:
		return a.Value(i), nil
	case *array.Float64:
		return a.Value(i), nil
	case *array.String:
		return string(append([]byte(nil), a.Value(i)...)), nil
	case *array.LargeString:
		return string(append([]byte(nil), a.Value(i)...)), nil
	case *array.Binary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.LargeBinary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.FixedSizeBinary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.Decimal128:
		return icego.Decimal{Val: a.Value(i), Scale: int(a.DataType().(*arrow.Decimal128Type).Scale)}, nil
	case *array.Decimal32:
		return icego.Decimal{Val: decimal128.FromI64(int64(a.Value(i))), Scale: int(a.DataType().(*arrow.Decimal32Type).Scale)}, nil
	case *array.Decimal64:
		return icego.Decimal{Val: decimal128.FromI64(int64(a.Value(i))), Scale: int(a.DataType().(*arrow.Decimal64Type).Scale)}, nil
	case *array.Date32:
		return icego.Date(a.Value(i)), nil
	case *array.Time64:
		return icego.Time(a.Value(i)), nil
	case *array.Timestamp:
		return timestampAt(a, i)
	case *extensions.UUIDArray:
		return a.Value(i), nil
	case *array.Struct:
		return structAt(a, i, t)
	case *array.Map:
		return mapAt(a, i, t)
	case array.ListLike:
		return listAt(a, i, t)
	case array.ExtensionArray:
		return valueAt(a.Storage(), i, t)
	}
	return nil, fault.New(fault.Unsupported, fmt.Sprintf("arrow type %s is not read", arr.DataType()))
}

func timestampAt(a *array.Timestamp, i int) (Value, error) {
	n := int64(a.Value(i))
	switch unit := a.DataType().(*arrow.TimestampType).Unit; unit {
	case arrow.Nanosecond:
		return icego.TimestampNano(n), nil
	case arrow.Microsecond:
		return icego.Timestamp(n), nil
	case arrow.Millisecond:
		return icego.Timestamp(n * 1000), nil
	default:
		return nil, fault.New(fault.Unsupported, "timestamps in "+unit.String()+" are not read")
	}
}

func structAt(a *array.Struct, i int, t icego.Type) (Value, error) {
	row := Row{}
	at := a.DataType().(*arrow.StructType)
	for c := range a.NumField() {
		f, ok := structField(at.Field(c), t)
		if !ok {
			return nil, fault.New(fault.Unsupported, "struct field "+at.Field(c).Name+" has no field id")
		}
		v, err := valueAt(a.Field(c), i, f.Type)
		if err != nil {
			return nil, err
		}
		row[iceberg.FieldID(f.ID)] = v
	}
	return row, nil
}

// structField is the field of t that an Arrow field is, by id, else by name.
func structField(f arrow.Field, t icego.Type) (icego.NestedField, bool) {
	id, hasID := arrowFieldID(f)
	if st, ok := t.(*icego.StructType); ok {
		for _, nested := range st.FieldList {
			if hasID && nested.ID == int(id) || !hasID && nested.Name == f.Name {
				return nested, true
			}
		}
	}
	return icego.NestedField{ID: int(id)}, hasID
}

func listAt(a array.ListLike, i int, t icego.Type) (Value, error) {
	var element icego.Type
	if lt, ok := t.(*icego.ListType); ok {
		element = lt.Element
	}
	from, to := a.ValueOffsets(i)
	out := []Value{}
	for k := from; k < to; k++ {
		v, err := valueAt(a.ListValues(), int(k), element)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func mapAt(a *array.Map, i int, t icego.Type) (Value, error) {
	var kt, vt icego.Type
	if mt, ok := t.(*icego.MapType); ok {
		kt, vt = mt.KeyType, mt.ValueType
	}
	from, to := a.ValueOffsets(i)
	out := []Pair{}
	for k := from; k < to; k++ {
		key, err := valueAt(a.Keys(), int(k), kt)
		if err != nil {
			return nil, err
		}
		v, err := valueAt(a.Items(), int(k), vt)
		if err != nil {
			return nil, err
		}
		out = append(out, Pair{key, v})
	}
	return out, nil
}

func arrowFieldID(f arrow.Field) (iceberg.FieldID, bool) {
	text, ok := f.Metadata.GetValue(icetable.ArrowParquetFieldIDKey)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 32)
	return iceberg.FieldID(id), err == nil
}

// fixUUIDs turns 16 bytes read where the schema says uuid into a uuid, as
// files of other writers lack the logical type.
func fixUUIDs(t icego.Type, v Value) Value {
	switch t := t.(type) {
	case icego.UUIDType:
		if b, ok := v.([]byte); ok && len(b) == 16 {
			return uuid.UUID(b)
		}
	case *icego.StructType:
		if row, ok := v.(Row); ok {
			for _, f := range t.FieldList {
				if x, ok := row[iceberg.FieldID(f.ID)]; ok {
					row[iceberg.FieldID(f.ID)] = fixUUIDs(f.Type, x)
				}
			}
		}
	case *icego.ListType:
		if list, ok := v.([]Value); ok {
			for i := range list {
				list[i] = fixUUIDs(t.Element, list[i])
			}
		}
	case *icego.MapType:
		if pairs, ok := v.([]Pair); ok {
			for i := range pairs {
				pairs[i].Key, pairs[i].Value = fixUUIDs(t.KeyType, pairs[i].Key), fixUUIDs(t.ValueType, pairs[i].Value)
			}
		}
	}
	return v
}
