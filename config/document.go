package config

import (
	"fmt"
	"strings"
)

// Document is docs/settings.md.
func Document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	for sec := range sectionCount {
		text := sections[sec]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", text.title, text.about)
		b.WriteString("| setting | default | allowed | where | property or maintenance field | meaning |\n|---|---|---|---|---|---|\n")
		for i := range table {
			if d := &table[i]; d.Section == sec {
				b.WriteString(d.row())
			}
		}
	}
	b.WriteString(documentTail)
	return b.String()
}

const documentHead = `# Settings

This page is generated from the table in config/table.go; see the end of the page.

For each table a value is looked for in this order, later ones over earlier ones: default, form, rules, S3 Tables
maintenance configuration, table properties, command line. With table_properties_override=false the maintenance
configuration wins over the table properties. A maintenance type disabled there stays disabled. The table properties
maintenance.enabled=false (nothing runs) and gc.enabled=false (nothing is removed) are obeyed whatever else is set.
` + "`seaice explain`" + ` shows the value that holds for a table, where it came from and what it overrode.

An empty value says nothing and leaves it to the layers before; so does 0 where the range says so, and 0 in a table
property. Everything else out of range is refused, with all problems in one message. A bad table property or maintenance
configuration stops the maintenance of that table only. Sizes in MB are MiB.

Where: F worker form, rules and --set; W worker form and --set, for the whole worker; A the admin's own form; C a flag of its own. A star marks fields
behind the form's advanced box: the admin returns hidden fields to their defaults whenever the form is saved. New marks
settings the built-in worker does not have.
`

const documentTail = `
## Rules

The rules field holds one rule a line: a pattern bucket/namespace/table, then setting=value pairs.

    # comment
    lake/sales/*      target_file_size_mb=512 rewrite_strategy=sort
    lake/*/events_??  sort_order="ts DESC, id" operations=compact,expire_snapshots
    */*/*             max_delete_percent=10

In each part of the pattern * stands for any characters and ? for one. For each setting the first matching rule that
names it decides. A value with white space, a quote or # stands in double quotes, in which \" and \\ are read.

## Maintenance configuration

icebergCompaction governs compact, rewrite_position_delete_files, rewrite_manifests and deduplicate;
icebergSnapshotManagement governs expire_snapshots; icebergUnreferencedFileRemoval governs remove_orphans. Its two
fields are used apart: unreferencedDays is the age at which an unreferenced file goes to the trash, nonCurrentDays is how
long it stays there. Values of a disabled type are not used.

## This page

` + "`SEAICE_GOLDEN=rewrite go test ./config`" + ` writes it anew; without the variable the test fails when page and table differ.
`

func (d *Definition) row() string {
	name := "`" + d.Name + "`"
	if d.Advanced {
		name += " *"
	}
	if d.New {
		name += " (new)"
	}
	def := d.Default
	if def == "" {
		def = "empty"
	} else if d.Unit != UnitNone {
		def += " " + string(d.Unit)
	}
	cells := []string{name, def, d.allowedText(), d.whereText(), d.placesText(), d.Help}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func (d *Definition) allowedText() string {
	switch d.Kind {
	case KindInt, KindSize, KindSpan:
		return d.allowed(d.home())
	case KindRatio:
		return fmt.Sprintf("%g to %g", float64(d.Min)/1000, float64(d.Max)/1000)
	case KindBool:
		return "true, false"
	case KindEnum:
		names := make([]string, len(d.Options))
		for i, o := range d.Options {
			names[i] = o.Value
		}
		return strings.Join(names, ", ")
	case KindPools:
		return "pool=" + d.allowed(d.home())
	default:
		return d.Kind.String()
	}
}

func (d *Definition) whereText() string {
	var out []string
	switch {
	case d.Has(InForm | WorkerWide):
		out = append(out, "W")
	case d.Has(InForm):
		out = append(out, "F")
	}
	if d.Has(InAdminForm) {
		out = append(out, "A")
	}
	if d.Has(OwnFlag) {
		out = append(out, "C --"+flagName(d.Name))
	}
	return strings.Join(out, ", ")
}

func (d *Definition) placesText() string {
	var out []string
	for _, p := range d.Properties {
		out = append(out, placeText(p))
	}
	if d.Maintenance != nil {
		out = append(out, placeText(*d.Maintenance))
	}
	return strings.Join(out, ", ")
}

func placeText(p Place) string {
	name := p.Name
	if p.Type != "" {
		name = p.Type + "." + p.Name
	}
	if p.Unit == UnitNone {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, p.Unit)
}

// flagName is the command line's spelling of a setting.
func flagName(setting string) string { return strings.ReplaceAll(setting, "_", "-") }
