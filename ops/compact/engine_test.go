package compact

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/movement"
)

// The engine of these tests reads and writes whole files with arrow. It shares
// no code with the real one, and knows nothing of commits.

const (
	rowIDColumn   = 2147483540
	updatedColumn = 2147483539
	pathColumn    = 2147483546
	posColumn     = 2147483545
)

// fakeTools are an engine without the engine.
func fakeTools() tools {
	return tools{merge: fakeMerge, load: fakeLoad, positions: fakePositions, vectors: fakeVectors}
}

var pool = memory.DefaultAllocator

// sheet is a data file in memory, its columns by field id.
type sheet struct {
	rows    int64
	columns map[int]arrow.Array
}

func readSheet(ctx context.Context, r filer.Reader, p filer.Path) (*sheet, error) {
	raw, _, err := filer.ReadAll(ctx, r, p, 1<<30)
	if err != nil {
		return nil, err
	}
	pf, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "open "+p.String(), err)
	}
	defer pf.Close()
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, pool)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "open "+p.String(), err)
	}
	tb, err := fr.ReadTable(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "read "+p.String(), err)
	}
	s := &sheet{rows: tb.NumRows(), columns: map[int]arrow.Array{}}
	for i, f := range tb.Schema().Fields() {
		text, ok := f.Metadata.GetValue("PARQUET:field_id")
		if !ok {
			return nil, fault.New(fault.Unsupported, "column "+f.Name+" has no field id")
		}
		id, err := strconv.Atoi(text)
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, "field id", err)
		}
		if s.columns[id], err = joined(f.Type, tb.Column(i).Data().Chunks()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func joined(t arrow.DataType, parts []arrow.Array) (arrow.Array, error) {
	if len(parts) == 0 {
		return array.MakeArrayOfNull(pool, t, 0), nil
	}
	out, err := array.Concatenate(parts, pool)
	return out, fault.Wrap(fault.Halt, "concatenate", err)
}

func fieldID(f arrow.Field) int {
	text, _ := f.Metadata.GetValue("PARQUET:field_id")
	id, _ := strconv.Atoi(text)
	return id
}

func longField(name string, id int) arrow.Field {
	return arrow.Field{
		Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true,
		Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(id)}),
	}
}

// column is a column of a source as an output has it.
func (s *sheet) column(f arrow.Field, src *rewrite.Source) arrow.Array {
	id := fieldID(f)
	a := s.columns[id]
	if id != rowIDColumn && id != updatedColumn {
		if a == nil {
			return array.MakeArrayOfNull(pool, f.Type, int(s.rows))
		}
		return a
	}
	b := array.NewInt64Builder(pool)
	for i := range int(s.rows) {
		switch {
		case a != nil && a.IsValid(i):
			b.Append(a.(*array.Int64).Value(i))
		case id == updatedColumn:
			b.Append(int64(src.DataSeq))
		case src.FirstRowID != nil:
			b.Append(*src.FirstRowID + int64(i))
		default:
			b.AppendNull()
		}
	}
	return b.NewArray()
}

// merger is one unit.
type merger struct {
	q       rewrite.Request
	fields  []arrow.Field
	pieces  [][]arrow.Array
	sources []movement.Source
	order   []kept
	res     rewrite.Result
}

type kept struct {
	source     int
	from, rows int64
}

// fakeMerge writes outputs of at most MaxRows rows.
func fakeMerge(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
	schema, err := icetable.SchemaToArrowSchema(q.Table.Schema, nil, true, false)
	if err != nil {
		return rewrite.Result{}, fault.Wrap(fault.Unsupported, "make an arrow schema", err)
	}
	m := &merger{q: q, fields: schema.Fields()}
	if q.Table.FormatVersion >= 3 {
		m.fields = append(m.fields, longField("_row_id", rowIDColumn), longField("_last_updated_sequence_number", updatedColumn))
	}
	m.pieces = make([][]arrow.Array, len(m.fields))
	for n := range q.Sources {
		if err := m.read(ctx, n); err != nil {
			return m.res, err
		}
	}
	return m.write(ctx)
}

func (m *merger) read(ctx context.Context, n int) error {
	src := &m.q.Sources[n]
	in, err := m.q.Open(ctx, src)
	if err != nil {
		return err
	}
	at := in.Entry().Path
	_ = in.Close()
	s, err := readSheet(ctx, m.q.Reader, at)
	if err != nil {
		return err
	}
	if s.rows != src.Records {
		return fault.New(fault.Corrupt, fmt.Sprintf("%s has %d rows, its entry says %d", src.Location, s.rows, src.Records))
	}
	m.sources = append(m.sources, movement.Source{Location: src.Location, Rows: s.rows})
	c := &m.res.Proof.Counts
	c.RowsRead += s.rows
	c.RowsDeleted += src.Deleted.Len()
	c.BytesRead += src.Bytes
	if m.q.Progress != nil {
		m.q.Progress(c.BytesRead)
	}
	for from, to := range src.Deleted.Kept(0, s.rows) {
		m.order = append(m.order, kept{n, from, to - from})
		for i, f := range m.fields {
			m.pieces[i] = append(m.pieces[i], array.NewSlice(s.column(f, src), from, to))
		}
	}
	return nil
}

func (m *merger) write(ctx context.Context) (rewrite.Result, error) {
	c := &m.res.Proof.Counts
	total := c.RowsRead - c.RowsDeleted
	most := m.q.MaxRows
	if most <= 0 {
		most = max(total, 1)
	}
	b := movement.NewBuilder(m.sources)
	columns := make([]arrow.Array, len(m.fields))
	for i, f := range m.fields {
		var err error
		if columns[i], err = joined(f.Type, m.pieces[i]); err != nil {
			return m.res, err
		}
	}
	out := 0
	for _, k := range m.order {
		for k.rows > 0 {
			if b.Rows(out) == most {
				out++
			}
			n := min(k.rows, most-b.Rows(out))
			b.Append(k.source, k.from, n, out)
			k.from, k.rows = k.from+n, k.rows-n
		}
	}
	var at []string
	for from := int64(0); from < total; from += most {
		o, err := m.put(ctx, len(at), columns, from, min(from+most, total))
		if err != nil {
			return m.res, err
		}
		at = append(at, o.Location)
		m.res.Outputs = append(m.res.Outputs, o)
		c.RowsWritten += o.Records
	}
	m.res.Proof.Verify, m.res.Proof.Sum = "counts", fmt.Sprint(total)
	var err error
	m.res.Map, err = b.Build(at)
	return m.res, err
}

func (m *merger) put(ctx context.Context, n int, columns []arrow.Array, from, to int64) (rewrite.Output, error) {
	parts := make([]arrow.Array, len(columns))
	for i, a := range columns {
		parts[i] = array.NewSlice(a, from, to)
	}
	raw, err := encode(m.fields, parts)
	if err != nil {
		return rewrite.Output{}, err
	}
	to2, err := m.q.Create(ctx, n)
	if err != nil {
		return rewrite.Output{}, err
	}
	if _, err := to2.Write(raw); err != nil {
		return rewrite.Output{}, err
	}
	st, err := to2.Done(ctx)
	o := rewrite.Output{Stored: st, Records: to - from, Metrics: rewrite.Metrics{Values: map[iceberg.FieldID]int64{}}}
	for _, f := range m.fields {
		if id := fieldID(f); id < rowIDColumn-100 {
			o.Values[iceberg.FieldID(id)] = to - from
		}
	}
	return o, err
}

func encode(fields []arrow.Field, columns []arrow.Array) ([]byte, error) {
	s := arrow.NewSchema(fields, nil)
	batch := array.NewRecordBatch(s, columns, -1)
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(s, &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err == nil {
		err = w.WriteBuffered(batch)
	}
	if err == nil {
		err = w.Close()
	}
	return buf.Bytes(), fault.Wrap(fault.Halt, "write parquet", err)
}

// fakeLoad reads every delete for every file.
func fakeLoad(ctx context.Context, q loading) ([]*deletes.Positions, error) {
	out := make([]*deletes.Positions, len(q.files))
	r := q.reader
	for i, d := range q.deletes {
		at, err := q.view.Locations.Find(ctx, r, d.Path)
		if err != nil {
			return nil, err
		}
		for _, n := range q.to[i] {
			if out[n] == nil {
				out[n] = &deletes.Positions{}
			}
			f := q.files[n]
			switch {
			case d.Format == manifests.Avro || d.Format == manifests.ORC:
				err = fault.New(fault.Unsupported, fmt.Sprintf("delete %s is of format %s", d.Path, d.Format))
			case d.IsVector():
				err = loadVector(ctx, r, at.Path, d, f, out[n])
			case d.Content == manifests.PositionDeletes:
				err = loadPositions(ctx, r, at.Path, f, out[n])
			default:
				err = loadKeys(ctx, q, r, at.Path, d, f, out[n])
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func loadVector(ctx context.Context, r filer.Reader, p filer.Path, d, f *manifests.Entry, out *deletes.Positions) error {
	raw, _, err := filer.ReadAll(ctx, r, p, 1<<30)
	if err != nil {
		return err
	}
	got, err := deletes.ParseVector(raw[d.ContentOffset.Value:d.ContentOffset.Value+d.ContentSize.Value], f.Records)
	if err == nil {
		out.Or(got)
	}
	return err
}

func loadPositions(ctx context.Context, r filer.Reader, p filer.Path, f *manifests.Entry, out *deletes.Positions) error {
	s, err := readSheet(ctx, r, p)
	if err != nil {
		return err
	}
	paths, places := s.columns[pathColumn].(*array.String), s.columns[posColumn].(*array.Int64)
	for i := range int(s.rows) {
		if paths.Value(i) == f.Path {
			out.Add(places.Value(i))
		}
	}
	return nil
}

func loadKeys(ctx context.Context, q loading, r filer.Reader, p filer.Path, d, f *manifests.Entry, out *deletes.Positions) error {
	keys, err := readSheet(ctx, r, p)
	if err != nil {
		return err
	}
	at, err := q.view.Locations.Find(ctx, r, f.Path)
	if err != nil {
		return err
	}
	data, err := readSheet(ctx, r, at.Path)
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for i := range int(keys.rows) {
		gone[keys.key(d.EqualityIDs, i)] = true
	}
	for i := range int(data.rows) {
		if gone[data.key(d.EqualityIDs, i)] {
			out.Add(int64(i))
		}
	}
	return nil
}

func (s *sheet) key(ids []iceberg.FieldID, row int) string {
	var b strings.Builder
	for _, id := range ids {
		a := s.columns[int(id)]
		if a == nil || a.IsNull(row) {
			b.WriteString("null;")
			continue
		}
		fmt.Fprintf(&b, "%q;", a.ValueStr(row))
	}
	return b.String()
}

func fakePositions(ctx context.Context, to rewrite.Sink, q marking) (manifests.File, error) {
	paths, pos := array.NewStringBuilder(pool), array.NewInt64Builder(pool)
	for p := range q.rows.All() {
		paths.Append(q.file.Path)
		pos.Append(p)
	}
	f := longField("file_path", pathColumn)
	f.Type = arrow.BinaryTypes.String
	raw, err := encode([]arrow.Field{f, longField("pos", posColumn)}, []arrow.Array{paths.NewArray(), pos.NewArray()})
	if err != nil {
		return manifests.File{}, err
	}
	if _, err := to.Write(raw); err != nil {
		return manifests.File{}, err
	}
	st, err := to.Done(ctx)
	path := []byte(q.file.Path)
	return manifests.File{
		Content: manifests.PositionDeletes, Path: st.Location, Format: manifests.Parquet, SpecID: q.file.SpecID, Partition: q.file.Partition,
		Records: q.rows.Len(), Bytes: st.Bytes, ReferencedDataFile: manifests.Some(q.file.Path),
		Lower: manifests.Bounds{{Column: pathColumn, Value: path}}, Upper: manifests.Bounds{{Column: pathColumn, Value: path}},
	}, err
}

func fakeVectors(ctx context.Context, to rewrite.Sink, all []marking) ([]manifests.File, error) {
	var rows []deletes.Deleted
	for _, q := range all {
		rows = append(rows, deletes.Deleted{DataFile: q.file.Path, Positions: q.rows})
	}
	wrote, size, err := deletes.WriteVectors(to, "test", rows)
	if err != nil {
		return nil, err
	}
	st, err := to.Done(ctx)
	if err == nil && st.Bytes != size {
		err = fault.New(fault.Halt, fmt.Sprintf("%d bytes were stored of %d", st.Bytes, size))
	}
	var out []manifests.File
	for i, w := range wrote {
		f := all[i].file
		out = append(out, manifests.File{
			Content: manifests.PositionDeletes, Path: st.Location, Format: manifests.Puffin, SpecID: f.SpecID, Partition: f.Partition,
			Records: w.Records, Bytes: size, ReferencedDataFile: manifests.Some(w.DataFile),
			ContentOffset: manifests.Some(w.Offset), ContentSize: manifests.Some(w.Size),
		})
	}
	return out, err
}
