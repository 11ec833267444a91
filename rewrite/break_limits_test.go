package rewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
)

// TestRowGroupsBeyondTheFormatGoToAnotherFile asks for row groups of one row.
func TestRowGroupsBeyondTheFormatGoToAnotherFile(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 33,000 row groups")
	}
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true})
	w := newWorld(t, schema, 2)
	w.request.Table.Properties["write.parquet.row-group-limit"] = "1"
	w.request.Verify = rewrite.VerifyCounts
	rows := make([]row, 33_000)
	for i := range rows {
		rows[i] = row{1: int64(i)}
	}
	w.add(writeRows(t, schema, rows, style{Codec: compress.Codecs.Uncompressed, PageBytes: 256, GroupRows: 64}, false), rows, nil)
	res, err := rewrite.Merge(context.Background(), w.request)
	require.NoError(t, err)
	require.Len(t, res.Outputs, 2)
	require.Equal(t, int64(1<<15), res.Outputs[0].Records)
}

// panicSink panics at a write.
type panicSink struct{ failing }

func (s *panicSink) Write([]byte) (int, error) { panic("broken sink") }

// TestPanicsAbortWhatWasBegun has a sink panic in the midst of a merge.
func TestPanicsAbortWhatWasBegun(t *testing.T) {
	w := smallWorld(t, true)
	var sinks []*panicSink
	w.request.Create = func(context.Context, int) (rewrite.Sink, error) {
		s := &panicSink{}
		sinks = append(sinks, s)
		return s, nil
	}
	_, err := rewrite.Merge(context.Background(), w.request)
	require.Equal(t, fault.Halt, fault.Of(err), "%v", err)
	require.NotEmpty(t, sinks)
	for _, s := range sinks {
		require.True(t, s.aborted)
	}
}

// flaky fails the n-th read, or stops the merge at it.
type flaky struct {
	filer.Object
	at func() error
}

func (f *flaky) ReadAt(p []byte, off int64) (int, error) {
	if err := f.at(); err != nil {
		return 0, err
	}
	return f.Object.ReadAt(p, off)
}

type flakyReader struct {
	filer.Reader
	at func() error
}

func (r *flakyReader) Open(ctx context.Context, at filer.Path) (filer.Object, error) {
	if err := r.at(); err != nil {
		return nil, err
	}
	o, err := r.Reader.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	return &flaky{Object: o, at: r.at}, nil
}

// TestReadErrorsAtEveryCall fails, and then cancels at, each read in turn: the error
// is the read's, nothing is left running, and all sinks are aborted.
func TestReadErrorsAtEveryCall(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	gone := fault.Wrap(fault.Transient, "read", errors.New("injected"))
	sources := largeWorld(t)
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, canceled := range []bool{false, true} {
		for n := 0; ; n += step {
			w := *sources
			w.request.TargetBytes = 100_000
			ctx, cancel := context.WithCancel(context.Background())
			calls := make(chan int, 1)
			calls <- 0
			w.request.Reader = &flakyReader{Reader: w.filer, at: func() error {
				k := <-calls
				calls <- k + 1
				switch {
				case k < n:
					return nil
				case canceled:
					cancel()
					return nil
				}
				return gone
			}}
			var sinks []*failing
			w.request.Create = func(context.Context, int) (rewrite.Sink, error) {
				s := &failing{fail: func() error { return nil }}
				sinks = append(sinks, s)
				return s, nil
			}
			_, err := rewrite.Merge(ctx, w.request)
			done := <-calls
			calls <- done
			if done <= n {
				require.NoError(t, err)
				require.Greater(t, n, 10)
				cancel()
				break
			}
			if err == nil {
				require.True(t, canceled) // it was over already
				cancel()
				continue
			}
			want := fault.Transient
			if canceled {
				want = fault.Canceled
			}
			require.Equal(t, want, fault.Of(err), "%d: %v", n, err)
			for _, s := range sinks {
				require.True(t, s.aborted)
			}
			cancel()
		}
	}
}

// largeWorld has two sources that are too large to be read at once.
func largeWorld(t *testing.T) *world {
	w := newWorld(t, listSchema(), 2)
	w.request.MemoryBytes = 4 << 20
	for i := range 2 {
		rows := make([]row, 72_000)
		for k := range rows {
			rows[k] = row{1: int64(k) * 1_234_567, 3: []any{int32(k), int32(k * k)}}
		}
		w.add(writeRows(t, listSchema(), rows, style{Codec: compress.Codecs.Uncompressed, Dictionary: i == 0, PageBytes: 50_000, GroupRows: 8000, Index: true}, false), rows, deletes.Of(5, 9000))
	}
	require.Greater(t, w.request.Sources[0].Bytes+w.request.Sources[1].Bytes, w.request.MemoryBytes/2)
	return w
}

// TestStatisticsOfPagesWithoutAnOrderAreNotKept moves pages of a file that does not
// say how bounds are compared into one that does.
func TestStatisticsOfPagesWithoutAnOrderAreNotKept(t *testing.T) {
	schema := icego.NewSchema(0, icego.NestedField{ID: 1, Name: "i", Type: icego.PrimitiveTypes.Int64, Required: true})
	statistics := &format.Statistics{Min: handLongs(7), Max: handLongs(8)}
	page := handPage{values: handLongs(1, 9), rows: 2, statistics: statistics}
	content := handFile(t, schema, 2, "parquet-mr version 1.13.1 (build x)", handChunk{pages: []handPage{page}})
	content = withoutOrders(t, content)
	w := newWorld(t, schema, 2)
	rows := []row{{1: int64(1)}, {1: int64(9)}}
	w.add(content, rows, nil)
	w.add(content, rows, nil)
	w.request.Copying = rewrite.CopyForced
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
		f, err := column.Open(context.Background(), bytes.NewReader(w.filer.Content(o.At)), "out", column.Options{})
		require.NoError(t, err)
		pages, err := f.Pages(0, 0)
		require.NoError(t, err)
		for {
			p, err := pages.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.Nil(t, p.Header.Statistics)
		}
	}
}

// withoutOrders takes the column orders out of a footer.
func withoutOrders(t *testing.T, content []byte) []byte {
	length := int(binary.LittleEndian.Uint32(content[len(content)-8:]))
	at := len(content) - 8 - length
	footer, err := format.ParseFooter(content[at : len(content)-8])
	require.NoError(t, err)
	footer.Orders = nil
	out := format.AppendFooter(bytes.Clone(content[:at]), footer)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-at))
	return append(out, "PAR1"...)
}
