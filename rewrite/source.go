package rewrite

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// source is an open data file of the unit.
type source struct {
	Source
	// index is the number of the source.
	index   int
	object  filer.Object
	in      *counted
	file    *column.File
	mapping *resolve.Mapping
	// starts has the first row of every row group, and the number of rows.
	starts []int64
	// spare is, for every row group, the share of the length of a page of codes that
	// may be given up by not compressing it.
	spare []float64
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
	}
	if s.object != nil {
		_ = s.object.Close() // it was only read
	}
}

// opens is how many sources are opened at once.
const opens = 16

// chunkBytes is about what a column chunk takes in a footer in memory.
const chunkBytes = 700

// open reads the footers of all sources. Where all sources together are a part of
// the memory each is read once and kept whole.
func (e *engine) open(ctx context.Context) error {
	e.sources = make([]*source, len(e.q.Sources))
	e.keepWhole()
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(opens)
	for i := range e.q.Sources {
		work.Go(func() error {
			s := &source{Source: e.q.Sources[i]}
			e.sources[i] = s
			if inner.Err() != nil {
				return inner.Err()
			}
			return fault.In("merge "+s.Location, e.openOne(ctx, s))
		})
	}
	err := work.Wait()
	e.room = e.reading.Left()
	return err
}

// find opens the file of a source.
func (e *engine) find(ctx context.Context, s *source) (filer.Object, error) {
	if e.q.Open != nil {
		return e.q.Open(ctx, &s.Source)
	}
	return e.q.Reader.Open(ctx, s.At)
}

func (e *engine) openOne(ctx context.Context, s *source) error {
	var err error
	if s.object, err = e.find(ctx, s); err != nil {
		return err
	}
	if n := s.object.Size(); n != s.Bytes {
		return fault.New(fault.Corrupt, fmt.Sprintf("the file has %d bytes, its entry says %d", n, s.Bytes))
	}
	in := &counted{Object: s.object, read: &e.counts.read, progress: e.q.Progress, opening: true}
	s.in = in
	s.file, err = column.Open(ctx, in, s.Location, column.Options{
		Budget: e.reading, Whole: e.whole, Tail: e.tail.guess(), MaxPage: e.memory() / 4,
	})
	if err != nil {
		return err
	}
	f := s.file.Footer()
	footers := e.footers.Add(int64(len(f.RowGroups)) * int64(len(f.Schema.Leaves)) * chunkBytes)
	if footers > e.memory() {
		return fault.New(fault.TooLarge, fmt.Sprintf("the footers of the sources take %d bytes or more, of %d", footers, e.memory()))
	}
	if !s.file.Kept() {
		if err := e.keepTail(in, f); err != nil {
			return err
		}
	}
	in.opening, in.opened = false, nil
	s.starts = make([]int64, 1, len(f.RowGroups)+1)
	rows := int64(0)
	for i := range f.RowGroups {
		rows += f.RowGroups[i].Rows
		s.starts = append(s.starts, rows)
	}
	if rows != s.Records {
		return fault.New(fault.Corrupt, fmt.Sprintf("the file has %d rows, its entry says %d", rows, s.Records))
	}
	return nil
}

// resolve finds the leaves of the table's schema in every source.
func (e *engine) resolve() error {
	var err error
	options := resolve.Options{Lineage: e.q.Table.FormatVersion >= 3, Like: e.sources[0].file.Footer()}
	for _, s := range e.sources {
		options.Decimals = append(options.Decimals, s.file.Footer())
	}
	if e.target, err = resolve.NewTarget(e.q.Table.Schema, options); err != nil {
		return err
	}
	for _, s := range e.sources {
		s.mapping, err = resolve.File(e.target, s.file.Footer(), resolve.Context{
			FormatVersion: e.q.Table.FormatVersion, Names: e.q.Table.Names, HasNames: e.q.Table.HasNames,
			Type: s.Type, Partition: s.Partition,
		})
		if err != nil {
			return fault.In("merge "+s.Location, err)
		}
		for g := range s.file.Footer().RowGroups {
			if err := s.check(g); err != nil {
				return fault.In("merge "+s.Location, err)
			}
			s.spare = append(s.spare, s.spareOf(g))
		}
	}
	return nil
}

// check refuses a row group that cannot be read.
func (s *source) check(g int) error {
	columns := s.file.Footer().RowGroups[g].Columns
	for _, m := range s.mapping.Leaves {
		if m.Leaf < 0 {
			continue
		}
		switch c := &columns[m.Leaf]; {
		case c.Encrypted:
			return fault.New(fault.Unsupported, "a column is encrypted")
		case c.FilePath != "":
			return fault.New(fault.Unsupported, "a column lies in another file")
		case c.Codec == format.LZO:
			return fault.New(fault.Unsupported, "a column is compressed with lzo")
		}
	}
	return nil
}

// bytes is the stored size of the columns of row group g that move.
func (s *source) bytes(g int) int64 {
	n := int64(0)
	for i := range s.mapping.Leaves {
		m := &s.mapping.Leaves[i]
		if m.Leaf >= 0 && !m.Synthetic {
			n += s.file.Footer().RowGroups[g].Columns[m.Leaf].CompressedSize
		}
	}
	return n
}

const (
	// spareGroup is the share of a row group that may be given up by not compressing
	// pages of codes that compression hardly makes shorter, sparePage that of one.
	spareGroup = 0.03
	sparePage  = 0.125
)

// spareOf is the share of the pages of codes of row group g that may be given up.
func (s *source) spareOf(g int) float64 {
	coded := int64(0)
	for i := range s.mapping.Leaves {
		m := &s.mapping.Leaves[i]
		if m.Leaf < 0 || m.Synthetic {
			continue
		}
		if c := &s.file.Footer().RowGroups[g].Columns[m.Leaf]; slices.ContainsFunc(c.Encodings, column.Coded) {
			coded += max(c.CompressedSize, 0)
		}
	}
	if coded == 0 {
		return 0
	}
	return min(sparePage, spareGroup*float64(s.bytes(g))/float64(coded))
}
