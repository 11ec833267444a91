package main

import (
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
)

// unknown are the values whose names are no settings: refused on a command line.
func unknown(form map[string]string) map[string]string {
	out := maps.Clone(form)
	for _, d := range config.Definitions() {
		delete(out, d.Name)
	}
	return out
}

func (c *cli) configCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show", Short: "Show every setting with unit, default, bounds and places", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.emit(struct {
				Settings []config.Definition `json:"settings"`
			}{config.Definitions()}, func(w io.Writer) { fmt.Fprint(w, config.Document()) })
		},
	}
	var set []string
	var rules, table string
	validate := &cobra.Command{
		Use: "validate [--set name=value]... [--rules FILE]", Short: "Check values and rules, and name every problem", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			form, err := assignments(set)
			if err != nil {
				return usage(err)
			}
			if rules != "" {
				b, err := readFile(rules)
				if err != nil {
					return err
				}
				if _, twice := form["rules"]; twice {
					return usage(fault.New(fault.Unsupported, "rules are given by --set and by --rules"))
				}
				form["rules"] = string(b)
			}
			layers, err := config.ReadForm(form)
			if err != nil {
				return usage(err)
			}
			layers.Flags = unknown(form) // a form may have what only others know
			s, err := config.Resolve(layers, table)
			if err != nil {
				return usage(err)
			}
			lines := s.Explain()
			return c.emit(struct {
				Settings []config.Line `json:"settings"`
			}{lines}, func(w io.Writer) {
				for _, l := range lines {
					fmt.Fprintln(w, l)
				}
			})
		},
	}
	validate.Flags().StringArrayVar(&set, "set", nil, "a setting as name=value; repeat")
	validate.Flags().StringVar(&rules, "rules", "", "file with rules")
	validate.Flags().StringVar(&table, "table", "", "show what holds for the table bucket/namespace/table")
	return group(&cobra.Command{Use: "config", Short: "Show the settings there are, or check values"}, show, validate)
}
