package compact_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
)

var id = iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}

// tb is what rapid's and testing's T have in common.
type tb interface {
	model.TB
	Errorf(format string, args ...any)
	FailNow()
}

// sketch is a table of metadata only, which is all a planner sees.
type sketch struct {
	version  int
	specs    []string
	order    *model.SortOrder
	props    map[string]string
	settings map[string]string
	// files and deletes are live. split is how many a manifest holds, 0 for all.
	files   []sketchFile
	deletes []sketchDelete
	split   int
	// seq is that of the head.
	seq   iceberg.SeqNum
	empty bool
	bind  compact.Bind
}

type sketchFile struct {
	name         string
	spec         int
	in           []string // partition values by field
	bytes, rows  int64
	seq, fileSeq iceberg.SeqNum
	// offsets are the split offsets; nil is null.
	offsets      []int64
	format       manifests.Format
	lower, upper *int64 // of column 1
	encrypted    bool
	firstRow     *int64
}

type sketchDelete struct {
	name       string
	content    manifests.Content
	spec       int
	in         []string
	of         string // the file it names
	byBounds   bool   // names it by bounds only
	rows       int64
	bytes      int64
	seq        iceberg.SeqNum
	offset     int64 // of a vector
	format     manifests.Format
	ids        []iceberg.FieldID
	encrypted  bool
	incomplete bool // a vector without a size
}

func (d *sketchDelete) vector() bool { return d.format == manifests.Puffin }

// place is where the files of a sketch lie when their names are no locations.
const root = "s3://lake/sales/orders/data/"

func location(name, ext string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return root + name + ext
}

func nameOf(path string) string {
	n := strings.TrimPrefix(path, root)
	for _, ext := range []string{".parquet", ".puffin"} {
		n = strings.TrimSuffix(n, ext)
	}
	return n
}

const columns = "id long!, region string, day int, price double"

// world is a sketch written down.
type world struct {
	t  tb
	fl *filertest.Filer
	s  *sketch
	// scene is the table by which the metadata can be changed.
	scene *model.Scene
}

func (s *sketch) write(t tb) *world {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	cfg := model.Config{ID: id, Version: s.version, Schema: model.Columns(t, columns), Seed: 3, Tick: -1, SortOrder: s.order, Properties: s.props}
	if len(s.specs) > 0 {
		cfg.Spec = s.specs[0]
	}
	sc := model.NewScene(t, fl, cfg)
	for _, spec := range s.specs[min(1, len(s.specs)):] {
		sc.Respec(spec)
	}
	w := &world{t: t, fl: fl, s: s, scene: sc}
	if s.empty {
		return w
	}
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	var list []*manifests.ManifestFile
	for spec := range max(1, len(s.specs)) {
		var data, deletes []*manifests.Entry
		for i := range s.files {
			if s.files[i].spec == spec {
				data = append(data, w.file(v.Metadata, &s.files[i]))
			}
		}
		for i := range s.deletes {
			if s.deletes[i].spec == spec {
				deletes = append(deletes, w.delete(v.Metadata, &s.deletes[i]))
			}
		}
		list = append(list, w.manifests(v, sc.Root, spec, manifests.DataManifest, data)...)
		list = append(list, w.manifests(v, sc.Root, spec, manifests.DeleteManifest, deletes)...)
	}
	var b bytes.Buffer
	_, err = manifests.WriteList(&b, manifests.ListOptions{Version: s.version, SnapshotID: 1, Seq: s.seq, FirstRowID: 1 << 40}, list)
	require.NoError(t, err)
	at := sc.Root.Join("metadata", "list.avro")
	fl.PutFile(at, b.Bytes())
	sc.Do(sc.Edit(t.Context(), func(doc map[string]any) {
		snap := map[string]any{
			"snapshot-id": int64(1), "timestamp-ms": fl.Virtual().Now().UnixMilli(), "schema-id": int64(0),
			"manifest-list": "s3://" + at.Rel(filer.BucketsRoot), "summary": map[string]any{"operation": "append"},
		}
		if s.version > 1 {
			snap["sequence-number"], doc["last-sequence-number"] = int64(s.seq), int64(s.seq)
		}
		if s.version > 2 {
			snap["first-row-id"], snap["added-rows"], doc["next-row-id"] = int64(0), int64(0), int64(1)<<41
		}
		doc["snapshots"], doc["current-snapshot-id"] = []any{snap}, int64(1)
		doc["refs"] = map[string]any{"main": map[string]any{"type": "branch", "snapshot-id": int64(1)}}
	}))
	return w
}

func (w *world) manifests(v *iceberg.View, at filer.Path, spec int, c manifests.ManifestContent, all []*manifests.Entry) []*manifests.ManifestFile {
	w.t.Helper()
	var out []*manifests.ManifestFile
	size := len(all)
	if w.s.split > 0 {
		size = w.s.split
	}
	parts, err := manifests.PartitioningOf(v.Metadata, iceberg.SpecID(spec))
	require.NoError(w.t, err)
	for i := 0; i < len(all); i += size {
		path := at.Join("metadata", fmt.Sprintf("m-%d-%s-%d.avro", spec, c, i))
		var b bytes.Buffer
		mw, err := manifests.NewWriter(&b, manifests.WriterOptions{
			Path: "s3://" + path.Rel(filer.BucketsRoot), Version: w.s.version, Content: c, Partitioning: parts, SnapshotID: 1,
		})
		require.NoError(w.t, err)
		for _, e := range all[i:min(i+size, len(all))] {
			require.NoError(w.t, mw.Put(e))
		}
		m, err := mw.Close()
		require.NoError(w.t, err)
		w.fl.PutFile(path, b.Bytes())
		m.Seq = manifests.Some(w.s.seq)
		if w.s.version > 2 && c == manifests.DataManifest {
			m.FirstRowID = manifests.Some(int64(1) << 30)
		}
		out = append(out, m)
	}
	return out
}

func (w *world) tuple(m *iceberg.Metadata, spec int, in []string) iceberg.Tuple {
	w.t.Helper()
	t, err := m.PartitionType(iceberg.SpecID(spec))
	require.NoError(w.t, err)
	tuple, err := t.TupleAt(func(i int) any {
		if i >= len(in) || in[i] == "null" {
			return nil
		}
		if t.Fields[i].Result.String() == "string" {
			return in[i]
		}
		var n int64
		_, err := fmt.Sscan(in[i], &n)
		require.NoError(w.t, err)
		return n
	})
	require.NoError(w.t, err)
	return tuple
}

func (w *world) file(m *iceberg.Metadata, f *sketchFile) *manifests.Entry {
	e := &manifests.Entry{
		Status: manifests.Existing, SnapshotID: manifests.Some(iceberg.SnapshotID(1)), DataSeq: manifests.Some(f.seq), FileSeq: manifests.Some(f.fileSeq),
		File: manifests.File{
			Path: location(f.name, ".parquet"), Format: f.format, SpecID: iceberg.SpecID(f.spec), Partition: w.tuple(m, f.spec, f.in),
			Records: f.rows, Bytes: f.bytes, SplitOffsets: f.offsets,
		},
	}
	if f.encrypted {
		e.KeyMetadata = []byte("key")
	}
	if f.lower != nil {
		e.Lower = manifests.Bounds{{Column: 1, Value: binary.LittleEndian.AppendUint64(nil, uint64(*f.lower))}}
	}
	if f.upper != nil {
		e.Upper = manifests.Bounds{{Column: 1, Value: binary.LittleEndian.AppendUint64(nil, uint64(*f.upper))}}
	}
	if f.firstRow != nil {
		e.FirstRowID = manifests.Some(*f.firstRow)
	}
	return e
}

func (w *world) delete(m *iceberg.Metadata, d *sketchDelete) *manifests.Entry {
	ext := ".parquet"
	e := &manifests.Entry{
		Status: manifests.Existing, SnapshotID: manifests.Some(iceberg.SnapshotID(1)), DataSeq: manifests.Some(d.seq), FileSeq: manifests.Some(d.seq),
		File: manifests.File{
			Content: d.content, Format: d.format, SpecID: iceberg.SpecID(d.spec), Partition: w.tuple(m, d.spec, d.in),
			Records: d.rows, Bytes: d.bytes, EqualityIDs: d.ids,
		},
	}
	switch of := []byte(location(d.of, ".parquet")); {
	case d.of == "":
	case d.byBounds:
		const filePath = 2147483546
		e.Lower, e.Upper = manifests.Bounds{{Column: filePath, Value: of}}, manifests.Bounds{{Column: filePath, Value: of}}
	default:
		e.ReferencedDataFile = manifests.Some(string(of))
	}
	if d.vector() {
		ext = ".puffin"
		e.ContentOffset = manifests.Some(d.offset)
		if !d.incomplete {
			e.ContentSize = manifests.Some(int64(100))
		}
	}
	if d.encrypted {
		e.KeyMetadata = []byte("key")
	}
	e.Path = location(d.name, ext)
	return e
}

// input is what the planner is given.
func (w *world) input() (ops.Input, error) {
	v, err := iceberg.Load(w.t.Context(), w.fl, id)
	require.NoError(w.t, err)
	s, err := config.Resolve(config.Layers{Flags: w.s.settings, Properties: v.Metadata.Properties}, id.String())
	if err != nil {
		return ops.Input{}, err
	}
	return ops.Input{View: v, Reader: w.fl, Settings: s, Now: w.fl.Virtual().Now()}, nil
}

func (w *world) plan() (*compact.Plan, error) {
	in, err := w.input()
	if err != nil {
		return nil, err
	}
	return compact.NewPlanner(w.s.bind).Plan(w.t.Context(), in)
}

// global reports whether a delete applies to the whole table.
func (s *sketch) global(d *sketchDelete) bool {
	return d.content == manifests.EqualityDeletes && (d.spec >= len(s.specs) || s.specs[d.spec] == "")
}

// applies reports whether a delete applies to a file: written out again from the
// specification.
func (s *sketch) applies(d *sketchDelete, f *sketchFile) bool {
	same := d.spec == f.spec && slices.Equal(d.in, f.in)
	if d.content == manifests.EqualityDeletes {
		return f.seq < d.seq && (s.global(d) || same)
	}
	if !same || f.seq > d.seq || d.of != "" && d.of != f.name {
		return false
	}
	if d.vector() {
		return true
	}
	return !slices.ContainsFunc(s.deletes, func(o sketchDelete) bool { return o.vector() && s.applies(&o, f) })
}

// after is the table when the plan is executed and every prediction holds:
// outputs of like size at the planning sequence number, and no delete that can
// hit nothing.
func (s *sketch) after(t tb, p *compact.Plan) *sketch {
	t.Helper()
	out := *s
	out.files, out.deletes = nil, nil
	out.seq++
	gone := map[string]bool{}
	touched := map[string]bool{}
	for _, u := range p.Units() {
		for _, in := range u.Inputs {
			gone[nameOf(in.Path)] = true
		}
		first := s.named(t, nameOf(u.Inputs[0].Path))
		touched[fmt.Sprint(first.spec, first.in)] = true
	}
	for _, f := range s.files {
		if !gone[f.name] {
			out.files = append(out.files, f)
		}
	}
	// What stays decides which deletes do: outputs have names that none knows, and
	// the planning sequence number.
	for _, d := range s.deletes {
		if (touched[fmt.Sprint(d.spec, d.in)] || s.global(&d)) && (gone[d.of] || !out.mayHit(&d)) {
			continue
		}
		out.deletes = append(out.deletes, d)
	}
	for n, u := range p.Units() {
		first := s.named(t, nameOf(u.Inputs[0].Path))
		for i := range u.Expect.Files {
			f := sketchFile{
				name: fmt.Sprintf("out-%d-%d-%d", out.seq, n, i), spec: first.spec, in: first.in, bytes: u.Expect.Bytes / u.Expect.Files,
				rows: u.Expect.Rows / u.Expect.Files, seq: s.seq, fileSeq: out.seq, format: manifests.Parquet, offsets: []int64{4},
			}
			if i < u.Expect.Bytes%u.Expect.Files {
				f.bytes++
			}
			if i < u.Expect.Rows%u.Expect.Files {
				f.rows++
			}
			if u.Expect.Bytes > 16 {
				f.offsets = []int64{4, u.Expect.Bytes / u.Expect.Files / 2}
			}
			out.files = append(out.files, f)
		}
	}
	return &out
}

func (s *sketch) named(t tb, name string) *sketchFile {
	t.Helper()
	i := slices.IndexFunc(s.files, func(f sketchFile) bool { return f.name == name })
	require.GreaterOrEqual(t, i, 0, "no file %s", name)
	return &s.files[i]
}

// mayHit reports whether a delete may hit a live file, vectors apart.
func (s *sketch) mayHit(d *sketchDelete) bool {
	bare := *s
	bare.deletes = nil
	return slices.ContainsFunc(s.files, func(f sketchFile) bool { return bare.applies(d, &f) })
}
