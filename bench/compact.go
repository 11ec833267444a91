package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"runtime"
	"time"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/compaction"
	builtin "github.com/seaweedfs/seaweedfs/weed/worker/tasks/iceberg"
	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

const (
	// A data set has this many files of this many rows.
	dataFiles, dataRows = 64, 100_000
	// smallFiles and smallRows are those of the data set of small files.
	smallFiles, smallRows = 2000, 700
	megabyte              = 1e6
	// targetBytes is the size of new files, both sides' default.
	targetBytes = 256 << 20
)

// arena is a lake with a data set in it and a recipe for tables of it.
type arena struct {
	*lake
	stored *stored
	recipe *recipe
}

// fill puts the data set into the lake.
func (l *lake) fill(ctx context.Context, s shape, make func(ctx context.Context, l *lake, s *stored) (*recipe, error)) (*arena, error) {
	d, err := data.get(ctx, s)
	if err != nil {
		return nil, err
	}
	a := &arena{lake: l}
	if a.stored, err = l.store(ctx, d); err != nil {
		return nil, err
	}
	a.recipe, err = make(ctx, l, a.stored)
	return a, err
}

// side is the rate, in MB/s of data files read, at which work compacts a fresh
// table. Making it does not count.
func (a *arena) side(work func(ctx context.Context, id iceberg.TableID) error) harness.Side {
	return func(ctx context.Context) (float64, error) {
		id, err := a.cook(ctx, a.recipe)
		if err != nil {
			return 0, fmt.Errorf("make table: %w", err)
		}
		runtime.GC()
		start := time.Now()
		if err := work(ctx, id); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if err := a.merged(ctx, id, a.recipe); err != nil {
			return 0, err
		}
		return float64(a.recipe.bytes) / megabyte / took.Seconds(), a.drop(ctx, id)
	}
}

// ours compacts as the program does, with settings over the defaults.
func (a *arena) ours(set map[string]string) harness.Side {
	return a.side(func(ctx context.Context, id iceberg.TableID) error {
		_, err := a.runWith(ctx, id, config.Compact, set)
		return err
	})
}

// builtinWorker compacts with the worker that comes with SeaweedFS.
func (a *arena) builtinWorker() harness.Side {
	return a.side(func(ctx context.Context, id iceberg.TableID) error {
		return builtinCompact(ctx, a.lake, id)
	})
}

func builtinCompact(ctx context.Context, l *lake, id iceberg.TableID) error {
	c := builtin.ParseConfig(nil)
	c.TargetFileSizeBytes = targetBytes
	said, m, err := l.builtin.CompactDataFiles(ctx, l.weed(), id.Bucket, id.Namespace+"/"+id.Name, c)
	if err != nil {
		return err
	}
	if m[builtin.MetricFilesMerged] == 0 {
		return fmt.Errorf("the built-in worker merged nothing: %s", said)
	}
	return nil
}

// icebergGo compacts with iceberg-go through the REST catalog and S3.
func (a *arena) icebergGo() harness.Side {
	return a.side(func(ctx context.Context, id iceberg.TableID) error {
		cat, err := a.catalog(ctx)
		if err != nil {
			return err
		}
		t, err := cat.LoadTable(ctx, ident(id))
		if err != nil {
			return err
		}
		c := compaction.DefaultConfig()
		c.TargetFileSizeBytes, c.MinFileSizeBytes, c.MaxFileSizeBytes = targetBytes, targetBytes*3/4, targetBytes*9/5
		plan, err := compaction.Analyze(ctx, t, c)
		if err != nil {
			return err
		}
		var groups []icetable.CompactionTaskGroup
		for _, g := range plan.Groups {
			groups = append(groups, icetable.CompactionTaskGroup{PartitionKey: g.PartitionKey, Tasks: g.Tasks, TotalSizeBytes: g.TotalSizeBytes})
		}
		_, err = t.RewriteDataFiles(ctx, groups, icetable.RewriteDataFilesOptions{
			GroupOptions: []icetable.CompactionGroupOption{icetable.WithCompactionTargetFileSize(targetBytes)},
		})
		return err
	})
}

// rawCopy copies the bytes of the same files, as they are, into as few files as
// a compaction makes: by the same client, with the same proof of upload. It is
// what the filer allows.
func (a *arena) rawCopy() harness.Side {
	n := 0
	return func(ctx context.Context) (float64, error) {
		n++
		outputs := max(1, int(a.stored.bytes/targetBytes))
		places := make([]filer.Path, outputs)
		for i := range places {
			places[i] = a.stored.dir.Join(fmt.Sprintf("raw-%d-%d", n, i))
		}
		runtime.GC()
		start := time.Now()
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i, at := range places {
			from, to := i*len(a.stored.files)/outputs, (i+1)*len(a.stored.files)/outputs
			g.Go(func() error { return a.concatenate(gctx, at, a.stored, from, to) })
		}
		if err := g.Wait(); err != nil {
			return 0, err
		}
		took := time.Since(start)
		for _, p := range places {
			if err := a.fl.Delete(ctx, p, filer.Guard{}); err != nil {
				return 0, err
			}
		}
		return float64(a.stored.bytes) / megabyte / took.Seconds(), nil
	}
}

func (l *lake) concatenate(ctx context.Context, at filer.Path, s *stored, from, to int) error {
	in, out := io.Pipe()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for _, f := range s.entries[from:to] {
			if err := l.pour(ctx, out, s.dir.Join(path.Base(f.FilePath()))); err != nil {
				out.CloseWithError(err)
				return err
			}
		}
		return out.Close()
	})
	g.Go(func() error {
		err := l.write(ctx, at, in)
		in.CloseWithError(err)
		return err
	})
	return g.Wait()
}

func (l *lake) pour(ctx context.Context, out io.Writer, p filer.Path) error {
	o, err := l.fl.Open(ctx, p)
	if err != nil {
		return err
	}
	defer o.Close()
	r := o.Stream(0, -1)
	defer r.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{r}, make([]byte, 1<<20))
	return err
}
