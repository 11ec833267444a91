package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/internal/cluster"
)

func TestMain(m *testing.M) {
	children.Main(context.Background())
	os.Exit(m.Run())
}

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
	both := func(t *testing.T, contest *harness.Contest) {
		t.Helper()
		for who, side := range map[string]harness.Side{"peer": contest.Peer, "ours": contest.Ours} {
			figure, err := side(t.Context())
			require.NoError(t, err, who)
			require.Positive(t, figure, who)
			t.Logf("%s %.1f", who, figure)
		}
	}
	for _, c := range compactions(8, 1000) {
		t.Run(c.name, func(t *testing.T) {
			contest, err := c.in(t.Context(), l)
			require.NoError(t, err)
			both(t, contest)
		})
	}
	t.Run("cpu", func(t *testing.T) {
		contest, err := l.costs(t.Context(), distinct(8, 1000), appended, func(*arena, harness.Usage) func(harness.Usage) float64 {
			return func(u harness.Usage) float64 { return u.CPUSeconds }
		})
		require.NoError(t, err)
		both(t, contest)
	})
	for _, r := range rivals {
		t.Run("contended_"+r.name, func(t *testing.T) {
			a, err := l.ring(t.Context(), distinct(8, 20_000), r.version)
			require.NoError(t, err)
			id, err := l.cook(t.Context(), a.recipe)
			require.NoError(t, err)
			rows, err := a.rivalCommits(t.Context(), id, r.rival, 1)
			require.NoError(t, err)
			gone, left, err := a.census(t.Context(), id)
			require.NoError(t, err)
			require.Zero(t, gone)
			require.Equal(t, a.recipe.rows+rows, left)
			kept, err := a.kept(t.Context(), r.rival, 1)
			require.NoError(t, err)
			require.Positive(t, kept)
			t.Logf("kept %.1f of %.1f MB", kept, float64(a.stored.bytes)/megabyte)
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

func TestEnginesReadAShelf(t *testing.T) {
	d, err := distinct(3, 700).make(t.Context(), t.TempDir())
	require.NoError(t, err)
	s, err := newShelf(d)
	require.NoError(t, err)
	require.NoError(t, s.arrowGo(t.Context()))
	require.NoError(t, s.ours(t.Context()))
	s.rows++
	require.Error(t, s.ours(t.Context()))
	require.Error(t, s.arrowGo(t.Context()))
	_, err = s.Open(t.Context(), "/buckets/none")
	require.ErrorIs(t, err, errNotOnShelf)
}
