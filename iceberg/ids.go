// Package iceberg is one table at one moment: the catalog record that points
// at it, its metadata with every byte it was read with, its snapshots and
// refs, its schemas over time, and where its files lie.
//
// Everything here is immutable once loaded. The package reads; only package
// commit moves a table's pointer. Upstream's iceberg-go is imported as icego
// and supplies types, schemas, specs and transforms.
package iceberg

import (
	"fmt"
	"strings"

	"github.com/seaice/seaice/fault"
)

// SnapshotID identifies a snapshot within its table. Positive; -1 in old
// metadata means "no snapshot".
type SnapshotID int64

// SchemaID identifies a schema within its table.
type SchemaID int32

// SpecID identifies a partition spec within its table.
type SpecID int32

// SortOrderID identifies a sort order within its table.
type SortOrderID int32

// FieldID identifies a column or a partition field.
type FieldID int32

// SeqNum is a sequence number; 0 for everything a v1 table wrote.
type SeqNum int64

// TableID names a table: its bucket, its namespace with parts joined by dots,
// as the filer's directory is, and its name.
type TableID struct {
	Bucket    string
	Namespace string
	Name      string
}

// ParseTableID reads "bucket/namespace/name".
func ParseTableID(s string) (TableID, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return TableID{}, fault.New(fault.Unsupported, fmt.Sprintf("table %q is not of the form bucket/namespace/table", s))
	}
	return TableID{Bucket: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}

// String is the form ParseTableID reads.
func (t TableID) String() string { return t.Bucket + "/" + t.Namespace + "/" + t.Name }

// MarshalText makes the id a plain string in JSON.
func (t TableID) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (t *TableID) UnmarshalText(b []byte) error {
	id, err := ParseTableID(string(b))
	*t = id
	return err
}
