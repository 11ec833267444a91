package deletes_test

import (
	"bytes"
	gocontext "context"
	"encoding/json"
	"fmt"
	"math"
	"sort"

	icego "github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/deletes"
)

// context is for tests that have no testing.T at hand, as properties.
func context() gocontext.Context { return gocontext.Background() }

// history is what schemas tell, the last of which is the current one. It is that
// of a table in format version 3.
func history(t require.TestingT, schemas ...[]icego.NestedField) *iceberg.History {
	doc := map[string]any{
		"format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t", "last-updated-ms": 1,
		"last-sequence-number": 0, "last-column-id": 1000, "next-row-id": 0, "current-schema-id": len(schemas) - 1,
		"partition-specs": []any{map[string]any{"spec-id": 0, "fields": []any{}}}, "default-spec-id": 0, "last-partition-id": 999,
		"sort-orders": []any{map[string]any{"order-id": 0, "fields": []any{}}}, "default-sort-order-id": 0,
	}
	var all []any
	for i, fields := range schemas {
		b, err := json.Marshal(icego.NewSchema(i, fields...))
		require.NoError(t, err)
		all = append(all, json.RawMessage(b))
	}
	doc["schemas"] = all
	b, err := json.Marshal(doc)
	require.NoError(t, err)
	m, err := iceberg.ParseMetadata(b)
	require.NoError(t, err)
	return m.History()
}

func optional(id int, name string, typ icego.Type) icego.NestedField {
	return icego.NestedField{ID: id, Name: name, Type: typ}
}

// col is a column of a file: a leaf, alone or as the only field of a struct.
type col struct {
	name string
	id   int
	node parquet.Node
	// in is the struct around it with its id, if there is one.
	in   string
	inID int
}

// content makes a Parquet file. A value is nil for null, or what parquet.ValueOf
// takes; absent is a null struct.
type absent struct{}

func content(t require.TestingT, cols []col, rows [][]any, o ...parquet.WriterOption) []byte {
	sort.SliceStable(cols, func(a, b int) bool { return cols[a].top() < cols[b].top() })
	g := parquet.Group{}
	for _, c := range cols {
		n := parquet.FieldID(parquet.Optional(c.node), c.id)
		if c.in != "" {
			n = parquet.FieldID(parquet.Optional(parquet.Group{c.name: n}), c.inID)
		}
		g[c.top()] = n
	}
	var b bytes.Buffer
	w := parquet.NewWriter(&b, append(o, parquet.NewSchema("t", g))...)
	for _, r := range rows {
		var row parquet.Row
		for i, v := range r {
			full := 1
			if cols[i].in != "" {
				full = 2
			}
			switch v := v.(type) {
			case nil:
				row = append(row, parquet.NullValue().Level(0, full-1, i))
			case absent:
				row = append(row, parquet.NullValue().Level(0, 0, i))
			default:
				row = append(row, parquet.ValueOf(v).Level(0, full, i))
			}
		}
		_, err := w.WriteRows([]parquet.Row{row})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func (c col) top() string {
	if c.in != "" {
		return c.in
	}
	return c.name
}

// canonical is a value such that equal keys are equal.
func canonical(v any) string {
	switch v := v.(type) {
	case nil, absent:
		return "null"
	case int32:
		return fmt.Sprint("n", v)
	case int64:
		return fmt.Sprint("n", v)
	case float32:
		return canonical(float64(v))
	case float64:
		if v != v {
			return "NaN"
		}
		return fmt.Sprint("f", math.Float64bits(v))
	}
	return fmt.Sprintf("%T%v", v, v)
}

// bench is a place for files.
type bench struct {
	t  require.TestingT
	fl *filertest.Filer
	q  deletes.Request
}

func newBench(t require.TestingT, h *iceberg.History) *bench {
	fl := filertest.New(filertest.Options{})
	return &bench{t: t, fl: fl, q: deletes.Request{Reader: fl, FormatVersion: 3, History: h}}
}

func (w *bench) put(name string, b []byte) (string, filer.Path) {
	at := filer.Path("/buckets/b/t/" + name)
	_, err := w.fl.Put(context(), at, b, filer.CreateOptions{Replace: true})
	require.NoError(w.t, err)
	return "s3://b/t/" + name, at
}

// data adds a data file and returns its index.
func (w *bench) data(b []byte, rows int) int {
	n := len(w.q.Data)
	name, at := w.put(fmt.Sprintf("data-%d.parquet", n), b)
	w.q.Data = append(w.q.Data, deletes.DataFile{Location: name, At: at, Records: int64(rows)})
	return n
}

// equality adds an equality delete.
func (w *bench) equality(b []byte, rows int, ids []iceberg.FieldID, applies ...int) int {
	n := len(w.q.Deletes)
	name, at := w.put(fmt.Sprintf("delete-%d.parquet", n), b)
	w.q.Deletes = append(w.q.Deletes, deletes.DeleteFile{
		Kind: deletes.EqualityDelete, Location: name, At: at, Format: "parquet", Records: int64(rows), EqualityIDs: ids, Applies: applies,
	})
	return n
}

func (w *bench) load() (*deletes.Result, error) { return deletes.Load(context(), w.q) }

// deleted are the rows of a data file that must be deleted, and no others.
func (w *bench) deleted(n int, want ...int64) {
	res, err := w.load()
	require.NoError(w.t, err)
	require.True(w.t, deletes.Of(want...).Equal(res.Positions[n]), "%v", res.Positions[n])
}
