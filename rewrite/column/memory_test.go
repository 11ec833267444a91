package column_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/column"
)

// TestMemoryIsAsLongAsAsked takes memory of many sizes, given back or not.
func TestMemoryIsAsLongAsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var held []*column.Memory
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			n := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 20<<20)).Draw(t, "bytes")
			m := column.NewMemory(n)
			require.GreaterOrEqual(t, len(m.Bytes()), n)
			require.LessOrEqual(t, len(m.Bytes()), max(n+n/4, 4))
			require.Equal(t, int64(len(m.Bytes())), m.Charge())
			require.Zero(t, m.Charge())
			for _, other := range held {
				require.NotSame(t, other, m, "it is held")
			}
			if rapid.Bool().Draw(t, "hold") {
				m.Hold()
				held = append(held, m)
			}
			m.Release()
		}
		for _, m := range held {
			m.Release()
		}
	})
}

// TestPagesStayWhileTheirMemoryIsHeld keeps every page until all have been read, from
// windows that hold many pages, and from ones that hold a part of one.
func TestPagesStayWhileTheirMemoryIsHeld(t *testing.T) {
	l := layout{codec: compress.Codecs.Snappy, pageSize: 8 << 10, batch: 1024, groups: 1, rows: 50_000, distinct: 1000, seed: 7}
	raw, _ := arrowFile(t, l, parquet.Types.Int64, parquet.Encodings.Plain, shapes[0])
	for _, o := range []column.Options{{Whole: -1, Window: 1000}, {Whole: -1, Window: 10_000}, {Whole: -1, Window: 1 << 18}, {Whole: 1 << 30}} {
		o.Budget = column.NewBudget(1 << 30)
		f, err := open(t, raw, o)
		require.NoError(t, err)
		pages, err := f.Pages(0, 0)
		require.NoError(t, err)
		var all []column.Page
		for {
			p, err := pages.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			p.Memory.Hold()
			all = append(all, p)
		}
		require.Greater(t, len(all), 10)
		for _, p := range all {
			at := p.Offset
			require.True(t, bytes.Equal(raw[at:at+int64(len(p.Raw))], p.Raw), "header at %d, window %d", at, o.Window)
			at += int64(len(p.Raw))
			require.True(t, bytes.Equal(raw[at:at+int64(len(p.Body))], p.Body), "body at %d, window %d", at, o.Window)
		}
		for _, p := range all {
			p.Memory.Release()
		}
		f.Close()
		require.Zero(t, o.Budget.Used())
	}
}

// inMemory is a file whose bytes lie in memory; nobody may read it otherwise.
type inMemory struct{ content []byte }

func (f inMemory) Size() int64                       { return int64(len(f.content)) }
func (f inMemory) Content() []byte                   { return f.content }
func (f inMemory) ReadAt([]byte, int64) (int, error) { return 0, errors.New("it is read") }

// TestFilesInMemoryAreNotCopied: pages lie where the file lies, and take nothing from
// the budget but what is decoded.
func TestFilesInMemoryAreNotCopied(t *testing.T) {
	l := layout{codec: compress.Codecs.Snappy, pageSize: 8 << 10, batch: 1024, groups: 2, rows: 20_000, distinct: 1000, seed: 7}
	raw, want := arrowFile(t, l, parquet.Types.Int64, parquet.Encodings.Plain, shapes[0])
	budget := column.NewBudget(1 << 20)
	f, err := column.Open(t.Context(), inMemory{raw}, "x.parquet", column.Options{Budget: budget, Whole: -1})
	require.NoError(t, err)
	require.True(t, f.Kept())
	require.Less(t, budget.Used(), int64(len(raw)))
	pages, err := f.Pages(1, 0)
	require.NoError(t, err)
	page, err := pages.Next()
	require.NoError(t, err)
	require.Same(t, &raw[page.Offset], &page.Raw[0])
	require.Zero(t, page.Memory.Charge(), "nobody else has to count it")
	pages.Close()
	got, err := pageByPage(f, 0)
	require.NoError(t, err)
	require.Equal(t, want.sum(), got.sum())
	f.Close()
	require.Zero(t, budget.Used())
}

// TestBeginReadsNoMoreThanItIsTold reads begins of all lengths of a chunk.
func TestBeginReadsNoMoreThanItIsTold(t *testing.T) {
	l := layout{codec: compress.Codecs.Zstd, pageSize: 8 << 10, batch: 1024, groups: 1, rows: 20_000, distinct: 1000, seed: 7}
	raw, _ := arrowFile(t, l, parquet.Types.Int64, parquet.Encodings.Plain, shapes[0])
	f, err := open(t, raw, column.Options{Whole: -1})
	require.NoError(t, err)
	pages, err := f.Pages(0, 0)
	require.NoError(t, err)
	first, err := pages.Next()
	require.NoError(t, err)
	header, size := len(first.Raw), len(first.Raw)+len(first.Body)
	for _, n := range []int{1, header - 1, header, header + 1, size - 1, size, size + 1, 1 << 30} {
		begin, err := f.Pages(0, 0)
		require.NoError(t, err)
		page, ok, err := begin.Begin(n)
		require.NoError(t, err)
		require.Equal(t, n >= header, ok, "%d bytes", n)
		if ok {
			require.Equal(t, first.Raw, page.Raw)
			require.Equal(t, first.Body[:min(n, size)-header], page.Body)
			require.Equal(t, first.Header, page.Header)
		}
		begin.Close()
	}
	pages.Close()
}

// TestFilesShorterThanTheirTailAreNotKept opens a file whose end, as it is read first,
// is all of it: the footer alone stays.
func TestFilesShorterThanTheirTailAreNotKept(t *testing.T) {
	l := layout{codec: compress.Codecs.Snappy, pageSize: 8 << 10, batch: 1024, groups: 1, rows: 5000, distinct: 1000, seed: 7}
	raw, want := arrowFile(t, l, parquet.Types.Int64, parquet.Encodings.Plain, shapes[0])
	budget := column.NewBudget(1 << 20)
	f, err := open(t, raw, column.Options{Budget: budget, Whole: -1, Tail: int64(len(raw)) + 1})
	require.NoError(t, err)
	require.False(t, f.Kept())
	require.Less(t, budget.Used(), int64(len(raw)/2))
	got, err := pageByPage(f, 0)
	require.NoError(t, err)
	require.Equal(t, want.sum(), got.sum())
	f.Close()
	require.Zero(t, budget.Used())
}
