package rewrite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// TestEveryBrokenCodeIsFound changes one thing of a remapped page, its mapping or
// what was read at a time.
func TestEveryBrokenCodeIsFound(t *testing.T) {
	leaf := &format.Node{Name: "x", Type: format.Int64, MaxDef: 1}
	const entries, values = 50, 200
	mapping, codes := make([]uint32, entries), make([]uint32, values)
	for i := range mapping {
		mapping[i] = uint32(entries - 1 - i)
	}
	for i := range codes {
		codes[i] = uint32(i*7) % entries
	}
	levels := []byte{3, 0, 0, 0, values<<1&0x7f | 0x80, values << 1 >> 7, 1}
	h := format.PageHeader{Type: format.DataPage, Values: values, RepEncoding: format.RLE, DefEncoding: format.RLE}
	r := encode.NewRemapper(leaf, encode.Options{Codec: format.Uncompressed})
	page, err := r.Codes(h, encode.Coded{Levels: levels, Codes: codes}, mapping, entries, 0, encode.UnknownIndex())
	require.NoError(t, err)
	p := proof{on: true, node: leaf, codec: format.Uncompressed, opener: encode.NewRemapper(leaf, encode.Options{})}
	check := func() error {
		return p.coded(&h, &encode.Coded{Levels: levels, Codes: codes}, mapping, &page)
	}
	require.NoError(t, check())
	require.Equal(t, p.source, p.written)

	for i := range mapping {
		mapping[i] ^= 1
		require.Equal(t, fault.Halt, fault.Of(check()), "entry %d of the mapping", i)
		mapping[i] ^= 1
	}
	for i := range codes {
		codes[i] ^= 1
		require.Equal(t, fault.Halt, fault.Of(check()), "code %d", i)
		codes[i] ^= 1
	}
	for i := range page.Body {
		page.Body[i] ^= 0x10
		require.Equal(t, fault.Halt, fault.Of(check()), "byte %d of the page", i)
		page.Body[i] ^= 0x10
	}
	for _, change := range []func(*format.PageHeader){
		func(h *format.PageHeader) { h.Values++ }, func(h *format.PageHeader) { h.Type = format.DataPageV2 },
	} {
		was := page.Header
		change(&page.Header)
		require.Equal(t, fault.Halt, fault.Of(check()))
		page.Header = was
	}
	codes = codes[:values-1]
	require.Equal(t, fault.Halt, fault.Of(check()), "fewer codes")
}

// TestMappingsStayAsTheyWereCompared changes the codes of a dictionary after they
// were compared.
func TestMappingsStayAsTheyWereCompared(t *testing.T) {
	leaf := &format.Node{Name: "x", Type: format.Int32}
	union, err := encode.NewDictionary(leaf, 1000)
	require.NoError(t, err)
	entries := column.Values{Type: format.Int32, Width: 4}
	for i := range byte(5) {
		entries.Append([]byte{9 - i, 0, 0, 0})
	}
	m, ok, err := union.Union(&entries)
	require.NoError(t, err)
	require.True(t, ok)
	p := proof{on: true}
	require.NoError(t, p.joined(&entries, union, &m, "a file"))
	require.NoError(t, p.still(m.Codes, "a file"))
	for i := range m.Codes {
		m.Codes[i] ^= 2
		require.Equal(t, fault.Halt, fault.Of(p.still(m.Codes, "a file")))
		m.Codes[i] ^= 2
	}
	require.Equal(t, fault.Halt, fault.Of(p.still([]uint32{0, 1}, "another file")), "nobody compared it")
	require.NoError(t, (&proof{}).still([]uint32{0}, "without a proof"))
}

// TestMappingsSayWhatTheyDo: codes of other entries, codes that are missing, and pages
// that are to stay as they are though their codes mean something else.
func TestMappingsSayWhatTheyDo(t *testing.T) {
	leaf := &format.Node{Name: "x", Type: format.Int32}
	union, err := encode.NewDictionary(leaf, 1000)
	require.NoError(t, err)
	first, second := column.Values{Type: format.Int32, Width: 4}, column.Values{Type: format.Int32, Width: 4}
	for i := range byte(5) {
		first.Append([]byte{i, 0, 0, 0})
		second.Append([]byte{4 - i, 0, 0, 0})
	}
	p := proof{on: true}
	for _, entries := range []*column.Values{&first, &second} {
		m, ok, err := union.Union(entries)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, entries == &first, m.Identity)
		require.NoError(t, p.joined(entries, union, &m, "a file"))
		m.Identity = true
		if entries == &second {
			require.Equal(t, fault.Halt, fault.Of(p.joined(entries, union, &m, "a file")))
			m.Identity = false
		}
		for i := range m.Codes {
			m.Codes[i] ^= 1
			require.Equal(t, fault.Halt, fault.Of(p.joined(entries, union, &m, "a file")))
			m.Codes[i] ^= 1
		}
		m.Codes = m.Codes[:4]
		require.Equal(t, fault.Halt, fault.Of(p.joined(entries, union, &m, "a file")))
	}
}
