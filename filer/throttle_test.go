package filer_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/clock"
)

// A virtual clock moves by what is slept, so it shows what the rate cost.
func TestThrottleSpreadsBytesOverTime(t *testing.T) {
	for _, piece := range []int{1 << 10, 64 << 10, 3 << 20} {
		clk := clock.NewVirtual(time.Unix(1_700_000_000, 0))
		th := filer.NewThrottle(clk, 1<<20)
		fl := th.Filer(filertest.New(filertest.Options{}))
		const size = 6 << 20
		begin := clk.Now()

		up, err := fl.Create(t.Context(), "/buckets/b/file", filer.CreateOptions{})
		require.NoError(t, err)
		for written := 0; written < size; written += piece {
			_, err := up.Write(bytes.Repeat([]byte{7}, piece))
			require.NoError(t, err)
		}
		_, err = up.Commit(t.Context())
		require.NoError(t, err)
		// A burst passes at once, and the last piece is paid for afterwards.
		least := time.Duration(float64(size-piece)/float64(1<<20)*float64(time.Second)) - 260*time.Millisecond
		require.GreaterOrEqual(t, clk.Now().Sub(begin), least, "pieces of %d", piece)
		require.LessOrEqual(t, clk.Now().Sub(begin), 6*time.Second)

		begin = clk.Now()
		o, err := fl.Open(t.Context(), "/buckets/b/file")
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, o.Stream(0, size/2))
		require.NoError(t, err)
		require.EqualValues(t, size/2, n)
		buf := make([]byte, piece)
		for off := int64(size / 2); off+int64(piece) <= size; off += int64(piece) {
			_, err := o.ReadAt(buf, off)
			require.NoError(t, err)
		}
		require.NoError(t, o.Close())
		require.GreaterOrEqual(t, clk.Now().Sub(begin), 2*time.Second)
	}
}

func TestThrottleWithoutRateNeverWaits(t *testing.T) {
	clk := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	th := filer.NewThrottle(clk, 1)
	th.SetRate(0)
	fl := th.Filer(filertest.New(filertest.Options{}))
	up, err := fl.Create(t.Context(), "/buckets/b/file", filer.CreateOptions{})
	require.NoError(t, err)
	_, err = up.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.Equal(t, time.Unix(1_700_000_000, 0), clk.Now())
	up.Abort(t.Context())
}
