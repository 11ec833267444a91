package rewrite_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
	"github.com/seaice/seaice/rewrite/resolve"
)

// legacySchema is a number, a text, and a text that may be null.
var legacySchema = icego.NewSchema(0,
	icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true},
	icego.NestedField{ID: 2, Name: "s", Type: icego.PrimitiveTypes.String, Required: true},
	icego.NestedField{ID: 3, Name: "o", Type: icego.PrimitiveTypes.String},
)

const legacyPage = 40

// legacyRows pair every number with texts of its own, so that columns that are
// right each for itself but not together make other rows.
func legacyRows(from, n, texts int) (rows []row) {
	for i := range n {
		r := row{1: int64(from + i), 2: fmt.Sprintf("name-%d", (from+i*7)%texts), 3: nil}
		if i%5 != 2 {
			r[3] = fmt.Sprintf("note %d", (from+i*3)%(texts/2))
		}
		rows = append(rows, r)
	}
	return rows
}

// legacyDictionary writes the texts of a column as DuckDB and parquet-mr 1 do: the
// dictionary and the pages are both said to be PLAIN_DICTIONARY.
func legacyDictionary(t require.TestingT, c *output.Chunk, rows []row, field int, optional bool) {
	codes := map[string]byte{}
	var entries []byte
	for _, r := range rows {
		s, ok := r[field].(string)
		if _, known := codes[s]; !ok || known {
			continue
		}
		codes[s] = byte(len(codes))
		entries = append(binary.LittleEndian.AppendUint32(entries, uint32(len(s))), s...)
	}
	require.Less(t, len(codes), 256)
	h := format.PageHeader{
		Type: format.DictionaryPage, Encoding: format.PlainDictionary, Values: int32(len(codes)),
		CompressedSize: int32(len(entries)), UncompressedSize: int32(len(entries)),
	}
	require.NoError(t, c.Dictionary(encode.Page{Header: h, Body: entries}))
	for page := range slices.Chunk(rows, legacyPage) {
		p := handPage{enc: format.PlainDictionary, rows: int64(len(page))}
		var used []byte
		for _, r := range page {
			s, ok := r[field].(string)
			if optional {
				p.def = append(p.def, map[bool]byte{true: 1}[ok])
			}
			if ok {
				used = append(used, codes[s])
			}
		}
		p.values = coded(8, used...)
		require.NoError(t, c.Page(p.page(len(page))))
	}
}

// legacyFile writes the rows in row groups of up to groupRows.
func legacyFile(t require.TestingT, rows []row, groupRows int, createdBy string) []byte {
	target, err := resolve.NewTarget(legacySchema, resolve.Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	f, err := output.NewFile(&out, target.Schema, output.Options{CreatedBy: createdBy})
	require.NoError(t, err)
	for group := range slices.Chunk(rows, groupRows) {
		g, err := f.BeginGroup()
		require.NoError(t, err)
		c, err := g.Column(0, format.Uncompressed)
		require.NoError(t, err)
		for page := range slices.Chunk(group, legacyPage) {
			p := handPage{rows: int64(len(page))}
			for _, r := range page {
				p.values = append(p.values, handLongs(r[1].(int64))...)
			}
			require.NoError(t, c.Page(p.page(len(page))))
		}
		require.NoError(t, c.Close())
		for i := 1; i <= 2; i++ {
			c, err := g.Column(i, format.Uncompressed)
			require.NoError(t, err)
			legacyDictionary(t, c, group, i+1, i == 2)
			require.NoError(t, c.Close())
		}
		require.NoError(t, g.Close(int64(len(group))))
	}
	_, err = f.Close()
	require.NoError(t, err)
	return out.Bytes()
}

// pagesOf counts the data pages of each column by encoding, as arrow-go finds them,
// and compares what the footer says of them.
func pagesOf(t require.TestingT, content []byte) map[int]map[parquet.Encoding]int {
	r, err := file.NewParquetReader(bytes.NewReader(content))
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	all := map[int]map[parquet.Encoding]int{}
	for g := range r.NumRowGroups() {
		for i := range r.MetaData().Schema.NumColumns() {
			meta, err := r.MetaData().RowGroup(g).ColumnChunk(i)
			require.NoError(t, err)
			pages, err := r.RowGroup(g).GetColumnPageReader(i)
			require.NoError(t, err)
			found, said := map[string]bool{}, map[string]bool{}
			encodings := map[parquet.Encoding]bool{}
			if all[i] == nil {
				all[i] = map[parquet.Encoding]int{}
			}
			dictionary := false
			for pages.Next() {
				p := pages.Page()
				enc := parquet.Encoding(p.Encoding())
				encodings[enc] = true
				found[fmt.Sprint(p.Type(), " ", enc)] = true
				if _, is := p.(*file.DictionaryPage); is {
					dictionary = true
					continue
				}
				all[i][enc]++
				if enc == parquet.Encodings.PlainDict || enc == parquet.Encodings.RLEDict {
					require.True(t, dictionary, "column %d has codes and no dictionary", i)
				}
			}
			require.NoError(t, pages.Err())
			require.Equal(t, dictionary, meta.HasDictionaryPage())
			for _, s := range meta.EncodingStats() {
				said[fmt.Sprint(s.PageType, " ", s.Encoding)] = true
			}
			require.Equal(t, found, said, "column %d of group %d", i, g)
			for enc := range encodings {
				require.Contains(t, meta.Encodings(), enc, "column %d of group %d", i, g)
			}
			for _, enc := range meta.Encodings() {
				require.True(t, encodings[enc] || enc == parquet.Encodings.RLE, "column %d of group %d says %s and has no such page", i, g, enc)
			}
		}
	}
	return all
}

// F027: dictionary pages of the kind that only version 1 of the format has, several
// in a chunk, merged with a file of another writer: rows are the same as tuples, and
// what outputs say of their pages is what the pages are. A dictionary that changes
// under its codes would give other texts to every row.
func TestF027LegacyDictionaryPagesKeepTheirValues(t *testing.T) {
	const n = 300
	first, second := legacyRows(0, n, 37), legacyRows(5000, n, 90)
	modern := legacyRows(9000, n, 20)
	for _, createdBy := range []string{"DuckDB version v1.1.3 (build 19864453f7)", "parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)"} {
		legacy := map[string][]byte{"one group": legacyFile(t, first, n, createdBy), "groups": legacyFile(t, second, 130, createdBy)}
		for name, content := range legacy {
			want := first
			if name == "groups" {
				want = second
			}
			for i, r := range readRows(t, content) {
				require.Equal(t, want[i], r, "the test's own file, row %d", i)
			}
			for i := 1; i <= 2; i++ {
				require.Greater(t, pagesOf(t, content)[i][parquet.Encodings.PlainDict], 1)
			}
		}
		arrow := writeRows(t, legacySchema, modern, style{Codec: compress.Codecs.Snappy, Dictionary: true, PageBytes: 512, GroupRows: 1000}, false)
		require.Positive(t, pagesOf(t, arrow)[1][parquet.Encodings.RLEDict])
		for name, copying := range map[string]rewrite.Copying{"copied": rewrite.CopyForced, "encoded": rewrite.CopyNever, "as it comes": rewrite.CopyWhereAllowed} {
			for _, limit := range []string{"", "1", "700"} {
				for _, legacyFirst := range []bool{true, false} {
					for _, gone := range []*deletes.Positions{nil, deletes.Of(0, 41, n-1)} {
						t.Run(fmt.Sprintf("%.6s %s limit %q legacy first %t deletes %t", createdBy, name, limit, legacyFirst, gone != nil), func(t *testing.T) {
							w := newWorld(t, legacySchema, 2)
							w.request.Copying = copying
							if limit != "" {
								w.request.Table.Properties["write.parquet.dict-size-bytes"] = limit
							}
							if !legacyFirst {
								w.add(arrow, modern, gone)
							}
							w.add(legacy["one group"], first, gone)
							w.add(legacy["groups"], second, gone)
							if legacyFirst {
								w.add(arrow, modern, gone)
							}
							res := w.merge(t)
							for _, o := range res.Outputs {
								audit(t, w.filer.Content(o.At))
								found := pagesOf(t, w.filer.Content(o.At))
								if limit == "1" && copying == rewrite.CopyNever {
									require.Zero(t, found[1][parquet.Encodings.PlainDict]+found[1][parquet.Encodings.RLEDict])
								}
							}
						})
					}
				}
			}
		}
	}
}
