package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/ops"
)

// explanation is everything that decides what happens to a table.
type explanation struct {
	Table    string        `json:"table"`
	Metadata string        `json:"metadata-location"`
	Version  int           `json:"format-version"`
	Settings []config.Line `json:"settings"`
	Skipped  []config.Skip `json:"skipped,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
	Refs     []refLine     `json:"refs,omitempty"`
	Journals []journalLine `json:"journals,omitempty"`
	Plans    []ops.Header  `json:"plans"`
	plans    []ops.Plan
}

type refLine struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Snapshot int64  `json:"snapshot-id"`
}

func (c *cli) explainCommand() *cobra.Command {
	var f tableFlags
	cmd := &cobra.Command{
		Use:   "explain --filer F --table B/NS/T",
		Short: "Show every setting with its source, refs, open runs, and what would be done or why not",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.explainTable(cmd.Context(), f) },
	}
	f.add(cmd)
	f.addSettings(cmd)
	return cmd
}

func (c *cli) explainTable(ctx context.Context, f tableFlags) error {
	id, err := f.id()
	if err != nil {
		return err
	}
	layers, err := f.layers()
	if err != nil {
		return err
	}
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	t, err := cl.runner.Load(ctx, id, layers)
	if err != nil {
		return err
	}
	m := t.View.Metadata
	x := explanation{
		Table: id.String(), Metadata: t.View.MetadataLocation, Version: m.FormatVersion,
		Settings: t.Settings.Explain(), Skipped: t.Settings.Skipped, Notes: t.Settings.Notes(), Plans: []ops.Header{},
	}
	for _, name := range m.RefNames() {
		r := m.Refs[name]
		x.Refs = append(x.Refs, refLine{Name: name, Type: string(r.Type), Snapshot: int64(r.SnapshotID)})
	}
	for st, err := range cl.runner.Journals().OpenRuns(ctx, m.UUID.String()) {
		if err != nil {
			return err
		}
		x.Journals = append(x.Journals, lineOf(st))
	}
	for _, k := range cl.runner.Available(t.Settings) {
		p, err := cl.runner.Plan(ctx, k, t)
		if err != nil {
			return err
		}
		x.Plans = append(x.Plans, p.Head())
		x.plans = append(x.plans, p)
	}
	return c.emit(x, x.text)
}

func (x explanation) text(w io.Writer) {
	fmt.Fprintf(w, "table %s, format version %d\n%s\n\nsettings\n", x.Table, x.Version, x.Metadata)
	for _, l := range x.Settings {
		fmt.Fprintf(w, "  %s\n", l)
	}
	for _, s := range x.Skipped {
		fmt.Fprintf(w, "  %s does not run: %s (%s)\n", s.Operation, s.Reason, s.Origin)
	}
	for _, n := range x.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	if len(x.Refs) > 0 {
		fmt.Fprintln(w, "\nrefs")
	}
	for _, r := range x.Refs {
		fmt.Fprintf(w, "  %s %s -> %d\n", r.Type, r.Name, r.Snapshot)
	}
	if len(x.Journals) > 0 {
		fmt.Fprintln(w, "\nopen runs")
	}
	for _, j := range x.Journals {
		fmt.Fprintf(w, "  %s %s since %s, lease until %s\n", j.Run, j.Phase, j.Opened.Format(time.RFC3339), j.Expires.Format(time.RFC3339))
	}
	fmt.Fprintln(w, "\nwork")
	for _, p := range x.plans {
		printPlan(w, p)
	}
	for _, k := range config.AllOperations() {
		if !slices.ContainsFunc(x.plans, func(p ops.Plan) bool { return p.Head().Operation == k }) && !registry().Has(k) {
			fmt.Fprintf(w, "%s: not available in this version\n", k)
		}
	}
}
