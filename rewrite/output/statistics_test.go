package output_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// chunk is the only chunk of a file, as its footer has it, and its column index.
func chunk(t testing.TB, w *written) (*format.Chunk, *format.ColumnIndex) {
	t.Helper()
	checkPeers(t, w)
	checkTruth(t, w)
	c := &w.result.Footer.RowGroups[0].Columns[0]
	if c.ColumnIndexOffset == nil {
		return c, nil
	}
	at := *c.ColumnIndexOffset
	ci, err := format.ParseColumnIndex(w.data[at : at+int64(*c.ColumnIndexLength)])
	require.NoError(t, err)
	return c, ci
}

func TestF040BoundsLeaveNaNOut(t *testing.T) {
	nan := math.NaN()
	negative := math.Copysign(0, -1)
	for name, x := range map[string]struct {
		values   []float64
		min, max float64
		none     bool
		nans     int64
	}{
		"NaN only":          {values: []float64{nan, nan}, none: true, nans: 2},
		"NaN among numbers": {values: []float64{nan, 2, 1, nan}, min: 1, max: 2, nans: 2},
		"infinities":        {values: []float64{math.Inf(1), math.Inf(-1)}, min: math.Inf(-1), max: math.Inf(1)},
		"positive infinity": {values: []float64{math.Inf(1)}, min: math.Inf(1), max: math.Inf(1)},
		"F041 positive 0":   {values: []float64{0}, min: negative, max: 0},
		"F041 negative 0":   {values: []float64{negative}, min: negative, max: 0},
		"F041 both zeros":   {values: []float64{negative, 0, 5}, min: negative, max: 5},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dictionary := range []int{-1, 0} {
				w := one(t, leafOf("a", format.Double, format.Optional), encode.Options{DictionaryBytes: dictionary}, func(b *builder) {
					b.null()
					for range 50 {
						for _, v := range x.values {
							b.value(le(v))
						}
					}
				})
				c, ci := chunk(t, w)
				require.Equal(t, x.nans*50, *c.Statistics.NaNCount)
				if x.none {
					require.Nil(t, c.Statistics.Min)
					require.Nil(t, c.Statistics.Max)
					require.Nil(t, ci, "a page of nothing but NaN has no entry")
					continue
				}
				require.Equal(t, le(x.min), c.Statistics.Min)
				require.Equal(t, le(x.max), c.Statistics.Max)
				require.Equal(t, []int64{x.nans * 50}, ci.NaNCounts)
				require.Equal(t, [][]byte{le(x.min)}, ci.Min)
			}
		})
	}
}

func TestF042NullCountsAreStated(t *testing.T) {
	for name, x := range map[string]struct {
		leaf  *format.Node
		fill  func(*builder)
		nulls int64
		bound bool
	}{
		"required":         {with(leafOf("a", format.ByteArray, format.Required), asString), func(b *builder) { b.value([]byte("x")).value([]byte("y")) }, 0, true},
		"optional, none":   {with(leafOf("a", format.ByteArray, format.Optional), asString), func(b *builder) { b.value([]byte("x")) }, 0, true},
		"all null":         {leafOf("a", format.Int64, format.Optional), func(b *builder) { b.null().null() }, 2, false},
		"lists, all empty": {leafOf("a", format.Int64, format.Repeated), func(b *builder) { b.null().null() }, 2, false},
	} {
		w := one(t, x.leaf, encode.Options{}, x.fill)
		c, ci := chunk(t, w)
		require.Equal(t, x.nulls, *c.Statistics.NullCount, name)
		require.Equal(t, x.bound, c.Statistics.Min != nil, name)
		require.Equal(t, []int64{x.nulls}, ci.NullCounts, name)
	}
}

func TestBoundsOfIntegersAndDecimals(t *testing.T) {
	for name, x := range map[string]struct {
		leaf     *format.Node
		values   [][]byte
		min, max []byte
	}{
		"unsigned 32": {
			with(leafOf("a", format.Int32, format.Required), asUnsigned(32)),
			[][]byte{le(int32(-1)), le(int32(1))}, le(int32(1)), le(int32(-1)),
		},
		"unsigned 64": {
			with(leafOf("a", format.Int64, format.Required), asUnsigned(64)),
			[][]byte{le(int64(-1)), le(int64(1))}, le(int64(1)), le(int64(-1)),
		},
		"signed":        {leafOf("a", format.Int64, format.Required), [][]byte{le(int64(-1)), le(int64(1))}, le(int64(-1)), le(int64(1))},
		"F032 fixed":    {with(leafOf("a", format.FixedLenByteArray, format.Required), asDecimal(6, 2, 3)), [][]byte{{0, 0, 1}, {0xff, 0xff, 0}, {0, 0, 0}}, []byte{0xff, 0xff, 0}, []byte{0, 0, 1}},
		"F032 binary":   {with(leafOf("a", format.ByteArray, format.Required), asDecimal(20, 2, 0)), [][]byte{{1}, {0xff}, {0xff, 0x7f}}, []byte{0xff, 0x7f}, []byte{1}},
		"boolean":       {leafOf("a", format.Boolean, format.Required), [][]byte{{1}, {1}}, []byte{1}, []byte{1}},
		"INT96":         {leafOf("a", format.Int96, format.Required), [][]byte{make([]byte, 12)}, nil, nil},
		"invalid UTF-8": {with(leafOf("a", format.ByteArray, format.Required), asString), [][]byte{{0xff}, {}, {0xc3}}, []byte{}, []byte{0xff}},
	} {
		t.Run(name, func(t *testing.T) {
			w := one(t, x.leaf, encode.Options{}, func(b *builder) {
				for _, v := range x.values {
					b.value(v)
				}
			})
			c, ci := chunk(t, w)
			if x.min == nil {
				require.Nil(t, c.Statistics.Min)
				require.Nil(t, ci)
				return
			}
			require.Equal(t, x.min, c.Statistics.Min)
			require.Equal(t, x.max, c.Statistics.Max)
			require.True(t, *c.Statistics.MinExact)
			require.Equal(t, x.min, ci.Min[0])
			require.Equal(t, x.max, ci.Max[0])
		})
	}
}

func TestLongBounds(t *testing.T) {
	leaf := func() *format.Node { return with(leafOf("a", format.ByteArray, format.Required), asString) }
	long := strings.Repeat("ab", 50)
	c, ci := chunk(t, one(t, leaf(), encode.Options{}, func(b *builder) { b.value([]byte(long)) }))
	require.Equal(t, long, string(c.Statistics.Max), "statistics of a chunk are whole")
	require.True(t, *c.Statistics.MaxExact)
	require.Equal(t, long[:64], string(ci.Min[0]))
	require.Equal(t, long[:63]+"c", string(ci.Max[0]))

	full := bytes.Repeat([]byte{0xff}, 100)
	c, ci = chunk(t, one(t, leafOf("a", format.ByteArray, format.Required), encode.Options{}, func(b *builder) { b.value(full) }))
	require.Equal(t, full, c.Statistics.Max)
	require.Equal(t, full, ci.Max[0], "there is no shorter bound")

	huge := strings.Repeat("x", 5000)
	c, ci = chunk(t, one(t, leaf(), encode.Options{}, func(b *builder) { b.value([]byte(huge)).value([]byte(huge)) }))
	require.Equal(t, huge[:64], string(c.Statistics.Min))
	require.Equal(t, huge[:63]+"y", string(c.Statistics.Max))
	require.False(t, *c.Statistics.MinExact)
	require.False(t, *c.Statistics.MaxExact)
	require.Equal(t, huge[:63]+"y", string(ci.Max[0]))

	w := one(t, leafOf("a", format.ByteArray, format.Required), encode.Options{}, func(b *builder) { b.value(bytes.Repeat(full, 50)) })
	checkPeers(t, w)
	c = &w.result.Footer.RowGroups[0].Columns[0]
	require.Nil(t, c.Statistics.Min, "no bound that is short enough")
	require.Nil(t, c.ColumnIndexOffset)
}

// TestF044BoundsAreCopies overwrites what was written before the file ends.
func TestF044BoundsAreCopies(t *testing.T) {
	s := schemaOf(t, with(leafOf("a", format.ByteArray, format.Required), asString))
	var kept encode.Buffer
	e, err := encode.NewEncoder(s.Leaves[0], encode.Options{PageRows: 2}, &kept)
	require.NoError(t, err)
	for _, word := range []string{"kiwi", "apple", "pear"} {
		b := newBuilder(s.Leaves[0])
		b.value([]byte(word))
		require.NoError(t, e.Write(&b.b))
		for i := range b.b.Values.Data {
			b.b.Values.Data[i] = '!'
		}
	}
	require.NoError(t, e.Close())
	var bounds []string
	require.NoError(t, kept.Drain(collect{page: func(p encode.Page) {
		bounds = append(bounds, string(p.Index.Min), string(p.Index.Max))
	}}))
	require.Equal(t, []string{"apple", "kiwi", "pear", "pear"}, bounds)
}

// collect is a sink that looks at pages.
type collect struct {
	dictionary func(encode.Page)
	page       func(encode.Page)
}

func (c collect) Dictionary(p encode.Page) error {
	if c.dictionary != nil {
		c.dictionary(p)
	}
	return nil
}

func (c collect) Page(p encode.Page) error {
	c.page(p)
	return nil
}

func TestBloomFiltersHoldEveryValue(t *testing.T) {
	leaf := with(leafOf("a", format.ByteArray, format.Optional), asString)
	s := schemaOf(t, leaf)
	for name, o := range map[string]encode.Options{"dictionary": {}, "plain": {DictionaryBytes: -1}, "both": {DictionaryBytes: 2000, PageRows: 100}} {
		t.Run(name, func(t *testing.T) {
			bloom, err := encode.NewBloom(1<<20, 0.01)
			require.NoError(t, err)
			o.Bloom = bloom
			b := newBuilder(s.Leaves[0])
			var all []string
			for i := range 5000 {
				word := strings.Repeat("w", i%7) + string(rune('a'+i%1000))
				all = append(all, word)
				b.value([]byte(word))
			}
			w := writeBloom(t, s, o, b, bloom)
			f := openPeer(t, w.data)
			filter := f.RowGroups()[0].ColumnChunks()[0].BloomFilter()
			require.NotNil(t, filter)
			c := w.result.Footer.RowGroups[0].Columns[0]
			bits, header, err := format.ParseBloomHeader(w.data[*c.BloomOffset:])
			require.NoError(t, err)
			require.EqualValues(t, bits+header, *c.BloomLength)
			bitset := w.data[*c.BloomOffset+int64(header):][:bits]
			for _, word := range all {
				require.True(t, encode.InBloom(bitset, xxhash.Sum64String(word)))
				ok, err := filter.Check(peerValue(word))
				require.NoError(t, err)
				require.True(t, ok)
			}
			require.False(t, encode.InBloom(bitset, xxhash.Sum64String("not there")))
		})
	}
}
