package avro

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The builders below make schemas for writing. They panic on arguments no
// schema can hold, because only this program's own constants get there.

// Primitive is a type without parameters.
func Primitive(k Kind) *Node { return must(&Node{Kind: k}) }

// Logical is a primitive or fixed type with a logical type and further
// attributes, given as name and JSON value in turn.
func Logical(base *Node, logical string, props ...string) *Node {
	n := *base
	m := map[string]json.RawMessage{"logicalType": json.RawMessage(strconv.Quote(logical))}
	for i := 0; i+1 < len(props); i += 2 {
		m[props[i]] = json.RawMessage(props[i+1])
	}
	n.setProps(m)
	return must(&n)
}

// FixedOf is a fixed of size bytes.
func FixedOf(name string, size int) *Node { return must(&Node{Kind: Fixed, Name: name, Size: size}) }

// Nullable is the union of null and n, null first; a union that holds null is
// returned as it is.
func Nullable(n *Node) *Node {
	if n.Kind == Null || n.NullBranch() >= 0 {
		return n
	}
	if n.Kind == Union {
		return must(&Node{Kind: Union, Branches: append([]*Node{Primitive(Null)}, n.Branches...)})
	}
	return must(&Node{Kind: Union, Branches: []*Node{Primitive(Null), n}})
}

// ArrayOf is an array whose elements carry Iceberg's id; with NoID none.
func ArrayOf(items *Node, elementID int) *Node {
	n := &Node{Kind: Array, Items: items}
	if elementID != NoID {
		n.Props = map[string]json.RawMessage{"element-id": json.RawMessage(strconv.Itoa(elementID))}
	}
	return must(n)
}

// IDMap is Iceberg's form of a map with int keys: an array of records with
// the logical type map.
func IDMap(keyID, valueID int, value *Node) *Node {
	rec := RecordOf(fmt.Sprintf("k%d_v%d", keyID, valueID),
		Field{Name: "key", ID: keyID, Type: Primitive(Int)},
		Field{Name: "value", ID: valueID, Type: value})
	n := ArrayOf(rec, NoID)
	n.setProps(map[string]json.RawMessage{"logicalType": json.RawMessage(`"map"`)})
	return n
}

// RecordOf is a record.
func RecordOf(name string, fields ...Field) *Node {
	return must(&Node{Kind: Record, Name: name, Fields: fields})
}

// Optional is a field that may be null and is so by default.
func Optional(name string, id int, t *Node) Field {
	return Field{Name: name, ID: id, Type: Nullable(t), Default: json.RawMessage("null")}
}

// Required is a field without default.
func Required(name string, id int, t *Node) Field { return Field{Name: name, ID: id, Type: t} }

func must(n *Node) *Node {
	if err := n.finish(); err != nil {
		panic(err)
	}
	return n
}

// JSON is the schema as text. A named type is written in full at its first
// use and by name afterwards; a different type of the same name gets a name of
// its own, which changes no encoding.
func (n *Node) JSON() []byte {
	w := jsonWriter{defined: map[string]string{}}
	w.node(n)
	return w.out.Bytes()
}

type jsonWriter struct {
	out     bytes.Buffer
	defined map[string]string
	// space is the namespace in force.
	space string
}

func (w *jsonWriter) node(n *Node) {
	switch {
	case n.Kind == Union:
		w.out.WriteByte('[')
		for i, b := range n.Branches {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.node(b)
		}
		w.out.WriteByte(']')
	case n.Kind <= String && len(n.Props) == 0:
		w.str(n.Kind.String())
	default:
		w.object(n)
	}
}

func (w *jsonWriter) object(n *Node) {
	name := n.Name
	if name != "" {
		print := n.print()
		for i := 2; w.defined[name] != "" && w.defined[name] != print; i++ {
			name = n.Name + "_" + strconv.Itoa(i)
		}
		if w.defined[name] == print {
			w.str(name)
			return
		}
		w.defined[name] = print
	}
	w.out.WriteString(`{"type":`)
	w.str(n.Kind.String())
	if name != "" {
		w.out.WriteString(`,"name":`)
		w.str(name)
		outer := w.space
		defer func() { w.space = outer }()
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			w.space = name[:dot]
		} else if w.space != "" {
			// The namespace around must not reach in.
			w.out.WriteString(`,"namespace":""`)
			w.space = ""
		}
	}
	switch n.Kind {
	case Array:
		w.out.WriteString(`,"items":`)
		w.node(n.Items)
	case Map:
		w.out.WriteString(`,"values":`)
		w.node(n.Items)
	case Enum:
		b, _ := json.Marshal(n.Symbols)
		w.out.WriteString(`,"symbols":`)
		w.out.Write(b)
	case Fixed:
		w.out.WriteString(`,"size":` + strconv.Itoa(n.Size))
	case Record:
		w.out.WriteString(`,"fields":[`)
		for i, f := range n.Fields {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.field(f)
		}
		w.out.WriteByte(']')
	}
	w.props(n.Props)
	w.out.WriteByte('}')
}

func (w *jsonWriter) field(f Field) {
	w.out.WriteString(`{"name":`)
	w.str(f.Name)
	w.out.WriteString(`,"type":`)
	w.node(f.Type)
	if f.Default != nil {
		w.out.WriteString(`,"default":`)
		w.out.Write(f.Default)
	}
	if f.ID != NoID {
		w.out.WriteString(`,"field-id":` + strconv.Itoa(f.ID))
	}
	w.props(f.Props)
	w.out.WriteByte('}')
}

func (w *jsonWriter) props(props map[string]json.RawMessage) {
	for _, k := range slices.Sorted(maps.Keys(props)) {
		w.out.WriteByte(',')
		w.str(k)
		w.out.WriteByte(':')
		w.out.Write(props[k])
	}
}

func (w *jsonWriter) str(s string) {
	b, _ := json.Marshal(s)
	w.out.Write(b)
}

// print tells types of the same name apart.
func (n *Node) print() string {
	anonymous := *n
	anonymous.Name = ""
	w := jsonWriter{defined: map[string]string{}}
	w.object(&anonymous)
	return w.out.String()
}
