package deletes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
)

// The columns of a position delete file (Iceberg specification, reserved field
// ids). A third one, row with id 2147483544, is not read.
const (
	PathField iceberg.FieldID = 2147483546
	PosField  iceberg.FieldID = 2147483545
)

const (
	pathName = "file_path"
	posName  = "pos"
)

// Sink takes the positions of one data file. A nil Sink takes none.
type Sink struct {
	// Name is what errors call the data file.
	Name      string
	Positions *Positions
	// Rows is the number of rows of the data file, which positions must be below.
	Rows int64
}

// ReadPositions reads a position delete file. For every run of rows with one path
// choose is asked once which sink takes them; the path is valid during the call.
// Rows may be in any order and may repeat. A null in either column, a negative
// position, and one that the data file does not have, are fault.Corrupt (F021).
// Columns are those with the reserved ids, and only in a file without any ids
// those with their names (F026).
func ReadPositions(f *column.File, choose func(path []byte) (*Sink, error)) (Counts, error) {
	counts, err := readPositions(f, choose)
	return counts, fault.In("read the position deletes of "+f.Name(), err)
}

func readPositions(f *column.File, choose func(path []byte) (*Sink, error)) (counts Counts, err error) {
	defer guard(&err)
	path, pos, err := PositionColumns(f.Footer().Schema)
	if err != nil {
		return counts, err
	}
	paths := pathReader{f: f, leaf: path.Leaf, choose: choose}
	defer paths.close()
	places := placeReader{r: f.Reader(pos.Leaf)}
	defer places.r.Close()
	for {
		runs, err := paths.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return counts, err
		}
		for _, r := range runs {
			counts.Rows += r.rows
			if r.sink == nil {
				places.skip += r.rows
				continue
			}
			counts.Taken += r.rows
			if err := places.take(r.rows, r.sink); err != nil {
				return counts, err
			}
		}
	}
	if rows := f.Footer().Rows; counts.Rows != rows {
		return counts, fault.New(fault.Corrupt, fmt.Sprintf("its column %s has %d rows of %d", pathName, counts.Rows, rows))
	}
	return counts, nil
}

// PositionColumns finds the columns file_path and pos of a position delete file as
// ReadPositions does. A file that lacks one, has two, or has one of another type
// is fault.Corrupt.
func PositionColumns(s *format.Schema) (path, pos *format.Node, err error) {
	if path, err = reserved(s, PathField, pathName, format.ByteArray); err != nil {
		return nil, nil, err
	}
	pos, err = reserved(s, PosField, posName, format.Int64)
	return path, pos, err
}

// reserved finds a column of the top level.
func reserved(s *format.Schema, id iceberg.FieldID, name string, physical format.Type) (*format.Node, error) {
	var found *format.Node
	ids := false
	for _, n := range s.Leaves {
		for x := n; x != nil; x = x.Parent {
			ids = ids || x.FieldID != nil
		}
	}
	for _, n := range s.Root.Children {
		if ids && n.FieldID != nil && iceberg.FieldID(*n.FieldID) == id || !ids && n.Name == name {
			if found != nil {
				return nil, fault.New(fault.Corrupt, fmt.Sprintf("it has two columns %s (id %d)", name, id))
			}
			found = n
		}
	}
	if found == nil {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("it has no column %s (id %d)", name, id))
	}
	if found.Group || found.Type != physical || found.MaxRep > 0 {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("its column %s (id %d) has the wrong type", name, id))
	}
	return found, nil
}

// pathRun are consecutive rows with one path.
type pathRun struct {
	sink *Sink
	rows int64
}

// pathReader reads the paths of a file page by page, and where they are codes of a
// dictionary, without making them: one path stands in millions of rows.
type pathReader struct {
	f      *column.File
	leaf   int
	choose func([]byte) (*Sink, error)

	group   int
	pages   *column.Pages
	decoder *column.Decoder
	known   map[uint32]*Sink // by code
	batch   column.Batch
	codes   []uint32
	runs    []pathRun

	path  []byte // the last one asked for
	sink  *Sink
	asked bool
}

// maxKnown bounds the codes whose sinks are kept.
const maxKnown = 1 << 16

// next are the runs of the next page, valid until the next call; io.EOF.
func (p *pathReader) next() ([]pathRun, error) {
	for {
		if p.pages == nil {
			if p.group >= len(p.f.Footer().RowGroups) {
				return nil, io.EOF
			}
			pages, err := p.f.Pages(p.group, p.leaf)
			if err != nil {
				return nil, err
			}
			p.pages, p.decoder, p.known = pages, p.f.Decoder(p.group, p.leaf), map[uint32]*Sink{}
			p.group++
		}
		page, err := p.pages.Next()
		if errors.Is(err, io.EOF) {
			p.close()
			continue
		}
		if err != nil {
			return nil, err
		}
		if page.Dictionary() {
			if err := p.decoder.Dictionary(page); err != nil {
				return nil, err
			}
			continue
		}
		p.runs = p.runs[:0]
		if column.Coded(page.Header.Encoding) {
			err = p.coded(page)
		} else {
			err = p.plain(page)
		}
		return p.runs, err
	}
}

func (p *pathReader) close() {
	if p.pages != nil {
		p.pages.Close()
		p.decoder.Close()
		p.pages, p.decoder = nil, nil
	}
}

func (p *pathReader) coded(page column.Page) (err error) {
	if p.codes, err = p.decoder.Indices(page, &p.batch, p.codes[:0]); err != nil {
		return err
	}
	if err := full(&p.batch, len(p.codes), pathName); err != nil {
		return err
	}
	for i := 0; i < len(p.codes); {
		code, begin := p.codes[i], i
		for i++; i < len(p.codes) && p.codes[i] == code; {
			i++
		}
		sink, ok := p.known[code]
		if !ok {
			if sink, err = p.sinkOf(p.decoder.Entries().At(int(code))); err != nil {
				return err
			}
			if len(p.known) >= maxKnown {
				clear(p.known)
			}
			p.known[code] = sink
		}
		p.runs = append(p.runs, pathRun{sink: sink, rows: int64(i - begin)})
	}
	return nil
}

func (p *pathReader) plain(page column.Page) error {
	if err := p.decoder.Decode(page, &p.batch); err != nil {
		return err
	}
	v := &p.batch.Values
	n := v.Len()
	if err := full(&p.batch, n, pathName); err != nil {
		return err
	}
	for i := 0; i < n; {
		path, begin := v.At(i), i
		for i++; i < n && bytes.Equal(v.At(i), path); {
			i++
		}
		sink, err := p.sinkOf(path)
		if err != nil {
			return err
		}
		p.runs = append(p.runs, pathRun{sink: sink, rows: int64(i - begin)})
	}
	return nil
}

func (p *pathReader) sinkOf(path []byte) (*Sink, error) {
	if p.asked && bytes.Equal(path, p.path) {
		return p.sink, nil
	}
	p.path, p.asked = append(p.path[:0], path...), false
	sink, err := p.choose(p.path)
	p.sink, p.asked = sink, err == nil
	return sink, err
}

// full refuses rows without a value.
func full(b *column.Batch, values int, name string) error {
	if values != b.Levels || b.Rows != b.Levels {
		return fault.New(fault.Corrupt, fmt.Sprintf("%d of %d rows have a null %s", b.Levels-values, b.Levels, name))
	}
	return nil
}

// placeReader reads the column pos.
type placeReader struct {
	r     *column.Reader
	batch column.Batch
	raw   []byte // values of batch not read yet
	row   int64  // of the file, where raw begins
	skip  int64  // rows to be left out first
}

// jumpRows are worth looking for their end instead of reading them.
const jumpRows = 1 << 16

// fill makes sure that there is a value.
func (p *placeReader) fill() error {
	for {
		n := min(p.skip, int64(len(p.raw)/8))
		p.raw, p.row, p.skip = p.raw[8*n:], p.row+n, p.skip-n
		if len(p.raw) > 0 {
			return nil
		}
		if p.skip >= jumpRows {
			if err := p.r.SeekRow(p.row + p.skip); err != nil {
				return err
			}
			p.row, p.skip = p.row+p.skip, 0
		}
		if err := p.r.Next(&p.batch, keyBatch); err != nil {
			if errors.Is(err, io.EOF) {
				err = fault.New(fault.Corrupt, "its columns do not have the same number of rows")
			}
			return err
		}
		if err := full(&p.batch, p.batch.Values.Len(), posName); err != nil {
			return err
		}
		p.raw = p.batch.Values.Data
	}
}

// take gives the next n positions to the sink.
func (p *placeReader) take(n int64, to *Sink) error {
	for n > 0 {
		if err := p.fill(); err != nil {
			return err
		}
		m := min(n, int64(len(p.raw)/8))
		if err := to.add(p.raw[:8*m]); err != nil {
			return err
		}
		p.raw, p.row, n = p.raw[8*m:], p.row+m, n-m
	}
	return nil
}

// add adds positions as PLAIN has them, those that follow each other at once.
func (s *Sink) add(raw []byte) error {
	begin, end := int64(0), int64(0) // a range not added yet
	for ; len(raw) > 0; raw = raw[8:] {
		pos := int64(binary.LittleEndian.Uint64(raw))
		if pos < 0 || pos >= s.Rows {
			return fault.New(fault.Corrupt, fmt.Sprintf("position %d of %s is deleted, which has %d rows", pos, s.Name, s.Rows))
		}
		if pos == end && end > begin {
			end++
			continue
		}
		s.Positions.addRun(begin, end)
		begin, end = pos, pos+1
	}
	s.Positions.addRun(begin, end)
	return nil
}
