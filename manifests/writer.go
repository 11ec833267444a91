package manifests

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// WriterOptions describe a manifest to be written.
type WriterOptions struct {
	// Path is the location the manifest will have, for its ManifestFile.
	Path string
	// Version is the table's format version, 1 to 3.
	Version int
	Content ManifestContent
	// Partitioning is the spec and the schema the manifest is written under.
	Partitioning *Partitioning
	// SnapshotID is the snapshot being committed.
	SnapshotID iceberg.SnapshotID
	// Codec compresses the blocks; deflate when empty.
	Codec avro.Codec
	// Level is the codec's level; 0 leaves the choice to the codec.
	Level int
}

// Sentinels of writing.
var (
	// ErrEmpty: a manifest must have an entry.
	ErrEmpty = errors.New("a manifest without entries")
	// ErrMisfit: an entry has fields of unknown meaning that the manifest, once
	// begun, has no room for. Write it to a manifest of its own.
	ErrMisfit = errors.New("the manifest has no room for a field of the entry")
)

// Writer writes one manifest as a stream. After a failed write it stays
// failed; an entry that is refused leaves no trace. It is not safe for
// concurrent use.
type Writer struct {
	o   WriterOptions
	out io.Writer

	extraFile, extraEntry extraFields
	like                  *avro.Node

	avro   *avro.Writer // nil before the first entry
	fields []avro.Field // of data_file
	tuples *tupleWriter
	sum    *summarizer
	plan   *carryPlan
	plans  map[*layout]*carryPlan

	files, rows [3]int64 // by status
	minSeq      Opt[iceberg.SeqNum]
}

// NewWriter prepares a manifest; its header is written with the first entry,
// when it is known which fields it must have.
func NewWriter(out io.Writer, o WriterOptions) (*Writer, error) {
	switch {
	case o.Version < 1 || o.Version > 3:
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("write a manifest of format version %d", o.Version))
	case o.Content != DataManifest && o.Content != DeleteManifest, o.Content == DeleteManifest && o.Version == 1:
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("write a manifest of %s in format version %d", o.Content, o.Version))
	case o.Partitioning == nil || o.Partitioning.Type == nil:
		return nil, fault.New(fault.Halt, "write a manifest without partitioning")
	}
	return &Writer{o: o, out: out, plans: map[*layout]*carryPlan{}}, nil
}

// Fit makes room for everything the entries of r's manifest carry. Before the
// first entry it widens the schema; afterwards it is ErrMisfit when there is no
// room. Carry, Delete and Put do the same for the entry at hand.
func (w *Writer) Fit(r *Reader) error { return w.fit(r.layout) }

func (w *Writer) fit(l *layout) error {
	if w.like == nil {
		w.like = l.partition
	}
	for _, i := range l.extras {
		s := &l.steps[i]
		to := &w.extraEntry
		if s.inDF {
			to = &w.extraFile
		}
		if w.avro != nil {
			if at := to.find(s.field); at < 0 || !fitsExtra((*to)[at].Type, s.node) {
				return fault.Wrap(fault.Unsupported, "write field "+s.name, ErrMisfit)
			}
			continue
		}
		if err := to.add(s.field, fileFields(w.o.Version, nodeNull)); err != nil {
			return errors.Join(err, ErrMisfit)
		}
	}
	return nil
}

func fitsExtra(to, from *avro.Node) bool {
	return avro.SameEncoding(to, from) || avro.SameEncoding(to, avro.Nullable(from))
}

// open writes the header.
func (w *Writer) open() error {
	if w.avro != nil {
		return nil
	}
	p := w.o.Partitioning
	node, types, err := partitionNode(p.Type, w.like)
	if err != nil {
		return err
	}
	w.fields = append(fileFields(w.o.Version, node), w.extraFile...)
	w.tuples = &tupleWriter{spec: p.Type, node: node, types: types}
	w.sum = newSummarizer(w.tuples)
	w.avro, err = avro.NewWriter(w.out, entrySchema(w.o.Version, node, w.extraFile, w.extraEntry), avro.Options{
		Codec: w.o.Codec,
		Level: w.o.Level,
		Meta: map[string][]byte{
			"schema":            p.Schema,
			"schema-id":         strconv.AppendInt(nil, int64(p.SchemaID), 10),
			"partition-spec":    p.Spec,
			"partition-spec-id": strconv.AppendInt(nil, int64(p.Type.Spec), 10),
			"format-version":    strconv.AppendInt(nil, int64(w.o.Version), 10),
			"content":           []byte(w.o.Content.String()),
		},
	})
	return err
}

// head is what an entry says beside its file, and the file's row id.
type head struct {
	status   Status
	snapshot Opt[iceberg.SnapshotID]
	dataSeq  Opt[iceberg.SeqNum]
	fileSeq  Opt[iceberg.SeqNum]
	firstRow Opt[int64]
}

// Add writes a new file from the entry's fields: ADDED, the committing
// snapshot, DataSeq if there is one and else inherited, FileSeq inherited, no
// FirstRowID.
func (w *Writer) Add(e *Entry) error {
	return w.typed(e, head{status: Added, snapshot: Some(w.o.SnapshotID), dataSeq: e.DataSeq})
}

// Put writes the entry's fields as they are, but for what was inherited, which
// is left to be inherited again.
func (w *Writer) Put(e *Entry) error {
	if e.raw.layout != nil {
		if err := w.fit(e.raw.layout); err != nil {
			return err
		}
	}
	return w.typed(e, head{
		status: e.Status, snapshot: e.SnapshotID.stored(), dataSeq: e.DataSeq.stored(), fileSeq: e.FileSeq.stored(),
		firstRow: e.FirstRowID.stored(),
	})
}

// Carry writes an entry on as EXISTING with snapshot id, data and file
// sequence number and first row id as they are in effect, and the rest byte
// for byte as read. A DELETED entry is refused (F025).
func (w *Writer) Carry(e *Entry) error {
	if !e.Live() {
		return fault.New(fault.Halt, "carry DELETED entry "+e.Path)
	}
	return w.carry(e, head{status: Existing, snapshot: e.SnapshotID, dataSeq: e.DataSeq, fileSeq: e.FileSeq, firstRow: e.FirstRowID})
}

// Delete writes a live entry as DELETED by the committing snapshot, with its
// own sequence numbers (F086).
func (w *Writer) Delete(e *Entry) error {
	if !e.Live() {
		return fault.New(fault.Halt, "delete DELETED entry "+e.Path)
	}
	return w.carry(e, head{status: Deleted, snapshot: Some(w.o.SnapshotID), dataSeq: e.DataSeq, fileSeq: e.FileSeq, firstRow: e.FirstRowID})
}

func (w *Writer) carry(e *Entry, h head) error {
	switch {
	case !h.snapshot.Known():
		return fault.New(fault.Corrupt, "entry "+e.Path+" has no snapshot id to carry")
	case w.o.Version >= 2 && !h.dataSeq.Known():
		return fault.New(fault.Corrupt, "entry "+e.Path+" has no sequence number to carry")
	}
	if e.raw.layout == nil {
		return w.typed(e, h)
	}
	if w.plan == nil || w.plan.layout != e.raw.layout {
		if err := w.planFor(e.raw.layout); err != nil {
			return err
		}
	}
	if err := w.check(e); err != nil {
		return err
	}
	fresh, err := w.plan.partition(w, e)
	if err != nil {
		return err
	}
	err = w.avro.Append(func(b []byte) ([]byte, error) {
		b, err := w.plan.append(w.head(b, h), w, e, h)
		return w.entryExtras(b, e), err
	})
	if err != nil {
		w.plan.any = false
		return err
	}
	return w.count(e, h, fresh)
}

func (w *Writer) planFor(l *layout) error {
	p := w.plans[l]
	if p == nil {
		if err := w.fit(l); err != nil {
			return err
		}
		if err := w.open(); err != nil {
			return err
		}
		var err error
		if p, err = newCarryPlan(w, l); err != nil {
			return err
		}
		if len(w.plans) >= maxPlans {
			clear(w.plans)
		}
		w.plans[l] = p
	}
	w.plan = p
	return nil
}

// maxPlans bounds the memory for manifests that were carried from before.
const maxPlans = 16

// check refuses an entry that this manifest cannot hold.
func (w *Writer) check(e *Entry) error {
	switch {
	case e.Content.Kind() != w.o.Content || e.Content > EqualityDeletes:
		return fault.New(fault.Halt, fmt.Sprintf("write a file of %s to a manifest of %s", e.Content, w.o.Content))
	case e.SpecID != w.o.Partitioning.Type.Spec:
		return fault.New(fault.Halt, fmt.Sprintf("write a file of spec %d to a manifest of spec %d", e.SpecID, w.o.Partitioning.Type.Spec))
	case w.o.Version < 3 && (e.ContentOffset.Known() || e.ContentSize.Known()):
		return fault.New(fault.Unsupported, fmt.Sprintf("a deletion vector in format version %d", w.o.Version))
	case e.Records < 0 || e.Bytes < 0:
		return fault.New(fault.Corrupt, fmt.Sprintf("file %s of %d rows and %d bytes", e.Path, e.Records, e.Bytes))
	case e.Records > math.MaxInt64-w.rows[0]-w.rows[1]-w.rows[2]:
		return fault.New(fault.Corrupt, "the row counts of a manifest overflow")
	}
	return nil
}

// typed writes an entry from its fields.
func (w *Writer) typed(e *Entry, h head) error {
	if err := w.open(); err != nil {
		return err
	}
	if err := w.check(e); err != nil {
		return err
	}
	switch {
	case h.status < Existing || h.status > Deleted:
		return fault.New(fault.Halt, fmt.Sprintf("write an entry with status %d", h.status))
	case e.Path == "" || e.Format == "":
		return fault.New(fault.Halt, "write an entry without path or format")
	case w.o.Version == 1 && !h.snapshot.Known():
		return fault.New(fault.Halt, "write an entry without snapshot id")
	}
	err := w.avro.Append(func(b []byte) ([]byte, error) {
		b, err := w.file(w.head(b, h), e, h)
		return w.entryExtras(b, e), err
	})
	if err != nil {
		return err
	}
	return w.count(e, h, e.Partition)
}

func (w *Writer) head(b []byte, h head) []byte {
	b = avro.AppendLong(b, int64(h.status))
	if w.o.Version == 1 {
		return avro.AppendLong(b, int64(h.snapshot.Value))
	}
	b = appendOpt(b, h.snapshot)
	b = appendOpt(b, h.dataSeq)
	return appendOpt(b, h.fileSeq)
}

func (w *Writer) count(e *Entry, h head, fresh iceberg.Tuple) error {
	w.files[h.status]++
	w.rows[h.status] += e.Records
	if seq, ok := h.dataSeq.Get(); ok && h.status != Deleted && (!w.minSeq.Known() || seq < w.minSeq.Value) {
		w.minSeq = Some(seq)
	}
	if fresh.Len() > 0 {
		return w.sum.add(fresh)
	}
	return nil
}

// Entries is the number of entries written.
func (w *Writer) Entries() int64 { return w.files[0] + w.files[1] + w.files[2] }

// Size is the number of bytes written so far, with an estimate for the block
// at hand.
func (w *Writer) Size() int64 {
	if w.avro == nil {
		return 0
	}
	return w.avro.Size()
}

// Close ends the manifest and describes it for a list. Without entries nothing
// was written and it is ErrEmpty. The underlying writer is the caller's.
func (w *Writer) Close() (*ManifestFile, error) {
	if w.Entries() == 0 {
		return nil, fault.Wrap(fault.Halt, "close manifest "+w.o.Path, ErrEmpty)
	}
	if err := w.avro.Close(); err != nil {
		return nil, err
	}
	return &ManifestFile{
		Path: w.o.Path, Length: w.avro.Written(), SpecID: w.o.Partitioning.Type.Spec, Content: w.o.Content,
		MinSeq: w.minSeq, SnapshotID: Some(w.o.SnapshotID),
		AddedFiles: Some(w.files[Added]), ExistingFiles: Some(w.files[Existing]), DeletedFiles: Some(w.files[Deleted]),
		AddedRows: Some(w.rows[Added]), ExistingRows: Some(w.rows[Existing]), DeletedRows: Some(w.rows[Deleted]),
		Partitions: w.sum.summaries(),
	}, nil
}
