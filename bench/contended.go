package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
)

const (
	// commitEvery is how often another writer commits while a table is compacted.
	commitEvery = 200 * time.Millisecond
	// deletedEach is how many rows each of its commits deletes.
	deletedEach = 10
)

// rival is another writer. commit makes its nth commit and says by how many rows
// the table grew; what it returns wrapped in errMissed did not happen.
type rival struct {
	version int
	commit  func(ctx context.Context, a *arena, t *icetable.Table, n int) (int64, error)
}

// contended compacts a table while another writer commits to it. The figure is
// how many of the bytes rewritten went into the table; peer is how many were
// rewritten.
func contended(name string, s shape, r rival) harness.Bench {
	return harness.Bench{Name: "commit_contended_" + name, Unit: "MB", Runs: 3, Prepare: func(ctx context.Context) (*harness.Contest, error) {
		l, err := openLake(ctx)
		if err != nil {
			return nil, err
		}
		a, err := l.ring(ctx, s, r.version)
		if err != nil {
			l.close()
			return nil, err
		}
		return &harness.Contest{
			Ours:  func(ctx context.Context) (float64, error) { return a.kept(ctx, r, 3) },
			Peer:  func(context.Context) (float64, error) { return float64(a.stored.bytes) / megabyte, nil },
			Close: l.close,
		}, nil
	}}
}

// ring is an arena in which writers contend.
func (l *lake) ring(ctx context.Context, s shape, version int) (*arena, error) {
	return l.fill(ctx, s, func(_ context.Context, _ *lake, s *stored) (*recipe, error) {
		return (&recipe{version: version, props: icego.Properties{"commit.retry.num-retries": "10"}}).add(s), nil
	})
}

// kept compacts a fresh table beside the rival and returns how many MB of the
// files that it has read it has replaced. The rival must have committed at least
// so many times.
func (a *arena) kept(ctx context.Context, r rival, least int) (float64, error) {
	id, err := a.cook(ctx, a.recipe)
	if err != nil {
		return 0, fmt.Errorf("make table: %w", err)
	}
	type outcome struct {
		commits int
		rows    int64
		err     error
	}
	stop, ended := make(chan struct{}), make(chan outcome, 1)
	began := make(chan struct{})
	go func() {
		var o outcome
		tick := time.NewTicker(commitEvery)
		defer tick.Stop()
		for n := 0; o.err == nil; n++ {
			var grown int64
			grown, o.err = a.rivalCommits(ctx, id, r, n)
			o.rows += grown
			if grown != 0 {
				o.commits++
			}
			if n == 0 {
				close(began)
			}
			select {
			case <-stop:
				ended <- o
				return
			case <-tick.C:
			}
		}
		ended <- o
	}()
	<-began
	_, err = a.runWith(ctx, id, config.Compact, nil)
	close(stop)
	o := <-ended
	if err := errors.Join(err, o.err); err != nil {
		return 0, err
	}
	if o.commits < least {
		return 0, fmt.Errorf("the other writer committed only %d times", o.commits)
	}
	kept, rows, err := a.census(ctx, id)
	if err != nil {
		return 0, err
	}
	if want := a.recipe.rows + o.rows; rows != want {
		return 0, fmt.Errorf("the table has %d rows and should have %d", rows, want)
	}
	return float64(kept) / megabyte, a.drop(ctx, id)
}

// rivalCommits makes one commit of the rival.
func (a *arena) rivalCommits(ctx context.Context, id iceberg.TableID, r rival, n int) (int64, error) {
	cat, err := a.catalog(ctx)
	if err != nil {
		return 0, err
	}
	// A writer whose commit came too late plans again on what there is then.
	for attempt := range 20 {
		t, err := cat.LoadTable(ctx, ident(id))
		if err != nil {
			return 0, err
		}
		rows, err := r.commit(ctx, a, t, n*100+attempt)
		if err == nil {
			return rows, nil
		}
		if !errors.Is(err, errMissed) {
			return 0, fmt.Errorf("commit %d of the other writer: %w", n, err)
		}
	}
	return 0, fmt.Errorf("commit %d of the other writer never succeeded", n)
}

// errMissed: the head moved and the commit was refused.
var errMissed = errors.New("the commit was refused")

func committed(ctx context.Context, tx *icetable.Transaction) error {
	if _, err := tx.Commit(ctx); err != nil {
		return errors.Join(errMissed, err)
	}
	return nil
}

// census are the bytes of the data set's files that the table has no more, and
// the number of its rows as iceberg-go reads them.
func (a *arena) census(ctx context.Context, id iceberg.TableID) (gone, rows int64, err error) {
	cat, err := a.catalog(ctx)
	if err != nil {
		return 0, 0, err
	}
	t, err := cat.LoadTable(ctx, ident(id))
	if err != nil {
		return 0, 0, err
	}
	live, err := liveFiles(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	for i, e := range a.stored.entries {
		if live[e.FilePath()] == nil {
			gone += a.stored.files[i].bytes
		}
	}
	_, records, err := t.Scan(icetable.WithSelectedFields(a.stored.schema.Field(0).Name)).ToArrowRecords(ctx)
	if err != nil {
		return 0, 0, err
	}
	for rec, err := range records {
		if err != nil {
			return 0, 0, err
		}
		rows += rec.NumRows()
		rec.Release()
	}
	return gone, rows, nil
}

// appends adds a small file with each commit.
func appends(ctx context.Context, a *arena, t *icetable.Table, n int) (int64, error) {
	as, err := icetable.SchemaToArrowSchema(t.Schema(), nil, true, false)
	if err != nil {
		return 0, err
	}
	one := distinct(1, deletedEach)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	g := newSource(n)
	for i := range one.rows {
		one.fill(g, int64(n*one.rows+i), b)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(as, &buf, layout(t.Schema()), pqarrow.DefaultWriterProps())
	if err != nil {
		return 0, err
	}
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		return 0, err
	}
	at := a.stored.dir.Join(fmt.Sprintf("late-%s-%d.parquet", t.Identifier()[len(t.Identifier())-1], n))
	size := int64(buf.Len())
	if err := a.write(ctx, at, &buf); err != nil {
		return 0, err
	}
	d, err := icego.NewDataFileBuilder(t.Spec(), icego.EntryContentData, location(at), icego.ParquetFile, nil, nil, nil, int64(one.rows), size)
	if err != nil {
		return 0, err
	}
	tx := t.NewTransaction()
	if err := tx.AddDataFiles(ctx, []icego.DataFile{d.Build()}, nil, icetable.WithoutAutoNameMapping()); err != nil {
		return 0, err
	}
	return int64(one.rows), committed(ctx, tx)
}

// victim is a live file of the table that has no deletes yet, about the nth; nil
// if there is none.
func victim(ctx context.Context, t *icetable.Table, n int) (icego.DataFile, error) {
	tasks, err := t.Scan().PlanFiles(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		task := tasks[(n+i)%len(tasks)]
		if len(task.DeleteFiles) == 0 && len(task.DeletionVectorFiles) == 0 {
			return task.File, nil
		}
	}
	return nil, nil
}

// deletesPositions deletes rows of one file with each commit, as long as there is
// one without deletes.
func deletesPositions(ctx context.Context, a *arena, t *icetable.Table, n int) (int64, error) {
	f, err := victim(ctx, t, n)
	if err != nil || f == nil {
		return 0, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, icetable.PositionalDeleteArrowSchema)
	defer b.Release()
	for i := range deletedEach {
		b.Field(0).(*array.StringBuilder).Append(f.FilePath())
		b.Field(1).(*array.Int64Builder).Append(int64(i) * f.Count() / deletedEach)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	at := a.stored.dir.Join(fmt.Sprintf("%s-pos-%d.parquet", t.Identifier()[len(t.Identifier())-1], n))
	size, err := a.put(ctx, at, rec)
	if err != nil {
		return 0, err
	}
	d, err := positionDelete(location(at), f.FilePath(), deletedEach, size)
	if err != nil {
		return 0, err
	}
	tx := t.NewTransaction()
	if err := tx.NewRowDelta(nil).AddDeletes(d).Commit(ctx); err != nil {
		return 0, err
	}
	return -deletedEach, committed(ctx, tx)
}

// deletesByVectors is deletesPositions for tables of version 3.
func deletesByVectors(ctx context.Context, a *arena, t *icetable.Table, n int) (int64, error) {
	f, err := victim(ctx, t, n)
	if err != nil || f == nil {
		return 0, err
	}
	fs, err := a.s3(ctx)
	if err != nil {
		return 0, err
	}
	w := dv.NewDVWriter(fs, func(int32) *icego.PartitionSpec { return icego.UnpartitionedSpec })
	positions := make([]int64, deletedEach)
	for i := range positions {
		positions[i] = int64(i) * f.Count() / deletedEach
	}
	if err := w.Add(f.FilePath(), positions, 0, nil); err != nil {
		return 0, err
	}
	at := a.stored.dir.Join(fmt.Sprintf("%s-dv-%d.puffin", t.Identifier()[len(t.Identifier())-1], n))
	vectors, err := w.Flush(ctx, location(at))
	if err != nil {
		return 0, err
	}
	tx := t.NewTransaction()
	if err := tx.NewRowDelta(nil).AddDeletes(vectors...).Commit(ctx); err != nil {
		return 0, err
	}
	return -deletedEach, committed(ctx, tx)
}

// rivals are the other writers by the name of their bench.
var rivals = []struct {
	name string
	rival
}{
	{"append", rival{version: 2, commit: appends}},
	{"posdelete", rival{version: 2, commit: deletesPositions}},
	{"dv", rival{version: 3, commit: deletesByVectors}},
}
