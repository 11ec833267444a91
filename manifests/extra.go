package manifests

import (
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/manifests/avro"
)

// extraValue is the value of a field this package does not know, as read.
type extraValue struct {
	field *avro.Field
	raw   []byte
}

// extraFields collects fields that are not of the spec, to be written behind
// those that are, each optional (F087).
type extraFields []avro.Field

// add makes room for a field. One of the same id, or without id of the same
// name, is the same field and must be of the same type.
func (x *extraFields) add(f *avro.Field, taken []avro.Field) error {
	for i := range *x {
		if g := &(*x)[i]; sameField(g, f) {
			if !avro.SameEncoding(g.Type, avro.Nullable(f.Type)) {
				return fault.New(fault.Unsupported, "field "+f.Name+" of unknown meaning is of different types in two files")
			}
			return nil
		}
	}
	if t := avro.Nullable(f.Type); t.NullBranch() >= 0 || t.Kind == avro.Null {
		name := f.Name
		for slices.ContainsFunc(append(slices.Clone(taken), *x...), func(g avro.Field) bool { return g.Name == name }) {
			name += "_"
		}
		g := avro.Field{Name: name, ID: f.ID, Type: t, Props: f.Props}
		if t.Kind == avro.Null || t.NullBranch() == 0 {
			g.Default = []byte("null")
		}
		*x = append(*x, g)
	}
	return nil
}

func sameField(a, b *avro.Field) bool {
	return a.ID == b.ID && (a.ID != avro.NoID || a.Name == b.Name)
}

// find is the position of the field, or -1.
func (x extraFields) find(f *avro.Field) int {
	return slices.IndexFunc(x, func(g avro.Field) bool { return sameField(&g, f) })
}

// appendExtra encodes a value read as type from for an extra field of type to.
func appendExtra(b []byte, to, from *avro.Node, raw []byte) []byte {
	if !avro.SameEncoding(to, from) {
		// to is the nullable form of from, null first.
		if from.Kind == avro.Union {
			i, p := avro.ReadLong(raw, 0)
			return append(avro.AppendLong(b, i+1), raw[p:]...)
		}
		b = avro.AppendLong(b, 1)
	}
	return append(b, raw...)
}

// appendNull encodes null for an extra field.
func appendNull(b []byte, to *avro.Node) []byte {
	if to.Kind == avro.Null {
		return b
	}
	return avro.AppendLong(b, int64(to.NullBranch()))
}
