package output_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// checkTruth parses a file anew and compares everything it says of itself with
// what is in it.
func checkTruth(t require.TestingT, w *written) {
	n := len(w.data)
	require.Equal(t, "PAR1", string(w.data[:4]))
	require.Equal(t, "PAR1", string(w.data[n-4:]))
	size := int(binary.LittleEndian.Uint32(w.data[n-8:]))
	f, err := format.ParseFooter(w.data[n-8-size : n-8])
	require.NoError(t, err)
	require.Equal(t, createdBy, f.CreatedBy)
	leafBytes := make([]int64, len(w.schema.Leaves))
	total := int64(0)
	for g := range f.RowGroups {
		rg := &f.RowGroups[g]
		total += rg.Rows
		require.EqualValues(t, g, *rg.Ordinal)
		require.Equal(t, w.result.SplitOffsets[g], *rg.FileOffset)
		bytes, compressed := int64(0), int64(0)
		for l := range rg.Columns {
			c := &rg.Columns[l]
			bytes, compressed = bytes+c.UncompressedSize, compressed+c.CompressedSize
			leafBytes[l] += c.CompressedSize
			chunkTruth(t, w, c, f.Schema.Leaves[l], &w.groups[g][l], rg.Rows)
		}
		require.Equal(t, bytes, rg.Bytes)
		require.Equal(t, compressed, *rg.CompressedBytes)
	}
	require.Equal(t, total, f.Rows)
	require.Equal(t, total, w.result.Rows)
	require.Equal(t, leafBytes, w.result.LeafBytes)
}

// walked is a page found by reading a chunk from its begin.
type walked struct {
	header format.PageHeader
	at     int64
	size   int64
}

func chunkTruth(t require.TestingT, w *written, c *format.Chunk, leaf *format.Node, all *rows, groupRows int64) {
	begin := c.DataPage
	if c.Dictionary != nil {
		begin = *c.Dictionary
		require.Less(t, begin, c.DataPage)
	}
	var pages []walked
	stats := map[format.EncodingStat]int32{}
	uncompressed, values := int64(0), int64(0)
	for at := begin; at < begin+c.CompressedSize; {
		h, length, err := format.ParsePageHeader(w.data[at:])
		require.NoError(t, err)
		body := w.data[at+int64(length) : at+int64(length)+int64(h.CompressedSize)]
		if h.CRC != nil {
			require.Equal(t, crc32.ChecksumIEEE(body), *h.CRC)
		}
		stats[format.EncodingStat{Page: h.Type, Encoding: h.Encoding}]++
		require.Contains(t, c.Encodings, h.Encoding)
		uncompressed += int64(length) + int64(h.UncompressedSize)
		if h.Type == format.DictionaryPage {
			require.Equal(t, begin, at)
			require.NotNil(t, c.Dictionary)
		} else {
			if len(pages) == 0 {
				require.Equal(t, c.DataPage, at)
			}
			pages = append(pages, walked{h, at, int64(length) + int64(h.CompressedSize)})
			values += int64(h.Values)
		}
		at += int64(length) + int64(h.CompressedSize)
	}
	require.Equal(t, uncompressed, c.UncompressedSize)
	require.Equal(t, values, c.Values)
	said := map[format.EncodingStat]int32{}
	for _, s := range c.EncodingStats {
		said[format.EncodingStat{Page: s.Page, Encoding: s.Encoding}] = s.Count
	}
	require.Equal(t, stats, said)
	require.Nil(t, c.Statistics.DistinctCount)
	require.Nil(t, c.Statistics.LegacyMin)
	levels := len(all.values)
	if leaf.MaxDef > 0 {
		levels = len(all.def)
	}
	require.EqualValues(t, levels, c.Values)
	require.EqualValues(t, levels-len(all.values), *c.Statistics.NullCount)
	boundsTruth(t, leaf, all.values, c.Statistics.Min, c.Statistics.Max, c.Statistics)
	sizesTruth(t, c.Sizes, leaf, all)
	indexTruth(t, w, c, leaf, all, pages, groupRows)
}

// boundsTruth checks that bounds bound, and are reached where they are exact.
func boundsTruth(t require.TestingT, leaf *format.Node, values [][]byte, least, greatest []byte, st *format.Statistics) {
	o := encode.OrderingOf(leaf)
	reachedMin, reachedMax, comparable, nans := false, false, 0, int64(0)
	for _, v := range values {
		if !o.Check(v) {
			if o == encode.Floats || o == encode.Doubles {
				nans++
			}
			continue
		}
		comparable++
		if least == nil {
			continue
		}
		low, high := o.Compare(v, least), o.Compare(v, greatest)
		require.GreaterOrEqual(t, low, 0)
		require.LessOrEqual(t, high, 0)
		reachedMin, reachedMax = reachedMin || low == 0, reachedMax || high == 0
	}
	if comparable == 0 {
		require.Nil(t, least)
		require.Nil(t, greatest)
	}
	if st == nil {
		return
	}
	if comparable > 0 && o != encode.NoOrder && (o != encode.SignedBytes || comparable == len(values)) {
		require.NotNil(t, least)
	}
	if least != nil {
		require.True(t, !*st.MinExact || reachedMin)
		require.True(t, !*st.MaxExact || reachedMax)
	}
	if o == encode.Floats || o == encode.Doubles {
		require.Equal(t, nans, *st.NaNCount)
	}
}

func sizesTruth(t require.TestingT, z *format.SizeStatistics, leaf *format.Node, all *rows) {
	if leaf.Type == format.ByteArray {
		require.EqualValues(t, len(bytes.Join(all.values, nil)), *z.UnencodedBytes)
	}
	if leaf.MaxRep > 0 {
		require.Equal(t, count(all.rep, leaf.MaxRep), z.RepHistogram)
	}
	if leaf.MaxDef > 1 {
		require.Equal(t, count(all.def, leaf.MaxDef), z.DefHistogram)
	}
}

func count(levels []byte, greatest int) []int64 {
	out := make([]int64, greatest+1)
	for _, l := range levels {
		out[l]++
	}
	return out
}

// indexTruth cuts the rows by the offset index and checks each page's entry.
func indexTruth(t require.TestingT, w *written, c *format.Chunk, leaf *format.Node, all *rows, pages []walked, groupRows int64) {
	at := *c.OffsetIndexOffset
	oi, err := format.ParseOffsetIndex(w.data[at : at+int64(*c.OffsetIndexLength)])
	require.NoError(t, err)
	require.Len(t, oi.Pages, len(pages))
	var ci *format.ColumnIndex
	if c.ColumnIndexOffset != nil {
		at := *c.ColumnIndexOffset
		ci, err = format.ParseColumnIndex(w.data[at : at+int64(*c.ColumnIndexLength)])
		require.NoError(t, err)
	}
	level, value := 0, 0
	for i, p := range pages {
		require.Equal(t, p.at, oi.Pages[i].Offset)
		require.EqualValues(t, p.size, oi.Pages[i].Size)
		part := rows{}
		end := level + int(p.header.Values)
		if leaf.MaxRep > 0 {
			require.EqualValues(t, 0, all.rep[level], "a page begins at a row")
			part.rep = all.rep[level:end]
		}
		n := int(p.header.Values)
		if leaf.MaxDef > 0 {
			part.def = all.def[level:end]
			n = bytes.Count(part.def, []byte{byte(leaf.MaxDef)})
		}
		part.values = all.values[value : value+n]
		first := int64(level)
		if leaf.MaxRep > 0 {
			first = int64(bytes.Count(all.rep[:level], []byte{0}))
		}
		require.Equal(t, first, oi.Pages[i].FirstRow)
		if oi.UnencodedBytes != nil {
			require.EqualValues(t, len(bytes.Join(part.values, nil)), oi.UnencodedBytes[i])
		}
		level, value = end, value+n
		if ci != nil {
			pageTruth(t, ci, i, leaf, &part, int64(p.header.Values))
		}
	}
	require.Equal(t, leaf.Type == format.ByteArray, oi.UnencodedBytes != nil)
	if leaf.MaxRep > 0 {
		require.EqualValues(t, groupRows, bytes.Count(all.rep, []byte{0}))
	}
	if ci == nil {
		return
	}
	orderTruth(t, ci, encode.OrderingOf(leaf))
}

func pageTruth(t require.TestingT, ci *format.ColumnIndex, i int, leaf *format.Node, part *rows, values int64) {
	require.Equal(t, len(part.values) == 0, ci.NullPages[i])
	require.Equal(t, values-int64(len(part.values)), ci.NullCounts[i])
	if !ci.NullPages[i] {
		boundsTruth(t, leaf, part.values, ci.Min[i], ci.Max[i], nil)
	}
	if leaf.MaxRep > 0 {
		n := leaf.MaxRep + 1
		require.Equal(t, count(part.rep, leaf.MaxRep), ci.RepHistograms[i*n:(i+1)*n])
	}
	if leaf.MaxDef > 1 {
		n := leaf.MaxDef + 1
		require.Equal(t, count(part.def, leaf.MaxDef), ci.DefHistograms[i*n:(i+1)*n])
	}
}

func orderTruth(t require.TestingT, ci *format.ColumnIndex, o encode.Ordering) {
	sign := map[format.BoundaryOrder]int{format.Ascending: 1, format.Descending: -1}[ci.Order]
	last := -1
	for i, null := range ci.NullPages {
		if null {
			continue
		}
		if last >= 0 && sign != 0 {
			require.LessOrEqual(t, sign*o.Compare(ci.Min[last], ci.Min[i]), 0)
			require.LessOrEqual(t, sign*o.Compare(ci.Max[last], ci.Max[i]), 0)
		}
		last = i
	}
}
