package resolve

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
)

// builder makes fields with their nodes.
type builder struct {
	// forms are those of decimals.
	forms map[iceberg.FieldID]form
	like  *format.Footer
	// keys makes every node optional: a key that is null is a key.
	keys bool
}

// fields are those of a struct, or the columns of a table. Names that become
// the same are told apart by their ids.
func (b *builder) fields(in []icego.NestedField, parent *field, depth int) ([]*field, error) {
	var out []*field
	taken := map[string]bool{}
	for _, nf := range in {
		f, err := b.field(nf, parent, depth)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if taken[f.node.Name] {
			f.node.Name = fmt.Sprintf("%s_%d", f.node.Name, f.id)
		}
		if taken[f.node.Name] {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("two columns would be stored with the name %s", f.node.Name))
		}
		taken[f.node.Name] = true
		out = append(out, f)
	}
	return out, nil
}

// field is nil for a column that is not stored.
func (b *builder) field(nf icego.NestedField, parent *field, depth int) (*field, error) {
	f := &field{id: iceberg.FieldID(nf.ID), name: nf.Name, typ: nf.Type, must: nf.Required, initial: nf.InitialDefault}
	if parent != nil {
		f.name = parent.name + "." + nf.Name
		f.path = slices.Clone(parent.path)
	}
	f.path = append(f.path, f.id)
	id := int32(f.id)
	f.node = &format.Node{Name: compatibleName(nf.Name), Repetition: format.Optional, FieldID: &id}
	if nf.Required && !b.keys {
		f.node.Repetition = format.Required
	}
	if depth > maxDepth {
		return nil, f.unsupported(fmt.Sprintf("is nested more than %d deep", maxDepth))
	}
	switch t := nf.Type.(type) {
	case *icego.StructType:
		return f, b.structOf(f, t, depth)
	case *icego.ListType:
		return f, b.listOf(f, t, depth)
	case *icego.MapType:
		return f, b.mapOf(f, t, depth)
	case icego.VariantType:
		f.kind = variantKind
		return f, b.variantOf(f)
	case icego.UnknownType:
		return nil, nil
	}
	if err := leafOf(f); err != nil {
		return f, err
	}
	if t, ok := f.typ.(icego.DecimalType); ok {
		b.forms[f.id].take(f.node, t)
	}
	return f, nil
}

func (f *field) unsupported(why string) error {
	return fault.New(fault.Unsupported, fmt.Sprintf("column %s (id %d) %s", f.name, f.id, why))
}

func (b *builder) structOf(f *field, t *icego.StructType, depth int) error {
	f.kind, f.node.Group = structKind, true
	var err error
	if f.children, err = b.fields(t.FieldList, f, depth+1); err != nil {
		return err
	}
	if len(f.children) == 0 {
		return f.unsupported("is a struct without a field that is stored")
	}
	for _, c := range f.children {
		f.node.Children = append(f.node.Children, c.node)
	}
	return nil
}

func (b *builder) listOf(f *field, t *icego.ListType, depth int) error {
	f.kind = listKind
	annotate(f.node, convertedList, format.Logical{Kind: format.LogicalList})
	return b.repeat(f, "list", depth, t.ElementField())
}

func (b *builder) mapOf(f *field, t *icego.MapType, depth int) error {
	f.kind = mapKind
	annotate(f.node, convertedMap, format.Logical{Kind: format.LogicalMap})
	return b.repeat(f, "key_value", depth, t.KeyField(), t.ValueField())
}

// repeat puts the repeated group below a list or map.
func (b *builder) repeat(f *field, name string, depth int, inner ...icego.NestedField) error {
	if b.keys {
		return f.unsupported("is a list or map, which cannot be a key")
	}
	group := &format.Node{Name: name, Repetition: format.Repeated, Group: true}
	f.node.Group, f.node.Children = true, []*format.Node{group}
	for _, nf := range inner {
		c, err := b.field(nf, f, depth+1)
		if err != nil {
			return err
		}
		if c == nil {
			return f.unsupported("holds values of type unknown, which cannot be stored")
		}
		f.children = append(f.children, c)
		group.Children = append(group.Children, c.node)
	}
	return nil
}

// The converted types that are used, by their number.
const (
	convertedUTF8            int32 = 0
	convertedMap             int32 = 1
	convertedList            int32 = 3
	convertedEnum            int32 = 4
	convertedDecimal         int32 = 5
	convertedDate            int32 = 6
	convertedTimeMillis      int32 = 7
	convertedTimeMicros      int32 = 8
	convertedTimestampMillis int32 = 9
	convertedTimestampMicros int32 = 10
	convertedUint8           int32 = 11
	convertedInt64           int32 = 18
	convertedJSON            int32 = 19
	convertedBSON            int32 = 20
	noConverted              int32 = -1
)

func annotate(n *format.Node, converted int32, l format.Logical) {
	if converted != noConverted {
		n.Converted = &converted
	}
	n.Logical = &l
}

// leafOf sets the physical type and the annotations of a primitive column.
// Timestamps without zone carry the converted type as well, as parquet-format
// demands for old readers.
func leafOf(f *field) error {
	n := f.node
	switch t := f.typ.(type) {
	case icego.BooleanType:
		n.Type = format.Boolean
	case icego.Int32Type:
		n.Type = format.Int32
	case icego.Int64Type:
		n.Type = format.Int64
	case icego.Float32Type:
		n.Type = format.Float
	case icego.Float64Type:
		n.Type = format.Double
	case icego.DateType:
		n.Type = format.Int32
		annotate(n, convertedDate, format.Logical{Kind: format.LogicalDate})
	case icego.TimeType:
		n.Type = format.Int64
		annotate(n, convertedTimeMicros, format.Logical{Kind: format.LogicalTime, Unit: format.Micros})
	case icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		timestampLeaf(n, t)
	case icego.StringType:
		n.Type = format.ByteArray
		annotate(n, convertedUTF8, format.Logical{Kind: format.LogicalString})
	case icego.BinaryType:
		n.Type = format.ByteArray
	case icego.FixedType:
		n.Type, n.TypeLength = format.FixedLenByteArray, int32(t.Len())
		if t.Len() <= 0 {
			return f.unsupported("has fixed values of no length")
		}
	case icego.UUIDType:
		n.Type, n.TypeLength = format.FixedLenByteArray, 16
		annotate(n, noConverted, format.Logical{Kind: format.LogicalUUID})
	case icego.DecimalType:
		return decimalLeaf(f, t)
	case icego.GeometryType:
		n.Type = format.ByteArray
		annotate(n, noConverted, format.Logical{Kind: format.LogicalGeometry, CRS: storedCRS(t.CRS())})
	case icego.GeographyType:
		n.Type = format.ByteArray
		algorithm := int32(slices.Index(edgeAlgorithms, strings.ToLower(t.Algorithm())))
		if algorithm < 0 {
			return f.unsupported("has the edge algorithm " + t.Algorithm() + ", which is not known")
		}
		annotate(n, noConverted, format.Logical{Kind: format.LogicalGeography, CRS: storedCRS(t.CRS()), Algorithm: &algorithm})
	default:
		return f.unsupported(fmt.Sprintf("has the type %s, which cannot be stored", f.typ))
	}
	return nil
}

// edgeAlgorithms are in the order of EdgeInterpolationAlgorithm.
var edgeAlgorithms = []string{"spherical", "vincenty", "thomas", "andoyer", "karney"}

// storedCRS leaves out what is the default in both formats.
func storedCRS(crs string) string {
	if strings.EqualFold(crs, icego.DefaultGeoCRS) {
		return ""
	}
	return crs
}

func timestampLeaf(n *format.Node, t icego.Type) {
	l := format.Logical{Kind: format.LogicalTimestamp, Unit: format.Micros}
	converted := convertedTimestampMicros
	switch t.(type) {
	case icego.TimestampTzType:
		l.UTC = true
	case icego.TimestampNsType:
		l.Unit, converted = format.Nanos, noConverted
	case icego.TimestampTzNsType:
		l.UTC, l.Unit, converted = true, format.Nanos, noConverted
	}
	n.Type = format.Int64
	annotate(n, converted, l)
}

func decimalLeaf(f *field, t icego.DecimalType) error {
	p, s := int32(t.Precision()), int32(t.Scale())
	if p < 1 || p > 38 || s < 0 || s > p {
		return f.unsupported(fmt.Sprintf("has the type %s, which is out of range", t))
	}
	n := f.node
	switch {
	case p <= 9:
		n.Type = format.Int32
	case p <= 18:
		n.Type = format.Int64
	default:
		n.Type, n.TypeLength = format.FixedLenByteArray, int32(decimalBytes(int(p)))
	}
	n.Precision, n.Scale = &p, &s
	annotate(n, convertedDecimal, format.Logical{Kind: format.LogicalDecimal, Precision: p, Scale: s})
	return nil
}

// decimalBytes is the least length of two's complement for all values of a
// precision.
func decimalBytes(precision int) int {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return limit.Sub(limit, big.NewInt(1)).BitLen()/8 + 1
}

// compatibleName makes a name legal for Avro as Iceberg's Parquet writer does:
// letters and digits of the basic plane stay, a digit in front gets an
// underscore, anything else becomes _x and its UTF-16 code in hexadecimal.
func compatibleName(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_', r < 0x10000 && unicode.IsLetter(r):
			b.WriteRune(r)
		case r < 0x10000 && unicode.IsDigit(r):
			if i == 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r)
		default:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "_x%X", u)
			}
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}
