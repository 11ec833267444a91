package rewrite

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/deletes"
)

type laidOut struct {
	groups [][]span
	rows   int64
	bytes  float64
}

// layOut runs a layout to its end; every estimated byte becomes real ones by
// factor.
func layOut(l *layout, factor float64) []laidOut {
	var files []laidOut
	for !l.empty() {
		f := laidOut{}
		for {
			spans, estimated := l.next(int64(f.bytes), f.rows)
			f.groups = append(f.groups, spans)
			for _, s := range spans {
				f.rows += s.live
			}
			f.bytes += estimated * factor
			l.wrote(estimated, int64(estimated*factor))
			if l.full(int64(f.bytes), f.rows) {
				break
			}
		}
		files = append(files, f)
	}
	return files
}

// blocksOf makes one block of each source.
func blocksOf(rows []int64, bytesPerRow float64, deleted []*deletes.Positions) []block {
	var out []block
	for i, n := range rows {
		live := n - deleted[i].Count(0, n)
		if live > 0 {
			out = append(out, block{span: span{source: i, rows: n, live: live}, bytes: float64(live) * bytesPerRow})
		}
	}
	return out
}

func TestLayoutGivesEveryRowOnceAndKeepsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Int64Range(0, 5000), 1, 20).Draw(t, "rows")
		deleted := make([]*deletes.Positions, len(rows))
		for i, n := range rows {
			if n == 0 || rapid.Bool().Draw(t, "whole") {
				continue
			}
			deleted[i] = &deletes.Positions{}
			for range rapid.IntRange(0, 20).Draw(t, "deletes") {
				at := rapid.Int64Range(0, n-1).Draw(t, "at")
				deleted[i].AddRange(at, min(n, at+rapid.Int64Range(1, 100).Draw(t, "run")))
			}
		}
		l := &layout{
			target:     rapid.Int64Range(1, 200_000).Draw(t, "target"),
			groupBytes: rapid.Int64Range(1, 100_000).Draw(t, "group bytes"),
			groupRows:  rapid.Int64Range(1, 6000).Draw(t, "group rows"),
			maxRows:    rapid.Int64Range(0, 6000).Draw(t, "max rows"),
			exact:      rapid.Bool().Draw(t, "exact"),
			deleted:    deleted,
		}
		l.blocks = blocksOf(rows, rapid.Float64Range(0, 20).Draw(t, "bytes per row"), deleted)
		at, source := int64(0), 0
		for _, f := range layOut(l, rapid.Float64Range(0.1, 10).Draw(t, "factor")) {
			if l.maxRows > 0 {
				require.LessOrEqual(t, f.rows, l.maxRows)
			}
			for _, g := range f.groups {
				live := int64(0)
				for _, s := range g {
					if s.source != source {
						require.Greater(t, s.source, source)
						require.Equal(t, rows[source]-deleted[source].Count(0, rows[source]), at-deleted[source].Count(0, at))
						source, at = s.source, 0
					}
					require.Zero(t, (s.first-at)-deleted[source].Count(at, s.first), "live rows were left out")
					require.Equal(t, s.live, s.rows-deleted[source].Count(s.first, s.first+s.rows))
					require.Positive(t, s.live)
					at = s.first + s.rows
					live += s.live
				}
				require.LessOrEqual(t, live, l.groupRows)
			}
		}
		for ; source < len(rows); source, at = source+1, 0 {
			require.Zero(t, rows[source]-at-deleted[source].Count(at, rows[source]), "source %d", source)
		}
	})
}

func TestLayoutLandsNearTheTarget(t *testing.T) {
	for _, c := range []struct {
		name      string
		rows      []int64
		factor    float64
		files     int
		groups    int // of the first file
		exact     bool
		groupRows int64
	}{
		{name: "small files make one", rows: repeat(64, 3200), factor: 1, files: 1, groups: 2, exact: true, groupRows: 1 << 20},
		{name: "a little over the target is one", rows: repeat(54, 10_000), factor: 1, files: 1, groups: 5, exact: true, groupRows: 1 << 20},
		{name: "two targets are two", rows: repeat(10, 102_400), factor: 1, files: 2, groups: 5, exact: true, groupRows: 1 << 20},
		{name: "half the size after encoding", rows: repeat(100, 10_240), factor: 0.5, files: 1, groups: 5, groupRows: 1 << 20},
		{name: "twice the size after encoding", rows: repeat(100, 10_240), factor: 2, files: 4, groups: 3, groupRows: 1 << 20},
		{name: "one oversized file is split", rows: []int64{1_024_000}, factor: 1, files: 2, groups: 4, exact: true, groupRows: 1 << 20},
		{name: "row limit", rows: []int64{5000}, factor: 1, files: 1, groups: 5, exact: true, groupRows: 1200},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A row is 1 KiB and the target 500 MiB: a file has 512,000 rows, a
			// row group 128,000.
			l := &layout{target: 500 << 20, groupBytes: 125 << 20, groupRows: c.groupRows, exact: c.exact, deleted: make([]*deletes.Positions, len(c.rows))}
			l.blocks = blocksOf(c.rows, 1024, l.deleted)
			files := layOut(l, c.factor)
			require.Len(t, files, c.files)
			require.Len(t, files[0].groups, c.groups)
			for i, f := range files[:len(files)-1] {
				require.InDelta(t, 500<<20, f.bytes, 0.1*(500<<20), "file %d of %d", i, len(files))
			}
			if len(files) > 1 {
				require.GreaterOrEqual(t, files[len(files)-1].bytes, 0.5*(500<<20))
			}
		})
	}
}

func repeat(n int, v int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Whatever the sizes of blocks are, no file is a small rest of the others, none much
// larger than the target, and there are no more than it takes.
func TestLayoutLeavesNoSmallRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const target = 1_000_000
		l := &layout{target: target, groupRows: 1 << 40, exact: rapid.Bool().Draw(t, "exact")}
		l.groupBytes = rapid.Int64Range(target/5, 2*target).Draw(t, "group bytes")
		// Blocks of one size are the worst: what one file takes too much, all do.
		rows := rapid.OneOf(
			rapid.SliceOfN(rapid.Int64Range(1, 2*target), 1, 40),
			rapid.Custom(func(t *rapid.T) []int64 {
				return repeat(rapid.IntRange(1, 60).Draw(t, "blocks"), rapid.Int64Range(target/10, 2*target).Draw(t, "size"))
			}),
		).Draw(t, "rows")
		l.deleted = make([]*deletes.Positions, len(rows))
		total := int64(0)
		for _, n := range rows {
			total += n
		}
		if least := total/(target*13/10) + 1; rapid.Bool().Draw(t, "bound rows") {
			l.maxRows = max(total/max(least, 2), target/2)
		}
		l.blocks = blocksOf(rows, 1, l.deleted)
		files := layOut(l, 1)
		require.LessOrEqual(t, int64(len(files)), l.files(float64(total)+target/100, total), "more than it takes")
		for i, f := range files {
			require.LessOrEqual(t, f.bytes, 1.15*target, "file %d of %d", i, len(files))
			if l.maxRows == 0 && len(files) > 1 {
				require.GreaterOrEqual(t, f.bytes, 0.49*target, "file %d of %d", i, len(files))
			}
		}
	})
}

// The sizes of 14 files and a small one, of which two exceed a share by an eighth:
// seven times that left a last file of a twelfth.
func TestLayoutSharesWhatBlocksExceed(t *testing.T) {
	rows := append(repeat(14, 585_344), 96_996)
	l := &layout{target: 1_066_090, groupBytes: 128 << 20, groupRows: 1 << 20, exact: true, deleted: make([]*deletes.Positions, len(rows))}
	l.blocks = blocksOf(rows, 1, l.deleted)
	files := layOut(l, 1)
	require.Len(t, files, 8)
	for _, f := range files {
		require.InDelta(t, 1_036_477, f.bytes, 0.1*1_036_477)
	}
}
