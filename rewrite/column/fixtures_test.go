package column_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
)

var update = flag.Bool("update", false, "write testdata/fixtures.txt anew")

func (c *content) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %x %x\n", len(c.Values), c.Rep, c.Def)
	for _, v := range c.Values {
		fmt.Fprintf(h, "%x\n", v)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

// TestFixturesOfOtherWriters compares every leaf of every file with what other
// readers yield, and the outcome with the table in testdata.
func TestFixturesOfOtherWriters(t *testing.T) {
	files := fixtures(t)
	var got []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		f, err := open(t, b, column.Options{})
		if err != nil {
			got = append(got, fmt.Sprintf("%s: %s", name, fault.Of(err)))
			continue
		}
		for leaf, node := range f.Footer().Schema.Leaves {
			got = append(got, fmt.Sprintf("%s %s: %s", name, node, outcome(t, f, b, leaf)))
		}
		f.Close()
	}
	const table = "testdata/fixtures.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(table, []byte(strings.Join(got, "\n")+"\n"), 0o644))
	}
	raw, err := os.ReadFile(table)
	require.NoError(t, err)
	var want []string
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		want = append(want, s.Text())
	}
	require.Equal(t, want, got)
}

// outcome is the content of a leaf and who agrees with it, or the refusal.
func outcome(t *testing.T, f *column.File, b []byte, leaf int) string {
	t.Helper()
	node := f.Footer().Schema.Leaves[leaf]
	ours, err := pageByPage(f, leaf)
	if err != nil {
		require.NotEqual(t, fault.Unknown, fault.Of(err), "%v", err)
		require.ErrorContains(t, err, "x.parquet")
		require.ErrorContains(t, err, node.String())
		return fault.Of(err).String()
	}
	for _, size := range []int{1, 100, 5000, 1 << 30} {
		rows, err := byRows(f, leaf, size)
		require.NoError(t, err)
		require.Equal(t, ours.sum(), rows.sum(), "batches of %d bytes", size)
	}
	out := fmt.Sprintf("%d values %s", len(ours.Values), ours.sum())
	agreed := 0
	judge := func(name string, other content, err error) {
		switch {
		case err != nil:
			t.Logf("%s: %s: %v", node, name, err)
		case other.sum() == ours.sum():
			out += ", " + name + " agrees"
			agreed++
		default:
			out += ", " + name + " DIFFERS"
		}
	}
	arrow, err := byArrow(b, leaf)
	judge("arrow-go", arrow, err)
	other, err := byParquetGo(b, leaf, node)
	judge("parquet-go", other, err)
	if agreed == 0 {
		out += ", nobody agrees"
	}
	return out
}
