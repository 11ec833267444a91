package rewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
)

// coded are dictionary codes of a page, one byte of width and packed groups of 8.
func coded(width byte, codes ...byte) []byte {
	out := []byte{width}
	for _, c := range codes {
		out = append(out, 2)
		if width > 0 {
			out = append(out, c)
		}
		for range (int(width)+7)/8 - 1 {
			out = append(out, 0)
		}
	}
	return out
}

// TestDictionariesOfEveryKind merges dictionaries with duplicates, without entries,
// with codes of 0 and 32 bits, one that is left in the midst of a chunk, and codes
// beyond their dictionary.
func TestDictionariesOfEveryKind(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true})
	for _, c := range []struct {
		name    string
		entries []int64
		pages   []handPage
		want    []int64
		bad     bool
	}{
		{name: "duplicates", entries: []int64{5, 6, 5, 7}, pages: []handPage{{values: coded(2, 0, 1, 2, 3), rows: 4, enc: format.PlainDictionary}}, want: []int64{5, 6, 5, 7}},
		{name: "width 0", entries: []int64{9}, pages: []handPage{{values: coded(0, 0, 0, 0), rows: 3, enc: format.RLEDictionary}}, want: []int64{9, 9, 9}},
		{name: "width 0 in one run", entries: []int64{9}, pages: []handPage{{values: []byte{0, 6}, rows: 3, enc: format.RLEDictionary}}, want: []int64{9, 9, 9}},
		{name: "width 32", entries: []int64{5, 6}, pages: []handPage{{values: coded(32, 1, 0), rows: 2, enc: format.RLEDictionary}}, want: []int64{6, 5}},
		{name: "fallback", entries: []int64{5, 6}, pages: []handPage{
			{values: coded(1, 1, 0), rows: 2, enc: format.PlainDictionary}, {values: handLongs(70, 5), rows: 2}, {values: coded(1, 0), rows: 1, enc: format.RLEDictionary, v2: true},
		}, want: []int64{6, 5, 70, 5, 5}},
		{name: "a prefix", entries: []int64{5}, pages: []handPage{{values: coded(1, 0), rows: 1, enc: format.RLEDictionary}}, want: []int64{5}},
		{name: "no entry is used", entries: []int64{1, 2, 3}, pages: []handPage{{values: handLongs(8), rows: 1}}, want: []int64{8}},
		{name: "a code beyond", entries: []int64{5}, pages: []handPage{{values: coded(3, 0, 1), rows: 2, enc: format.RLEDictionary}}, bad: true},
		{name: "a code far beyond", entries: []int64{5, 6}, pages: []handPage{{values: coded(3, 0, 7), rows: 2, enc: format.RLEDictionary}}, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, gone := range []*deletes.Positions{nil, deletes.Of(0)} {
				for _, limit := range []string{"", "16", "0"} {
					for _, first := range []bool{false, true} {
						w := newWorld(t, schema, 2)
						if limit != "" {
							w.request.Table.Properties["write.parquet.dict-size-bytes"] = limit
						}
						w.request.Copying = rewrite.CopyForced
						w.request.Table.Properties["write.parquet.bloom-filter-enabled.column.i"] = "true"
						other := func() {
							content := handFile(t, schema, 3, "parquet-mr version 1.13.1 (build x)", handChunk{dictionary: handLongs(5, 40, 41), entries: 3,
								pages: []handPage{{values: coded(2, 0, 1, 2), rows: 3, enc: format.RLEDictionary}}})
							w.add(content, []row{{1: int64(5)}, {1: int64(40)}, {1: int64(41)}}, nil)
						}
						if first {
							other()
						}
						rows := []row{}
						for _, v := range c.want {
							rows = append(rows, row{1: v})
						}
						n := int64(len(rows))
						if c.bad {
							n, rows = 2, make([]row, 2)
						}
						w.add(handFile(t, schema, n, "parquet-mr version 1.13.1 (build x)", handChunk{dictionary: handLongs(c.entries...), entries: int32(len(c.entries)), pages: c.pages}), rows, gone)
						if !first {
							other()
						}
						res, err := rewrite.Merge(context.Background(), w.request)
						if c.bad {
							if err == nil {
								// What is broken stays broken: no reader takes it.
								for _, o := range res.Outputs {
									_, err = plain(w.filer.Content(o.At), 1)
									require.Error(t, err)
								}
								continue
							}
							require.Equal(t, fault.Corrupt, fault.Of(err), "%v", err)
							continue
						}
						require.NoError(t, err)
						w.check(t, res)
						for _, o := range res.Outputs {
							audit(t, w.filer.Content(o.At))
						}
					}
				}
			}
		})
	}
}

// TestBooleansWithADictionaryAreEncodedAnew merges what hardly any writer writes.
func TestBooleansWithADictionaryAreEncodedAnew(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "b", Type: icego.PrimitiveTypes.Bool, Required: true})
	content := handFile(t, schema, 3, "x version 1.0.0", handChunk{dictionary: []byte{2}, entries: 2, pages: []handPage{{values: coded(1, 0, 1, 0), rows: 3, enc: format.RLEDictionary}}})
	w := newWorld(t, schema, 2)
	rows := []row{{1: false}, {1: true}, {1: false}}
	w.add(content, rows, nil)
	w.add(content, rows, nil)
	w.request.Copying = rewrite.CopyForced
	w.merge(t)
}

// TestCodesAreCountedByLevels merges pages of version 2 whose headers state other
// numbers of nulls than their levels have.
func TestCodesAreCountedByLevels(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
	file := func(nulls int32, entries ...int64) []byte {
		// Fewer nulls are stated by writers that do not count empty lists.
		page := handPage{def: []byte{1, 0, 1, 1, 0}, values: coded(2, 0, 1, 2), rows: 5, v2: true, enc: format.RLEDictionary, nulls: &nulls}
		return handFile(t, schema, 5, "x version 1.0.0", handChunk{dictionary: handLongs(entries...), entries: 3, pages: []handPage{page}})
	}
	for _, nulls := range []int32{0, 1, 2, 3, 5} {
		w := newWorld(t, schema, 2)
		w.request.Copying = rewrite.CopyForced
		for i, e := range [][]int64{{7, 8, 9}, {9, 8, 7}} {
			rows := []row{{1: e[0]}, {1: nil}, {1: e[1]}, {1: e[2]}, {1: nil}}
			w.add(file([]int32{2, nulls}[i], e...), rows, nil)
		}
		res, err := rewrite.Merge(context.Background(), w.request)
		if err != nil {
			require.Equal(t, fault.Corrupt, fault.Of(err), "%v", err)
			continue
		}
		if nulls == 2 {
			w.check(t, res)
			continue
		}
		content := w.filer.Content(res.Outputs[0].At)
		requireLevels(t, content, w.want)
	}
}

// requireLevels reads a column by its levels.
func requireLevels(t *testing.T, content []byte, want []any) {
	f, err := column.Open(context.Background(), bytes.NewReader(content), "the output", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	var b column.Batch
	r := f.Reader(0)
	require.NoError(t, r.Next(&b, 1<<20))
	v := 0
	for i, w := range want {
		if w.(row)[1] == nil {
			require.Zero(t, b.Def[i])
			continue
		}
		require.Equal(t, uint64(w.(row)[1].(int64)), binary.LittleEndian.Uint64(b.Values.At(v)))
		v++
	}
}

// TestVariantsThatBecameOptionalAreMerged has files of when a variant was required.
func TestVariantsThatBecameOptionalAreMerged(t *testing.T) {
	schema := func(required bool) *icego.Schema {
		return icego.NewSchema(0, icego.NestedField{ID: 1, Name: "v", Type: icego.VariantType{}, Required: required})
	}
	part := func(s string) handChunk {
		return handChunk{pages: []handPage{{values: append([]byte{byte(len(s)), 0, 0, 0}, s...), rows: 1}}}
	}
	content := handFile(t, schema(true), 1, "x version 1.0.0", part("\x01\x00\x00"), part("\x0c\x07"))
	w := newWorld(t, schema(false), 3)
	w.add(content, make([]row, 1), nil)
	w.add(content, make([]row, 1), nil)
	res, err := rewrite.Merge(context.Background(), w.request)
	require.NoError(t, err)
	require.Len(t, res.Outputs, 1)
	f, err := column.Open(context.Background(), bytes.NewReader(w.filer.Content(res.Outputs[0].At)), "the output", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	for leaf, want := range []string{"\x01\x00\x00", "\x0c\x07"} {
		var b column.Batch
		require.NoError(t, f.Reader(leaf).Next(&b, 1000))
		require.Equal(t, []byte{1, 1}, b.Def)
		require.Equal(t, want+want, string(b.Values.Data))
	}
}
