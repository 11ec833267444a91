package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// Projection says which groups of an entry's fields are decoded. Status, ids,
// sequence numbers, content, format, counts of rows and bytes, key metadata
// and where a deletion vector lies always are; groups that are left out read
// as nil or empty. What is carried is complete whatever the projection.
type Projection uint8

// The groups.
const (
	ProjectPath      Projection = 1 << iota // Path and ReferencedDataFile
	ProjectPartition                        // Partition
	ProjectCounts                           // ColumnSizes, ValueCounts, NullCounts, NaNCounts
	ProjectBounds                           // Lower, Upper
	ProjectLists                            // SplitOffsets, EqualityIDs
	ProjectAll                  = ProjectPath | ProjectPartition | ProjectCounts | ProjectBounds | ProjectLists
	// projectNothing keeps a projection without groups from being all of them.
	projectNothing Projection = 1 << 7
	// ProjectCarry suffices for entries that are carried without a look at what
	// they are.
	ProjectCarry = projectNothing
)

// ReadOptions of a manifest.
type ReadOptions struct {
	// Projection is ProjectAll when zero.
	Projection Projection
	// Partition is the manifest's spec with the types of its values. When nil,
	// both come from the manifest's header, or the types from Types.
	Partition *iceberg.PartitionType
	// Types gives the types of the spec that the header names, as the table has
	// them now: keys of partitions can only be compared when columns that were
	// widened are read alike in all manifests. iceberg.Metadata.PartitionType.
	Types func(iceberg.SpecID) (*iceberg.PartitionType, error)
	// Limits bound what the file may make the reader hold.
	Limits avro.Limits
}

// Header is what a manifest says about itself.
type Header struct {
	// Version is the format version: the header's, or a higher one that the
	// fields of its entries imply (F081).
	Version int
	// Content is what the header says. The manifest list decides, because
	// there are writers that call every manifest "data".
	Content ManifestContent
	SpecID  iceberg.SpecID
	// Codec is that of the blocks.
	Codec avro.Codec
}

// Reader reads the entries of one manifest, one at a time, from a stream. It
// is not safe for concurrent use.
type Reader struct {
	ctx    context.Context // one reader serves the stream of one call
	in     *avro.Reader
	m      *ManifestFile
	layout *layout
	header Header
	spec   *iceberg.PartitionType

	dec     decoder
	entry   Entry
	ends    []int32
	nextRow Opt[int64]
}

// NewReader reads the header of manifest m from in. The context is looked at
// for every block.
func NewReader(ctx context.Context, in io.Reader, m *ManifestFile, o ReadOptions) (*Reader, error) {
	a, err := avro.NewReader(in, m.Path, o.Limits)
	if err != nil {
		return nil, err
	}
	if o.Projection == 0 {
		o.Projection = ProjectAll
	}
	r := &Reader{ctx: ctx, in: a, m: m, spec: o.Partition, dec: decoder{want: o.Projection}}
	if r.layout, err = newLayout(a.Schema(), m.Path); err != nil {
		return nil, err
	}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	if r.spec == nil && o.Types != nil {
		if r.spec, err = o.Types(r.header.SpecID); err != nil {
			return nil, fault.In("read "+m.Path, err)
		}
	}
	if r.dec.want&ProjectPartition != 0 {
		if r.dec.tuples, err = newTupleReader(r.layout.partition, r.PartitionType(), m.Path); err != nil {
			return nil, err
		}
	}
	if r.m.Content == DataManifest {
		r.nextRow = m.FirstRowID
	}
	r.ends = make([]int32, len(r.layout.steps))
	return r, nil
}

func (r *Reader) readHeader() error {
	h := &r.header
	h.Version, h.Codec, h.SpecID = r.layout.version, r.in.Codec(), r.m.SpecID
	if raw := r.in.Meta("format-version"); len(raw) > 0 {
		v, err := strconv.Atoi(string(raw))
		if err != nil || v < 1 {
			return corrupt(r.m.Path, fmt.Sprintf("format-version %.20q", raw))
		}
		if v > 3 {
			return fault.New(fault.Unsupported, fmt.Sprintf("%s: format version %d", r.m.Path, v))
		}
		h.Version = max(h.Version, v)
	}
	if string(r.in.Meta("content")) == "deletes" {
		h.Content = DeleteManifest
	}
	if raw := r.in.Meta("partition-spec-id"); len(raw) > 0 {
		id, err := strconv.ParseInt(string(raw), 10, 32)
		if err != nil {
			return corrupt(r.m.Path, fmt.Sprintf("partition-spec-id %.20q", raw))
		}
		h.SpecID = iceberg.SpecID(id)
	}
	if !r.m.embedded && h.SpecID != r.m.SpecID {
		return corrupt(r.m.Path, fmt.Sprintf("the header says spec %d, the manifest list %d", h.SpecID, r.m.SpecID))
	}
	if r.spec != nil && r.spec.Spec != h.SpecID {
		return fault.New(fault.Halt, fmt.Sprintf("%s of spec %d read under spec %d", r.m.Path, h.SpecID, r.spec.Spec))
	}
	return nil
}

// Header is what the manifest says about itself.
func (r *Reader) Header() Header { return r.header }

// PartitionType is the spec the tuples are read under: the one from the
// options, else that of the manifest's own header.
func (r *Reader) PartitionType() *iceberg.PartitionType {
	if r.spec == nil {
		r.spec = headerType(r.in, r.header.SpecID, r.layout.partition)
	}
	return r.spec
}

// Partitioning is what the manifest was written under: the texts of its header,
// and PartitionType. A successor is written under it, or under the table's own.
func (r *Reader) Partitioning() (*Partitioning, error) {
	p := &Partitioning{Type: r.PartitionType(), Spec: r.in.Meta("partition-spec"), Schema: r.in.Meta("schema")}
	raw := r.in.Meta("schema-id")
	if len(raw) == 0 {
		// Optional in v1; the schema itself holds it, or it is the first.
		var s struct {
			ID iceberg.SchemaID `json:"schema-id"`
		}
		_ = json.Unmarshal(p.Schema, &s)
		p.SchemaID = s.ID
	} else {
		id, err := strconv.ParseInt(string(raw), 10, 32)
		if err != nil {
			return nil, corrupt(r.m.Path, fmt.Sprintf("schema-id %.20q", raw))
		}
		p.SchemaID = iceberg.SchemaID(id)
	}
	if !json.Valid(p.Spec) || !json.Valid(p.Schema) {
		return nil, corrupt(r.m.Path, "the header holds no schema or no spec")
	}
	return p, nil
}

// Entries yields the entries in order, DELETED ones included, with everything
// inherited filled in. It can be ranged over once and ends after the first
// error. The entry is valid until the next one. A file that is shorter than
// the list says is Corrupt, since a cut between two blocks shows nowhere else.
func (r *Reader) Entries() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		defer r.in.Close()
		for {
			if err := r.ctx.Err(); err != nil {
				yield(nil, fault.Wrap(fault.Canceled, "read "+r.m.Path, context.Cause(r.ctx)))
				return
			}
			data, count, err := r.in.Next()
			if err == io.EOF { //nolint:errorlint // the bare value marks the end, a wrapped one a failure
				if r.in.Taken() < r.m.Length {
					yield(nil, corrupt(r.m.Path, fmt.Sprintf("the file has %d bytes, the manifest list says %d", r.in.Taken(), r.m.Length)))
				}
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			c := cursor{b: data}
			for ; count > 0; count-- {
				if err := r.next(&c); err != nil {
					yield(nil, err)
					return
				}
				if !yield(&r.entry, nil) {
					return
				}
			}
			if c.p != len(data) {
				yield(nil, corrupt(r.m.Path, fmt.Sprintf("%d bytes behind the last entry of a block", len(data)-c.p)))
				return
			}
		}
	}
}

// ReadManifest yields the entries of manifest m read from in, as
// Reader.Entries does.
func ReadManifest(ctx context.Context, in io.Reader, m *ManifestFile, o ReadOptions) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		r, err := NewReader(ctx, in, m, o)
		if err != nil {
			yield(nil, err)
			return
		}
		r.Entries()(yield)
	}
}

// next decodes the entry at c into r.entry.
func (r *Reader) next(c *cursor) error {
	e := &r.entry
	start := c.p
	*e = Entry{File: File{SpecID: r.header.SpecID, Format: e.Format, spelling: e.spelling}}
	for i := range r.layout.steps {
		s := &r.layout.steps[i]
		r.dec.step(c, s, e)
		if c.p < 0 {
			c.bad(s.name)
			if r.dec.tuples != nil && r.dec.tuples.err != nil {
				return fault.Wrap(fault.Corrupt, r.m.Path, r.dec.tuples.err)
			}
			return corrupt(r.m.Path, "an entry cannot be decoded at field "+c.what)
		}
		r.ends[i] = int32(c.p - start)
	}
	e.raw = rawEntry{layout: r.layout, data: c.b[start:c.p:c.p], ends: r.ends}
	return r.complete(e)
}

// complete checks an entry and fills in what it inherits (spec, "Manifest
// entry fields", "First Row ID Inheritance").
func (r *Reader) complete(e *Entry) error {
	if e.Status > Deleted {
		return corrupt(r.m.Path, fmt.Sprintf("an entry has status %d", e.Status))
	}
	if e.Content > EqualityDeletes || e.Content.Kind() != r.m.Content {
		return corrupt(r.m.Path, fmt.Sprintf("an entry with content %d in a manifest of %s", e.Content, r.m.Content))
	}
	if r.dec.want&ProjectPath != 0 && e.Path == "" {
		return corrupt(r.m.Path, "an entry has no file_path")
	}
	if id, ok := r.m.SnapshotID.Get(); ok {
		e.SnapshotID.inherit(id)
	}
	if seq, ok := r.m.Seq.Get(); ok {
		if e.Status == Added || seq == 0 {
			e.DataSeq.inherit(seq)
			e.FileSeq.inherit(seq)
		}
		if e.Live() && !e.DataSeq.Known() {
			return corrupt(r.m.Path, "an EXISTING entry has no sequence number")
		}
	}
	next, ok := r.nextRow.Get()
	if ok && e.Live() && !e.FirstRowID.Known() {
		if next < 0 || e.Records > math.MaxInt64-next {
			return corrupt(r.m.Path, "row ids overflow") // F075
		}
		e.FirstRowID.inherit(next)
		r.nextRow.Value = next + e.Records
	}
	return nil
}

// rawEntry is where an entry was read from.
type rawEntry struct {
	layout *layout
	data   []byte
	ends   []int32
}

func (r rawEntry) clone() rawEntry {
	if r.layout == nil {
		return r
	}
	return rawEntry{layout: r.layout, data: append([]byte(nil), r.data...), ends: append([]int32(nil), r.ends...)}
}

// from is where step i begins.
func (r *rawEntry) from(i int) int32 {
	if i == 0 {
		return 0
	}
	return r.ends[i-1]
}

// bytes are the encoding of the steps from i to j, exclusive.
func (r *rawEntry) bytes(i, j int) []byte { return r.data[r.from(i):r.from(j)] }
