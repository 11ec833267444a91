package encode

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// keepLeaves are flat leaves of every physical type.
var keepLeaves = []format.Node{
	{Name: "b", Type: format.Boolean}, {Name: "i", Type: format.Int32}, {Name: "l", Type: format.Int64},
	{Name: "n", Type: format.Int96}, {Name: "f", Type: format.Float}, {Name: "d", Type: format.Double},
	{Name: "s", Type: format.ByteArray}, {Name: "x", Type: format.FixedLenByteArray, TypeLength: 5},
}

// drawn is a page of one batch, and its dictionary if it has one.
func drawn(t *rapid.T, leaf *format.Node, o Options, b *column.Batch) Page {
	var pages []Page
	e, err := NewEncoder(leaf, o, sinkFunc(func(p Page) {
		p.Body = append([]byte{}, p.Body...)
		pages = append(pages, p)
	}))
	require.NoError(t, err)
	require.NoError(t, e.Write(b))
	require.NoError(t, e.Close())
	require.Len(t, pages, 1)
	return pages[0]
}

// keepBatch draws rows, with few distinct values, and gives those of some runs too.
func keepBatch(t *rapid.T, leaf *format.Node, d *Dictionary) (all, kept column.Batch, runs []Run) {
	all.Values, kept.Values = *valuesOf(leaf), *valuesOf(leaf)
	width, err := valueWidth(leaf)
	require.NoError(t, err)
	nulls := rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(t, "nulls")
	stay := rapid.SampledFrom([]int{0, 1, 5, 9, 10}).Draw(t, "stay")
	draws := rapid.SliceOfN(rapid.Uint32(), 1, 300).Draw(t, "rows")
	for i, x := range draws {
		def := byte(leaf.MaxDef)
		if leaf.MaxDef > 0 && int(x>>8%10) < nulls {
			def = byte(int(x>>4) % leaf.MaxDef)
		}
		v := make([]byte, width)
		for k := range v {
			v[k] = byte(x>>20%5) * byte(k%3+1)
		}
		switch width {
		case 0:
			v = []byte("abcdefgh")[:x>>20%9]
		case 1:
			v[0] = byte(x >> 20 & 1)
		}
		add := func(b *column.Batch) {
			b.Levels++
			b.Rows++
			if leaf.MaxDef > 0 {
				b.Def = append(b.Def, def)
			}
			if int(def) == leaf.MaxDef {
				b.Values.Append(v)
			}
		}
		add(&all)
		if d != nil && int(def) == leaf.MaxDef {
			d.Put(v)
		}
		if int(x>>12%10) >= stay {
			continue
		}
		add(&kept)
		if n := len(runs); n > 0 && runs[n-1].To == i {
			runs[n-1].To++
		} else {
			runs = append(runs, Run{From: i, To: i + 1})
		}
	}
	return all, kept, runs
}

// TestKeptRowsArePagesAsIfEncoded compares a page that rows were left out of with
// the page that the encoder makes of the rows that stay: they are the same bytes,
// and the same is said of them.
func TestKeptRowsArePagesAsIfEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.SampledFrom(keepLeaves).Draw(t, "leaf")
		leaf.MaxDef = rapid.IntRange(0, 2).Draw(t, "greatest level")
		codecs := []format.Codec{format.Uncompressed, format.Snappy, format.Zstd}
		in := Options{Codec: rapid.SampledFrom(codecs).Draw(t, "codec"), Version: rapid.IntRange(1, 2).Draw(t, "version"), DictionaryBytes: -1}
		out := in
		out.Codec = rapid.SampledFrom(codecs).Draw(t, "codec of the output")
		var entries *Dictionary
		if leaf.Type != format.Boolean && rapid.Bool().Draw(t, "coded") {
			var err error
			entries, err = NewDictionary(&leaf, 1000)
			require.NoError(t, err)
		}
		all, kept, runs := keepBatch(t, &leaf, entries)
		if len(runs) == 0 {
			return
		}
		in.Dictionary, out.Dictionary = entries, entries
		page, want := drawn(t, &leaf, in, &all), drawn(t, &leaf, out, &kept)
		if page.Header.Encoding != want.Header.Encoding {
			return // nothing but nulls stays
		}
		r := NewRemapper(&leaf, Options{Codec: out.Codec})
		size := 0
		if entries != nil {
			size = entries.Len()
		}
		k, err := r.Keep(page, in.Codec, runs, size)
		require.NoError(t, err)
		var got Page
		if column.Coded(page.Header.Encoding) {
			got, err = r.KeptCodes(&k, entries.Values())
		} else {
			got, err = r.KeptPlain(&k)
		}
		require.NoError(t, err)
		require.Equal(t, want, got)

		def, values, err := NewRemapper(&leaf, Options{}).Content(got, out.Codec)
		require.NoError(t, err)
		require.Equal(t, len(kept.Def), len(def))
		for i := range def {
			require.Equal(t, kept.Def[i], def[i])
		}
		if k.Codes == nil {
			require.Equal(t, len(k.Plain), len(values))
		}
	})
}

// TestHostilePagesAreRefusedOrKept changes bytes and header fields of good pages.
func TestHostilePagesAreRefusedOrKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.SampledFrom(keepLeaves).Draw(t, "leaf")
		leaf.MaxDef = rapid.IntRange(0, 2).Draw(t, "greatest level")
		o := Options{Codec: format.Uncompressed, Version: rapid.IntRange(1, 2).Draw(t, "version"), DictionaryBytes: -1}
		all, _, runs := keepBatch(t, &leaf, nil)
		page := drawn(t, &leaf, o, &all)
		h := &page.Header
		if rapid.Bool().Draw(t, "coded") {
			h.Encoding = format.RLEDictionary
		}
		fields := []*int32{&h.UncompressedSize, &h.Values, &h.Nulls, &h.Rows, &h.DefBytes, &h.RepBytes}
		if i := rapid.IntRange(-1, len(fields)-1).Draw(t, "field"); i >= 0 {
			*fields[i] = rapid.SampledFrom([]int32{-1, 0, 1, 7, 99, 101, 1 << 20}).Draw(t, "number")
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			if len(page.Body) > 0 {
				page.Body[rapid.IntRange(0, len(page.Body)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
		}
		if rapid.Bool().Draw(t, "cut") {
			page.Body = page.Body[:rapid.IntRange(0, len(page.Body)).Draw(t, "length")]
			h.UncompressedSize = int32(len(page.Body))
		}
		r := NewRemapper(&leaf, Options{Codec: format.Snappy})
		k, err := r.Keep(page, o.Codec, runs, 3)
		if err == nil && !column.Coded(h.Encoding) {
			_, err = r.KeptPlain(&k)
		} else if err == nil {
			entries := valuesOf(&leaf)
			width, _ := valueWidth(&leaf)
			for range 3 {
				entries.Append(make([]byte, width))
			}
			_, err = r.KeptCodes(&k, entries)
		}
		if err != nil {
			kind := fault.Of(err)
			require.True(t, kind == fault.Corrupt || kind == fault.TooLarge, "%v: %v", kind, err)
		}
	})
}
