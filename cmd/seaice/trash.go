package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/trash"
)

type trashFlags struct {
	bucket, run, table string
	paths              []string
	yes                bool
}

func (f *trashFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.bucket, "bucket", "", "the bucket")
	_ = cmd.MarkFlagRequired("bucket") // the flag is there
	cmd.Flags().StringVar(&f.run, "run", "", "only what this run removed")
	cmd.Flags().StringVar(&f.table, "table-uuid", "", "only what belonged to this table")
	cmd.Flags().StringArrayVar(&f.paths, "path", nil, "only what was at, or below, this filer path; repeat")
}

func (f *trashFlags) selection() (trash.Selection, error) {
	s := trash.Selection{Bucket: f.bucket, Run: f.run, Table: f.table}
	for _, p := range f.paths {
		q, err := filer.ParsePath(p)
		if err != nil {
			return s, usage(err)
		}
		s.Paths = append(s.Paths, q)
	}
	return s, nil
}

func (c *cli) trashCommand() *cobra.Command {
	var lf, rf, pf trashFlags
	list := &cobra.Command{
		Use: "list --filer F --bucket B", Short: "List what is in a bucket's trash", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.trashList(cmd.Context(), lf) },
	}
	lf.add(list)
	restore := &cobra.Command{
		Use: "restore --filer F --bucket B [--run R]", Short: "Bring files back to where they were; nothing is overwritten", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.trashRestore(cmd.Context(), rf) },
	}
	rf.add(restore)
	restore.Flags().BoolVar(&rf.yes, "yes", false, "do not ask")
	purge := &cobra.Command{
		Use: "purge --filer F --bucket B", Short: "Delete for good what is past its time and referenced by nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.trashPurge(cmd.Context(), pf) },
	}
	pf.add(purge)
	purge.Flags().BoolVar(&pf.yes, "yes", false, "delete; without it only what is due is shown")
	return group(&cobra.Command{Use: "trash", Short: "List, bring back or purge files that were removed"}, list, restore, purge)
}

// openTrash connects, and makes sure that there is such a bucket: a name that
// is spelled wrong must not look like an empty trash.
func (c *cli) openTrash(ctx context.Context, bucket string) (*cluster, *trash.Trash, func(), error) {
	cl, done, err := c.connect(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if _, err := cl.fl.Stat(ctx, filer.BucketPath(bucket)); err != nil {
		done()
		return nil, nil, nil, absent("seaice tables lists the tables and their buckets", fault.In("look at bucket "+bucket, err))
	}
	tr, err := trash.New(cl.fl, c.clock, trash.Options{Grace: config.Defaults().TrashRetention})
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	return cl, tr, done, nil
}

func (c *cli) items(ctx context.Context, tr *trash.Trash, s trash.Selection, keep func(trash.Item) bool) ([]trash.Item, error) {
	out := []trash.Item{}
	for it, err := range tr.Select(ctx, s) {
		if err != nil {
			return nil, err
		}
		if keep == nil || keep(it) {
			out = append(out, it)
		}
	}
	return out, nil
}

func (c *cli) trashList(ctx context.Context, f trashFlags) error {
	s, err := f.selection()
	if err != nil {
		return err
	}
	_, tr, done, err := c.openTrash(ctx, f.bucket)
	if err != nil {
		return err
	}
	defer done()
	items, err := c.items(ctx, tr, s, nil)
	if err != nil {
		return err
	}
	return c.emitItems(items, "")
}

func (c *cli) emitItems(items []trash.Item, note string) error {
	return c.emit(struct {
		Items []trash.Item `json:"items"`
	}{items}, func(w io.Writer) {
		printItems(w, items)
		fmt.Fprint(w, note)
	})
}

func printItems(w io.Writer, items []trash.Item) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ORIGIN\tSIZE\tRUN\tPURGED AFTER\tREASON")
	var total int64
	for _, it := range items {
		total += it.Bytes
		note := it.Reason
		if it.Problem != "" {
			note = "left to a person: " + it.Problem
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", it.Origin, ops.Size(it.Bytes), it.Run, when(it.PurgeAfter), note)
	}
	_ = tw.Flush() // the writer below keeps its error
	fmt.Fprintf(w, "%s, %s\n", counted(int64(len(items)), "file"), ops.Size(total))
}

func (c *cli) trashRestore(ctx context.Context, f trashFlags) error {
	if err := c.somebody(f.yes, "trash list"); err != nil {
		return err
	}
	s, err := f.selection()
	if err != nil {
		return err
	}
	_, tr, done, err := c.openTrash(ctx, f.bucket)
	if err != nil {
		return err
	}
	defer done()
	items, err := c.items(ctx, tr, s, nil)
	if err != nil {
		return err
	}
	if len(items) == 0 && (f.run != "" || f.table != "" || len(f.paths) > 0) {
		// A name that is spelled wrong must not look like files that are back.
		return local(fault.WithHint("seaice trash list shows what is there", fault.New(fault.Stale, "nothing in the trash of bucket "+f.bucket+" is what was named")))
	}
	if !f.yes && len(items) > 0 {
		c.bar.clear()
		printItems(c.errOut, items)
		if err := c.ask(ctx, fmt.Sprintf("Bring %s back?", counted(int64(len(items)), "file"))); err != nil {
			return err
		}
	}
	rep, err := tr.Restore(ctx, s)
	if n := len(rep.Problems()) - rep.Count(trash.Failed); n > 0 {
		err = errors.Join(err, fault.New(fault.Stale, fmt.Sprintf("%s of bucket %s could not be brought back; the output says why",
			counted(int64(n), "file"), f.bucket)))
	}
	return c.emitReport(rep, err)
}

// when is a time for people; not every item has one.
func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// emitReport shows what became of the files, whatever ended it.
func (c *cli) emitReport(rep trash.Report, ended error) error {
	if rep.Results == nil {
		if ended != nil {
			return ended
		}
		rep.Results = []trash.Result{}
	}
	err := c.emit(rep, func(w io.Writer) {
		for _, p := range rep.Problems() {
			fmt.Fprintf(w, "%s: %s: %s\n", p.Path, p.Outcome, p.Detail)
		}
		for _, o := range []trash.Outcome{trash.Restored, trash.Present, trash.Purged, trash.Gone, trash.Stale, trash.Refused, trash.Kept, trash.Conflict, trash.Failed} {
			if n := rep.Count(o); n > 0 {
				fmt.Fprintf(w, "%s %s\n", counted(int64(n), "file"), o)
			}
		}
		if len(rep.Results) == 0 {
			fmt.Fprintln(w, "nothing to do")
		}
		if rep.Waiting > 0 {
			fmt.Fprintf(w, "%s not due yet\n", counted(int64(rep.Waiting), "file"))
		}
	})
	return errors.Join(ended, rep.Err(), err)
}

func (c *cli) trashPurge(ctx context.Context, f trashFlags) error {
	s, err := f.selection()
	if err != nil {
		return err
	}
	cl, tr, done, err := c.openTrash(ctx, f.bucket)
	if err != nil {
		return err
	}
	defer done()
	now, err := cl.fl.Clock(ctx)
	if err != nil {
		return err
	}
	if !f.yes {
		due, err := c.items(ctx, tr, s, func(it trash.Item) bool {
			return it.Problem == "" && !it.PurgeAfter.IsZero() && it.PurgeAfter.Before(now)
		})
		if err != nil {
			return err
		}
		return c.emitItems(due, "nothing was deleted: add --yes to delete those of them that nothing references\n")
	}
	rep, err := tr.Purge(ctx, s, now, cl.refs)
	return c.emitReport(rep, err)
}
