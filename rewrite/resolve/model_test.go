package resolve_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// col is a column of a table at some time, as plain data.
type col struct {
	id       int
	name     string
	typ      icego.Type // of leaves
	kind     string     // leaf, struct, list, map
	required bool
	initial  any // as metadata has it
	value    any // what initial means
	kids     []*col
}

func (c *col) clone() *col {
	out := *c
	out.kids = make([]*col, len(c.kids))
	for i, k := range c.kids {
		out.kids[i] = k.clone()
	}
	return &out
}

func (c *col) field() icego.NestedField {
	f := icego.NestedField{ID: c.id, Name: c.name, Required: c.required, InitialDefault: c.initial, Type: c.typ}
	switch c.kind {
	case "struct":
		f.Type = &icego.StructType{FieldList: fieldsOf(c.kids)}
	case "list":
		e := c.kids[0].field()
		f.Type = &icego.ListType{ElementID: e.ID, Element: e.Type, ElementRequired: e.Required}
	case "map":
		k, v := c.kids[0].field(), c.kids[1].field()
		f.Type = &icego.MapType{KeyID: k.ID, KeyType: k.Type, ValueID: v.ID, ValueType: v.Type, ValueRequired: v.Required}
	}
	return f
}

func fieldsOf(cols []*col) []icego.NestedField {
	out := make([]icego.NestedField, len(cols))
	for i, c := range cols {
		out[i] = c.field()
	}
	return out
}

func schemaOf(cols []*col) *icego.Schema { return icego.NewSchema(1, fieldsOf(cols)...) }

func (c *col) kid(id int) *col {
	i := slices.IndexFunc(c.kids, func(k *col) bool { return k.id == id })
	if i < 0 {
		return nil
	}
	return c.kids[i]
}

// pair is an entry of a map value. A struct value is a map by field id, a list
// a slice, null is nil.
type pair struct{ k, v any }

// project is what a value of a column is once the column has become another
// one: what the specification says readers see.
func project(old, now *col, v any) any {
	if v == nil {
		return nil
	}
	switch now.kind {
	case "struct":
		in, out := v.(map[int]any), map[int]any{}
		for _, k := range now.kids {
			if was := old.kid(k.id); was != nil {
				out[k.id] = project(was, k, in[k.id])
			} else {
				out[k.id] = k.absent()
			}
		}
		return out
	case "list":
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, project(old.kids[0], now.kids[0], e))
		}
		return out
	case "map":
		out := []pair{}
		for _, p := range v.([]pair) {
			out = append(out, pair{project(old.kids[0], now.kids[0], p.k), project(old.kids[1], now.kids[1], p.v)})
		}
		return out
	}
	if _, days := old.typ.(icego.DateType); days {
		switch now.typ.(type) {
		case icego.TimestampType:
			return v.(int64) * 86400 * 1_000_000
		case icego.TimestampNsType:
			return v.(int64) * 86400 * 1_000_000_000
		}
	}
	return v
}

// absent is the value of a column in rows that were written before it.
func (c *col) absent() any {
	if c.kind == "struct" && c.initial != nil {
		out := map[int]any{}
		for _, k := range c.kids {
			out[k.id] = k.absent()
		}
		return out
	}
	return c.value
}

// place is a column in a tree of nodes.
type place struct {
	col      *col
	node     *format.Node
	repeated *format.Node // of lists and maps
	two      bool         // the element is the repeated node itself
	kids     []*place
}

// shredder makes the leaf columns of rows, by the rules of Dremel.
type shredder struct{ leaves []*leafData }

type leafData struct {
	rep, def []byte
	values   [][]byte
}

func shred(roots []*place, schema *format.Schema, rows []map[int]any) []*leafData {
	s := shredder{leaves: make([]*leafData, len(schema.Leaves))}
	for i := range s.leaves {
		s.leaves[i] = &leafData{}
	}
	for _, row := range rows {
		for _, p := range roots {
			s.write(p, row[p.col.id], 0, 0, false)
		}
	}
	return s.leaves
}

func (s *shredder) null(n *format.Node, r, d int) {
	if n.Group {
		for _, c := range n.Children {
			s.null(c, r, d)
		}
		return
	}
	l := s.leaves[n.Leaf]
	l.rep, l.def = append(l.rep, byte(r)), append(l.def, byte(d))
}

func (s *shredder) write(p *place, v any, r, d int, inRepeated bool) {
	if p.node.Repetition == format.Optional && !inRepeated {
		if v == nil {
			s.null(p.node, r, d)
			return
		}
		d++
	}
	if v == nil {
		panic("null in required column " + p.col.name)
	}
	switch p.col.kind {
	case "struct":
		for _, k := range p.kids {
			s.write(k, v.(map[int]any)[k.col.id], r, d, false)
		}
	case "list":
		s.each(p, len(v.([]any)), r, d, func(i, r, d int) { s.write(p.kids[0], v.([]any)[i], r, d, p.two) })
	case "map":
		s.each(p, len(v.([]pair)), r, d, func(i, r, d int) {
			s.write(p.kids[0], v.([]pair)[i].k, r, d, false)
			s.write(p.kids[1], v.([]pair)[i].v, r, d, false)
		})
	default:
		l := s.leaves[p.node.Leaf]
		l.rep, l.def = append(l.rep, byte(r)), append(l.def, byte(d))
		l.values = append(l.values, encode(p.node, p.col.typ, v))
	}
}

func (s *shredder) each(p *place, n, r, d int, do func(i, r, d int)) {
	if n == 0 {
		s.null(p.repeated, r, d)
		return
	}
	for i := range n {
		do(i, r, d+1)
		r = p.repeated.MaxRep
	}
}

// batch is a leaf as a reader yields it.
func (l *leafData) batch(n *format.Node, rows int) *column.Batch {
	b := &column.Batch{Levels: len(l.def), Rows: rows}
	if n.MaxRep > 0 {
		b.Rep = l.rep
	}
	if n.MaxDef > 0 {
		b.Def = l.def
	}
	b.Values.Reset(n.Type, n.Width())
	for _, v := range l.values {
		b.Values.Append(v)
	}
	return b
}

// encode is a value in the physical form of a node. Numbers of dates and times
// are in the unit of the Iceberg type; the node may have another.
func encode(n *format.Node, t icego.Type, v any) []byte {
	switch x := v.(type) {
	case bool:
		if x {
			return []byte{1}
		}
		return []byte{0}
	case string:
		return []byte(x)
	case []byte:
		return x
	case float64:
		if n.Type == format.Float {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	case *big.Int:
		return encodeDecimal(n, x)
	}
	x := v.(int64)
	if n.Type == format.Int96 {
		return encodeInt96(t, x)
	}
	if n.Logical != nil && n.Logical.Unit != 0 {
		x = rescale(t, n.Logical.Unit, x)
	}
	if n.Type == format.Int32 {
		return binary.LittleEndian.AppendUint32(nil, uint32(x))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(x))
}

func nanosOf(t icego.Type, x int64) int64 {
	switch t.(type) {
	case icego.TimestampNsType, icego.TimestampTzNsType:
		return x
	}
	return x * 1000
}

func rescale(t icego.Type, u format.TimeUnit, x int64) int64 {
	switch nanos := nanosOf(t, x); u {
	case format.Millis:
		return nanos / 1_000_000
	case format.Micros:
		return nanos / 1000
	default:
		return nanos
	}
}

func encodeInt96(t icego.Type, x int64) []byte {
	nanos := nanosOf(t, x)
	const day = 86400 * 1_000_000_000
	days := nanos / day
	if nanos%day < 0 {
		days--
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(nanos-days*day))
	return binary.LittleEndian.AppendUint32(out, uint32(days+2440588))
}

func encodeDecimal(n *format.Node, x *big.Int) []byte {
	switch n.Type {
	case format.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(x.Int64()))
	case format.Int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(x.Int64()))
	case format.ByteArray:
		return twos(x, x.BitLen()/8+1)
	}
	return twos(x, int(n.TypeLength))
}

// twos is a number in big-endian two's complement.
func twos(x *big.Int, n int) []byte {
	v := new(big.Int).Set(x)
	if v.Sign() < 0 {
		v.Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(make([]byte, n))
}

// show is a tree of nodes for messages.
func show(n *format.Node, indent int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d %s type=%d group=%v", strings.Repeat("  ", indent), n.Repetition, n.Name, n.Type, n.Group)
	if n.FieldID != nil {
		fmt.Fprintf(&b, " id=%d", *n.FieldID)
	}
	b.WriteString("\n")
	for _, c := range n.Children {
		b.WriteString(show(c, indent+1))
	}
	return b.String()
}
