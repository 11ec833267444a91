package iceberg

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// parseSchema reads one schema. The text is looked over first, so that a type
// of a later format is fault.Unsupported and not taken for damage.
func parseSchema(raw []byte) (*icego.Schema, error) {
	if err := checkType(raw); err != nil {
		return nil, err
	}
	s := new(icego.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "read a schema", err)
	}
	if s.ID < 0 || s.ID > 1<<31-1 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("schema id %d is out of range", s.ID))
	}
	return s, nil
}

var primitives = map[string]bool{
	"boolean": true, "int": true, "long": true, "float": true, "double": true, "date": true, "time": true,
	"timestamp": true, "timestamptz": true, "timestamp_ns": true, "timestamptz_ns": true, "string": true,
	"uuid": true, "binary": true, "unknown": true, "variant": true,
}

var (
	parametric = regexp.MustCompile(`^(fixed\[[0-9]{1,9}\]|decimal\( *[0-9]{1,2} *, *[0-9]{1,2} *\))$`)
	geographic = regexp.MustCompile(`(?i)^(geometry|geography)( *\(.*\))?$`)
)

// checkType looks at a type as JSON: a name, or an object for nested ones.
func checkType(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		name, err := rawjson.String(raw)
		if err != nil {
			return err
		}
		if primitives[name] || parametric.MatchString(name) || geographic.MatchString(name) {
			return nil
		}
		return fault.New(fault.Unsupported, fmt.Sprintf("column type %q is not known", name))
	}
	kind := ""
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		switch string(key) {
		case "type":
			var err error
			kind, err = rawjson.String(value)
			return err
		case "fields":
			return rawjson.EachElement(value, func(_ int, field []byte) error { return checkField(field) })
		case "element", "key", "value":
			return checkType(value)
		case "element-id", "key-id", "value-id":
			return checkFieldID(value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch kind {
	case "struct", "list", "map":
		return nil
	case "":
		return fault.New(fault.Corrupt, "type of a schema or nested column is missing")
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("column type %q is not known", kind))
}

func checkField(raw []byte) error {
	name := ""
	return rawjson.EachMember(raw, func(key, value []byte) error {
		var err error
		switch string(key) {
		case "name":
			name, err = rawjson.String(value)
		case "id":
			err = checkFieldID(value)
		case "type":
			err = checkType(value)
		}
		if err == nil {
			return nil
		}
		return fault.In(strings.TrimSpace("column "+name), err)
	})
}

func checkFieldID(raw []byte) error {
	id, err := rawjson.Int32(raw)
	if err == nil && (id < 0 || id > icego.MaxStructFieldID) {
		err = fault.New(fault.Corrupt, fmt.Sprintf("field id %d is out of range", id))
	}
	return err
}

func parseSortOrder(raw []byte) (SortOrder, error) {
	var o SortOrder
	given := false
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		switch string(key) {
		case "order-id":
			id, err := rawjson.Int32(value)
			o.ID, given = SortOrderID(id), true
			return inField("order-id", err)
		case "fields":
			return inField("fields", rawjson.EachElement(value, func(_ int, field []byte) error {
				f, err := parseSortField(field)
				o.Fields = append(o.Fields, f)
				return err
			}))
		}
		return nil
	})
	switch {
	case err != nil:
		return o, err
	case !given:
		return o, missing("order-id")
	case o.ID < 0:
		return o, inField("order-id", fault.New(fault.Corrupt, fmt.Sprintf("%d is negative", o.ID)))
	case o.ID == 0 && len(o.Fields) > 0:
		return o, fault.New(fault.Corrupt, "sort order 0 has fields, but means unsorted")
	}
	return o, nil
}

func parseSortField(raw []byte) (SortField, error) {
	var f SortField
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		var err error
		switch string(key) {
		case "source-id":
			var id int32
			id, err = rawjson.Int32(value)
			f.SourceIDs = []FieldID{FieldID(id)}
		case "source-ids":
			f.SourceIDs = nil
			err = rawjson.EachElement(value, func(_ int, value []byte) error {
				id, err := rawjson.Int32(value)
				f.SourceIDs = append(f.SourceIDs, FieldID(id))
				return err
			})
		case "transform":
			var text string
			if text, err = rawjson.String(value); err == nil {
				f.Transform, err = icego.ParseTransform(text)
				err = fault.Wrap(fault.Corrupt, "read a transform", err)
			}
		case "direction":
			f.Descending, err = either(value, "asc", "desc")
		case "null-order":
			f.NullsLast, err = either(value, "nulls-first", "nulls-last")
		}
		return inField(string(key), err)
	})
	switch {
	case err != nil:
		return f, err
	case len(f.SourceIDs) == 0:
		return f, missing("source-id")
	case f.Transform == nil:
		return f, missing("transform")
	}
	return f, nil
}

// either reads one of two words, without regard to case, and reports whether it
// is the second.
func either(raw []byte, first, second string) (bool, error) {
	text, err := rawjson.String(raw)
	if err != nil {
		return false, err
	}
	if strings.EqualFold(text, second) {
		return true, nil
	}
	if !strings.EqualFold(text, first) {
		return false, fault.New(fault.Corrupt, fmt.Sprintf("%q is neither %s nor %s", text, first, second))
	}
	return false, nil
}
