package rewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// refooted is a file with its footer changed. put appends bytes before the footer and
// says where they are.
func refooted(t require.TestingT, content []byte, change func(f *format.Footer, put func([]byte) (*int64, *int32))) []byte {
	length := int(binary.LittleEndian.Uint32(content[len(content)-8:]))
	at := len(content) - 8 - length
	f, err := format.ParseFooter(content[at : at+length])
	require.NoError(t, err)
	out := bytes.Clone(content[:at])
	change(f, func(b []byte) (*int64, *int32) {
		offset, n := int64(len(out)), int32(len(b))
		out = append(out, b...)
		return &offset, &n
	})
	before := len(out)
	out = format.AppendFooter(out, f)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-before))
	return append(out, "PAR1"...)
}

// reheaded is a file of whose data pages the headers are changed, by the number of the
// page among all. Headers keep their length.
func reheaded(t require.TestingT, content []byte, change func(n int, h *format.PageHeader)) []byte {
	out := bytes.Clone(content)
	f, err := column.Open(context.Background(), bytes.NewReader(content), "a file", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for g := range f.Footer().RowGroups {
		for leaf := range f.Footer().Schema.Leaves {
			pages, err := f.Pages(g, leaf)
			require.NoError(t, err)
			for {
				p, err := pages.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if p.Dictionary() {
					continue
				}
				h := p.Header
				change(n, &h)
				n++
				raw := format.AppendPageHeader(nil, &h)
				require.Len(t, raw, len(p.Raw))
				copy(out[p.Offset:], raw)
			}
		}
	}
	return out
}

// TestPagesOfNullsNeedNoDictionary merges chunks that have no dictionary, and pages
// that are said to have its codes and have nulls only.
func TestPagesOfNullsNeedNoDictionary(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		for _, gone := range []*deletes.Positions{nil, deletes.Of(1)} {
			for _, copying := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyWhereAllowed, rewrite.CopyForced} {
				schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
				content := handFile(t, schema, 3, "parquet-mr version 1.13.1 (build x)", handChunk{pages: []handPage{{def: []byte{0, 0, 0}, rows: 3, v2: v2}}})
				content = reheaded(t, content, func(_ int, h *format.PageHeader) { h.Encoding = format.RLEDictionary })
				content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
					c := &f.RowGroups[0].Columns[0]
					c.Encodings, c.EncodingStats = []format.Encoding{format.RLEDictionary, format.RLE}, nil
				})
				w := newWorld(t, schema, 2)
				w.request.Copying = copying
				rows := []row{{1: nil}, {1: nil}, {1: nil}}
				w.add(content, rows, gone)
				w.add(handFile(t, schema, 3, "parquet-mr version 1.13.1 (build x)", handChunk{dictionary: handLongs(5, 40, 41), entries: 3,
					pages: []handPage{{def: []byte{1, 1, 1}, values: coded(2, 0, 1, 2), rows: 3, enc: format.RLEDictionary}}}), []row{{1: int64(5)}, {1: int64(40)}, {1: int64(41)}}, nil)
				w.add(content, rows, gone)
				for _, o := range w.merge(t).Outputs {
					audit(t, w.filer.Content(o.At))
				}
			}
		}
	}
}

// TestDictionariesThatNobodyNamesAreRead merges a chunk whose footer names no
// dictionary and no encoding of one.
func TestDictionariesThatNobodyNamesAreRead(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true})
	content := handFile(t, schema, 3, "x version 1.0.0", handChunk{dictionary: handLongs(5, 40, 41), entries: 3,
		pages: []handPage{{values: coded(2, 0, 1, 2), rows: 3, enc: format.RLEDictionary}}})
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		c := &f.RowGroups[0].Columns[0]
		c.DataPage = *c.Dictionary
		c.Dictionary, c.Encodings, c.EncodingStats = nil, nil, nil
	})
	for _, gone := range []*deletes.Positions{nil, deletes.Of(1)} {
		for _, copying := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyWhereAllowed, rewrite.CopyForced} {
			w := newWorld(t, schema, 2)
			w.request.Copying = copying
			for range 2 {
				w.add(content, []row{{1: int64(5)}, {1: int64(40)}, {1: int64(41)}}, gone)
			}
			w.merge(t)
		}
	}
}

// TestNullsAreNotMoreThanValues merges files that state more nulls than they have
// values, and NaNs.
func TestNullsAreNotMoreThanValues(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "f", Type: icego.PrimitiveTypes.Float64})
	const huge = 7
	x := encode.UnknownIndex()
	x.Nulls, x.NaNs, x.Bounds, x.Min, x.Max = 0, 0, encode.BoundsSet, handLongs(0x3ff0000000000000), handLongs(0x4000000000000000)
	content := handFile(t, schema, 2, "x version 1.0.0", handChunk{pages: []handPage{{def: []byte{1, 1}, values: handLongs(0x3ff0000000000000, 0x4000000000000000), rows: 2, index: &x}}})
	for _, footer := range []bool{false, true} {
		lying := refooted(t, content, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
			c := &f.RowGroups[0].Columns[0]
			n := int64(huge)
			if footer {
				c.Statistics.NullCount, c.Statistics.NaNCount = &n, &n
				return
			}
			c.Statistics = nil
			old, err := format.ParseColumnIndex(content[*c.ColumnIndexOffset : *c.ColumnIndexOffset+int64(*c.ColumnIndexLength)])
			require.NoError(t, err)
			old.NullCounts, old.NaNCounts = []int64{huge}, []int64{huge}
			c.ColumnIndexOffset, c.ColumnIndexLength = put(format.AppendColumnIndex(nil, old))
		})
		w := newWorld(t, schema, 2)
		w.request.Copying = rewrite.CopyForced
		for range 2 {
			w.add(lying, []row{{1: uint64(0x3ff0000000000000)}, {1: uint64(0x4000000000000000)}}, nil)
		}
		for _, o := range w.merge(t).Outputs {
			audit(t, w.filer.Content(o.At))
		}
	}
}

// TestChunksSaidToBeNullKeepTheirBounds merges chunks whose footers state that all is
// null, and whose pages say that it is not.
func TestChunksSaidToBeNullKeepTheirBounds(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64})
	content := handFile(t, schema, 2, "x version 1.0.0", handChunk{pages: []handPage{{def: []byte{1, 1}, values: handLongs(3, 4), rows: 2, v2: true}}})
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		n := int64(2)
		f.RowGroups[0].Columns[0].Statistics = &format.Statistics{NullCount: &n}
	})
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for range 2 {
		w.add(content, []row{{1: int64(3)}, {1: int64(4)}}, nil)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}

// TestLineageThatIsSaidToBeThereIsCompleted merges rows without lineage of their own from
// files whose footers deny that.
func TestLineageThatIsSaidToBeThereIsCompleted(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true})
	stored, want := make([]row, 1000), make([]row, 1000)
	for i := range stored {
		stored[i] = row{1: int64(i), int(resolve.RowIDField): nil, int(resolve.LastUpdatedField): nil}
		if i%500 < 300 {
			stored[i][int(resolve.RowIDField)], stored[i][int(resolve.LastUpdatedField)] = int64(5000+i), int64(3)
		}
	}
	content := writeRows(t, icego.SchemaWithRowLineage(schema), stored, style{Codec: compress.Codecs.Zstd, PageBytes: 800, GroupRows: 400}, false)
	content = refooted(t, content, func(f *format.Footer, _ func([]byte) (*int64, *int32)) {
		for g := range f.RowGroups {
			for _, leaf := range []int{1, 2} {
				none := int64(0)
				st := f.RowGroups[g].Columns[leaf].Statistics // its bounds are those of what is there
				st.NullCount = &none
			}
		}
	})
	some := &deletes.Positions{}
	for _, at := range []int64{3, 310, 450, 999} {
		some.Add(at)
	}
	for name, deleted := range map[string]*deletes.Positions{"whole": nil, "with deletes": some} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, schema, 3)
			w.request.Copying = rewrite.CopyForced
			first := int64(100)
			for range 2 {
				for i := range want {
					want[i] = row{1: int64(i)}
				}
				before := len(w.want)
				src := w.add(content, slices.Clone(want), deleted)
				src.FirstRowID = &first
				src.Metrics = storedLineage()
				at := before
				for i := range stored {
					if !deleted.Contains(int64(i)) {
						completeLineage(w.want[at].(row), stored[i], src, int64(i))
						at++
					}
				}
			}
			for _, o := range w.merge(t).Outputs {
				audit(t, w.filer.Content(o.At))
				auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics)
			}
		})
	}
}

// storedLineage is what an entry says of lineage that 600 of 1,000 rows have: without the
// others.
func storedLineage() rewrite.Metrics {
	le := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	return rewrite.Metrics{
		Values: map[iceberg.FieldID]int64{resolve.RowIDField: 1000, resolve.LastUpdatedField: 1000},
		Nulls:  map[iceberg.FieldID]int64{resolve.RowIDField: 0, resolve.LastUpdatedField: 0},
		Lower:  map[iceberg.FieldID][]byte{resolve.RowIDField: le(5000), resolve.LastUpdatedField: le(3)},
		Upper:  map[iceberg.FieldID][]byte{resolve.RowIDField: le(5799), resolve.LastUpdatedField: le(3)},
	}
}

// TestBoundsOfFixedLengthAreWhole merges values of a fixed length that are longer than
// bounds are, and such whose bounds their writer cut.
func TestBoundsOfFixedLengthAreWhole(t *testing.T) {
	for _, length := range []int{100, 3000} {
		schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "f", Type: icego.FixedTypeOf(length), Required: true})
		value := func(b byte) []byte { return bytes.Repeat([]byte{b}, length) }
		x := encode.UnknownIndex()
		x.Bounds, x.Min, x.Max, x.MinExact, x.MaxExact = encode.BoundsSet, value('a'), value('b'), true, true
		whole := handFile(t, schema, 2, "x version 1.0.0", handChunk{pages: []handPage{{values: append(value('a'), value('b')...), rows: 2, index: &x}}})
		cut := refooted(t, whole, func(f *format.Footer, put func([]byte) (*int64, *int32)) {
			c := &f.RowGroups[0].Columns[0]
			no := false
			c.Statistics = &format.Statistics{Min: value('a')[:64], Max: append(value('b')[:63], 'c'), MinExact: &no, MaxExact: &no}
			c.ColumnIndexOffset, c.ColumnIndexLength = put(format.AppendColumnIndex(nil, &format.ColumnIndex{
				NullPages: []bool{false}, Min: [][]byte{c.Statistics.Min}, Max: [][]byte{c.Statistics.Max}, NullCounts: []int64{0}, Order: format.Ascending,
			}))
		})
		for _, content := range [][]byte{whole, cut} {
			for _, most := range []int64{0, 1} {
				for copying := range howCopied {
					w := newWorld(t, schema, 2)
					w.request.Copying, w.request.MaxRows = copying, most
					for range 2 {
						w.add(content, []row{{1: string(value('a'))}, {1: string(value('b'))}}, nil)
					}
					for _, o := range w.merge(t).Outputs {
						audit(t, w.filer.Content(o.At))
					}
				}
			}
		}
	}
}

// TestBoundsBesideNaNsAreTrue merges floats with NaNs by each writer: parquet-go loses
// bounds where it meets a NaN.
func TestBoundsBesideNaNsAreTrue(t *testing.T) {
	for _, second := range []bool{false, true} {
		schema := icego.NewSchema(0,
			icego.NestedField{ID: 1, Name: "f", Type: icego.PrimitiveTypes.Float32},
			icego.NestedField{ID: 2, Name: "d", Type: icego.PrimitiveTypes.Float64})
		w := newWorld(t, schema, 2)
		w.request.Copying = rewrite.CopyForced
		for k := range 20 {
			rng := &lcg{x: uint64(k)}
			rows := make([]row, 100)
			for i := range rows {
				x := float64(rng.intn(2000) - 1000)
				if rng.intn(10) == 0 {
					x = math.NaN()
				}
				f := math.Float32bits(float32(x))
				rows[i] = row{1: f, 2: math.Float64bits(x)}
			}
			w.add(writeRows(t, schema, rows, style{Codec: compress.Codecs.Snappy, PageBytes: 1 << 20, GroupRows: 1 << 20, Index: true, Second: second, Dictionary: k%2 == 0}, false), rows, nil)
		}
		for _, o := range w.merge(t).Outputs {
			audit(t, w.filer.Content(o.At))
			auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics)
		}
	}
}
