package model

import (
	"fmt"
	"math"
	"net/url"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Summary is the summary of one partition field over a manifest.
type Summary struct {
	ContainsNull bool
	ContainsNaN  bool
	Lower, Upper []byte
}

// partitionOf applies the spec to a row written under schema s.
func partitionOf(spec icego.PartitionSpec, s *icego.Schema, row Row) (Row, error) {
	out := Row{}
	for i := range spec.NumFields() {
		pf := spec.Field(i)
		id := iceberg.FieldID(pf.FieldID)
		f, ok := s.FindFieldByID(pf.SourceID())
		if !ok {
			out[id] = nil
			continue
		}
		v := promote(f.Type, resolveNested(s, f, row))
		if v == nil {
			out[id] = nil
			continue
		}
		lit := literal(f.Type, v)
		if lit == nil {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("column %q of type %s cannot be a partition source", f.Name, f.Type))
		}
		result := pf.Transform.Apply(icego.Optional[icego.Literal]{Valid: true, Val: lit})
		if !result.Valid {
			out[id] = nil
			continue
		}
		out[id] = normalise(result.Val.Any())
	}
	return out, nil
}

// normalise turns a literal's Go value into a Value.
func normalise(v any) Value {
	switch v := v.(type) {
	case icego.DecimalLiteral:
		return icego.Decimal(v)
	case icego.FixedLiteral:
		return []byte(v)
	case icego.BinaryLiteral:
		return []byte(v)
	case icego.DateLiteral:
		return icego.Date(v)
	case icego.TimeLiteral:
		return icego.Time(v)
	case icego.TimestampLiteral:
		return icego.Timestamp(v)
	case icego.TimestampNsLiteral:
		return icego.TimestampNano(v)
	}
	return v
}

// resolveNested is the value of a field that may lie inside structs.
func resolveNested(s *icego.Schema, f icego.NestedField, row Row) Value {
	for _, top := range s.Fields() {
		if v, ok := descend(top, f.ID, resolve(top, row)); ok {
			return v
		}
	}
	return nil
}

func descend(at icego.NestedField, id int, v Value) (Value, bool) {
	if at.ID == id {
		return v, true
	}
	st, ok := at.Type.(*icego.StructType)
	if !ok {
		return nil, false
	}
	row, _ := v.(Row)
	for _, f := range st.FieldList {
		var x Value
		if row != nil {
			x = resolve(f, row)
		}
		if x, ok := descend(f, id, x); ok {
			return x, true
		}
	}
	return nil, false
}

// summarise computes the partition summaries of a manifest.
func summarise(t *icego.StructType, entries []*Entry) []Summary {
	out := make([]Summary, len(t.FieldList))
	for i, f := range t.FieldList {
		var low, high Value
		for _, e := range entries {
			v := promote(f.Type, e.File.Partition[iceberg.FieldID(f.ID)])
			switch {
			case v == nil:
				out[i].ContainsNull = true
				continue
			case isNaN(v):
				out[i].ContainsNaN = true
				continue
			}
			if low == nil || less(v, low) {
				low = v
			}
			if high == nil || less(high, v) {
				high = v
			}
		}
		if low != nil {
			out[i].Lower, out[i].Upper = bound(f.Type, low), bound(f.Type, high)
		}
	}
	return out
}

func isNaN(v Value) bool {
	switch v := v.(type) {
	case float32:
		return math.IsNaN(float64(v))
	case float64:
		return math.IsNaN(v)
	}
	return false
}

// partitionPath is the directory of a partition, "a=1/b=x", escaped as Java
// does it when escaped is set. It is empty for an unpartitioned file.
func partitionPath(spec icego.PartitionSpec, t *icego.StructType, p Row, escaped bool) string {
	var parts []string
	for i := range spec.NumFields() {
		pf := spec.Field(i)
		text := "null"
		if v := p[iceberg.FieldID(pf.FieldID)]; v != nil {
			text = pf.Transform.ToHumanStrType(t.FieldList[i].Type, v)
		}
		name := pf.Name
		if escaped {
			name, text = url.QueryEscape(name), url.QueryEscape(text)
		}
		parts = append(parts, strings.ReplaceAll(name+"="+text, "/", "%2F"))
	}
	return strings.Join(parts, "/")
}
