package rewrite_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// audit decodes every page of a file and compares what the file says of it: offset
// and column index, statistics, histograms, encodings, bloom filter, counts.
func audit(t require.TestingT, content []byte) {
	f, err := column.Open(context.Background(), bytes.NewReader(content), "the output", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	for g := range f.Footer().RowGroups {
		for leaf, n := range f.Footer().Schema.Leaves {
			a := auditor{t: t, f: f, node: n, order: encode.OrderingOf(n), content: content}
			a.chunk(g, leaf)
		}
	}
}

type auditor struct {
	t       require.TestingT
	f       *column.File
	node    *format.Node
	order   encode.Ordering
	content []byte

	nulls, nans, values, rows, unencoded int64
	min, max                             []byte
	rep, def                             []int64
}

func (a *auditor) chunk(g, leaf int) {
	t, name := a.t, a.node.Name
	c := &a.f.Footer().RowGroups[g].Columns[leaf]
	offsets, err := a.f.OffsetIndex(g, leaf)
	require.NoError(t, err)
	columns, err := a.f.ColumnIndex(g, leaf)
	require.NoError(t, err)
	require.False(t, columns != nil && offsets == nil, name)
	bloom := a.bloom(c)
	a.rep, a.def = make([]int64, a.node.MaxRep+1), make([]int64, a.node.MaxDef+1)
	pages, err := a.f.Pages(g, leaf)
	require.NoError(t, err)
	defer pages.Close()
	d := a.f.Decoder(g, leaf)
	defer d.Close()
	stats := map[format.EncodingStat]int32{}
	for n := 0; ; {
		p, err := pages.Next()
		if errors.Is(err, io.EOF) {
			require.True(t, offsets == nil || len(offsets.Pages) == n, name)
			break
		}
		require.NoError(t, err)
		stats[format.EncodingStat{Page: p.Header.Type, Encoding: p.Header.Encoding}]++
		if p.Dictionary() {
			require.NoError(t, d.Dictionary(p))
			continue
		}
		var b column.Batch
		require.NoError(t, d.Decode(p, &b))
		one := auditor{t: t, node: a.node, order: a.order, rep: make([]int64, len(a.rep)), def: make([]int64, len(a.def))}
		one.add(&b, bloom)
		if offsets != nil {
			require.Equal(t, p.Offset, offsets.Pages[n].Offset, name)
			require.Equal(t, int32(len(p.Raw)+len(p.Body)), offsets.Pages[n].Size, name)
			require.Equal(t, a.rows, offsets.Pages[n].FirstRow, name)
			require.True(t, b.Levels == 0 || b.Rep == nil || b.Rep[0] == 0, "%s: page %d begins within a row", name, n)
			if offsets.UnencodedBytes != nil {
				require.Equal(t, one.unencoded, offsets.UnencodedBytes[n], name)
			}
		}
		if s := p.Header.Statistics; s != nil {
			one.statistics(s)
		}
		if columns != nil {
			one.page(columns, n)
		}
		a.join(&one)
		n++
	}
	require.Equal(t, a.rows, a.f.Footer().RowGroups[g].Rows, name)
	require.Equal(t, a.values, c.Values, name)
	if c.Statistics != nil {
		require.Nil(t, c.Statistics.LegacyMin)
		require.Nil(t, c.Statistics.DistinctCount)
		a.statistics(c.Statistics)
	}
	if z := c.Sizes; z != nil {
		if z.UnencodedBytes != nil {
			require.Equal(t, a.unencoded, *z.UnencodedBytes, name)
		}
		if z.RepHistogram != nil {
			require.Equal(t, a.rep, z.RepHistogram, name)
		}
		if z.DefHistogram != nil {
			require.Equal(t, a.def, z.DefHistogram, name)
		}
	}
	require.Len(t, c.EncodingStats, len(stats), name)
	for _, s := range c.EncodingStats {
		require.Equal(t, stats[format.EncodingStat{Page: s.Page, Encoding: s.Encoding}], s.Count, name)
		require.Contains(t, c.Encodings, s.Encoding)
	}
	if columns != nil {
		a.orders(columns)
	}
}

func (a *auditor) bloom(c *format.Chunk) []byte {
	if c.BloomOffset == nil {
		return nil
	}
	b := a.content[*c.BloomOffset : *c.BloomOffset+int64(*c.BloomLength)]
	size := 1 << 30
	for size > len(b) {
		size /= 2
	}
	return b[len(b)-size:]
}

func (a *auditor) add(b *column.Batch, bloom []byte) {
	a.values, a.rows = int64(b.Levels), int64(b.Rows)
	a.nulls = int64(b.Levels - b.Values.Len())
	for i := range b.Levels {
		r, d := byte(0), byte(a.node.MaxDef)
		if b.Rep != nil {
			r = b.Rep[i]
		}
		if b.Def != nil {
			d = b.Def[i]
		}
		a.rep[r]++
		a.def[d]++
	}
	for i := range b.Values.Len() {
		v := b.Values.At(i)
		a.unencoded += int64(len(v))
		if bloom != nil {
			require.True(a.t, encode.InBloom(bloom, xxhash.Sum64(v)), a.node.Name)
			if n := len(v); (a.order == encode.Floats || a.order == encode.Doubles) && zero(v) {
				other := append(append([]byte{}, v[:n-1]...), v[n-1]^0x80)
				require.True(a.t, encode.InBloom(bloom, xxhash.Sum64(other)), "%s: the other zero", a.node.Name)
			}
		}
		if a.order == encode.NoOrder {
			continue
		}
		if !a.order.Check(v) {
			a.nans++
			continue
		}
		if a.min == nil || a.order.Compare(v, a.min) < 0 {
			a.min = append([]byte{}, v...)
		}
		if a.max == nil || a.order.Compare(v, a.max) > 0 {
			a.max = append([]byte{}, v...)
		}
	}
	if a.node.Type != format.ByteArray {
		a.unencoded = 0
	}
}

func (a *auditor) join(o *auditor) {
	a.nulls, a.nans, a.values, a.rows, a.unencoded = a.nulls+o.nulls, a.nans+o.nans, a.values+o.values, a.rows+o.rows, a.unencoded+o.unencoded
	for i := range a.rep {
		a.rep[i] += o.rep[i]
	}
	for i := range a.def {
		a.def[i] += o.def[i]
	}
	if o.min != nil && (a.min == nil || a.order.Compare(o.min, a.min) < 0) {
		a.min = o.min
	}
	if o.max != nil && (a.max == nil || a.order.Compare(o.max, a.max) > 0) {
		a.max = o.max
	}
}

func (a *auditor) statistics(s *format.Statistics) {
	if s.NullCount != nil {
		require.Equal(a.t, a.nulls, *s.NullCount, "nulls of %s", a.node.Name)
	}
	if s.NaNCount != nil {
		require.Equal(a.t, a.nans, *s.NaNCount, "NaNs of %s", a.node.Name)
	}
	if s.Min == nil && s.Max == nil {
		return
	}
	require.NotEqual(a.t, encode.NoOrder, a.order, a.node.Name)
	if a.min == nil {
		return
	}
	a.bound(s.Min, s.Max)
	if s.MinExact != nil && *s.MinExact {
		require.Zero(a.t, a.order.Compare(s.Min, a.min), "%s: %x is not %x", a.node.Name, s.Min, a.min)
	}
	if s.MaxExact != nil && *s.MaxExact {
		require.Zero(a.t, a.order.Compare(s.Max, a.max), "%s: %x is not %x", a.node.Name, s.Max, a.max)
	}
}

func (a *auditor) bound(least, greatest []byte) {
	require.True(a.t, a.order.Check(least) && a.order.Check(greatest), a.node.Name)
	if a.node.Type == format.FixedLenByteArray { // parquet-cpp ends its process where they have another length
		require.Len(a.t, least, int(a.node.TypeLength), a.node.Name)
		require.Len(a.t, greatest, int(a.node.TypeLength), a.node.Name)
	}
	require.LessOrEqual(a.t, a.order.Compare(least, a.min), 0, "%s: %x is above %x", a.node.Name, least, a.min)
	require.GreaterOrEqual(a.t, a.order.Compare(greatest, a.max), 0, "%s: %x is below %x", a.node.Name, greatest, a.max)
	if a.order == encode.Floats || a.order == encode.Doubles {
		require.False(a.t, zero(least) && least[len(least)-1] == 0, "%s: +0.0 below", a.node.Name)
		require.False(a.t, zero(greatest) && greatest[len(greatest)-1] != 0, "%s: -0.0 above", a.node.Name)
	}
}

func zero(b []byte) bool {
	for _, c := range b[:len(b)-1] {
		if c != 0 {
			return false
		}
	}
	return b[len(b)-1]&0x7f == 0
}

func (a *auditor) page(x *format.ColumnIndex, n int) {
	require.Equal(a.t, a.values == a.nulls, x.NullPages[n], a.node.Name)
	if x.NullCounts != nil {
		require.Equal(a.t, a.nulls, x.NullCounts[n], a.node.Name)
	}
	if x.NaNCounts != nil {
		require.Equal(a.t, a.nans, x.NaNCounts[n], a.node.Name)
	}
	if !x.NullPages[n] && a.min != nil {
		a.bound(x.Min[n], x.Max[n])
	}
	if w := len(a.rep); x.RepHistograms != nil {
		require.Equal(a.t, a.rep, x.RepHistograms[n*w:(n+1)*w], a.node.Name)
	}
	if w := len(a.def); x.DefHistograms != nil {
		require.Equal(a.t, a.def, x.DefHistograms[n*w:(n+1)*w], a.node.Name)
	}
}

func (a *auditor) orders(x *format.ColumnIndex) {
	var low, high [][]byte
	for i, null := range x.NullPages {
		if !null {
			low, high = append(low, x.Min[i]), append(high, x.Max[i])
		}
	}
	switch x.Order {
	case format.Ascending:
		require.True(a.t, slices.IsSortedFunc(low, a.order.Compare) && slices.IsSortedFunc(high, a.order.Compare), a.node.Name)
	case format.Descending:
		slices.Reverse(low)
		slices.Reverse(high)
		require.True(a.t, slices.IsSortedFunc(low, a.order.Compare) && slices.IsSortedFunc(high, a.order.Compare), a.node.Name)
	}
	_ = math.MaxInt
}
