package rewrite_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite"
)

// littleWorld has sources of some kilobytes each.
func littleWorld(t *testing.T, files int) (w *world, bytes int64) {
	t.Helper()
	const rows = 500
	w = newWorld(t, eventSchema, 2)
	for _, b := range eventFiles(t, files, rows, compress.Codecs.Zstd) {
		w.add(b, make([]row, rows), nil)
		bytes += int64(len(b))
	}
	return w, bytes
}

// TestSmallSourcesAreReadWithFewReads counts reads: one of each source where there
// is memory for all of them, and else one of the footer and one of each band of
// columns. What is written is the same.
func TestSmallSourcesAreReadWithFewReads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	var want []byte
	for _, c := range []struct {
		name string
		// share is the memory by the bytes of the sources.
		share float64
		reads int
	}{
		{"whole", 20, 1},
		{"bands", 1.5, 8}, // of 8 columns and a footer
	} {
		t.Run(c.name, func(t *testing.T) {
			w, bytes := littleWorld(t, 100)
			w.request.MemoryBytes = int64(c.share * float64(bytes))
			res, err := rewrite.Merge(t.Context(), w.request)
			require.NoError(t, err)
			require.Len(t, res.Outputs, 1)
			out, _, err := filer.ReadAll(t.Context(), w.filer, res.Outputs[0].At, 1<<30)
			require.NoError(t, err)
			if want == nil {
				want = out
			}
			require.Equal(t, want, out)
			counts := w.filer.ReadCounts()
			calls := 0
			for _, s := range w.request.Sources {
				require.Equal(t, 1, counts[s.At].Opens)
				calls += counts[s.At].Calls
			}
			t.Logf("%d calls of %d sources, %d bytes of %d", calls, len(w.request.Sources), res.Proof.BytesRead, bytes)
			require.LessOrEqual(t, calls, c.reads*len(w.request.Sources))
		})
	}
}

// TestFootersOfManySourcesFit opens sources of which the ends alone, as they are
// read first, take more than the memory.
func TestFootersOfManySourcesFit(t *testing.T) {
	w, bytes := littleWorld(t, 300)
	w.request.MemoryBytes = bytes * 5 / 4
	res, err := rewrite.Merge(t.Context(), w.request)
	require.NoError(t, err)
	require.Equal(t, int64(300*500), res.Proof.RowsWritten)
}

// TestOpenOfTheRequest lets the request open sources, and fails to.
func TestOpenOfTheRequest(t *testing.T) {
	w, _ := littleWorld(t, 3)
	at := map[string]filer.Path{}
	for i := range w.request.Sources {
		s := &w.request.Sources[i]
		at[s.Location], s.At = s.At, ""
	}
	w.request.Open = func(ctx context.Context, s *rewrite.Source) (filer.Object, error) {
		return w.filer.Open(ctx, at[s.Location])
	}
	res, err := rewrite.Merge(t.Context(), w.request)
	require.NoError(t, err)
	require.Equal(t, int64(3*500), res.Proof.RowsWritten)
	w.request.Open = func(context.Context, *rewrite.Source) (filer.Object, error) {
		return nil, fault.Wrap(fault.Stale, "open", errors.New("injected"))
	}
	_, err = rewrite.Merge(t.Context(), w.request)
	require.Equal(t, fault.Stale, fault.Of(err))
	require.ErrorContains(t, err, w.request.Sources[0].Location[:8])
}
