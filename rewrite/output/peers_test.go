package output_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	peer "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// arrowRows reads a chunk with arrow-go.
func arrowRows(t require.TestingT, data []byte, group, leaf int) rows {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Close()
	c, err := r.RowGroup(group).Column(leaf)
	require.NoError(t, err)
	d := c.Descriptor()
	var out rows
	n := int64(1000)
	def, rep := make([]int16, n), make([]int16, n)
	for c.HasNext() {
		var total int64
		var got int
		var err error
		add := func(b []byte) { out.values = append(out.values, b) }
		switch r := c.(type) {
		case *file.BooleanColumnChunkReader:
			v := make([]bool, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				b := byte(0)
				if x {
					b = 1
				}
				add([]byte{b})
			}
		case *file.Int32ColumnChunkReader:
			v := make([]int32, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(le(x))
			}
		case *file.Int64ColumnChunkReader:
			v := make([]int64, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(le(x))
			}
		case *file.Int96ColumnChunkReader:
			v := make([]parquet.Int96, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(bytes.Clone(x[:]))
			}
		case *file.Float32ColumnChunkReader:
			v := make([]float32, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
			}
		case *file.Float64ColumnChunkReader:
			v := make([]float64, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
			}
		case *file.ByteArrayColumnChunkReader:
			v := make([]parquet.ByteArray, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(bytes.Clone(x))
			}
		case *file.FixedLenByteArrayColumnChunkReader:
			v := make([]parquet.FixedLenByteArray, n)
			total, got, err = r.ReadBatch(n, v, def, rep)
			for _, x := range v[:got] {
				add(bytes.Clone(x))
			}
		}
		require.NoError(t, err)
		require.NoError(t, c.Err())
		if total == 0 {
			break
		}
		for i := range int(total) {
			if d.MaxRepetitionLevel() > 0 {
				out.rep = append(out.rep, byte(rep[i]))
			}
			if d.MaxDefinitionLevel() > 0 {
				out.def = append(out.def, byte(def[i]))
			}
		}
	}
	require.NoError(t, c.Err())
	return out
}

// openPeer opens a file with parquet-go.
func openPeer(t require.TestingT, data []byte) *peer.File {
	f, err := peer.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

// peerRows reads a chunk with parquet-go from a row on.
func peerRows(t require.TestingT, f *peer.File, s *format.Schema, group, leaf int, from int64) rows {
	var out rows
	node := s.Leaves[leaf]
	pages := f.RowGroups()[group].ColumnChunks()[leaf].Pages()
	defer pages.Close()
	if from > 0 {
		require.NoError(t, pages.SeekToRow(from))
	}
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		values := make([]peer.Value, p.NumValues())
		n, err := p.Values().ReadValues(values)
		if !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
		require.EqualValues(t, p.NumValues(), n)
		for _, v := range values {
			if node.MaxRep > 0 {
				out.rep = append(out.rep, byte(v.RepetitionLevel()))
			}
			if node.MaxDef > 0 {
				out.def = append(out.def, byte(v.DefinitionLevel()))
			}
			if v.DefinitionLevel() == node.MaxDef {
				out.values = append(out.values, peerBytes(v, node))
			}
		}
		peer.Release(p)
	}
}

func peerBytes(v peer.Value, n *format.Node) []byte {
	if n.Type == format.Boolean {
		if v.Boolean() {
			return []byte{1}
		}
		return []byte{0}
	}
	return bytes.Clone(v.Bytes())
}

// ownRows reads a leaf with this engine's reader.
func ownRows(t require.TestingT, f *column.File, leaf int) rows {
	var out rows
	r := f.Reader(leaf)
	defer r.Close()
	for {
		var b column.Batch
		err := r.Next(&b, 1<<16)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out.add(&b)
	}
}
