package encode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// TestHostilePagesAreRefusedOrRemapped changes bytes and header fields of good
// pages: whatever comes, it is a page or a typed error.
func TestHostilePagesAreRefusedOrRemapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := &format.Node{Name: "x", Type: format.Int32, MaxDef: 2, MaxRep: 1}
		o := Options{Codec: rapid.SampledFrom([]format.Codec{format.Uncompressed, format.Snappy, format.Zstd}).Draw(t, "codec"), Version: rapid.IntRange(1, 2).Draw(t, "version")}
		d, err := NewDictionary(leaf, 1000)
		require.NoError(t, err)
		b := column.Batch{Values: *valuesOf(leaf)}
		for i := range 100 {
			b.Rep, b.Def = append(b.Rep, byte(min(i%3, 1))), append(b.Def, byte(i%2+1))
			b.Levels++
			if i%3 == 0 {
				b.Rows++
			}
			if i%2 == 1 {
				v := four(uint32(i % 7))
				b.Values.Append(v)
				d.Put(v)
			}
		}
		o.Dictionary = d
		var page Page
		var buffer Buffer
		e, err := NewEncoder(leaf, o, &buffer)
		require.NoError(t, err)
		require.NoError(t, e.Write(&b))
		require.NoError(t, e.Close())
		require.NoError(t, buffer.Drain(sinkFunc(func(p Page) { page = p })))
		require.Equal(t, format.RLEDictionary, page.Header.Encoding)

		mapping := make([]uint32, rapid.IntRange(5, d.Len()).Draw(t, "mapping"))
		h := &page.Header
		fields := []*int32{&h.UncompressedSize, &h.Values, &h.Nulls, &h.Rows, &h.DefBytes, &h.RepBytes}
		if i := rapid.IntRange(-1, len(fields)-1).Draw(t, "field"); i >= 0 {
			*fields[i] = rapid.SampledFrom([]int32{0, 1, 7, 99, 101, 1 << 20, 1<<31 - 1}).Draw(t, "number")
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			page.Body[rapid.IntRange(0, len(page.Body)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		if rapid.Bool().Draw(t, "cut") {
			page.Body = page.Body[:rapid.IntRange(0, len(page.Body)).Draw(t, "length")]
		}
		r := NewRemapper(leaf, Options{Codec: format.Snappy})
		for _, err := range []error{
			second(r.Page(page, o.Codec, mapping, 1000)), second(r.Recompress(page, o.Codec)), second(r.Dictionary(page, o.Codec)),
		} {
			if err != nil {
				k := fault.Of(err)
				require.True(t, k == fault.Corrupt || k == fault.TooLarge, "%v: %v", k, err)
			}
		}
	})
}

func second(_ Page, err error) error { return err }

type sinkFunc func(Page)

func (f sinkFunc) Dictionary(Page) error { return errors.New("no dictionary is expected") }
func (f sinkFunc) Page(p Page) error     { f(p); return nil }

func TestBitPackedLevelsAreUnsupported(t *testing.T) {
	leaf := &format.Node{Name: "x", Type: format.Int32, MaxDef: 1}
	_, err := LevelsLength(leaf, &format.PageHeader{Type: format.DataPage, DefEncoding: format.BitPacked}, make([]byte, 10))
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

// TestF047LargeCellsTakeBoundedMemory encodes 40 values of 4 MiB.
func TestF047LargeCellsTakeBoundedMemory(t *testing.T) {
	leaf := &format.Node{Name: "x", Type: format.ByteArray}
	pages := 0
	e, err := NewEncoder(leaf, Options{Codec: format.Snappy}, sinkFunc(func(p Page) {
		pages++
		require.LessOrEqual(t, len(p.Index.Min)+len(p.Index.Max), 2*StatisticsBoundBytes)
	}))
	require.NoError(t, err)
	cell := make([]byte, 4<<20)
	for i := range 40 {
		cell[100] = byte(i)
		require.NoError(t, e.Write(&column.Batch{Levels: 1, Rows: 1, Values: *valuesOf(leaf, cell)}))
		require.Less(t, e.Buffered(), 32<<20)
	}
	require.NoError(t, e.Close())
	require.Equal(t, 40, pages)
}

func TestBatchesThatContradictThemselvesAreHalted(t *testing.T) {
	leaf := &format.Node{Name: "x", Type: format.Int32, MaxDef: 1, MaxRep: 1}
	good := func() column.Batch {
		return column.Batch{Rep: []byte{0, 1}, Def: []byte{1, 0}, Levels: 2, Rows: 1, Values: *valuesOf(leaf, four(1))}
	}
	for name, change := range map[string]func(*column.Batch){
		"nothing":             func(*column.Batch) {},
		"rows":                func(b *column.Batch) { b.Rows = 2 },
		"row begun elsewhere": func(b *column.Batch) { b.Rep = []byte{1, 0} },
		"definition levels":   func(b *column.Batch) { b.Def = b.Def[:1] },
		"repetition levels":   func(b *column.Batch) { b.Rep = nil },
		"values missing":      func(b *column.Batch) { b.Def[1] = 1 },
		"type":                func(b *column.Batch) { b.Values.Type = format.Float },
	} {
		e, err := NewEncoder(leaf, Options{}, sinkFunc(func(Page) {}))
		require.NoError(t, err)
		b := good()
		change(&b)
		if err := e.Write(&b); name == "nothing" {
			require.NoError(t, err)
		} else {
			require.Equal(t, fault.Halt, fault.Of(err), name)
		}
	}
	for name, err := range map[string]error{
		"version":  second2(NewEncoder(leaf, Options{Version: 3}, nil)),
		"encoding": second2(NewEncoder(leaf, Options{Encoding: format.DeltaByteArray}, nil)),
		"deltas":   second2(NewEncoder(&format.Node{Type: format.ByteArray}, Options{Encoding: format.DeltaBinaryPacked}, nil)),
	} {
		require.Equal(t, fault.Unsupported, fault.Of(err), name)
	}
}

func second2(_ *Encoder, err error) error { return err }
