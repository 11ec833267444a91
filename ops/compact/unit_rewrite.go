package compact

import (
	"context"
	"fmt"
	"sync"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
)

// reading is what files of the table are read and written with.
type reading struct {
	// schema is the one that outputs are written with.
	schema   *icego.Schema
	history  *iceberg.History
	names    icego.NameMapping
	hasNames bool
}

func newReading(v *iceberg.View, schema iceberg.SchemaID) (reading, error) {
	s, ok := v.Metadata.Schema(schema)
	if !ok {
		return reading{}, fault.New(fault.Stale, fmt.Sprintf("schema %d is gone", schema))
	}
	names, has, err := v.Metadata.NameMapping()
	return reading{schema: s, history: v.Metadata.History(), names: names, hasNames: has}, err
}

// rewrite stages a unit, proves it and journals it whole.
func (x *execution) rewrite(ctx context.Context, u *Unit, memory int64, progress func(int64)) (*finished, error) {
	w := &unitWork{x: x, u: u, memory: memory}
	defer w.abort()
	if err := w.entries(ctx); err != nil {
		return nil, err
	}
	q, err := w.request(ctx, progress)
	if err != nil {
		return nil, err
	}
	if err := w.reserve(ctx, u.Expect.Files); err != nil {
		return nil, err
	}
	res, err := x.tools.merge(ctx, q)
	if err != nil {
		return nil, err
	}
	f, err := x.p.recordOf(u).complete(x.view.Metadata)
	if err != nil {
		return nil, err
	}
	f.Proof = res.Proof
	if err := w.prove(ctx, q, &res); err != nil {
		return nil, err
	}
	for _, o := range res.Outputs {
		f.Outputs = append(f.Outputs, output{Output: o, Identity: w.staged[o.At].Identity})
	}
	if f.Map, err = w.storeMap(ctx, &res); err != nil {
		return nil, err
	}
	return f, x.journal(ctx, f)
}

// journal writes a finished unit down.
func (x *execution) journal(ctx context.Context, f *finished) error {
	j, err := f.journalled()
	if err != nil {
		return err
	}
	err = x.st.Run().Finish(ctx, j)
	if fault.Is(err, fault.TooLarge) {
		x.pr.Note(fmt.Sprintf("%s cannot be resumed if this run is cut short: %s", f.Unit.subject(), err))
		return nil
	}
	return err
}

// unitWork is one unit while it is being rewritten.
type unitWork struct {
	x *execution
	u *Unit
	// memory is what the unit may take.
	memory int64
	part   *iceberg.PartitionType
	// files are the entries of the inputs, applied those of the deletes.
	files   []*manifests.Entry
	applied []*manifests.Entry
	tuple   iceberg.Tuple

	mu     sync.Mutex
	names  []filer.Path
	sinks  []*sink
	staged map[filer.Path]commit.Staged
}

// entries reads what the manifests of the planning snapshot say about the inputs
// and the deletes of the unit.
func (w *unitWork) entries(ctx context.Context) error {
	m := w.x.view.Metadata
	var err error
	if w.part, err = m.PartitionType(w.u.Partition.Spec); err != nil {
		return err
	}
	if err := w.part.Writable(m); err != nil {
		return err
	}
	if w.tuple, err = tupleOf(w.part, w.u.Partition.Tuple); err != nil {
		return err
	}
	inputs, dels := map[string]int{}, map[deleteKey]int{}
	var order []int
	add := func(manifest int) {
		for _, n := range order {
			if n == manifest {
				return
			}
		}
		order = append(order, manifest)
	}
	for i := range w.u.Inputs {
		inputs[w.u.Inputs[i].Path] = i
		add(w.u.Inputs[i].Manifest)
	}
	for i, a := range w.u.Deletes {
		d := &w.x.p.deletes[a.Delete]
		dels[deleteKey{d.Identity(), d.DataSeq}] = i
		add(d.Manifest)
	}
	w.files, w.applied = make([]*manifests.Entry, len(w.u.Inputs)), make([]*manifests.Entry, len(w.u.Deletes))
	for _, n := range order {
		path := w.x.p.manifests[n]
		m, ok := w.x.listed[path]
		if !ok {
			return fault.New(fault.Corrupt, fmt.Sprintf("manifest %s is not in the planning snapshot", path))
		}
		for e, err := range manifests.EntriesOf(ctx, w.x.st.Reader(), w.x.view.Locations, m, manifests.ReadOptions{Types: w.x.view.Metadata.PartitionType}) {
			if err != nil {
				return err
			}
			if !e.Live() {
				continue
			}
			if i, ok := inputs[e.Path]; ok && e.Content == manifests.Data && w.files[i] == nil && w.u.Inputs[i].is(e) {
				w.files[i] = e.Clone()
			}
			if i, ok := dels[deleteKey{e.DeleteID(), e.DataSeq.Or(0)}]; ok && e.Content != manifests.Data && w.applied[i] == nil {
				w.applied[i] = e.Clone()
			}
		}
	}
	return w.complete()
}

func (w *unitWork) complete() error {
	for i, e := range w.files {
		switch {
		case e == nil:
			return fault.New(fault.Stale, "input "+w.u.Inputs[i].Path+" is not in the planning snapshot as it was planned")
		case e.PartitionKey() != w.u.Partition:
			return fault.New(fault.Corrupt, "input "+e.Path+" is not of the unit's partition")
		case e.KeyMetadata != nil:
			return fault.New(fault.Unsupported, "input "+e.Path+" is encrypted")
		case e.Format != manifests.Parquet:
			return fault.New(fault.Unsupported, fmt.Sprintf("input %s is of format %s", e.Path, e.Format))
		}
	}
	for i, e := range w.applied {
		d := &w.x.p.deletes[w.u.Deletes[i].Delete]
		switch {
		case e == nil:
			return fault.New(fault.Stale, "delete "+d.Path+" is not in the planning snapshot as it was planned")
		case e.KeyMetadata != nil:
			return fault.New(fault.Unsupported, "delete "+e.Path+" is encrypted")
		}
	}
	return nil
}

// is reports whether an entry is the input, as the entry of a head: the same
// file, added by the same commit, with the same row ids.
func (in *Input) is(e *manifests.Entry) bool { return in.differs(e) == "" }

// differs says what of an entry is not as planned.
func (in *Input) differs(e *manifests.Entry) string {
	row, has := e.FirstRowID.Get()
	switch {
	case e.DataSeq.Or(0) != in.DataSeq || e.FileSeq.Or(0) != in.FileSeq:
		return fmt.Sprintf("was added again: its sequence numbers are %d and %d, planned on %d and %d",
			e.DataSeq.Or(0), e.FileSeq.Or(0), in.DataSeq, in.FileSeq)
	case has != (in.FirstRowID != nil), has && row != *in.FirstRowID:
		return "was given other row ids"
	case e.Records != in.Records:
		return fmt.Sprintf("has %d rows, planned on %d", e.Records, in.Records)
	}
	return ""
}

func (w *unitWork) request(ctx context.Context, progress func(int64)) (rewrite.Request, error) {
	x, m, o := w.x, w.x.view.Metadata, w.x.p.options
	q := rewrite.Request{
		Table: rewrite.Table{
			FormatVersion: m.FormatVersion, Schema: x.read.schema, History: x.read.history, Names: x.read.names, HasNames: x.read.hasNames,
			Properties: m.Properties, Type: w.part, Partition: w.tuple,
		},
		TargetBytes: w.u.TargetBytes, MaxRows: o.MaxRows, Recompress: o.Recompress, Verify: verifyOf(o.Verify), Reader: x.st.Reader(),
		Create: w.create, Open: w.open,
	}
	if order, ok := m.SortOrder(m.DefaultSortOrderID); ok && len(order.Fields) > 0 {
		q.Table.Order = &order
	}
	var last int64
	var mu sync.Mutex
	q.Progress = func(read int64) {
		mu.Lock()
		defer mu.Unlock()
		progress(read - last)
		last = read
	}
	deleted, err := w.deleted(ctx)
	if err != nil {
		return q, err
	}
	q.MemoryBytes = w.memory
	for _, d := range deleted {
		q.MemoryBytes -= d.Bytes()
	}
	if q.MemoryBytes < w.memory/2 {
		return q, fault.New(fault.TooLarge, fmt.Sprintf("the rows that are deleted take %d bytes, of %d", w.memory-q.MemoryBytes, w.memory))
	}
	for i, e := range w.files {
		s := rewrite.Source{
			Location: e.Path, Bytes: e.Bytes, Records: e.Records, Type: w.part, Partition: e.Partition,
			DataSeq: e.DataSeq.Or(0), FirstRowID: w.u.Inputs[i].FirstRowID, Metrics: metricsOf(e),
		}
		if deleted != nil {
			s.Deleted = deleted[i]
		}
		q.Sources = append(q.Sources, s)
	}
	return q, nil
}

// open opens an input.
func (w *unitWork) open(ctx context.Context, s *rewrite.Source) (filer.Object, error) {
	r := w.x.st.Reader()
	o, err := w.x.view.Locations.Open(ctx, r, s.Location)
	return o, fault.In("open input", err)
}

func verifyOf(v config.Verify) rewrite.Verify {
	switch v {
	case config.VerifyCounts:
		return rewrite.VerifyCounts
	case config.VerifyRows:
		return rewrite.VerifyRows
	}
	return rewrite.VerifyContent
}

// deleted are the rows of each input that the planned deletes delete.
func (w *unitWork) deleted(ctx context.Context) ([]*deletes.Positions, error) {
	if len(w.applied) == 0 {
		return nil, nil
	}
	q := loading{reader: w.x.st.Reader(), view: w.x.view, read: w.x.read, files: w.files, deletes: w.applied, memory: w.memory, cache: w.x.cache}
	for _, a := range w.u.Deletes {
		to := a.Inputs
		if to == nil {
			to = upTo(len(w.u.Inputs))
		}
		q.to = append(q.to, to)
	}
	out, err := w.x.tools.load(ctx, q)
	if err == nil && len(out) != len(w.files) {
		err = fault.New(fault.Halt, fmt.Sprintf("deletes of %d files were read, of %d", len(out), len(w.files)))
	}
	return out, fault.In("read the deletes of "+w.u.subject(), err)
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// reserve journals names for the outputs that are expected, in one go.
func (w *unitWork) reserve(ctx context.Context, n int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range min(max(n, 1), 1000) {
		w.names = append(w.names, w.x.dataName(w.part, w.tuple, ".parquet"))
	}
	return w.x.st.Record(ctx, w.names...)
}

// dataName is a fresh name for a file of a partition.
func (x *execution) dataName(t *iceberg.PartitionType, tuple iceberg.Tuple, suffix string) filer.Path {
	name := x.st.Name(x.place.data, "", suffix).Name()
	return x.place.file(t, tuple, name)
}

// create begins an output.
func (w *unitWork) create(ctx context.Context, _ int) (rewrite.Sink, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.names) == 0 {
		name := w.x.dataName(w.part, w.tuple, ".parquet")
		if err := w.x.st.Record(ctx, name); err != nil {
			return nil, err
		}
		w.names = append(w.names, name)
	}
	s, err := newSink(ctx, w.x.st, w.names[0])
	if err != nil {
		return nil, err
	}
	w.names = w.names[1:]
	s.done = func(f commit.Staged) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.staged == nil {
			w.staged = map[filer.Path]commit.Staged{}
		}
		w.staged[f.Path] = f
	}
	w.sinks = append(w.sinks, s)
	return s, nil
}

// abort gives up what was not finished.
func (w *unitWork) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sinks {
		s.Abort()
	}
}

// sink is a staged file as the engine writes it.
type sink struct {
	*commit.File
	ctx  context.Context
	done func(commit.Staged)
}

func newSink(ctx context.Context, st *commit.Stage, name filer.Path) (*sink, error) {
	f, err := st.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &sink{File: f, ctx: ctx, done: func(commit.Staged) {}}, nil
}

// Done implements rewrite.Sink.
func (s *sink) Done(ctx context.Context) (rewrite.Stored, error) {
	f, err := s.File.Done(ctx)
	if err != nil {
		return rewrite.Stored{}, err
	}
	s.done(f)
	return rewrite.Stored{Location: f.Location, At: f.Path, Bytes: f.Size}, nil
}

// Abort implements rewrite.Sink.
func (s *sink) Abort() { s.Upload.Abort(context.WithoutCancel(s.ctx)) }

// storeMap stages the movement map, outside of the table, where no other engine
// takes it for an orphan.
func (w *unitWork) storeMap(ctx context.Context, res *rewrite.Result) (stored, error) {
	content, err := res.Map.Append(nil)
	if err != nil {
		return stored{}, err
	}
	st := w.x.st
	name := st.Name(journal.Maps.Join(st.Run().UUID()), "", ".map")
	if err := st.Record(ctx, name); err != nil {
		return stored{}, err
	}
	f, err := st.Put(ctx, name, content)
	if err != nil {
		return stored{}, fault.In("store the movement map", err)
	}
	if f.Size != int64(len(content)) {
		return stored{}, fault.New(fault.Halt, fmt.Sprintf("movement map %s has %d bytes of %d", name, f.Size, len(content)))
	}
	return stored{At: f.Path, Bytes: f.Size, Identity: f.Identity}, nil
}

// prove compares what the engine says it did with what it was asked, and with
// the files as they are stored now (F023, F001). A difference is this program's
// fault and stops it.
func (w *unitWork) prove(ctx context.Context, q rewrite.Request, res *rewrite.Result) error {
	wrong := func(format string, args ...any) error {
		return fault.New(fault.Halt, "verify "+w.u.subject()+": "+fmt.Sprintf(format, args...))
	}
	if res.Map == nil {
		return wrong("it has no movement map")
	}
	if err := res.Map.Check(); err != nil {
		return fault.In("verify "+w.u.subject(), err)
	}
	if len(res.Map.Sources) != len(q.Sources) || len(res.Map.Outputs) != len(res.Outputs) {
		return wrong("its map is of %d sources and %d outputs, of %d and %d", len(res.Map.Sources), len(res.Map.Outputs), len(q.Sources), len(res.Outputs))
	}
	var read, dropped, written int64
	for i := range q.Sources {
		s := &q.Sources[i]
		if m := res.Map.Sources[i]; m.Location != s.Location || m.Rows != s.Records {
			return wrong("source %d is %s with %d rows in its map, and %s with %d", i, m.Location, m.Rows, s.Location, s.Records)
		}
		if !res.Map.DroppedRows(i).Equal(s.Deleted) {
			return wrong("%d rows of %s were left out, %d are deleted", res.Map.Dropped(i), s.Location, s.Deleted.Len())
		}
		read += s.Records
		dropped += s.Deleted.Len()
	}
	for i := range res.Outputs {
		o := &res.Outputs[i]
		if m := res.Map.Outputs[i]; m.Location != o.Location || m.Rows != o.Records {
			return wrong("output %d is %s with %d rows in its map, and %s with %d", i, m.Location, m.Rows, o.Location, o.Records)
		}
		if err := w.stands(ctx, o); err != nil {
			return fault.In("verify "+w.u.subject(), err)
		}
		written += o.Records
	}
	c := res.Proof.Counts
	if c.RowsRead != read || c.RowsDeleted != dropped || c.RowsWritten != written || read-dropped != written {
		return wrong("%d rows were read, %d left out and %d written; the inputs have %d, %d of them deleted, the outputs %d",
			c.RowsRead, c.RowsDeleted, c.RowsWritten, read, dropped, written)
	}
	return nil
}

// stands opens a staged output and compares its footer.
func (w *unitWork) stands(ctx context.Context, o *rewrite.Output) error {
	w.mu.Lock()
	f, ok := w.staged[o.At]
	w.mu.Unlock()
	if !ok || f.Location != o.Location || f.Size != o.Bytes {
		return fault.New(fault.Halt, fmt.Sprintf("output %s of %d bytes was not staged so", o.Location, o.Bytes))
	}
	if o.Records <= 0 {
		return fault.New(fault.Halt, "output "+o.Location+" has no rows") // F139
	}
	in, err := w.x.st.Reader().Open(ctx, o.At)
	if err != nil {
		return fault.In("read back "+o.Location, err)
	}
	defer in.Close()
	opened, err := column.Open(ctx, in, o.Location, column.Options{Whole: -1})
	if err != nil {
		return fault.Wrap(fault.Halt, "read back "+o.Location, err)
	}
	defer opened.Close()
	foot := opened.Footer()
	if foot.Rows != o.Records {
		return fault.New(fault.Halt, fmt.Sprintf("output %s has %d rows as stored and should have %d", o.Location, foot.Rows, o.Records))
	}
	for _, leaf := range foot.Schema.Leaves {
		if leaf.FieldID == nil {
			return fault.New(fault.Halt, fmt.Sprintf("output %s: column %s has no field id", o.Location, leaf))
		}
	}
	return nil
}
