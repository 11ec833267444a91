package model

import (
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
)

// ReaderGap names what keeps iceberg-go v0.7.0 from reading a view rightly,
// empty when nothing is known to. Such views are judged by Physical alone.
func (tb *Table) ReaderGap(v View) string {
	s, schema, err := tb.resolveView(v)
	if err != nil || s == nil {
		return ""
	}
	for _, m := range s.Manifests {
		switch {
		case m.Style.UnknownField:
			return "it refuses manifests with fields it does not know"
		case m.Style.DeletesAsData && m.Deletes:
			return "it refuses delete manifests that are labelled data"
		case (m.Style.Ours || m.foreign) && tb.namesTypeTwice(m.Spec):
			return "it loses the logical type of a partition field whose Avro type an earlier field has named"
		}
	}
	for _, e := range s.DataFiles() {
		if gap := tb.fileGap(s, schema, e); gap != "" {
			return gap
		}
	}
	return ""
}

func (tb *Table) fileGap(s *Snapshot, schema *icego.Schema, e *Entry) string {
	if len(e.File.Written) == 0 {
		return ""
	}
	written := e.File.Written[0]
	if len(tb.physicalRow(e, 0)) != len(written) {
		return "it reads an identity partition column that is not in the file as null"
	}
	if e.File.schema != nil && emptied(&icego.StructType{FieldList: schema.Fields()}, &icego.StructType{FieldList: e.File.schema.Fields()}) {
		return "it refuses structs of which a data file has no field that there is now"
	}
	for _, f := range schema.Fields() {
		if _, has := written[iceberg.FieldID(f.ID)]; has || f.InitialDefault == nil {
			continue
		}
		if temporal(f.Type) {
			return "it refuses default values of dates and times in the form of the specification"
		}
		if n, ok := resolve(f, written).(int64); ok && (n > 1<<53 || n < -1<<53) {
			return "it rounds default values beyond 2^53"
		}
	}
	for _, d := range s.DeleteFiles() {
		if !tb.applies(s, d, e) {
			continue
		}
		if d.File.Spec == e.File.Spec && d.kinds != e.kinds {
			return "it tells the partitions of a promoted float column apart by the type in the manifest"
		}
		if d.File.Content == EqualityDeletes && tb.droppedStruct(schema, written) {
			return "it takes the wrong column for a key in files with a struct that was dropped"
		}
		for _, id := range d.File.KeyFields {
			if _, has := written[id]; !has {
				return "it refuses equality deletes over a column that a data file lacks"
			}
			if a, b := goType(e.File.Written, id), goType(d.File.Keys, id); a != "" && b != "" && a != b {
				return "it finds no equality delete of a promoted column in files written before"
			}
		}
	}
	return ""
}

// emptied says that a struct that is read has no field in common with what the
// file has of it.
func emptied(read, file icego.Type) bool {
	switch read := read.(type) {
	case *icego.StructType:
		st, ok := file.(*icego.StructType)
		if !ok {
			return false
		}
		common := 0
		for _, f := range read.FieldList {
			for _, old := range st.FieldList {
				if old.ID != f.ID {
					continue
				}
				common++
				if emptied(f.Type, old.Type) {
					return true
				}
			}
		}
		return common == 0
	case *icego.ListType:
		lt, ok := file.(*icego.ListType)
		return ok && emptied(read.Element, lt.Element)
	case *icego.MapType:
		mt, ok := file.(*icego.MapType)
		return ok && emptied(read.ValueType, mt.ValueType)
	}
	return false
}

// droppedStruct says that a file has a struct column that is not read.
func (tb *Table) droppedStruct(schema *icego.Schema, written Row) bool {
	for id := range written {
		_, nested := tb.fieldByID(id).Type.(*icego.StructType)
		if _, read := schema.FindFieldByID(int(id)); nested && !read {
			return true
		}
	}
	return false
}

// namesTypeTwice says that two fields of the spec have one decimal type, or are
// uuids. Java and package manifests name such a type once and refer to it.
func (tb *Table) namesTypeTwice(id iceberg.SpecID) bool {
	spec, ok := tb.SpecByID(id)
	if !ok {
		return false
	}
	seen := map[string]bool{}
	for _, f := range spec.PartitionType(tb.specSchema(spec)).FieldList {
		switch f.Type.(type) {
		case icego.DecimalType, icego.UUIDType:
			if seen[f.Type.String()] {
				return true
			}
			seen[f.Type.String()] = true
		}
	}
	return false
}

// goType is the Go type of a field's values in rows, empty if all are null.
func goType(rows []Row, id iceberg.FieldID) string {
	for _, row := range rows {
		if v := row[id]; v != nil {
			return fmt.Sprintf("%T", v)
		}
	}
	return ""
}

func temporal(t icego.Type) bool {
	switch t.(type) {
	case icego.DateType, icego.TimeType, icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		return true
	}
	return false
}
