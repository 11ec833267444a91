package resolve_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	root := os.Getenv("SEAICE_FIXTURES")
	if root == "" {
		root = "../../../shared/fixtures"
	}
	b, err := os.ReadFile(filepath.Join(root, "parquet", name+".parquet"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there are no files of other writers; set SEAICE_FIXTURES")
	}
	require.NoError(t, err)
	return b
}

// arrowRows are the rows of a file as arrow-go reads them.
func arrowRows(t *testing.T, b []byte) []any {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(b))
	require.NoError(t, err)
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	table, err := r.ReadTable(t.Context())
	require.NoError(t, err)
	defer table.Release()
	var out []any
	var names []string
	for i := range int(table.NumCols()) {
		col := table.Column(i)
		names = append(names, col.Name())
		row := 0
		for _, chunk := range col.Data().Chunks() {
			for j := range chunk.Len() {
				if i == 0 {
					out = append(out, map[string]any{})
				}
				out[row].(map[string]any)[col.Name()] = chunk.GetOneForMarshal(j)
				row++
			}
		}
	}
	require.NotEmpty(t, names)
	text, err := json.Marshal(out)
	require.NoError(t, err)
	out = nil
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// ourRows are the rows of a file as a target has them.
func ourRows(t *testing.T, b []byte, cols []*col, c resolve.Context) []any {
	t.Helper()
	f, err := column.Open(t.Context(), bytes.NewReader(b), "x.parquet", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	target, err := resolve.NewTarget(schemaOf(cols), resolve.Options{})
	require.NoError(t, err)
	m, err := resolve.File(target, f.Footer(), c)
	require.NoError(t, err)
	rows := int(f.Footer().Rows)
	a := &assembler{leaves: make([]*leafData, len(target.Leaves)), at: make([]int, len(target.Leaves)), value: make([]int, len(target.Leaves))}
	for i := range m.Leaves {
		a.leaves[i] = readLeaf(t, f, &m.Leaves[i], rows)
	}
	var out []any
	for range rows {
		row := map[string]any{}
		for _, p := range targetPlaces(cols, target.Schema.Root.Children) {
			row[p.col.name] = a.read(p, 0)
		}
		out = append(out, row)
	}
	text, err := json.Marshal(out)
	require.NoError(t, err)
	out = nil
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func readLeaf(t *testing.T, f *column.File, s *resolve.Source, rows int) *leafData {
	out := &leafData{}
	add := func(b *column.Batch) {
		def, rep := b.Def, b.Rep
		if def == nil {
			def = make([]byte, b.Levels)
		}
		if rep == nil {
			rep = make([]byte, b.Levels)
		}
		out.def, out.rep = append(out.def, def...), append(out.rep, rep...)
		for i := range b.Values.Len() {
			out.values = append(out.values, bytes.Clone(b.Values.At(i)))
		}
	}
	var in, buffer column.Batch
	if s.Leaf < 0 {
		require.NoError(t, s.Fill(&buffer, rows))
		add(&buffer)
		return out
	}
	r := f.Reader(s.Leaf)
	for {
		err := r.Next(&in, 64)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		got, err := s.Apply(&in, &buffer)
		require.NoError(t, err)
		add(got)
	}
}

// assembler makes rows of leaves again.
type assembler struct {
	leaves    []*leafData
	at, value []int
}

func firstLeaf(n *format.Node) *format.Node {
	for n.Group {
		n = n.Children[0]
	}
	return n
}

func (a *assembler) def(n *format.Node) int {
	l := firstLeaf(n).Leaf
	return int(a.leaves[l].def[a.at[l]])
}

func (a *assembler) skip(n *format.Node) {
	if !n.Group {
		a.at[n.Leaf]++
	}
	for _, c := range n.Children {
		a.skip(c)
	}
}

func (a *assembler) read(p *place, d int) any {
	if p.node.Repetition == format.Optional {
		if a.def(p.node) <= d {
			a.skip(p.node)
			return nil
		}
		d++
	}
	if p.repeated != nil {
		return a.entries(p, d)
	}
	if p.col.kind == "struct" {
		out := map[string]any{}
		for _, k := range p.kids {
			out[k.col.name] = a.read(k, d)
		}
		return out
	}
	l := p.node.Leaf
	a.at[l]++
	v := a.leaves[l].values[a.value[l]]
	a.value[l]++
	switch p.col.typ.(type) {
	case icego.Int32Type:
		return int32(binary.LittleEndian.Uint32(v))
	case icego.Int64Type:
		return int64(binary.LittleEndian.Uint64(v))
	case icego.Float64Type:
		return math.Float64frombits(binary.LittleEndian.Uint64(v))
	case icego.BooleanType:
		return v[0] == 1
	}
	return string(v)
}

func (a *assembler) entries(p *place, d int) any {
	out := []any{}
	if a.def(p.repeated) <= d {
		a.skip(p.repeated)
		return out
	}
	l := firstLeaf(p.repeated).Leaf
	for {
		if p.col.kind == "list" {
			out = append(out, a.read(p.kids[0], d+1))
		} else {
			out = append(out, map[string]any{"key": a.read(p.kids[0], d+1), "value": a.read(p.kids[1], d+1)})
		}
		if a.at[l] == len(a.leaves[l].rep) || int(a.leaves[l].rep[a.at[l]]) < p.repeated.MaxRep {
			return out
		}
	}
}

// Short forms for columns.
var nextID int

func one(name string, t icego.Type) *col {
	nextID++
	return &col{id: nextID, name: name, kind: "leaf", typ: t}
}

func many(kind, name string, kids ...*col) *col {
	nextID++
	c := &col{id: nextID, name: name, kind: kind, kids: kids}
	switch kind {
	case "list":
		kids[0].name = "element"
	case "map":
		kids[0].name, kids[0].required, kids[1].name = "key", true, "value"
	}
	return c
}

// TestNestedFilesOfOthersAreReadAsTheirReadersDo compares with arrow-go, also
// with fields of structs in lists added and dropped.
func TestNestedFilesOfOthersAreReadAsTheirReadersDo(t *testing.T) {
	p := icego.PrimitiveTypes
	inner := many("struct", "", one("E", p.Int32), one("F", p.String))
	impala := []*col{
		one("id", p.Int64), many("list", "int_array", one("", p.Int32)), many("list", "int_array_Array", many("list", "", one("", p.Int32))),
		many("map", "int_map", one("", p.String), one("", p.Int32)),
		many("list", "int_Map_Array", many("map", "", one("", p.String), one("", p.Int32))),
		many("struct", "nested_struct", one("A", p.Int32), many("list", "b", one("", p.Int32)),
			many("struct", "C", many("list", "d", many("list", "", inner))),
			many("map", "g", one("", p.String), many("struct", "", many("struct", "H", many("list", "i", one("", p.Float64)))))),
	}
	lists := []*col{many("list", "a", many("list", "", many("list", "", one("", p.String)))), one("b", p.Int32)}
	maps := []*col{many("map", "a", one("", p.String), many("map", "", one("", p.Int32), one("", p.Bool))), one("b", p.Int32), one("c", p.Float64)}
	for _, c := range []struct {
		name string
		cols []*col
	}{{"nullable.impala", impala}, {"nested_lists.snappy", lists}, {"nested_maps.snappy", maps}} {
		t.Run(c.name, func(t *testing.T) {
			b := fixture(t, c.name)
			context := resolve.Context{FormatVersion: 2, HasNames: true, Names: names(c.cols)}
			require.Equal(t, arrowRows(t, b), ourRows(t, b, c.cols, context))
		})
	}

	t.Run("optional keys", func(t *testing.T) {
		// arrow-go refuses the file, whose keys are optional and there.
		hive := []*col{many("map", "my_map", one("", p.String), one("", p.String))}
		got := ourRows(t, fixture(t, "incorrect_map_schema"), hive, resolve.Context{HasNames: true, Names: names(hive)})
		require.Equal(t, []any{map[string]any{"my_map": []any{
			map[string]any{"key": "parent", "value": "another"}, map[string]any{"key": "name", "value": "report"},
		}}}, got)
	})

	t.Run("evolved", func(t *testing.T) {
		b := fixture(t, "nullable.impala")
		context := resolve.Context{FormatVersion: 3, HasNames: true, Names: names(impala)}
		// All fields of the struct go and a list with a default comes: its levels are
		// those of the fields that went.
		added := many("list", "new", one("", p.Int64))
		added.initial = []any{}
		inner.kids = []*col{added, one("none", p.String)}
		got := ourRows(t, b, impala, context)
		var change func(v any) any
		change = func(v any) any {
			switch v := v.(type) {
			case []any:
				for i := range v {
					v[i] = change(v[i])
				}
			case map[string]any:
				if _, ok := v["E"]; ok {
					return map[string]any{"new": []any{}, "none": nil}
				}
				for k := range v {
					v[k] = change(v[k])
				}
			}
			return v
		}
		want := change(arrowRows(t, b))
		require.Equal(t, want, any(got))
	})
}

// TestF037Int96OfOthersIsReadAsByArrow compares plain and dictionary pages.
func TestF037Int96OfOthersIsReadAsByArrow(t *testing.T) {
	for _, name := range []string{"alltypes_plain", "alltypes_dictionary", "alltypes_plain.snappy"} {
		b := fixture(t, name)
		ts := one("timestamp_col", icego.PrimitiveTypes.Timestamp)
		f, err := column.Open(t.Context(), bytes.NewReader(b), name, column.Options{})
		require.NoError(t, err)
		defer f.Close()
		tgt, err := resolve.NewTarget(schemaOf([]*col{ts}), resolve.Options{})
		require.NoError(t, err)
		m, err := resolve.File(tgt, f.Footer(), resolve.Context{HasNames: true, Names: names([]*col{ts})})
		require.NoError(t, err)
		var want [][]byte
		peer, err := file.NewParquetReader(bytes.NewReader(b))
		require.NoError(t, err)
		for g := range peer.NumRowGroups() {
			r, err := peer.RowGroup(g).Column(m.Leaves[0].Leaf)
			require.NoError(t, err)
			values := make([]parquet.Int96, peer.RowGroup(g).NumRows())
			_, n, err := r.(*file.Int96ColumnChunkReader).ReadBatch(int64(len(values)), values, make([]int16, len(values)), nil)
			require.NoError(t, err)
			for _, v := range values[:n] {
				want = append(want, le64(v.ToTime().UnixMicro()))
			}
		}
		require.NotEmpty(t, want)
		require.Equal(t, want, readLeaf(t, f, &m.Leaves[0], int(f.Footer().Rows)).values)
	}
}

// TestFilesOfOthersResolveOrAreRefused looks at schemas of other writers.
func TestFilesOfOthersResolveOrAreRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	srid, err := icego.GeometryTypeOf("srid:5070")
	require.NoError(t, err)
	for _, c := range []struct {
		file, name string
		typ        icego.Type
		want       string
	}{
		{"int32_decimal", "value", icego.DecimalTypeOf(4, 2), ""},
		{"int64_decimal", "value", icego.DecimalTypeOf(10, 2), ""},
		{"int64_decimal", "value", icego.DecimalTypeOf(38, 2), ""},
		// Its writer numbers nodes; a mapping must not overrule ids.
		{"byte_array_decimal", "value", icego.DecimalTypeOf(4, 2), "holds no column of the table"},
		{"fixed_length_decimal", "value", icego.DecimalTypeOf(25, 2), ""},
		{"fixed_length_decimal_legacy", "value", icego.DecimalTypeOf(13, 2), ""},
		{"fixed_length_decimal", "value", icego.DecimalTypeOf(24, 2), "cannot be read as decimal(24, 2)"},
		{"alltypes_plain", "timestamp_col", p.TimestampTz, ""},
		{"alltypes_plain", "timestamp_col", p.TimestampNs, ""},
		{"alltypes_plain", "string_col", p.String, ""},
		{"alltypes_plain", "int_col", p.Int64, ""},
		{"alltypes_plain", "bigint_col", p.Int32, "cannot be read as int"},
		{"alltypes_plain", "tinyint_col", p.Int32, ""},
		{"float16_zeros_and_nans", "x", p.Float32, "cannot be read as float"},
		{"unknown-logical-type", "column with unknown type", p.String, "cannot be read as string"},
		{"crs-default", "geometry", icego.GeometryType{}, ""},
		{"crs-srid", "geometry", srid, ""},
		{"crs-srid", "geometry", icego.GeometryType{}, "cannot be read as geometry"},
		{"crs-geography", "geography", icego.GeographyType{}, ""},
		{"crs-geography", "geography", icego.GeometryType{}, "cannot be read as geometry"},
		{"nested_lists.snappy", "a", p.String, "cannot be read as string"},
		{"nested_maps.snappy", "a", &icego.ListType{ElementID: 2, Element: p.String}, "cannot be read as list"},
	} {
		t.Run(c.file+" "+c.name+" "+c.typ.String(), func(t *testing.T) {
			f, err := column.Open(t.Context(), bytes.NewReader(fixture(t, c.file)), c.file, column.Options{})
			require.NoError(t, err)
			_, err = resolve.File(target(t, optional(1, c.name, c.typ)), f.Footer(), resolve.Context{
				FormatVersion: 3, HasNames: true, Names: icego.NameMapping{{Names: []string{c.name}, FieldID: pointer(1)}},
			})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, fault.Unsupported, fault.Of(err), "%v", err)
			require.ErrorContains(t, err, c.want)
		})
	}
}
