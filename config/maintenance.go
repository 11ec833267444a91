package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/seaice/seaice/fault"
)

// maxMaintenanceBytes bounds the attribute; a full one has under a kilobyte.
const maxMaintenanceBytes = 1 << 20

// MaintenanceConfig is the S3 Tables maintenance configuration that holds for
// a table: the table's own laid over its bucket's, type by type.
type MaintenanceConfig struct {
	types map[string]maintenanceType
}

type maintenanceType struct {
	disabled bool
	// level is "table" or "bucket", where the type was configured.
	level  string
	values map[string]json.RawMessage
}

// ParseMaintenance reads the attributes s3tables.maintenance of a bucket and
// of one of its tables; either may be empty. What cannot be read is an error
// and not an empty configuration, because that would run what an operator
// switched off. Types this program does not know are ignored.
func ParseMaintenance(bucket, table []byte) (*MaintenanceConfig, error) {
	m := &MaintenanceConfig{types: map[string]maintenanceType{}}
	for _, in := range []struct {
		level string
		data  []byte
	}{{"bucket", bucket}, {"table", table}} {
		if err := m.overlay(in.level, in.data); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "read the maintenance configuration of the "+in.level, err)
		}
	}
	return m, nil
}

func (m *MaintenanceConfig) overlay(level string, data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if len(data) > maxMaintenanceBytes {
		return fmt.Errorf("it has %d bytes, more than %d", len(data), maxMaintenanceBytes)
	}
	var doc map[string]*struct {
		Status   string                                `json:"status"`
		Settings map[string]map[string]json.RawMessage `json:"settings"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	for name, entry := range doc {
		if entry == nil {
			continue
		}
		switch entry.Status {
		case "", "enabled", "disabled":
		default:
			return fmt.Errorf("%s has status %q; allowed are enabled and disabled", name, clip(entry.Status))
		}
		m.types[name] = maintenanceType{disabled: entry.Status == "disabled", level: level, values: entry.Settings[name]}
	}
	return nil
}

// Disabled reports whether the maintenance type that governs the operation is
// switched off.
func (m *MaintenanceConfig) Disabled(op Operation) bool {
	return m != nil && m.types[op.maintenanceType()].disabled
}

// value is the text of a field, "" if it is not set or its type is disabled.
func (m *MaintenanceConfig) value(p *Place) (text string, origin Origin) {
	if m == nil || p == nil {
		return "", Origin{}
	}
	t := m.types[p.Type]
	raw, ok := t.values[p.Name]
	if !ok || t.disabled {
		return "", Origin{}
	}
	origin = Origin{Source: FromMaintenance, Name: fmt.Sprintf("%s of the %s", p.Name, t.level)}
	text = strings.TrimSpace(string(raw))
	if text == "null" {
		return "", Origin{}
	}
	if unquoted, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		text = unquoted
	}
	if p.Name == "strategy" && text == "z-order" {
		text = string(ZOrder)
	}
	return text, origin
}
