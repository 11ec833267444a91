package column_test

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// withFooter changes the footer of a file.
func withFooter(t testing.TB, b []byte, change func(f *format.Footer)) []byte {
	t.Helper()
	n := len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	f, err := format.ParseFooter(b[n : len(b)-8])
	require.NoError(t, err)
	change(f)
	out := format.AppendFooter(append([]byte{}, b[:n]...), f)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-n))
	return append(out, "PAR1"...)
}

// dictionaryFile is a file of one column that begins with a dictionary.
func dictionaryFile(t testing.TB) ([]byte, content) {
	t.Helper()
	l := layout{codec: compress.Codecs.Snappy, pageSize: 1000, batch: 64, groups: 2, rows: 1000, distinct: 20, nulls: 10, seed: 4}
	return arrowFile(t, l, parquet.Types.Int64, parquet.Encodings.RLEDict, shapes[1])
}

func TestDictionariesAreFoundWhereverTheFooterSaysTheyAre(t *testing.T) {
	b, want := dictionaryFile(t)
	for name, change := range map[string]func(c *format.Chunk){
		"as it is": func(*format.Chunk) {},
		"the dictionary's offset is left out, the data's is its": func(c *format.Chunk) { c.DataPage, c.Dictionary = *c.Dictionary, nil },
		"the dictionary's offset is 0":                           func(c *format.Chunk) { c.DataPage = *c.Dictionary; *c.Dictionary = 0 },
		"both are the dictionary's":                              func(c *format.Chunk) { c.DataPage = *c.Dictionary },
		"the dictionary's is after the data's":                   func(c *format.Chunk) { c.DataPage, *c.Dictionary = *c.Dictionary, c.DataPage },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := open(t, withFooter(t, b, func(f *format.Footer) {
				for g := range f.RowGroups {
					change(&f.RowGroups[g].Columns[0])
				}
			}), column.Options{})
			require.NoError(t, err)
			got, err := pageByPage(f, 0)
			require.NoError(t, err)
			require.Equal(t, want.sum(), got.sum())
		})
	}
}

// The length of a chunk by parquet-mr before 1.2.9 lacks the dictionary's header.
func TestChunksThatAreLongerThanTheySay(t *testing.T) {
	b, want := dictionaryFile(t)
	short := func(createdBy string) *column.File {
		f, err := open(t, withFooter(t, b, func(f *format.Footer) {
			f.CreatedBy = createdBy
			for g := range f.RowGroups {
				f.RowGroups[g].Columns[0].CompressedSize -= 14
			}
		}), column.Options{})
		require.NoError(t, err)
		return f
	}
	for _, by := range []string{"parquet-mr version 1.2.8 (build x)", "parquet-mr"} {
		got, err := pageByPage(short(by), 0)
		require.NoError(t, err)
		require.Equal(t, want.sum(), got.sum())
	}
	_, err := pageByPage(short("parquet-mr version 1.2.9"), 0)
	require.Equal(t, fault.Corrupt, fault.Of(err))
	f, err := open(t, withFooter(t, b, func(f *format.Footer) {
		f.RowGroups[0].Columns[0].CompressedSize += 14 // the rest is not read
	}), column.Options{})
	require.NoError(t, err)
	got, err := pageByPage(f, 0)
	require.NoError(t, err)
	require.Equal(t, want.sum(), got.sum())
}

func TestPagesMustHaveTheValuesOfTheColumn(t *testing.T) {
	l := layout{codec: compress.Codecs.Uncompressed, pageSize: 64, batch: 1, groups: 1, rows: 100, distinct: 20, nulls: 10, seed: 4}
	for _, more := range []int64{-1, 1} {
		b, _ := arrowFile(t, l, parquet.Types.Int64, parquet.Encodings.Plain, shapes[1])
		f, err := open(t, withFooter(t, b, func(f *format.Footer) {
			f.RowGroups[0].Columns[0].Values += more
			f.RowGroups[0].Rows += more
			f.Rows += more
		}), column.Options{})
		require.NoError(t, err)
		_, err = pageByPage(f, 0)
		require.Equal(t, fault.Corrupt, fault.Of(err))
		_, err = byRows(f, 0, 1000)
		require.Equal(t, fault.Corrupt, fault.Of(err))
	}
}

func TestLegacyBitPackedLevels(t *testing.T) {
	// Levels 0 to 3 of two bits, most significant bit first, of optional values in
	// lists: 1 0 3 2, 3 3 0 1.
	node := leaf(t, format.Int32, format.Optional, format.Repeated, format.Optional)
	body := []byte{0b0010_0000, 0b01_00_11_10, 0b11_11_00_01}
	for v := range uint32(3) {
		body = binary.LittleEndian.AppendUint32(body, v+7)
	}
	p := page(format.Plain, 8, body)
	p.Header.DefEncoding, p.Header.RepEncoding = format.BitPacked, format.BitPacked
	d := column.NewDecoder(node, format.Uncompressed, column.DecoderOptions{})
	var b column.Batch
	require.NoError(t, d.Decode(p, &b))
	require.Equal(t, []byte{0, 0, 1, 0, 0, 0, 0, 0}, b.Rep)
	require.Equal(t, []byte{1, 0, 3, 2, 3, 3, 0, 1}, b.Def)
	require.Equal(t, 7, b.Rows)
	require.Equal(t, 3, b.Values.Len())
	for n := range body {
		p.Body = body[:n]
		p.Header.UncompressedSize = int32(n)
		require.Equal(t, fault.Corrupt, fault.Of(d.Decode(p, &b)))
	}
}

// parquet-mr before 1.8.0 began a page with what it shares with the last value of
// the page before.
func TestPrefixesGoOnOverPagesOfOldWriters(t *testing.T) {
	delta := func(n, first int) []byte {
		b := binary.AppendUvarint(nil, 128)
		b = binary.AppendUvarint(b, 1)
		b = binary.AppendUvarint(b, uint64(n))
		return binary.AppendVarint(b, int64(first))
	}
	one := func(prefix int, suffix string) column.Page {
		return page(format.DeltaByteArray, 1, append(append(delta(1, prefix), delta(1, len(suffix))...), suffix...))
	}
	d := column.NewDecoder(leaf(t, format.ByteArray, format.Required), format.Uncompressed, column.DecoderOptions{})
	first, second := one(0, "sea ice"), one(4, "water")
	first.Offset = 100
	second.Offset = first.Offset + int64(len(first.Raw)+len(first.Body))
	var b column.Batch
	require.Equal(t, fault.Corrupt, fault.Of(d.Decode(second, &b)))
	require.NoError(t, d.Decode(first, &b))
	require.NoError(t, d.Decode(second, &b))
	require.Equal(t, "sea water", string(b.Values.At(0)))
	second.Offset++ // there is a page between
	require.Equal(t, fault.Corrupt, fault.Of(d.Decode(second, &b)))
}

func TestPagesOfV2MustHaveTheirRows(t *testing.T) {
	node := leaf(t, format.Boolean, format.Repeated)
	p := column.Page{Body: []byte{3, 0b0010, 6, 1, 0b101}, Header: format.PageHeader{Type: format.DataPageV2, Values: 3,
		Rows: 2, RepBytes: 2, DefBytes: 2, UncompressedSize: 5, Compressed: true}}
	d := column.NewDecoder(node, format.Uncompressed, column.DecoderOptions{})
	var b column.Batch
	require.NoError(t, d.Decode(p, &b))
	require.Equal(t, []byte{1, 0, 1}, b.Values.Data)
	require.Equal(t, 2, b.Rows)
	p.Header.Rows = 3
	require.Equal(t, fault.Corrupt, fault.Of(d.Decode(p, &b)))
	p.Header.Rows, p.Header.DefBytes = 2, 4
	require.Equal(t, fault.Corrupt, fault.Of(d.Decode(p, &b)))
}

func TestManyLeavesOfOneFileAtOnce(t *testing.T) {
	raw := fixtures(t)["alltypes_tiny_pages"]
	for _, o := range []column.Options{{}, {Whole: -1, Window: 5000}} {
		f, err := open(t, raw, o)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range f.Footer().Schema.Leaves {
			wg.Go(func() {
				if _, err := byRows(f, i, 10_000); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		f.Close()
	}
}

// Pages before a row are not read where an offset index says where it is.
func TestSkippedPagesAreNotRead(t *testing.T) {
	raw := fixtures(t)["alltypes_tiny_pages"]
	f, err := open(t, raw, column.Options{})
	require.NoError(t, err)
	x, err := f.OffsetIndex(0, 2)
	require.NoError(t, err)
	require.Greater(t, len(x.Pages), 100)
	pages, err := f.Pages(0, 2)
	require.NoError(t, err)
	defer pages.Close()
	target := x.Pages[100].FirstRow + 1
	pages.SkipTo(target)
	seen := 100
	for {
		p, err := pages.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if p.Dictionary() {
			continue
		}
		require.Equal(t, x.Pages[seen].FirstRow, p.FirstRow)
		require.Equal(t, x.Pages[seen].Offset, p.Offset)
		require.Equal(t, int(x.Pages[seen].Size), len(p.Raw)+len(p.Body))
		seen++
	}
	require.Len(t, x.Pages, seen)
	c, err := f.ColumnIndex(0, 2)
	require.NoError(t, err)
	require.Len(t, c.NullPages, len(x.Pages))
}
