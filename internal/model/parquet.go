package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Reserved field ids of the specification.
const (
	fieldRowID    = 2147483540
	fieldUpdated  = 2147483539
	fieldFilePath = 2147483546
	fieldPos      = 2147483545
)

// positionSchema is the schema of position delete files.
var positionSchema = icego.NewSchema(0,
	icego.NestedField{ID: fieldFilePath, Name: "file_path", Type: icego.StringType{}, Required: true},
	icego.NestedField{ID: fieldPos, Name: "pos", Type: icego.Int64Type{}, Required: true},
)

// parquetOptions say how a Parquet file is laid out.
type parquetOptions struct {
	codec        string // "" is zstd
	rowGroupRows int    // 0 is one row group
	fieldIDs     bool
	dictionary   bool
	pageRows     int // 0 is one page
	pageV2       bool
	pageIndex    bool
}

func (o parquetOptions) properties(codec compress.Compression) *parquet.WriterProperties {
	all := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithDictionaryDefault(o.dictionary), parquet.WithStats(true),
		parquet.WithCreatedBy("model"), parquet.WithPageIndexEnabled(o.pageIndex),
	}
	if o.pageV2 {
		all = append(all, parquet.WithDataPageVersion(parquet.DataPageV2))
	}
	if o.pageRows > 0 { // a page ends with the batch that fills it
		all = append(all, parquet.WithBatchSize(int64(o.pageRows)), parquet.WithDataPageSize(1))
	}
	return parquet.NewWriterProperties(all...)
}

var codecs = map[string]compress.Compression{
	"": compress.Codecs.Zstd, "zstd": compress.Codecs.Zstd, "snappy": compress.Codecs.Snappy,
	"gzip": compress.Codecs.Gzip, "uncompressed": compress.Codecs.Uncompressed, "brotli": compress.Codecs.Brotli,
}

// parquetFile is what was written.
type parquetFile struct {
	data        []byte
	splits      []int64
	columnSizes map[int]int64
}

func encodeParquet(s *icego.Schema, rows []Row, o parquetOptions) (parquetFile, error) {
	codec, ok := codecs[o.codec]
	if !ok {
		return parquetFile{}, fault.New(fault.Unsupported, "codec "+o.codec+" is not known")
	}
	batch, err := record(s, true, rows)
	if err != nil {
		return parquetFile{}, err
	}
	defer batch.Release()
	as := batch.Schema()
	if !o.fieldIDs {
		if as, batch, err = withoutIDs(s, rows, batch); err != nil {
			return parquetFile{}, err
		}
	}
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(as, &buf, o.properties(codec), pqarrow.DefaultWriterProps())
	if err != nil {
		return parquetFile{}, fault.Wrap(fault.Unsupported, "open parquet writer", err)
	}
	for _, part := range split(len(rows), o.rowGroupRows) {
		w.NewRowGroup()
		piece := batch.NewSlice(int64(part[0]), int64(part[1]))
		err := w.WriteBuffered(piece)
		piece.Release()
		if err != nil {
			return parquetFile{}, fault.Wrap(fault.Unsupported, "write parquet row group", err)
		}
	}
	if err := w.Close(); err != nil {
		return parquetFile{}, fault.Wrap(fault.Unsupported, "close parquet writer", err)
	}
	return describe(buf.Bytes())
}

// withoutIDs is the same batch with no field ids anywhere.
func withoutIDs(s *icego.Schema, rows []Row, old arrow.RecordBatch) (*arrow.Schema, arrow.RecordBatch, error) {
	old.Release()
	batch, err := record(s, false, rows)
	if err != nil {
		return nil, nil, err
	}
	return batch.Schema(), batch, nil
}

// split cuts n rows into pieces of size, one empty piece if there are none.
func split(n, size int) [][2]int {
	if size <= 0 || n == 0 {
		return [][2]int{{0, n}}
	}
	var out [][2]int
	for from := 0; from < n; from += size {
		out = append(out, [2]int{from, min(from+size, n)})
	}
	return out
}

// describe reads the footer of what was written.
func describe(data []byte) (parquetFile, error) {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return parquetFile{}, fault.Wrap(fault.Corrupt, "read back the footer", err)
	}
	defer r.Close()
	out := parquetFile{data: data, columnSizes: map[int]int64{}}
	md := r.MetaData()
	for g := range md.NumRowGroups() {
		rg := md.RowGroup(g)
		start := int64(-1)
		for c := range rg.NumColumns() {
			chunk, err := rg.ColumnChunk(c)
			if err != nil {
				return parquetFile{}, fault.Wrap(fault.Corrupt, "read back a column", err)
			}
			from := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
				from = min(from, chunk.DictionaryPageOffset())
			}
			if start < 0 {
				start = from
			}
			if id := md.Schema.Column(c).SchemaNode().FieldID(); id >= 0 {
				out.columnSizes[int(id)] += chunk.TotalCompressedSize()
			}
		}
		if rg.NumRows() > 0 {
			out.splits = append(out.splits, start)
		}
	}
	return out, nil
}

// encodePositions writes a position delete file, ordered by path and position.
func encodePositions(positions map[string][]int64, o parquetOptions) (parquetFile, int64, error) {
	var rows []Row
	for _, path := range slices.Sorted(maps.Keys(positions)) {
		for _, pos := range positions[path] {
			rows = append(rows, Row{fieldFilePath: path, fieldPos: pos})
		}
	}
	o.fieldIDs = true
	p, err := encodeParquet(positionSchema, rows, o)
	return p, int64(len(rows)), err
}

// decoded is a Parquet file read back.
type decoded struct {
	rows    []Row
	rowIDs  []int64 // nil without the column; negative is null
	updated []int64
}

// decodeParquet reads every row of a Parquet file by field id. Columns without
// an id take it from names.
func decodeParquet(ctx context.Context, data []byte, names map[string]iceberg.FieldID, schemas []*icego.Schema) (decoded, error) {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return decoded{}, fault.Wrap(fault.Corrupt, "open parquet", err)
	}
	defer r.Close()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return decoded{}, fault.Wrap(fault.Corrupt, "open parquet", err)
	}
	rr, err := fr.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return decoded{}, fault.Wrap(fault.Corrupt, "read parquet", err)
	}
	defer rr.Release()
	var out decoded
	for rr.Next() {
		if err := out.add(rr.RecordBatch(), names, schemas); err != nil {
			return decoded{}, err
		}
	}
	if err := rr.Err(); err != nil && !errors.Is(err, io.EOF) {
		return decoded{}, fault.Wrap(fault.Corrupt, "read parquet", err)
	}
	return out, nil
}

func (d *decoded) add(batch arrow.RecordBatch, names map[string]iceberg.FieldID, schemas []*icego.Schema) error {
	from, n := len(d.rows), int(batch.NumRows())
	for range n {
		d.rows = append(d.rows, Row{})
	}
	for c, col := range batch.Columns() {
		f := batch.Schema().Field(c)
		id, ok := arrowFieldID(f)
		if !ok {
			if id, ok = names[f.Name]; !ok {
				continue
			}
		}
		switch id {
		case fieldRowID, fieldUpdated:
			ids, err := int64Column(col)
			if err != nil {
				return fault.In("column "+f.Name, err)
			}
			if id == fieldRowID {
				d.rowIDs = append(d.rowIDs, ids...)
			} else {
				d.updated = append(d.updated, ids...)
			}
			continue
		}
		t := typeOf(schemas, id)
		for i := range n {
			v, err := valueAt(col, i, t)
			if err != nil {
				return fault.In("column "+f.Name, err)
			}
			d.rows[from+i][id] = fixUUIDs(t, v)
		}
	}
	return nil
}

func int64Column(col arrow.Array) ([]int64, error) {
	a, ok := col.(*array.Int64)
	if !ok {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("type is %s, not int64", col.DataType()))
	}
	out := make([]int64, a.Len())
	for i := range out {
		out[i] = -1
		if !a.IsNull(i) {
			out[i] = a.Value(i)
		}
	}
	return out, nil
}

func typeOf(schemas []*icego.Schema, id iceberg.FieldID) icego.Type {
	for _, s := range slices.Backward(schemas) {
		if t, ok := s.FindTypeByID(int(id)); ok {
			return t
		}
	}
	return nil
}
