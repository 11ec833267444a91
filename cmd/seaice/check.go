package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

func (c *cli) checkCommand() *cobra.Command {
	var f tableFlags
	var o check.Options
	var all bool
	cmd := &cobra.Command{
		Use:   "check --filer F --table B/NS/T",
		Short: "Look for what is wrong with a table, without changing anything",
		Long: `Check reads everything a table refers to, from the catalog record to the files, and
reports what contradicts the specification, itself or the files that are there.

The exit code is 0 without errors, whatever the warnings, and 5 with errors. What each
code means is in docs/design/check.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := f.id()
			if err != nil {
				return err
			}
			if !all {
				o.Snapshots = check.HeadOnly
			}
			return c.check(cmd.Context(), id, o)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&o.Deep, "deep", false, "open every live data and delete file as well")
	cmd.Flags().BoolVar(&all, "all-snapshots", true, "check every snapshot; false is the current one alone")
	cmd.Flags().IntVar(&o.MaxFindings, "max-findings", 1000, "list at most so many findings; all are counted")
	return cmd
}

func (c *cli) check(ctx context.Context, id iceberg.TableID, o check.Options) error {
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	rep, err := check.Named(ctx, cl.fl, id, o)
	if err != nil {
		return absent("seaice tables lists the tables there are", err)
	}
	if err := c.emit(rep, func(w io.Writer) { printReport(w, rep) }); err != nil || rep.Clean() {
		return err
	}
	return fault.New(fault.Corrupt, fmt.Sprintf("table %s has %s", id, counted(rep.Errors, "error")))
}

// printReport groups the findings, which are in order, by code.
func printReport(w io.Writer, rep *check.Report) {
	for i, f := range rep.Findings {
		if i == 0 || rep.Findings[i-1].Code != f.Code || rep.Findings[i-1].Severity != f.Severity {
			fmt.Fprintf(w, "%s %s\n", f.Severity, f.Code)
		}
		fmt.Fprintf(w, "  %s: %s\n", f.Subject, f.Text)
		if f.Hint != "" && (i == len(rep.Findings)-1 || rep.Findings[i+1].Hint != f.Hint) {
			fmt.Fprintf(w, "  hint: %s\n", f.Hint)
		}
	}
	if rep.Omitted > 0 {
		fmt.Fprintf(w, "%s left out; see --max-findings\n", counted(rep.Omitted, "finding"))
	}
	s := rep.Stats
	fmt.Fprintf(w, "%s: %s, %s, %s in %s, %s, %s of %d bytes\n", rep.Table,
		counted(rep.Errors, "error"), counted(rep.Warnings, "warning"), counted(rep.Notes, "note"),
		counted(s.Snapshots, "snapshot"), counted(s.Manifests, "manifest"), counted(s.Files, "file"), s.Bytes)
}

// counted is a number with its word.
func counted(n int64, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}
