package format_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/thrift"
)

// tree returns the footer of a file as a tree that can be broken.
func tree(t testing.TB, name string) *thrift.Struct {
	t.Helper()
	b, ok := fixtures(t)[name]
	require.True(t, ok)
	s, n, err := thrift.Parse(footer(b))
	require.NoError(t, err)
	require.Len(t, footer(b), n)
	require.Equal(t, footer(b), s.Append(nil))
	return s
}

func TestFootersThatContradictThemselves(t *testing.T) {
	number := func(n int64) thrift.Value { return thrift.Value{Kind: thrift.I64, Int: n} }
	chunk := func(s *thrift.Struct) *thrift.Struct {
		return s.Get(4).List[0].Struct.Get(1).List[0].Struct.Get(3).Struct
	}
	for name, c := range map[string]struct {
		spoil func(s *thrift.Struct)
		kind  fault.Kind
		says  string
	}{
		"no schema":         {func(s *thrift.Struct) { s.Remove(2) }, fault.Corrupt, "schema"},
		"no rows":           {func(s *thrift.Struct) { s.Remove(3) }, fault.Corrupt, "rows"},
		"no row groups":     {func(s *thrift.Struct) { s.Remove(4) }, fault.Corrupt, "row groups"},
		"other rows":        {func(s *thrift.Struct) { s.Set(3, number(9)) }, fault.Corrupt, "9 rows"},
		"fewer rows":        {func(s *thrift.Struct) { s.Set(3, number(7)) }, fault.Corrupt, "row group 0 has 8 rows"},
		"negative rows":     {func(s *thrift.Struct) { s.Get(4).List[0].Struct.Set(3, number(-8)) }, fault.Corrupt, "-8 rows"},
		"a column less":     {func(s *thrift.Struct) { l := s.Get(4).List[0].Struct.Get(1); l.List = l.List[1:] }, fault.Corrupt, "10 columns, the schema 11"},
		"columns by turns":  {func(s *thrift.Struct) { l := s.Get(4).List[0].Struct.Get(1).List; l[0], l[1] = l[1], l[0] }, fault.Corrupt, "has type"},
		"columns renamed":   {func(s *thrift.Struct) { chunk(s).Get(3).List[0].Bytes = []byte("ie") }, fault.Corrupt, "called"},
		"values for rows":   {func(s *thrift.Struct) { chunk(s).Set(5, number(7)) }, fault.Corrupt, "7 values for 8 rows"},
		"a negative size":   {func(s *thrift.Struct) { chunk(s).Set(7, number(-1)) }, fault.Corrupt, "-1 bytes"},
		"an offset outside": {func(s *thrift.Struct) { chunk(s).Set(9, number(1<<40)); chunk(s).Remove(11) }, fault.Corrupt, "lies at"},
		"a size outside":    {func(s *thrift.Struct) { chunk(s).Set(7, number(1<<62)) }, fault.Corrupt, "lies at"},
		"a negative offset": {func(s *thrift.Struct) { chunk(s).Set(9, number(-5)); chunk(s).Remove(11) }, fault.Corrupt, "lies at"},
		"no codec":          {func(s *thrift.Struct) { chunk(s).Remove(4) }, fault.Corrupt, "lacks"},
		"too many children": {func(s *thrift.Struct) { s.Get(2).List[0].Struct.Get(5).Int = 12 }, fault.Corrupt, "children"},
		"too few children":  {func(s *thrift.Struct) { s.Get(2).List[0].Struct.Get(5).Int = 10 }, fault.Corrupt, "outside of the tree"},
		"negative children": {func(s *thrift.Struct) { s.Get(2).List[0].Struct.Get(5).Int = -1 }, fault.Corrupt, "children"},
		"an unknown type":   {func(s *thrift.Struct) { s.Get(2).List[1].Struct.Get(1).Int = 8 }, fault.Corrupt, "type 8"},
		"fixed of 0":        {func(s *thrift.Struct) { s.Get(2).List[1].Struct.Get(1).Int = 7 }, fault.Corrupt, "0 bytes"},
		"text for a number": {func(s *thrift.Struct) { s.Set(3, thrift.Value{Kind: thrift.Binary, Bytes: []byte("8")}) }, fault.Corrupt, "kind"},
		"encrypted":         {func(s *thrift.Struct) { s.Set(8, thrift.Value{Kind: thrift.Group, Struct: &thrift.Struct{}}) }, fault.Unsupported, "encrypted"},
		"a chunk encrypted": {func(s *thrift.Struct) {
			s.Get(4).List[0].Struct.Get(1).List[3].Struct.Set(8, thrift.Value{Kind: thrift.Group, Struct: &thrift.Struct{}})
		}, fault.Unsupported, "encrypted"},
		"data in a file": {func(s *thrift.Struct) {
			s.Get(4).List[0].Struct.Get(1).List[3].Struct.Set(1, thrift.Value{Kind: thrift.Binary, Bytes: []byte("b")})
		}, fault.Unsupported, "another file"},
		"orders of too many": {func(s *thrift.Struct) {
			s.Set(7, thrift.Value{Kind: thrift.List, Element: thrift.Group, List: []thrift.Value{{Kind: thrift.Group, Struct: &thrift.Struct{}}}})
		}, fault.Corrupt, "orders for 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tree(t, "alltypes_plain")
			c.spoil(s)
			f, err := format.ParseFooter(s.Append(nil))
			if err == nil {
				err = f.Check(1500)
			}
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestDeepSchemasAreCorrupt(t *testing.T) {
	elements := []thrift.Value{}
	for i := range 300 {
		e := &thrift.Struct{}
		e.Set(4, thrift.Value{Kind: thrift.Binary, Bytes: []byte("n")})
		if i < 299 {
			e.Set(5, thrift.Value{Kind: thrift.I32, Int: 1})
		} else {
			e.Set(1, thrift.Value{Kind: thrift.I32, Int: 1})
		}
		elements = append(elements, thrift.Value{Kind: thrift.Group, Struct: e})
	}
	s := tree(t, "alltypes_plain")
	s.Set(2, thrift.Value{Kind: thrift.List, Element: thrift.Group, List: elements})
	_, err := format.ParseFooter(s.Append(nil))
	require.Equal(t, fault.Corrupt, fault.Of(err))
	require.ErrorContains(t, err, "deeper")
}

func TestCountsAreRefusedBeforeTheyAreAllocated(t *testing.T) {
	// A list of row groups as long as the bytes that follow, each of which could
	// be an empty struct.
	b := append([]byte{4<<4 | byte(thrift.List), 0xf0 | byte(thrift.Group), 0x80, 0x80, 0x80, 0x0f}, make([]byte, 31<<20)...)
	_, err := format.ParseFooter(b)
	require.Equal(t, fault.TooLarge, fault.Of(err))
	_, err = format.ParseFooter(make([]byte, format.MaxFooter+1))
	require.Equal(t, fault.TooLarge, fault.Of(err))
	_, _, err = thrift.Parse(b)
	require.Equal(t, fault.TooLarge, fault.Of(err))
	_, err = format.ParseFooter(b[:1000])
	require.ErrorIs(t, err, format.ErrShort)
}

func some[T any](t *rapid.T, g *rapid.Generator[T], name string) *T {
	if !rapid.Bool().Draw(t, "has "+name) {
		return nil
	}
	v := g.Draw(t, name)
	return &v
}

func drawHeader(t *rapid.T) format.PageHeader {
	size := rapid.Int32Min(0)
	h := format.PageHeader{
		Type:             rapid.SampledFrom([]format.PageType{format.DataPage, format.DictionaryPage, format.DataPageV2}).Draw(t, "type"),
		UncompressedSize: size.Draw(t, "uncompressed"), CompressedSize: size.Draw(t, "compressed"), Values: size.Draw(t, "values"),
		CRC: some(t, rapid.Uint32(), "crc"), Encoding: format.Encoding(rapid.Int32().Draw(t, "encoding")),
	}
	switch h.Type {
	case format.DataPage:
		h.DefEncoding, h.RepEncoding = 3, 4
	case format.DictionaryPage:
		h.Sorted = some(t, rapid.Bool(), "sorted")
		return h
	default:
		h.Nulls, h.Rows, h.DefBytes, h.RepBytes = size.Draw(t, "nulls"), size.Draw(t, "rows"), size.Draw(t, "def"), size.Draw(t, "rep")
		h.Compressed = rapid.Bool().Draw(t, "is compressed")
	}
	if rapid.Bool().Draw(t, "has statistics") {
		bound := rapid.SliceOfN(rapid.Byte(), 1, 20)
		s := &format.Statistics{NullCount: some(t, rapid.Int64(), "nulls"), DistinctCount: some(t, rapid.Int64(), "distinct"),
			MinExact: some(t, rapid.Bool(), "exact"), MaxExact: some(t, rapid.Bool(), "exact"), NaNCount: some(t, rapid.Int64(), "nan")}
		if b := some(t, bound, "min"); b != nil {
			s.Min = *b
		}
		if b := some(t, bound, "max"); b != nil {
			s.Max = *b
		}
		h.Statistics = s
	}
	return h
}

func TestPageHeadersAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		raw := format.AppendPageHeader(nil, &h)
		got, n, err := format.ParsePageHeader(append(raw, "rest"...))
		require.NoError(t, err)
		require.Len(t, raw, n)
		require.Empty(t, cmp.Diff(h, got))
		_, _, err = format.ParsePageHeader(raw[:rapid.IntRange(0, len(raw)-1).Draw(t, "cut")])
		require.ErrorIs(t, err, format.ErrShort)
	})
}

func TestRewrittenHeadersKeepWhatIsNotKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		raw := format.AppendPageHeader(nil, &h)
		s, _, err := thrift.Parse(raw)
		require.NoError(t, err)
		s.Set(77, thrift.Value{Kind: thrift.Binary, Bytes: []byte("of the future")})
		for i := range s.Fields {
			if part := s.Fields[i].Value.Struct; part != nil {
				part.Set(30, thrift.Value{Kind: thrift.I64, Int: 99})
			}
		}
		want := drawHeader(t)
		changed := h
		changed.UncompressedSize, changed.CompressedSize, changed.CRC, changed.Encoding = want.UncompressedSize, want.CompressedSize, want.CRC, want.Encoding
		if h.Type == format.DataPageV2 {
			changed.Compressed = !h.Compressed
		}
		if rapid.Bool().Draw(t, "drop statistics") {
			changed.Statistics = nil
		}
		again, err := format.RewritePageHeader([]byte("x"), s.Append(nil), &changed)
		require.NoError(t, err)
		got, n, err := format.ParsePageHeader(again[1:])
		require.NoError(t, err)
		require.Len(t, again, n+1)
		require.Empty(t, cmp.Diff(changed, got))
		kept, _, err := thrift.Parse(again[1:])
		require.NoError(t, err)
		require.Equal(t, "of the future", string(kept.Get(77).Bytes))
		for i := range kept.Fields {
			if part := kept.Fields[i].Value.Struct; part != nil {
				require.Equal(t, int64(99), part.Get(30).Int)
			}
		}
	})
}

func TestPageHeadersThatLackSomething(t *testing.T) {
	h := format.PageHeader{Type: format.DataPage, UncompressedSize: 10, CompressedSize: 10, Values: 1}
	for _, id := range []int16{1, 2, 3, 5} {
		s, _, err := thrift.Parse(format.AppendPageHeader(nil, &h))
		require.NoError(t, err)
		s.Remove(id)
		_, _, err = format.ParsePageHeader(s.Append(nil))
		require.Equal(t, fault.Corrupt, fault.Of(err))
		require.NotErrorIs(t, err, format.ErrShort)
	}
	h.CompressedSize = -1
	_, _, err := format.ParsePageHeader(format.AppendPageHeader(nil, &h))
	require.ErrorContains(t, err, "-1 bytes")
	// A v2 header that leaves is_compressed out is of a compressed page.
	h = format.PageHeader{Type: format.DataPageV2, Values: 1}
	s, _, err := thrift.Parse(format.AppendPageHeader(nil, &h))
	require.NoError(t, err)
	s.Get(8).Struct.Remove(7)
	got, _, err := format.ParsePageHeader(s.Append(nil))
	require.NoError(t, err)
	require.True(t, got.Compressed)
}

func TestIndexesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "pages")
		ints := func(n int) []int64 { return rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "ints") }
		o := &format.OffsetIndex{Pages: make([]format.PageLocation, n)}
		c := &format.ColumnIndex{NullPages: make([]bool, n), Min: make([][]byte, n), Max: make([][]byte, n), Order: format.Descending}
		at, row := int64(4), int64(0)
		for i := range n {
			size := rapid.Int32Min(0).Draw(t, "size")
			o.Pages[i] = format.PageLocation{Offset: at, Size: size, FirstRow: row}
			at, row = at+int64(size), row+int64(rapid.Int32Min(0).Draw(t, "rows"))
			c.NullPages[i] = rapid.Bool().Draw(t, "null")
			c.Min[i], c.Max[i] = []byte{}, []byte{byte(i)}
		}
		if rapid.Bool().Draw(t, "all") {
			o.UnencodedBytes, c.NullCounts, c.NaNCounts = ints(n), ints(n), ints(n)
			c.RepHistograms, c.DefHistograms = ints(2*n), ints(3*n)
		}
		gotO, err := format.ParseOffsetIndex(format.AppendOffsetIndex(nil, o))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(o, gotO))
		gotC, err := format.ParseColumnIndex(format.AppendColumnIndex(nil, c))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(c, gotC))
	})
}

func TestIndexesThatContradictThemselves(t *testing.T) {
	for _, pages := range [][]format.PageLocation{
		{{Offset: 4, Size: 10, FirstRow: 1}},
		{{Offset: 4, Size: 10}, {Offset: 13, Size: 1, FirstRow: 5}},
		{{Offset: 4, Size: 10}, {Offset: 14, Size: 1, FirstRow: 5}, {Offset: 15, Size: 1, FirstRow: 4}},
		{{Offset: 4, Size: -1}}, {{Offset: -4, Size: 1}}, {{Offset: 1<<63 - 1, Size: 7}},
	} {
		_, err := format.ParseOffsetIndex(format.AppendOffsetIndex(nil, &format.OffsetIndex{Pages: pages}))
		require.Equal(t, fault.Corrupt, fault.Of(err), "%v", pages)
	}
	for _, x := range []format.ColumnIndex{
		{NullPages: []bool{true}},
		{NullPages: []bool{true}, Min: [][]byte{{}}, Max: [][]byte{{}, {}}},
		{NullPages: []bool{true}, Min: [][]byte{{}}, Max: [][]byte{{}}, NullCounts: []int64{1, 2}},
		{NullPages: []bool{true, false}, Min: [][]byte{{}, {}}, Max: [][]byte{{}, {}}, DefHistograms: []int64{1, 2, 3}},
	} {
		_, err := format.ParseColumnIndex(format.AppendColumnIndex(nil, &x))
		require.Equal(t, fault.Corrupt, fault.Of(err))
	}
}

func TestBloomHeaders(t *testing.T) {
	b := format.AppendBloomHeader(nil, 1024)
	bitset, n, err := format.ParseBloomHeader(append(b, 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, []int{1024, len(b)}, []int{bitset, n})
	_, _, err = format.ParseBloomHeader(b[:5])
	require.ErrorIs(t, err, format.ErrShort)
	for _, n := range []int{0, -32, 33, format.MaxBloom + 32} {
		_, _, err = format.ParseBloomHeader(format.AppendBloomHeader(nil, n))
		require.Equal(t, fault.Corrupt, fault.Of(err), "%d", n)
	}
	s, _, err := thrift.Parse(b)
	require.NoError(t, err)
	s.Get(3).Struct.Fields[0].ID = 2
	_, _, err = format.ParseBloomHeader(s.Append(nil))
	require.Equal(t, fault.Unsupported, fault.Of(err))
	// A filter that another writer made.
	raw := fixtures(t)["data_index_bloom_encoding_with_length"]
	f, err := format.ParseFooter(footer(raw))
	require.NoError(t, err)
	c := f.RowGroups[0].Columns[0]
	bitset, n, err = format.ParseBloomHeader(raw[*c.BloomOffset:])
	require.NoError(t, err)
	require.Equal(t, int(*c.BloomLength), bitset+n)
}

func TestWriters(t *testing.T) {
	for in, want := range map[string]format.Writer{
		"parquet-mr version 1.12.3 (build abc)":      {App: "parquet-mr", Major: 1, Minor: 12, Patch: 3, Versioned: true},
		"parquet-mr version 1.8.0-SNAPSHOT (build )": {App: "parquet-mr", Major: 1, Minor: 8, Versioned: true},
		"parquet-cpp version 1.5":                    {App: "parquet-cpp", Major: 1, Minor: 5, Versioned: true},
		"impala version 2.13.0-SNAPSHOT (build 1f1)": {App: "impala", Major: 2, Minor: 13, Versioned: true},
		"DuckDB": {App: "duckdb"}, "": {}, "parquet-mr": {App: "parquet-mr"}, "x version y": {App: "x"},
	} {
		require.Equal(t, want, format.ParseWriter(in), in)
	}
	w := format.ParseWriter("parquet-mr version 1.8.0")
	require.True(t, w.Before(1, 8, 1))
	require.True(t, w.Before(2, 0, 0))
	require.False(t, w.Before(1, 8, 0))
	require.False(t, w.Before(1, 7, 9))
	require.False(t, format.Writer{}.Before(9, 9, 9))
}

func FuzzFooter(f *testing.F) {
	f.Add([]byte{0})
	for _, b := range fixtures(f) {
		f.Add(footer(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := format.ParseFooter(b)
		if err != nil {
			require.Contains(t, []fault.Kind{fault.Corrupt, fault.TooLarge}, fault.Of(err))
			return
		}
		if m.Check(1<<62) != nil {
			return // encrypted, or not of one file, which is not written
		}
		again, err := format.ParseFooter(format.AppendFooter(nil, m))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(m, again, ignoreLegacy, cmp.Comparer(func(a, b format.Order) bool { return a == b })))
	})
}

func FuzzPageHeader(f *testing.F) {
	h := format.PageHeader{Type: format.DataPageV2, Statistics: &format.Statistics{Min: []byte("a")}}
	f.Add(format.AppendPageHeader(nil, &h))
	h.Type = format.DictionaryPage
	f.Add(format.AppendPageHeader(nil, &h))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := format.ParsePageHeader(b)
		if err != nil {
			require.Contains(t, []fault.Kind{fault.Corrupt, fault.TooLarge}, fault.Of(err))
			require.False(t, errors.Is(err, format.ErrShort) && len(b) > 1<<20)
			return
		}
		if s, m, err := thrift.Parse(b[:n]); err == nil {
			require.Equal(t, n, m)
			again, m, err := thrift.Parse(s.Append(nil))
			require.NoError(t, err)
			require.Positive(t, m)
			require.Equal(t, s.Append(nil), again.Append(nil))
		}
		if h.Type == format.DataPage || h.Type == format.DataPageV2 || h.Type == format.DictionaryPage {
			again, err := format.RewritePageHeader(nil, bytes.Clone(b[:n]), &h)
			require.NoError(t, err)
			got, _, err := format.ParsePageHeader(again)
			require.NoError(t, err)
			require.Equal(t, h.CompressedSize, got.CompressedSize)
		}
	})
}
