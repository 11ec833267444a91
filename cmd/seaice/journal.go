package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

// journalLine is one run's journal.
type journalLine struct {
	Run     string    `json:"run,omitempty"`
	Table   string    `json:"table,omitempty"`
	Op      string    `json:"operation,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Outcome string    `json:"outcome,omitempty"`
	Opened  time.Time `json:"opened,omitzero"`
	Expires time.Time `json:"lease-until,omitzero"`
	// Problem is what is wrong with a journal that cannot be read; then it is
	// all that is known.
	Problem string `json:"problem,omitempty"`
}

func lineOf(st *journal.State) journalLine {
	return journalLine{
		Run: st.Run(), Table: st.Table().String(), Op: st.Op(), Phase: string(st.Phase()), Outcome: string(st.Outcome()),
		Opened: st.Opened(), Expires: st.Expires(),
	}
}

func (c *cli) journalCommand() *cobra.Command {
	var all bool
	list := &cobra.Command{
		Use: "list --filer F", Short: "List runs that somebody still has to finish", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.journalList(cmd.Context(), all) },
	}
	list.Flags().BoolVar(&all, "all", false, "also runs that are closed")
	var hours string
	var unsafe bool
	resolve := &cobra.Command{
		Use: "resolve [RUN] --filer F", Short: "Bring runs whose lease has run out to their end", Args: cobra.MaximumNArgs(1),
		Long: `Resolve fences the owner of a run that was left open, finds out whether its commit
happened, and moves what it staged and nothing references to the trash once that
is old enough. Without RUN it takes all runs whose lease has run out.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// The bounds are those of the setting of the same name.
			s, err := config.Resolve(config.Layers{Flags: map[string]string{"orphan_older_than_hours": hours}, UnsafeAge: unsafe}, "")
			if err != nil {
				return usage(fault.WithHint("--unsafe-age allows less than 24 hours", err))
			}
			return c.journalResolve(cmd.Context(), args, s)
		},
	}
	resolve.Flags().StringVar(&hours, "orphan-older-than-hours", "72", "how old staged files must be before they go")
	resolve.Flags().BoolVar(&unsafe, "unsafe-age", false, "allow --orphan-older-than-hours below 24")
	return group(&cobra.Command{Use: "journal", Short: "Look at the journals of runs, and bring open ones to their end"}, list, resolve)
}

func (c *cli) journalList(ctx context.Context, all bool) error {
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	lines := []journalLine{}
	for st, err := range cl.runner.Journals().List(ctx) {
		switch {
		case err != nil && !damaged(err):
			return err
		case err != nil:
			lines = append(lines, journalLine{Problem: err.Error()})
		case all || st.Live():
			lines = append(lines, lineOf(st))
		}
	}
	return c.emit(struct {
		Journals []journalLine `json:"journals"`
	}{lines}, func(w io.Writer) {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "RUN\tTABLE\tOPERATION\tPHASE\tOUTCOME\tLEASE UNTIL")
		for _, l := range lines {
			if l.Problem != "" {
				fmt.Fprintf(tw, "damaged: %s\n", l.Problem)
				continue
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Run, l.Table, l.Op, l.Phase, l.Outcome, l.Expires.Format(time.RFC3339))
		}
		_ = tw.Flush() // the writer below keeps its error
	})
}

// damaged: the journal itself is at fault, and not the way to it.
func damaged(err error) bool { return fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported) }

func (c *cli) journalResolve(ctx context.Context, args []string, s *config.Settings) error {
	cl, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	tr, err := trash.New(cl.fl, c.clock, trash.Options{Grace: s.TrashRetention})
	if err != nil {
		return err
	}
	store := cl.runner.Journals()
	var states []*journal.State
	var failures error
	if len(args) == 1 {
		st, err := store.Find(ctx, args[0])
		if err != nil {
			return absent("a run that is closed is listed with --all", err)
		}
		states = append(states, st)
	} else {
		for st, err := range store.List(ctx) {
			switch {
			case err != nil && !damaged(err):
				return err
			case err != nil:
				failures = errors.Join(failures, err) // the others can be resolved all the same
			case st.Live():
				states = append(states, st)
			}
		}
	}
	cm := commit.New(cl.fl, c.clock, commit.Options{})
	results := []journal.Resolution{}
	for _, st := range states {
		res, err := store.Resolve(ctx, st, cm.Resolver(), tr, journal.ResolveOptions{OrphanAge: s.OrphanOlderThan})
		results = append(results, res)
		failures = errors.Join(failures, err)
		if res.Unknown {
			failures = errors.Join(failures, fault.WithHint("see seaice check; nothing was removed, resolve again once the table can be read",
				fault.New(fault.Unknown, fmt.Sprintf("resolve run %s of table %s: %s", st.Run(), st.Table(), res.Why))))
		}
		if ctx.Err() != nil {
			break
		}
	}
	eerr := c.emit(struct {
		Resolved []journal.Resolution `json:"resolved"`
	}{results}, func(w io.Writer) {
		for _, r := range results {
			fmt.Fprintf(w, "%s: %s", r.Run, r.Phase)
			if r.Phase == journal.Open && !r.Until.IsZero() {
				fmt.Fprintf(w, ", its owner's lease lasts until %s: nothing can be done before\n", r.Until.Format(time.RFC3339))
				continue
			}
			if r.Outcome != "" {
				fmt.Fprintf(w, ", %s", r.Outcome)
			}
			if r.Unknown {
				fmt.Fprintf(w, ", unknown: %s", r.Why)
			}
			if !r.Until.IsZero() {
				fmt.Fprintf(w, ", waits until %s", r.Until.Format(time.RFC3339))
			}
			fmt.Fprintf(w, "; %d files to the trash, %d waiting\n", r.Moved, r.Waiting)
		}
		if len(results) == 0 {
			fmt.Fprintln(w, "no run is left to finish")
		}
	})
	if failures == nil {
		failures = eerr
	}
	return failures
}
