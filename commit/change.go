package commit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// BaseOf describes the state v for a plan on the named branch. A table whose
// files are encrypted is refused, and so is one without a uuid: nothing could
// tell it from another table of its name (F099, F120).
func BaseOf(v *iceberg.View, branch string) (Base, error) {
	if err := v.Metadata.Plaintext(); err != nil {
		return Base{}, err
	}
	id, err := UUIDOf(v)
	if err != nil {
		return Base{}, err
	}
	m := v.Metadata
	b := Base{
		Table: v.ID, UUID: id, FormatVersion: m.FormatVersion, MetadataLocation: v.MetadataLocation,
		Branch: branch, Schema: m.CurrentSchemaID, Spec: m.DefaultSpecID,
	}
	if ref, ok := m.Refs[branch]; ok && ref.Type != iceberg.Branch {
		return Base{}, fault.New(fault.Unsupported, fmt.Sprintf("%q is a tag, not a branch", branch))
	}
	if s, ok := m.Branch(branch); ok {
		b.Snapshot, b.Sequence = s.ID, s.SequenceNumber
	} else if branch != iceberg.MainBranch {
		return Base{}, fault.New(fault.Unsupported, fmt.Sprintf("the table has no branch %q", branch))
	}
	return b, nil
}

// UUIDOf is the table's uuid in lower case, from the metadata or, for old v1
// tables, from the catalog record. A table without one is fault.Unsupported.
func UUIDOf(v *iceberg.View) (string, error) {
	id := v.Metadata.UUID
	if id == [16]byte{} {
		id = v.Record.TableUUID
	}
	if id == [16]byte{} {
		return "", fault.New(fault.Unsupported, fmt.Sprintf("table %s has no uuid", v.ID))
	}
	return strings.ToLower(id.String()), nil
}

// Change is a pending transition of a table, as data.
type Change struct {
	// Operation is the wire name, for messages and the snapshot's summary.
	Operation string
	Base      Base
	// Requirements are checked on every head before Rebuild.
	Requirements []Requirement
	// Rebuild makes the next metadata on the head. It is called once an attempt
	// and must not keep anything that depends on an earlier head (F005, F078).
	// Files it needs are written through st.
	Rebuild func(ctx context.Context, head *iceberg.View, st *Stage) (Next, error)
}

// Next is the metadata that a change makes of a head.
type Next struct {
	// Edit holds the changes to the head's metadata. Commit completes it: the
	// timestamp and the metadata log are its own. Nil means that this head
	// leaves nothing to do.
	Edit *iceberg.Edit
	// Snapshot is the snapshot that Edit adds, or nil.
	Snapshot *Snapshot
}

// Requirement is something that must hold on a head for a change to be made on
// it. It is printed when it does not.
type Requirement interface {
	// Check returns nil, or an error of kind fault.Stale that says what is
	// otherwise.
	Check(head *iceberg.View) error
	// String states the requirement.
	String() string
}

// SameTable requires that the name still means the table that was planned for.
type SameTable struct {
	UUID          string
	FormatVersion int
}

// Check compares uuid and format version (F120).
func (r SameTable) Check(head *iceberg.View) error {
	id, err := UUIDOf(head)
	switch {
	case err != nil:
		return err
	case id != r.UUID:
		return fault.New(fault.Stale, fmt.Sprintf("table %s is another table now: uuid %s, planned on %s", head.ID, id, r.UUID))
	case head.Metadata.FormatVersion != r.FormatVersion:
		return fault.New(fault.Stale, fmt.Sprintf("table %s has format version %d now, planned on %d",
			head.ID, head.Metadata.FormatVersion, r.FormatVersion))
	}
	return nil
}

func (r SameTable) String() string {
	return fmt.Sprintf("table uuid is %s and format version %d", r.UUID, r.FormatVersion)
}

// Unreferenced requires that no branch and no tag names one of the snapshots,
// and that none of them is the current one. It is what keeps a ref that was
// made after planning (F091).
type Unreferenced struct{ Snapshots []iceberg.SnapshotID }

// Check looks at every ref.
func (r Unreferenced) Check(head *iceberg.View) error {
	for _, name := range head.Metadata.RefNames() {
		if id := head.Metadata.Refs[name].SnapshotID; slices.Contains(r.Snapshots, id) {
			return fault.New(fault.Stale, fmt.Sprintf("ref %q names snapshot %d, which was to expire", name, id))
		}
	}
	if c := head.Metadata.CurrentSnapshotID; c != nil && slices.Contains(r.Snapshots, *c) {
		return fault.New(fault.Stale, fmt.Sprintf("snapshot %d, which was to expire, is the current one", *c))
	}
	return nil
}

func (r Unreferenced) String() string {
	return fmt.Sprintf("no ref names any of %d snapshots", len(r.Snapshots))
}

// SameProperty requires that a table property still has the value it was
// planned with; absent is its own value.
type SameProperty struct {
	Key, Value string
	Present    bool
}

// Check compares the property.
func (r SameProperty) Check(head *iceberg.View) error {
	v, ok := head.Metadata.Properties[r.Key]
	if ok != r.Present || v != r.Value {
		return fault.New(fault.Stale, fmt.Sprintf("table property %s changed since planning", r.Key))
	}
	return nil
}

func (r SameProperty) String() string {
	if !r.Present {
		return fmt.Sprintf("table property %s is not set", r.Key)
	}
	return fmt.Sprintf("table property %s is %q", r.Key, r.Value)
}

// PropertyOf is the SameProperty requirement for what v has.
func PropertyOf(v *iceberg.View, key string) SameProperty {
	value, ok := v.Metadata.Properties[key]
	return SameProperty{Key: key, Value: value, Present: ok}
}

// SameSchema requires that the current schema and the default spec are those
// the outputs were written with.
type SameSchema struct {
	Schema iceberg.SchemaID
	Spec   iceberg.SpecID
}

// Check compares the ids; schemas and specs with an id never change.
func (r SameSchema) Check(head *iceberg.View) error {
	if m := head.Metadata; m.CurrentSchemaID != r.Schema || m.DefaultSpecID != r.Spec {
		return fault.New(fault.Stale, fmt.Sprintf("current schema %d and default spec %d, planned on %d and %d",
			m.CurrentSchemaID, m.DefaultSpecID, r.Schema, r.Spec))
	}
	return nil
}

func (r SameSchema) String() string {
	return fmt.Sprintf("current schema is %d and default spec %d", r.Schema, r.Spec)
}

// ReadableSchema requires that files written with a schema are still read as
// they were meant: the schema is known, and every column of it that the current
// schema has is of its type or of one its values can be promoted to. Columns are
// found by id, so that others were added, dropped or renamed changes no file.
type ReadableSchema struct{ Schema iceberg.SchemaID }

// Check compares the columns of both schemas.
func (r ReadableSchema) Check(head *iceberg.View) error {
	m := head.Metadata
	if m.CurrentSchemaID == r.Schema {
		return nil
	}
	then, ok := m.Schema(r.Schema)
	if !ok {
		return fault.New(fault.Stale, fmt.Sprintf("schema %d, planned on, is gone", r.Schema))
	}
	now := m.CurrentSchema()
	for _, id := range then.FieldIDs() {
		was, _ := then.FindFieldByID(id)
		is, ok := now.FindFieldByID(id)
		if !ok {
			continue
		}
		_, nested := was.Type.(icego.NestedType)
		_, still := is.Type.(icego.NestedType)
		if nested != still || !nested && !iceberg.CanPromote(was.Type, is.Type, m.FormatVersion) {
			return fault.New(fault.Stale, fmt.Sprintf("column %q is %s now, planned on %s", is.Name, is.Type, was.Type))
		}
	}
	return nil
}

func (r ReadableSchema) String() string {
	return fmt.Sprintf("files of schema %d are read as they were written", r.Schema)
}

// Descends requires that the branch still exists and that its head descends
// from the planning snapshot: after a rollback the plan is void.
type Descends struct {
	Branch   string
	Snapshot iceberg.SnapshotID
}

// Check walks the ancestry of the branch's head.
func (r Descends) Check(head *iceberg.View) error {
	s, ok := head.Metadata.Branch(r.Branch)
	switch {
	case !ok && r.Snapshot == 0:
		return nil
	case !ok:
		return fault.New(fault.Stale, fmt.Sprintf("branch %q is gone", r.Branch))
	case r.Snapshot != 0 && !head.Metadata.IsAncestor(r.Snapshot, s.ID):
		return fault.New(fault.Stale, fmt.Sprintf("branch %q is at snapshot %d, which does not descend from %d", r.Branch, s.ID, r.Snapshot))
	}
	return nil
}

func (r Descends) String() string {
	return fmt.Sprintf("branch %q descends from snapshot %d", r.Branch, r.Snapshot)
}
