package commit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// ReferencedPaths are all paths that the snapshots of v reach.
func ReferencedPaths(t testing.TB, r filer.Reader, v *iceberg.View) []filer.Path {
	t.Helper()
	var out []filer.Path
	require.NoError(t, visitPaths(t.Context(), r, v, func(p filer.Path) bool {
		out = append(out, p)
		return true
	}))
	return out
}
