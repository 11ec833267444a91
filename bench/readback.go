package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	pqgo "github.com/parquet-go/parquet-go"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/rewrite"
)

const (
	// readbackFiles are merged for these benches, as many as make two row groups.
	readbackFiles = 24
	readbackRuns  = 9
)

// reader reads files in full and says how many rows they had and how many
// seconds of processor time it took.
type reader interface {
	scan(ctx context.Context, o *outputs) (rows int64, seconds float64, err error)
	close() error
}

// readers are those whose speed with copied pages is compared, by name.
var readers = []struct {
	name string
	open func(ctx context.Context) (reader, error)
}{
	{"arrow", inProcess(arrowGoScan)},
	{"parquetgo", inProcess(parquetGoScan)},
	{"duckdb", inPython("duckdb")},
	{"pyarrow", inPython("pyarrow")},
}

// references are what outputs whose pages were copied are compared with: the same
// rows encoded anew by arrow-go, as those who compact without copying do, or by
// ourselves, whose pages are smaller.
var references = []struct {
	suffix string
	how    rewrite.Copying
	make   func(s *shelf, ctx context.Context) (*outputs, error)
}{
	{"", rewrite.CopyWhereAllowed, (*shelf).encoded},
	{"@own", rewrite.CopyWhereAllowed, (*shelf).encodedByUs},
	{"@forced", rewrite.CopyForced, (*shelf).encoded},
}

// readback compares how fast others read outputs whose pages were copied with
// how fast they read the same rows encoded anew. Figures are of processor time
// on one core: what a reader saves or loses by the layout of a file.
func readback() (out []harness.Bench) {
	for _, set := range []struct {
		suffix string
		shape  shape
	}{{"", distinct(readbackFiles, dataRows)}, {"_dict", repeating(readbackFiles, dataRows)}} {
		for _, r := range readers {
			for _, c := range references {
				out = append(out, harness.Bench{
					Name: "readback_" + r.name + set.suffix + c.suffix, Unit: "MB/cpu-s", Runs: readbackRuns,
					Prepare: func(ctx context.Context) (*harness.Contest, error) {
						s, err := shelved(ctx, set.shape)
						if err != nil {
							return nil, err
						}
						rd, err := r.open(ctx)
						if err != nil {
							return nil, err
						}
						return s.readBack(ctx, rd, c.how, c.make)
					},
				})
			}
		}
	}
	return out
}

// sizes compares the bytes of outputs whose pages were copied with those of the
// same rows encoded anew.
func sizes() (out []harness.Bench) {
	for _, set := range []struct {
		name  string
		shape shape
	}{{"size_gen", distinct(readbackFiles, dataRows)}, {"size_gendict", repeating(readbackFiles, dataRows)}} {
		for _, c := range references {
			// The same input makes the same output: one run will do.
			out = append(out, harness.Bench{Name: set.name + c.suffix, Unit: "MB", Better: harness.Lower, Runs: 1, Prepare: func(ctx context.Context) (*harness.Contest, error) {
				s, err := shelved(ctx, set.shape)
				if err != nil {
					return nil, err
				}
				copied := func(ctx context.Context) (*outputs, error) { return s.merge(ctx, c.how) }
				encoded := func(ctx context.Context) (*outputs, error) { return c.make(s, ctx) }
				return &harness.Contest{Ours: size(copied), Peer: size(encoded)}, nil
			}})
		}
	}
	return out
}

// shelved are the files of a data set, in memory.
func shelved(ctx context.Context, s shape) (*shelf, error) {
	d, err := data.get(ctx, s)
	if err != nil {
		return nil, err
	}
	return newShelf(d)
}

// outputs are what a merge wrote, in memory and in files that are in memory too.
type outputs struct {
	dir   string
	paths []string
	raw   [][]byte
	bytes int64
}

// memoryDir is a file system in memory.
const memoryDir = "/dev/shm"

// keep is a sink that keeps what is written.
type keep struct{ bytes.Buffer }

// Done implements rewrite.Sink.
func (k *keep) Done(context.Context) (rewrite.Stored, error) {
	return rewrite.Stored{Location: "s3://bench/out.parquet", Bytes: int64(k.Len())}, nil
}

// Abort implements rewrite.Sink.
func (k *keep) Abort() {}

// merge merges the files of the shelf.
func (s *shelf) merge(ctx context.Context, how rewrite.Copying) (*outputs, error) {
	q, err := s.request()
	if err != nil {
		return nil, err
	}
	var kept []*keep
	q.Copying = how
	q.Create = func(context.Context, int) (rewrite.Sink, error) {
		kept = append(kept, &keep{})
		return kept[len(kept)-1], nil
	}
	res, err := rewrite.Merge(ctx, q)
	if err != nil {
		return nil, err
	}
	if res.Proof.RowsWritten != s.rows {
		return nil, fmt.Errorf("our engine wrote %d of %d rows", res.Proof.RowsWritten, s.rows)
	}
	o := &outputs{}
	for _, k := range kept {
		o.raw = append(o.raw, k.Bytes())
		o.bytes += int64(k.Len())
	}
	return o, nil
}

// store puts the outputs where other processes read them.
func (o *outputs) store() (err error) {
	if o.dir, err = os.MkdirTemp(memoryDir, "seaice-readback-"); err != nil {
		return err
	}
	for i, raw := range o.raw {
		p := filepath.Join(o.dir, fmt.Sprintf("out-%d.parquet", i))
		if err := os.WriteFile(p, raw, 0o600); err != nil {
			return errors.Join(err, o.remove())
		}
		o.paths = append(o.paths, p)
	}
	return nil
}

func (o *outputs) remove() error { return os.RemoveAll(o.dir) }

// encoded decodes the files and encodes them anew with arrow-go.
func (s *shelf) encoded(ctx context.Context) (*outputs, error) {
	var kept []*bytes.Buffer
	err := s.encode(ctx, func() io.Writer {
		kept = append(kept, &bytes.Buffer{})
		return kept[len(kept)-1]
	})
	o := &outputs{}
	for _, k := range kept {
		o.raw = append(o.raw, k.Bytes())
		o.bytes += int64(k.Len())
	}
	return o, err
}

// encodedByUs does the same with our engine.
func (s *shelf) encodedByUs(ctx context.Context) (*outputs, error) {
	return s.merge(ctx, rewrite.CopyNever)
}

// size is the size of outputs in MB.
func size(of func(ctx context.Context) (*outputs, error)) harness.Side {
	return func(ctx context.Context) (float64, error) {
		o, err := of(ctx)
		if err != nil {
			return 0, err
		}
		return float64(o.bytes) / megabyte, nil
	}
}

func (s *shelf) readBack(ctx context.Context, r reader, how rewrite.Copying, encode func(*shelf, context.Context) (*outputs, error)) (_ *harness.Contest, err error) {
	var made []*outputs
	done := func() error {
		errs := []error{r.close()}
		for _, o := range made {
			errs = append(errs, o.remove())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, done())
		}
	}()
	copied := func(s *shelf, ctx context.Context) (*outputs, error) { return s.merge(ctx, how) }
	for _, of := range []func(*shelf, context.Context) (*outputs, error){copied, encode} {
		o, err := of(s, ctx)
		if err != nil {
			return nil, err
		}
		if err := o.store(); err != nil {
			return nil, err
		}
		made = append(made, o)
	}
	scan := func(o *outputs) harness.Side {
		return func(ctx context.Context) (float64, error) {
			rows, seconds, err := r.scan(ctx, o)
			if err != nil {
				return 0, err
			}
			if rows != s.rows {
				return 0, fmt.Errorf("%d of %d rows were read", rows, s.rows)
			}
			// Both sides are measured by the bytes of the sources.
			return float64(s.dataset.bytes) / megabyte / seconds, nil
		}
	}
	return &harness.Contest{Ours: scan(made[0]), Peer: scan(made[1]), Close: func() {
		if err := done(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: end a reader:", err)
		}
	}}, nil
}

// local is a reader in this process.
type local func(ctx context.Context, raw []byte) (rows int64, err error)

func inProcess(f local) func(context.Context) (reader, error) {
	return func(context.Context) (reader, error) { return f, nil }
}

func (local) close() error { return nil }

func (f local) scan(ctx context.Context, o *outputs) (rows int64, seconds float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	before, err := cpuSeconds()
	if err != nil {
		return 0, 0, err
	}
	for _, raw := range o.raw {
		n, err := f(ctx, raw)
		if err != nil {
			return 0, 0, err
		}
		rows += n
	}
	after, err := cpuSeconds()
	return rows, after - before, err
}

// cpuSeconds is the processor time of this process so far.
func cpuSeconds() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime), nil
}

func arrowGoScan(ctx context.Context, raw []byte) (rows int64, err error) {
	r, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: 64 << 10}, memory.DefaultAllocator)
	if err != nil {
		return 0, err
	}
	rr, err := fr.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	defer rr.Release()
	for rr.Next() {
		rows += rr.RecordBatch().NumRows()
	}
	if err := rr.Err(); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return rows, nil
}

// parquetGoScan reads rows, as programs that use the library do.
func parquetGoScan(_ context.Context, raw []byte) (rows int64, err error) {
	f, err := pqgo.OpenFile(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return 0, err
	}
	buffer := make([]pqgo.Row, 1024)
	for _, g := range f.RowGroups() {
		n, err := rowsOf(g, buffer)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

func rowsOf(g pqgo.RowGroup, buffer []pqgo.Row) (rows int64, err error) {
	r := g.Rows()
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		n, err := r.ReadRows(buffer)
		rows += int64(n)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
	}
}
