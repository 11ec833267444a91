package iceberg

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
)

// Tuple are the partition values of a file, in the order of its spec. The zero
// Tuple is that of an unpartitioned file.
type Tuple struct {
	values []Value
	key    TupleKey
}

// TupleKey is a tuple in canonical form. Two tuples of one spec are the same
// partition exactly if their keys are equal. It is binary; as text it is
// base64url.
type TupleKey string

// PartitionKey names a partition of a table. Tuples of different specs never
// name the same partition (F070).
type PartitionKey struct {
	Spec  SpecID   `json:"spec-id"`
	Tuple TupleKey `json:"tuple"`
}

// MarshalText makes the key text.
func (k TupleKey) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, []byte(k)), nil
}

// UnmarshalText reads what MarshalText wrote.
func (k *TupleKey) UnmarshalText(b []byte) error {
	out, err := base64.RawURLEncoding.AppendDecode(nil, b)
	*k = TupleKey(out)
	return fault.Wrap(fault.Corrupt, "read a partition key", err)
}

// Len is the number of values.
func (t Tuple) Len() int { return len(t.values) }

// At is the value of field i of the spec.
func (t Tuple) At(i int) Value { return t.values[i] }

// Key is the tuple in canonical form.
func (t Tuple) Key() TupleKey { return t.key }

// Tuple makes a tuple of values by partition field id, as NewValue takes them.
// A field that is missing is null. The day of a day transform may be a date or a
// plain integer (F069).
func (t *PartitionType) Tuple(values map[FieldID]any) (Tuple, error) {
	return t.TupleAt(func(i int) any { return values[t.Fields[i].ID] })
}

// TupleAt makes a tuple of values by position in the spec.
func (t *PartitionType) TupleAt(at func(i int) any) (Tuple, error) {
	out := Tuple{values: make([]Value, len(t.Fields))}
	for i, f := range t.Fields {
		var err error
		if f.Result == nil {
			out.values[i], err = inferValue(at(i))
		} else {
			out.values[i], err = NewValue(f.Result, at(i))
		}
		if err != nil {
			return Tuple{}, fault.In(fmt.Sprintf("read partition field %q of spec %d", f.Name, t.Spec), err)
		}
	}
	out.key = keyFor(out.values)
	return out, nil
}

// keyFor writes per value a 0 for null, or a 1, the length and the bytes.
func keyFor(values []Value) TupleKey {
	var b []byte
	for _, v := range values {
		if v.IsNull() {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		b = binary.AppendUvarint(b, uint64(len(v.bits)))
		b = append(b, v.bits...)
	}
	return TupleKey(b)
}

// Decode reads a key made by a tuple of this spec. A field whose type the
// metadata does not tell is given as binary.
func (t *PartitionType) Decode(key TupleKey) (Tuple, error) {
	out := Tuple{values: make([]Value, len(t.Fields)), key: key}
	bad := fault.New(fault.Corrupt, fmt.Sprintf("partition key does not fit spec %d", t.Spec))
	rest := []byte(key)
	for i, f := range t.Fields {
		typ := f.Result
		if typ == nil {
			typ = icego.BinaryType{}
		}
		if len(rest) == 0 || rest[0] > 1 {
			return Tuple{}, bad
		}
		null := rest[0] == 0
		if rest = rest[1:]; null {
			out.values[i] = Null(typ)
			continue
		}
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return Tuple{}, bad
		}
		v, err := DecodeBound(typ, rest[used:used+int(n)])
		if err != nil {
			return Tuple{}, fault.In(fmt.Sprintf("read partition field %q of spec %d", f.Name, t.Spec), err)
		}
		out.values[i], rest = v, rest[used+int(n):]
	}
	if len(rest) > 0 || keyFor(out.values) != key {
		return Tuple{}, bad
	}
	return out, nil
}

// Text shows a tuple to people: "day=2024-01-02, c=null", or "" without fields.
func (t *PartitionType) Text(tuple Tuple) string {
	parts := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		parts[i] = f.Name + "=" + f.text(tuple.values[i])
	}
	return strings.Join(parts, ", ")
}

// Dir is the directory of a partition below the data location, as Iceberg's
// writers name it: "name=value/name=value" with names and values form-encoded.
// It is "" without fields.
func (t *PartitionType) Dir(tuple Tuple) string {
	parts := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		parts[i] = formEncode(f.Name) + "=" + formEncode(f.text(tuple.values[i]))
	}
	return strings.Join(parts, "/")
}

func (f PartitionField) text(v Value) string {
	if v.IsNull() {
		return "null"
	}
	if f.Result == nil {
		return v.String()
	}
	return f.Transform.ToHumanStrType(f.Result, v.Any())
}

// formEncode encodes as java.net.URLEncoder does, which differs from Go's in
// two characters.
func formEncode(s string) string {
	return strings.NewReplacer("%2A", "*", "~", "%7E").Replace(url.QueryEscape(s))
}
