package column_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/column"
)

// BenchmarkDecode decodes all pages of a column without compression. Bytes are
// those of the values in memory.
func BenchmarkDecode(b *testing.B) {
	for _, p := range []parquet.Type{parquet.Types.Boolean, parquet.Types.Int32, parquet.Types.Int64, parquet.Types.ByteArray, parquet.Types.FixedLenByteArray} {
		for _, e := range encodings[p] {
			for _, s := range []int{0, 1, 3} {
				for _, nulls := range []int{0, 20} {
					if s == 0 && nulls > 0 {
						continue
					}
					l := layout{codec: compress.Codecs.Uncompressed, pageSize: 1 << 20, batch: 1024, groups: 1, rows: 200_000, distinct: 1000, nulls: nulls, seed: 3}
					b.Run(fmt.Sprintf("%s/%s/shape=%d/nulls=%d", p, e, s, nulls), func(b *testing.B) {
						raw, _ := arrowFile(b, l, p, e, shapes[s])
						f, err := open(b, raw, column.Options{Whole: 1 << 40})
						require.NoError(b, err)
						benchmarkDecode(b, f)
					})
				}
			}
		}
	}
}

func benchmarkDecode(b *testing.B, f *column.File) {
	b.Helper()
	var batch column.Batch
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		bytes = 0
		pages, err := f.Pages(0, 0)
		require.NoError(b, err)
		d := f.Decoder(0, 0)
		for {
			p, err := pages.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(b, err)
			if p.Dictionary() {
				require.NoError(b, d.Dictionary(p))
				continue
			}
			require.NoError(b, d.Decode(p, &batch))
			bytes += batch.Bytes()
		}
		d.Close()
	}
	b.SetBytes(int64(bytes))
}

// BenchmarkReader is the same in batches of rows.
func BenchmarkReader(b *testing.B) {
	for _, p := range []parquet.Type{parquet.Types.Int64, parquet.Types.ByteArray} {
		for _, e := range encodings[p][:2] {
			for _, size := range []int{64 << 10, 1 << 20} {
				l := layout{codec: compress.Codecs.Uncompressed, pageSize: 1 << 20, batch: 1024, groups: 1, rows: 200_000, distinct: 1000, nulls: 20, seed: 3}
				b.Run(fmt.Sprintf("%s/%s/bytes=%d", p, e, size), func(b *testing.B) {
					raw, _ := arrowFile(b, l, p, e, shapes[1])
					f, err := open(b, raw, column.Options{Whole: 1 << 40})
					require.NoError(b, err)
					var batch column.Batch
					bytes := 0
					for b.Loop() {
						bytes = 0
						r := f.Reader(0)
						for err = r.Next(&batch, size); err == nil; err = r.Next(&batch, size) {
							bytes += batch.Bytes()
						}
						require.ErrorIs(b, err, io.EOF)
					}
					b.SetBytes(int64(bytes))
				})
			}
		}
	}
}
