package manifests

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// ListOptions describe a manifest list to be written.
type ListOptions struct {
	// Version is the table's format version, 1 to 3.
	Version    int
	SnapshotID iceberg.SnapshotID
	// Parent is the parent snapshot, if there is one.
	Parent Opt[iceberg.SnapshotID]
	// Seq is the sequence number of the commit; unused in v1.
	Seq iceberg.SeqNum
	// FirstRowID is the head's next-row-id, from which row ids are assigned (v3).
	FirstRowID int64
	// Codec compresses the blocks; deflate when empty.
	Codec avro.Codec
	// Level is the codec's level; 0 leaves the choice to the codec.
	Level int
}

// ListResult is what writing a list assigned.
type ListResult struct {
	// Manifests are the manifests as listed, with everything assigned.
	Manifests []*ManifestFile
	// Length is the size of the list in bytes.
	Length int64
	// AddedRows is the snapshot's added-rows: the added and existing rows of the
	// manifests that got row ids here (v3).
	AddedRows int64
	// NextRowID is the table's next-row-id after the commit (v3).
	NextRowID int64
}

// WriteList writes a manifest list in the order given. Manifests without a
// sequence number are this commit's and get its; data manifests of a v3 list
// without first row id get one in list order (spec, "Snapshot Row IDs").
// Manifests whose counts are unknown can be listed in v1 only: count them with
// Recount first (F077). Nothing in manifests is changed.
func WriteList(out io.Writer, o ListOptions, manifests []*ManifestFile) (ListResult, error) {
	res := ListResult{NextRowID: o.FirstRowID, Manifests: make([]*ManifestFile, 0, len(manifests))}
	if o.Version < 1 || o.Version > 3 {
		return res, fault.New(fault.Unsupported, fmt.Sprintf("write a manifest list of format version %d", o.Version))
	}
	if o.FirstRowID < 0 {
		return res, fault.New(fault.Corrupt, fmt.Sprintf("next-row-id is %d", o.FirstRowID))
	}
	var extra extraFields
	for _, m := range manifests {
		for _, x := range m.extra {
			if err := extra.add(x.field, listSchema(o.Version, nil).Fields); err != nil {
				return res, fault.In("list "+m.Path, err)
			}
		}
	}
	w, err := avro.NewWriter(out, listSchema(o.Version, extra), avro.Options{Codec: o.Codec, Level: o.Level, Meta: o.meta()})
	if err != nil {
		return res, err
	}
	for _, m := range manifests {
		m, err := res.assign(o, m)
		if err == nil {
			err = w.Append(func(b []byte) ([]byte, error) { return appendManifest(b, o.Version, m, extra), nil })
		}
		if err != nil {
			return res, fault.In("list "+m.Path, err)
		}
		res.Manifests = append(res.Manifests, m)
	}
	if err := w.Close(); err != nil {
		return res, err
	}
	res.Length = w.Written()
	return res, nil
}

func (o ListOptions) meta() map[string][]byte {
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	parent := []byte("null")
	if id, ok := o.Parent.Get(); ok {
		parent = number(int64(id))
	}
	meta := map[string][]byte{
		"format-version":     number(int64(o.Version)),
		"snapshot-id":        number(int64(o.SnapshotID)),
		"parent-snapshot-id": parent,
	}
	if o.Version >= 2 {
		meta["sequence-number"] = number(int64(o.Seq))
	}
	if o.Version >= 3 {
		meta["first-row-id"] = number(o.FirstRowID)
	}
	return meta
}

// assign returns the manifest as this list has it.
func (res *ListResult) assign(o ListOptions, in *ManifestFile) (*ManifestFile, error) {
	m := in.Clone()
	if !m.SnapshotID.Known() {
		return m, fault.New(fault.Corrupt, "its snapshot is not known")
	}
	if m.NeedsCount(o.Version) {
		return m, fault.New(fault.Halt, "its counts are not known; it must be counted first")
	}
	if o.Version == 1 {
		if m.Content != DataManifest {
			return m, fault.New(fault.Unsupported, "a manifest of deletes in format version 1")
		}
		m.Seq, m.MinSeq = Opt[iceberg.SeqNum]{From: Inherited}, Opt[iceberg.SeqNum]{From: Inherited}
		return m, nil
	}
	for _, n := range [...]int64{m.AddedFiles.Value, m.ExistingFiles.Value, m.DeletedFiles.Value} {
		if n > math.MaxInt32 {
			return m, fault.New(fault.TooLarge, fmt.Sprintf("it has %d files", n))
		}
	}
	if !m.Seq.Known() {
		if !m.SnapshotID.Is(o.SnapshotID) {
			return m, fault.New(fault.Halt, fmt.Sprintf("it has no sequence number and is of snapshot %d, not of this one", m.SnapshotID.Value))
		}
		m.Seq = Some(o.Seq)
	}
	if !m.MinSeq.Known() {
		m.MinSeq = Some(m.Seq.Value)
	}
	if m.Seq.Value > o.Seq || !in.Seq.Known() && m.MinSeq.Value > m.Seq.Value {
		return m, fault.New(fault.Corrupt, fmt.Sprintf("it has sequence number %d and minimum %d in a commit of sequence number %d",
			m.Seq.Value, m.MinSeq.Value, o.Seq))
	}
	if o.Version >= 3 {
		return m, res.assignRows(m)
	}
	return m, nil
}

// assignRows gives a data manifest its range of row ids.
func (res *ListResult) assignRows(m *ManifestFile) error {
	if m.Content != DataManifest {
		m.FirstRowID = Opt[int64]{}
		return nil
	}
	if m.FirstRowID.Known() {
		return nil
	}
	added, existing := m.AddedRows.Value, m.ExistingRows.Value
	if added > math.MaxInt64-res.NextRowID || existing > math.MaxInt64-res.NextRowID-added {
		return fault.New(fault.TooLarge, fmt.Sprintf("%d rows from row id %d are more than a table can hold", added, res.NextRowID)) // F075
	}
	m.FirstRowID = Some(res.NextRowID)
	res.NextRowID += added + existing
	res.AddedRows += added + existing
	return nil
}

func appendManifest(b []byte, version int, m *ManifestFile, extra extraFields) []byte {
	count := func(b []byte, o Opt[int64]) []byte {
		if version == 1 {
			return appendOpt(b, o)
		}
		return avro.AppendLong(b, o.Value)
	}
	b = avro.AppendBytes(b, m.Path)
	b = avro.AppendLong(b, m.Length)
	b = avro.AppendLong(b, int64(m.SpecID))
	if version >= 2 {
		b = avro.AppendLong(b, int64(m.Content))
		b = avro.AppendLong(b, int64(m.Seq.Value))
		b = avro.AppendLong(b, int64(m.MinSeq.Value))
	}
	b = avro.AppendLong(b, int64(m.SnapshotID.Value))
	b = count(b, m.AddedFiles)
	b = count(b, m.ExistingFiles)
	b = count(b, m.DeletedFiles)
	if version == 1 {
		b = appendSummaries(b, m.Partitions)
	}
	b = count(b, m.AddedRows)
	b = count(b, m.ExistingRows)
	b = count(b, m.DeletedRows)
	if version >= 2 {
		b = appendSummaries(b, m.Partitions)
	}
	b = appendBlob(b, m.KeyMetadata)
	if version >= 3 {
		b = appendOpt(b, m.FirstRowID)
	}
	for i := range extra {
		b = appendListExtra(b, &extra[i], m)
	}
	return b
}

func appendListExtra(b []byte, to *avro.Field, m *ManifestFile) []byte {
	for _, x := range m.extra {
		if sameField(to, x.field) {
			return appendExtra(b, to.Type, x.field.Type, x.raw)
		}
	}
	return appendNull(b, to.Type)
}

func appendSummaries(b []byte, s []FieldSummary) []byte {
	if s == nil {
		return append(b, 0)
	}
	if b = append(b, 2); len(s) > 0 {
		b = avro.AppendLong(b, int64(len(s)))
		for _, f := range s {
			b = avro.AppendBool(b, f.ContainsNull)
			if nan, ok := f.ContainsNaN.Get(); ok {
				b = avro.AppendBool(append(b, 2), nan)
			} else {
				b = append(b, 0)
			}
			b = appendBlob(appendBlob(b, f.Lower), f.Upper)
		}
	}
	return append(b, 0)
}
