// Package metrics makes the statistics that the manifest entry of a data file
// carries: value, null and NaN counts and bounds, per column, under the table's
// metrics modes.
//
// They come from three places, and a file may need all of them: values that
// were decoded (Collector), entries of files whose rows were moved whole
// (Column.Entry, Column.Some), and statistics of Parquet pages and chunks
// (Column.Parquet). Column.Merge joins them. What one of them does not state is
// not stated of the whole: a wrong bound or a count of 0 that is not known makes
// readers skip rows that match.
package metrics

import (
	"math"
	"strconv"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
)

// Mode says which statistics of a column are kept.
type Mode struct {
	kind   modeKind
	length int
}

type modeKind uint8

const (
	none modeKind = iota
	counts
	truncate
	full
)

// None keeps nothing.
func None() Mode { return Mode{kind: none} }

// Counts keeps no bounds.
func Counts() Mode { return Mode{kind: counts} }

// Full keeps bounds as they are.
func Full() Mode { return Mode{kind: full} }

// Truncate keeps bounds of text cut to a number of code points, and those of
// binary cut to a number of bytes.
func Truncate(length int) Mode { return Mode{kind: truncate, length: length} }

// None reports whether nothing is kept, the column's size neither.
func (m Mode) None() bool { return m.kind == none }

// Bounds reports whether bounds are kept.
func (m Mode) Bounds() bool { return m.kind >= truncate }

// Exact reports whether readers may take bounds of text for values.
func (m Mode) Exact() bool { return m.kind == full }

// String is the mode as properties spell it.
func (m Mode) String() string {
	switch m.kind {
	case none:
		return "none"
	case counts:
		return "counts"
	case full:
		return "full"
	}
	return "truncate(" + strconv.Itoa(m.length) + ")"
}

// ParseMode reads a mode as properties spell it, and false if it is none.
func ParseMode(text string) (Mode, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	switch text {
	case "none":
		return None(), true
	case "counts":
		return Counts(), true
	case "full":
		return Full(), true
	}
	inner, open := strings.CutPrefix(text, "truncate(")
	inner, closed := strings.CutSuffix(inner, ")")
	n, err := strconv.Atoi(strings.TrimSpace(inner))
	if !open || !closed || err != nil || n <= 0 || n > math.MaxInt32 {
		return Mode{}, false
	}
	return Truncate(n), true
}

// The properties that set modes (Iceberg configuration, write properties).
const (
	DefaultProperty = "write.metadata.metrics.default"
	ColumnPrefix    = "write.metadata.metrics.column."
	LimitProperty   = "write.metadata.metrics.max-inferred-column-defaults"
)

const defaultLimit = 100

var usual = Truncate(16)

// Config has the modes of a table's columns. It is immutable.
type Config struct {
	other Mode
	modes map[iceberg.FieldID]Mode
}

// NewConfig reads the modes of a table as Iceberg's Java writers do. A column of
// its own property has that mode. Else one that the table is sorted by, through
// a transform that keeps the order, has bounds. Else the table's default counts,
// and where there is none the first 100 columns, or as many as LimitProperty
// says, have truncate(16) and the others none: the columns of a struct before
// those nested in it. Values that cannot be read are ignored, as the writers do.
// A nil order is unsorted.
func NewConfig(properties map[string]string, s *icego.Schema, order *iceberg.SortOrder) *Config {
	c := &Config{modes: map[iceberg.FieldID]Mode{}}
	configured, has := ParseMode(properties[DefaultProperty])
	if has {
		c.other = configured
	} else {
		limit, err := strconv.Atoi(strings.TrimSpace(properties[LimitProperty]))
		if err != nil || limit < 0 {
			limit = defaultLimit
		}
		first := &limited{limit: limit, modes: c.modes}
		first.fields(s.Fields())
		if len(c.modes) < limit {
			c.other = usual
		}
	}
	sorted := configured
	if !sorted.Bounds() {
		sorted = usual
	}
	if order != nil {
		for _, f := range order.Fields {
			if f.Transform != nil && f.Transform.PreservesOrder() && len(f.SourceIDs) == 1 {
				c.modes[f.SourceIDs[0]] = sorted
			}
		}
	}
	eachColumn(s.Fields(), "", func(name string, id iceberg.FieldID) {
		if m, ok := ParseMode(properties[ColumnPrefix+name]); ok {
			c.modes[id] = m
		}
	})
	return c
}

// Mode is that of a column, also of one the schema lacks.
func (c *Config) Mode(id iceberg.FieldID) Mode {
	if m, ok := c.modes[id]; ok {
		return m
	}
	return c.other
}

// limited gives the usual mode to the first columns.
type limited struct {
	limit int
	modes map[iceberg.FieldID]Mode
}

func (l *limited) add(f icego.NestedField) {
	if _, nested := f.Type.(icego.NestedType); !nested && len(l.modes) < l.limit {
		l.modes[iceberg.FieldID(f.ID)] = usual
	}
}

func (l *limited) fields(fields []icego.NestedField) {
	for _, f := range fields {
		l.add(f)
	}
	for _, f := range fields {
		if nested, ok := f.Type.(icego.NestedType); ok && len(l.modes) < l.limit {
			l.fields(nested.Fields())
		}
	}
}

// eachColumn names columns as Iceberg does, at every depth.
func eachColumn(fields []icego.NestedField, parent string, do func(string, iceberg.FieldID)) {
	for _, f := range fields {
		name := parent + f.Name
		do(name, iceberg.FieldID(f.ID))
		if nested, ok := f.Type.(icego.NestedType); ok {
			eachColumn(nested.Fields(), name+".", do)
		}
	}
}
