package rewrite_test

import (
	"bufio"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite"
)

//go:embed testdata/interop.py
var interopScript string

// foreign is a process that reads files with pyarrow and DuckDB.
type foreign struct {
	in    io.WriteCloser
	out   *bufio.Reader
	asked int
}

func newForeign(t *testing.T) *foreign {
	program := os.Getenv("SEAICE_PYTHON")
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SEAICE_PYTHON names no Python with pyarrow and duckdb")
		}
		t.Skip("SEAICE_PYTHON names no Python with pyarrow and duckdb")
	}
	cmd := exec.CommandContext(t.Context(), program, "-c", interopScript)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &foreign{in: in, out: bufio.NewReader(out)}
}

// foreignCase is what the process is asked; its answer is empty if it found the
// rows.
type foreignCase struct {
	Files  []foreignFile  `json:"files"`
	Fields []foreignField `json:"fields"`
	Rows   []any          `json:"rows"`
}

type foreignFile struct {
	Path string `json:"path"`
	Rows int64  `json:"rows"`
}

type foreignField struct {
	Name string       `json:"name"`
	Type *foreignType `json:"type"`
}

type foreignType struct {
	Kind      string         `json:"kind"`
	Of        string         `json:"of,omitempty"`
	Fields    []foreignField `json:"fields,omitempty"`
	Element   *foreignType   `json:"element,omitempty"`
	Key       *foreignType   `json:"key,omitempty"`
	Value     *foreignType   `json:"value,omitempty"`
	Precision int            `json:"precision,omitempty"`
	Scale     int            `json:"scale"`
}

func foreignTypeOf(typ icego.Type) *foreignType {
	switch typ := typ.(type) {
	case icego.BooleanType:
		return &foreignType{Kind: "bool"}
	case icego.Int32Type, icego.Int64Type:
		return &foreignType{Kind: "int"}
	case icego.DateType:
		return &foreignType{Kind: "int", Of: "date"}
	case icego.TimeType:
		return &foreignType{Kind: "int", Of: "time"}
	case icego.TimestampType:
		return &foreignType{Kind: "int", Of: "timestamp"}
	case icego.TimestampTzType:
		return &foreignType{Kind: "int", Of: "timestamptz"}
	case icego.Float32Type:
		return &foreignType{Kind: "float"}
	case icego.Float64Type:
		return &foreignType{Kind: "double"}
	case icego.StringType:
		return &foreignType{Kind: "text"}
	case icego.BinaryType, icego.FixedType:
		return &foreignType{Kind: "bytes"}
	case icego.UUIDType:
		return &foreignType{Kind: "uuid"}
	case icego.DecimalType:
		return &foreignType{Kind: "decimal", Precision: typ.Precision(), Scale: typ.Scale()}
	case *icego.StructType:
		return &foreignType{Kind: "struct", Fields: foreignFields(typ.FieldList)}
	case *icego.ListType:
		return &foreignType{Kind: "list", Element: foreignTypeOf(typ.Element)}
	case *icego.MapType:
		return &foreignType{Kind: "map", Key: foreignTypeOf(typ.KeyType), Value: foreignTypeOf(typ.ValueType)}
	}
	panic(typ.String())
}

func foreignFields(fields []icego.NestedField) (out []foreignField) {
	for _, f := range fields {
		out = append(out, foreignField{Name: f.Name, Type: foreignTypeOf(f.Type)})
	}
	return out
}

// foreignValue is a value of the model as the process spells it.
func foreignValue(typ icego.Type, v any) any {
	if v == nil {
		return nil
	}
	switch typ := typ.(type) {
	case icego.Float32Type:
		if f := math.Float32frombits(v.(uint32)); f != f {
			return "NaN"
		}
	case icego.Float64Type:
		if f := math.Float64frombits(v.(uint64)); f != f {
			return "NaN"
		}
	case icego.BinaryType, icego.FixedType, icego.UUIDType:
		return hex.EncodeToString([]byte(v.(string)))
	case icego.DecimalType:
		return json.Number(v.(string))
	case *icego.StructType:
		return foreignRow(typ.FieldList, v.(row))
	case *icego.ListType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, foreignValue(typ.Element, e))
		}
		return out
	case *icego.MapType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, []any{foreignValue(typ.KeyType, e.(pair)[0]), foreignValue(typ.ValueType, e.(pair)[1])})
		}
		return out
	}
	return v
}

func foreignRow(fields []icego.NestedField, r row) any {
	out := []any{}
	for _, f := range fields {
		out = append(out, foreignValue(f.Type, r[f.ID]))
	}
	return out
}

// check has the process read the outputs of a merge.
func (f *foreign) check(t require.TestingT, dir string, w *world, res rewrite.Result) {
	schema := w.request.Table.Schema
	if w.request.Table.FormatVersion >= 3 {
		schema = icego.SchemaWithRowLineage(schema)
	}
	c := foreignCase{Fields: foreignFields(schema.Fields()), Rows: []any{}, Files: []foreignFile{}}
	for i, o := range res.Outputs {
		at := filepath.Join(dir, "out-"+strconv.Itoa(i)+".parquet")
		require.NoError(t, os.WriteFile(at, w.filer.Content(o.At), 0o600))
		c.Files = append(c.Files, foreignFile{Path: at, Rows: o.Records})
	}
	for _, r := range w.want {
		c.Rows = append(c.Rows, foreignRow(schema.Fields(), r.(row)))
	}
	require.NoError(t, json.NewEncoder(f.in).Encode(c))
	line, err := f.out.ReadBytes('\n')
	require.NoError(t, err)
	var answer struct {
		Error string
		Asked int
	}
	require.NoError(t, json.Unmarshal(line, &answer))
	require.Empty(t, answer.Error)
	f.asked += answer.Asked
}

// drawBlooms asks for filters of some columns.
func drawBlooms(t *rapid.T, q *rewrite.Request) {
	for _, f := range q.Table.Schema.Fields() {
		if rapid.IntRange(0, 2).Draw(t, "bloom") == 0 {
			q.Table.Properties["write.parquet.bloom-filter-enabled.column."+f.Name] = "true"
		}
	}
}

// drawUnit draws a table and a unit of sources.
func drawUnit(t *rapid.T) *world {
	ids := 0
	schema := icego.NewSchema(0, drawFields(t, &ids, rapid.IntRange(0, 2).Draw(t, "depth"), 5)...)
	w := newWorld(t, schema, rapid.IntRange(1, 3).Draw(t, "format version"))
	drawSettings(t, &w.request)
	w.request.TargetBytes, w.request.MaxRows = max(w.request.TargetBytes, 100_000), 0
	drawBlooms(t, &w.request)
	d := drawer{t: t, rng: &lcg{x: rapid.Uint64().Draw(t, "seed")}}
	for range rapid.IntRange(1, 5).Draw(t, "sources") {
		d.nulls = rapid.SampledFrom([]int{0, 10, 50, 100}).Draw(t, "nulls")
		d.few = rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "few")
		w.draw(t, &d, schema.Fields())
	}
	return w
}

var howCopied = map[rewrite.Copying]string{rewrite.CopyWhereAllowed: "allowed", rewrite.CopyForced: "forced", rewrite.CopyNever: "never"}

// interopUnits is how many random units foreign readers read.
func interopUnits() int {
	if testing.Short() {
		return 5
	}
	return 20
}

// TestInteropMergedFilesInPyarrowAndDuckDB merges random files of random schemas
// in every way and has both read the outputs, in full and by predicates.
func TestInteropMergedFilesInPyarrowAndDuckDB(t *testing.T) {
	f := newForeign(t)
	dir := t.TempDir()
	units := rapid.Custom(drawUnit)
	for seed := range interopUnits() {
		w := units.Example(seed)
		for how, name := range howCopied {
			t.Run(fmt.Sprintf("seed %d, copying %s", seed, name), func(t *testing.T) {
				w.request.Copying = how
				f.check(t, dir, w, w.merge(t))
			})
		}
	}
	for _, v2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("pages of codes that are not compressed, v2 %v", v2), func(t *testing.T) {
			w := noisyWorld(t, v2)
			f.check(t, dir, w, w.merge(t))
		})
	}
	require.Positive(t, f.asked, "no predicate was tried")
}
