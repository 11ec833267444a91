package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
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
	layers, err := f.layers(kinds)
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
	asked := kinds
	if kinds == nil {
		kinds = cl.runner.Available(t.Settings)
	}
	doc := planDocument{Table: id.String(), Plans: make([]ops.Plan, 0, len(kinds)), Idle: idle(t.Settings, asked)}
	var failures error
	for _, k := range kinds {
		c.bar.Note("planning " + string(k))
		p, err := cl.runner.Plan(ctx, k, t)
		if err != nil {
			// As in run, the others are not concerned.
			doc.Problems = append(doc.Problems, err.Error())
			failures = errors.Join(failures, err)
			continue
		}
		doc.Plans = append(doc.Plans, p)
	}
	failures = fault.In("table "+id.String(), failures)
	if failures != nil && len(doc.Plans) == 0 {
		return failures
	}
	if file != "" {
		if err := store(file, doc.Plans[0]); err != nil {
			return err
		}
	}
	if err := c.emit(doc, func(w io.Writer) {
		for _, p := range doc.Plans {
			printPlan(w, p)
		}
		printIdle(w, doc.Idle)
	}); err != nil {
		return err
	}
	return failures
}

type planDocument struct {
	Table string     `json:"table"`
	Plans []ops.Plan `json:"plans"`
	// Idle are operations that run would not execute, whatever is planned.
	Idle []idleOperation `json:"idle,omitempty"`
	// Problems are why operations could not be planned.
	Problems []string `json:"problems,omitempty"`
}

// idleOperation is one that does not run, and why.
type idleOperation struct {
	Operation ops.Kind `json:"operation"`
	Reason    string   `json:"reason"`
}

// idle are the operations among kinds, or all that the settings name, that do
// not run.
func idle(s *config.Settings, kinds []ops.Kind) []idleOperation {
	var out []idleOperation
	for _, x := range s.Skipped {
		if kinds == nil || slices.Contains(kinds, x.Operation) {
			out = append(out, idleOperation{x.Operation, fmt.Sprintf("%s (%s)", x.Reason, x.Origin)})
		}
	}
	for _, k := range s.Operations {
		if kinds == nil && !registry().Has(k) {
			out = append(out, idleOperation{k, "it is not available in this version"})
		}
	}
	return out
}

func printIdle(w io.Writer, all []idleOperation) {
	for _, line := range idleLines(all) {
		fmt.Fprintln(w, line)
	}
}

// idleLines are a line for each reason.
func idleLines(all []idleOperation) []string {
	var reasons []string
	names := map[string][]string{}
	for _, x := range all {
		if names[x.Reason] == nil {
			reasons = append(reasons, x.Reason)
		}
		names[x.Reason] = append(names[x.Reason], string(x.Operation))
	}
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = fmt.Sprintf("not run: %s: %s", strings.Join(names[r], ", "), r)
	}
	return out
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
		fmt.Fprintf(w, "  reads %s, writes %s, removes %s of %s\n", ops.Size(e.BytesRead), ops.Size(e.BytesWritten), counted(e.RemovedFiles, "file"), ops.Size(e.RemovedBytes))
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
	layers, err := f.layers(kinds)
	if err != nil {
		return err
	}
	q := worker.Request{Table: id, Layers: layers, Only: kinds, Progress: &c.bar}
	if file != "" {
		if f.where != "" || f.branch != "" {
			return usage(fault.New(fault.Unsupported, "--plan executes what was planned: --where and --branch belong to plan"))
		}
		for name := range layers.Flags {
			if name != "dry_run" {
				return usage(fault.New(fault.Unsupported, "--plan executes what was planned: settings such as "+name+" belong to plan"))
			}
		}
		if q.Plan, err = read(file, kinds, id.String()); err != nil {
			return err
		}
	}
	if dry, _ := strconv.ParseBool(layers.Flags["dry_run"]); dry {
		yes = true // a text that is no bool is refused with the other settings
	}
	if err := c.somebody(yes, "plan"); err != nil {
		return err
	}
	q.Planned = func(p ops.Plan) error { return c.confirm(ctx, p, yes) }
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	results, err := cl.runner.Run(ctx, q)
	if len(results) == 0 && err != nil {
		return ofFlags(err)
	}
	if results == nil {
		results = []ops.Result{}
	}
	if eerr := c.emit(runDocument{Table: id.String(), Results: results}, func(w io.Writer) {
		for _, r := range results {
			printResult(w, r)
		}
		if len(results) == 0 {
			fmt.Fprintf(w, "nothing runs on %s\n", id)
		}
	}); err == nil {
		err = eerr
	}
	if err == nil && q.Plan != nil && !q.Plan.Empty() && overtaken(results) {
		err = fault.New(fault.Stale, "the table has changed, nothing of the plan is left to do")
	}
	return fault.In("table "+id.String(), err)
}

// overtaken reports whether runs found nothing left of what they were to do.
func overtaken(results []ops.Result) bool {
	for _, r := range results {
		if r.Status != ops.NothingToDo || r.Commit == nil {
			return false
		}
	}
	return true
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
	b, err := readFile(file)
	if err != nil {
		return nil, err
	}
	p, err := op.Decode(b)
	if err != nil {
		return nil, usage(fault.WithHint("make the plan anew: seaice plan --out", fault.In(file, err)))
	}
	if got := p.Head().Base.Table.String(); got != table {
		return nil, usage(fault.New(fault.Unsupported, fmt.Sprintf("%s is a plan for table %s, not %s", file, got, table)))
	}
	return p, nil
}

// mostPlan bounds a file that is read whole.
const mostPlan = 1 << 30

func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostPlan+1))
	switch {
	case err != nil:
		return nil, usage(err)
	case len(b) > mostPlan:
		return nil, usage(fault.New(fault.TooLarge, fmt.Sprintf("%s is larger than %s", file, ops.Size(mostPlan))))
	}
	return b, nil
}

// confirm shows a plan that does something and asks, unless told not to.
func (c *cli) confirm(ctx context.Context, p ops.Plan, yes bool) error {
	if p.Empty() || yes {
		return nil
	}
	c.bar.clear()
	printPlan(c.errOut, p)
	return c.ask(ctx, fmt.Sprintf("Execute %s?", p.Head().Operation))
}

func printResult(w io.Writer, r ops.Result) {
	fmt.Fprintln(w, r.Message)
	if r.Status != ops.NothingToDo || r.Commit != nil {
		fmt.Fprintf(w, "  %s", r.Status)
		if r.Status == ops.DryRun {
			fmt.Fprint(w, ", nothing was changed")
		}
		if r.Commit != nil && r.Commit.Attempts > 0 {
			fmt.Fprintf(w, " after %s, run %s", counted(int64(r.Commit.Attempts), "attempt"), r.Run)
		}
		fmt.Fprintln(w)
	}
	if r.Error != "" && !strings.HasSuffix(r.Message, r.Error) {
		fmt.Fprintf(w, "  error: %s\n", r.Error)
	}
	if a := r.Actual; a != nil {
		fmt.Fprintf(w, "  read %s, wrote %s, removed %s of %s\n", ops.Size(a.BytesRead), ops.Size(a.BytesWritten), counted(a.RemovedFiles, "file"), ops.Size(a.RemovedBytes))
	}
	for _, x := range r.Reasons {
		if x.Subject == string(r.Operation) {
			continue // the message says it
		}
		fmt.Fprintf(w, "  left alone: %s (%d): %s\n", x.Subject, x.Count, x.Text)
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", x)
	}
	for _, x := range r.Kept {
		fmt.Fprintf(w, "  kept: %s\n", x)
	}
}
