package iceberg

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// MaxFormatVersion is the highest table format version this program handles.
const MaxFormatVersion = 3

// ParseMetadata reads table metadata, plain or compressed. Unknown fields,
// operations and blob types are kept; a format version above MaxFormatVersion
// and types that are not known are fault.Unsupported; anything that contradicts
// itself or the specification in a way that could mislead a commit is
// fault.Corrupt. The result refers to stored, which must not be modified.
func ParseMetadata(stored []byte) (*Metadata, error) {
	m, err := parseMetadata(stored)
	return m, fault.In("read table metadata", err)
}

func parseMetadata(stored []byte) (m *Metadata, err error) {
	defer func() {
		// The types library panics on some contradictions, for example between a
		// schema's identifier fields and its columns.
		if p := recover(); p != nil {
			m, err = nil, fault.New(fault.Corrupt, fmt.Sprintf("metadata is inconsistent: %v", p))
		}
	}()
	raw, _, err := Decompress(stored)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Corrupt, "metadata is not valid UTF-8")
	}
	p := parser{m: &Metadata{raw: raw, Properties: map[string]string{}, Refs: map[string]Ref{}}, fields: map[string][]byte{}}
	err = rawjson.EachMember(raw, func(key, value []byte) error {
		if !rawjson.IsNull(value) { // null is absent, whatever the field
			p.fields[string(key)] = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{p.version, p.scalars, p.schemas, p.specs, p.orders, p.snapshots, p.m.index, p.logs, p.refs, p.files, p.verify} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.m, nil
}

type parser struct {
	m      *Metadata
	fields map[string][]byte
}

func missing(key string) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("field %q is missing", key))
}

func inField(key string, err error) error {
	if err == nil {
		return nil
	}
	return fault.In(fmt.Sprintf("field %q", key), err)
}

// number reads an integer field. Required fields must be there.
func (p *parser) number(key string, needed bool, to *int64) error {
	raw, ok := p.fields[key]
	if !ok {
		if needed {
			return missing(key)
		}
		return nil
	}
	n, err := rawjson.Int64(raw)
	*to = n
	return inField(key, err)
}

// small reads a non-negative integer field of 32 bits.
func (p *parser) small(key string, needed bool, to *int32) error {
	n := int64(*to)
	if err := p.number(key, needed, &n); err != nil {
		return err
	}
	if n < 0 || n > 1<<31-1 {
		return inField(key, fault.New(fault.Corrupt, fmt.Sprintf("%d is out of range", n)))
	}
	*to = int32(n)
	return nil
}

func (p *parser) text(key string, needed bool, to *string) error {
	raw, ok := p.fields[key]
	if !ok {
		if needed {
			return missing(key)
		}
		return nil
	}
	s, err := rawjson.String(raw)
	*to = s
	return inField(key, err)
}

func (p *parser) each(key string, see func(raw []byte) error) error {
	raw, ok := p.fields[key]
	if !ok {
		return nil
	}
	return inField(key, rawjson.EachElement(raw, func(n int, value []byte) error {
		if err := see(value); err != nil {
			return fault.In(fmt.Sprintf("element %d", n), err)
		}
		return nil
	}))
}

func (p *parser) version() error {
	var v int64
	if err := p.number("format-version", true, &v); err != nil {
		return err
	}
	if v < 1 {
		return inField("format-version", fault.New(fault.Corrupt, fmt.Sprintf("there is no version %d", v)))
	}
	if v > MaxFormatVersion {
		return fault.New(fault.Unsupported, fmt.Sprintf("table has format version %d; versions above %d are not handled", v, MaxFormatVersion))
	}
	p.m.FormatVersion = int(v)
	return nil
}

func (p *parser) scalars() error {
	m := p.m
	v2 := m.FormatVersion >= 2
	var id string
	var seq int64
	if err := firstError(
		p.text("table-uuid", v2, &id),
		p.text("location", true, &m.Location),
		p.number("last-sequence-number", v2, &seq),
		p.number("last-updated-ms", true, &m.LastUpdatedMs),
		p.small("last-column-id", true, (*int32)(&m.LastColumnID)),
	); err != nil {
		return err
	}
	if m.Location == "" {
		return inField("location", fault.New(fault.Corrupt, "it is empty"))
	}
	if seq < 0 {
		return inField("last-sequence-number", fault.New(fault.Corrupt, fmt.Sprintf("%d is negative", seq)))
	}
	if v2 {
		m.LastSequenceNumber = SeqNum(seq)
	}
	if id != "" {
		var err error
		if m.UUID, err = parseUUID(id); err != nil {
			return inField("table-uuid", err)
		}
	}
	if err := p.rowID(); err != nil {
		return err
	}
	return p.properties()
}

func (p *parser) rowID() error {
	if p.m.FormatVersion < 3 {
		return nil
	}
	var next int64
	if err := p.number("next-row-id", true, &next); err != nil {
		return err
	}
	if next < 0 {
		return inField("next-row-id", fault.New(fault.Corrupt, fmt.Sprintf("%d is negative", next)))
	}
	p.m.NextRowID = &next
	return nil
}

func (p *parser) properties() error {
	raw, ok := p.fields["properties"]
	if !ok {
		return nil
	}
	return inField("properties", rawjson.EachMember(raw, func(key, value []byte) error {
		if rawjson.IsNull(value) {
			return nil
		}
		text, err := rawjson.String(value)
		p.m.Properties[string(key)] = text
		return fault.In(string(key), err)
	}))
}

// schemas reads "schemas", or in v1 the older "schema".
func (p *parser) schemas() error {
	m := p.m
	if _, ok := p.fields["schemas"]; !ok {
		raw, old := p.fields["schema"]
		if m.FormatVersion >= 2 || !old {
			return missing("schemas")
		}
		s, err := parseSchema(raw)
		if err != nil {
			return inField("schema", err)
		}
		m.Schemas, m.CurrentSchemaID = []*icego.Schema{s}, SchemaID(s.ID)
		return nil
	}
	if err := p.small("current-schema-id", true, (*int32)(&m.CurrentSchemaID)); err != nil {
		return err
	}
	err := p.each("schemas", func(raw []byte) error {
		s, err := parseSchema(raw)
		if err != nil {
			return err
		}
		if _, ok := m.Schema(SchemaID(s.ID)); ok {
			return fault.New(fault.Corrupt, fmt.Sprintf("schema id %d occurs twice", s.ID))
		}
		m.Schemas = append(m.Schemas, s)
		return nil
	})
	if err != nil {
		return err
	}
	if _, ok := m.Schema(m.CurrentSchemaID); !ok {
		return inField("current-schema-id", fault.New(fault.Corrupt, fmt.Sprintf("there is no schema %d", m.CurrentSchemaID)))
	}
	return nil
}

// specs reads "partition-specs", or in v1 the older "partition-spec".
func (p *parser) specs() error {
	m := p.m
	if _, ok := p.fields["partition-specs"]; !ok {
		raw, old := p.fields["partition-spec"]
		if m.FormatVersion >= 2 || !old {
			return missing("partition-specs")
		}
		spec, err := parseSpec([]byte(`{"spec-id":0,"fields":` + string(raw) + `}`))
		if err != nil {
			return inField("partition-spec", err)
		}
		m.Specs = []icego.PartitionSpec{spec}
		return p.lastPartitionID()
	}
	if err := p.small("default-spec-id", true, (*int32)(&m.DefaultSpecID)); err != nil {
		return err
	}
	err := p.each("partition-specs", func(raw []byte) error {
		spec, err := parseSpec(raw)
		if err != nil {
			return err
		}
		if _, ok := m.Spec(SpecID(spec.ID())); ok {
			return fault.New(fault.Corrupt, fmt.Sprintf("spec id %d occurs twice", spec.ID()))
		}
		m.Specs = append(m.Specs, spec)
		return nil
	})
	if err != nil {
		return err
	}
	if _, ok := m.Spec(m.DefaultSpecID); !ok {
		return inField("default-spec-id", fault.New(fault.Corrupt, fmt.Sprintf("there is no partition spec %d", m.DefaultSpecID)))
	}
	return p.lastPartitionID()
}

func (p *parser) lastPartitionID() error {
	last := icego.PartitionDataIDStart - 1
	for i := range p.m.Specs {
		last = max(last, p.m.Specs[i].LastAssignedFieldID())
	}
	p.m.LastPartitionID = FieldID(last)
	return p.small("last-partition-id", p.m.FormatVersion >= 2, (*int32)(&p.m.LastPartitionID))
}

func parseSpec(raw []byte) (icego.PartitionSpec, error) {
	var spec icego.PartitionSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return spec, fault.Wrap(fault.Corrupt, "read a partition spec", err)
	}
	for _, f := range spec.Fields() {
		if f.FieldID < 0 || f.FieldID > icego.MaxStructFieldID {
			return spec, fault.New(fault.Corrupt, fmt.Sprintf("partition field id %d is out of range", f.FieldID))
		}
	}
	if spec.ID() > 1<<31-1 {
		return spec, fault.New(fault.Corrupt, fmt.Sprintf("spec id %d is out of range", spec.ID()))
	}
	return spec, nil
}

func (p *parser) orders() error {
	m := p.m
	if _, ok := p.fields["sort-orders"]; !ok {
		if m.FormatVersion >= 2 {
			return missing("sort-orders")
		}
		m.SortOrders = []SortOrder{{}}
		return nil
	}
	if err := p.small("default-sort-order-id", true, (*int32)(&m.DefaultSortOrderID)); err != nil {
		return err
	}
	seen := map[SortOrderID]bool{}
	err := p.each("sort-orders", func(raw []byte) error {
		o, err := parseSortOrder(raw)
		if err != nil {
			return err
		}
		if seen[o.ID] {
			return fault.New(fault.Corrupt, fmt.Sprintf("sort order id %d occurs twice", o.ID))
		}
		seen[o.ID] = true
		m.SortOrders = append(m.SortOrders, o)
		return nil
	})
	if err != nil {
		return err
	}
	if _, ok := m.SortOrder(m.DefaultSortOrderID); !ok {
		return inField("default-sort-order-id", fault.New(fault.Corrupt, fmt.Sprintf("there is no sort order %d", m.DefaultSortOrderID)))
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
