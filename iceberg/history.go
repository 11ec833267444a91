package iceberg

import (
	"encoding/json"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
)

// History is what all schemas of a table say about its columns. Old files and
// old partition specs name columns that the current schema may have renamed,
// promoted, moved or dropped; the field id is what stays.
type History struct {
	newest map[FieldID]Column
	types  map[FieldID][]icego.Type
}

// Column is a column, at any depth, as one schema has it.
type Column struct {
	Field icego.NestedField
	// Schema is the schema the column was found in.
	Schema SchemaID
	// Parent is the id of the enclosing struct, list or map, or 0.
	Parent FieldID
	// Path are the names from the top to the column. Elements of lists are named
	// element, those of maps key and value.
	Path []string
	// Current reports whether the current schema has the column.
	Current bool
}

func newHistory(m *Metadata) *History {
	h := &History{newest: map[FieldID]Column{}, types: map[FieldID][]icego.Type{}}
	order := slices.Clone(m.Schemas)
	slices.SortStableFunc(order, func(a, b *icego.Schema) int {
		switch current := int(m.CurrentSchemaID); {
		case a.ID == current:
			return 1
		case b.ID == current:
			return -1
		}
		return a.ID - b.ID
	})
	for _, s := range order {
		h.add(s.Fields(), Column{Schema: SchemaID(s.ID), Current: SchemaID(s.ID) == m.CurrentSchemaID})
	}
	return h
}

func (h *History) add(fields []icego.NestedField, in Column) {
	for _, f := range fields {
		c := in
		c.Field, c.Path = f, append(slices.Clone(in.Path), f.Name)
		id := FieldID(f.ID)
		h.newest[id] = c
		if _, nested := f.Type.(icego.NestedType); !nested && !slices.ContainsFunc(h.types[id], f.Type.Equals) {
			h.types[id] = append(h.types[id], f.Type)
		}
		if nested, ok := f.Type.(icego.NestedType); ok {
			inner := c
			inner.Parent = id
			h.add(nested.Fields(), inner)
		}
	}
}

// Column returns the column with the id as the current schema has it, or, where
// it was dropped, the schema with the greatest id that has it.
func (h *History) Column(id FieldID) (Column, bool) {
	c, ok := h.newest[id]
	return c, ok
}

// Types are the primitive types the column had, oldest schema first and the
// current one last. Two columns of one name but different ids are two columns.
func (h *History) Types(id FieldID) []icego.Type { return h.types[id] }

// CanPromote reports whether values of type from can be read as type to without
// loss in a table of the format version. Equal types can.
func CanPromote(from, to icego.Type, formatVersion int) bool {
	if from.Equals(to) {
		return true
	}
	switch f := from.(type) {
	case icego.Int32Type:
		_, ok := to.(icego.Int64Type)
		return ok
	case icego.Float32Type:
		_, ok := to.(icego.Float64Type)
		return ok
	case icego.DecimalType:
		t, ok := to.(icego.DecimalType)
		return ok && t.Scale() == f.Scale() && t.Precision() >= f.Precision()
	case icego.DateType:
		switch to.(type) {
		case icego.TimestampType, icego.TimestampNsType:
			return formatVersion >= 3
		}
	case icego.UnknownType:
		return formatVersion >= 3
	}
	return false
}

// PartitionField is a field of a partition spec with the types its values have.
type PartitionField struct {
	ID        FieldID
	Name      string
	Transform icego.Transform
	// SourceIDs are the columns the transform takes; a void field of old metadata
	// may have none.
	SourceIDs []FieldID
	// Source is the newest type of the first source column, or nil when no schema
	// has the column any more.
	Source icego.Type
	// Result is the type of the values, or nil when it cannot be told from the
	// metadata: the source column is in no schema, or the transform is not known.
	Result icego.Type
}

// PartitionType is a partition spec with the types of its values, resolved over
// all schemas, so that a spec stays whole when a source column is dropped (F066,
// F067). Positions are those of the spec.
type PartitionType struct {
	Spec   SpecID
	Fields []PartitionField
}

// PartitionType resolves the spec with the id. A spec that does not exist is
// fault.Corrupt, since a manifest must have named it.
func (m *Metadata) PartitionType(id SpecID) (*PartitionType, error) {
	spec, ok := m.Spec(id)
	if !ok {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("there is no partition spec %d", id))
	}
	t := &PartitionType{Spec: id}
	for _, f := range spec.Fields() {
		out := PartitionField{ID: FieldID(f.FieldID), Name: f.Name, Transform: f.Transform}
		for _, source := range f.SourceIDs {
			if source != 0 {
				out.SourceIDs = append(out.SourceIDs, FieldID(source))
			}
		}
		if len(out.SourceIDs) > 0 {
			if c, ok := m.History().Column(out.SourceIDs[0]); ok {
				out.Source = c.Field.Type
			}
		}
		out.Result = resultType(f.Transform, out.Source)
		t.Fields = append(t.Fields, out)
	}
	return t, nil
}

func resultType(t icego.Transform, source icego.Type) icego.Type {
	switch t.(type) {
	case icego.BucketTransform, *icego.BucketTransform, icego.YearTransform, icego.MonthTransform, icego.HourTransform:
		return icego.PrimitiveTypes.Int32
	case icego.DayTransform:
		return icego.PrimitiveTypes.Date
	case icego.IdentityTransform, icego.TruncateTransform, *icego.TruncateTransform, icego.VoidTransform:
		return source
	}
	return nil
}

// Writable returns fault.Unsupported, with the field named, if data cannot be
// written under the spec: a transform that is not known or takes several
// columns, or a source column the current schema lacks.
func (t *PartitionType) Writable(m *Metadata) error {
	for _, f := range t.Fields {
		why := ""
		if _, void := f.Transform.(icego.VoidTransform); void {
			continue
		}
		switch c, _ := m.History().Column(f.source()); {
		case len(f.SourceIDs) != 1:
			why = "takes several columns"
		case f.Result == nil:
			why = fmt.Sprintf("has the transform %s, which is not known", f.Transform)
		case !c.Current:
			why = "has a source column that was dropped"
		case !f.Transform.CanTransform(f.Source):
			why = fmt.Sprintf("applies %s to a column of type %s", f.Transform, f.Source)
		default:
			continue
		}
		return fault.New(fault.Unsupported, fmt.Sprintf("partition field %q of spec %d %s", f.Name, t.Spec, why))
	}
	return nil
}

func (f PartitionField) source() FieldID {
	if len(f.SourceIDs) == 0 {
		return 0
	}
	return f.SourceIDs[0]
}

// Unpartitioned reports whether the spec has no fields, or only void ones. An
// equality delete of such a spec applies to the whole table.
func (t *PartitionType) Unpartitioned() bool {
	for _, f := range t.Fields {
		if _, void := f.Transform.(icego.VoidTransform); !void {
			return false
		}
	}
	return true
}

// NameMappingProperty is the table property that gives field ids to the columns
// of files that have none.
const NameMappingProperty = "schema.name-mapping.default"

// NameMapping returns the table's default name mapping, and false when it has
// none. A mapping in which one name stands for two columns, or one column occurs
// twice, is fault.Unsupported (F061).
func (m *Metadata) NameMapping() (icego.NameMapping, bool, error) {
	text, ok := m.Properties[NameMappingProperty]
	if !ok || text == "" {
		return nil, false, nil
	}
	var mapping icego.NameMapping
	err := json.Unmarshal([]byte(text), &mapping)
	err = fault.Wrap(fault.Unsupported, "parse it", err)
	if err == nil {
		err = verifyMapping(mapping, map[int]bool{})
	}
	return mapping, err == nil, fault.In("read the table property "+NameMappingProperty, err)
}

func verifyMapping(fields []icego.MappedField, ids map[int]bool) error {
	names := map[string]bool{}
	for _, f := range fields {
		for _, name := range f.Names {
			if names[name] {
				return fault.New(fault.Unsupported, fmt.Sprintf("name %q stands for two columns", name))
			}
			names[name] = true
		}
		if f.FieldID != nil {
			if ids[*f.FieldID] {
				return fault.New(fault.Unsupported, fmt.Sprintf("field id %d occurs twice", *f.FieldID))
			}
			ids[*f.FieldID] = true
		}
		if err := verifyMapping(f.Fields, ids); err != nil {
			return err
		}
	}
	return nil
}
