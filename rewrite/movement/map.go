// Package movement says where each row of a unit's sources went. It is what
// lets deletes that others commit against a source follow its rows into the
// outputs, long after the rows were moved.
package movement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/deletes"
)

// Run is a range of consecutive rows of a source that went to consecutive rows
// of an output. Rows of a source that are in no run were dropped.
type Run struct {
	// From is the first row in the source, Rows how many.
	From, Rows int64
	// Output is the index of the output, To the first row in it.
	Output int32
	To     int64
}

// Source is where the rows of one source went.
type Source struct {
	Location string
	// Rows is the number of rows of the source, dropped ones included.
	Rows int64
	// Runs are in order of From and do not overlap.
	Runs []Run
}

// Output is an output of the unit.
type Output struct {
	Location string
	Rows     int64
}

// Map is the movement map of one unit.
type Map struct {
	Sources []Source
	Outputs []Output
}

// Check returns fault.Halt unless the runs of every source are in order, do not
// overlap and lie inside it, and every row of every output comes from exactly
// one row of a source.
func (m *Map) Check() error { return fault.Wrap(fault.Halt, "check the movement map", m.check()) }

func (m *Map) check() error {
	byOutput := make([][]Run, len(m.Outputs))
	for n, s := range m.Sources {
		if s.Rows < 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("source %d (%s) has %d rows", n, s.Location, s.Rows))
		}
		end := int64(0)
		for _, r := range s.Runs {
			if r.Rows <= 0 || r.From < end || r.From > s.Rows-r.Rows {
				return fault.New(fault.Corrupt, fmt.Sprintf("source %d (%s) of %d rows: %d rows from %d on follow row %d", n, s.Location, s.Rows, r.Rows, r.From, end))
			}
			if r.Output < 0 || int(r.Output) >= len(m.Outputs) {
				return fault.New(fault.Corrupt, fmt.Sprintf("source %d (%s): output %d of %d", n, s.Location, r.Output, len(m.Outputs)))
			}
			end = r.From + r.Rows
			byOutput[r.Output] = append(byOutput[r.Output], r)
		}
	}
	for n, o := range m.Outputs {
		runs := byOutput[n]
		slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.To, b.To) })
		end := int64(0)
		for _, r := range runs {
			if r.To != end {
				return fault.New(fault.Corrupt, fmt.Sprintf("output %d (%s): the rows behind row %d are followed by row %d", n, o.Location, end, r.To))
			}
			if r.Rows > o.Rows-end {
				return fault.New(fault.Corrupt, fmt.Sprintf("output %d (%s) of %d rows: %d rows come behind row %d", n, o.Location, o.Rows, r.Rows, end))
			}
			end += r.Rows
		}
		if end != o.Rows {
			return fault.New(fault.Corrupt, fmt.Sprintf("output %d (%s) of %d rows: %d come from a source", n, o.Location, o.Rows, end))
		}
	}
	return nil
}

// Moved is the number of rows of a source that are in an output.
func (m *Map) Moved(source int) int64 {
	n := int64(0)
	for _, r := range m.Sources[source].Runs {
		n += r.Rows
	}
	return n
}

// Dropped is the number of rows of a source that are in no output.
func (m *Map) Dropped(source int) int64 { return m.Sources[source].Rows - m.Moved(source) }

// DroppedRows are the rows of a source that are in no output: those a commit has
// to find deleted on every head it builds on.
func (m *Map) DroppedRows(source int) *deletes.Positions {
	out, end := &deletes.Positions{}, int64(0)
	for _, r := range m.Sources[source].Runs {
		out.AddRange(end, r.From)
		end = r.From + r.Rows
	}
	out.AddRange(end, m.Sources[source].Rows)
	return out
}

// Find is where the row at pos of a source went; false if it was dropped or is
// none of the source's.
func (m *Map) Find(source int, pos int64) (output int, to int64, moved bool) {
	runs := m.Sources[source].Runs
	i, _ := slices.BinarySearchFunc(runs, pos, func(r Run, pos int64) int {
		switch {
		case r.From+r.Rows <= pos:
			return -1
		case r.From > pos:
			return 1
		}
		return 0
	})
	if i == len(runs) || pos < runs[i].From {
		return 0, 0, false
	}
	return int(runs[i].Output), runs[i].To + pos - runs[i].From, true
}

// Index is the number of the source at a location as spelled, or -1.
func (m *Map) Index(location string) int {
	return slices.IndexFunc(m.Sources, func(s Source) bool { return s.Location == location })
}

// Translate says where the rows at positions of a source went: positions by the
// index of the output, and those rows that were dropped before. A position
// outside of the source is fault.Corrupt.
func (m *Map) Translate(source int, positions *deletes.Positions) (moved map[int]*deletes.Positions, gone *deletes.Positions, err error) {
	s := &m.Sources[source]
	if last := positions.Max(); last >= s.Rows {
		return nil, nil, fault.New(fault.Corrupt, fmt.Sprintf("position %d of %s, which has %d rows", last, s.Location, s.Rows))
	}
	moved, gone = map[int]*deletes.Positions{}, &deletes.Positions{}
	runs := s.Runs
	for from, to := range positions.Ranges() {
		for from < to {
			for len(runs) > 0 && runs[0].From+runs[0].Rows <= from {
				runs = runs[1:]
			}
			if len(runs) == 0 || to <= runs[0].From {
				gone.AddRange(from, to)
				break
			}
			r := runs[0]
			if from < r.From {
				gone.AddRange(from, r.From)
				from = r.From
			}
			end := min(to, r.From+r.Rows)
			p := moved[int(r.Output)]
			if p == nil {
				p = &deletes.Positions{}
				moved[int(r.Output)] = p
			}
			p.AddRange(r.To+from-r.From, r.To+end-r.From)
			from = end
		}
	}
	return moved, gone, nil
}
