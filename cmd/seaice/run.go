package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

func (c *cli) planCommand() *cobra.Command {
	var f tableFlags
	var file string
	cmd := &cobra.Command{
		Use:   "plan OPERATION --filer F --table B/NS/T",
		Short: "Show what an operation would do, and why not more",
		Long: `Plan shows what an operation would do to a table, what that would change, and
for everything it leaves alone the reason. It reads and never writes.
OPERATION is a name such as expire_snapshots, or all.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.plan(cmd.Context(), args[0], f, file)
		},
	}
	f.add(cmd)
	f.addSettings(cmd)
	cmd.Flags().StringVar(&file, "out", "", "also store the plan in this file, for run --plan")
	return cmd
}

func (c *cli) plan(ctx context.Context, name string, f tableFlags, file string) error {
	kinds, err := operations(name)
	if err != nil {
		return err
	}
	if file != "" && len(kinds) != 1 {
		return usage(fault.New(fault.Unsupported, "--out stores the plan of one operation"))
	}
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
	if kinds == nil {
		kinds = cl.runner.Available(t.Settings)
	}
	plans := make([]ops.Plan, 0, len(kinds))
	for _, k := range kinds {
		p, err := cl.runner.Plan(ctx, k, t)
		if err != nil {
			return err
		}
		plans = append(plans, p)
	}
	if file != "" {
		if err := store(file, plans[0]); err != nil {
			return err
		}
	}
	return c.emit(planDocument{Table: id.String(), Plans: plans}, func(w io.Writer) {
		for _, p := range plans {
			printPlan(w, p)
		}
	})
}

type planDocument struct {
	Table string     `json:"table"`
	Plans []ops.Plan `json:"plans"`
}

func store(file string, p ops.Plan) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return local(err)
	}
	return local(os.WriteFile(file, append(b, '\n'), 0o600))
}

// printPlan shows a plan to people.
func printPlan(w io.Writer, p ops.Plan) {
	h := p.Head()
	fmt.Fprintf(w, "%s on %s: %s\n", h.Operation, h.Base.Table, p.Summary())
	e := h.Effects
	rows := [][4]string{}
	add := func(what string, before, after int64) {
		if before != 0 || after != 0 {
			rows = append(rows, [4]string{what, fmt.Sprint(before), "->", fmt.Sprint(after)})
		}
	}
	add("snapshots", e.Before.Snapshots, e.After.Snapshots)
	add("manifests", e.Before.Manifests, e.After.Manifests)
	add("data files", e.Before.DataFiles, e.After.DataFiles)
	add("delete files", e.Before.DeleteFiles, e.After.DeleteFiles)
	add("rows", e.Before.Rows, e.After.Rows)
	for _, r := range rows {
		fmt.Fprintf(w, "  %-14s %12s %s %s\n", r[0], r[1], r[2], r[3])
	}
	if !p.Empty() {
		fmt.Fprintf(w, "  reads %s, writes %s, removes %d files of %s\n", size(e.BytesRead), size(e.BytesWritten), e.RemovedFiles, size(e.RemovedBytes))
	}
	for _, r := range h.Reasons {
		fmt.Fprintf(w, "  left alone: %s (%d): %s", r.Subject, r.Count, r.Text)
		if r.Setting != "" {
			fmt.Fprintf(w, " [%s]", r.Setting)
		}
		fmt.Fprintln(w)
	}
}

func (c *cli) runCommand() *cobra.Command {
	var f tableFlags
	var file string
	var yes bool
	cmd := &cobra.Command{
		Use:   "run OPERATION --filer F --table B/NS/T",
		Short: "Plan, show, ask, and execute that same plan",
		Long: `Run plans an operation, shows the plan, asks, and executes that same plan.
With --plan it executes a plan that "plan --out" stored; if the table has changed
so that the plan cannot be carried out any more, it ends with exit code 3.
OPERATION is a name such as expire_snapshots, or all.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.execute(cmd.Context(), args[0], f, file, yes)
		},
	}
	f.add(cmd)
	f.addSettings(cmd)
	cmd.Flags().StringVar(&file, "plan", "", "execute the plan in this file")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.unsafe, "unsafe-age", false, "allow orphan_older_than_hours below 24")
	return cmd
}

func (c *cli) execute(ctx context.Context, name string, f tableFlags, file string, yes bool) error {
	kinds, err := operations(name)
	if err != nil {
		return err
	}
	id, err := f.id()
	if err != nil {
		return err
	}
	layers, err := f.layers()
	if err != nil {
		return err
	}
	q := worker.Request{Table: id, Layers: layers, Only: kinds, Progress: progress{c}}
	if file != "" {
		if q.Plan, err = read(file, kinds, id.String()); err != nil {
			return err
		}
	}
	q.Planned = func(p ops.Plan) error { return c.confirm(p, yes) }
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	results, err := cl.runner.Run(ctx, q)
	if len(results) == 0 {
		return err
	}
	if eerr := c.emit(runDocument{Table: id.String(), Results: results}, func(w io.Writer) {
		for _, r := range results {
			printResult(w, r)
		}
	}); err == nil {
		err = eerr
	}
	return err
}

type runDocument struct {
	Table   string       `json:"table"`
	Results []ops.Result `json:"results"`
}

// read loads a stored plan of the operation for the table.
func read(file string, kinds []ops.Kind, table string) (ops.Plan, error) {
	if len(kinds) != 1 {
		return nil, usage(fault.New(fault.Unsupported, "--plan needs the one operation the plan is of"))
	}
	op, err := registry().Get(kinds[0])
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, usage(err)
	}
	p, err := op.Decode(b)
	if err != nil {
		return nil, fault.In(file, err)
	}
	if got := p.Head().Base.Table.String(); got != table {
		return nil, usage(fault.New(fault.Unsupported, fmt.Sprintf("%s is a plan for table %s, not %s", file, got, table)))
	}
	return p, nil
}

// confirm shows a plan that does something and asks, unless told not to.
func (c *cli) confirm(p ops.Plan, yes bool) error {
	if p.Empty() || yes {
		return nil
	}
	if c.json || !terminal(c.in) {
		return usage(fault.WithHint("add --yes to execute, or use plan to look",
			fault.New(fault.Unsupported, "there is nobody to ask: standard input is no terminal")))
	}
	printPlan(c.errOut, p)
	return c.ask("Execute?")
}

// ask returns nil only for a clear yes.
func (c *cli) ask(question string) error {
	fmt.Fprintf(c.errOut, "%s [y/N] ", question)
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && line == "" {
		return local(err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return fault.New(fault.Canceled, "not executed")
}

func terminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func printResult(w io.Writer, r ops.Result) {
	fmt.Fprintf(w, "%s\n  %s", r.Message, r.Status)
	if r.Commit != nil && r.Commit.Attempts > 0 {
		fmt.Fprintf(w, " after %d attempts, run %s", r.Commit.Attempts, r.Run)
	}
	fmt.Fprintln(w)
	if a := r.Actual; a != nil {
		fmt.Fprintf(w, "  read %s, wrote %s, removed %d files of %s\n", size(a.BytesRead), size(a.BytesWritten), a.RemovedFiles, size(a.RemovedBytes))
	}
	for _, x := range r.Reasons {
		fmt.Fprintf(w, "  left alone: %s (%d): %s\n", x.Subject, x.Count, x.Text)
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", x)
	}
	for _, x := range r.Kept {
		fmt.Fprintf(w, "  kept: %s\n", x)
	}
}

// size renders bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// progress shows notes on a terminal, one line that is replaced.
type progress struct{ c *cli }

func (p progress) Step(what string, done, total int64) {
	p.Note(fmt.Sprintf("%d of %d %s", done, total, what))
}

func (p progress) Note(text string) {
	if f, ok := p.c.errOut.(*os.File); ok && terminal(f) && !p.c.json {
		fmt.Fprintf(f, "\r\x1b[K%s", text)
	}
}
