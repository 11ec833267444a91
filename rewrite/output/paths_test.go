package output_test

import (
	"bytes"
	"fmt"
	"testing"

	peer "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
)

func peerValue(s string) peer.Value { return peer.ByteArrayValue([]byte(s)) }

// writeChunk makes a file of one chunk, whose pages fill gives.
func writeChunk(t require.TestingT, s *format.Schema, codec format.Codec, all rows, count int64, fill func(*output.Chunk)) *written {
	var buf bytes.Buffer
	f, err := output.NewFile(&buf, s, output.Options{CreatedBy: createdBy})
	require.NoError(t, err)
	g, err := f.BeginGroup()
	require.NoError(t, err)
	c, err := g.Column(0, codec)
	require.NoError(t, err)
	fill(c)
	require.NoError(t, c.Close())
	require.NoError(t, g.Close(count))
	w := &written{schema: s, groups: [][]rows{{all}}}
	w.result, err = f.Close()
	require.NoError(t, err)
	w.data = buf.Bytes()
	return w
}

func writeBloom(t testing.TB, s *format.Schema, o encode.Options, b *builder, bloom *encode.Bloom) *written {
	t.Helper()
	var all rows
	all.add(&b.b)
	return writeChunk(t, s, o.Codec, all, int64(b.b.Rows), func(c *output.Chunk) {
		e, err := encode.NewEncoder(s.Leaves[0], o, c)
		require.NoError(t, err)
		require.NoError(t, e.Write(&b.b))
		require.NoError(t, e.Close())
		c.Bloom(bloom, output.CoversValues)
	})
}

func textSchema(t require.TestingT) *format.Schema {
	return schemaOf(t, with(leafOf("a", format.ByteArray, format.Optional), asString))
}

// stats are the encoding_stats of the only chunk.
func stats(w *written) map[string]int32 {
	out := map[string]int32{}
	for _, s := range w.result.Footer.RowGroups[0].Columns[0].EncodingStats {
		out[fmt.Sprintf("%d/%d", s.Page, s.Encoding)] += s.Count
	}
	return out
}

// TestF028DictionaryThatOutgrowsItsLimit falls back to PLAIN with nulls between.
func TestF028DictionaryThatOutgrowsItsLimit(t *testing.T) {
	for version := 1; version <= 2; version++ {
		s := textSchema(t)
		b := newBuilder(s.Leaves[0])
		for i := range 20_000 {
			switch {
			case i%7 == 0:
				b.null()
			case i < 10_000:
				b.value([]byte(fmt.Sprintf("common value %d", i%10)))
			default:
				b.value([]byte(fmt.Sprintf("a value of its own %d", i)))
			}
		}
		w := write(t, s, encode.Options{Version: version, PageRows: 1000, DictionaryBytes: 4000}, [][][]column.Batch{{{b.b}}})
		checkPeers(t, w)
		checkTruth(t, w)
		data := map[int]int{1: 0, 2: 3}[version]
		st := stats(w)
		require.EqualValues(t, 1, st["2/0"], "a dictionary")
		require.GreaterOrEqual(t, st[fmt.Sprintf("%d/8", data)], int32(10), "pages of codes")
		require.GreaterOrEqual(t, st[fmt.Sprintf("%d/0", data)], int32(9), "pages of values")
	}
}

func TestUselessDictionaryIsNotWritten(t *testing.T) {
	s := textSchema(t)
	b := newBuilder(s.Leaves[0])
	for i := range 30_000 {
		b.value([]byte(fmt.Sprintf("a value of its own %d", i)))
	}
	w := write(t, s, encode.Options{}, [][][]column.Batch{{{b.b}}})
	checkPeers(t, w)
	require.Equal(t, []format.EncodingStat{{Page: format.DataPage, Encoding: format.Plain, Count: 2}}, w.result.Footer.RowGroups[0].Columns[0].EncodingStats)
	require.Nil(t, w.result.Footer.RowGroups[0].Columns[0].Dictionary)
}

// TestHeldPagesGoOutWhenTheDictionaryIsFixed gives more pages than may be held.
func TestHeldPagesGoOutWhenTheDictionaryIsFixed(t *testing.T) {
	s := textSchema(t)
	var kinds []format.PageType
	sink := collect{
		dictionary: func(p encode.Page) { kinds = append(kinds, p.Header.Type) },
		page:       func(p encode.Page) { kinds = append(kinds, p.Header.Type) },
	}
	e, err := encode.NewEncoder(s.Leaves[0], encode.Options{PageRows: 2000, HoldBytes: 5000}, sink)
	require.NoError(t, err)
	most := 0
	for range 50 {
		b := newBuilder(s.Leaves[0])
		for j := range 1000 {
			b.value([]byte(fmt.Sprint("value ", j%50)))
		}
		require.NoError(t, e.Write(&b.b))
		most = max(most, e.Buffered())
	}
	require.Greater(t, len(kinds), 10, "pages are out before the end")
	require.Equal(t, format.DictionaryPage, kinds[0])
	require.NoError(t, e.Close())
	require.Len(t, kinds, 26)
	require.EqualValues(t, 50_000, e.Rows())
	require.Less(t, most, 1<<20)
}

// TestRepeatedRows writes runs of equal rows among others and reads them back.
func TestRepeatedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schemaOf(t, group("g", format.Optional, anyNode(t, "a", 0)))
		leaf := s.Leaves[0]
		if leaf.MaxRep > 0 && leaf.MaxDef == 0 {
			return
		}
		o := encode.Options{
			Codec: format.Snappy, Version: rapid.IntRange(1, 2).Draw(t, "version"),
			PageRows:        rapid.SampledFrom([]int{100, 3000, 0}).Draw(t, "page rows"),
			DictionaryBytes: rapid.SampledFrom([]int{-1, 60, 0}).Draw(t, "dictionary"),
		}
		r := &random{state: rapid.Uint64().Draw(t, "seed")}
		var all rows
		count := int64(0)
		var buffer encode.Buffer
		e, err := encode.NewEncoder(leaf, o, &buffer)
		require.NoError(t, err)
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "repeat") {
				n := rapid.SampledFrom([]int{0, 3, 1500, 7001}).Draw(t, "rows")
				def := rapid.IntRange(0, leaf.MaxDef).Draw(t, "level")
				var value []byte
				b := newBuilder(leaf)
				if def == leaf.MaxDef {
					value = anyValue(r, leaf, 10)
				}
				for range n {
					b.level(0, def)
					if value != nil {
						b.b.Values.Append(value)
					}
				}
				all.add(&b.b)
				require.NoError(t, e.Repeat(int64(n), def, value))
				count += int64(n)
				continue
			}
			b := anyRows(r, leaf, 1+r.n(500), 20, 20)
			all.add(&b)
			require.NoError(t, e.Write(&b))
			count += int64(b.Rows)
		}
		require.NoError(t, e.Close())
		require.Equal(t, count, e.Rows())
		if count == 0 {
			return
		}
		w := writeChunk(t, s, o.Codec, all, count, func(c *output.Chunk) { require.NoError(t, buffer.Drain(c)) })
		checkPeers(t, w)
		checkTruth(t, w)
	})
}

func TestManyEqualRowsTakeFewBytes(t *testing.T) {
	s := schemaOf(t, leafOf("a", format.Int64, format.Optional))
	var buffer encode.Buffer
	e, err := encode.NewEncoder(s.Leaves[0], encode.Options{}, &buffer)
	require.NoError(t, err)
	require.NoError(t, e.Repeat(1_000_000, 1, le(int64(7))))
	require.NoError(t, e.Repeat(1_000_000, 0, nil))
	require.NoError(t, e.Close())
	require.Equal(t, 100, buffer.Len())
	w := writeChunk(t, s, format.Uncompressed, rows{}, 2_000_000, func(c *output.Chunk) { require.NoError(t, buffer.Drain(c)) })
	c := w.result.Footer.RowGroups[0].Columns[0]
	require.EqualValues(t, 1_000_000, *c.Statistics.NullCount)
	require.Equal(t, le(int64(7)), c.Statistics.Min)
	require.Less(t, len(w.data), 12_000)
	require.Equal(t, map[string]int32{"2/0": 1, "0/8": 100}, stats(w))
}

// TestRemappedPagesReadTheSame unites the dictionaries of several chunks and
// moves their pages, as a merge does; other pages are encoded in between.
func TestRemappedPagesReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schemaOf(t, group("g", format.Repetition(rapid.IntRange(0, 2).Draw(t, "outer")),
			with(leafOf("a", format.ByteArray, format.Repetition(rapid.IntRange(0, 2).Draw(t, "inner"))), asString)))
		leaf := s.Leaves[0]
		codecs := []format.Codec{format.Uncompressed, format.Zstd, format.Snappy}
		r := &random{state: rapid.Uint64().Draw(t, "seed")}
		union, err := encode.NewDictionary(leaf, 1<<20)
		require.NoError(t, err)
		type source struct {
			codec   format.Codec
			pages   []encode.Page
			mapping encode.Mapping
			rows    rows
			count   int64
		}
		sources := make([]source, rapid.IntRange(1, 3).Draw(t, "sources"))
		for i := range sources {
			src := &sources[i]
			src.codec = rapid.SampledFrom(codecs).Draw(t, "codec")
			b := anyRows(r, leaf, 300, 30, 15)
			src.rows.add(&b)
			src.count = int64(b.Rows)
			own, err := encode.NewDictionary(leaf, 1<<20)
			require.NoError(t, err)
			for j := range b.Values.Len() {
				own.Put(b.Values.At(j))
			}
			e, err := encode.NewEncoder(leaf, encode.Options{
				Codec: src.codec, PageRows: 77, Dictionary: own, Version: rapid.IntRange(1, 2).Draw(t, "version"),
			}, collect{page: func(p encode.Page) {
				p.Body = bytes.Clone(p.Body)
				src.pages = append(src.pages, p)
			}})
			require.NoError(t, err)
			require.NoError(t, e.Write(&b))
			require.NoError(t, e.Close())
			var ok bool
			src.mapping, ok, err = union.Union(own.Values())
			require.NoError(t, err)
			require.True(t, ok)
			require.True(t, i > 0 || src.mapping.Identity)
		}
		between := anyRows(r, leaf, 50, 500, 15)
		var all rows
		for i := range sources {
			all.add2(&sources[i].rows)
			all.add(&between)
		}
		o := encode.Options{Codec: rapid.SampledFrom(codecs).Draw(t, "to"), CRC: true, Dictionary: union}
		count := int64(0)
		for i := range sources {
			count += sources[i].count + int64(between.Rows)
		}
		w := writeChunk(t, s, o.Codec, all, count, func(c *output.Chunk) {
			page, err := union.Page(o)
			require.NoError(t, err)
			require.NoError(t, c.Dictionary(page))
			e, err := encode.NewEncoder(leaf, o, c)
			require.NoError(t, err)
			remap := encode.NewRemapper(leaf, o)
			for i := range sources {
				src := &sources[i]
				for _, p := range src.pages {
					var moved encode.Page
					var err error
					switch {
					case p.Header.Encoding == format.Plain || src.mapping.Identity:
						moved, err = remap.Recompress(p, src.codec)
					default:
						moved, err = remap.Page(p, src.codec, src.mapping.Codes, union.Len())
					}
					require.NoError(t, err)
					require.NoError(t, e.Insert(moved, moved.Index.Rows))
				}
				require.NoError(t, e.Write(&between))
			}
			require.NoError(t, e.Close())
			require.Equal(t, count, e.Rows())
		})
		checkPeers(t, w)
		checkTruth(t, w)
	})
}

func (r *rows) add2(o *rows) {
	r.rep, r.def, r.values = append(r.rep, o.rep...), append(r.def, o.def...), append(r.values, o.values...)
}

// TestWhatIsNotKnownIsLeftOut moves pages of which less and less is known.
func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	s := schemaOf(t, leafOf("a", format.Int64, format.Repeated))
	leaf := s.Leaves[0]
	b := anyRows(&random{state: 3}, leaf, 1000, 50, 20)
	var all rows
	all.add(&b)
	make := func(change func(i int, x *encode.PageIndex), also func(*output.Chunk)) *format.Chunk {
		w := writeChunk(t, s, format.Snappy, all, int64(b.Rows), func(c *output.Chunk) {
			i := 0
			if also != nil {
				also(c)
			}
			e, err := encode.NewEncoder(leaf, encode.Options{Codec: format.Snappy, PageRows: 100, DictionaryBytes: -1}, collect{page: func(p encode.Page) {
				change(i, &p.Index)
				i++
				require.NoError(t, c.Page(p))
			}})
			require.NoError(t, err)
			require.NoError(t, e.Write(&b))
			require.NoError(t, e.Close())
			if also != nil {
				require.NoError(t, c.EndPart())
			}
		})
		checkPeers(t, w)
		return &w.result.Footer.RowGroups[0].Columns[0]
	}
	all9 := func(change func(*encode.PageIndex)) func(int, *encode.PageIndex) {
		return func(i int, x *encode.PageIndex) {
			if i == 9 {
				change(x)
			}
		}
	}
	c := make(all9(func(x *encode.PageIndex) { x.Nulls = -1 }), nil)
	require.Nil(t, c.Statistics.NullCount)
	require.NotNil(t, c.Statistics.Min)
	require.Nil(t, c.ColumnIndexOffset)
	require.NotNil(t, c.OffsetIndexOffset)

	c = make(all9(func(x *encode.PageIndex) { x.Bounds = encode.BoundsUnknown }), nil)
	require.NotNil(t, c.Statistics.NullCount)
	require.Nil(t, c.Statistics.Min)
	require.Nil(t, c.ColumnIndexOffset)

	c = make(all9(func(x *encode.PageIndex) { x.Min, x.Max = x.Max, x.Min }), nil)
	require.Nil(t, c.Statistics.Min, "bounds that contradict themselves")

	c = make(all9(func(x *encode.PageIndex) { x.Rows = -1 }), nil)
	require.Nil(t, c.OffsetIndexOffset)
	require.Nil(t, c.ColumnIndexOffset)
	require.NotNil(t, c.Statistics.Min)

	c = make(all9(func(x *encode.PageIndex) { x.Rep = nil }), nil)
	require.Nil(t, c.Sizes)
	require.NotNil(t, c.ColumnIndexOffset)

	c = make(all9(func(x *encode.PageIndex) { *x = encode.UnknownIndex() }), nil)
	require.Nil(t, c.Statistics)

	nulls, yes := int64(42), true
	told := func(levels int64) *format.Chunk {
		return make(func(_ int, x *encode.PageIndex) { *x = encode.UnknownIndex() }, func(c *output.Chunk) {
			require.NoError(t, c.BeginPart(&format.Statistics{
				Min: le(int64(-9)), Max: le(int64(9)), MinExact: &yes, NullCount: &nulls, DistinctCount: &nulls, LegacyMin: le(int64(-9)),
			}, &format.SizeStatistics{RepHistogram: []int64{7, levels - 7}}))
		})
	}
	require.Nil(t, told(int64(b.Levels)+1).Sizes, "of one value too many")
	c = told(int64(b.Levels))
	require.Equal(t, nulls, *c.Statistics.NullCount)
	require.Equal(t, le(int64(-9)), c.Statistics.Min)
	require.True(t, *c.Statistics.MinExact)
	require.False(t, *c.Statistics.MaxExact)
	require.Nil(t, c.Statistics.DistinctCount)
	require.Nil(t, c.Statistics.LegacyMin)
	require.Equal(t, []int64{7, int64(b.Levels) - 7}, c.Sizes.RepHistogram)
	require.Nil(t, c.OffsetIndexOffset)
}

// TestPartOfNullsHasNoBounds: the footer of a source says that all is null, and
// its pages say nothing; bounds of the rest stay.
func TestPartOfNullsHasNoBounds(t *testing.T) {
	s := textSchema(t)
	b := newBuilder(s.Leaves[0])
	b.null().null().null().value([]byte("x"))
	var all rows
	all.add(&b.b)
	w := writeChunk(t, s, format.Snappy, all, 4, func(c *output.Chunk) {
		o := encode.Options{Codec: format.Snappy, DictionaryBytes: -1, PageRows: 2}
		nulls := int64(3)
		require.NoError(t, c.BeginPart(&format.Statistics{NullCount: &nulls}, nil))
		e, err := encode.NewEncoder(s.Leaves[0], o, collect{page: func(p encode.Page) {
			p.Index = encode.UnknownIndex()
			require.NoError(t, c.Page(p))
		}})
		require.NoError(t, err)
		require.NoError(t, e.Repeat(3, 0, nil))
		require.NoError(t, e.Close())
		require.NoError(t, c.EndPart())
		e, err = encode.NewEncoder(s.Leaves[0], o, c)
		require.NoError(t, err)
		require.NoError(t, e.Repeat(1, 1, []byte("x")))
		require.NoError(t, e.Close())
	})
	c, ci := chunk(t, w)
	require.Equal(t, "x", string(c.Statistics.Min))
	require.EqualValues(t, 3, *c.Statistics.NullCount)
	require.Equal(t, []bool{true, true, false}, ci.NullPages)
}

func TestBloomOfADictionaryNeedsCodesEverywhere(t *testing.T) {
	s := textSchema(t)
	for _, miss := range []bool{false, true} {
		d, err := encode.NewDictionary(s.Leaves[0], 1000)
		require.NoError(t, err)
		d.Put([]byte("known"))
		b := newBuilder(s.Leaves[0])
		b.value([]byte("known")).null()
		if miss {
			b.value([]byte("new"))
		}
		var all rows
		all.add(&b.b)
		w := writeChunk(t, s, format.Zstd, all, int64(b.b.Rows), func(c *output.Chunk) {
			o := encode.Options{Codec: format.Zstd, Dictionary: d}
			page, err := d.Page(o)
			require.NoError(t, err)
			require.NoError(t, c.Dictionary(page))
			e, err := encode.NewEncoder(s.Leaves[0], o, c)
			require.NoError(t, err)
			require.NoError(t, e.Write(&b.b))
			require.NoError(t, e.Close())
			bloom, err := encode.NewBloom(1024, 0.01)
			require.NoError(t, err)
			bloom.AddValues(d.Values(), 0, d.Len())
			c.Bloom(bloom, output.CoversDictionary)
		})
		checkPeers(t, w)
		require.Equal(t, miss, w.result.Footer.RowGroups[0].Columns[0].BloomOffset == nil)
	}
}
