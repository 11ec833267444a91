package column_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// readAll reads every leaf both ways and requires that it has as many levels as
// the footer says, or a typed error of its own.
func readAll(t testing.TB, b []byte) {
	t.Helper()
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	budget := column.NewBudget(16 << 20)
	f, err := open(t, b, column.Options{Budget: budget, MaxPage: limit, Window: 4 << 10})
	if err != nil {
		typed(t, err)
		return
	}
	for leaf := range f.Footer().Schema.Leaves {
		var all column.Batch
		for g := range f.Footer().RowGroups {
			levels, err := countLevels(f, g, leaf, &all)
			if err != nil {
				typed(t, err)
			} else {
				require.Equal(t, f.Footer().RowGroups[g].Columns[leaf].Values, levels)
			}
		}
		r := f.Reader(leaf)
		rows := int64(0)
		for err = r.Next(&all, 1000); err == nil; err = r.Next(&all, 1000) {
			rows += int64(all.Rows)
		}
		if errors.Is(err, io.EOF) {
			require.Equal(t, f.Footer().Rows, rows)
		} else {
			typed(t, err)
		}
	}
	f.Close()
	require.Zero(t, budget.Used())
	runtime.ReadMemStats(&after)
	pages := uint64(64 + len(b)/20)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, pages*limit, "bytes allocated in all")
	require.Less(t, after.Sys-min(after.Sys, before.Sys), uint64(512<<20), "memory of the process")
}

func countLevels(f *column.File, g, leaf int, b *column.Batch) (levels int64, err error) {
	pages, err := f.Pages(g, leaf)
	if err != nil {
		return 0, err
	}
	defer pages.Close()
	d := f.Decoder(g, leaf)
	defer d.Close()
	for {
		p, err := pages.Next()
		if errors.Is(err, io.EOF) {
			return levels, nil
		}
		if err != nil {
			return 0, err
		}
		if p.Dictionary() {
			err = d.Dictionary(p)
		} else if err = d.Decode(p, b); err == nil {
			levels += int64(b.Levels)
		}
		if err != nil {
			return 0, err
		}
	}
}

// typed requires that an error says what to do, and is not a panic that was
// caught.
func typed(t testing.TB, err error) {
	t.Helper()
	require.Contains(t, []fault.Kind{fault.Corrupt, fault.TooLarge, fault.Unsupported}, fault.Of(err), "%v", err)
	require.NotContains(t, err.Error(), "broken content", "a panic was caught")
}

func TestBrokenFilesAreRefusedOrReadWhole(t *testing.T) {
	files := fixtures(t)
	rng := rand.New(rand.NewPCG(5, 6))
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		if len(b) > 100_000 {
			continue // the same layouts are in smaller files
		}
		t.Run(name, func(t *testing.T) {
			for range rounds {
				broken := bytes.Clone(b)
				for range 1 + rng.IntN(4) {
					at := rng.IntN(len(broken))
					if rng.IntN(2) == 0 { // near the footer
						at = len(broken) - 1 - rng.IntN(min(len(broken), 1500))
					}
					switch rng.IntN(3) {
					case 0:
						broken[at] ^= 1 << rng.IntN(8)
					case 1:
						broken[at] = byte(rng.Uint32())
					case 2:
						broken[at] = 0xff
					}
				}
				readAll(t, broken)
			}
			for range rounds / 2 { // bytes lost or added before the footer
				at := rng.IntN(len(b) - 12)
				n := min(1+rng.IntN(40), len(b)-12-at)
				readAll(t, append(bytes.Clone(b[:at]), b[at+n:]...))
				readAll(t, slices.Insert(bytes.Clone(b), at, make([]byte, n)...))
			}
			for range rounds / 2 {
				readAll(t, b[:rng.IntN(len(b))])
			}
		})
	}
}

func TestFilesThatAreNoneOfOurs(t *testing.T) {
	tail := func(length uint32, magic string) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte("PAR1........"), length), magic...)
	}
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
		says string
	}{
		"nothing":          {nil, fault.Corrupt, "0 bytes are no parquet file"},
		"short":            {[]byte("PAR1PAR1"), fault.Corrupt, "8 bytes"},
		"another format":   {tail(8, "ORC1"), fault.Corrupt, `"ORC1"`},
		"encrypted footer": {tail(8, "PARE"), fault.Unsupported, "encrypted"},
		"footer too long":  {tail(0xffffffff, "PAR1"), fault.Corrupt, "4294967295"},
		"no footer":        {tail(0, "PAR1"), fault.Corrupt, "ends within a value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, c.b, column.Options{})
			require.Equal(t, c.kind, fault.Of(err))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "x.parquet")
		})
	}
}

// sparse is a file that is mostly zeros and never in memory.
type sparse struct {
	size int64
	tail []byte
}

func (s sparse) Size() int64 { return s.size }

func (s sparse) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if from := s.size - int64(len(s.tail)); at+int64(len(b)) > from {
		copy(b[max(0, from-at):], s.tail[max(0, at-from):])
	}
	return len(b), nil
}

func TestHugeFootersAreTooLarge(t *testing.T) {
	s := sparse{1 << 30, append(binary.LittleEndian.AppendUint32(nil, 65<<20), "PAR1"...)}
	_, err := column.Open(t.Context(), s, "x.parquet", column.Options{})
	require.Equal(t, fault.TooLarge, fault.Of(err))
	require.ErrorContains(t, err, "68157440")
}

func TestMemoryAboveTheBudgetIsTooLarge(t *testing.T) {
	b := fixtures(t)["alltypes_tiny_pages"]
	_, err := open(t, b, column.Options{Budget: column.NewBudget(100_000)})
	require.Equal(t, fault.TooLarge, fault.Of(err))
	require.ErrorContains(t, err, "of 100000 at most")
	budget := column.NewBudget(1_400_000)
	f, err := open(t, b, column.Options{Budget: budget, Whole: -1, Window: 10_000})
	require.NoError(t, err)
	_, err = byRows(f, 2, 1000)
	require.NoError(t, err)
	f.Close()
	require.Zero(t, budget.Used())
}

// TestLongIndexesAreTooLarge: they are not taken from the budget.
func TestLongIndexesAreTooLarge(t *testing.T) {
	f, err := open(t, fixtures(t)["alltypes_tiny_pages"], column.Options{})
	require.NoError(t, err)
	c := f.Footer().RowGroups[0].Columns[2]
	for _, n := range []int32{*c.OffsetIndexLength, *c.ColumnIndexLength} {
		for _, less := range []int64{0, 1} {
			f, err := open(t, fixtures(t)["alltypes_tiny_pages"], column.Options{MaxPage: (int64(n) - less) * 4})
			require.NoError(t, err)
			if n == *c.OffsetIndexLength {
				_, err = f.OffsetIndex(0, 2)
			} else {
				_, err = f.ColumnIndex(0, 2)
			}
			require.Equal(t, less == 1, fault.Is(err, fault.TooLarge), "%v", err)
			require.Equal(t, less == 0, err == nil, "%v", err)
		}
	}
}

func TestNoReadBeginsAfterTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := fixtures(t)["alltypes_tiny_pages"]
	f, err := column.Open(ctx, bytes.NewReader(b), "x.parquet", column.Options{Whole: -1})
	require.NoError(t, err)
	cancel()
	_, err = byRows(f, 0, 1000)
	require.Equal(t, fault.Canceled, fault.Of(err))
}

// page makes a v1 page of required or optional values.
func page(e format.Encoding, n int, body []byte) column.Page {
	return column.Page{Body: body, Header: format.PageHeader{Type: format.DataPage, Values: int32(n), Encoding: e,
		DefEncoding: format.RLE, RepEncoding: format.RLE, UncompressedSize: int32(len(body)), CompressedSize: int32(len(body))}}
}

func leaf(t testing.TB, p format.Type, r ...format.Repetition) *format.Node {
	t.Helper()
	n := &format.Node{Name: "leaf", Type: p, TypeLength: 5, Repetition: r[len(r)-1]}
	top := n
	for i := len(r) - 2; i >= 0; i-- {
		top = &format.Node{Name: "level", Repetition: r[i], Group: true, Children: []*format.Node{top}}
	}
	_, err := format.NewSchema(&format.Node{Name: "root", Children: []*format.Node{top}})
	require.NoError(t, err)
	return n
}

func TestPagesThatUnfoldAreTooLarge(t *testing.T) {
	longRun := binary.AppendUvarint(nil, 50_000_000<<1)
	for name, c := range map[string]struct {
		node *format.Node
		p    column.Page
	}{
		"levels of one run": {leaf(t, format.Int32, format.Optional),
			page(format.Plain, 50_000_000, append(append([]byte{byte(len(longRun) + 1), 0, 0, 0}, longRun...), 0))},
		"codes of one run": {leaf(t, format.Int64, format.Required),
			page(format.RLEDictionary, 50_000_000, append([]byte{0}, longRun...))},
		"shared prefixes": {leaf(t, format.ByteArray, format.Required), page(format.DeltaByteArray, 2000, unfolding(2000, 10_000))},
	} {
		t.Run(name, func(t *testing.T) {
			d := column.NewDecoder(c.node, format.Uncompressed, column.DecoderOptions{MaxBytes: 10 << 20, Name: "x"})
			if c.p.Header.Encoding == format.RLEDictionary {
				require.NoError(t, d.Dictionary(column.Page{Body: make([]byte, 8), Header: format.PageHeader{
					Type: format.DictionaryPage, Values: 1, UncompressedSize: 8, CompressedSize: 8}}))
			}
			err := d.Decode(c.p, new(column.Batch))
			require.Equal(t, fault.TooLarge, fault.Of(err), "%v", err)
		})
	}
}

// unfolding is a DELTA_BYTE_ARRAY page of one value of a length and n-1 equal
// ones.
func unfolding(n, length int) []byte {
	header := func(first int64) []byte {
		b := binary.AppendUvarint(nil, 128)
		b = binary.AppendUvarint(b, 1)
		b = binary.AppendUvarint(b, uint64(n))
		return binary.AppendVarint(b, first)
	}
	block := func(b []byte, step int64) []byte { // all deltas alike
		b = binary.AppendVarint(b, step)
		return append(b, 0)
	}
	one := func(b []byte, at0, then int64) []byte { // one delta of a width, then 0
		b = binary.AppendVarint(b, min(0, then-at0))
		b = append(b, 16)
		packed := make([]byte, 256)
		for i := range 128 {
			v := int64(0)
			if i == 0 {
				v = then - at0
			}
			binary.LittleEndian.PutUint16(packed[2*i:], uint16(v-min(0, then-at0)))
		}
		return append(b, packed...)
	}
	prefixes := one(header(0), 0, int64(length))
	suffixes := one(header(int64(length)), int64(length), 0)
	for done := 129; done < n; done += 128 {
		prefixes, suffixes = block(prefixes, 0), block(suffixes, 0)
	}
	return append(append(prefixes, suffixes...), make([]byte, length)...)
}

func TestPrefixesGoOnFromTheValueBefore(t *testing.T) {
	d := column.NewDecoder(leaf(t, format.ByteArray, format.Required), format.Uncompressed, column.DecoderOptions{})
	p := page(format.DeltaByteArray, 200, unfolding(200, 300))
	var b column.Batch
	require.NoError(t, d.Decode(p, &b))
	require.Equal(t, 200, b.Values.Len())
	for i := range 200 {
		require.Equal(t, make([]byte, 300), b.Values.At(i))
	}
}

func FuzzPage(f *testing.F) {
	f.Add(uint8(0), uint8(6), uint8(0), uint8(1), int32(2), []byte{2, 0, 0, 0, 3, 3, 1, 0, 0, 0, 'x', 0, 0, 0, 0})
	f.Add(uint8(0), uint8(1), uint8(8), uint8(0), int32(3), []byte{2, 6, 1})
	f.Add(uint8(3), uint8(2), uint8(5), uint8(0), int32(200), unfolding(200, 9))
	f.Add(uint8(0), uint8(6), uint8(7), uint8(0), int32(200), unfolding(200, 300))
	f.Add(uint8(0), uint8(5), uint8(9), uint8(2), int32(1), []byte{2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8})
	shapes := [][]format.Repetition{{format.Required}, {format.Optional}, {format.Optional, format.Repeated, format.Optional}}
	f.Fuzz(func(t *testing.T, kind, physical, encoding, shape uint8, n int32, body []byte) {
		node := leaf(t, format.Type(physical%8), shapes[int(shape)%len(shapes)]...)
		d := column.NewDecoder(node, format.Uncompressed, column.DecoderOptions{MaxBytes: 1 << 20})
		dictionary := make([]byte, 3*max(1, node.Width()))
		entries := 3
		if node.Width() == 0 {
			entries, dictionary = 1, []byte{3, 0, 0, 0, 'a', 'b', 'c'}
		}
		require.NoError(t, d.Dictionary(column.Page{Body: dictionary, Header: format.PageHeader{
			Type: format.DictionaryPage, Values: int32(entries), UncompressedSize: int32(len(dictionary))}}))
		p := page(format.Encoding(encoding%10), int(n), body)
		p.Header.Type = format.PageType(kind % 4)
		p.Header.DefBytes, p.Header.RepBytes = int32(shape>>2), int32(shape>>5)
		p.Header.Rows = n
		var b column.Batch
		if err := d.Decode(p, &b); err != nil {
			typed(t, err)
			return
		}
		require.Equal(t, int(n), b.Levels)
		values := b.Levels
		if node.MaxDef > 0 {
			require.Len(t, b.Def, b.Levels)
			values = bytes.Count(b.Def, []byte{byte(node.MaxDef)})
		}
		if node.MaxRep > 0 {
			require.Len(t, b.Rep, b.Levels)
		}
		require.Equal(t, values, b.Values.Len())
		for i := range values {
			_ = b.Values.At(i)
		}
	})
}
