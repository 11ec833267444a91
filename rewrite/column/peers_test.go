package column_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// fixtures are the Parquet files of other writers by their names.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	root := os.Getenv("SEAICE_FIXTURES")
	if root == "" {
		root = "../../../shared/fixtures"
	}
	files, err := filepath.Glob(filepath.Join(root, "parquet", "*.parquet"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("there are no files of other writers; set SEAICE_FIXTURES")
	}
	out := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(f), ".parquet")] = b
	}
	return out
}

func open(t testing.TB, b []byte, o column.Options) (*column.File, error) {
	t.Helper()
	return column.Open(t.Context(), bytes.NewReader(b), "x.parquet", o)
}

// content is what a leaf holds over all row groups.
type content struct {
	Rep, Def []byte
	Values   [][]byte
}

func (c *content) add(b *column.Batch) {
	c.Rep = append(c.Rep, b.Rep...)
	c.Def = append(c.Def, b.Def...)
	for i := range b.Values.Len() {
		c.Values = append(c.Values, bytes.Clone(b.Values.At(i)))
	}
}

// pageByPage reads a leaf with Pages and a Decoder, and checks that Levels and
// Indices agree with Decode.
func pageByPage(f *column.File, leaf int) (content, error) {
	var all content
	for g := range f.Footer().RowGroups {
		if err := groupByPage(f, g, leaf, &all); err != nil {
			return all, err
		}
	}
	return all, nil
}

func groupByPage(f *column.File, g, leaf int, all *content) error {
	pages, err := f.Pages(g, leaf)
	if err != nil {
		return err
	}
	defer pages.Close()
	d := f.Decoder(g, leaf)
	defer d.Close()
	var b, other column.Batch
	for {
		p, err := pages.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.Dictionary() {
			if err := d.Dictionary(p); err != nil {
				return err
			}
			continue
		}
		if err := d.Decode(p, &b); err != nil {
			return err
		}
		if err := d.Levels(p, &other); err != nil {
			return fmt.Errorf("levels: %w", err)
		}
		if !bytes.Equal(b.Rep, other.Rep) || !bytes.Equal(b.Def, other.Def) || b.Rows != other.Rows || b.Levels != other.Levels {
			return errors.New("the levels of Levels and of Decode differ")
		}
		if p.Rows >= 0 && p.Rows != int64(b.Rows) {
			return fmt.Errorf("a page of %d rows has %d", p.Rows, b.Rows)
		}
		if column.Coded(p.Header.Encoding) {
			codes, err := d.Indices(p, &other, nil)
			if err != nil {
				return fmt.Errorf("indices: %w", err)
			}
			for i, c := range codes {
				if !bytes.Equal(d.Entries().At(int(c)), b.Values.At(i)) {
					return errors.New("codes and values differ")
				}
			}
		}
		all.add(&b)
	}
}

// byRows reads a leaf with a Reader in batches of so many bytes, and checks that
// they are whole rows.
func byRows(f *column.File, leaf, maxBytes int) (content, error) {
	var all content
	var b column.Batch
	r := f.Reader(leaf)
	defer r.Close()
	rows := int64(0)
	for {
		err := r.Next(&b, maxBytes)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return all, err
		}
		if b.Rows == 0 || len(b.Rep) > 0 && b.Rep[0] != 0 {
			return all, errors.New("a batch that begins within a row")
		}
		rows += int64(b.Rows)
		all.add(&b)
	}
	if rows != f.Footer().Rows {
		return all, fmt.Errorf("%d rows of %d", rows, f.Footer().Rows)
	}
	return all, nil
}

// byArrow reads a leaf with arrow-go.
func byArrow(b []byte, leaf int) (c content, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("arrow-go: %v", p)
		}
	}()
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		return c, err
	}
	defer r.Close()
	for g := range r.NumRowGroups() {
		chunk, err := r.RowGroup(g).Column(leaf)
		if err != nil {
			return c, err
		}
		rows := r.MetaData().RowGroups[g].Columns[leaf].MetaData.NumValues
		if err := arrowChunk(chunk, rows, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

type batchReader[T any] interface {
	ReadBatch(n int64, values []T, def, rep []int16) (int64, int, error)
	HasNext() bool
	Err() error
}

func arrowChunk(chunk file.ColumnChunkReader, n int64, c *content) error {
	switch r := chunk.(type) {
	case *file.BooleanColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v bool) []byte {
			if v {
				return []byte{1}
			}
			return []byte{0}
		})
	case *file.Int32ColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) })
	case *file.Int64ColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) })
	case *file.Float32ColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) })
	case *file.Float64ColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) })
	case *file.Int96ColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v parquet.Int96) []byte { return bytes.Clone(v[:]) })
	case *file.ByteArrayColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v parquet.ByteArray) []byte { return append([]byte{}, v...) })
	case *file.FixedLenByteArrayColumnChunkReader:
		return arrowValues(chunk, r, n, c, func(v parquet.FixedLenByteArray) []byte { return bytes.Clone(v) })
	}
	return fmt.Errorf("arrow-go: %T", chunk)
}

func arrowValues[T any](chunk file.ColumnChunkReader, r batchReader[T], total int64, c *content, plain func(T) []byte) error {
	d := chunk.Descriptor()
	for seen := int64(0); seen < total && r.HasNext(); {
		values := make([]T, 1000)
		def, rep := make([]int16, 1000), make([]int16, 1000)
		n, read, err := r.ReadBatch(1000, values, def, rep)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		seen += n
		for i := range n {
			if d.MaxRepetitionLevel() > 0 {
				c.Rep = append(c.Rep, byte(rep[i]))
			}
			if d.MaxDefinitionLevel() > 0 {
				c.Def = append(c.Def, byte(def[i]))
			}
		}
		for _, v := range values[:read] {
			c.Values = append(c.Values, plain(v))
		}
	}
	return r.Err()
}

// byParquetGo reads a leaf with parquet-go.
func byParquetGo(b []byte, leaf int, node *format.Node) (c content, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parquet-go: %v", p)
		}
	}()
	f, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return c, err
	}
	for _, g := range f.RowGroups() {
		if err := parquetGoChunk(g.ColumnChunks()[leaf], node, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func parquetGoChunk(chunk pq.ColumnChunk, node *format.Node, c *content) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		values := make([]pq.Value, p.NumValues())
		if n, err := p.Values().ReadValues(values); n < len(values) {
			return fmt.Errorf("parquet-go: %d values of %d: %w", n, len(values), err)
		}
		for _, v := range values {
			if node.MaxRep > 0 {
				c.Rep = append(c.Rep, byte(v.RepetitionLevel()))
			}
			if node.MaxDef > 0 {
				c.Def = append(c.Def, byte(v.DefinitionLevel()))
			}
			if !v.IsNull() {
				c.Values = append(c.Values, append([]byte{}, v.Bytes()...))
			}
		}
		pq.Release(p)
	}
}
