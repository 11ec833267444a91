package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
)

// cli is what the subcommands share: where they read and write, the clock, and
// the flags that every one of them has.
type cli struct {
	in     io.Reader
	out    io.Writer
	errOut io.Writer
	clock  clock.Clock

	filers   []string
	security string
	json     bool

	// started is set once a subcommand runs; an error before that is one of
	// usage. emitted is set once the one JSON document was written.
	started, emitted bool

	// attended: somebody sits at the input and can be asked.
	attended bool
	answers  *bufio.Reader
	bar      bar

	// opened, if set, is used instead of the filers the flags name.
	opened filer.Filer

	// extra are further subcommands, which tests add.
	extra []*cobra.Command
}

func newCLI(in io.Reader, out, errOut io.Writer, c clock.Clock) *cli {
	cl := &cli{in: in, out: out, errOut: errOut, clock: c, attended: terminal(in)}
	if terminal(errOut) {
		cl.bar.w = errOut
	}
	return cl
}

// subcommands are in the order in which help shows them. A new subcommand is a
// file with a constructor, and a line here.
func (c *cli) subcommands() []*cobra.Command {
	return []*cobra.Command{
		c.workerCommand(),
		c.tablesCommand(),
		c.planCommand(),
		c.runCommand(),
		c.explainCommand(),
		c.trashCommand(),
		c.journalCommand(),
		c.checkCommand(),
		c.configCommand(),
		c.versionCommand(),
	}
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "seaice",
		Short: "Keep Iceberg tables healthy on SeaweedFS",
		Long: `Seaice maintains Iceberg tables that SeaweedFS stores.

Exit codes: 0 done or nothing to do, 1 error, 2 usage, 3 stale (plan again),
4 unsupported table, 5 corrupt table, 6 outcome unknown (look before running again).`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	info, _ := debug.ReadBuildInfo()
	root.Version = orUnknown(versionsOf(buildVersion, buildRevision, info).Version)
	flags := root.PersistentFlags()
	flags.StringArrayVar(&c.filers, "filer", nil, "filer as host:port or host:port.grpcPort; repeat for failover")
	flags.StringVar(&c.security, "security", "", "file with TLS and JWT settings (default: security.toml where weed looks for it)")
	flags.BoolVar(&c.json, "json", false, "print one JSON document")
	group(root, c.subcommands()...)
	root.AddCommand(c.extra...)
	c.markStarted(root)
	return root
}

// group puts commands below cmd, which by itself shows help. A name that is not
// one of them is an error of usage; cobra would show help and end well.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return local(cmd.Help())
		}
		return usage(unknownCommand(cmd, args[0]))
	}
	cmd.AddCommand(below...)
	return cmd
}

// markStarted makes every command below cmd note that the command line was in
// order when it ran.
func (c *cli) markStarted(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.started = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		c.markStarted(sub)
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	msg := fmt.Sprintf("unknown command %q", name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fault.WithHint("see "+cmd.CommandPath()+" --help", fault.New(fault.Unsupported, msg))
}

// run executes one command line and returns the exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if !c.started {
		err = usage(err)
	}
	c.explain(err)
	return exitCode(err)
}

// explain tells the person, and the program that reads the JSON, what went
// wrong. Nothing can be done about output that cannot be written.
func (c *cli) explain(err error) {
	c.bar.clear()
	fmt.Fprintln(c.errOut, "seaice: "+fault.Message(err))
	if c.json && !c.emitted {
		_ = c.emit(failure{Error: err.Error(), Kind: fault.Of(err), Hints: fault.Hints(err), ExitCode: exitCode(err)}, nil)
	}
}
