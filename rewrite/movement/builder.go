package movement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
)

// Builder makes a Map from the runs in the order in which the outputs are
// written. It is for one goroutine.
type Builder struct {
	sources []Source
	outputs []Output
	err     error
}

// NewBuilder begins a map of the sources, whose runs must be empty.
func NewBuilder(sources []Source) *Builder {
	return &Builder{sources: slices.Clone(sources)}
}

// Append says that the next rows of an output are those of a source from a row
// on. Outputs are counted from 0, and may be appended to in turns. A run that
// goes on where the source's last one ended becomes part of it. Errors are kept
// until Build.
func (b *Builder) Append(source int, from, rows int64, output int) {
	if rows == 0 || b.err != nil {
		return
	}
	if source < 0 || source >= len(b.sources) || output < 0 || output > len(b.outputs) || rows < 0 || from < 0 || from > b.sources[source].Rows-rows {
		b.err = fault.New(fault.Halt, fmt.Sprintf("move %d rows from row %d of source %d of %d to output %d", rows, from, source, len(b.sources), output))
		return
	}
	if output == len(b.outputs) {
		b.outputs = append(b.outputs, Output{})
	}
	to := b.outputs[output].Rows
	b.outputs[output].Rows += rows
	runs := b.sources[source].Runs
	if n := len(runs); n > 0 && runs[n-1].joins(Run{From: from, Output: int32(output), To: to}) {
		runs[n-1].Rows += rows
		return
	}
	b.sources[source].Runs = append(runs, Run{From: from, Rows: rows, Output: int32(output), To: to})
}

// joins reports whether next begins where r ends, on both sides.
func (r Run) joins(next Run) bool {
	return next.From == r.From+r.Rows && next.Output == r.Output && next.To == r.To+r.Rows
}

// Rows is the number of rows appended to an output so far.
func (b *Builder) Rows(output int) int64 {
	if output < 0 || output >= len(b.outputs) {
		return 0
	}
	return b.outputs[output].Rows
}

// Build returns the checked map with the outputs at locations, of which there
// must be as many as outputs that got rows.
func (b *Builder) Build(locations []string) (*Map, error) {
	if b.err != nil {
		return nil, b.err
	}
	if len(locations) != len(b.outputs) {
		return nil, fault.New(fault.Halt, fmt.Sprintf("rows went to %d outputs, there are %d", len(b.outputs), len(locations)))
	}
	m := &Map{Sources: slices.Clone(b.sources), Outputs: slices.Clone(b.outputs)}
	for i := range m.Outputs {
		m.Outputs[i].Location = locations[i]
	}
	for i := range m.Sources {
		s := &m.Sources[i]
		if !slices.IsSortedFunc(s.Runs, byFrom) {
			s.Runs = slices.Clone(s.Runs)
			slices.SortFunc(s.Runs, byFrom)
		}
		s.Runs = merged(s.Runs)
	}
	return m, m.Check()
}

func byFrom(a, b Run) int { return cmp.Compare(a.From, b.From) }

// merged joins the runs that became neighbours by sorting.
func merged(runs []Run) []Run {
	out := make([]Run, 0, len(runs))
	for _, r := range runs {
		if n := len(out); n > 0 && out[n-1].joins(r) {
			out[n-1].Rows += r.Rows
			continue
		}
		out = append(out, r)
	}
	return out
}
