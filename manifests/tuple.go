package manifests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// tupleReader turns partition records of one schema into tuples of one spec.
// Fields are matched by id; one that the record lacks is null.
type tupleReader struct {
	spec *iceberg.PartitionType
	rec  *avro.Node
	to   []int // field of the record -> field of the spec, or -1
	vals []any
	// Neighbours usually share their partition, and tuples are immutable.
	last  []byte
	tuple iceberg.Tuple
	fresh bool
	cache map[string]iceberg.Tuple
	err   error
}

// maxCachedTuples bounds the memory for tuples that come again.
const maxCachedTuples = 4096

func newTupleReader(rec *avro.Node, spec *iceberg.PartitionType, name string) (*tupleReader, error) {
	r := &tupleReader{spec: spec, rec: rec, vals: make([]any, len(spec.Fields)), cache: map[string]iceberg.Tuple{}}
	if rec == nil {
		if len(spec.Fields) > 0 {
			return nil, corrupt(name, "the schema lacks field partition")
		}
		return r, nil
	}
	r.to = make([]int, len(rec.Fields))
	for i := range r.to {
		r.to[i] = -1
	}
	for i, f := range spec.Fields {
		if at := fieldFor(rec, f); at >= 0 {
			r.to[at] = i
		}
	}
	return r, nil
}

// read decodes the record of type n at c. A tuple that does not fit the spec
// leaves the reason in r.err.
func (r *tupleReader) read(c *cursor, n *avro.Node) iceberg.Tuple {
	start := c.p
	if c.skip(n); c.p < 0 {
		return iceberg.Tuple{}
	}
	t, err := r.decode(n, c.b[start:c.p])
	if err != nil {
		r.err = err
		c.bad("partition")
	}
	return t
}

func (r *tupleReader) decode(n *avro.Node, raw []byte) (iceberg.Tuple, error) {
	if r.fresh && bytes.Equal(raw, r.last) {
		return r.tuple, nil
	}
	t, ok := r.cache[string(raw)]
	if !ok {
		var err error
		if t, err = r.make(n, raw); err != nil {
			return iceberg.Tuple{}, err
		}
		if len(r.cache) >= maxCachedTuples {
			clear(r.cache)
		}
		r.cache[string(raw)] = t
	}
	r.last, r.tuple, r.fresh = append(r.last[:0], raw...), t, true
	return t, nil
}

func (r *tupleReader) make(n *avro.Node, raw []byte) (iceberg.Tuple, error) {
	clear(r.vals)
	c := cursor{b: raw}
	if rec := c.value(n); rec != nil {
		for i := range rec.Fields {
			if r.to[i] < 0 {
				c.skip(rec.Fields[i].Type)
				continue
			}
			v, err := c.any(rec.Fields[i].Type)
			if err != nil {
				return iceberg.Tuple{}, fault.In(fmt.Sprintf("partition field %q", rec.Fields[i].Name), err)
			}
			r.vals[r.to[i]] = v
		}
	}
	return r.spec.TupleAt(func(i int) any { return r.vals[i] })
}

// any decodes a partition value into what iceberg.NewValue takes. Logical
// types count only for their unit: a plain int is as good a date (F069).
func (c *cursor) any(n *avro.Node) (any, error) {
	if n = c.value(n); n == nil {
		return nil, nil // null is a value
	}
	switch n.Kind {
	case avro.Boolean:
		var v bool
		v, c.p = avro.ReadBool(c.b, c.p)
		return v, nil
	case avro.Int, avro.Long:
		return instant(c.long(), n.Logical)
	case avro.Float:
		var v float32
		v, c.p = avro.ReadFloat(c.b, c.p)
		return v, nil
	case avro.Double:
		var v float64
		v, c.p = avro.ReadDouble(c.b, c.p)
		return v, nil
	case avro.String, avro.Enum:
		return string(c.bytes(n)), nil
	case avro.Bytes, avro.Fixed:
		return c.bytes(n), nil
	}
	return nil, fault.New(fault.Corrupt, fmt.Sprintf("an avro %s is no partition value", n.Kind))
}

func instant(v int64, logical string) (any, error) {
	switch logical {
	case "date":
		if v != int64(int32(v)) {
			return nil, fault.New(fault.Corrupt, "a date is out of range")
		}
		return icego.Date(v), nil
	case "time-millis", "timestamp-millis", "local-timestamp-millis":
		if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
			return nil, fault.New(fault.Corrupt, "a time in milliseconds is out of range")
		}
		if logical == "time-millis" {
			return v * 1000, nil
		}
		return icego.Timestamp(v * 1000), nil
	case "timestamp-micros", "local-timestamp-micros":
		return icego.Timestamp(v), nil
	case "timestamp-nanos", "local-timestamp-nanos":
		return icego.TimestampNano(v), nil
	}
	return v, nil
}

// tupleWriter encodes tuples for the partition record of a manifest.
type tupleWriter struct {
	spec  *iceberg.PartitionType
	node  *avro.Node
	types []icego.Type
}

func (w *tupleWriter) append(b []byte, t iceberg.Tuple) ([]byte, error) {
	if t.Len() != len(w.types) {
		return nil, fault.New(fault.Halt, fmt.Sprintf("a tuple of %d values for spec %d, which has %d fields", t.Len(), w.spec.Spec, len(w.types)))
	}
	for i, typ := range w.types {
		f := &w.node.Fields[i]
		v, err := w.value(t, i)
		if err == nil && f.Type.Kind == avro.Null {
			if !v.IsNull() {
				err = fault.New(fault.Unsupported, "a value of unknown type")
			}
		} else if err == nil {
			if b = avro.AppendLong(b, 0); !v.IsNull() {
				b[len(b)-1] = 2
				b, err = appendValue(b, typ, f.Type.Branches[1], v.Bytes())
			}
		}
		if err != nil {
			return nil, fault.In(fmt.Sprintf("write partition field %q of spec %d", w.spec.Fields[i].Name, w.spec.Spec), err)
		}
	}
	return b, nil
}

// value is the tuple's value in the type it is written as.
func (w *tupleWriter) value(t iceberg.Tuple, i int) (iceberg.Value, error) {
	v := t.At(i)
	if v.IsNull() || v.Type() == nil || v.Type().Equals(w.types[i]) {
		return v, nil
	}
	return iceberg.NewValue(w.types[i], v.Any())
}

// appendValue encodes a value in single-value serialisation as Avro.
func appendValue(b []byte, t icego.Type, n *avro.Node, bits []byte) ([]byte, error) {
	switch t.(type) {
	case icego.Int32Type, icego.DateType:
		return avro.AppendLong(b, int64(int32(binary.LittleEndian.Uint32(bits)))), nil
	case icego.Int64Type, icego.TimeType, icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		return avro.AppendLong(b, int64(binary.LittleEndian.Uint64(bits))), nil
	case icego.StringType, icego.BinaryType:
		return avro.AppendBytes(b, bits), nil
	case icego.DecimalType:
		if len(bits) > n.Size {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("a decimal of %d bytes for %s", len(bits), t))
		}
		fill := byte(0)
		if len(bits) > 0 && bits[0] >= 0x80 {
			fill = 0xff
		}
		for range n.Size - len(bits) {
			b = append(b, fill)
		}
	}
	// Booleans, floats, uuids and fixed are the same bytes in both.
	return append(b, bits...), nil
}

// summarizer makes the partition summaries of a manifest.
type summarizer struct {
	w      *tupleWriter
	fields []fieldSummarizer
}

type fieldSummarizer struct {
	null, nan, some bool
	unordered       bool
	lower, upper    iceberg.Value
}

func newSummarizer(w *tupleWriter) *summarizer {
	return &summarizer{w: w, fields: make([]fieldSummarizer, len(w.types))}
}

func (s *summarizer) add(t iceberg.Tuple) error {
	if t.Len() != len(s.fields) {
		return fault.New(fault.Halt, fmt.Sprintf("a tuple of %d values for spec %d, which has %d fields", t.Len(), s.w.spec.Spec, len(s.fields)))
	}
	for i := range s.fields {
		v, err := s.w.value(t, i)
		if err != nil {
			return fault.In(fmt.Sprintf("partition field %q", s.w.spec.Fields[i].Name), err)
		}
		s.fields[i].add(v)
	}
	return nil
}

func (f *fieldSummarizer) add(v iceberg.Value) {
	switch {
	case v.IsNull():
		f.null = true
	case isNaN(v):
		f.nan = true
	case !f.some:
		f.some, f.lower, f.upper = true, v, v
	default:
		below, err := v.Compare(f.lower)
		above, err2 := v.Compare(f.upper)
		f.unordered = f.unordered || err != nil || err2 != nil
		if below < 0 {
			f.lower = v
		}
		if above > 0 {
			f.upper = v
		}
	}
}

func isNaN(v iceberg.Value) bool {
	switch v.Type().(type) {
	case icego.Float32Type, icego.Float64Type:
		switch f := v.Any().(type) {
		case float32:
			return f != f
		case float64:
			return f != f
		}
	}
	return false
}

// summaries are empty, not null, for a spec without fields, as Java has it.
func (s *summarizer) summaries() []FieldSummary {
	out := make([]FieldSummary, len(s.fields))
	for i, f := range s.fields {
		out[i] = FieldSummary{ContainsNull: f.null, ContainsNaN: Some(f.nan)}
		if f.some && !f.unordered {
			out[i].Lower, out[i].Upper = f.lower.Bytes(), f.upper.Bytes()
		}
	}
	return out
}

// CompareTuples orders tuples of one spec field by field, nulls first, and
// tells equal partitions by 0. Values without an order are ordered by their
// bytes.
func CompareTuples(a, b iceberg.Tuple) int {
	for i := range min(a.Len(), b.Len()) {
		x, y := a.At(i), b.At(i)
		order, err := x.Compare(y)
		if err != nil {
			order = bytes.Compare(x.Bytes(), y.Bytes())
			if order == 0 && x.IsNull() != y.IsNull() {
				order = 1
				if x.IsNull() {
					order = -1
				}
			}
		}
		if order != 0 {
			return order
		}
	}
	return a.Len() - b.Len()
}
