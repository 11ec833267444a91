package iceberg

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// The extended attributes of catalog entries, as SeaweedFS names them.
const (
	AttrTableBucket = "s3tables.tableBucket"
	AttrMetadata    = "s3tables.metadata"
	// AttrMetadataVersion is written by SeaweedFS's own worker only and therefore
	// stale; the version that counts is inside AttrMetadata.
	AttrMetadataVersion   = "s3tables.metadataVersion"
	AttrPolicy            = "s3tables.policy"
	AttrTags              = "s3tables.tags"
	AttrMaintenance       = "s3tables.maintenance"
	AttrMaintenanceStatus = "s3tables.maintenanceStatus"
	AttrEntryType         = "s3tables.entryType"
	AttrDeleting          = "s3tables.deleting"
	AttrMoving            = "s3tables.moving"
	AttrVectorPolicy      = "s3vectors-policy"
)

// CatalogAttributes are all attributes the catalog may put on an entry. An
// update of a record asserts those it did not read as absent, because writing
// the entry would erase one that appeared meanwhile.
func CatalogAttributes() []string {
	return []string{
		AttrTableBucket, AttrMetadata, AttrMetadataVersion, AttrPolicy, AttrTags, AttrMaintenance,
		AttrMaintenanceStatus, AttrEntryType, AttrDeleting, AttrMoving, AttrVectorPolicy,
	}
}

// State says what a catalog record is and whether it may be worked on.
type State uint8

const (
	// StateTable is an Iceberg table at rest.
	StateTable State = iota
	// StateEmpty is a table that has no metadata yet.
	StateEmpty
	// StateView is a view.
	StateView
	// StateForeign is a table of another format.
	StateForeign
	// StateCreating is a record whose creation, or whose arrival by a rename,
	// is not finished.
	StateCreating
	// StateDeleting is a record claimed by a deletion.
	StateDeleting
	// StateRenaming is a record claimed by a rename.
	StateRenaming
	// StateMoving is a record whose root is being moved.
	StateMoving
	// StateHidden is a record in a directory that is not, or not yet, a namespace.
	StateHidden
	// StateBroken is a record that cannot be read.
	StateBroken
)

var stateNames = [...]string{
	"table", "empty", "view", "foreign", "creating", "deleting", "renaming", "moving", "hidden", "broken",
}

// String is the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "invalid"
}

// MarshalText renders the state for JSON results.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Sentinels for records that must be left alone, wrapped in the errors of
// Record.Maintainable.
var (
	ErrNoMetadata = errors.New("table has no metadata yet")
	ErrView       = errors.New("record is a view")
	ErrForeign    = errors.New("table format is not Iceberg")
	ErrCreating   = errors.New("record is being created")
	ErrDeleting   = errors.New("table is being deleted")
	ErrRenaming   = errors.New("table is being renamed")
	ErrMoving     = errors.New("table is being moved")
)

// Record is a catalog record: what the catalog says about one table, with the
// bytes it was read from.
type Record struct {
	// Path is the directory that carries the record. The table's files are
	// usually elsewhere.
	Path  filer.Path
	State State
	// Raw is the attribute as read. It must not be modified.
	Raw []byte

	Name         string
	Namespace    string
	Format       string
	VersionToken string
	// MetadataVersion is the catalog's counter; a successor has the next one.
	MetadataVersion  int64
	MetadataLocation string
	// FullMetadata is the table metadata as kept inside the record, or nil when
	// only its location is kept. It must not be modified.
	FullMetadata json.RawMessage
	// TableUUID is the uuid the record keeps beside the metadata, or zero.
	TableUUID         uuid.UUID
	WarehouseLocation string
	ModifiedAt        time.Time
	// Moving is the record an unfinished move is about to write, or nil.
	Moving *Record
}

// ParseRecord reads the record that e carries. An entry without one is
// fault.Unsupported, a record that contradicts itself fault.Corrupt.
func ParseRecord(e *filer.Entry) (*Record, error) {
	raw, ok := e.Extended[AttrMetadata]
	if !ok || len(raw) == 0 {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("entry %s carries no catalog record", e.Path))
	}
	r, err := parseRecord(e.Path, raw)
	if err != nil {
		return nil, fault.In("read the catalog record "+e.Path.String(), err)
	}
	if moving, ok := e.Extended[AttrMoving]; ok {
		if r.Moving, err = parseRecord(e.Path, moving); err != nil {
			return nil, fault.In("read what the catalog record "+e.Path.String()+" moves to", err)
		}
	}
	r.State = stateOf(e, r)
	return r, nil
}

func stateOf(e *filer.Entry, r *Record) State {
	if claim, ok := e.Extended[AttrDeleting]; ok {
		switch string(claim) {
		case "create", "rename-dest":
			return StateCreating
		case "rename":
			return StateRenaming
		}
		return StateDeleting
	}
	if kind := string(e.Extended[AttrEntryType]); kind != "" && kind != "table" {
		return StateView
	}
	if !strings.EqualFold(r.Format, "ICEBERG") && r.Format != "" {
		return StateForeign
	}
	if _, ok := e.Extended[AttrMoving]; ok {
		return StateMoving
	}
	if r.MetadataLocation == "" && r.FullMetadata == nil {
		return StateEmpty
	}
	return StateTable
}

// Maintainable returns nil for a table that may be worked on, and otherwise an
// error that says why not: fault.Stale for states that pass, fault.Unsupported
// for the others.
func (r *Record) Maintainable() error {
	kind, cause := fault.Unsupported, error(nil)
	switch r.State {
	case StateTable:
		return nil
	case StateEmpty:
		cause = ErrNoMetadata
	case StateView:
		cause = ErrView
	case StateForeign:
		cause = ErrForeign
	case StateCreating:
		kind, cause = fault.Stale, ErrCreating
	case StateDeleting:
		kind, cause = fault.Stale, ErrDeleting
	case StateRenaming:
		kind, cause = fault.Stale, ErrRenaming
	case StateMoving:
		kind, cause = fault.Stale, ErrMoving
	default:
		cause = errors.New("record is " + r.State.String())
	}
	return fault.Wrap(kind, "use the catalog record "+r.Path.String(), cause)
}

// recordKeys are the members this program relies on. The catalog's own reader
// matches names without regard to case, so a second spelling of one of them
// would mean something else to it than to us.
var recordKeys = []string{
	"name", "namespace", "format", "versionToken", "metadataVersion", "metadataLocation", "metadata",
	"warehouseLocation", "modifiedAt",
}

func parseRecord(path filer.Path, raw []byte) (*Record, error) {
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Corrupt, "the record is not valid UTF-8")
	}
	r := &Record{Path: path, Raw: raw}
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		if rawjson.IsNull(value) {
			return nil
		}
		var err error
		switch string(key) {
		case "name":
			r.Name, err = rawjson.String(value)
		case "namespace":
			r.Namespace, err = rawjson.String(value)
		case "format":
			r.Format, err = rawjson.String(value)
		case "versionToken":
			r.VersionToken, err = rawjson.String(value)
		case "metadataVersion":
			r.MetadataVersion, err = rawjson.Int64(value)
		case "metadataLocation":
			r.MetadataLocation, err = rawjson.String(value)
		case "warehouseLocation":
			r.WarehouseLocation, err = rawjson.String(value)
		case "modifiedAt":
			r.ModifiedAt, err = parseTime(value)
		case "metadata":
			err = r.parseInner(value)
		default:
			err = otherSpelling(key, recordKeys)
		}
		return inField(string(key), err)
	})
	if err != nil {
		return nil, err
	}
	if r.MetadataVersion < 0 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("field \"metadataVersion\" is %d", r.MetadataVersion))
	}
	return r, nil
}

func (r *Record) parseInner(raw []byte) error {
	return rawjson.EachMember(raw, func(key, value []byte) error {
		switch string(key) {
		case "fullMetadata":
			if !rawjson.IsNull(value) {
				r.FullMetadata = json.RawMessage(value)
			}
			return nil
		case "iceberg":
			if rawjson.IsNull(value) {
				return nil
			}
			return rawjson.EachMember(value, func(key, value []byte) error {
				if string(key) != "tableUuid" || rawjson.IsNull(value) {
					return nil
				}
				text, err := rawjson.String(value)
				if err != nil || text == "" {
					return err
				}
				r.TableUUID, err = parseUUID(text)
				return err
			})
		}
		return otherSpelling(key, []string{"fullMetadata", "iceberg"})
	})
}

func otherSpelling(key []byte, known []string) error {
	for _, k := range known {
		if strings.EqualFold(string(key), k) {
			return fault.New(fault.Corrupt, fmt.Sprintf("key %q differs from %q in case only", key, k))
		}
	}
	return nil
}

func parseTime(raw []byte) (time.Time, error) {
	text, err := rawjson.String(raw)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, fault.Wrap(fault.Corrupt, "read a time", err)
}

func parseUUID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	return id, fault.Wrap(fault.Corrupt, fmt.Sprintf("read the uuid %q", text), err)
}
