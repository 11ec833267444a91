package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Layers are everything that can set values, as read.
type Layers struct {
	// Form is the worker form of the admin, by field name.
	Form map[string]string
	// Rules are those of the form's rules field; see ParseRules.
	Rules []Rule
	// Maintenance is the table's S3 Tables maintenance configuration, or nil.
	Maintenance *MaintenanceConfig
	// Properties are the table's properties.
	Properties map[string]string
	// Flags are the command line's, by setting name. They win over all.
	Flags map[string]string
	// UnsafeAge allows orphan_older_than_hours below its bound.
	UnsafeAge bool
}

// Layer is one value that was given for a setting, used or not.
type Layer struct {
	Origin Origin `json:"origin"`
	// Value is text in the unit of the setting.
	Value string `json:"value"`
}

// ReadForm takes the layers out of the worker form: its fields, and the rules
// in its rules field. It reports every problem of both that does not depend on
// a table, in one error.
func ReadForm(form map[string]string) (Layers, error) {
	l := Layers{Form: form}
	var problems []Problem
	gather := func(err error) {
		var e *Error
		if errors.As(err, &e) {
			problems = append(problems, e.Problems...)
		}
	}
	var err error
	l.Rules, err = ParseRules(form["rules"])
	gather(err)
	_, err = Resolve(l, "")
	gather(err)
	return l, refuse("", problems)
}

// Properties that are obeyed whatever else is set.
const (
	PropertyEnabled = "maintenance.enabled"
	PropertyGC      = "gc.enabled"
)

// Resolve finds the settings that hold for the table "bucket/namespace/table":
// default, form, rules, maintenance configuration, table properties, flags,
// each over the ones before; table_properties_override=false puts the
// maintenance configuration over the table properties. An empty table checks
// the layers that do not depend on one.
//
// The error is of kind Unsupported and wraps *Error, which holds every problem
// of every layer; a value that another layer overrides is checked as well.
func Resolve(l Layers, table string) (*Settings, error) {
	r := &resolver{layers: l, table: table, ruled: ruled(l.Rules, table)}
	if table != "" && !isTable(table) {
		return nil, refuse("", []Problem{{Setting: "table", Value: table, Reason: "must be bucket/namespace/table"}})
	}
	s := r.resolve()
	if err := refuse(table, r.problems); err != nil {
		return nil, err
	}
	return s, nil
}

func isTable(id string) bool {
	parts := strings.Split(id, "/")
	return len(parts) == 3 && !slices.Contains(parts, "")
}

type resolver struct {
	layers   Layers
	table    string
	ruled    map[string]candidate
	problems []Problem
}

// candidate is a text found for a setting.
type candidate struct {
	origin Origin
	at     Place
	text   string
}

func (r *resolver) resolve() *Settings {
	s := &Settings{Table: r.table, GCEnabled: true, layers: map[string][]Layer{}}
	r.checkFlags()
	override := r.propertiesWin()
	for i := range table {
		d := &table[i]
		if d.bind == nil {
			continue
		}
		v, layers := r.pick(d, r.candidates(d, override))
		d.bind(s, v)
		s.layers[d.Name] = layers
	}
	r.checkTogether(s)
	r.chooseOperations(s)
	s.notes = r.notes()
	return s
}

// pick parses all candidates, lowest precedence first; the last good one that
// says something wins. Problems are collected.
func (r *resolver) pick(d *Definition, all []candidate) (value, []Layer) {
	var got value
	var layers []Layer
	for _, c := range all {
		v, said, reason := d.parse(c.text, c.at)
		if reason != "" {
			r.problems = append(r.problems, Problem{Setting: d.Name, Origin: c.origin, Value: c.text, Reason: reason})
			continue
		}
		if !said && c.origin.Source != FromDefault && !r.emptied(d, c) {
			continue
		}
		got = d.full(v)
		layers = append(layers, Layer{Origin: c.origin, Value: d.show(got)})
	}
	return got, layers
}

// emptied: a flag that was given with an empty text clears a text or a list.
func (r *resolver) emptied(d *Definition, c candidate) bool {
	if c.origin.Source != FromFlag || d.Kind != KindText && d.Kind != KindList {
		return false
	}
	text, given := r.layers.Flags[d.Name]
	return given && strings.TrimSpace(text) == ""
}

// propertiesWin resolves the one setting the order of the others depends on.
func (r *resolver) propertiesWin() bool {
	probe := resolver{layers: r.layers, ruled: r.ruled}
	d := find("table_properties_override")
	v, _ := probe.pick(d, probe.candidates(d, true))
	return v.b
}

func (r *resolver) candidates(d *Definition, propertiesWin bool) []candidate {
	home := d.home()
	if d.Name == "orphan_older_than_hours" && r.layers.UnsafeAge {
		home.Min = 1
	}
	out := []candidate{{Origin{Source: FromDefault}, home, d.Default}}
	if d.Has(InForm) && !d.Has(FormOnly) {
		out = append(out, candidate{Origin{Source: FromForm}, home, r.layers.Form[d.Name]})
		if c, ok := r.ruled[d.Name]; ok {
			c.at = home
			out = append(out, c)
		}
	}
	maintenance, property := r.tableCandidates(d)
	if propertiesWin {
		out = append(append(out, maintenance...), property...)
	} else {
		out = append(append(out, property...), maintenance...)
	}
	return append(out, candidate{Origin{Source: FromFlag}, home, r.layers.Flags[d.Name]})
}

func (r *resolver) tableCandidates(d *Definition) (maintenance, property []candidate) {
	if text, origin := r.layers.Maintenance.value(d.Maintenance); text != "" {
		maintenance = append(maintenance, candidate{origin, *d.Maintenance, text})
	}
	for _, p := range d.Properties {
		if text, ok := r.layers.Properties[p.Name]; ok {
			property = append(property, candidate{Origin{Source: FromProperty, Name: p.Name}, p, text})
			break
		}
	}
	return maintenance, property
}

// ruled is what the rules say for the table: of the matching ones the first
// that names a setting decides it.
func ruled(rules []Rule, table string) map[string]candidate {
	out := map[string]candidate{}
	if table == "" {
		return out
	}
	for _, rule := range rules {
		if !rule.Pattern.Matches(table) {
			continue
		}
		for _, a := range rule.Assign {
			if _, earlier := out[a.Setting]; !earlier {
				out[a.Setting] = candidate{origin: Origin{Source: FromRule, Name: fmt.Sprintf("line %d", rule.Line)}, text: a.Value}
			}
		}
	}
	return out
}

// checkFlags refuses flags that no setting has; unlike forms and properties
// they are typed by a person for this run.
func (r *resolver) checkFlags() {
	for _, name := range sortedKeys(r.layers.Flags) {
		d := find(name)
		switch {
		case d == nil:
			r.add(name, Origin{Source: FromFlag}, r.layers.Flags[name], "is no setting"+nearest(name))
		case d.bind == nil || d.Has(FormOnly):
			r.add(name, Origin{Source: FromFlag}, r.layers.Flags[name], "cannot be set on the command line for a table")
		}
	}
}

func (r *resolver) add(setting string, o Origin, text, reason string) {
	r.problems = append(r.problems, Problem{Setting: setting, Origin: o, Value: text, Reason: reason})
}

// origin is where the value in force of a setting came from.
func (s *Settings) origin(setting string) Origin {
	l := s.layers[setting]
	if len(l) == 0 {
		return Origin{}
	}
	return l[len(l)-1].Origin
}

// text is the value in force of a setting.
func (s *Settings) text(setting string) string {
	l := s.layers[setting]
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1].Value
}

// checkTogether refuses values that are good alone and not together.
func (r *resolver) checkTogether(s *Settings) {
	bad := func(setting, reason string) { r.add(setting, s.origin(setting), s.text(setting), reason) }
	dedup := slices.Contains(s.asked.Operations, Deduplicate)
	if dedup && s.origin("operations").Source != FromFlag {
		bad("operations", "names deduplicate, which can only be asked for on the command line")
	}
	if dedup && len(s.Keys) == 0 {
		bad("keys", "is needed by deduplicate: the columns whose equal values make two rows the same")
	}
	if !dedup {
		for _, name := range []string{"keys", "order_by", "full_repartition"} {
			if s.origin(name).Source == FromFlag {
				bad(name, "is only for the operation deduplicate")
			}
		}
		if s.Verify == VerifyKeys {
			bad("verify", "keys is only for the operation deduplicate; allowed are content, counts, rows")
		}
	}
	if s.Where == "" || s.asked.All {
		return
	}
	for _, op := range s.asked.Operations {
		if op.Removes() {
			bad("where", fmt.Sprintf("cannot restrict %s, which operations names; leave out one of the two", op))
		}
	}
}

// chooseOperations splits what was asked for into what runs and what does not.
func (r *resolver) chooseOperations(s *Settings) {
	s.AllOperations = s.asked.All
	enabled := r.switchProperty(PropertyEnabled)
	s.GCEnabled = r.switchProperty(PropertyGC)
	for _, op := range s.asked.Operations {
		reason, origin := "", Origin{}
		switch {
		case !enabled:
			reason, origin = "the table has "+PropertyEnabled+"=false", Origin{Source: FromProperty, Name: PropertyEnabled}
		case r.layers.Maintenance.Disabled(op):
			kind := op.maintenanceType()
			reason = kind + " is disabled in the maintenance configuration"
			origin = Origin{Source: FromMaintenance, Name: kind + " of the " + r.layers.Maintenance.types[kind].level}
		case op.Removes() && !s.GCEnabled:
			reason, origin = "the table has "+PropertyGC+"=false", Origin{Source: FromProperty, Name: PropertyGC}
		case op.Removes() && s.Where != "":
			reason, origin = "where restricts the run to some partitions", s.origin("where")
		}
		if reason == "" {
			s.Operations = append(s.Operations, op)
			continue
		}
		s.Skipped = append(s.Skipped, Skip{Operation: op, Reason: reason, Origin: origin})
	}
}

// switchProperty reads a property that is true unless it says false.
func (r *resolver) switchProperty(name string) bool {
	raw, ok := r.layers.Properties[name]
	if !ok || strings.TrimSpace(raw) == "" {
		return true
	}
	b, reason := parseBool(strings.TrimSpace(raw))
	if reason != "" {
		r.add(name, Origin{Source: FromProperty, Name: name}, raw, reason)
	}
	return b
}

// notes lists what was read and belongs to no setting.
func (r *resolver) notes() []string {
	var out []string
	for _, name := range sortedKeys(r.layers.Form) {
		if d := find(name); d == nil || !d.Has(InForm) && d.tie == nil {
			out = append(out, fmt.Sprintf("the form has a field %q that no setting has", clip(name)))
		}
	}
	known := map[string]bool{PropertyEnabled: true}
	for i := range table {
		for _, p := range table[i].Properties {
			known[p.Name] = true
		}
	}
	for _, name := range sortedKeys(r.layers.Properties) {
		if strings.HasPrefix(name, "maintenance.") && !known[name] {
			out = append(out, fmt.Sprintf("the table property %q is no setting", clip(name)))
		}
	}
	return out
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Defaults are the settings nothing was set for.
func Defaults() *Settings {
	s, err := Resolve(Layers{}, "")
	if err != nil {
		// The table of definitions contradicts itself; a test would have failed.
		panic(fmt.Sprintf("the defaults are no valid settings: %v", err))
	}
	return s
}
