package format_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/format"
)

// fixtures are the Parquet files of other writers by their names.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	root := os.Getenv("SEAICE_FIXTURES")
	if root == "" {
		root = "../../../shared/fixtures"
	}
	files, err := filepath.Glob(filepath.Join(root, "parquet", "*.parquet"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("there are no files of other writers; set SEAICE_FIXTURES")
	}
	out := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(f), ".parquet")] = b
	}
	return out
}

func footer(b []byte) []byte {
	n := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	return b[len(b)-8-n : len(b)-8]
}

// ignoreLegacy leaves out what is read and never written.
var ignoreLegacy = cmp.Options{
	cmpopts.IgnoreFields(format.Statistics{}, "LegacyMin", "LegacyMax"),
	cmpopts.IgnoreFields(format.Node{}, "Parent"),
}

func TestFootersOfOtherWritersAreWrittenAsTheyWereRead(t *testing.T) {
	for name, b := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			f, err := format.ParseFooter(footer(b))
			require.NoError(t, err)
			require.NoError(t, f.Check(int64(len(b)-8-len(footer(b)))))
			again, err := format.ParseFooter(format.AppendFooter(nil, f))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(f, again, ignoreLegacy))
		})
	}
}
