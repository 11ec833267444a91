package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// document is table metadata as raw JSON. It is edited field by field, so what
// the model does not know stays as it is.
type document map[string]any

func parseDocument(data []byte) (document, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out document
	if err := d.Decode(&out); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "parse table metadata", err)
	}
	return out, nil
}

func (d document) encode() ([]byte, error) {
	out, err := json.Marshal(d)
	return out, fault.Wrap(fault.Halt, "encode table metadata", err)
}

// clone copies the document through its text, so numbers are json.Number again.
func (d document) clone() (document, error) {
	data, err := d.encode()
	if err != nil {
		return nil, err
	}
	return parseDocument(data)
}

func number(v any) (int64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}

// num is the number at key, 0 when absent.
func (d document) num(key string) int64 {
	n, _ := number(d[key])
	return n
}

func (d document) text(key string) string {
	s, _ := d[key].(string)
	return s
}

// objects are the objects of the array at key.
func (d document) objects(key string) []document {
	list, _ := d[key].([]any)
	var out []document
	for _, e := range list {
		if o, ok := e.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// object is the object at key, nil when absent.
func (d document) object(key string) document {
	o, _ := d[key].(map[string]any)
	return o
}

// push appends to the array at key.
func (d document) push(key string, v any) {
	list, _ := d[key].([]any)
	d[key] = append(slices.Clip(list), v)
}

func (d document) version() int { return int(d.num("format-version")) }

// decodeInto reads part of the document into a type of iceberg-go.
func decodeInto(part, to any) error {
	data, err := json.Marshal(part)
	if err != nil {
		return fault.Wrap(fault.Halt, "encode part of table metadata", err)
	}
	return fault.Wrap(fault.Corrupt, "parse part of table metadata", json.Unmarshal(data, to))
}

// toAny makes a value that json encodes into one of maps and slices.
func toAny(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "encode part of table metadata", err)
	}
	var out any
	err = decodeNumbers(data, &out)
	return out, err
}

// decodeNumbers decodes JSON with numbers as they are written.
func decodeNumbers(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return fault.Wrap(fault.Halt, "encode part of table metadata", d.Decode(to))
}

func (d document) schemas() ([]*icego.Schema, error) {
	parts := d.objects("schemas")
	if len(parts) == 0 && d.object("schema") != nil {
		parts = []document{d.object("schema")}
	}
	var out []*icego.Schema
	for _, p := range parts {
		s := &icego.Schema{}
		if err := decodeInto(p, s); err != nil {
			return nil, err
		}
		s.ID = int(p.num("schema-id"))
		out = append(out, exactDefaults(s, p))
	}
	return out, nil
}

// exactDefaults puts the numbers of top-level default values back as they are
// written; decoding a schema rounds them.
func exactDefaults(s *icego.Schema, part document) *icego.Schema {
	fields := slices.Clone(s.Fields())
	for i, f := range part.objects("fields") {
		if v, ok := f["initial-default"]; ok {
			fields[i].InitialDefault = v
		}
		if v, ok := f["write-default"]; ok {
			fields[i].WriteDefault = v
		}
	}
	return icego.NewSchemaWithIdentifiers(s.ID, s.IdentifierFieldIDs, fields...)
}

func (d document) specs() ([]icego.PartitionSpec, error) {
	parts := d.objects("partition-specs")
	if len(parts) == 0 {
		parts = []document{{"spec-id": int64(0), "fields": d["partition-spec"]}}
	}
	var out []icego.PartitionSpec
	for _, p := range parts {
		var fields []icego.PartitionField
		if err := decodeInto(p["fields"], &fields); err != nil {
			return nil, err
		}
		out = append(out, icego.NewPartitionSpecID(int(p.num("spec-id")), fields...))
	}
	return out, nil
}

// snapshot is the snapshot's object, nil when there is none.
func (d document) snapshot(id iceberg.SnapshotID) document {
	for _, s := range d.objects("snapshots") {
		if s.num("snapshot-id") == int64(id) {
			return s
		}
	}
	return nil
}

// Ref is a branch or a tag.
type Ref struct {
	Name     string
	Snapshot iceberg.SnapshotID
	Tag      bool
}

// refs are the refs of the metadata in order of their names. Metadata without
// refs has main at its current snapshot.
func (d document) refs() []Ref {
	var out []Ref
	for name := range d.object("refs") {
		r := d.object("refs").object(name)
		out = append(out, Ref{Name: name, Snapshot: iceberg.SnapshotID(r.num("snapshot-id")), Tag: r.text("type") == "tag"})
	}
	main := slices.ContainsFunc(out, func(r Ref) bool { return r.Name == "main" })
	if cur, ok := number(d["current-snapshot-id"]); ok && cur > 0 && !main {
		out = append(out, Ref{Name: "main", Snapshot: iceberg.SnapshotID(cur)})
	}
	slices.SortFunc(out, func(a, b Ref) int { return cmpString(a.Name, b.Name) })
	return out
}

func (d document) ref(name string) (Ref, bool) {
	for _, r := range d.refs() {
		if r.Name == name {
			return r, true
		}
	}
	return Ref{}, false
}

// setRef points a ref at a snapshot and keeps its other fields.
func (d document) setRef(name string, id iceberg.SnapshotID, kind string) {
	refs := d.object("refs")
	if refs == nil {
		refs = document{}
		d["refs"] = map[string]any(refs)
	}
	r := refs.object(name)
	if r == nil {
		r = document{}
		refs[name] = map[string]any(r)
	}
	r["snapshot-id"], r["type"] = int64(id), kind
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func badRef(name string) error {
	return fault.New(fault.Stale, fmt.Sprintf("there is no ref %q", name))
}
