package resolve_test

import (
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// anyNode draws a node that a footer may have, sensible or not.
func (w *world) anyNode(depth int) *format.Node {
	n := &format.Node{
		Name:       rapid.SampledFrom([]string{"c0", "c1", "array", "list", "element", "key_value", "metadata", "value"}).Draw(w.t, "name"),
		Repetition: format.Repetition(w.upTo(2)),
	}
	if w.chance(70) {
		n.FieldID = pointer(int32(w.upTo(9) - 1))
	}
	switch w.upTo(4) {
	case 0:
		n.Converted = pointer(int32(w.upTo(22)))
		n.Precision, n.Scale = pointer(int32(w.upTo(40)-1)), pointer(int32(w.upTo(3)-1))
	case 1:
		n.Logical = &format.Logical{
			Kind: format.LogicalKind(w.upTo(20)), Unit: format.TimeUnit(w.upTo(4)), Precision: int32(w.upTo(40) - 1),
			Scale: int32(w.upTo(3)), BitWidth: int8(8 << w.upTo(3)), Signed: w.chance(50), Algorithm: pointer(int32(w.upTo(9))),
		}
	}
	if depth < 4 && w.chance(50) {
		n.Group = true
		for range w.upTo(3) {
			n.Children = append(n.Children, w.anyNode(depth+1))
		}
		return n
	}
	n.Type, n.TypeLength = format.Type(w.upTo(7)), int32(1+w.upTo(20))
	if n.Type != format.FixedLenByteArray {
		n.TypeLength = 0
	}
	return n
}

// anyBatch draws levels and values of a leaf.
func (w *world) anyBatch(n *format.Node) *column.Batch {
	b := &column.Batch{}
	b.Values.Reset(n.Type, n.Width())
	for i := range w.upTo(6) {
		rep, def := w.upTo(n.MaxRep), w.upTo(n.MaxDef)
		if i == 0 {
			rep = 0
		}
		if rep == 0 {
			b.Rows++
		}
		b.Levels++
		if n.MaxRep > 0 {
			b.Rep = append(b.Rep, byte(rep))
		}
		if n.MaxDef > 0 {
			b.Def = append(b.Def, byte(def))
		}
		if def == n.MaxDef {
			length := n.Width()
			if length == 0 {
				length = w.upTo(20)
			}
			b.Values.Append(rapid.SliceOfN(rapid.Byte(), length, length).Draw(w.t, "value"))
		}
	}
	return b
}

// TestSchemasOfAnyShapeResolveOrAreRefused demands typed errors, and levels and
// values in range of whatever resolves.
func TestSchemasOfAnyShapeResolveOrAreRefused(t *testing.T) {
	refusals := []fault.Kind{fault.Unsupported, fault.Corrupt}
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt}
		cols := w.columns(0, 3)
		target, err := resolve.NewTarget(schemaOf(cols), resolve.Options{})
		require.NoError(rt, err)
		root := &format.Node{Group: true}
		for range 1 + w.upTo(3) {
			root.Children = append(root.Children, w.anyNode(0))
		}
		schema, err := format.NewSchema(root)
		require.NoError(rt, err)
		m, err := resolve.File(target, &format.Footer{Schema: schema}, resolve.Context{FormatVersion: 3, HasNames: w.chance(50), Names: names(cols)})
		if err != nil {
			require.Contains(rt, refusals, fault.Of(err))
			return
		}
		for i := range m.Leaves {
			s, n := &m.Leaves[i], target.Leaves[i].Node
			var got, out *column.Batch
			out = &column.Batch{}
			if s.Leaf < 0 {
				require.NoError(rt, s.Fill(out, 3))
				got = out
			} else if got, err = s.Apply(w.anyBatch(schema.Leaves[s.Leaf]), out); err != nil {
				require.Contains(rt, refusals, fault.Of(err))
				continue
			}
			full := got.Levels
			if n.MaxDef > 0 {
				require.Len(rt, got.Def, got.Levels)
				full = 0
				for _, d := range got.Def {
					require.LessOrEqual(rt, int(d), n.MaxDef)
					if int(d) == n.MaxDef {
						full++
					}
				}
			}
			require.Equal(rt, full, got.Values.Len())
			if n.MaxRep > 0 {
				require.Len(rt, got.Rep, got.Levels)
			}
		}
	})
}

func benchmarkApply(b *testing.B, node *format.Node, schema []*col, fill func(*format.Node) *column.Batch) {
	b.Helper()
	root := &format.Node{Group: true, Children: []*format.Node{node}}
	s, err := format.NewSchema(root)
	require.NoError(b, err)
	target, err := resolve.NewTarget(schemaOf(schema), resolve.Options{})
	require.NoError(b, err)
	m, err := resolve.File(target, &format.Footer{Schema: s}, resolve.Context{FormatVersion: 3})
	require.NoError(b, err)
	in, out := fill(s.Leaves[0]), &column.Batch{}
	b.SetBytes(int64(in.Bytes()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Leaves[0].Apply(in, out); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply promotes, and maps levels, of 20,000 values.
func BenchmarkApply(b *testing.B) {
	fill := func(n *format.Node) *column.Batch {
		out := &column.Batch{Levels: 20000, Rows: 20000}
		out.Values.Reset(n.Type, n.Width())
		out.Values.Data = make([]byte, 20000*n.Width())
		if n.MaxDef > 0 {
			out.Def = make([]byte, 20000)
			for i := range out.Def {
				out.Def[i] = byte(n.MaxDef)
			}
		}
		return out
	}
	long := &col{id: 1, name: "c", kind: "leaf", typ: icego.PrimitiveTypes.Int64}
	b.Run("promote", func(b *testing.B) {
		benchmarkApply(b, withID(1, leaf("c", format.Optional, format.Int32)), []*col{long}, fill)
	})
	b.Run("optional", func(b *testing.B) {
		benchmarkApply(b, withID(1, leaf("c", format.Required, format.Int64)), []*col{long}, fill)
	})
	b.Run("identity", func(b *testing.B) {
		benchmarkApply(b, withID(1, leaf("c", format.Optional, format.Int64)), []*col{long}, fill)
	})
	b.Run("int96", func(b *testing.B) {
		benchmarkApply(b, withID(1, leaf("c", format.Optional, format.Int96)), []*col{{id: 1, name: "c", kind: "leaf", typ: icego.PrimitiveTypes.Timestamp}}, fill)
	})
}
