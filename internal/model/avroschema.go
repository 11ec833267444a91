package model

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

const nullable = `["null",%s]`

func avroField(name string, id int, typ string) string {
	if strings.HasPrefix(typ, `["null"`) {
		return fmt.Sprintf(`{"name":%q,"type":%s,"default":null,"field-id":%d}`, name, typ, id)
	}
	return fmt.Sprintf(`{"name":%q,"type":%s,"field-id":%d}`, name, typ, id)
}

func optional(typ string) string { return fmt.Sprintf(nullable, typ) }

func avroMap(key, value int, typ string) string {
	return optional(fmt.Sprintf(`{"type":"array","items":{"type":"record","name":"k%d_v%d","fields":[%s,%s]},"logicalType":"map"}`,
		key, value, avroField("key", key, `"int"`), avroField("value", value, typ)))
}

func avroList(element int, typ string) string {
	return optional(fmt.Sprintf(`{"type":"array","items":%s,"element-id":%d}`, typ, element))
}

// listSchema is the Avro schema of a manifest list.
func listSchema(version int, st Style) string {
	files := [3]string{"added_files_count", "existing_files_count", "deleted_files_count"}
	if st.LegacyNames {
		files = [3]string{"added_data_files_count", "existing_data_files_count", "deleted_data_files_count"}
	}
	count, rows := `"int"`, `"long"`
	if version == 1 {
		count, rows = optional(count), optional(rows)
	}
	summary := `{"type":"record","name":"r508","fields":[` + strings.Join([]string{
		avroField("contains_null", 509, `"boolean"`), avroField("contains_nan", 518, optional(`"boolean"`)),
		avroField("lower_bound", 510, optional(`"bytes"`)), avroField("upper_bound", 511, optional(`"bytes"`)),
	}, ",") + `]}`
	fields := []string{
		avroField("manifest_path", 500, `"string"`), avroField("manifest_length", 501, `"long"`), avroField("partition_spec_id", 502, `"int"`),
	}
	if version >= 2 {
		fields = append(fields, avroField("content", 517, `"int"`), avroField("sequence_number", 515, `"long"`), avroField("min_sequence_number", 516, `"long"`))
	}
	fields = append(fields, avroField("added_snapshot_id", 503, `"long"`),
		avroField(files[0], 504, count), avroField(files[1], 505, count), avroField(files[2], 506, count))
	if version == 1 {
		fields = append(fields, avroField("partitions", 507, avroList(508, summary)))
	}
	fields = append(fields, avroField("added_rows_count", 512, rows), avroField("existing_rows_count", 513, rows), avroField("deleted_rows_count", 514, rows))
	if version >= 2 {
		fields = append(fields, avroField("partitions", 507, avroList(508, summary)))
	}
	fields = append(fields, avroField("key_metadata", 519, optional(`"bytes"`)))
	if version >= 3 {
		fields = append(fields, avroField("first_row_id", 520, optional(`"long"`)))
	}
	return `{"type":"record","name":"manifest_file","fields":[` + strings.Join(fields, ",") + `]}`
}

// entrySchema is the Avro schema of a manifest.
func entrySchema(version int, st Style, partition *icego.StructType) (string, error) {
	var parts []string
	for _, f := range partition.FieldList {
		typ, err := avroPartitionType(f.Type, f.ID)
		if err != nil {
			return "", err
		}
		parts = append(parts, avroField(avroName(f.Name), f.ID, optional(typ)))
	}
	var fields []string
	if version >= 2 {
		fields = append(fields, avroField("content", 134, `"int"`))
	}
	fields = append(fields, avroField("file_path", 100, `"string"`), avroField("file_format", 101, `"string"`),
		avroField("partition", 102, `{"type":"record","name":"r102","fields":[`+strings.Join(parts, ",")+`]}`),
		avroField("record_count", 103, `"long"`), avroField("file_size_in_bytes", 104, `"long"`))
	if version == 1 {
		fields = append(fields, avroField("block_size_in_bytes", 105, `"long"`))
	}
	fields = append(fields, avroField("column_sizes", 108, avroMap(117, 118, `"long"`)), avroField("value_counts", 109, avroMap(119, 120, `"long"`)),
		avroField("null_value_counts", 110, avroMap(121, 122, `"long"`)), avroField("nan_value_counts", 137, avroMap(138, 139, `"long"`)),
		avroField("lower_bounds", 125, avroMap(126, 127, `"bytes"`)), avroField("upper_bounds", 128, avroMap(129, 130, `"bytes"`)),
		avroField("key_metadata", 131, optional(`"bytes"`)), avroField("split_offsets", 132, avroList(133, `"long"`)))
	if version >= 2 {
		fields = append(fields, avroField("equality_ids", 135, avroList(136, `"int"`)))
	}
	fields = append(fields, avroField("sort_order_id", 140, optional(`"int"`)))
	if version >= 3 {
		fields = append(fields, avroField("first_row_id", 142, optional(`"long"`)))
	}
	if version >= 3 || version == 2 && st.ReferencedInV2 {
		fields = append(fields, avroField("referenced_data_file", 143, optional(`"string"`)))
	}
	if version >= 3 {
		fields = append(fields, avroField("content_offset", 144, optional(`"long"`)), avroField("content_size_in_bytes", 145, optional(`"long"`)))
	}
	if st.UnknownField {
		fields = append(fields, avroField("vendor_note", unknownFieldID, optional(`"string"`)))
	}
	entry := []string{avroField("status", 0, `"int"`), avroField("snapshot_id", 1, optional(`"long"`))}
	if version >= 2 {
		entry = append(entry, avroField("sequence_number", 3, optional(`"long"`)), avroField("file_sequence_number", 4, optional(`"long"`)))
	}
	entry = append(entry, avroField("data_file", 2, `{"type":"record","name":"r2","fields":[`+strings.Join(fields, ",")+`]}`))
	return `{"type":"record","name":"manifest_entry","fields":[` + strings.Join(entry, ",") + `]}`, nil
}

// unknownFieldID is the id of the field that Style.UnknownField adds.
const unknownFieldID = 9001

// avroName makes a partition field's name legal in Avro, as Java does (F064).
func avroName(name string) string {
	var b strings.Builder
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= '0' && c <= '9' && i > 0:
			b.WriteRune(c)
		case c >= '0' && c <= '9':
			fmt.Fprintf(&b, "_%c", c)
		default:
			fmt.Fprintf(&b, "_x%X", c)
		}
	}
	return b.String()
}

func avroPartitionType(t icego.Type, id int) (string, error) {
	switch t := t.(type) {
	case icego.BooleanType:
		return `"boolean"`, nil
	case icego.Int32Type:
		return `"int"`, nil
	case icego.Int64Type:
		return `"long"`, nil
	case icego.Float32Type:
		return `"float"`, nil
	case icego.Float64Type:
		return `"double"`, nil
	case icego.StringType:
		return `"string"`, nil
	case icego.BinaryType:
		return `"bytes"`, nil
	case icego.DateType:
		return `{"type":"int","logicalType":"date"}`, nil
	case icego.TimeType:
		return `{"type":"long","logicalType":"time-micros"}`, nil
	case icego.TimestampType:
		return `{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":false}`, nil
	case icego.TimestampTzType:
		return `{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true}`, nil
	case icego.TimestampNsType:
		return `{"type":"long","logicalType":"timestamp-nanos","adjust-to-utc":false}`, nil
	case icego.TimestampTzNsType:
		return `{"type":"long","logicalType":"timestamp-nanos","adjust-to-utc":true}`, nil
	case icego.UUIDType:
		return fmt.Sprintf(`{"type":"fixed","name":"uuid_%d","size":16,"logicalType":"uuid"}`, id), nil
	case icego.FixedType:
		return fmt.Sprintf(`{"type":"fixed","name":"fixed_%d","size":%d}`, id, t.Len()), nil
	case icego.DecimalType:
		size := decimalBytes(t.Precision())
		return fmt.Sprintf(`{"type":"fixed","name":"decimal_%d","size":%d,"logicalType":"decimal","precision":%d,"scale":%d}`,
			id, size, t.Precision(), t.Scale()), nil
	case icego.UnknownType:
		return `"int"`, nil // always null
	}
	return "", fault.New(fault.Unsupported, "partition values of type "+t.String()+" are not written")
}

// decimalBytes is the smallest number of bytes that holds precision digits.
func decimalBytes(precision int) int {
	bits := int(float64(precision)*3.3219280948873623) + 1
	return bits/8 + 1
}

// partitionValue encodes one field of a partition tuple.
func (b *avroBytes) partitionValue(t icego.Type, v Value) error {
	if v == nil {
		b.null()
		return nil
	}
	b.some()
	switch v := promote(t, v).(type) {
	case bool:
		b.boolean(v)
	case int32:
		b.long(int64(v))
	case int64:
		b.long(v)
	case float32:
		b.float(v)
	case float64:
		b.double(v)
	case icego.Date:
		b.long(int64(v))
	case icego.Time:
		b.long(int64(v))
	case icego.Timestamp:
		b.long(int64(v))
	case icego.TimestampNano:
		b.long(int64(v))
	case string:
		b.str(v)
	case []byte:
		if _, fixed := t.(icego.FixedType); fixed {
			b.fixed(v)
		} else {
			b.bytes(v)
		}
	case icego.Decimal:
		dt, ok := t.(icego.DecimalType)
		if !ok {
			return fault.New(fault.Unsupported, "decimal partition value for "+t.String())
		}
		raw := make([]byte, decimalBytes(dt.Precision()))
		n := v.Val.BigInt()
		if n.Sign() < 0 { // two's complement of the fixed width
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
		}
		n.FillBytes(raw)
		b.fixed(raw)
	case uuid.UUID:
		b.fixed(v[:])
	default:
		return fault.New(fault.Unsupported, fmt.Sprintf("partition value %v (%T) for %s", v, v, t))
	}
	return nil
}

// specJSON is the spec's fields as manifests carry them.
func specJSON(spec icego.PartitionSpec) ([]byte, error) {
	type field struct {
		Name      string          `json:"name"`
		Transform string          `json:"transform"`
		Source    int             `json:"source-id"`
		ID        iceberg.FieldID `json:"field-id"`
	}
	fields := []field{}
	for i := range spec.NumFields() {
		f := spec.Field(i)
		fields = append(fields, field{f.Name, f.Transform.String(), f.SourceID(), iceberg.FieldID(f.FieldID)})
	}
	return json.Marshal(fields)
}
