package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// tableRow is one record of the catalog.
type tableRow struct {
	Table   string `json:"table"`
	State   string `json:"state"`
	Version int    `json:"format-version,omitempty"`
	// The counts of the current snapshot are left out when they are not known.
	Snapshots *int64 `json:"snapshots,omitempty"`
	Manifests *int64 `json:"manifests,omitempty"`
	Files     *int64 `json:"data-files,omitempty"`
	Deletes   *int64 `json:"delete-files,omitempty"`
	Rows      *int64 `json:"rows,omitempty"`
	// Work is what each operation would do, with --plan.
	Work []string `json:"work,omitempty"`
	// Idle are operations that the table's settings keep from running, with
	// --plan.
	Idle []idleOperation `json:"idle,omitempty"`
	// Why says why the table is left alone.
	Why string `json:"why,omitempty"`
}

func (c *cli) tablesCommand() *cobra.Command {
	var bucket, namespace, table string
	var plan bool
	cmd := &cobra.Command{
		Use:   "tables --filer F",
		Short: "List the tables of a cluster and what state they are in",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.tables(cmd.Context(), iceberg.Filter{
				Buckets: iceberg.ParsePatterns(bucket), Namespaces: iceberg.ParsePatterns(namespace), Tables: iceberg.ParsePatterns(table),
			}, plan)
		},
	}
	cmd.Flags().StringVar(&bucket, "bucket", "", "only buckets that match; * and ? are wildcards, commas separate")
	cmd.Flags().StringVar(&namespace, "namespace", "", "only namespaces that match")
	cmd.Flags().StringVar(&table, "name", "", "only tables whose name matches")
	cmd.Flags().BoolVar(&plan, "plan", false, "plan every operation and show the pending work (reads manifests)")
	return cmd
}

func (c *cli) tables(ctx context.Context, f iceberg.Filter, plan bool) error {
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	rows := []tableRow{}
	// What is wrong with one table is in its row. What keeps the listing from
	// being whole also ends the command with an error, once all is shown.
	var failures error
	for found, err := range iceberg.Discover(ctx, cl.fl, f) {
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			failures = errors.Join(failures, err)
			continue
		}
		row := tableRow{Table: found.ID.String(), State: found.State.String()}
		if err := found.Maintainable(); err != nil {
			row.Why = err.Error()
		} else if err := cl.describe(ctx, found.ID, plan, &row); err != nil {
			if ctx.Err() != nil {
				return err
			}
			row.Why = err.Error()
			if fault.Is(err, fault.Transient) || fault.Is(err, fault.Unknown) {
				failures = errors.Join(failures, fault.Wrap(fault.Transient, "read table "+row.Table, err))
			}
		}
		rows = append(rows, row)
	}
	if err := c.emit(struct {
		Tables []tableRow `json:"tables"`
	}{rows}, func(w io.Writer) { printTables(w, rows) }); err != nil {
		return err
	}
	return failures
}

func (cl *cluster) describe(ctx context.Context, id iceberg.TableID, plan bool, row *tableRow) error {
	t, err := cl.runner.Load(ctx, id, config.Layers{})
	if err != nil {
		return err
	}
	m := t.View.Metadata
	snapshots := int64(len(m.Snapshots))
	row.Version, row.Snapshots = m.FormatVersion, &snapshots
	if err := cl.count(ctx, t.View, row); err != nil || !plan {
		return err
	}
	for _, k := range cl.runner.Available(t.Settings) {
		p, err := cl.runner.Plan(ctx, k, t)
		if err != nil {
			return err
		}
		if !p.Empty() {
			row.Work = append(row.Work, fmt.Sprintf("%s: %s", k, p.Summary()))
		}
	}
	for _, x := range t.Settings.Skipped {
		row.Idle = append(row.Idle, idleOperation{x.Operation, fmt.Sprintf("%s (%s)", x.Reason, x.Origin)})
	}
	return nil
}

// count adds up what the manifest list says. Old manifests say less.
func (cl *cluster) count(ctx context.Context, v *iceberg.View, row *tableRow) error {
	var manifestCount, files, deletes, rows int64
	filesKnown, deletesKnown, rowsKnown := true, true, true
	if s := v.Metadata.Current(); s != nil {
		for mf, err := range manifests.OfSnapshot(ctx, cl.fl, v.Locations, s) {
			if err != nil {
				return err
			}
			manifestCount++
			n, ok := mf.LiveFiles()
			if mf.Content == manifests.DeleteManifest {
				deletes, deletesKnown = deletes+n, deletesKnown && ok
				continue
			}
			files, filesKnown = files+n, filesKnown && ok
			n, ok = mf.LiveRows()
			rows, rowsKnown = rows+n, rowsKnown && ok
		}
	}
	row.Manifests = &manifestCount
	for _, x := range []struct {
		to    **int64
		n     *int64
		known bool
	}{{&row.Files, &files, filesKnown}, {&row.Deletes, &deletes, deletesKnown}, {&row.Rows, &rows, rowsKnown}} {
		if x.known {
			*x.to = x.n
		}
	}
	return nil
}

func printTables(w io.Writer, rows []tableRow) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TABLE\tSTATE\tV\tSNAPSHOTS\tMANIFESTS\tFILES\tDELETES\tROWS\tNOTES")
	for _, r := range rows {
		var notes []string
		if r.Why != "" {
			notes = append(notes, r.Why)
		}
		notes = append(notes, r.Work...)
		notes = append(notes, idleLines(r.Idle)...)
		version := int64(r.Version)
		fmt.Fprintf(tw, "%s\t%s", r.Table, r.State)
		for _, n := range []*int64{&version, r.Snapshots, r.Manifests, r.Files, r.Deletes, r.Rows} {
			if n == nil || n == &version && version == 0 {
				fmt.Fprint(tw, "\t-")
				continue
			}
			fmt.Fprintf(tw, "\t%d", *n)
		}
		fmt.Fprintf(tw, "\t%s\n", strings.Join(notes, "; "))
	}
	_ = tw.Flush() // the writer below keeps its error
}
