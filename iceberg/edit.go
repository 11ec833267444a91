package iceberg

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// Edit makes the next version of a table's metadata. Only what its methods name
// changes; all other bytes stay as they are (F098). Errors are kept until Build.
// What would break an invariant, such as a sequence number that shrinks, is
// fault.Halt. An Edit is used by one goroutine and once.
type Edit struct {
	m   *Metadata
	doc *rawjson.Object
	err error
	out Edited

	added   []Snapshot
	removed map[SnapshotID]bool
	refs    *rawjson.Object // nil until a ref is changed
	// current is the head of main as it will be, or nil.
	current *SnapshotID
	// lastSeq, updated and nextRow are as they will be.
	lastSeq SeqNum
	updated int64
	nextRow int64
}

// Edited is the next version of a table's metadata.
type Edited struct {
	// JSON is the content of the new metadata file.
	JSON []byte
	// Metadata is JSON as parsed again, which proves it readable.
	Metadata *Metadata
	// TrimmedLog are the metadata log entries that gave way.
	TrimmedLog []MetadataLogEntry
	// RemovedStatistics and RemovedPartitionStatistics belonged to removed
	// snapshots. Their files may be shared (F097).
	RemovedStatistics          []StatisticsFile
	RemovedPartitionStatistics []StatisticsFile
}

// Edit starts the next version of m.
func (m *Metadata) Edit() *Edit {
	e := &Edit{m: m, removed: map[SnapshotID]bool{}, current: m.CurrentSnapshotID, lastSeq: m.LastSequenceNumber, updated: m.LastUpdatedMs}
	if m.NextRowID != nil {
		e.nextRow = *m.NextRowID
	}
	e.doc, e.err = rawjson.ParseObject(m.raw)
	return e
}

// fail keeps the first error. nil is none.
func (e *Edit) fail(err error) {
	if e.err == nil {
		e.err = fault.In("edit table metadata", err)
	}
}

func (e *Edit) halt(format string, args ...any) {
	e.fail(fault.New(fault.Halt, fmt.Sprintf(format, args...)))
}

// array opens the array under key for editing; absent and null are empty.
func (e *Edit) array(key string) *rawjson.Array {
	a, err := rawjson.ParseArray(e.raw(key, "[]"))
	if err != nil {
		e.fail(inField(key, err))
		return new(rawjson.Array)
	}
	return a
}

// object opens the object under key for editing; absent and null are empty.
func (e *Edit) object(key string) *rawjson.Object {
	o, err := rawjson.ParseObject(e.raw(key, "{}"))
	if err != nil {
		e.fail(inField(key, err))
		return rawjson.NewObject()
	}
	return o
}

func (e *Edit) raw(key, fallback string) []byte {
	if e.err != nil {
		return []byte(fallback)
	}
	raw, ok := e.doc.Get(key)
	if !ok || rawjson.IsNull(raw) {
		return []byte(fallback)
	}
	return raw
}

func (e *Edit) set(key string, raw []byte) {
	if e.err == nil {
		e.doc.Set(key, raw)
	}
}

// SetProperties sets table properties.
func (e *Edit) SetProperties(values map[string]string) {
	if len(values) == 0 {
		return
	}
	o := e.object("properties")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		o.Set(key, rawjson.Quote(values[key]))
	}
	e.set("properties", o.Bytes())
}

// RemoveProperties removes table properties; missing ones are no error.
func (e *Edit) RemoveProperties(keys ...string) {
	o := e.object("properties")
	changed := false
	for _, key := range keys {
		changed = o.Delete(key) || changed
	}
	if changed {
		e.set("properties", o.Bytes())
	}
}

// SetLastSequenceNumber raises the table's last sequence number, which adding a
// snapshot does as well. v1 has none.
func (e *Edit) SetLastSequenceNumber(n SeqNum) {
	switch {
	case e.m.FormatVersion < 2:
		e.halt("a v1 table has no sequence numbers")
	case n < e.lastSeq:
		e.halt("last sequence number %d would become %d", e.lastSeq, n)
	}
	e.lastSeq = n
	e.set("last-sequence-number", rawjson.Int(int64(n)))
}

// SetLastUpdatedMs sets the time of the change. It must not be before that of
// the last one; who commits takes the later of both.
func (e *Edit) SetLastUpdatedMs(ms int64) {
	if ms < e.updated {
		e.halt("time of the last change %d would become %d", e.updated, ms)
	}
	e.updated = ms
	e.set("last-updated-ms", rawjson.Int(ms))
}

// SetNextRowID raises the next row id, which adding a snapshot does as well.
// Tables before v3 have none.
func (e *Edit) SetNextRowID(n int64) {
	switch {
	case e.m.NextRowID == nil:
		e.halt("a v%d table has no row ids", e.m.FormatVersion)
	case n < e.nextRow:
		e.halt("next row id %d would become %d", e.nextRow, n)
	}
	e.nextRow = n
	e.set("next-row-id", rawjson.Int(n))
}

// PreviousVersionsProperty is the table property that says how many earlier
// metadata files the log keeps.
const PreviousVersionsProperty = "write.metadata.previous-versions-max"

const defaultPreviousVersions = 100

// AppendMetadataLog notes the location of the version the edit started from and
// trims the log to PreviousVersionsProperty, as the property is at this point of
// the edit. At least the new entry stays.
func (e *Edit) AppendMetadataLog(previous string) {
	if previous == "" {
		e.halt("the previous metadata location is empty")
		return
	}
	a := e.array("metadata-log")
	a.Append(rawjson.Make(
		rawjson.Pair{Key: "timestamp-ms", Value: rawjson.Int(e.m.LastUpdatedMs)},
		rawjson.Pair{Key: "metadata-file", Value: rawjson.Quote(previous)}))
	drop := max(0, a.Len()-e.previousVersions())
	e.out.TrimmedLog = append(e.out.TrimmedLog, e.m.MetadataLog[:min(drop, len(e.m.MetadataLog))]...)
	a.Keep(func(i int, _ []byte) bool { return i >= drop })
	e.set("metadata-log", a.Bytes())
}

func (e *Edit) previousVersions() int {
	raw, ok := e.object("properties").Get(PreviousVersionsProperty)
	if !ok || rawjson.IsNull(raw) {
		return defaultPreviousVersions
	}
	text, err := rawjson.String(raw)
	e.fail(err)
	m := Metadata{Properties: map[string]string{PreviousVersionsProperty: text}}
	n, err := m.IntProperty(PreviousVersionsProperty, defaultPreviousVersions)
	e.fail(err)
	return int(min(max(n, 1), 1<<31-1))
}

// RemoveSchemas removes schemas that are neither current nor, which Build
// checks, named by a snapshot that stays.
func (e *Edit) RemoveSchemas(ids ...SchemaID) {
	if slices.Contains(ids, e.m.CurrentSchemaID) {
		e.halt("schema %d is the current one", e.m.CurrentSchemaID)
	}
	a := e.array("schemas")
	if a.Len() == len(e.m.Schemas) { // v1 may have only "schema"
		a.Keep(func(i int, _ []byte) bool { return !slices.Contains(ids, SchemaID(e.m.Schemas[i].ID)) })
		e.set("schemas", a.Bytes())
	}
}

// RemoveSpecs removes partition specs but the default one. That no manifest that
// stays was written under them is for the caller to know.
func (e *Edit) RemoveSpecs(ids ...SpecID) {
	if slices.Contains(ids, e.m.DefaultSpecID) {
		e.halt("partition spec %d is the default one", e.m.DefaultSpecID)
	}
	a := e.array("partition-specs")
	if a.Len() == len(e.m.Specs) { // v1 may have only "partition-spec"
		a.Keep(func(i int, _ []byte) bool { return !slices.Contains(ids, SpecID(e.m.Specs[i].ID())) })
		e.set("partition-specs", a.Bytes())
	}
}

// Build returns the next version. What the catalog and strict readers want to
// see is filled in where it was missing (F125).
func (e *Edit) Build() (*Edited, error) {
	e.applySnapshots()
	e.applyRefs()
	e.applySnapshotLog()
	e.complete()
	if e.err != nil {
		return nil, e.err
	}
	e.out.JSON = e.doc.Bytes()
	m, err := ParseMetadata(e.out.JSON)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "read back the edited table metadata", err)
	}
	for i := range m.Snapshots {
		id := m.Snapshots[i].SchemaID
		if id == nil {
			continue
		}
		_, was := e.m.Schema(*id)
		if _, is := m.Schema(*id); was && !is {
			return nil, fault.New(fault.Halt, fmt.Sprintf("edit table metadata: schema %d is that of snapshot %d", *id, m.Snapshots[i].ID))
		}
	}
	e.out.Metadata = m
	return &e.out, nil
}

// complete adds the fields that may not be missing even if they are empty. v3
// readers take an absent or null current-snapshot-id for none, older ones want
// -1.
func (e *Edit) complete() {
	required := []rawjson.Pair{
		{Key: "snapshots", Value: []byte("[]")}, {Key: "snapshot-log", Value: []byte("[]")},
		{Key: "metadata-log", Value: []byte("[]")}, {Key: "refs", Value: []byte("{}")},
	}
	if e.m.FormatVersion < 3 {
		required = append(required, rawjson.Pair{Key: "current-snapshot-id", Value: []byte("-1")})
	}
	if e.err != nil {
		return
	}
	for _, field := range required {
		if raw, ok := e.doc.Get(field.Key); !ok || rawjson.IsNull(raw) {
			e.doc.Set(field.Key, field.Value)
		}
	}
}
