package main

import (
	"context"

	"github.com/seaice/seaice/bench/harness"
)

// compactionBench is a bench of compacting tables made of one data set. peer is
// called on the arena.
type compactionBench struct {
	name  string
	runs  int
	shape shape
	table func(ctx context.Context, l *lake, s *stored) (*recipe, error)
	set   map[string]string
	peer  func(a *arena) harness.Side
}

func (c compactionBench) bench() harness.Bench {
	return harness.Bench{Name: c.name, Unit: "MB/s", Runs: c.runs, Prepare: func(ctx context.Context) (*harness.Contest, error) {
		l, err := openLake(ctx)
		if err != nil {
			return nil, err
		}
		contest, err := c.in(ctx, l)
		if err != nil {
			l.close()
		}
		return contest, err
	}}
}

// in makes the contest in a lake that is closed with it.
func (c compactionBench) in(ctx context.Context, l *lake) (*harness.Contest, error) {
	a, err := l.fill(ctx, c.shape, c.table)
	if err != nil {
		return nil, err
	}
	return &harness.Contest{Ours: a.ours(c.set), Peer: c.peer(a), Close: l.close}, nil
}

// appended is a table that was only appended to.
func appended(_ context.Context, _ *lake, s *stored) (*recipe, error) {
	return new(recipe).add(s), nil
}

// withPositionDeletes, withEqualityDeletes and withVectors are appended tables
// of which one row in a hundred was deleted afterwards.
func withPositionDeletes(ctx context.Context, l *lake, s *stored) (*recipe, error) {
	d, err := l.positionDeletes(ctx, s)
	return new(recipe).add(s).remove(d, deletedRows(s)), err
}

func withEqualityDeletes(ctx context.Context, l *lake, s *stored) (*recipe, error) {
	d, err := l.equalityDeletes(ctx, s)
	return new(recipe).add(s).remove(d, deletedRows(s)), err
}

func withVectors(ctx context.Context, l *lake, s *stored) (*recipe, error) {
	d, err := l.vectors(ctx, s)
	r := new(recipe).add(s).remove(d, deletedRows(s))
	r.version = 3
	return r, err
}

func deletedRows(s *stored) (n int64) {
	for i, f := range s.files {
		n += int64(len(scattered(i, f.rows)))
	}
	return n
}

// evolved has half of its files from before three columns were widened and one
// was added.
func evolved(files, rows int) func(ctx context.Context, l *lake, s *stored) (*recipe, error) {
	return func(ctx context.Context, l *lake, s *stored) (*recipe, error) {
		d, err := data.get(ctx, aged("after", after, files, rows))
		if err != nil {
			return nil, err
		}
		young, err := l.store(ctx, d)
		if err != nil {
			return nil, err
		}
		return new(recipe).add(s).evolve().add(young), nil
	}
}

func compactions(files, rows int) []compactionBench {
	const few = 3
	set1, set2 := distinct(files, rows), repeating(files, rows)
	worker := (*arena).builtinWorker
	return []compactionBench{
		{name: "compact_small", runs: few, shape: small(files*smallFiles/dataFiles, max(1, rows*smallRows/dataRows)), table: appended, peer: worker},
		{name: "compact_append", runs: few, shape: set1, table: appended, peer: worker},
		{name: "compact_append@raw", runs: 7, shape: set1, table: appended, peer: (*arena).rawCopy},
		{name: "compact_append@icego", runs: few, shape: set1, table: appended, peer: (*arena).icebergGo},
		{name: "compact_append@codec", runs: 7, shape: set1, table: appended, peer: (*arena).codec},
		{name: "compact_repeating", runs: few, shape: set2, table: appended, peer: worker},
		{name: "compact_posdelete", runs: few, shape: set1, table: withPositionDeletes, peer: worker},
		{name: "compact_posdelete@icego", runs: few, shape: set1, table: withPositionDeletes, peer: (*arena).icebergGo},
		{name: "compact_eqdelete", runs: few, shape: set1, table: withEqualityDeletes, peer: worker},
		{name: "compact_eqdelete@icego", runs: few, shape: set1, table: withEqualityDeletes, peer: (*arena).icebergGo},
		{name: "compact_dv", runs: few, shape: set1, table: withVectors, peer: (*arena).icebergGo},
		{name: "compact_evolved", runs: few, shape: aged("before", before, files/2, rows), table: evolved(files-files/2, rows), peer: (*arena).icebergGo},
		{name: "verify_overhead", runs: 7, shape: set1, table: appended, peer: func(a *arena) harness.Side {
			return a.ours(map[string]string{"verify": "counts"})
		}},
	}
}
