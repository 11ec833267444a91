package manifests

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// Partitioning is what a manifest is written under.
type Partitioning struct {
	// Type is the spec with the types of its values.
	Type *iceberg.PartitionType
	// Spec is the list of the spec's fields as JSON.
	Spec json.RawMessage
	// Schema is a schema as JSON, and SchemaID its id.
	Schema   json.RawMessage
	SchemaID iceberg.SchemaID
}

// PartitioningOf is the partitioning of new manifests of a spec: under the
// current schema, or, when that lacks a source column, the newest schema that
// has them all (F066).
func PartitioningOf(m *iceberg.Metadata, spec iceberg.SpecID) (*Partitioning, error) {
	t, err := m.PartitionType(spec)
	if err != nil {
		return nil, err
	}
	s, _ := m.Spec(spec) // PartitionType found it
	return partitioning(schemaFor(m, t), s, t)
}

// NewPartitioning is the partitioning of a spec under one schema, which knows
// the source columns.
func NewPartitioning(schema *icego.Schema, spec *icego.PartitionSpec) (*Partitioning, error) {
	t := &iceberg.PartitionType{Spec: iceberg.SpecID(spec.ID())}
	for _, f := range spec.Fields() {
		t.Fields = append(t.Fields, partitionField(schema, f))
	}
	return partitioning(schema, spec, t)
}

func partitioning(schema *icego.Schema, spec *icego.PartitionSpec, t *iceberg.PartitionType) (*Partitioning, error) {
	fields := []icego.PartitionField{}
	for _, f := range spec.Fields() {
		fields = append(fields, f)
	}
	p := &Partitioning{Type: t, SchemaID: iceberg.SchemaID(schema.ID)}
	var err error
	if p.Spec, err = json.Marshal(fields); err == nil {
		p.Schema, err = json.Marshal(schema)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, fmt.Sprintf("write spec %d as json", t.Spec), err)
	}
	return p, nil
}

// partitionField resolves a field under a schema, which may be nil.
func partitionField(schema *icego.Schema, f icego.PartitionField) iceberg.PartitionField {
	out := iceberg.PartitionField{ID: iceberg.FieldID(f.FieldID), Name: f.Name, Transform: f.Transform}
	for _, id := range f.SourceIDs {
		out.SourceIDs = append(out.SourceIDs, iceberg.FieldID(id))
	}
	if schema != nil && len(f.SourceIDs) > 0 {
		if s, ok := schema.FindTypeByID(f.SourceID()); ok {
			out.Source = s
		}
	}
	out.Result = resultType(f.Transform, out.Source)
	return out
}

func schemaFor(m *iceberg.Metadata, t *iceberg.PartitionType) *icego.Schema {
	has := func(s *icego.Schema) bool {
		for _, f := range t.Fields {
			if f.Source == nil || len(f.SourceIDs) == 0 {
				continue // in no schema
			}
			if _, ok := s.FindTypeByID(int(f.SourceIDs[0])); !ok {
				return false
			}
		}
		return true
	}
	best := m.CurrentSchema()
	if has(best) {
		return best
	}
	var found *icego.Schema
	for _, s := range m.Schemas {
		if has(s) && (found == nil || s.ID > found.ID) {
			found = s
		}
	}
	if found == nil {
		return best
	}
	return found
}

// headerType reads the spec of a manifest from its own header, with the types
// of its fields where the header's schema tells them. Without a spec the
// fields are those of the partition record.
func headerType(in *avro.Reader, spec iceberg.SpecID, partition *avro.Node) *iceberg.PartitionType {
	t := &iceberg.PartitionType{Spec: spec}
	var fields []icego.PartitionField
	if json.Unmarshal(in.Meta("partition-spec"), &fields) != nil || in.Meta("partition-spec") == nil {
		if partition != nil {
			for _, f := range partition.Fields {
				t.Fields = append(t.Fields, iceberg.PartitionField{ID: iceberg.FieldID(f.ID), Name: f.Name, Transform: icego.IdentityTransform{}})
			}
		}
		return t
	}
	schema := new(icego.Schema)
	if in.Meta("schema") == nil || json.Unmarshal(in.Meta("schema"), schema) != nil {
		schema = nil
	}
	for _, f := range fields {
		t.Fields = append(t.Fields, partitionField(schema, f))
	}
	return t
}

// resultType is the type of a transform's values, or nil when it cannot be
// told.
func resultType(t icego.Transform, source icego.Type) icego.Type {
	switch t.(type) {
	case icego.BucketTransform, *icego.BucketTransform, icego.YearTransform, icego.MonthTransform, icego.HourTransform:
		return icego.PrimitiveTypes.Int32
	case icego.DayTransform:
		return icego.PrimitiveTypes.Date // F069
	case icego.IdentityTransform, icego.TruncateTransform, *icego.TruncateTransform, icego.VoidTransform:
		return source
	}
	return nil
}

// sanitize makes a name one that Avro allows, with Java's escapes: a digit in
// front gets an underscore, any other character that is not an ASCII letter,
// digit or underscore becomes _x and its UTF-16 code in hexadecimal. Java
// leaves letters beyond ASCII alone, which other readers refuse (F064).
func sanitize(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9' && i > 0:
			b.WriteRune(r)
		case r >= '0' && r <= '9':
			b.WriteString("_" + string(r))
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

// partitionNode is the Avro record for the tuples of a spec. A field whose
// type the metadata does not tell has the type it has in like, the record of a
// manifest at hand, if there is one (F066).
func partitionNode(t *iceberg.PartitionType, like *avro.Node) (*avro.Node, []icego.Type, error) {
	fields := make([]avro.Field, len(t.Fields))
	types := make([]icego.Type, len(t.Fields))
	taken := map[string]bool{}
	for i, f := range t.Fields {
		types[i] = f.Result
		if f.Result == nil {
			types[i] = typeIn(like, f)
		}
		node, err := valueNode(types[i])
		if err != nil {
			return nil, nil, fault.In(fmt.Sprintf("partition field %q of spec %d", f.Name, t.Spec), err)
		}
		name := sanitize(f.Name)
		if taken[name] {
			name += "_r" + strconv.Itoa(int(f.ID))
		}
		taken[name] = true
		fields[i] = avro.Optional(name, int(f.ID), node)
		if name != f.Name {
			original, _ := json.Marshal(f.Name)
			fields[i].Props = map[string]json.RawMessage{"iceberg-field-name": original}
		}
	}
	return avro.RecordOf("r102", fields...), types, nil
}

// typeIn is the type the field has in a manifest's partition record; a void
// field, which is always null, needs none.
func typeIn(like *avro.Node, f iceberg.PartitionField) icego.Type {
	if like != nil {
		if i := fieldFor(like, f); i >= 0 {
			if n, ok := only(like.Fields[i].Type); ok {
				return typeOf(n)
			}
		}
	}
	if _, void := f.Transform.(icego.VoidTransform); void {
		return icego.PrimitiveTypes.Int32
	}
	return nil
}

// fieldFor is the position of a partition field in a manifest's record: by id,
// and by name where the writer left out ids. It is -1 when there is none.
func fieldFor(rec *avro.Node, f iceberg.PartitionField) int {
	for i := range rec.Fields {
		if rec.Fields[i].ID == int(f.ID) {
			return i
		}
	}
	for i := range rec.Fields {
		if g := &rec.Fields[i]; g.ID == avro.NoID && (g.Name == f.Name || g.Name == sanitize(f.Name)) {
			return i
		}
	}
	return -1
}

var (
	nodeTime        = avro.Logical(typeLong, "time-micros")
	nodeTimestamp   = avro.Logical(typeLong, "timestamp-micros", "adjust-to-utc", "false")
	nodeTimestampTz = avro.Logical(typeLong, "timestamp-micros", "adjust-to-utc", "true")
	nodeNanos       = avro.Logical(typeLong, "timestamp-nanos", "adjust-to-utc", "false")
	nodeNanosTz     = avro.Logical(typeLong, "timestamp-nanos", "adjust-to-utc", "true")
	nodeDate        = avro.Logical(typeInt, "date")
	nodeUUID        = avro.Logical(avro.FixedOf("uuid_fixed", 16), "uuid")
	nodeFloat       = avro.Primitive(avro.Float)
	nodeDouble      = avro.Primitive(avro.Double)
	nodeNull        = avro.Primitive(avro.Null)
)

// valueNode is the Avro type of a partition value (spec, appendix A).
func valueNode(t icego.Type) (*avro.Node, error) {
	switch t := t.(type) {
	case icego.BooleanType:
		return typeBool, nil
	case icego.Int32Type:
		return typeInt, nil
	case icego.Int64Type:
		return typeLong, nil
	case icego.Float32Type:
		return nodeFloat, nil
	case icego.Float64Type:
		return nodeDouble, nil
	case icego.DateType:
		return nodeDate, nil
	case icego.TimeType:
		return nodeTime, nil
	case icego.TimestampType:
		return nodeTimestamp, nil
	case icego.TimestampTzType:
		return nodeTimestampTz, nil
	case icego.TimestampNsType:
		return nodeNanos, nil
	case icego.TimestampTzNsType:
		return nodeNanosTz, nil
	case icego.StringType:
		return typeString, nil
	case icego.BinaryType:
		return typeBytes, nil
	case icego.UUIDType:
		return nodeUUID, nil
	case icego.FixedType:
		return avro.FixedOf(fmt.Sprintf("fixed_%d", t.Len()), t.Len()), nil
	case icego.DecimalType:
		// The width follows from the declared precision, not from the value (F051).
		return avro.Logical(avro.FixedOf(fmt.Sprintf("decimal_%d_%d", t.Precision(), t.Scale()), decimalWidth(t.Precision())),
			"decimal", "precision", strconv.Itoa(t.Precision()), "scale", strconv.Itoa(t.Scale())), nil
	case icego.UnknownType:
		return nodeNull, nil
	}
	return nil, fault.New(fault.Unsupported, fmt.Sprintf("type %v cannot be written as a partition value", t))
}

// decimalWidth is the least number of bytes that holds every decimal of the
// precision.
func decimalWidth(precision int) int {
	// 10^p needs p*log2(10) bits and one for the sign.
	return (precision*33219+10000)/80000 + 1
}

// typeOf is the Iceberg type an Avro type stands for, or nil.
func typeOf(n *avro.Node) icego.Type {
	utc := string(n.Props["adjust-to-utc"]) == "true"
	switch n.Kind {
	case avro.Boolean:
		return icego.PrimitiveTypes.Bool
	case avro.Int:
		if n.Logical == "date" {
			return icego.PrimitiveTypes.Date
		}
		return icego.PrimitiveTypes.Int32
	case avro.Long:
		switch {
		case n.Logical == "time-micros":
			return icego.PrimitiveTypes.Time
		case n.Logical == "timestamp-nanos" && utc:
			return icego.PrimitiveTypes.TimestampTzNs
		case n.Logical == "timestamp-nanos":
			return icego.PrimitiveTypes.TimestampNs
		case (n.Logical == "timestamp-micros" || n.Logical == "timestamp-millis") && utc:
			return icego.PrimitiveTypes.TimestampTz
		case n.Logical == "timestamp-micros" || n.Logical == "timestamp-millis":
			return icego.PrimitiveTypes.Timestamp
		}
		return icego.PrimitiveTypes.Int64
	case avro.Float:
		return icego.PrimitiveTypes.Float32
	case avro.Double:
		return icego.PrimitiveTypes.Float64
	case avro.String:
		if n.Logical == "uuid" {
			return icego.PrimitiveTypes.UUID
		}
		return icego.PrimitiveTypes.String
	case avro.Bytes, avro.Fixed:
		switch {
		case n.Logical == "decimal" && n.Precision > 0 && n.Precision <= 38 && n.Scale <= n.Precision:
			return icego.DecimalTypeOf(n.Precision, n.Scale)
		case n.Kind == avro.Bytes:
			return icego.PrimitiveTypes.Binary
		case n.Logical == "uuid" && n.Size == 16:
			return icego.PrimitiveTypes.UUID
		case n.Size > 0:
			return icego.FixedTypeOf(n.Size)
		}
	case avro.Null:
		return icego.UnknownType{}
	}
	return nil
}
