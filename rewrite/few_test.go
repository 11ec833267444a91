package rewrite_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite"
)

// TestPagesOfFewValuesAreJoined merges files of some rows each, whose pages moved as
// they are would make an output more than twice as long, and larger ones.
func TestPagesOfFewValuesAreJoined(t *testing.T) {
	if testing.Short() {
		t.Skip("writes large files and compares sizes")
	}
	for _, c := range []struct {
		files, rows int
		joined      bool
	}{{300, 20, true}, {100, 1000, false}} {
		sizes := map[rewrite.Copying]int64{}
		var encoded int64
		for _, copying := range []rewrite.Copying{rewrite.CopyNever, rewrite.CopyWhereAllowed} {
			w := newWorld(t, eventSchema, 2)
			for _, b := range eventFiles(t, c.files, c.rows, compress.Codecs.Zstd) {
				w.add(b, make([]row, c.rows), nil)
			}
			out := &discard{}
			w.request.Copying = copying
			w.request.Create = func(context.Context, int) (rewrite.Sink, error) { return out, nil }
			res, err := rewrite.Merge(t.Context(), w.request)
			require.NoError(t, err)
			sizes[copying], encoded = out.n, res.Proof.Encoded
		}
		if c.joined {
			require.Equal(t, sizes[rewrite.CopyNever], sizes[rewrite.CopyWhereAllowed])
		} else {
			require.Less(t, encoded, sizes[rewrite.CopyWhereAllowed]/10, "they are moved")
		}
	}
}
