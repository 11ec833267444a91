package measure_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/measure"
)

// TestPeakIsThatOfTheWork takes memory before, during and after the work.
func TestPeakIsThatOfTheWork(t *testing.T) {
	if measure.Race {
		t.Skip("the detector's memory is not what is to be seen")
	}
	take := func(n int) byte {
		b := make([]byte, n)
		for i := 0; i < n; i += 4096 {
			b[i] = 1
		}
		return b[n/2]
	}
	take(256 << 20)
	before, during := measure.Peak(t, func() { take(96 << 20) })
	take(256 << 20)
	require.InDelta(t, 96<<20, during-before, 32<<20)
}

func TestChildSeesWhatWasPrepared(t *testing.T) {
	measure.Child(t, 64<<20, func(dir string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o600))
	}, func(dir string, peak func(func())) {
		peak(func() {
			d := &measure.Disk{Dir: dir}
			b, _, err := filer.ReadAll(t.Context(), d, "/x/a", 10)
			require.NoError(t, err)
			require.Equal(t, "abc", string(b))
			_, err = d.Stat(t.Context(), "/x/b")
			require.True(t, filer.NotFound(err))
		})
	})
}
