package rewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	pqgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

// flatFields are columns whose metrics the test below counts itself.
func flatFields() []icego.NestedField {
	return []icego.NestedField{
		{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true},
		{ID: 2, Name: "s", Type: icego.PrimitiveTypes.String},
		{ID: 3, Name: "f", Type: icego.PrimitiveTypes.Float64},
	}
}

// TestMergeStatesNoWrongMetrics compares what is stated of outputs with their
// rows: counts exactly, bounds exactly where the column is a number, and as bounds
// where it is text. What is not known may be left out.
func TestMergeStatesNoWrongMetrics(t *testing.T) {
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		if checks++; measure.Race && checks > 3 {
			return // the race detector makes them ten times as slow
		}
		schema := icego.NewSchema(0, flatFields()...)
		w := newWorld(t, schema, 2)
		drawSettings(t, &w.request)
		d := drawer{rng: &lcg{x: rapid.Uint64().Draw(t, "seed")}}
		for range rapid.IntRange(1, 4).Draw(t, "sources") {
			d.nulls = rapid.SampledFrom([]int{0, 30, 100}).Draw(t, "nulls")
			d.few = rapid.SampledFrom([]int{0, 3, 50}).Draw(t, "few")
			sizes := []int{1, 50, 500}
			if singles(&w.request) {
				sizes = sizes[:2]
			}
			rows := make([]row, rapid.SampledFrom(sizes).Draw(t, "rows"))
			for i := range rows {
				rows[i] = d.row(schema.Fields())
			}
			src := w.add(writeRows(t, schema, rows, drawStyle(t), false), rows, drawDeletes(t, len(rows)))
			if rapid.Bool().Draw(t, "entry") {
				src.Metrics = measured(rows)
			}
		}
		res := w.merge(t)
		at := 0
		for _, o := range res.Outputs {
			rows := make([]row, o.Records)
			for i := range rows {
				rows[i] = w.want[at].(row)
				at++
			}
			compareMetrics(t, measured(rows), o.Metrics)
			for id := range iceberg.FieldID(3) {
				require.Contains(t, o.ColumnSizes, id+1)
			}
		}
	})
}

// measured are the exact metrics of rows.
func measured(rows []row) rewrite.Metrics {
	m := rewrite.Metrics{Values: map[iceberg.FieldID]int64{}, Nulls: map[iceberg.FieldID]int64{}, NaNs: map[iceberg.FieldID]int64{}, Lower: map[iceberg.FieldID][]byte{}, Upper: map[iceberg.FieldID][]byte{}}
	m.NaNs[3] = 0
	for _, f := range flatFields() {
		id := iceberg.FieldID(f.ID)
		m.Values[id], m.Nulls[id] = int64(len(rows)), 0
		var low, high iceberg.Value
		some := false
		for _, r := range rows {
			x := r[f.ID]
			if x == nil {
				m.Nulls[id]++
				continue
			}
			v := valueOf(f.Type, x)
			if n, ok := v.Any().(float64); ok && n != n {
				m.NaNs[id]++
				continue
			}
			if !some || less(v, low) {
				low = v
			}
			if !some || less(high, v) {
				high = v
			}
			some = true
		}
		if some {
			m.Lower[id], m.Upper[id] = low.Bytes(), high.Bytes()
		}
	}
	return m
}

// TestNaNHidesNoValue merges a file whose writer's bounds leave out what is before a NaN.
func TestNaNHidesNoValue(t *testing.T) {
	schema := icego.NewSchema(0, flatFields()...)
	var rows []row
	for i := range 500 {
		x := float64(i)
		switch i {
		case 3:
			x = -5
		case 63:
			x = math.NaN()
		}
		rows = append(rows, row{1: int64(i), 2: "a", 3: math.Float64bits(x)})
	}
	w := newWorld(t, schema, 2)
	for range 2 {
		src := w.add(writeRows(t, schema, rows, style{Codec: compress.Codecs.Snappy, Dictionary: true, PageBytes: 1 << 20, GroupRows: 1 << 20, Second: true}, false), rows, nil)
		src.Metrics = measured(rows)
		src.Metrics.Lower[3] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(64)) // as the footer has it
	}
	res := w.merge(t)
	require.Len(t, res.Outputs, 1)
	require.Contains(t, res.Outputs[0].Metrics.Lower, iceberg.FieldID(1))
	if low := res.Outputs[0].Metrics.Lower[3]; low != nil {
		require.Equal(t, math.Float64bits(-5), binary.LittleEndian.Uint64(low))
	}
}

func valueOf(typ icego.Type, x any) iceberg.Value {
	var b []byte
	switch x := x.(type) {
	case int64:
		b = binary.LittleEndian.AppendUint64(nil, uint64(x))
	case uint64:
		b = binary.LittleEndian.AppendUint64(nil, x)
	case string:
		b = []byte(x)
	}
	v, err := iceberg.DecodeBound(typ, b)
	if err != nil {
		panic(err)
	}
	return v
}

func less(a, b iceberg.Value) bool {
	c, err := a.Compare(b)
	if err != nil {
		panic(err)
	}
	return c < 0
}

func compareMetrics(t *rapid.T, want, got rewrite.Metrics) {
	for id, n := range got.Values {
		require.Equal(t, want.Values[id], n, "values of %d", id)
	}
	for id, n := range got.Nulls {
		require.Equal(t, want.Nulls[id], n, "nulls of %d", id)
	}
	for id, n := range got.NaNs {
		require.Equal(t, want.NaNs[id], n, "NaNs of %d", id)
	}
	for _, f := range flatFields() {
		id := iceberg.FieldID(f.ID)
		require.Contains(t, got.Values, id)
		if b, ok := got.Lower[id]; ok {
			requireBound(t, f.Type, want.Lower[id], b, -1)
		}
		if b, ok := got.Upper[id]; ok {
			requireBound(t, f.Type, want.Upper[id], b, 1)
		}
	}
}

func requireBound(t *rapid.T, typ icego.Type, want, got []byte, sign int) {
	if want == nil {
		return // only nulls and NaNs: any bound holds
	}
	w, err := iceberg.DecodeBound(typ, want)
	require.NoError(t, err)
	g, err := iceberg.DecodeBound(typ, got)
	require.NoError(t, err)
	order, err := g.Compare(w)
	require.NoError(t, err)
	if _, text := typ.(icego.StringType); text {
		require.GreaterOrEqual(t, order*sign, 0, "%v bounds %v", g.Any(), w.Any())
		return
	}
	if x, ok := w.Any().(float64); ok && x == 0 && g.Any() == any(0.0) {
		require.GreaterOrEqual(t, order*sign, 0) // a zero bound covers both (F041)
		return
	}
	require.Zero(t, order, "%v is stated, %v is it", g.Any(), w.Any())
}

// TestMergeRefusesRowsOfAnotherPartition checks the identity column that a file
// holds, by statistics where pages would be copied and by values where not.
func TestMergeRefusesRowsOfAnotherPartition(t *testing.T) {
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "p", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 2, Name: "x", Type: icego.PrimitiveTypes.Int64})
	part := &iceberg.PartitionType{Fields: []iceberg.PartitionField{{
		ID: 1000, Name: "p", Transform: icego.IdentityTransform{}, SourceIDs: []iceberg.FieldID{1}, Source: icego.PrimitiveTypes.String, Result: icego.PrimitiveTypes.String,
	}}}
	for _, c := range []struct {
		name  string
		tuple any
		value any
		fine  bool
	}{
		{"equal", "a", "a", true},
		{"null", nil, nil, true},
		{"other", "a", "b", false},
		{"null for a value", nil, "b", false},
		{"value for a null", "a", nil, false},
	} {
		for _, copying := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyForced} {
			t.Run(c.name, func(t *testing.T) {
				tuple, err := part.Tuple(map[iceberg.FieldID]any{1000: c.tuple})
				require.NoError(t, err)
				w := newWorld(t, schema, 2)
				w.request.Table.Type, w.request.Table.Partition, w.request.Copying = part, tuple, copying
				for _, last := range []any{c.tuple, c.value} {
					rows := []row{{1: c.tuple, 2: int64(1)}, {1: last, 2: int64(2)}}
					w.add(writeRows(t, schema, rows, style{Dictionary: true, PageBytes: 1 << 20, GroupRows: 1 << 20}, false), rows, nil).Partition = tuple
				}
				res, err := rewrite.Merge(context.Background(), w.request)
				if !c.fine {
					require.Equal(t, fault.Unsupported, fault.Of(err), "%v", err)
					require.ErrorContains(t, err, "column p")
					return
				}
				require.NoError(t, err)
				w.check(t, res)
				if copying == rewrite.CopyForced {
					require.Positive(t, res.Proof.Verbatim)
				}
			})
		}
	}
}

// TestMergeTakesHostileFiles merges files with bytes changed at random. Whatever
// comes of it has a kind, and nothing panics.
func TestMergeTakesHostileFiles(t *testing.T) {
	schema := icego.NewSchema(0, append(flatFields(), icego.NestedField{ID: 4, Name: "l", Type: &icego.ListType{ElementID: 5, Element: icego.PrimitiveTypes.String}})...)
	d := drawer{rng: &lcg{}, nulls: 10, few: 20}
	rows := make([]row, 200)
	for i := range rows {
		rows[i] = d.row(schema.Fields())
	}
	files := [][]byte{
		writeRows(t, schema, rows, style{Dictionary: true, PageBytes: 200, GroupRows: 90, Index: true, V2: true, Codec: compress.Codecs.Snappy}, false),
		writeRows(t, schema, rows, style{Dictionary: true, PageBytes: 200, GroupRows: 90, Codec: compress.Codecs.Zstd}, false),
	}
	rapid.Check(t, func(t *rapid.T) {
		content := append([]byte(nil), rapid.SampledFrom(files).Draw(t, "file")...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(content)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "in the footer") {
				at = len(content) - 1 - at%min(len(content), 3000)
			}
			content[at] = rapid.Byte().Draw(t, "byte")
		}
		w := newWorld(t, schema, 2)
		w.request.MemoryBytes = 64 << 20
		w.add(files[0], rows, deletes.Of(3))
		w.add(content, rows, nil)
		w.request.Copying = anyOf(t, rapid.SampledFrom([]rewrite.Copying{rewrite.CopyNever, rewrite.CopyForced}).Draw(t, "copying"))
		_, err := rewrite.Merge(context.Background(), w.request)
		if err != nil {
			require.Contains(t, []fault.Kind{fault.Corrupt, fault.Unsupported, fault.TooLarge}, fault.Of(err), "%v", err)
		}
	})
}

// TestMergeAbortsWhatItBegan fails writes and ends in turn.
func TestMergeAbortsWhatItBegan(t *testing.T) {
	gone := fault.Wrap(fault.Transient, "write", errors.New("injected"))
	for n := range 12 {
		w := smallWorld(t, true)
		w.request.TargetBytes = 5000
		var sinks []*failing
		calls := 0
		w.request.Create = func(context.Context, int) (rewrite.Sink, error) {
			s := &failing{fail: func() error {
				calls++
				if calls > n {
					return gone
				}
				return nil
			}}
			sinks = append(sinks, s)
			return s, nil
		}
		_, err := rewrite.Merge(context.Background(), w.request)
		if err == nil {
			require.Greater(t, n, 3)
			continue
		}
		require.Equal(t, fault.Transient, fault.Of(err), "%v", err)
		for _, s := range sinks {
			require.True(t, s.aborted)
		}
	}
	w := smallWorld(t, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := rewrite.Merge(ctx, w.request)
	require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)
}

type failing struct {
	discard
	fail    func() error
	aborted bool
}

func (f *failing) Write(b []byte) (int, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.discard.Write(b)
}

func (f *failing) Done(ctx context.Context) (rewrite.Stored, error) {
	if err := f.fail(); err != nil {
		return rewrite.Stored{}, err
	}
	return f.discard.Done(ctx)
}

func (f *failing) Abort() { f.aborted = true }

// TestMergeFillsBloomFilters looks every value up in the filters of outputs.
func TestMergeFillsBloomFilters(t *testing.T) {
	for _, c := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyForced} {
		for _, deleted := range []bool{false, true} {
			w := smallWorld(t, deleted)
			w.request.Copying = c
			for _, column := range []string{"id", "s", "l.element"} {
				w.request.Table.Properties["write.parquet.bloom-filter-enabled.column."+column] = "true"
			}
			res := w.merge(t)
			require.Len(t, res.Outputs, 1)
			content := w.filer.Content(res.Outputs[0].At)
			f, err := pqgo.OpenFile(bytes.NewReader(content), int64(len(content)))
			require.NoError(t, err)
			require.Len(t, f.RowGroups(), 1)
			chunks := f.RowGroups()[0].ColumnChunks()
			found := 0
			for _, r := range w.want {
				values := []pqgo.Value{pqgo.ValueOf(r.(row)[1])}
				if s, ok := r.(row)[2].(string); ok {
					ok, err := chunks[1].BloomFilter().Check(pqgo.ValueOf(s))
					require.NoError(t, err)
					require.True(t, ok, s)
				}
				ok, err := chunks[0].BloomFilter().Check(values[0])
				require.NoError(t, err)
				require.True(t, ok)
				l, _ := r.(row)[3].([]any)
				for _, x := range l {
					if x == nil {
						continue
					}
					ok, err := chunks[2].BloomFilter().Check(pqgo.ValueOf(x))
					require.NoError(t, err)
					require.True(t, ok)
					found++
				}
			}
			require.Positive(t, found)
			no := 0
			for i := range 100 {
				if ok, err := chunks[1].BloomFilter().Check(pqgo.ValueOf(fmt.Sprintf("absent %d", i))); err == nil && ok {
					no++
				}
			}
			require.Less(t, no, 30)
		}
	}
}

// TestMergeStopsWhenAsked cancels in the middle of a merge.
func TestMergeStopsWhenAsked(t *testing.T) {
	for n := range 8 {
		w := smallWorld(t, true)
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		s := &failing{fail: func() error {
			if calls++; calls > n {
				cancel()
				return ctx.Err()
			}
			return nil
		}}
		w.request.Create = func(context.Context, int) (rewrite.Sink, error) { return s, nil }
		_, err := rewrite.Merge(ctx, w.request)
		if err != nil {
			require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)
			require.True(t, s.aborted)
		}
		cancel()
	}
}
