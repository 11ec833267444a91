package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
)

// Config describes a new table. ID, Clock and Schema are needed; the rest has
// sensible zero values.
type Config struct {
	ID iceberg.TableID
	// Version is the format version; 0 is 2.
	Version int
	// Schema of the table; see ParseSchema. Field ids are kept.
	Schema *icego.Schema
	// Spec is text for ParseSpec; empty is unpartitioned.
	Spec string
	// SortOrder is the table's sort order, or nil.
	SortOrder *SortOrder
	// Properties of the table.
	Properties map[string]string
	// Seed decides all ids and names.
	Seed uint64
	// Clock gives the times of commits; a virtual one is moved by Tick before
	// each commit.
	Clock clock.Clock
	// Tick is 1 s when zero; negative is none.
	Tick time.Duration
	// Style of manifests and lists.
	Style Style
	// Location is the table's root as a URI; empty is the catalog's own choice,
	// s3://bucket/namespace/name-<uuid>.
	Location string
	// Spelling of the paths written into manifests.
	Spelling Spelling
	// EmbeddedManifests writes v1 snapshots without a manifest list (F084).
	EmbeddedManifests bool
	// BareV1 writes v1 metadata as the first writers did: one schema, one spec,
	// no uuid, no sort orders.
	BareV1 bool
	// Registered names the metadata 00000-<uuid>.metadata.json as engines do
	// that register a table made elsewhere.
	Registered bool
	// LocationOnly keeps the metadata out of the record, as the catalog does
	// with large ones.
	LocationOnly bool
	// Fields are further top-level fields of the metadata.
	Fields map[string]any
}

// Table is one simulated table. It is not safe for concurrent use.
type Table struct {
	// ID is the table's name.
	ID iceberg.TableID
	// Root is the directory of the table's files.
	Root filer.Path

	cfg Config
	fl  filer.Filer
	clk clock.Clock
	src *rand.PCG
	rng *rand.Rand // over src
	cat catalog

	doc     document
	docPath string // where the head's metadata lies, as the record says
	schemas []*icego.Schema
	specs   []icego.PartitionSpec

	rows   map[RowID]Row
	snaps  map[iceberg.SnapshotID]*Snapshot
	files  map[identity]*File
	number int // of files named so far
}

// NewTable creates the table's first metadata and its catalog record, with the
// bucket and the namespace where they are missing. The filer must be able to
// make directories with attributes, as filertest's can.
func NewTable(ctx context.Context, fl filer.Filer, cfg Config) (*Table, error) {
	if cfg.Schema == nil || cfg.Clock == nil || cfg.ID.Name == "" {
		return nil, fault.New(fault.Unsupported, "a table needs an id, a schema and a clock")
	}
	if cfg.Version == 0 {
		cfg.Version = 2
	}
	tb := &Table{
		ID: cfg.ID, cfg: cfg, fl: fl, clk: cfg.Clock,
		rows: map[RowID]Row{}, snaps: map[iceberg.SnapshotID]*Snapshot{}, files: map[identity]*File{},
	}
	tb.seed(newSource(cfg.Seed, cfg.ID))
	id := tb.uuid()
	location := cfg.Location
	if location == "" {
		location = fmt.Sprintf("s3://%s/%s/%s-%s", cfg.ID.Bucket, cfg.ID.Namespace, cfg.ID.Name, id)
	}
	root, err := rootOf(location)
	if err != nil {
		return nil, err
	}
	tb.Root = root
	first, err := tb.firstDocument(id, location)
	if err != nil {
		return nil, err
	}
	tb.cat = catalog{fl: fl, id: cfg.ID, clk: cfg.Clock, rng: tb.rng, locationOnly: cfg.LocationOnly}
	name := "v1.metadata.json"
	if cfg.Registered {
		name = fmt.Sprintf("00000-%s.metadata.json", tb.uuid())
	}
	data, err := first.encode()
	if err != nil {
		return nil, err
	}
	if err := tb.setDocument(data); err != nil {
		return nil, err
	}
	at := root.Join("metadata", name)
	if _, err := fl.Put(ctx, at, data, filer.CreateOptions{Mime: "application/json"}); err != nil {
		return nil, fault.In("write first metadata", err)
	}
	tb.docPath = s3Path(at)
	return tb, tb.cat.create(ctx, tb.docPath, location, data)
}

// setDocument takes metadata as the head's.
func (tb *Table) setDocument(data []byte) error {
	d, err := parseDocument(data)
	if err != nil {
		return err
	}
	schemas, err := d.schemas()
	if err != nil {
		return err
	}
	specs, err := d.specs()
	if err != nil {
		return err
	}
	tb.doc, tb.schemas, tb.specs = d, schemas, specs
	return nil
}

// newSource makes tables of one seed differ by their names.
func newSource(seed uint64, id iceberg.TableID) *rand.PCG {
	h := syncMarker(id.String())
	return rand.NewPCG(seed, binary.BigEndian.Uint64(h[:8]))
}

func (tb *Table) seed(src *rand.PCG) { tb.src, tb.rng = src, rand.New(src) }

// Fork is a table in the same state over fl, which must hold the same files.
// Neither knows what the other does from now on, so a test can go on from one
// state many times, each time in the same way.
func (tb *Table) Fork(fl filer.Filer) *Table {
	out := *tb
	out.fl = fl
	src := *tb.src
	out.seed(&src)
	out.cat.fl, out.cat.rng = fl, out.rng
	out.rows, out.snaps, out.files = maps.Clone(tb.rows), maps.Clone(tb.snaps), maps.Clone(tb.files)
	return &out
}

func (tb *Table) uuid() uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], tb.rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], tb.rng.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// rootOf is the directory of a location like s3://bucket/path.
func rootOf(location string) (filer.Path, error) {
	_, rest, ok := strings.Cut(location, "://")
	if !ok {
		return "", fault.New(fault.Unsupported, fmt.Sprintf("location %q is no URI", location))
	}
	return filer.ParsePath(filer.BucketsRoot.String() + "/" + strings.TrimSuffix(rest, "/"))
}

func s3Path(p filer.Path) string { return "s3://" + p.Rel(filer.BucketsRoot) }

func (tb *Table) firstDocument(id uuid.UUID, location string) (document, error) {
	cfg := tb.cfg
	spec, err := ParseSpec(cfg.Schema, 0, 999, cfg.Spec)
	if err != nil {
		return nil, err
	}
	schema := icego.NewSchemaWithIdentifiers(0, cfg.Schema.IdentifierFieldIDs, cfg.Schema.Fields()...)
	schemaDoc, err := toAny(schema)
	if err != nil {
		return nil, err
	}
	fields, err := specFields(spec)
	if err != nil {
		return nil, err
	}
	props := map[string]any{}
	for k, v := range cfg.Properties {
		props[k] = v
	}
	d := document{
		"format-version": int64(cfg.Version), "location": location, "last-updated-ms": tb.clk.Now().UnixMilli(),
		"last-column-id": int64(schema.HighestFieldID()), "properties": props, "current-snapshot-id": int64(-1),
		"snapshots": []any{}, "snapshot-log": []any{}, "metadata-log": []any{},
	}
	if cfg.Version == 1 {
		d["schema"], d["partition-spec"] = schemaDoc, fields
	}
	if !cfg.BareV1 {
		d["table-uuid"] = id.String()
		d["schemas"], d["current-schema-id"] = []any{schemaDoc}, int64(0)
		d["partition-specs"], d["default-spec-id"] = []any{map[string]any{"spec-id": int64(0), "fields": fields}}, int64(0)
		d["last-partition-id"] = int64(lastFieldID([]icego.PartitionSpec{spec}))
		d["sort-orders"], d["default-sort-order-id"] = []any{map[string]any{"order-id": int64(0), "fields": []any{}}}, int64(0)
		d["refs"] = map[string]any{}
	}
	if cfg.Version >= 2 {
		d["last-sequence-number"] = int64(0)
	}
	if cfg.Version >= 3 {
		d["next-row-id"] = int64(0)
	}
	if cfg.SortOrder != nil {
		d.addSortOrder(*cfg.SortOrder)
	}
	for k, v := range cfg.Fields {
		d[k] = v
	}
	return d, nil
}

// specFields are the fields of a spec as metadata holds them.
func specFields(spec icego.PartitionSpec) (any, error) {
	data, err := specJSON(spec)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "encode spec", err)
	}
	out := []any{}
	err = decodeNumbers(data, &out)
	return out, err
}

// SortOrder is a sort order of the table.
type SortOrder struct {
	Fields []SortField
}

// SortField is one key of a sort order.
type SortField struct {
	Source    iceberg.FieldID
	Transform string // "" is identity
	Desc      bool
	NullsLast bool
}

func (d document) addSortOrder(o SortOrder) {
	fields := []any{}
	for _, f := range o.Fields {
		transform, direction, nulls := f.Transform, "asc", "nulls-first"
		if transform == "" {
			transform = "identity"
		}
		if f.Desc {
			direction = "desc"
		}
		if f.NullsLast {
			nulls = "nulls-last"
		}
		fields = append(fields, map[string]any{"source-id": int64(f.Source), "transform": transform, "direction": direction, "null-order": nulls})
	}
	id := int64(0)
	for _, s := range d.objects("sort-orders") {
		id = max(id, s.num("order-id"))
	}
	d.push("sort-orders", map[string]any{"order-id": id + 1, "fields": fields})
	d["default-sort-order-id"] = id + 1
}

// Version is the table's format version.
func (tb *Table) Version() int { return tb.doc.version() }

// UUID is the table's uuid, empty for the oldest v1 tables.
func (tb *Table) UUID() string { return tb.doc.text("table-uuid") }

// Location is the table's root as metadata spells it.
func (tb *Table) Location() string { return tb.doc.text("location") }

// MetadataLocation is where the head's metadata lies, as the record says.
func (tb *Table) MetadataLocation() string { return tb.docPath }

// MetadataJSON is the head's metadata.
func (tb *Table) MetadataJSON() ([]byte, error) { return tb.doc.encode() }

// Record is the directory with the table's catalog record.
func (tb *Table) Record() filer.Path { return tb.cat.path() }

// Schemas are all schemas of the table in the order of the metadata.
func (tb *Table) Schemas() []*icego.Schema { return tb.schemas }

// Schema is the current schema.
func (tb *Table) Schema() *icego.Schema {
	return tb.SchemaByID(iceberg.SchemaID(tb.doc.num("current-schema-id")))
}

// SchemaByID is a schema of the table's history; the current one if there is no
// such id, as v1 metadata may not number them.
func (tb *Table) SchemaByID(id iceberg.SchemaID) *icego.Schema {
	all := tb.Schemas()
	for _, s := range all {
		if s.ID == int(id) {
			return s
		}
	}
	return all[len(all)-1]
}

// Specs are all partition specs.
func (tb *Table) Specs() []icego.PartitionSpec { return tb.specs }

// Spec is the current partition spec.
func (tb *Table) Spec() icego.PartitionSpec {
	spec, ok := tb.SpecByID(iceberg.SpecID(tb.doc.num("default-spec-id")))
	if !ok {
		panic("model: metadata without its default spec")
	}
	return spec
}

// SpecByID is a spec of the table's history.
func (tb *Table) SpecByID(id iceberg.SpecID) (icego.PartitionSpec, bool) {
	for _, s := range tb.Specs() {
		if s.ID() == int(id) {
			return s, true
		}
	}
	return icego.PartitionSpec{}, false
}

// specSchema is the newest schema that has all source columns of the spec, or
// the current one.
func (tb *Table) specSchema(spec icego.PartitionSpec) *icego.Schema {
	candidates := append(slices.Clone(tb.schemas), tb.Schema())
	for _, s := range slices.Backward(candidates) {
		all := true
		for i := range spec.NumFields() {
			if _, ok := s.FindFieldByID(spec.Field(i).SourceID()); !ok {
				all = false
			}
		}
		if all {
			return s
		}
	}
	return tb.Schema()
}

// Property is the table's property of that name, empty when not set.
func (tb *Table) Property(name string) string { return tb.doc.object("properties").text(name) }

// Refs are the table's branches and tags by name.
func (tb *Table) Refs() []Ref { return tb.doc.refs() }

// Head is the snapshot a ref points at, nil when there is none.
func (tb *Table) Head(ref string) *Snapshot {
	if ref == "" {
		ref = "main"
	}
	r, ok := tb.doc.ref(ref)
	if !ok {
		return nil
	}
	return tb.snaps[r.Snapshot]
}

// Snapshot is a retained snapshot, nil when there is none.
func (tb *Table) Snapshot(id iceberg.SnapshotID) *Snapshot {
	if tb.doc.snapshot(id) == nil {
		return nil
	}
	return tb.snaps[id]
}

// Snapshots are all retained snapshots in the order of the metadata.
func (tb *Table) Snapshots() []*Snapshot {
	var out []*Snapshot
	for _, s := range tb.doc.objects("snapshots") {
		out = append(out, tb.snaps[iceberg.SnapshotID(s.num("snapshot-id"))])
	}
	return out
}

// Values are a row's values as written.
func (tb *Table) Values(r RowID) Row { return tb.rows[r] }

// Row makes a row of values in the order of the current schema; see Coerce.
// Columns without a value get their write default, else null.
func (tb *Table) Row(values ...any) (Row, error) {
	s := tb.Schema()
	fields := s.Fields()
	if len(values) > len(fields) {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("%d values for %d columns", len(values), len(fields)))
	}
	row := Row{}
	for i, v := range values {
		x, err := Coerce(fields[i].Type, v)
		if err != nil {
			return nil, fault.In("column "+fields[i].Name, err)
		}
		row[iceberg.FieldID(fields[i].ID)] = x
	}
	return complete(s, row)
}

// complete fills in what a writer writes for columns that were not given.
func complete(s *icego.Schema, row Row) (Row, error) {
	out := make(Row, len(row))
	for _, f := range s.Fields() {
		id := iceberg.FieldID(f.ID)
		v, ok := row[id]
		if !ok && f.WriteDefault != nil {
			var err error
			if v, err = valueFromJSON(f.Type, f.WriteDefault); err != nil {
				return nil, err
			}
		}
		if v == nil && f.Required {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("required column %q is null", f.Name))
		}
		out[id] = v
	}
	return out, nil
}
