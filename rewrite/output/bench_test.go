//go:build unix

package output_test

import (
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
)

// BenchmarkWriters writes a million rows of one optional column to nowhere, by
// this writer and by arrow-go's.
func BenchmarkWriters(b *testing.B) {
	const rows, batch = 1 << 20, 8192
	r := &random{state: 1}
	def16 := make([]int16, batch)
	def8 := make([]byte, batch)
	for i := range def8 {
		def16[i], def8[i] = 1, 1
	}
	longs := func(kinds int) []int64 {
		out := make([]int64, rows)
		for i := range out {
			out[i] = int64(r.n(kinds)) * 1_000_003
		}
		return out
	}
	texts := func(kinds int) []string {
		out := make([]string, rows)
		for i := range out {
			out[i] = fmt.Sprintf("customer-%012d", r.n(kinds))
		}
		return out
	}
	codecs := []struct {
		ours format.Codec
		peer compress.Compression
	}{{format.Uncompressed, compress.Codecs.Uncompressed}, {format.Snappy, compress.Codecs.Snappy}, {format.Zstd, compress.Codecs.Zstd}}
	for _, kinds := range []int{5000, 1 << 40} {
		name := "dictionary"
		if kinds > rows {
			name = "plain"
		}
		l, s := longs(kinds), texts(kinds)
		for _, c := range codecs {
			b.Run(fmt.Sprintf("int64/%s/%s/seaice", name, codec.Name(c.ours)), func(b *testing.B) {
				b.SetBytes(rows * 8)
				var v column.Values
				v.Reset(format.Int64, 8)
				for _, x := range l {
					v.Append(le(x))
				}
				defer spent(b)()
				for range b.N {
					ours(b, leafOf("a", format.Int64, format.Optional), c.ours, &v, def8, batch)
				}
			})
			b.Run(fmt.Sprintf("int64/%s/%s/arrow-go", name, codec.Name(c.ours)), func(b *testing.B) {
				b.SetBytes(rows * 8)
				defer spent(b)()
				for range b.N {
					w, cw := peerWriter(b, c.peer, kinds <= rows, schema.NewInt64Node("a", parquet.Repetitions.Optional, 1))
					for at := 0; at < rows; at += batch {
						_, err := cw.(*file.Int64ColumnChunkWriter).WriteBatch(l[at:at+batch], def16, nil)
						require.NoError(b, err)
					}
					finish(b, w, cw)
				}
			})
			b.Run(fmt.Sprintf("text/%s/%s/seaice", name, codec.Name(c.ours)), func(b *testing.B) {
				b.SetBytes(rows * 21)
				var v column.Values
				v.Reset(format.ByteArray, 0)
				for _, x := range s {
					v.Append([]byte(x))
				}
				defer spent(b)()
				for range b.N {
					ours(b, with(leafOf("a", format.ByteArray, format.Optional), asString), c.ours, &v, def8, batch)
				}
			})
			b.Run(fmt.Sprintf("text/%s/%s/arrow-go", name, codec.Name(c.ours)), func(b *testing.B) {
				b.SetBytes(rows * 21)
				v := make([]parquet.ByteArray, rows)
				for i := range s {
					v[i] = parquet.ByteArray(s[i])
				}
				defer spent(b)()
				for range b.N {
					node := schema.MustPrimitive(schema.NewPrimitiveNodeLogical("a", parquet.Repetitions.Optional, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, 1))
					w, cw := peerWriter(b, c.peer, kinds <= rows, node)
					for at := 0; at < rows; at += batch {
						_, err := cw.(*file.ByteArrayColumnChunkWriter).WriteBatch(v[at:at+batch], def16, nil)
						require.NoError(b, err)
					}
					finish(b, w, cw)
				}
			})
		}
	}
}

func ours(b *testing.B, leaf *format.Node, c format.Codec, v *column.Values, def []byte, batch int) {
	b.Helper()
	s := schemaOf(b, leaf)
	f, err := output.NewFile(io.Discard, s, output.Options{CreatedBy: createdBy})
	require.NoError(b, err)
	g, err := f.BeginGroup()
	require.NoError(b, err)
	chunk, err := g.Column(0, c)
	require.NoError(b, err)
	e, err := encode.NewEncoder(s.Leaves[0], encode.Options{Codec: c, CRC: true}, chunk)
	require.NoError(b, err)
	n := v.Len()
	for at := 0; at < n; at += batch {
		part := column.Batch{Levels: batch, Rows: batch, Def: def, Values: *v}
		if v.Width > 0 {
			part.Values.Data = v.Data[at*v.Width : (at+batch)*v.Width]
		} else {
			part.Values.Offsets = v.Offsets[at : at+batch+1]
		}
		require.NoError(b, e.Write(&part))
	}
	require.NoError(b, e.Close())
	require.NoError(b, chunk.Close())
	require.NoError(b, g.Close(int64(n)))
	_, err = f.Close()
	require.NoError(b, err)
}

// spent reports the processor time of an operation, which other programs on the
// machine disturb less than they do the wall clock's.
func spent(b *testing.B) func() {
	b.Helper()
	usage := func() int64 {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return u.Utime.Nano() + u.Stime.Nano()
	}
	begin := usage()
	b.ResetTimer()
	return func() { b.ReportMetric(float64(usage()-begin)/1e6/float64(b.N), "cpu-ms/op") }
}

// peerWriter begins a column with arrow-go. Its writer does not fall back from a
// dictionary by cost, so it is told which columns have one.
func peerWriter(b *testing.B, c compress.Compression, dictionary bool, node schema.Node) (*file.Writer, file.ColumnChunkWriter) {
	b.Helper()
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{node}, -1)
	require.NoError(b, err)
	w := file.NewParquetWriter(io.Discard, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(c), parquet.WithDictionaryDefault(dictionary), parquet.WithStats(true), parquet.WithPageIndexEnabled(true),
	)))
	g, err := w.AppendRowGroupChecked()
	require.NoError(b, err)
	cw, err := g.NextColumn()
	require.NoError(b, err)
	return w, cw
}

func finish(b *testing.B, w *file.Writer, cw file.ColumnChunkWriter) {
	b.Helper()
	require.NoError(b, cw.Close())
	require.NoError(b, w.Close())
}
