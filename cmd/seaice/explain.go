package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/ops"
)

// explanation is everything that decides what happens to a table.
type explanation struct {
	Table    string        `json:"table"`
	Metadata string        `json:"metadata-location"`
	Version  int           `json:"format-version"`
	Settings []config.Line `json:"settings"`
	Notes    []string      `json:"notes,omitempty"`
	Refs     []refLine     `json:"refs,omitempty"`
	Journals []journalLine `json:"journals,omitempty"`
	Plans    []ops.Header  `json:"plans"`
	// Idle are operations that do not run, and why.
	Idle []idleOperation `json:"idle,omitempty"`
	// Problems are what could not be read or planned.
	Problems []string `json:"problems,omitempty"`
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
	layers, err := f.layers(nil)
	if err != nil {
		return err
	}
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	t, err := cl.load(ctx, id, layers)
	if err != nil {
		return err
	}
	m := t.View.Metadata
	x := explanation{
		Table: id.String(), Metadata: t.View.MetadataLocation, Version: m.FormatVersion,
		Settings: t.Settings.Explain(), Notes: t.Settings.Notes(), Plans: []ops.Header{},
	}
	for _, name := range m.RefNames() {
		r := m.Refs[name]
		x.Refs = append(x.Refs, refLine{Name: name, Type: string(r.Type), Snapshot: int64(r.SnapshotID)})
	}
	// Who wants to know why nothing happens sees all that can be seen.
	var failures error
	trouble := func(err error) {
		x.Problems = append(x.Problems, err.Error())
		failures = errors.Join(failures, err)
	}
	for st, err := range cl.runner.Journals().OpenRuns(ctx, m.UUID.String()) {
		if err != nil {
			trouble(err)
			continue
		}
		x.Journals = append(x.Journals, lineOf(st))
	}
	for _, k := range cl.runner.Available(t.Settings) {
		p, err := cl.runner.Plan(ctx, k, t)
		if err != nil {
			trouble(err)
			continue
		}
		x.Plans = append(x.Plans, p.Head())
		x.plans = append(x.plans, p)
	}
	x.Idle = idle(t.Settings, nil)
	if err := c.emit(x, x.text); err != nil {
		return err
	}
	return fault.In("table "+id.String(), failures)
}

func (x explanation) text(w io.Writer) {
	fmt.Fprintf(w, "table %s, format version %d\n%s\n\nsettings\n", x.Table, x.Version, x.Metadata)
	for _, l := range x.Settings {
		fmt.Fprintf(w, "  %s\n", l)
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
	printIdle(w, x.Idle)
	for _, p := range x.Problems {
		fmt.Fprintf(w, "problem: %s\n", p)
	}
}
