package config

import (
	"fmt"
	"strings"

	"github.com/seaice/seaice/fault"
)

// Source is the layer a value comes from, lowest precedence first. Which of
// maintenance configuration and table properties is the higher one depends on
// table_properties_override.
type Source uint8

// The layers.
const (
	FromDefault Source = iota
	FromForm
	FromRule
	FromMaintenance
	FromProperty
	FromFlag
)

var sourceNames = [...]string{"default", "form", "rule", "maintenance configuration", "table property", "flag"}

// String is the layer in words.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "invalid"
}

// MarshalText makes the layer readable in JSON.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Origin is where exactly a value was given.
type Origin struct {
	Source Source `json:"source"`
	// Name is the property, the maintenance field, or "line 3" of the rules.
	Name string `json:"name,omitempty"`
}

// String is "table property write.target-file-size-bytes".
func (o Origin) String() string {
	if o.Name == "" {
		return o.Source.String()
	}
	return o.Source.String() + " " + o.Name
}

// Problem is one value that cannot be used.
type Problem struct {
	Setting string `json:"setting"`
	Origin  Origin `json:"origin"`
	Value   string `json:"value"`
	// Reason says what is wrong and what is allowed.
	Reason string `json:"reason"`
	// Line and Column, from 1, place a problem in the rules; else 0.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// String is the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "rules line %d column %d: ", p.Line, p.Column)
	}
	if p.Setting != "" {
		b.WriteString(p.Setting)
		if p.Line == 0 && p.Origin != (Origin{}) {
			fmt.Fprintf(&b, " (%s)", p.Origin)
		}
		fmt.Fprintf(&b, " = %q ", clip(p.Value))
	}
	b.WriteString(p.Reason)
	return b.String()
}

// clip keeps a hostile value from filling a log.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// Error is everything wrong with the settings at hand, in one error.
type Error struct {
	// Table is "bucket/namespace/table"; empty if no table is concerned.
	Table    string    `json:"table,omitempty"`
	Problems []Problem `json:"problems"`
}

// Error names every problem.
func (e *Error) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	what := "settings"
	if e.Table != "" {
		what += " of " + e.Table
	}
	return what + ": " + strings.Join(parts, "; ")
}

// TableOnly reports whether all problems lie in the table's own properties or
// maintenance configuration, so that other tables are not concerned.
func (e *Error) TableOnly() bool {
	for _, p := range e.Problems {
		if p.Origin.Source != FromProperty && p.Origin.Source != FromMaintenance {
			return false
		}
	}
	return true
}

// refuse makes the error of kind Unsupported that carries problems.
func refuse(table string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := &Error{Table: table, Problems: problems}
	hint := "correct the settings named; docs/settings.md has every range"
	if e.TableOnly() && table != "" {
		hint = "correct the properties or the maintenance configuration of " + table + "; until then it is left alone"
	}
	return fault.WithHint(hint, fault.Wrap(fault.Unsupported, "", e))
}
