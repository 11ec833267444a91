package model

import (
	"fmt"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// ParseSchema makes a schema of "id long!, name string, ts timestamptz,
// amount decimal(12,2)". Field ids count from 1 in order; "!" marks a required
// column; types are Iceberg's names. Nested types are built with iceberg-go.
func ParseSchema(text string) (*icego.Schema, error) {
	var fields []icego.NestedField
	for i, part := range splitTop(text) {
		name, typ, ok := strings.Cut(strings.TrimSpace(part), " ")
		if !ok {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("column %q has no type", part))
		}
		typ = strings.TrimSpace(typ)
		bare := strings.TrimSuffix(typ, "!")
		t, err := parseType(bare)
		if err != nil {
			return nil, err
		}
		fields = append(fields, icego.NestedField{ID: i + 1, Name: name, Type: t, Required: bare != typ})
	}
	return icego.NewSchema(0, fields...), nil
}

// splitTop splits at commas outside of brackets.
func splitTop(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '(', '[', '<':
			depth++
		case ')', ']', '>':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, text[from:i])
				from = i + 1
			}
		}
	}
	return append(out, text[from:])
}

func parseType(text string) (icego.Type, error) {
	var n, m int
	switch text {
	case "boolean":
		return icego.BooleanType{}, nil
	case "int":
		return icego.Int32Type{}, nil
	case "long":
		return icego.Int64Type{}, nil
	case "float":
		return icego.Float32Type{}, nil
	case "double":
		return icego.Float64Type{}, nil
	case "date":
		return icego.DateType{}, nil
	case "time":
		return icego.TimeType{}, nil
	case "timestamp":
		return icego.TimestampType{}, nil
	case "timestamptz":
		return icego.TimestampTzType{}, nil
	case "timestamp_ns":
		return icego.TimestampNsType{}, nil
	case "timestamptz_ns":
		return icego.TimestampTzNsType{}, nil
	case "string":
		return icego.StringType{}, nil
	case "uuid":
		return icego.UUIDType{}, nil
	case "binary":
		return icego.BinaryType{}, nil
	case "unknown":
		return icego.UnknownType{}, nil
	}
	if c, err := fmt.Sscanf(strings.ReplaceAll(text, " ", ""), "decimal(%d,%d)", &n, &m); err == nil && c == 2 && n >= 1 && n <= 38 && m >= 0 && m <= n {
		return icego.DecimalTypeOf(n, m), nil
	}
	if c, err := fmt.Sscanf(text, "fixed[%d]", &n); err == nil && c == 1 && n > 0 {
		return icego.FixedTypeOf(n), nil
	}
	return nil, fault.New(fault.Unsupported, fmt.Sprintf("type %q is not known", text))
}

// ParseSpec makes a partition spec of "region, bucket[16](id), day(ts)" over
// schema s. A plain column name is the identity transform; "void(x)" is
// allowed. Field ids count on from lastField, which is 999 for a new table. A
// transform may be followed by " as name".
func ParseSpec(s *icego.Schema, id iceberg.SpecID, lastField iceberg.FieldID, text string) (icego.PartitionSpec, error) {
	if strings.TrimSpace(text) == "" {
		return icego.NewPartitionSpecID(int(id)), nil
	}
	var fields []icego.PartitionField
	for _, part := range splitTop(text) {
		expr, name, _ := strings.Cut(strings.TrimSpace(part), " as ")
		transform, column := "identity", expr
		if open := strings.LastIndexByte(expr, '('); open >= 0 && strings.HasSuffix(expr, ")") {
			transform, column = expr[:open], expr[open+1:len(expr)-1]
		}
		t, err := icego.ParseTransform(transform)
		if err != nil {
			return icego.PartitionSpec{}, fault.Wrap(fault.Unsupported, "parse partition field "+part, err)
		}
		f, ok := s.FindFieldByName(column)
		if !ok {
			return icego.PartitionSpec{}, fault.New(fault.Unsupported, fmt.Sprintf("partition field %q names no column", part))
		}
		if name == "" {
			name = defaultFieldName(column, transform)
		}
		lastField++
		fields = append(fields, icego.PartitionField{SourceIDs: []int{f.ID}, FieldID: int(lastField), Name: name, Transform: t})
	}
	return icego.NewPartitionSpecID(int(id), fields...), nil
}

func defaultFieldName(column, transform string) string {
	kind, _, _ := strings.Cut(transform, "[")
	switch kind {
	case "identity":
		return column
	case "truncate":
		return column + "_trunc"
	case "void":
		return column + "_null"
	}
	return column + "_" + kind
}

// unpartitioned reports whether the spec has no fields, or only void ones.
func unpartitioned(spec icego.PartitionSpec) bool {
	for i := range spec.NumFields() {
		if _, void := spec.Field(i).Transform.(icego.VoidTransform); !void {
			return false
		}
	}
	return true
}

// lastFieldID is the highest partition field id of the specs, 999 without any.
func lastFieldID(specs []icego.PartitionSpec) iceberg.FieldID {
	last := iceberg.FieldID(999)
	for _, s := range specs {
		for i := range s.NumFields() {
			last = max(last, iceberg.FieldID(s.Field(i).FieldID))
		}
	}
	return last
}
