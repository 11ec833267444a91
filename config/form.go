package config

// Form describes one of the admin's forms as data.
type Form struct {
	ID       string
	Title    string
	About    string
	Sections []FormSection
}

// FormSection is a box of fields under one heading.
type FormSection struct {
	ID     string
	Title  string
	About  string
	Fields []Field
}

// Field is one input of a form. Its value is text as the settings read it.
type Field struct {
	Name        string
	Label       string
	Help        string
	Placeholder string
	Kind        Kind
	// Default is the text a new form begins with.
	Default string
	// Min and Max bound whole numbers, in the unit of the label; a ratio is
	// bounded in thousandths. The admin does not enforce them.
	Min, Max int64
	Options  []Option
	// Advanced fields show only while the field AdvancedField is true.
	Advanced bool
}

// AdvancedField is the name of the box that shows the advanced fields.
const AdvancedField = "advanced"

// WorkerForm is the form of the settings of tables. Fields the built-in worker
// has too are never hidden: the admin resets hidden fields to their defaults
// when it saves, and a configuration saved under that worker's form must
// survive the first save under this one.
func WorkerForm() Form {
	return Form{
		ID: "iceberg-maintenance-worker", Title: "Iceberg table maintenance",
		About:    "What is done to every table. Rules, a table's maintenance configuration and its properties override it.",
		Sections: formSections(InForm),
	}
}

// AdminForm is the form of the scope and the resource groups.
func AdminForm() Form {
	return Form{
		ID: "iceberg-maintenance-admin", Title: "Iceberg maintenance scope",
		About:    "Which tables are looked at, and how they share the workers.",
		Sections: formSections(InAdminForm),
	}
}

func formSections(where Where) []FormSection {
	var out []FormSection
	for sec := range sectionCount {
		text := sections[sec]
		box := FormSection{ID: text.id, Title: text.title, About: text.about}
		for i := range table {
			if d := &table[i]; d.Section == sec && d.Has(where) {
				box.Fields = append(box.Fields, d.field())
			}
		}
		if len(box.Fields) > 0 {
			out = append(out, box)
		}
	}
	return out
}

func (d *Definition) field() Field {
	f := Field{
		Name: d.Name, Label: d.Label, Help: d.Help, Placeholder: d.Placeholder, Kind: d.Kind,
		Default: d.Default, Min: d.Min, Max: d.Max, Advanced: d.Advanced,
	}
	for _, o := range d.Options {
		if !o.CommandLineOnly {
			f.Options = append(f.Options, o)
		}
	}
	return f
}

// Flag describes a command line flag that sets one setting.
type Flag struct {
	// Name is the flag without dashes: "dry-run".
	Name string
	// Setting is the key in Layers.Flags, or in the flags of ResolveScope if
	// Worker is true.
	Setting string
	Kind    Kind
	Default string
	Usage   string
	// Worker flags belong to the worker as a whole and not to a table.
	Worker bool
}

// Flags are the settings with a flag of their own. Every setting of the form
// can be given as --set name=value besides.
func Flags() []Flag {
	var out []Flag
	for i := range table {
		if d := &table[i]; d.Has(OwnFlag) {
			out = append(out, Flag{Name: flagName(d.Name), Setting: d.Name, Kind: d.Kind, Default: d.Default, Usage: d.Help, Worker: d.tie != nil})
		}
	}
	return out
}
