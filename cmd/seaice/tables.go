package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// tableRow is one record of the catalog.
type tableRow struct {
	Table     string `json:"table"`
	State     string `json:"state"`
	Version   int    `json:"format-version,omitempty"`
	Snapshots int    `json:"snapshots,omitempty"`
	Manifests int64  `json:"manifests,omitempty"`
	Files     int64  `json:"data-files,omitempty"`
	Deletes   int64  `json:"delete-files,omitempty"`
	Rows      int64  `json:"rows,omitempty"`
	// Work is what each operation would do, with --plan.
	Work []string `json:"work,omitempty"`
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
	for found, err := range iceberg.Discover(ctx, cl.fl, f) {
		if err != nil {
			return err
		}
		row := tableRow{Table: found.ID.String(), State: found.State.String()}
		if err := found.Maintainable(); err != nil {
			row.Why = err.Error()
		} else if err := cl.describe(ctx, found.ID, plan, &row); err != nil {
			if ctx.Err() != nil {
				return err
			}
			row.Why = err.Error()
		}
		rows = append(rows, row)
	}
	return c.emit(struct {
		Tables []tableRow `json:"tables"`
	}{rows}, func(w io.Writer) { printTables(w, rows) })
}

func (cl *cluster) describe(ctx context.Context, id iceberg.TableID, plan bool, row *tableRow) error {
	t, err := cl.runner.Load(ctx, id, config.Layers{})
	if err != nil {
		return err
	}
	m := t.View.Metadata
	row.Version, row.Snapshots = m.FormatVersion, len(m.Snapshots)
	if s := m.Current(); s != nil {
		for mf, err := range manifests.OfSnapshot(ctx, cl.fl, t.View.Locations, s) {
			if err != nil {
				return err
			}
			row.Manifests++
			files, _ := mf.LiveFiles()
			n, _ := mf.LiveRows()
			if mf.Content == manifests.DeleteManifest {
				row.Deletes += files
				continue
			}
			row.Files += files
			row.Rows += n
		}
	}
	if !plan {
		return nil
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
	return nil
}

func printTables(w io.Writer, rows []tableRow) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TABLE\tSTATE\tV\tSNAPSHOTS\tMANIFESTS\tFILES\tDELETES\tROWS\tNOTES")
	for _, r := range rows {
		notes := r.Why
		for i, x := range r.Work {
			if i > 0 {
				notes += "; "
			}
			notes += x
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Table, r.State, r.Version, r.Snapshots, r.Manifests, r.Files, r.Deletes, r.Rows, notes)
	}
	_ = tw.Flush() // the writer below keeps its error
}
