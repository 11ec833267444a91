// Package avro is the part of Apache Avro that Iceberg's manifests need:
// object container files, read block by block under stated limits, schemas as
// trees that keep Iceberg's field ids, and the binary encoding.
//
// Input is hostile. Every size and count is checked against what is really
// there before anything is allocated for it, and schemas that could make a
// reader loop without consuming bytes are refused. Errors are fault.Corrupt
// with the file named, or fault.Unsupported for a codec this package lacks.
package avro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Kind is an Avro type.
type Kind uint8

// The Avro types.
const (
	Null Kind = iota
	Boolean
	Int
	Long
	Float
	Double
	Bytes
	String
	Fixed
	Enum
	Array
	Map
	Record
	Union
)

var kindNames = [...]string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "array", "map", "record", "union"}

// String is the type's name in a schema.
func (k Kind) String() string { return kindNames[k] }

// NoID is the id of a field, element, key or value that carries none.
const NoID = -1

// Node is one type of a schema. Nodes are immutable once parsed or built and
// may be shared; a schema is never recursive.
type Node struct {
	Kind Kind
	// Name is the full name of a record, enum or fixed.
	Name string
	// Fields are those of a record.
	Fields []Field
	// Items is the type of an array's elements or a map's values.
	Items *Node
	// Branches are those of a union.
	Branches []*Node
	// Symbols are those of an enum.
	Symbols []string
	// Size is the width in bytes of a fixed.
	Size int
	// Logical is the logicalType attribute.
	Logical string
	// Precision and Scale are those of a decimal.
	Precision, Scale int
	// Props are all attributes that are not part of the structure, the logical
	// type among them, as JSON.
	Props map[string]json.RawMessage

	minSize int
	weight  int
	depth   int
	shape   shape
}

// Field is one field of a record.
type Field struct {
	Name string
	// ID is Iceberg's field-id, or NoID.
	ID   int
	Type *Node
	// Default is the default as JSON, nil when there is none.
	Default json.RawMessage
	// Props are all other attributes.
	Props map[string]json.RawMessage
}

// shape marks arrays that are skipped by a loop of their own.
type shape uint8

const (
	shapeOther shape = iota
	shapeVarints
	shapeVarintPairs
	shapeVarintBytes
)

// Limits of a schema: nesting, types counted with every use of a named type,
// and the width of a fixed.
const (
	maxDepth  = 48
	maxWeight = 1 << 16
	maxFixed  = 1 << 20
)

// Prop is an integer attribute of the type, such as element-id, or NoID.
func (n *Node) Prop(name string) int { return intProp(n.Props, name) }

func intProp(props map[string]json.RawMessage, name string) int {
	var v int
	raw, ok := props[name]
	if !ok || json.Unmarshal(raw, &v) != nil || v < 0 {
		return NoID
	}
	return v
}

// Optional returns the branch beside null and the positions of null and of
// that branch when the type is a union of null and one other type, in either
// order.
func (n *Node) Optional() (value *Node, null, branch int, ok bool) {
	if n.Kind != Union || len(n.Branches) != 2 {
		return nil, 0, 0, false
	}
	switch {
	case n.Branches[0].Kind == Null && n.Branches[1].Kind != Null:
		return n.Branches[1], 0, 1, true
	case n.Branches[1].Kind == Null && n.Branches[0].Kind != Null:
		return n.Branches[0], 1, 0, true
	}
	return nil, 0, 0, false
}

// NullBranch is the position of null in a union, or -1.
func (n *Node) NullBranch() int {
	if n.Kind == Union {
		for i, b := range n.Branches {
			if b.Kind == Null {
				return i
			}
		}
	}
	return -1
}

// Field returns the field with the id.
func (n *Node) Field(id int) (Field, bool) {
	for _, f := range n.Fields {
		if f.ID == id {
			return f, true
		}
	}
	return Field{}, false
}

// ParseSchema reads a schema from JSON. Named types are resolved; recursive
// ones are refused.
func ParseSchema(text []byte) (*Node, error) {
	p := parser{named: map[string]*Node{}, open: map[string]bool{}}
	n, err := p.node(text, "", 0)
	if err != nil {
		return nil, fmt.Errorf("avro schema: %w", err)
	}
	return n, nil
}

type parser struct {
	named map[string]*Node
	open  map[string]bool
	nodes int
}

func (p *parser) node(text json.RawMessage, space string, depth int) (*Node, error) {
	if p.nodes++; p.nodes > maxWeight || depth > maxDepth {
		return nil, errors.New("too large or too deep")
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, errors.New("a type is missing")
	}
	switch text[0] {
	case '"':
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return nil, err
		}
		return p.reference(name, space)
	case '[':
		var branches []json.RawMessage
		if err := json.Unmarshal(text, &branches); err != nil {
			return nil, err
		}
		n := &Node{Kind: Union}
		for _, b := range branches {
			c, err := p.node(b, space, depth+1)
			if err != nil {
				return nil, err
			}
			if c.Kind == Union {
				return nil, errors.New("a union directly in a union")
			}
			n.Branches = append(n.Branches, c)
		}
		return n, n.finish()
	case '{':
		return p.object(text, space, depth)
	}
	return nil, fmt.Errorf("%.20q is no type", text)
}

func (p *parser) reference(name, space string) (*Node, error) {
	for k, s := range kindNames[:String+1] {
		if s == name {
			n := &Node{Kind: Kind(k)}
			return n, n.finish()
		}
	}
	full := fullName(name, space)
	if p.open[full] || (space != "" && p.open[name]) {
		return nil, fmt.Errorf("type %q contains itself", name)
	}
	if n, ok := p.named[full]; ok {
		return n, nil
	}
	if n, ok := p.named[name]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("type %q is not defined", name)
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func (p *parser) object(text json.RawMessage, space string, depth int) (*Node, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	var typ string
	if raw := bytes.TrimSpace(o["type"]); len(raw) == 0 {
		return nil, errors.New("an object without type")
	} else if raw[0] != '"' {
		return p.node(raw, space, depth+1) // {"type": {...}} nests without meaning
	} else if err := json.Unmarshal(raw, &typ); err != nil {
		return nil, err
	}
	n := &Node{}
	take := func(key string) json.RawMessage { raw := o[key]; delete(o, key); return raw }
	take("type")
	var err error
	switch typ {
	case "record", "error":
		n.Kind = Record
		err = p.record(n, take, space, depth)
	case "enum":
		n.Kind = Enum
		if _, err = p.name(n, take, space); err == nil {
			err = json.Unmarshal(take("symbols"), &n.Symbols)
		}
		take("default")
	case "fixed":
		n.Kind = Fixed
		if _, err = p.name(n, take, space); err == nil {
			err = json.Unmarshal(take("size"), &n.Size)
		}
		if n.Size < 0 || n.Size > maxFixed {
			return nil, fmt.Errorf("fixed of %d bytes", n.Size)
		}
	case "array":
		n.Kind = Array
		n.Items, err = p.node(take("items"), space, depth+1)
	case "map":
		n.Kind = Map
		n.Items, err = p.node(take("values"), space, depth+1)
	default:
		ref, rerr := p.reference(typ, space)
		if rerr != nil || ref.Name != "" {
			return ref, rerr
		}
		n.Kind = ref.Kind
	}
	if err != nil {
		return nil, err
	}
	n.setProps(o)
	if err := n.finish(); err != nil {
		return nil, err
	}
	if n.Name != "" {
		delete(p.open, n.Name)
		p.named[n.Name] = n
	}
	return n, nil
}

// name reads the name of a named type and returns the namespace for what it
// contains.
func (p *parser) name(n *Node, take func(string) json.RawMessage, space string) (string, error) {
	var name string
	if err := json.Unmarshal(take("name"), &name); err != nil || name == "" {
		return "", errors.New("a named type without name")
	}
	if raw := take("namespace"); raw != nil {
		if err := json.Unmarshal(raw, &space); err != nil {
			return "", err
		}
	}
	take("aliases")
	take("doc")
	n.Name = fullName(name, space)
	if p.named[n.Name] != nil || p.open[n.Name] {
		return "", fmt.Errorf("type %q is defined twice", n.Name)
	}
	if i := strings.LastIndexByte(n.Name, '.'); i >= 0 {
		space = n.Name[:i]
	}
	p.open[n.Name] = true
	return space, nil
}

func (p *parser) record(n *Node, take func(string) json.RawMessage, space string, depth int) error {
	space, err := p.name(n, take, space)
	if err != nil {
		return err
	}
	var fields []map[string]json.RawMessage
	if err := json.Unmarshal(take("fields"), &fields); err != nil {
		return err
	}
	for _, o := range fields {
		f := Field{Default: o["default"]}
		if err := json.Unmarshal(o["name"], &f.Name); err != nil || f.Name == "" {
			return fmt.Errorf("record %q has a field without name", n.Name)
		}
		if f.Type, err = p.node(o["type"], space, depth+1); err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
		f.ID = intProp(o, "field-id")
		for _, k := range []string{"name", "type", "default", "doc", "field-id", "order", "aliases"} {
			delete(o, k)
		}
		if len(o) > 0 {
			f.Props = o
		}
		n.Fields = append(n.Fields, f)
	}
	return nil
}

func (n *Node) setProps(props map[string]json.RawMessage) {
	if len(props) == 0 {
		return
	}
	n.Props = props
	_ = json.Unmarshal(props["logicalType"], &n.Logical)
	if n.Logical == "decimal" {
		n.Precision, n.Scale = intProp(props, "precision"), max(intProp(props, "scale"), 0)
	}
}

// finish computes what the limits and the fast paths need of a node whose
// children are finished.
func (n *Node) finish() error {
	n.weight, n.minSize = 1, 1
	add := func(c *Node) {
		n.weight += c.weight
		n.depth = max(n.depth, c.depth+1)
	}
	switch n.Kind {
	case Null:
		n.minSize = 0
	case Float:
		n.minSize = 4
	case Double:
		n.minSize = 8
	case Fixed:
		n.minSize = n.Size
	case Enum:
		if len(n.Symbols) == 0 {
			return fmt.Errorf("enum %q has no symbols", n.Name)
		}
	case Array, Map:
		add(n.Items)
		if n.Kind == Array && n.Items.minSize == 0 {
			return errors.New("an array of elements without bytes")
		}
		n.shape = shapeOf(n)
	case Union:
		if len(n.Branches) == 0 {
			return errors.New("an empty union")
		}
		for _, b := range n.Branches {
			add(b)
		}
	case Record:
		n.minSize = 0
		for i := range n.Fields {
			add(n.Fields[i].Type)
			n.minSize += n.Fields[i].Type.minSize
		}
	}
	if n.weight > maxWeight || n.depth > maxDepth || n.minSize > 1<<30 {
		return errors.New("too large or too deep")
	}
	return nil
}

func shapeOf(n *Node) shape {
	if n.Kind != Array {
		return shapeOther
	}
	if isVarint(n.Items.Kind) {
		return shapeVarints
	}
	if n.Items.Kind == Record && len(n.Items.Fields) == 2 && isVarint(n.Items.Fields[0].Type.Kind) {
		switch k := n.Items.Fields[1].Type.Kind; {
		case isVarint(k):
			return shapeVarintPairs
		case k == Bytes, k == String:
			return shapeVarintBytes
		}
	}
	return shapeOther
}

func isVarint(k Kind) bool { return k == Int || k == Long }

// MinSize is the least number of bytes a value of the type takes.
func (n *Node) MinSize() int { return n.minSize }
