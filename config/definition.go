// Package config knows every setting: its name, unit, default and bounds,
// where it may be set, and, for one table, which value holds and why.
//
// One table of Definitions is the only source. The admin's forms, the command
// line's flags, docs/settings.md, explain and the typed Settings are made from
// it. Nothing is ever clamped: a value out of range is refused with the field,
// the value and the range named, and all problems are reported together.
//
// The package does no I/O and imports nothing but fault.
package config

import (
	"math"
	"slices"
)

// Kind says how the text of a setting is read.
type Kind uint8

const (
	// KindInt is a whole number.
	KindInt Kind = iota
	// KindRatio is a number between two bounds, 0.3.
	KindRatio
	// KindBool is true or false; 1, 0, yes and no are read too.
	KindBool
	// KindEnum is one of Options.
	KindEnum
	// KindText is any text within MaxText bytes.
	KindText
	// KindList is names separated by commas.
	KindList
	// KindSize is a number in a unit of size; Settings hold bytes.
	KindSize
	// KindSpan is a number in a unit of time; Settings hold a time.Duration.
	KindSpan
	// KindOperations is a list of operations, or all.
	KindOperations
	// KindRules is the text of the per-table rules; see ParseRules.
	KindRules
	// KindPools is a list pool=number over PoolNames.
	KindPools
	// KindName is a name without white space or control characters.
	KindName
)

var kindNames = [...]string{"number", "ratio", "bool", "choice", "text", "list", "size", "time", "operations", "rules", "pools", "name"}

// String is the kind in one word, as docs/settings.md shows it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// MarshalText makes the kind readable in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Unit is the unit a value is written in at one place. Sizes in MB are MiB, as
// the built-in worker reads them.
type Unit string

// The units. UnitNone is for counts and everything that has no unit.
const (
	UnitNone        Unit = ""
	UnitBytes       Unit = "bytes"
	UnitMB          Unit = "MB"
	UnitMBPerSecond Unit = "MB/s"
	UnitMBPerHour   Unit = "MB/h"
	UnitPercent     Unit = "%"
	UnitRows        Unit = "rows"
	UnitFiles       Unit = "files"
	UnitMillis      Unit = "ms"
	UnitMinutes     Unit = "minutes"
	UnitHours       Unit = "hours"
	UnitDays        Unit = "days"
)

// factor is how many bytes or nanoseconds one of the unit is; 1 for counts.
func (u Unit) factor() int64 {
	switch u {
	case UnitMB, UnitMBPerSecond, UnitMBPerHour:
		return 1 << 20
	case UnitMillis:
		return 1e6
	case UnitMinutes:
		return 60e9
	case UnitHours:
		return 3600e9
	case UnitDays:
		return 24 * 3600e9
	default:
		return 1
	}
}

// Section groups settings on the forms and in the documents, in the order in
// which a person needs them.
type Section uint8

// The sections. Those from SectionScope on are on the admin's own form;
// SectionDeduplicate is on no form.
const (
	SectionRuns Section = iota
	SectionExpiry
	SectionSizes
	SectionDeletes
	SectionLayout
	SectionSafety
	SectionResources
	SectionScope
	SectionGroups
	SectionDeduplicate
	sectionCount
)

type sectionText struct{ id, title, about string }

var sections = [sectionCount]sectionText{
	SectionRuns:        {"runs", "What runs", "Which operations run, on which part of a table, and which tables differ."},
	SectionExpiry:      {"expiry", "When things expire", "How long snapshots, unreferenced files and the trash are kept."},
	SectionSizes:       {"sizes", "File sizes", "Which data files and manifests are rewritten, and how large the new ones are."},
	SectionDeletes:     {"deletes", "Deletes", "Position deletes, equality deletes and deletion vectors."},
	SectionLayout:      {"layout", "Layout", "The order of rows in rewritten files."},
	SectionSafety:      {"safety", "Safety", "How results are proved, and how much may be removed in one run."},
	SectionResources:   {"resources", "Resources", "Memory, throughput and the amount of work of one run."},
	SectionScope:       {"scope", "Scope", "Which tables are looked at."},
	SectionGroups:      {"groups", "Resource groups", "How work is shared between buckets or namespaces."},
	SectionDeduplicate: {"deduplicate", "Deduplicate", "Only for the operation deduplicate, on the command line."},
}

// Title is the heading of the section.
func (s Section) Title() string { return sections[s].title }

// Where is a set of places at which a setting may be given.
type Where uint8

const (
	// InForm: a field of the worker form, a key of a rule, and --set.
	InForm Where = 1 << iota
	// InAdminForm: a field of the admin's own form.
	InAdminForm
	// OwnFlag: the command line has a flag of this name.
	OwnFlag
	// WorkerWide: holds for the whole process, so a rule may not set it.
	WorkerWide
	// FormOnly: only changes the form; no code reads it.
	FormOnly
)

// Place is a second name of a setting: a table property or a field of the S3
// Tables maintenance configuration, with its own unit and bounds.
type Place struct {
	Name string
	Unit Unit
	Min  int64
	Max  int64
	// Type is the maintenance type the field belongs to; empty for properties.
	Type string
}

// Definition is everything known about one setting.
type Definition struct {
	Name string
	Kind Kind
	Unit Unit
	// Default is text in Unit.
	Default string
	// Min and Max bound numbers, in Unit; a ratio is bounded in thousandths.
	Min, Max int64
	// ZeroIsDefault: an explicit 0 says nothing, as the built-in worker reads it.
	ZeroIsDefault bool
	// Options are the choices of a KindEnum.
	Options []Option
	Where   Where
	Section Section
	// Advanced fields show only when the form's advanced box is ticked.
	Advanced bool
	// New marks names the built-in worker does not have.
	New bool
	// Properties are the table properties that set it, first one wins.
	Properties []Place
	// Maintenance is the field of the maintenance configuration, if any.
	Maintenance *Place
	Label       string
	Help        string
	// Placeholder is an example for an empty field.
	Placeholder string

	bind func(*Settings, value)
	tie  func(*Scope, value)
}

// Option is one choice of an enumeration.
type Option struct {
	Value string
	Label string
	// CommandLineOnly choices are not offered on forms.
	CommandLineOnly bool
}

// Has reports whether the setting may be given at all places of w.
func (d *Definition) Has(w Where) bool { return d.Where&w == w }

// Definitions returns all settings in the order of their sections.
func Definitions() []Definition { return slices.Clone(table) }

// Lookup returns the definition of the named setting.
func Lookup(name string) (Definition, bool) {
	if d := find(name); d != nil {
		return *d, true
	}
	return Definition{}, false
}

func find(name string) *Definition {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Bounds that several settings share.
const (
	maxCount = math.MaxInt32
	maxInt64 = math.MaxInt64
	// maxMB keeps a size far from overflow: 2 PiB.
	maxMB    = math.MaxInt32
	maxHours = 100 * 366 * 24
	// MaxText bounds every free text in bytes.
	MaxText = 64 << 10
)

// Maintenance types of the S3 Tables API that govern operations.
const (
	TypeCompaction = "icebergCompaction"
	TypeSnapshots  = "icebergSnapshotManagement"
	TypeOrphans    = "icebergUnreferencedFileRemoval"
)
