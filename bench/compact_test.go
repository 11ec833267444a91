package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/internal/cluster"
)

// Each side of every compaction does its whole work on small tables, or its own
// checks fail.
func TestBothSidesCompact(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters")
	}
	if _, err := cluster.Weed(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err)
		}
		t.Skipf("no weed: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, data.remove()) })
	l, err := openLake(t.Context())
	require.NoError(t, err)
	t.Cleanup(l.close)
	for _, c := range compactions(8, 1000) {
		t.Run(c.name, func(t *testing.T) {
			contest, err := c.in(t.Context(), l)
			require.NoError(t, err)
			if contest.Peer != nil {
				if c.name == "verify_overhead" && !registry().Has(config.Compact) {
					t.Skip("no compaction")
				}
				figure, err := contest.Peer(t.Context())
				require.NoError(t, err)
				require.Positive(t, figure)
				t.Logf("peer %.1f", figure)
			}
			if !registry().Has(config.Compact) {
				t.Skip("no compaction")
			}
			figure, err := contest.Ours(t.Context())
			require.NoError(t, err)
			require.Positive(t, figure)
			t.Logf("ours %.1f", figure)
		})
	}
}

// Data sets are the same each time.
func TestDataSetsRepeat(t *testing.T) {
	for _, s := range []shape{distinct(2, 500), repeating(2, 500), aged("before", before, 2, 500), aged("after", after, 2, 500), wide(2, 10, 30)} {
		a, err := s.make(t.Context(), t.TempDir())
		require.NoError(t, err)
		b, err := s.make(t.Context(), t.TempDir())
		require.NoError(t, err)
		require.Equal(t, a.rows, int64(s.files*s.rows))
		for i := range a.files {
			x, err := os.ReadFile(a.files[i].path)
			require.NoError(t, err)
			y, err := os.ReadFile(b.files[i].path)
			require.NoError(t, err)
			require.Equal(t, x, y)
			a.files[i].path, b.files[i].path = "", ""
		}
		require.Equal(t, a.files, b.files)
		if i := 0; a.files[i].rows == 500 {
			require.Len(t, scattered(i, 500), 5)
		}
	}
}

func TestPagesOfADataSet(t *testing.T) {
	d, err := distinct(2, 500).make(t.Context(), t.TempDir())
	require.NoError(t, err)
	p, err := pagesOf(d)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(p.bodies), 2*8)
	require.NoError(t, p.roundTrip(t.Context(), 2))
	p.sizes[3]++
	require.Error(t, p.roundTrip(t.Context(), 2))
}
