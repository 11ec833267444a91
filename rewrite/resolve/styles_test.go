package resolve_test

import (
	"strings"

	icego "github.com/apache/iceberg-go"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/format"
)

// style lays out files as various writers do.
type style struct {
	w   *world
	ids bool
}

func pointer[T any](v T) *T { return &v }

func (s *style) file(cols []*col) ([]*place, *format.Schema) {
	root := &format.Node{Name: "root", Group: true}
	places := s.group(root, cols)
	schema, err := format.NewSchema(root)
	if err != nil {
		panic(err)
	}
	return places, schema
}

func (s *style) group(n *format.Node, cols []*col) []*place {
	var out []*place
	for _, c := range cols {
		p := s.place(c)
		out = append(out, p)
		n.Children = append(n.Children, p.node)
	}
	return out
}

func (s *style) id(n *format.Node, id int) {
	if s.ids {
		n.FieldID = pointer(int32(id))
	}
}

func (s *style) place(c *col) *place {
	p := &place{col: c, node: &format.Node{Name: c.name, Repetition: format.Optional}}
	if c.required && !s.w.chance(30) {
		p.node.Repetition = format.Required
	}
	s.id(p.node, c.id)
	switch c.kind {
	case "struct":
		p.node.Group = true
		p.kids = s.group(p.node, c.kids)
	case "list":
		s.list(p)
	case "map":
		s.mapping(p)
	default:
		s.leaf(p.node, c.typ)
	}
	return p
}

func (s *style) list(p *place) {
	p.node.Group = true
	p.node.Converted = pointer(int32(3))
	if s.w.chance(50) {
		p.node.Logical = &format.Logical{Kind: format.LogicalList}
	}
	element := s.place(p.col.kids[0])
	p.kids = []*place{element}
	many := element.node.Group && len(element.node.Children) > 1 && element.col.kind == "struct"
	switch {
	case p.col.kids[0].required && !element.node.Group && s.w.chance(50):
		// The repeated node is a primitive element.
		element.node.Name, element.node.Repetition, p.two = "array", format.Repeated, true
		p.repeated = element.node
	case p.col.kids[0].required && element.col.kind == "struct" && (many || s.w.chance(50)) && s.w.chance(50):
		element.node.Name, element.node.Repetition, p.two = "array", format.Repeated, true
		if strings.HasPrefix(p.col.name, "c") && s.w.chance(50) {
			element.node.Name = p.col.name + "_tuple" // elements and values are named otherwise
		}
		p.repeated = element.node
	default:
		element.node.Name = rapid.SampledFrom([]string{"element", "array_element", "item"}).Draw(s.w.t, "element")
		p.repeated = &format.Node{Name: rapid.SampledFrom([]string{"list", "bag"}).Draw(s.w.t, "list"), Repetition: format.Repeated, Group: true, Children: []*format.Node{element.node}}
	}
	p.node.Children = []*format.Node{p.repeated}
}

func (s *style) mapping(p *place) {
	p.node.Group = true
	if s.w.chance(50) {
		p.node.Logical = &format.Logical{Kind: format.LogicalMap}
	} else {
		p.node.Converted = pointer(int32(1 + s.w.upTo(1)))
	}
	key, value := s.place(p.col.kids[0]), s.place(p.col.kids[1])
	names := rapid.SampledFrom([][3]string{{"key_value", "key", "value"}, {"map", "key", "value"}, {"entries", "keys", "values"}}).Draw(s.w.t, "names")
	key.node.Name, value.node.Name = names[1], names[2]
	p.kids = []*place{key, value}
	p.repeated = &format.Node{Name: names[0], Repetition: format.Repeated, Group: true, Children: []*format.Node{key.node, value.node}}
	p.node.Children = []*format.Node{p.repeated}
}

// leaf draws one of the physical forms that files have for a type.
func (s *style) leaf(n *format.Node, t icego.Type) {
	n.Type = map[string]format.Type{
		"boolean": format.Boolean, "int": format.Int32, "long": format.Int64, "float": format.Float, "double": format.Double,
		"date": format.Int32, "time": format.Int64, "timestamp": format.Int64, "timestamptz": format.Int64, "timestamp_ns": format.Int64,
		"timestamptz_ns": format.Int64, "string": format.ByteArray, "binary": format.ByteArray,
	}[t.Type()]
	switch x := t.(type) {
	case icego.Int32Type:
		if s.w.chance(30) {
			n.Logical = &format.Logical{Kind: format.LogicalInteger, BitWidth: int8(16 << s.w.upTo(1)), Signed: true}
		}
	case icego.DecimalType:
		s.decimal(n, x)
	case icego.DateType:
		n.Converted = pointer(int32(6))
	case icego.TimeType:
		s.time(n, format.LogicalTime)
	case icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		if s.w.chance(20) {
			n.Type = format.Int96
			return
		}
		s.time(n, format.LogicalTimestamp)
	case icego.StringType:
		switch s.w.upTo(3) {
		case 0:
			n.Converted = pointer(int32(0))
		case 1:
			n.Logical = &format.Logical{Kind: format.LogicalString}
		case 2:
			n.Logical = &format.Logical{Kind: format.LogicalJSON}
		}
	case icego.FixedType:
		n.Type, n.TypeLength = format.FixedLenByteArray, int32(x.Len())
	case icego.UUIDType:
		n.Type, n.TypeLength = format.FixedLenByteArray, 16
		if s.w.chance(50) {
			n.Logical = &format.Logical{Kind: format.LogicalUUID}
		}
	}
}

func (s *style) time(n *format.Node, k format.LogicalKind) {
	u := format.TimeUnit(1 + s.w.upTo(2))
	n.Logical = &format.Logical{Kind: k, Unit: u, UTC: s.w.chance(50)}
	if k == format.LogicalTime && u == format.Millis {
		n.Type = format.Int32
	}
}

func (s *style) decimal(n *format.Node, t icego.DecimalType) {
	p, scale := int32(t.Precision()), int32(t.Scale())
	forms := []format.Type{format.ByteArray, format.FixedLenByteArray}
	if p <= 9 {
		forms = append(forms, format.Int32)
	}
	if p <= 18 {
		forms = append(forms, format.Int64)
	}
	n.Type = rapid.SampledFrom(forms).Draw(s.w.t, "form")
	if n.Type == format.FixedLenByteArray {
		n.TypeLength = 16 + int32(s.w.upTo(2))
	}
	if s.w.chance(50) {
		n.Logical = &format.Logical{Kind: format.LogicalDecimal, Precision: p, Scale: scale}
	} else {
		n.Converted, n.Precision, n.Scale = pointer(int32(5)), &p, &scale
	}
}

// names is the mapping that a table has for files without ids.
func names(cols []*col) icego.NameMapping {
	var out icego.NameMapping
	for _, c := range cols {
		out = append(out, icego.MappedField{Names: []string{c.name}, FieldID: pointer(c.id), Fields: names(c.kids)})
	}
	return out
}

// targetPlaces finds columns in a target, whose layout is fixed.
func targetPlaces(cols []*col, nodes []*format.Node) []*place {
	var out []*place
	for i, c := range cols {
		p := &place{col: c, node: nodes[i]}
		switch c.kind {
		case "struct":
			p.kids = targetPlaces(c.kids, p.node.Children)
		case "list", "map":
			p.repeated = p.node.Children[0]
			p.kids = targetPlaces(c.kids, p.repeated.Children)
		}
		out = append(out, p)
	}
	return out
}
