package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/filer"
)

// shelf holds the files of a data set in memory. It is a filer to read from
// that costs nothing.
type shelf struct {
	*dataset
	at    []filer.Path
	bytes map[filer.Path][]byte
}

func newShelf(d *dataset) (*shelf, error) {
	s := &shelf{dataset: d, bytes: map[filer.Path][]byte{}}
	for _, f := range d.files {
		raw, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		p := filer.BucketPath(lakeBucket).Join(lakeNamespace, d.name, filepath.Base(f.path))
		s.at, s.bytes[p] = append(s.at, p), raw
	}
	return s, nil
}

var errNotOnShelf = errors.New("not on the shelf")

func (s *shelf) entry(p filer.Path) *filer.Entry {
	return &filer.Entry{Path: p, Size: int64(len(s.bytes[p]))}
}

// Stat implements filer.Reader.
func (s *shelf) Stat(_ context.Context, p filer.Path) (*filer.Entry, error) {
	if s.bytes[p] == nil {
		return nil, fmt.Errorf("%s: %w", p, errNotOnShelf)
	}
	return s.entry(p), nil
}

// Open implements filer.Reader.
func (s *shelf) Open(_ context.Context, p filer.Path) (filer.Object, error) {
	raw := s.bytes[p]
	if raw == nil {
		return nil, fmt.Errorf("%s: %w", p, errNotOnShelf)
	}
	return &volume{Reader: bytes.NewReader(raw), entry: s.entry(p), raw: raw}, nil
}

// List implements filer.Reader; nobody lists a shelf.
func (s *shelf) List(context.Context, filer.Path, filer.ListOptions) iter.Seq2[*filer.Entry, error] {
	return func(yield func(*filer.Entry, error) bool) { yield(nil, errNotOnShelf) }
}

// Clock implements filer.Reader.
func (s *shelf) Clock(context.Context) (time.Time, error) { return time.Now(), nil }

// Subscribe implements filer.Reader; nothing changes on a shelf.
func (s *shelf) Subscribe(context.Context, filer.SubscribeOptions) iter.Seq2[filer.Event, error] {
	return func(func(filer.Event, error) bool) {}
}

// volume is an open file of a shelf.
type volume struct {
	*bytes.Reader
	entry *filer.Entry
	raw   []byte
}

func (v *volume) Close() error        { return nil }
func (v *volume) Entry() *filer.Entry { return v.entry }
func (v *volume) Size() int64         { return int64(len(v.raw)) }
func (v *volume) Content() []byte     { return v.raw }

func (v *volume) Stream(offset, length int64) io.ReadCloser {
	if length < 0 {
		length = v.Size() - offset
	}
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(v.raw), offset, length))
}

// onOneCore returns the rate of work, in MB/s of the shelf's files, on one core. It is
// done so many times in a run.
func (s *shelf) onOneCore(times int, work func(ctx context.Context) error) harness.Side {
	rate := harness.Rate(float64(s.dataset.bytes)*float64(times)/megabyte, func(ctx context.Context) error {
		for range times {
			if err := work(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return func(ctx context.Context) (float64, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		return rate(ctx)
	}
}

// arrowGo reads and writes the same files with arrow-go, as engines do that
// decode, and forgets what it wrote.
func (s *shelf) arrowGo(ctx context.Context) error {
	return s.encode(ctx, func() io.Writer { return io.Discard })
}

// encode decodes the files with arrow-go and encodes their rows into others.
func (s *shelf) encode(ctx context.Context, create func() io.Writer) error {
	as, err := icetable.SchemaToArrowSchema(s.schema, nil, true, false)
	if err != nil {
		return err
	}
	var out *pqarrow.FileWriter
	var rows, size int64
	for i, p := range s.at {
		if size >= targetBytes || out == nil {
			if out != nil {
				if err := out.Close(); err != nil {
					return err
				}
			}
			if out, err = pqarrow.NewFileWriter(as, create(), layout(s.schema), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema())); err != nil {
				return err
			}
			size = 0
		}
		size += s.files[i].bytes
		n, err := pour(ctx, out, s.bytes[p])
		if err != nil {
			return err
		}
		rows += n
	}
	if rows != s.rows {
		return fmt.Errorf("arrow-go read %d of %d rows", rows, s.rows)
	}
	return out.Close()
}

func pour(ctx context.Context, out *pqarrow.FileWriter, raw []byte) (rows int64, err error) {
	r, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	defer r.Close()
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
		var rec arrow.RecordBatch = rr.RecordBatch()
		rows += rec.NumRows()
		if err := out.WriteBuffered(rec); err != nil {
			return 0, err
		}
	}
	if err := rr.Err(); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return rows, nil
}
