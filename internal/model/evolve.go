package model

import (
	"context"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// changeMetadata commits a change of the metadata without a snapshot.
func (tb *Table) changeMetadata(ctx context.Context, edit func(document) error) error {
	if err := tb.Refresh(ctx); err != nil {
		return err
	}
	tb.tick(ctx)
	return tb.swap(ctx, edit)
}

// changeSchema makes a new current schema of the fields of the old one.
func (tb *Table) changeSchema(ctx context.Context, edit func([]icego.NestedField) ([]icego.NestedField, error)) error {
	if err := tb.Refresh(ctx); err != nil {
		return err
	}
	fields, err := edit(slices.Clone(tb.Schema().Fields()))
	if err != nil {
		return err
	}
	id := 0
	for _, s := range tb.Schemas() {
		id = max(id, s.ID+1)
	}
	s := icego.NewSchemaWithIdentifiers(id, tb.Schema().IdentifierFieldIDs, fields...)
	part, err := toAny(s)
	if err != nil {
		return err
	}
	return tb.changeMetadata(ctx, func(d document) error {
		d.push("schemas", part)
		d["current-schema-id"] = int64(id)
		d["last-column-id"] = max(d.num("last-column-id"), int64(s.HighestFieldID()))
		if d.version() == 1 {
			d["schema"] = part
		}
		return nil
	})
}

// Column is a new column.
type Column struct {
	Name     string
	Type     icego.Type
	Required bool
	// Initial is what rows written before have (v3), see Coerce; nil is null.
	Initial any
	// Default is what writers put into rows without a value (v3).
	Default any
}

// AddColumn adds a top-level column at the end and returns its id. The ids of
// a nested type are taken as they are; they must be new.
func (tb *Table) AddColumn(ctx context.Context, c Column) (iceberg.FieldID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	if (c.Initial != nil || c.Default != nil) && tb.Version() < 3 {
		return 0, fault.New(fault.Unsupported, "default values need format v3")
	}
	id := int(tb.doc.num("last-column-id")) + 1
	if nested := icego.NewSchema(0, icego.NestedField{ID: id, Name: c.Name, Type: c.Type}); nested.HighestFieldID() > id {
		id = nested.HighestFieldID() + 1
	}
	f := icego.NestedField{ID: id, Name: c.Name, Type: c.Type, Required: c.Required}
	for _, x := range []struct {
		from any
		to   *any
	}{{c.Initial, &f.InitialDefault}, {c.Default, &f.WriteDefault}} {
		v, err := Coerce(c.Type, x.from)
		if err != nil {
			return 0, err
		}
		if v != nil {
			*x.to = valueToJSON(c.Type, v)
		}
	}
	return iceberg.FieldID(id), tb.changeSchema(ctx, func(fields []icego.NestedField) ([]icego.NestedField, error) {
		return append(fields, f), nil
	})
}

// changeColumn edits the top-level column of that name.
func (tb *Table) changeColumn(ctx context.Context, name string, edit func(*icego.NestedField) error) error {
	return tb.changeSchema(ctx, func(fields []icego.NestedField) ([]icego.NestedField, error) {
		i := slices.IndexFunc(fields, func(f icego.NestedField) bool { return f.Name == name })
		if i < 0 {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("there is no column %q", name))
		}
		return fields, edit(&fields[i])
	})
}

// DropColumn drops a top-level column.
func (tb *Table) DropColumn(ctx context.Context, name string) error {
	return tb.changeSchema(ctx, func(fields []icego.NestedField) ([]icego.NestedField, error) {
		out := slices.DeleteFunc(fields, func(f icego.NestedField) bool { return f.Name == name })
		if len(out) == len(fields) {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("there is no column %q", name))
		}
		return out, nil
	})
}

// RenameColumn renames a top-level column.
func (tb *Table) RenameColumn(ctx context.Context, from, to string) error {
	return tb.changeColumn(ctx, from, func(f *icego.NestedField) error {
		f.Name = to
		return nil
	})
}

// Promote gives a top-level column a wider type.
func (tb *Table) Promote(ctx context.Context, name string, to icego.Type) error {
	return tb.changeColumn(ctx, name, func(f *icego.NestedField) error {
		f.Type = to
		return nil
	})
}

// MakeOptional lets a required column be null.
func (tb *Table) MakeOptional(ctx context.Context, name string) error {
	return tb.changeColumn(ctx, name, func(f *icego.NestedField) error {
		f.Required = false
		return nil
	})
}

// SetDefault changes what writers put into rows without a value (v3).
func (tb *Table) SetDefault(ctx context.Context, name string, value any) error {
	if tb.Version() < 3 {
		return fault.New(fault.Unsupported, "default values need format v3")
	}
	return tb.changeColumn(ctx, name, func(f *icego.NestedField) error {
		v, err := Coerce(f.Type, value)
		if err != nil {
			return err
		}
		f.WriteDefault = valueToJSON(f.Type, v)
		return nil
	})
}

// MoveFirst makes a column the first of the schema.
func (tb *Table) MoveFirst(ctx context.Context, name string) error {
	return tb.changeSchema(ctx, func(fields []icego.NestedField) ([]icego.NestedField, error) {
		i := slices.IndexFunc(fields, func(f icego.NestedField) bool { return f.Name == name })
		if i < 0 {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("there is no column %q", name))
		}
		f := fields[i]
		return slices.Insert(slices.Delete(fields, i, i+1), 0, f), nil
	})
}

// SetSpec makes the spec of the text the current one, see ParseSpec. A field
// that an earlier spec had with the same source and transform gets its id
// again. In v1 dropped fields must stay as void ones, by the caller.
func (tb *Table) SetSpec(ctx context.Context, text string) (iceberg.SpecID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	specs := tb.Specs()
	id := 0
	for _, s := range specs {
		id = max(id, s.ID()+1)
	}
	last := max(lastFieldID(specs), iceberg.FieldID(tb.doc.num("last-partition-id")))
	parsed, err := ParseSpec(tb.Schema(), iceberg.SpecID(id), last, text)
	if err != nil {
		return 0, err
	}
	var fields []icego.PartitionField
	taken := map[int]bool{}
	for i := range parsed.NumFields() {
		f := parsed.Field(i)
		if old, ok := sameField(specs, f); ok && !taken[old] {
			f.FieldID = old
			taken[old] = true
		} else {
			last++
			f.FieldID = int(last)
		}
		fields = append(fields, f)
	}
	spec := icego.NewPartitionSpecID(id, fields...)
	part, err := specFields(spec)
	if err != nil {
		return 0, err
	}
	return iceberg.SpecID(id), tb.changeMetadata(ctx, func(d document) error {
		d.push("partition-specs", map[string]any{"spec-id": int64(id), "fields": part})
		d["default-spec-id"], d["last-partition-id"] = int64(id), int64(last)
		if d.version() == 1 {
			d["partition-spec"] = part
		}
		return nil
	})
}

// sameField is the id of the field that f continues: of the same name and
// source if it became void, else of the same transform of the same source.
func sameField(specs []icego.PartitionSpec, f icego.PartitionField) (int, bool) {
	for _, byName := range []bool{true, false} {
		for _, s := range specs {
			for i := range s.NumFields() {
				old := s.Field(i)
				same := old.Transform.String() == f.Transform.String()
				if byName {
					same = old.Name == f.Name && f.Transform.String() == "void"
				}
				if same && old.SourceID() == f.SourceID() {
					return old.FieldID, true
				}
			}
		}
	}
	return 0, false
}

// SetSortOrder makes o the table's sort order.
func (tb *Table) SetSortOrder(ctx context.Context, o SortOrder) error {
	return tb.changeMetadata(ctx, func(d document) error {
		d.addSortOrder(o)
		return nil
	})
}

// SetProperties sets properties; an empty value removes one.
func (tb *Table) SetProperties(ctx context.Context, set map[string]string) error {
	return tb.changeMetadata(ctx, func(d document) error {
		props := d.object("properties")
		if props == nil {
			props = document{}
			d["properties"] = map[string]any(props)
		}
		for k, v := range set {
			props[k] = v
			if v == "" {
				delete(props, k)
			}
		}
		return nil
	})
}

// SetNameMapping stores a name mapping of the current schema, which readers of
// files without field ids need.
func (tb *Table) SetNameMapping(ctx context.Context) error {
	data, err := nameMapping(tb.Schema())
	if err != nil {
		return err
	}
	return tb.SetProperties(ctx, map[string]string{"schema.name-mapping.default": data})
}

// Edit changes the raw metadata, for what no other operation does.
func (tb *Table) Edit(ctx context.Context, edit func(map[string]any)) error {
	return tb.changeMetadata(ctx, func(d document) error {
		edit(d)
		return nil
	})
}

// Upgrade raises the format version, one step or two.
func (tb *Table) Upgrade(ctx context.Context, version int) error {
	if version <= tb.Version() || version > 3 {
		return fault.New(fault.Unsupported, fmt.Sprintf("a v%d table cannot become v%d", tb.Version(), version))
	}
	return tb.changeMetadata(ctx, func(d document) error {
		if d.version() == 1 {
			if err := d.fromV1(tb.uuid().String()); err != nil {
				return err
			}
		}
		if version == 3 {
			d["next-row-id"] = int64(0)
		}
		d["format-version"] = int64(version)
		return nil
	})
}

// fromV1 adds what v1 metadata may lack. Old snapshots stay without a sequence
// number (F084).
func (d document) fromV1(uuid string) error {
	schemas, err := d.schemas()
	if err != nil {
		return err
	}
	specs, err := d.specs()
	if err != nil {
		return err
	}
	d["last-sequence-number"] = int64(0)
	if d["table-uuid"] == nil {
		d["table-uuid"] = uuid
	}
	if d["schemas"] == nil {
		d["schemas"], d["current-schema-id"] = []any{d["schema"]}, int64(schemas[0].ID)
	}
	if d["partition-specs"] == nil {
		d["partition-specs"] = []any{map[string]any{"spec-id": int64(0), "fields": d["partition-spec"]}}
		d["default-spec-id"] = int64(0)
	}
	if d["last-partition-id"] == nil {
		d["last-partition-id"] = int64(lastFieldID(specs))
	}
	if d["sort-orders"] == nil {
		d["sort-orders"], d["default-sort-order-id"] = []any{map[string]any{"order-id": int64(0), "fields": []any{}}}, int64(0)
	}
	delete(d, "schema")
	delete(d, "partition-spec")
	return nil
}
