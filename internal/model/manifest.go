package model

import (
	"bytes"
	"encoding/json"
	"strconv"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Style is how manifests and lists are written. The zero value is plain,
// complete Avro, written by hand so that the bytes follow from the seed.
type Style struct {
	// Library writes through iceberg-go, whose bytes differ each time; all
	// other fields are then without effect.
	Library bool
	// Ours writes through package manifests; all other fields are then without
	// effect.
	Ours bool
	// NoListVersion leaves the format-version header out of lists (F081).
	NoListVersion bool
	// LegacyNames uses the count names of old Java lists (F083).
	LegacyNames bool
	// NullCounts writes null file and row counts in v1 lists (F080).
	NullCounts bool
	// NullSummaries writes null partition summaries.
	NullSummaries bool
	// DeletesAsData labels delete manifests "data" in their own header.
	DeletesAsData bool
	// ReferencedInV2 has the field referenced_data_file in v2 manifests.
	ReferencedInV2 bool
	// UnknownField adds a field no reader knows to every data_file.
	UnknownField bool
	// Codec of the Avro files: deflate, null, zstandard or snappy; "" is deflate.
	Codec string
}

// Styles of known writers.
var (
	// Plain is what the specification asks for and nothing else.
	Plain = Style{}
	// IcebergGo is iceberg-go's own writer.
	IcebergGo = Style{Library: true}
	// Ours is package manifests.
	Ours = Style{Ours: true}
	// JavaLike has the fields that Java 1.9 writes.
	JavaLike = Style{ReferencedInV2: true}
	// DuckDBLike has the quirks seen of DuckDB; its file format is lower case,
	// which is Layout.Format.
	DuckDBLike = Style{NoListVersion: true, Codec: "null"}
	// LegacyJava is a Java writer before 1.4, for v1 and v2.
	LegacyJava = Style{LegacyNames: true}
)

func (st Style) codec() string {
	if st.Codec == "" {
		return "deflate"
	}
	return st.Codec
}

// manifestContext is what manifests are written against.
type manifestContext struct {
	version   int
	spec      icego.PartitionSpec
	schema    *icego.Schema // one that has all sources of spec
	partition *icego.StructType
	snapshot  iceberg.SnapshotID
	style     Style
}

// encodeManifest writes m's entries and fills in its length and summaries.
func encodeManifest(c manifestContext, m *Manifest) ([]byte, error) {
	var data []byte
	var err error
	switch {
	case c.style.Library:
		data, err = c.byIcebergGo(m)
	case c.style.Ours:
		data, err = c.byOurs(m)
	default:
		data, err = c.byHand(m)
	}
	if err != nil {
		return nil, fault.In("write manifest "+m.Path, err)
	}
	m.Length = int64(len(data))
	m.Version, m.Style = c.version, c.style
	for _, e := range m.Entries {
		e.kinds = kindsOf(c.partition, e.File.Partition)
	}
	if !c.style.NullSummaries {
		m.Summaries = summarise(c.partition, m.Entries)
	}
	return data, nil
}

func (c manifestContext) byIcebergGo(m *Manifest) ([]byte, error) {
	var buf bytes.Buffer
	content := icego.ManifestContentData
	if m.Deletes {
		content = icego.ManifestContentDeletes
	}
	w, err := icego.NewManifestWriter(c.version, &buf, c.spec, c.schema, int64(c.snapshot), icego.WithManifestWriterContent(content))
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "open manifest writer", err)
	}
	for _, e := range m.Entries {
		if err := c.addEntry(w, e); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "write entry of "+e.File.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fault.Wrap(fault.Unsupported, "close manifest writer", err)
	}
	return buf.Bytes(), nil
}

func (c manifestContext) addEntry(w *icego.ManifestWriter, e *Entry) error {
	df, err := c.dataFile(e)
	if err != nil {
		return err
	}
	snapshot, seq, fileSeq := int64(e.Snapshot), int64(e.Seq), int64(e.FileSeq)
	switch e.Status {
	case Added:
		var own *int64
		if e.explicitSeq {
			own = &seq
		}
		return w.Add(icego.NewManifestEntry(icego.EntryStatusADDED, &snapshot, own, nil, df))
	case Existing:
		return w.Existing(icego.NewManifestEntry(icego.EntryStatusEXISTING, &snapshot, &seq, &fileSeq, df))
	default:
		return w.Delete(icego.NewManifestEntry(icego.EntryStatusDELETED, &snapshot, &seq, &fileSeq, df))
	}
}

func (c manifestContext) dataFile(e *Entry) (icego.DataFile, error) {
	f := e.File
	content := icego.EntryContentData
	switch f.Content {
	case PositionDeletes, Vector:
		content = icego.EntryContentPosDeletes
	case EqualityDeletes:
		content = icego.EntryContentEqDeletes
	}
	format, err := icego.FileFormatFromString(f.Format)
	if err != nil {
		return nil, err
	}
	partition := map[int]any{}
	for i := range c.partition.FieldList {
		pf := c.partition.FieldList[i]
		partition[pf.ID] = promote(pf.Type, f.Partition[iceberg.FieldID(pf.ID)])
	}
	b, err := icego.NewDataFileBuilder(c.spec, content, f.Path, format, partition, nil, nil, f.Records, f.Size)
	if err != nil {
		return nil, err
	}
	set(f.Metrics.ColumnSizes, b.ColumnSizes)
	set(f.Metrics.Values, b.ValueCounts)
	set(f.Metrics.Nulls, b.NullValueCounts)
	set(f.Metrics.NaNs, b.NaNValueCounts)
	set(f.Metrics.Lower, b.LowerBoundValues)
	set(f.Metrics.Upper, b.UpperBoundValues)
	if len(f.SplitOffsets) > 0 {
		b.SplitOffsets(f.SplitOffsets)
	}
	if len(f.KeyFields) > 0 {
		ids := make([]int, len(f.KeyFields))
		for i, id := range f.KeyFields {
			ids[i] = int(id)
		}
		b.EqualityFieldIDs(ids)
	}
	if f.SortOrder != nil {
		b.SortOrderID(int(*f.SortOrder))
	}
	if len(f.KeyMetadata) > 0 {
		b.KeyMetadata(f.KeyMetadata)
	}
	if c.version >= 3 {
		if e.ownRowID && e.FirstRowID != nil {
			b.FirstRowID(*e.FirstRowID)
		}
		if f.Referenced != "" {
			b.ReferencedDataFile(f.Referenced)
		}
		if f.Content == Vector {
			b.ContentOffset(f.Offset).ContentSizeInBytes(f.Length)
		}
	}
	return b.Build(), nil
}

func set[V any](m map[int]V, to func(map[int]V) *icego.DataFileBuilder) {
	if m != nil {
		to(m)
	}
}

func (c manifestContext) byHand(m *Manifest) ([]byte, error) {
	schema, err := entrySchema(c.version, c.style, c.partition)
	if err != nil {
		return nil, err
	}
	fields, err := specJSON(c.spec)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "encode spec", err)
	}
	table, err := json.Marshal(c.schema)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "encode schema", err)
	}
	header := map[string][]byte{
		"schema": table, "schema-id": strconv.AppendInt(nil, int64(c.schema.ID), 10),
		"partition-spec": fields, "partition-spec-id": strconv.AppendInt(nil, int64(c.spec.ID()), 10),
		"format-version": strconv.AppendInt(nil, int64(c.version), 10),
	}
	if c.version >= 2 {
		header["content"] = []byte("data")
		if m.Deletes && !c.style.DeletesAsData {
			header["content"] = []byte("deletes")
		}
	}
	out, err := newContainer(header, schema, c.style.codec(), m.Path)
	if err != nil {
		return nil, err
	}
	var b avroBytes
	for _, e := range m.Entries {
		if err := c.encodeEntry(&b, e); err != nil {
			return nil, err
		}
	}
	if len(m.Entries) > 0 {
		if err := out.block(len(m.Entries), b); err != nil {
			return nil, err
		}
	}
	return out.out.Bytes(), nil
}

func (c manifestContext) encodeEntry(b *avroBytes, e *Entry) error {
	b.long(int64(e.Status))
	snapshot, seq, fileSeq := int64(e.Snapshot), int64(e.Seq), int64(e.FileSeq)
	b.optLong(&snapshot)
	if c.version >= 2 {
		switch {
		case e.Status != Added:
			b.optLong(&seq)
			b.optLong(&fileSeq)
		case e.explicitSeq:
			b.optLong(&seq)
			b.null()
		default:
			b.null()
			b.null()
		}
	}
	f := e.File
	if c.version >= 2 {
		b.long(int64(min(f.Content, EqualityDeletes)) - int64(b2i(f.Content == Vector)))
	}
	b.str(f.Path)
	b.str(f.Format)
	for _, pf := range c.partition.FieldList {
		if err := b.partitionValue(pf.Type, f.Partition[iceberg.FieldID(pf.ID)]); err != nil {
			return err
		}
	}
	b.long(f.Records)
	b.long(f.Size)
	if c.version == 1 {
		b.long(64 << 20)
	}
	b.optCounts(f.Metrics.ColumnSizes)
	b.optCounts(f.Metrics.Values)
	b.optCounts(f.Metrics.Nulls)
	b.optCounts(f.Metrics.NaNs)
	b.optBounds(f.Metrics.Lower)
	b.optBounds(f.Metrics.Upper)
	if f.KeyMetadata == nil {
		b.null()
	} else {
		b.some()
		b.bytes(f.KeyMetadata)
	}
	b.optLongs(f.SplitOffsets)
	if c.version >= 2 {
		ids := make([]int64, len(f.KeyFields))
		for i, id := range f.KeyFields {
			ids[i] = int64(id)
		}
		b.optLongs(ids)
	}
	if f.SortOrder == nil {
		b.null()
	} else {
		b.some()
		b.long(int64(*f.SortOrder))
	}
	c.encodeTail(b, e)
	return nil
}

func (c manifestContext) encodeTail(b *avroBytes, e *Entry) {
	f := e.File
	if c.version >= 3 {
		if e.ownRowID {
			b.optLong(e.FirstRowID)
		} else {
			b.null()
		}
	}
	if c.version >= 3 || c.version == 2 && c.style.ReferencedInV2 {
		if f.Referenced == "" {
			b.null()
		} else {
			b.some()
			b.str(f.Referenced)
		}
	}
	if c.version >= 3 {
		if f.Content == Vector {
			b.optLong(&f.Offset)
			b.optLong(&f.Length)
		} else {
			b.null()
			b.null()
		}
	}
	if c.style.UnknownField {
		b.some()
		b.str("kept by nobody")
	}
}

func b2i(v bool) int {
	if v {
		return 1
	}
	return 0
}

// listContext is what a manifest list is written for.
type listContext struct {
	version    int
	snapshot   iceberg.SnapshotID
	parent     iceberg.SnapshotID // 0 for none
	seq        iceberg.SeqNum
	firstRowID int64
	path       string
	style      Style
}

// encodeList writes the manifest list. All sequence numbers and row ids have
// been assigned before.
func encodeList(c listContext, manifests []*Manifest) ([]byte, error) {
	header := map[string][]byte{
		"snapshot-id":        strconv.AppendInt(nil, int64(c.snapshot), 10),
		"parent-snapshot-id": []byte("null"),
	}
	if c.parent != 0 {
		header["parent-snapshot-id"] = strconv.AppendInt(nil, int64(c.parent), 10)
	}
	if !c.style.NoListVersion {
		header["format-version"] = strconv.AppendInt(nil, int64(c.version), 10)
	}
	if c.version >= 2 {
		header["sequence-number"] = strconv.AppendInt(nil, int64(c.seq), 10)
	}
	if c.version >= 3 {
		header["first-row-id"] = strconv.AppendInt(nil, c.firstRowID, 10)
	}
	switch {
	case c.style.Library:
		return c.byIcebergGo(manifests)
	case c.style.Ours:
		return c.byOurs(manifests)
	}
	out, err := newContainer(header, listSchema(c.version, c.style), c.style.codec(), c.path)
	if err != nil {
		return nil, err
	}
	var b avroBytes
	for _, m := range manifests {
		c.encodeManifestFile(&b, m)
	}
	if len(manifests) > 0 {
		if err := out.block(len(manifests), b); err != nil {
			return nil, err
		}
	}
	return out.out.Bytes(), nil
}

func (c listContext) encodeManifestFile(b *avroBytes, m *Manifest) {
	b.str(m.Path)
	b.long(m.Length)
	b.long(int64(m.Spec))
	if c.version >= 2 {
		b.long(int64(b2i(m.Deletes)))
		b.long(int64(m.Seq))
		b.long(int64(m.MinSeq))
	}
	b.long(int64(m.Snapshot))
	counts := m.Counts()
	order := []Status{Added, Existing, Deleted}
	for _, s := range order {
		c.count(b, int64(counts.Files[s]))
	}
	if c.version == 1 {
		encodeSummaries(b, m.Summaries)
	}
	for _, s := range order {
		c.count(b, counts.Rows[s])
	}
	if c.version >= 2 {
		encodeSummaries(b, m.Summaries)
	}
	b.null() // key_metadata
	if c.version >= 3 {
		b.optLong(m.FirstRowID)
	}
}

// count writes one count, which v1 makes optional.
func (c listContext) count(b *avroBytes, n int64) {
	switch {
	case c.version >= 2:
		b.long(n)
	case c.style.NullCounts:
		b.null()
	default:
		b.some()
		b.long(n)
	}
}

// encodeSummaries writes nil summaries as null and an unpartitioned manifest's
// as an empty array.
func encodeSummaries(b *avroBytes, summaries []Summary) {
	if summaries == nil {
		b.null()
		return
	}
	b.some()
	if len(summaries) > 0 {
		b.long(int64(len(summaries)))
		for _, s := range summaries {
			b.boolean(s.ContainsNull)
			b.some()
			b.boolean(s.ContainsNaN)
			for _, v := range [][]byte{s.Lower, s.Upper} {
				if v == nil {
					b.null()
					continue
				}
				b.some()
				b.bytes(v)
			}
		}
	}
	b.long(0)
}

// byIcebergGo writes the list with iceberg-go. Its manifest files cannot be
// built with a first row id, so they are read from a list written by hand.
func (c listContext) byIcebergGo(manifests []*Manifest) ([]byte, error) {
	hand := c
	hand.style = Style{Codec: "null"}
	plain, err := encodeList(hand, manifests)
	if err != nil {
		return nil, err
	}
	files, err := icego.ReadManifestList(bytes.NewReader(plain))
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "read manifest list "+c.path, err)
	}
	var parent *int64
	if c.parent != 0 {
		p := int64(c.parent)
		parent = &p
	}
	seq := int64(c.seq)
	var buf bytes.Buffer
	if err := icego.WriteManifestList(c.version, &buf, int64(c.snapshot), parent, &seq, c.firstRowID, files); err != nil {
		return nil, fault.Wrap(fault.Unsupported, "write manifest list "+c.path, err)
	}
	return buf.Bytes(), nil
}
