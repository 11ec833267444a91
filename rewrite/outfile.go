package rewrite

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
	"github.com/seaice/seaice/rewrite/resolve"
)

// outFile is an output being written.
type outFile struct {
	e    *engine
	n    int
	sink Sink
	w    *checkedWriter
	file *output.File
	rows int64
	// spans are the rows in it.
	spans []span
	// stated is what is known of every leaf.
	stated [][]statement
	result Output
}

// createdBy is what the footer says of who wrote the file.
var createdBy = sync.OnceValue(func() string {
	version, build := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				build = s.Value
			}
		}
	}
	return output.CreatedBy(version, build)
})

// create begins output n.
func (e *engine) create(ctx context.Context, n int) (*outFile, error) {
	schema, err := resolve.SchemaJSON(e.q.Table.Schema)
	if err != nil {
		return nil, err
	}
	s, err := e.q.Create(ctx, n)
	if err != nil {
		return nil, err
	}
	o := &outFile{e: e, n: n, sink: s, w: &checkedWriter{to: s}, stated: make([][]statement, len(e.target.Leaves))}
	o.file, err = output.NewFile(o.w, e.target.Schema, output.Options{
		KeyValues: []format.KeyValue{{Key: "iceberg.schema", Value: &schema}}, CreatedBy: createdBy(),
	})
	if err != nil {
		s.Abort()
		return nil, err
	}
	return o, nil
}

// write fills an output with row groups and makes it durable.
func (e *engine) write(ctx context.Context, o *outFile) error {
	for groups := 1; ; groups++ {
		spans, estimated := e.layout.next(o.file.Size(), o.rows)
		before := o.file.Size()
		if err := e.group(ctx, o, spans); err != nil {
			return err
		}
		e.layout.wrote(estimated, o.file.Size()-before)
		if e.layout.full(o.file.Size(), o.rows) || groups == output.MaxGroups {
			break
		}
	}
	res, err := o.file.Close()
	if err != nil {
		return err
	}
	if err := o.w.finish(); err != nil {
		return err
	}
	if res.Rows != o.rows {
		return fault.New(fault.Halt, fmt.Sprintf("output %d has %d rows, %d were moved", o.n, res.Rows, o.rows))
	}
	stored, err := o.sink.Done(ctx)
	if err != nil {
		return err
	}
	if stored.Bytes != res.Bytes {
		return fault.New(fault.Halt, fmt.Sprintf("%s has %d bytes stored, %d were written", stored.Location, stored.Bytes, res.Bytes))
	}
	o.result = Output{Stored: stored, Records: res.Rows, SplitOffsets: res.SplitOffsets}
	o.describe(res)
	if e.q.Verify == VerifyRows {
		return e.verifyRows(ctx, o)
	}
	return nil
}

// group writes the lanes as the columns of a row group of the spans' rows.
func (o *outFile) group(ctx context.Context, spans []span, lanes []*lane) error {
	g, err := o.file.BeginGroup()
	if err != nil {
		return err
	}
	var want trail
	for _, s := range spans {
		src := o.e.sources[s.source]
		for from, to := range src.Deleted.Kept(s.first, s.first+s.rows) {
			want.add(s.source, from, to-from)
			o.e.moves.Append(s.source, from, to-from, o.n)
		}
	}
	o.spans = append(o.spans, spans...)
	sum, rows := want.end()
	for i, l := range lanes {
		if err := o.column(ctx, g, i, l); err != nil {
			return err
		}
		o.stated[i] = append(o.stated[i], l.chunk.stated...)
		name := o.e.target.Leaves[i].Name
		if l.chunk.trail != sum || l.chunk.rows != rows {
			return fault.New(fault.Halt, fmt.Sprintf("column %s moved other rows than the unit: %d of %d", name, l.chunk.rows, rows))
		}
	}
	o.rows += int64(rows)
	return g.Close(int64(rows))
}

// column writes the pages of a lane as the next column.
func (o *outFile) column(ctx context.Context, g *output.Group, i int, l *lane) error {
	begin := o.file.Size()
	c, err := g.Column(i, o.e.codec)
	if err != nil {
		return err
	}
	o.w.begin(begin)
	end := begin
	err = l.drain(ctx, func(it item) error {
		var err error
		switch it.kind {
		case itemDictionary:
			err = c.Dictionary(it.page)
		case itemPage:
			err = c.Page(it.page)
		case itemBeginPart:
			err = c.BeginPart(it.statistics, it.sizes)
		case itemEndPart:
			err = c.EndPart()
		}
		end = o.file.Size()
		return err
	})
	if err != nil {
		return err
	}
	o.w.end(end, l.chunk.bytes, o.e.target.Leaves[i].Name)
	if c.Values() != l.chunk.levels {
		return fault.New(fault.Halt, fmt.Sprintf("column %s has %d values where %d were read", o.e.target.Leaves[i].Name, c.Values(), l.chunk.levels))
	}
	if l.chunk.bloom != nil {
		c.Bloom(l.chunk.bloom, output.CoversValues)
	}
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], l.chunk.bytes)
	binary.LittleEndian.PutUint64(b[8:], l.chunk.content)
	binary.LittleEndian.PutUint64(b[16:], l.chunk.trail)
	_, _ = o.e.proof.Write(b[:])
	return c.Close()
}

// checkedWriter passes bytes on and checks that those of every chunk are the
// bytes its pages had when they were read or encoded.
type checkedWriter struct {
	to   io.Writer
	at   int64
	hash *streamHash
	// marks are the places ahead where a chunk begins or ends.
	marks []mark
	err   error
}

type mark struct {
	at     int64
	end    bool
	sum    uint64
	column string
}

func (w *checkedWriter) begin(at int64) { w.marks = append(w.marks, mark{at: at}) }

func (w *checkedWriter) end(at int64, sum uint64, column string) {
	w.marks = append(w.marks, mark{at: at, end: true, sum: sum, column: column})
	w.pass()
}

// pass handles the marks that are reached.
func (w *checkedWriter) pass() {
	for len(w.marks) > 0 && w.marks[0].at <= w.at {
		m := w.marks[0]
		w.marks = w.marks[1:]
		if !m.end {
			w.hash = new(streamHash)
			continue
		}
		if got := w.hash.sum(); got != m.sum && w.err == nil {
			w.err = fault.New(fault.Halt, fmt.Sprintf("column %s: the bytes written have hash %016x, those of its pages %016x", m.column, got, m.sum))
		}
		w.hash = nil
	}
}

// Write passes b on.
func (w *checkedWriter) Write(b []byte) (int, error) {
	total := 0
	for len(b) > 0 {
		w.pass()
		if w.err != nil {
			return total, w.err
		}
		n := int64(len(b))
		if len(w.marks) > 0 {
			n = min(n, w.marks[0].at-w.at)
		}
		if w.hash != nil {
			w.hash.write(b[:n])
		}
		k, err := w.to.Write(b[:n])
		total += k
		w.at += int64(k)
		if err != nil {
			return total, err
		}
		b = b[n:]
	}
	w.pass()
	return total, w.err
}

// finish returns what was found, once everything has been written.
func (w *checkedWriter) finish() error {
	w.pass()
	if w.err == nil && len(w.marks) > 0 {
		return fault.New(fault.Halt, "bytes of a column were not written")
	}
	return w.err
}
