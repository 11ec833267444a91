package output_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
)

func p32(v int32) *int32 { return &v }

// leafOf makes a leaf without a parent; schemaOf completes it.
func leafOf(name string, t format.Type, r format.Repetition) *format.Node {
	return &format.Node{Name: name, Type: t, Repetition: r}
}

func group(name string, r format.Repetition, children ...*format.Node) *format.Node {
	return &format.Node{Name: name, Group: true, Repetition: r, Children: children}
}

func schemaOf(t require.TestingT, children ...*format.Node) *format.Schema {
	id := int32(0)
	var number func(n *format.Node)
	number = func(n *format.Node) {
		id++
		n.FieldID = p32(id)
		for _, c := range n.Children {
			number(c)
		}
	}
	for _, c := range children {
		number(c)
	}
	s, err := format.NewSchema(group("schema", format.Required, children...))
	require.NoError(t, err)
	return s
}

// logical annotations as writers pair them.
var (
	asString  = func(n *format.Node) { n.Logical, n.Converted = &format.Logical{Kind: format.LogicalString}, p32(0) }
	asUUID    = func(n *format.Node) { n.TypeLength, n.Logical = 16, &format.Logical{Kind: format.LogicalUUID} }
	asDecimal = func(precision, scale, length int32) func(*format.Node) {
		return func(n *format.Node) {
			n.TypeLength, n.Logical = length, &format.Logical{Kind: format.LogicalDecimal, Precision: precision, Scale: scale}
			n.Converted, n.Precision, n.Scale = p32(5), &precision, &scale
		}
	}
	asUnsigned = func(width int8) func(*format.Node) {
		return func(n *format.Node) {
			n.Logical = &format.Logical{Kind: format.LogicalInteger, BitWidth: width}
			n.Converted = p32(map[int8]int32{32: 13, 64: 14}[width])
		}
	}
)

func with(n *format.Node, f func(*format.Node)) *format.Node { f(n); return n }

// builder makes a batch, value by value.
type builder struct {
	leaf *format.Node
	b    column.Batch
}

func newBuilder(leaf *format.Node) *builder {
	b := &builder{leaf: leaf}
	b.b.Values.Reset(leaf.Type, leaf.Width())
	return b
}

func (b *builder) level(rep, def int) {
	if b.leaf.MaxRep > 0 {
		b.b.Rep = append(b.b.Rep, byte(rep))
	}
	if b.leaf.MaxDef > 0 {
		b.b.Def = append(b.b.Def, byte(def))
	}
	b.b.Levels++
	if rep == 0 {
		b.b.Rows++
	}
}

func (b *builder) value(v []byte) *builder {
	b.level(0, b.leaf.MaxDef)
	b.b.Values.Append(v)
	return b
}

func (b *builder) null() *builder { b.level(0, b.leaf.MaxDef-1); return b }

// rows are the batches of one leaf put one after another.
type rows struct {
	rep, def []byte
	values   [][]byte
}

func (r *rows) add(b *column.Batch) {
	r.rep, r.def = append(r.rep, b.Rep...), append(r.def, b.Def...)
	for i := range b.Values.Len() {
		r.values = append(r.values, bytes.Clone(b.Values.At(i)))
	}
}

// le encodes a number as PLAIN.
func le(x any) []byte {
	switch v := x.(type) {
	case int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v))
	case uint32:
		return binary.LittleEndian.AppendUint32(nil, v)
	case int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(v))
	case uint64:
		return binary.LittleEndian.AppendUint64(nil, v)
	case float32:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	case float64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case string:
		return []byte(v)
	}
	panic(fmt.Sprintf("%T", x))
}

// written is a file with what went into it: by group and leaf.
type written struct {
	schema *format.Schema
	data   []byte
	result output.Result
	groups [][]rows
}

const createdBy = "seaice version 1.2.3 (build abc)"

// write makes a file of groups of batches, [group][leaf][batch].
func write(t require.TestingT, s *format.Schema, o encode.Options, groups [][][]column.Batch) *written {
	w := &written{schema: s}
	var buf bytes.Buffer
	f, err := output.NewFile(&buf, s, output.Options{CreatedBy: createdBy})
	require.NoError(t, err)
	for _, leaves := range groups {
		g, err := f.BeginGroup()
		require.NoError(t, err)
		count, all := int64(0), make([]rows, len(leaves))
		for i, batches := range leaves {
			c, err := g.Column(i, o.Codec)
			require.NoError(t, err)
			options := o
			if o.Encoding == format.DeltaBinaryPacked && s.Leaves[i].Type != format.Int32 && s.Leaves[i].Type != format.Int64 {
				options.Encoding = format.Plain
			}
			e, err := encode.NewEncoder(s.Leaves[i], options, c)
			require.NoError(t, err)
			count = 0
			for j := range batches {
				all[i].add(&batches[j])
				require.NoError(t, e.Write(&batches[j]))
				count += int64(batches[j].Rows)
			}
			require.NoError(t, e.Close())
			require.NoError(t, c.Close())
		}
		require.NoError(t, g.Close(count))
		w.groups = append(w.groups, all)
	}
	w.result, err = f.Close()
	require.NoError(t, err)
	w.data = buf.Bytes()
	require.EqualValues(t, len(w.data), w.result.Bytes)
	return w
}

// one writes a file of one column in one row group.
func one(t testing.TB, leaf *format.Node, o encode.Options, fill func(*builder)) *written {
	t.Helper()
	s := schemaOf(t, leaf)
	b := newBuilder(s.Leaves[0])
	fill(b)
	return write(t, s, o, [][][]column.Batch{{{b.b}}})
}

// anyNode draws a schema node; depth bounds groups.
func anyNode(t *rapid.T, name string, depth int) *format.Node {
	r := format.Repetition(rapid.IntRange(0, 2).Draw(t, "repetition"))
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "group") == 0 {
		n := group(name, r)
		for i := range rapid.IntRange(1, 2).Draw(t, "children") {
			n.Children = append(n.Children, anyNode(t, fmt.Sprintf("%s%d", name, i), depth-1))
		}
		return n
	}
	n := leafOf(name, format.Type(rapid.IntRange(0, 7).Draw(t, "type")), r)
	switch n.Type {
	case format.FixedLenByteArray:
		switch rapid.IntRange(0, 2).Draw(t, "fixed") {
		case 0:
			asUUID(n)
		case 1:
			asDecimal(20, 4, 9)(n)
		default:
			n.TypeLength = int32(rapid.IntRange(1, 20).Draw(t, "length"))
		}
	case format.ByteArray:
		switch rapid.IntRange(0, 2).Draw(t, "bytes") {
		case 0:
			asString(n)
		case 1:
			asDecimal(20, 4, 0)(n)
		}
	case format.Int32:
		if rapid.Bool().Draw(t, "unsigned") {
			asUnsigned(32)(n)
		}
	case format.Int64:
		if rapid.Bool().Draw(t, "unsigned") {
			asUnsigned(64)(n)
		}
	}
	return n
}

// anyValue draws a value of a leaf out of about kinds different ones.
func anyValue(r *random, leaf *format.Node, kinds int) []byte {
	x := r.n(kinds)
	switch leaf.Type {
	case format.Boolean:
		return []byte{byte(x & 1)}
	case format.Int32:
		return le(int32(x*0x9e3779b9 - 5))
	case format.Int64:
		return le(int64(x*0x9e3779b97f4a7c1 - 5))
	case format.Float:
		return le([]float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(x), -float32(x), float32(math.Inf(1))}[r.n(6)])
	case format.Double:
		return le([]float64{0, math.Copysign(0, -1), math.NaN(), float64(x), -float64(x), math.Inf(-1)}[r.n(6)])
	case format.ByteArray:
		if encode.OrderingOf(leaf) == encode.SignedBytes {
			return binary.BigEndian.AppendUint64(nil, uint64(x)*0x9e3779b97f4a7c1)[r.n(8):]
		}
		return []byte([]string{"", "a", "\xff\xff", fmt.Sprint("value ", x), string(bytes.Repeat([]byte{byte(x)}, x%90))}[r.n(5)])
	}
	b := bytes.Repeat([]byte{byte(x)}, leaf.Width())
	b[len(b)-1] = byte(x >> 8)
	return b
}

// random is a small generator with a drawn seed: one draw for each level would
// take rapid too long.
type random struct{ state uint64 }

func (r *random) n(n int) int {
	r.state += 0x9e3779b97f4a7c15
	x := r.state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) >> 1 % uint64(n))
}

// anyRows makes so many rows of a leaf: repetition levels as a shape gives them,
// definition levels at random below.
func anyRows(r *random, leaf *format.Node, rows, kinds, nulls int) column.Batch {
	b := newBuilder(leaf)
	// repeatedDef is the definition level that a repetition level needs.
	var repeatedDef []int
	def := 0
	var path []*format.Node
	for n := leaf; n.Parent != nil; n = n.Parent {
		path = append(path, n)
	}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Repetition != format.Required {
			def++
		}
		if path[i].Repetition == format.Repeated {
			repeatedDef = append(repeatedDef, def)
		}
	}
	for range rows {
		last := r.level(leaf, nulls)
		b.put(r, 0, last, kinds)
		for leaf.MaxRep > 0 && r.n(3) > 0 {
			rep := 1 + r.n(leaf.MaxRep)
			if last < repeatedDef[rep-1] {
				break
			}
			last = max(r.level(leaf, nulls), repeatedDef[rep-1])
			b.put(r, rep, last, kinds)
		}
	}
	return b.b
}

func (r *random) level(leaf *format.Node, nulls int) int {
	if leaf.MaxDef > 0 && r.n(100) < nulls {
		return r.n(leaf.MaxDef)
	}
	return leaf.MaxDef
}

func (b *builder) put(r *random, rep, def, kinds int) {
	b.level(rep, def)
	if def == b.leaf.MaxDef {
		b.b.Values.Append(anyValue(r, b.leaf, kinds))
	}
}
