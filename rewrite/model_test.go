package rewrite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	pqgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The model of a table: rows as trees of plain values. A struct is a map by
// field id, a list is []any, a map is a list of pairs, a float is its bits,
// bytes and text are strings, a decimal is its unscaled number as text, and null
// is nil.
type (
	row  = map[int]any
	pair [2]any
)

// drawType draws a type; ids counts the field ids given out.
func drawType(t *rapid.T, ids *int, depth int) icego.Type {
	kinds := 17
	if depth > 0 {
		kinds = 20
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "type") {
	case 0:
		return icego.PrimitiveTypes.Bool
	case 1, 2:
		return icego.PrimitiveTypes.Int32
	case 3, 4:
		return icego.PrimitiveTypes.Int64
	case 5:
		return icego.PrimitiveTypes.Float32
	case 6:
		return icego.PrimitiveTypes.Float64
	case 7:
		return icego.PrimitiveTypes.Date
	case 8:
		return icego.PrimitiveTypes.Time
	case 9:
		return icego.PrimitiveTypes.Timestamp
	case 10:
		return icego.PrimitiveTypes.TimestampTz
	case 11, 12:
		return icego.PrimitiveTypes.String
	case 13:
		return icego.PrimitiveTypes.Binary
	case 14:
		return icego.PrimitiveTypes.UUID
	case 15:
		return icego.FixedTypeOf(rapid.IntRange(1, 20).Draw(t, "length"))
	case 16:
		p := rapid.SampledFrom([]int{4, 9, 12, 18, 20, 38}).Draw(t, "precision")
		return icego.DecimalTypeOf(p, rapid.IntRange(0, min(p, 4)).Draw(t, "scale"))
	case 17:
		return &icego.StructType{FieldList: drawFields(t, ids, depth-1, 3)}
	case 18:
		*ids++
		id := *ids
		return &icego.ListType{ElementID: id, Element: drawType(t, ids, depth-1), ElementRequired: rapid.Bool().Draw(t, "element required")}
	default:
		*ids += 2
		k, v := *ids-1, *ids
		key := rapid.SampledFrom([]icego.Type{icego.PrimitiveTypes.String, icego.PrimitiveTypes.Int32, icego.PrimitiveTypes.Int64}).Draw(t, "key type")
		return &icego.MapType{KeyID: k, KeyType: key, ValueID: v, ValueType: drawType(t, ids, depth-1), ValueRequired: rapid.Bool().Draw(t, "value required")}
	}
}

func drawFields(t *rapid.T, ids *int, depth, most int) []icego.NestedField {
	var fields []icego.NestedField
	for range rapid.IntRange(1, most).Draw(t, "fields") {
		*ids++
		id := *ids
		fields = append(fields, icego.NestedField{ID: id, Name: "c" + strconv.Itoa(id), Type: drawType(t, ids, depth), Required: rapid.IntRange(0, 2).Draw(t, "required") == 0})
	}
	return fields
}

// drawer draws values. Values of one column are few or many.
type drawer struct {
	t          *rapid.T
	rng        *lcg
	nulls, few int
}

// lcg is a generator of numbers that is cheap, where rapid's is not.
type lcg struct{ x uint64 }

func (l *lcg) next() uint64 {
	l.x = l.x*6364136223846793005 + 1442695040888963407
	return l.x ^ l.x>>29
}

func (l *lcg) intn(n int) int { return int(l.next()>>11) % n }

func (d *drawer) value(typ icego.Type, required bool) any {
	if !required && d.rng.intn(100) < d.nulls {
		return nil
	}
	n := d.rng.next()
	if d.few > 0 {
		n = uint64(d.rng.intn(d.few)) * 0x9e3779b97f4a7c15
	}
	switch typ := typ.(type) {
	case icego.BooleanType:
		return n&1 == 0
	case icego.Int32Type:
		return int32(n >> 32)
	case icego.Int64Type:
		return int64(n)
	case icego.TimeType:
		return int64(n % 86_400_000_000)
	case icego.TimestampType, icego.TimestampTzType:
		return int64(n) / 4096
	case icego.DateType:
		return int32(n>>32) / 1024
	case icego.Float32Type:
		switch n % 17 {
		case 0:
			return math.Float32bits(float32(math.NaN()))
		case 1:
			return math.Float32bits(float32(math.Copysign(0, -1)))
		}
		return math.Float32bits(float32(int32(n)) / 8)
	case icego.Float64Type:
		switch n % 17 {
		case 0:
			return math.Float64bits(math.NaN())
		case 1:
			return math.Float64bits(math.Copysign(0, -1))
		}
		return math.Float64bits(float64(int64(n)) / 8)
	case icego.StringType:
		s := strconv.FormatUint(n, 36)
		return s[:n%uint64(len(s)+1)] + "é"
	case icego.BinaryType:
		return string(strconv.AppendUint(nil, n, 2)[:n%8])
	case icego.UUIDType:
		return fmt.Sprintf("%016x", n)
	case icego.FixedType:
		return fmt.Sprintf("%020x", n)[:typ.Len()]
	case icego.DecimalType:
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(typ.Precision())), nil)
		v := new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(int64(n>>5)))
		return new(big.Int).Rem(v, limit).String()
	case *icego.StructType:
		return d.row(typ.FieldList)
	case *icego.ListType:
		out := []any{}
		for range d.rng.intn(4) {
			out = append(out, d.value(typ.Element, typ.ElementRequired))
		}
		return out
	case *icego.MapType:
		out := []any{}
		for range d.rng.intn(4) {
			out = append(out, pair{d.value(typ.KeyType, true), d.value(typ.ValueType, typ.ValueRequired)})
		}
		return out
	}
	panic(typ.String())
}

func (d *drawer) row(fields []icego.NestedField) row {
	out := row{}
	for _, f := range fields {
		out[f.ID] = d.value(f.Type, f.Required)
	}
	return out
}

// build appends v, of type typ, to an Arrow builder.
func build(b array.Builder, typ icego.Type, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int32)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.Float32Builder:
		b.Append(math.Float32frombits(v.(uint32)))
	case *array.Float64Builder:
		b.Append(math.Float64frombits(v.(uint64)))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.Decimal128Builder:
		n, _ := new(big.Int).SetString(v.(string), 10)
		b.Append(decimal128.FromBigInt(n))
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range typ.(*icego.StructType).FieldList {
			build(b.FieldBuilder(i), f.Type, v.(row)[f.ID])
		}
	case *array.MapBuilder:
		b.Append(true)
		m := typ.(*icego.MapType)
		for _, e := range v.([]any) {
			build(b.KeyBuilder(), m.KeyType, e.(pair)[0])
			build(b.ItemBuilder(), m.ValueType, e.(pair)[1])
		}
	case *array.ListBuilder:
		b.Append(true)
		for _, e := range v.([]any) {
			build(b.ValueBuilder(), typ.(*icego.ListType).Element, e)
		}
	case interface{ StorageBuilder() array.Builder }:
		build(b.StorageBuilder(), typ, v)
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// get reads element i of an Arrow array. Structs are by the field ids that the
// file states.
func get(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Date32:
		return int32(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Time32:
		return int32(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Float32:
		return math.Float32bits(a.Value(i))
	case *array.Float64:
		return math.Float64bits(a.Value(i))
	case *array.String:
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.Binary:
		return string(a.Value(i))
	case *array.LargeBinary:
		return string(a.Value(i))
	case *array.FixedSizeBinary:
		return string(a.Value(i))
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Struct:
		out := row{}
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			if id, err := strconv.Atoi(metadata(f)); err == nil {
				out[id] = get(a.Field(k), i)
			}
		}
		return out
	case *array.Map:
		begin, end := a.ValueOffsets(i)
		out := []any{}
		for j := begin; j < end; j++ {
			out = append(out, pair{get(a.Keys(), int(j)), get(a.Items(), int(j))})
		}
		return out
	case *array.List:
		begin, end := a.ValueOffsets(i)
		out := []any{}
		for j := begin; j < end; j++ {
			out = append(out, get(a.ListValues(), int(j)))
		}
		return out
	case array.ExtensionArray:
		return get(a.Storage(), i)
	}
	panic(fmt.Sprintf("%T", a))
}

func metadata(f arrow.Field) string {
	v, _ := f.Metadata.GetValue("PARQUET:field_id")
	return v
}

// readRows reads a file with arrow-go.
func readRows(t require.TestingT, content []byte) []any {
	r, err := file.NewParquetReader(bytes.NewReader(content))
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	tb, err := fr.ReadTable(context.Background())
	require.NoError(t, err)
	defer tb.Release()
	out := make([]any, tb.NumRows())
	for i := range out {
		out[i] = row{}
	}
	for c := range int(tb.NumCols()) {
		id, err := strconv.Atoi(metadata(tb.Schema().Field(c)))
		require.NoError(t, err, "field id of %s", tb.Schema().Field(c).Name)
		n := 0
		for _, chunk := range tb.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				out[n].(row)[id] = get(chunk, i)
				n++
			}
		}
		require.Equal(t, len(out), n)
	}
	return out
}

// evolve is a value of an old schema as a new one reads it.
func evolve(from, to icego.Type, v any) any {
	if v == nil {
		return nil
	}
	switch to := to.(type) {
	case icego.Int64Type:
		if n, ok := v.(int32); ok {
			return int64(n)
		}
	case icego.Float64Type:
		if n, ok := v.(uint32); ok {
			return math.Float64bits(float64(math.Float32frombits(n)))
		}
	case *icego.StructType:
		return evolveRow(from.(*icego.StructType).FieldList, to.FieldList, v.(row))
	case *icego.ListType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, evolve(from.(*icego.ListType).Element, to.Element, e))
		}
		return out
	case *icego.MapType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, pair{e.(pair)[0], evolve(from.(*icego.MapType).ValueType, to.ValueType, e.(pair)[1])})
		}
		return out
	}
	return v
}

func evolveRow(from, to []icego.NestedField, v row) row {
	out := row{}
	for _, f := range to {
		old, ok := v[f.ID]
		if !ok {
			out[f.ID] = constant(f)
			continue
		}
		for _, o := range from {
			if o.ID == f.ID {
				out[f.ID] = evolve(o.Type, f.Type, old)
			}
		}
	}
	return out
}

// constant is what rows without the field have.
func constant(f icego.NestedField) any {
	switch v := f.InitialDefault.(type) {
	case int32, int64, string, bool, nil:
		return v
	}
	panic(fmt.Sprintf("%T", f.InitialDefault))
}

// style is how a file is written.
type style struct {
	Codec      compress.Compression
	V2         bool
	Dictionary bool
	PageBytes  int64
	GroupRows  int64
	Index      bool
	// Second has parquet-go write the file anew.
	Second bool
}

func drawStyle(t *rapid.T) style {
	return style{
		Codec:      rapid.SampledFrom([]compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd, compress.Codecs.Gzip}).Draw(t, "codec"),
		V2:         rapid.Bool().Draw(t, "v2"),
		Dictionary: rapid.Bool().Draw(t, "dictionary"),
		PageBytes:  rapid.SampledFrom([]int64{64, 512, 4096, 1 << 20}).Draw(t, "page bytes"),
		GroupRows:  rapid.SampledFrom([]int64{7, 100, 1000, 1 << 20}).Draw(t, "group rows"),
		Index:      rapid.Bool().Draw(t, "index"),
		Second:     rapid.IntRange(0, 3).Draw(t, "second writer") == 0,
	}
}

// writeRows writes a file with arrow-go, ids on every node unless bare.
func writeRows(t require.TestingT, schema *icego.Schema, rows []row, s style, bare bool) []byte {
	sc, err := icetable.SchemaToArrowSchema(schema, nil, !bare, false)
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for _, r := range rows {
		for i, f := range schema.Fields() {
			build(b.Field(i), f.Type, r[f.ID])
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	version := parquet.DataPageV1
	if s.V2 {
		version = parquet.DataPageV2
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(s.Codec), parquet.WithDataPageVersion(version), parquet.WithDictionaryDefault(s.Dictionary),
		parquet.WithDataPageSize(s.PageBytes), parquet.WithBatchSize(16), parquet.WithMaxRowGroupLength(s.GroupRows), parquet.WithPageIndexEnabled(s.Index))
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(sc, &out, props, pqarrow.NewArrowWriterProperties())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	if !s.Second || len(rows) == 0 {
		return out.Bytes()
	}
	in, err := pqgo.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	options := []pqgo.WriterOption{in.Schema(), pqgo.PageBufferSize(int(s.PageBytes)), pqgo.MaxRowsPerRowGroup(s.GroupRows)}
	switch s.Codec {
	case compress.Codecs.Snappy:
		options = append(options, pqgo.Compression(&pqgo.Snappy))
	case compress.Codecs.Zstd:
		options = append(options, pqgo.Compression(&pqgo.Zstd))
	}
	if s.V2 {
		options = append(options, pqgo.DataPageVersion(2))
	} else {
		options = append(options, pqgo.DataPageVersion(1))
	}
	var second bytes.Buffer
	pw := pqgo.NewGenericWriter[any](&second, options...)
	reader := pqgo.NewReader(in)
	_, err = pqgo.CopyRows(pw, reader)
	if err != nil && !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	require.NoError(t, reader.Close())
	require.NoError(t, pw.Close())
	return second.Bytes()
}

func TestModelReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := 0
		schema := icego.NewSchema(0, drawFields(t, &ids, 2, 4)...)
		d := drawer{t: t, rng: &lcg{x: rapid.Uint64().Draw(t, "seed")}, nulls: 30}
		rows := make([]row, rapid.IntRange(0, 200).Draw(t, "rows"))
		for i := range rows {
			rows[i] = d.row(schema.Fields())
		}
		got := readRows(t, writeRows(t, schema, rows, drawStyle(t), false))
		require.Len(t, got, len(rows))
		for i := range rows {
			require.Equal(t, any(rows[i]), got[i], "row %d", i)
		}
	})
}
