package model

import (
	"encoding/hex"
	"fmt"
	"math"

	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Portable is the row as read under schema s, by column name, in a form that
// JSON keeps and that programs in other languages can make of what they read:
// floats are their bits, decimals their unscaled numbers, bytes and uuids hex,
// dates and times numbers with their unit, maps lists of pairs.
func Portable(s *icego.Schema, row Row) map[string]any {
	out := map[string]any{}
	for _, f := range s.Fields() {
		out[f.Name] = portable(f.Type, resolve(f, row))
	}
	return out
}

func portable(t icego.Type, v Value) any {
	if v == nil {
		return nil
	}
	switch t := t.(type) {
	case *icego.StructType:
		row, _ := v.(Row)
		return Portable(icego.NewSchema(0, t.FieldList...), row)
	case *icego.ListType:
		list, _ := v.([]Value)
		out := make([]any, len(list))
		for i, e := range list {
			out[i] = portable(t.Element, e)
		}
		return out
	case *icego.MapType:
		pairs, _ := v.([]Pair)
		out := make([]any, len(pairs))
		for i, p := range pairs {
			out[i] = []any{portable(t.KeyType, p.Key), portable(t.ValueType, p.Value)}
		}
		return out
	}
	switch v := promote(t, v).(type) {
	case float32:
		if math.IsNaN(float64(v)) {
			return "NaN"
		}
		return fmt.Sprintf("f%08x", math.Float32bits(v))
	case float64:
		if math.IsNaN(v) {
			return "NaN"
		}
		return fmt.Sprintf("f%016x", math.Float64bits(v))
	case icego.Decimal:
		return v.Val.BigInt().String() + "e-" + fmt.Sprint(t.(icego.DecimalType).Scale())
	case icego.Date:
		return fmt.Sprintf("d%d", int64(v))
	case icego.Time:
		return fmt.Sprintf("us%d", int64(v))
	case icego.Timestamp:
		return fmt.Sprintf("us%d", int64(v))
	case icego.TimestampNano:
		return fmt.Sprintf("ns%d", int64(v))
	case uuid.UUID:
		return "x" + hex.EncodeToString(v[:])
	case []byte:
		return "x" + hex.EncodeToString(v)
	default:
		return v
	}
}

// PortableRows are the live rows of a branch under the current schema.
func (tb *Table) PortableRows(branch string) []map[string]any {
	head := tb.Head(branch)
	if head == nil {
		return nil
	}
	var out []map[string]any
	for _, r := range head.Rows {
		out = append(out, Portable(tb.Schema(), tb.rows[r]))
	}
	return out
}
