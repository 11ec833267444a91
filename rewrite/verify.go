package rewrite

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// verifyRows reads a stored output through a reader that shares nothing with the
// engine (arrow-go's), and compares every row with those of the sources, decoded
// once more.
func (e *engine) verifyRows(ctx context.Context, o *outFile) error {
	doing := "read back " + o.result.Location
	object, err := e.q.Reader.Open(ctx, o.result.At)
	if err != nil {
		return fault.In(doing, err)
	}
	defer func() { _ = object.Close() }() // it was only read
	if object.Size() != o.result.Bytes {
		return fault.New(fault.Halt, fmt.Sprintf("%s: it has %d bytes, %d were written", doing, object.Size(), o.result.Bytes))
	}
	for i := range e.target.Leaves {
		if err := e.verifyLeaf(ctx, o, object, i); err != nil {
			return fault.In(doing, err)
		}
	}
	return nil
}

func (e *engine) verifyLeaf(ctx context.Context, o *outFile, object filer.Object, leaf int) error {
	node := e.target.Leaves[leaf].Node
	m := &mover{e: e, ctx: ctx, index: leaf, leaf: &e.target.Leaves[leaf]}
	var source sum
	for _, s := range o.spans {
		err := m.feed(s.source).rows(s.first, s.rows, func(b *column.Batch) error {
			source.add(b, node.MaxDef)
			return nil
		})
		if err != nil {
			return err
		}
	}
	stored, err := foreignSum(object, leaf, node)
	if err != nil {
		return fault.Wrap(fault.Halt, "column "+m.leaf.Name, err)
	}
	if source.total != stored.total || source.values != stored.values {
		return fault.New(fault.Halt, fmt.Sprintf("column %s: it has %d values with sum %016x, the sources have %d with %016x",
			m.leaf.Name, stored.values, stored.total, source.values, source.total))
	}
	e.counts.proved.Add(stored.values)
	return nil
}

// foreignBatch is how many levels are read at once.
const foreignBatch = 4096

// foreignSum is the sum of a leaf of a file as arrow-go reads it.
func foreignSum(object filer.Object, leaf int, node *format.Node) (s sum, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Halt, fmt.Sprintf("%v", p))
		}
	}()
	r, err := file.NewParquetReader(&seeker{Object: object})
	if err != nil {
		return s, err
	}
	for g := range r.NumRowGroups() {
		c, err := r.RowGroup(g).Column(leaf)
		if err != nil {
			return s, err
		}
		if err := foreignChunk(&s, c, node); err != nil {
			return s, err
		}
	}
	return s, nil
}

// foreignChunk adds a chunk.
func foreignChunk(s *sum, c file.ColumnChunkReader, node *format.Node) error {
	def, rep := make([]int16, foreignBatch), make([]int16, foreignBatch)
	b := &column.Batch{}
	width := node.Width()
	for c.HasNext() {
		b.Values.Reset(node.Type, width)
		levels, err := foreignValues(c, &b.Values, def, rep)
		if err != nil {
			return err
		}
		if levels == 0 {
			return fault.New(fault.Halt, "a batch without values")
		}
		b.Levels = int(levels)
		b.Def, b.Rep = narrow(b.Def, def[:levels], node.MaxDef), narrow(b.Rep, rep[:levels], node.MaxRep)
		s.add(b, node.MaxDef)
	}
	return c.Err()
}

func narrow(dst []byte, levels []int16, greatest int) []byte {
	if greatest == 0 {
		return nil
	}
	dst = dst[:0]
	for _, l := range levels {
		dst = append(dst, byte(l))
	}
	return dst
}

// foreignValues reads a batch into v.
func foreignValues(c file.ColumnChunkReader, v *column.Values, def, rep []int16) (levels int64, err error) {
	var n int
	switch c := c.(type) {
	case *file.BooleanColumnChunkReader:
		in := make([]bool, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			bit := byte(0)
			if x {
				bit = 1
			}
			v.Data = append(v.Data, bit)
		}
	case *file.Int32ColumnChunkReader:
		in := make([]int32, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			v.Data = binary.LittleEndian.AppendUint32(v.Data, uint32(x))
		}
	case *file.Int64ColumnChunkReader:
		in := make([]int64, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			v.Data = binary.LittleEndian.AppendUint64(v.Data, uint64(x))
		}
	case *file.Float32ColumnChunkReader:
		in := make([]float32, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(x))
		}
	case *file.Float64ColumnChunkReader:
		in := make([]float64, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			v.Data = binary.LittleEndian.AppendUint64(v.Data, math.Float64bits(x))
		}
	case *file.ByteArrayColumnChunkReader:
		in := make([]parquet.ByteArray, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			v.Append(x)
		}
	case *file.FixedLenByteArrayColumnChunkReader:
		in := make([]parquet.FixedLenByteArray, foreignBatch)
		levels, n, err = c.ReadBatch(foreignBatch, in, def, rep)
		for _, x := range in[:n] {
			v.Append(x)
		}
	default:
		err = fault.New(fault.Halt, fmt.Sprintf("a column of type %s", c.Type()))
	}
	return levels, err
}

// seeker makes an object what arrow-go reads from.
type seeker struct {
	filer.Object
	at int64
}

// Seek moves the place that Read goes on from.
func (s *seeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case 1:
		offset += s.at
	case 2:
		offset += s.Size()
	}
	if offset < 0 {
		return s.at, fault.New(fault.Halt, "seek before the begin")
	}
	s.at = offset
	return offset, nil
}

// Read reads on.
func (s *seeker) Read(b []byte) (int, error) {
	n, err := s.ReadAt(b, s.at)
	s.at += int64(n)
	return n, err
}
