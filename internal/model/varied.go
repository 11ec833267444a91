package model

import (
	"context"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"
)

// nestedSteps change what is inside columns.
var nestedSteps = []step{
	{"add-field", 2, (*Generator).stepAddField},
	{"drop-field", 1, (*Generator).stepDropField},
	{"rename-field", 1, (*Generator).stepRenameField},
	{"promote-field", 2, (*Generator).stepPromoteField},
}

// vary draws how a data file is laid out.
func (g *Generator) vary(l *Layout) {
	l.PageRows = pick(g.rng, []int{0, 0, 1, 2, 5})
	l.PageV2, l.PageIndex = g.chance(3), g.chance(2)
	codecs := []string{"", "", "snappy", "gzip", "uncompressed", "brotli"}
	if l.PageV2 {
		codecs = codecs[:5] // arrow-go cannot read pages without values in brotli
	}
	l.Codec = pick(g.rng, codecs)
}

// deepType is a random type that is nested up to depth times. next is the next
// free field id.
func (g *Generator) deepType(version, depth int, next *int) icego.Type {
	id := func() int { *next++; return *next - 1 }
	kind := g.rng.IntN(9)
	if depth == 0 {
		kind = 8
	}
	switch kind {
	case 0, 1:
		st := &icego.StructType{}
		for i := range 1 + g.rng.IntN(3) {
			f := icego.NestedField{ID: id(), Name: fmt.Sprintf("f%d", i), Required: g.chance(4)}
			f.Type = g.deepType(version, depth-1, next)
			st.FieldList = append(st.FieldList, f)
		}
		return st
	case 2:
		lt := &icego.ListType{ElementID: id(), ElementRequired: g.chance(2)}
		lt.Element = g.deepType(version, depth-1, next)
		return lt
	case 3:
		mt := &icego.MapType{KeyID: id(), KeyType: icego.StringType{}, ValueID: id(), ValueRequired: g.chance(3)}
		mt.ValueType = g.deepType(version, depth-1, next)
		return mt
	}
	return g.primitive(version)
}

// structs are the structs within t, outermost first.
func structs(t icego.Type) (out []*icego.StructType) {
	switch t := t.(type) {
	case *icego.StructType:
		out = append(out, t)
		for _, f := range t.FieldList {
			out = append(out, structs(f.Type)...)
		}
	case *icego.ListType:
		out = structs(t.Element)
	case *icego.MapType:
		out = structs(t.ValueType)
	}
	return out
}

// withFields is t in which the struct old has other fields.
func withFields(t icego.Type, old *icego.StructType, fields []icego.NestedField) icego.Type {
	switch t := t.(type) {
	case *icego.StructType:
		if t == old {
			return &icego.StructType{FieldList: fields}
		}
		out := &icego.StructType{FieldList: slices.Clone(t.FieldList)}
		for i := range out.FieldList {
			out.FieldList[i].Type = withFields(out.FieldList[i].Type, old, fields)
		}
		return out
	case *icego.ListType:
		out := *t
		out.Element = withFields(t.Element, old, fields)
		return &out
	case *icego.MapType:
		out := *t
		out.ValueType = withFields(t.ValueType, old, fields)
		return &out
	}
	return t
}

// changeStruct gives a random struct of a random column other fields.
func (g *Generator) changeStruct(ctx context.Context, edit func([]icego.NestedField) ([]icego.NestedField, string)) (string, error) {
	var at []icego.NestedField
	for _, f := range g.Schema().Fields() {
		if len(structs(f.Type)) > 0 {
			at = append(at, f)
		}
	}
	if len(at) == 0 {
		return "", errSkip
	}
	column := pick(g.rng, at)
	st := pick(g.rng, structs(column.Type))
	fields, what := edit(slices.Clone(st.FieldList))
	if what == "" {
		return "", errSkip
	}
	return column.Name + ": " + what, g.Promote(ctx, column.Name, withFields(column.Type, st, fields))
}

func (g *Generator) stepAddField(ctx context.Context) (string, error) {
	return g.changeStruct(ctx, func(fields []icego.NestedField) ([]icego.NestedField, string) {
		next := int(g.doc.num("last-column-id")) + 1
		f := icego.NestedField{ID: next, Name: fmt.Sprintf("n%d", next)}
		next++
		f.Type = g.deepType(g.Version(), 1, &next)
		return slices.Insert(fields, g.rng.IntN(len(fields)+1), f), "add " + f.Name + " " + f.Type.String()
	})
}

func (g *Generator) stepDropField(ctx context.Context) (string, error) {
	return g.changeStruct(ctx, func(fields []icego.NestedField) ([]icego.NestedField, string) {
		if len(fields) == 1 {
			return nil, ""
		}
		i := g.rng.IntN(len(fields))
		name := fields[i].Name
		return slices.Delete(fields, i, i+1), "drop " + name
	})
}

func (g *Generator) stepRenameField(ctx context.Context) (string, error) {
	return g.changeStruct(ctx, func(fields []icego.NestedField) ([]icego.NestedField, string) {
		i := g.rng.IntN(len(fields))
		from := fields[i].Name
		fields[i].Name = fmt.Sprintf("r%d", g.rng.IntN(1_000_000))
		return fields, "rename " + from + " to " + fields[i].Name
	})
}

func (g *Generator) stepPromoteField(ctx context.Context) (string, error) {
	return g.changeStruct(ctx, func(fields []icego.NestedField) ([]icego.NestedField, string) {
		i := g.rng.IntN(len(fields))
		to := g.wider(fields[i].Type)
		if to == nil {
			return nil, ""
		}
		fields[i].Type = to
		return fields, "promote " + fields[i].Name + " to " + to.String()
	})
}
