package resolve_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// world draws tables and their histories.
type world struct {
	t  *rapid.T
	id int
}

func (w *world) chance(percent int) bool {
	return rapid.IntRange(1, 100).Draw(w.t, "chance") <= percent
}
func (w *world) upTo(n int) int { return rapid.IntRange(0, n).Draw(w.t, "n") }

func (w *world) leafType() icego.Type {
	return rapid.SampledFrom([]icego.Type{
		icego.PrimitiveTypes.Bool, icego.PrimitiveTypes.Int32, icego.PrimitiveTypes.Int64, icego.PrimitiveTypes.Float32,
		icego.PrimitiveTypes.Float64, icego.DecimalTypeOf(4, 2), icego.DecimalTypeOf(9, 2), icego.DecimalTypeOf(12, 2),
		icego.DecimalTypeOf(18, 2), icego.DecimalTypeOf(25, 2), icego.DecimalTypeOf(38, 2), icego.PrimitiveTypes.Date,
		icego.PrimitiveTypes.Time, icego.PrimitiveTypes.Timestamp, icego.PrimitiveTypes.TimestampTz, icego.PrimitiveTypes.TimestampNs,
		icego.PrimitiveTypes.TimestampTzNs, icego.PrimitiveTypes.String, icego.PrimitiveTypes.Binary, icego.FixedTypeOf(5),
		icego.PrimitiveTypes.UUID,
	}).Draw(w.t, "type")
}

func (w *world) column(depth int) *col {
	w.id++
	c := &col{id: w.id, name: fmt.Sprintf("c%d", w.upTo(3)), kind: "leaf", required: w.chance(30)}
	if depth < 3 && w.chance(50) {
		c.kind = rapid.SampledFrom([]string{"struct", "list", "map"}).Draw(w.t, "kind")
	}
	switch c.kind {
	case "struct":
		c.kids = w.columns(depth+1, 3)
	case "list":
		c.kids = []*col{w.column(depth + 1)}
		c.kids[0].name = "element"
	case "map":
		c.kids = []*col{w.column(3), w.column(depth + 1)}
		c.kids[0].name, c.kids[0].required, c.kids[1].name = "key", true, "value"
	default:
		c.typ = w.leafType()
	}
	return c
}

func (w *world) columns(depth, most int) []*col {
	var out []*col
	for range 1 + w.upTo(most-1) {
		out = append(out, w.named(out, w.column(depth)))
	}
	return out
}

// named gives c a name that its siblings do not have.
func (w *world) named(siblings []*col, c *col) *col {
	for slices.ContainsFunc(siblings, func(s *col) bool { return s != c && s.name == c.name }) {
		c.name += "x"
	}
	return c
}

// value draws one of a column. Times are whole milliseconds, so that every unit
// has them.
func (w *world) value(c *col) any {
	if !c.required && w.chance(25) {
		return nil
	}
	switch c.kind {
	case "struct":
		out := map[int]any{}
		for _, k := range c.kids {
			out[k.id] = w.value(k)
		}
		return out
	case "list":
		out := []any{}
		for range w.upTo(3) {
			out = append(out, w.value(c.kids[0]))
		}
		return out
	case "map":
		out := []pair{}
		for range w.upTo(3) {
			out = append(out, pair{w.value(c.kids[0]), w.value(c.kids[1])})
		}
		return out
	}
	n := int64(w.upTo(2000) - 1000)
	switch t := c.typ.(type) {
	case icego.BooleanType:
		return n > 0
	case icego.Float32Type, icego.Float64Type:
		return float64(n) / 4
	case icego.DecimalType:
		v := big.NewInt(n)
		if t.Precision() > 20 {
			v.Mul(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision()-5)), nil))
		}
		return v
	case icego.TimeType:
		return (n + 1000) * 1000
	case icego.TimestampType, icego.TimestampTzType:
		return n * 86_399_000 * 1000
	case icego.TimestampNsType, icego.TimestampTzNsType:
		return n * 86_399_000 * 1_000_000
	case icego.StringType:
		return fmt.Sprintf("%d", n)
	case icego.BinaryType:
		return []byte(fmt.Sprintf("%d", n))
	case icego.FixedType:
		return []byte(fmt.Sprintf("%05d", n+1000))
	case icego.UUIDType:
		return []byte(fmt.Sprintf("%016d", n+1000))
	}
	return n
}

// evolve changes the columns of a struct, or those below.
func (w *world) evolve(cols []*col, depth int) []*col {
	cols = slices.Clone(cols)
	for range w.upTo(3) {
		switch i := w.upTo(len(cols) - 1); rapid.SampledFrom([]string{"rename", "add", "drop", "move", "promote", "relax", "inner"}).Draw(w.t, "change") {
		case "rename":
			cols[i].name = fmt.Sprintf("c%d", w.upTo(3))
			w.named(cols, cols[i])
		case "add":
			cols = append(cols, w.named(cols, w.added(depth)))
		case "drop":
			if len(cols) > 1 {
				cols = slices.Delete(cols, i, i+1)
			}
		case "move":
			c := cols[i]
			cols = slices.Insert(slices.Delete(cols, i, i+1), w.upTo(len(cols)-1), c)
		case "promote":
			w.promote(cols[i])
		case "relax":
			cols[i].required = false
		case "inner":
			w.inner(cols[i], depth)
		}
	}
	return cols
}

func (w *world) inner(c *col, depth int) {
	switch c.kind {
	case "struct":
		c.kids = w.evolve(c.kids, depth+1)
	case "list", "map":
		v := c.kids[len(c.kids)-1]
		w.promote(v)
		w.inner(v, depth+1)
	}
}

// added is a new column: optional, or with a default.
func (w *world) added(depth int) *col {
	c := w.column(depth)
	c.required = false
	switch {
	case c.kind == "leaf" && w.chance(50):
		c.required = w.chance(50)
		w.withDefault(c)
	case c.kind == "struct" && w.chance(50):
		c.initial = map[string]any{}
		for _, k := range c.kids {
			k.required = false
		}
	case c.kind == "list" && w.chance(50):
		c.initial, c.value = []any{}, []any{}
	case c.kind == "map" && w.chance(50):
		c.initial, c.value = map[string]any{"keys": []any{}, "values": []any{}}, []pair{}
	}
	return c
}

// withDefault gives a default in the JSON form of the specification.
func (w *world) withDefault(c *col) {
	switch c.typ.(type) {
	case icego.BooleanType:
		c.initial, c.value = true, true
	case icego.Int32Type, icego.Int64Type:
		c.initial, c.value = float64(7), int64(7)
	case icego.Float32Type, icego.Float64Type:
		c.initial, c.value = 1.5, 1.5
	case icego.DecimalType:
		c.initial, c.value = "-3.25", big.NewInt(-325)
	case icego.DateType:
		c.initial, c.value = "1969-12-31", int64(-1)
	case icego.TimeType:
		c.initial, c.value = "00:00:01.000002", int64(1_000_002)
	case icego.TimestampType:
		c.initial, c.value = "1970-01-01T00:00:01.000002", int64(1_000_002)
	case icego.TimestampTzType:
		c.initial, c.value = "1970-01-01T00:00:01.000002+00:00", int64(1_000_002)
	case icego.TimestampNsType:
		c.initial, c.value = "1970-01-01T00:00:01.000000002", int64(1_000_000_002)
	case icego.TimestampTzNsType:
		c.initial, c.value = "1970-01-01T00:00:01.000000002+00:00", int64(1_000_000_002)
	case icego.StringType:
		c.initial, c.value = "", ""
	case icego.BinaryType:
		c.initial, c.value = "00ff", []byte{0, 0xff}
	case icego.FixedType:
		c.initial, c.value = "0001020304", []byte{0, 1, 2, 3, 4}
	case icego.UUIDType:
		c.initial, c.value = "f79c3e09-677c-4bbd-a479-3f349cb785e7",
			[]byte("\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7")
	}
}

func (w *world) promote(c *col) {
	if c.kind != "leaf" {
		return
	}
	switch t := c.typ.(type) {
	case icego.Int32Type:
		c.typ = icego.PrimitiveTypes.Int64
	case icego.Float32Type:
		c.typ = icego.PrimitiveTypes.Float64
	case icego.DecimalType:
		c.typ = icego.DecimalTypeOf(min(38, t.Precision()+7), t.Scale())
	case icego.DateType:
		if c.initial == nil {
			c.typ = rapid.SampledFrom([]icego.Type{icego.PrimitiveTypes.Timestamp, icego.PrimitiveTypes.TimestampNs}).Draw(w.t, "to")
		}
	}
}

// TestRandomHistoriesOfSchemasAreReadAsTheSpecificationSays writes rows under
// one schema in any layout that files have, changes the schema, and compares
// what is resolved with what the rows then are.
func TestRandomHistoriesOfSchemasAreReadAsTheSpecificationSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt}
		old := w.columns(0, 4)
		now := make([]*col, len(old))
		for i, c := range old {
			now[i] = c.clone()
		}
		for range w.upTo(3) {
			now = w.evolve(now, 0)
		}
		var rows, want []map[int]any
		root, after := &col{kind: "struct", kids: old}, &col{kind: "struct", kids: now}
		for range 1 + w.upTo(4) {
			row := map[int]any{}
			for _, c := range old {
				row[c.id] = w.value(c)
			}
			rows = append(rows, row)
			want = append(want, project(root, after, row).(map[int]any))
		}

		style := &style{w: w, ids: w.chance(70)}
		places, fileSchema := style.file(old)
		target, err := resolve.NewTarget(schemaOf(now), resolve.Options{})
		require.NoError(rt, err)
		mapping, err := resolve.File(target, &format.Footer{Schema: fileSchema}, resolve.Context{
			FormatVersion: 3, HasNames: !style.ids, Names: names(old),
		})
		if !slices.ContainsFunc(now, func(c *col) bool { return root.kid(c.id) != nil }) {
			require.Equal(rt, fault.Unsupported, fault.Of(err), "nothing of the table is in the file")
			return
		}
		require.NoError(rt, err, "file:\n%s\ntarget:\n%s", show(fileSchema.Root, 0), show(target.Schema.Root, 0))

		in := shred(places, fileSchema, rows)
		expected := shred(targetPlaces(now, target.Schema.Root.Children), target.Schema, want)
		for i := range target.Leaves {
			got := apply(rt, &mapping.Leaves[i], fileSchema, in, len(rows))
			require.Empty(rt, cmp.Diff(flat(expected[i].batch(target.Leaves[i].Node, len(rows))), flat(got)),
				"leaf %s\nfile:\n%s\ntarget:\n%s", target.Leaves[i].Name, show(fileSchema.Root, 0), show(target.Schema.Root, 0))
			if s := mapping.Leaves[i]; s.Copyable {
				require.True(rt, s.Identity(), "what may be copied is not changed")
			}
		}
	})
}

func apply(t require.TestingT, s *resolve.Source, schema *format.Schema, in []*leafData, rows int) *column.Batch {
	var out column.Batch
	if s.Leaf < 0 {
		require.NoError(t, s.Fill(&out, rows))
		return &out
	}
	got, err := s.Apply(in[s.Leaf].batch(schema.Leaves[s.Leaf], rows), &out)
	require.NoError(t, err)
	return got
}

// flat is a batch as plain data.
func flat(b *column.Batch) map[string]any {
	values := []string{}
	for i := range b.Values.Len() {
		values = append(values, string(b.Values.At(i)))
	}
	return map[string]any{
		"rows": b.Rows, "levels": b.Levels, "rep": string(b.Rep), "def": string(b.Def),
		"values": values, "type": int(b.Values.Type), "width": b.Values.Width,
	}
}
