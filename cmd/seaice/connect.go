package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
	"github.com/seaice/seaice/ops/expire"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

// registry is every operation this version has.
func registry() *ops.Registry {
	return ops.NewRegistry(compact.New(nil), rewritemanifests.New(), expire.New())
}

// memory keeps the process within the budget of the run at hand.
var memory = limitMemory()

// cluster is an open filer with what works on it.
type cluster struct {
	fl     filer.Filer
	refs   *trash.References
	runner *worker.Runner
}

func newCluster(fl filer.Filer, c clock.Clock, e worker.Events) *cluster {
	refs := trash.NewReferences(fl)
	return &cluster{fl: fl, refs: refs, runner: worker.New(worker.Options{
		Filer: fl, Clock: c, Registry: registry(), Tenancy: refs, Events: e, Memory: memory,
	})}
}

// connect opens the filers named by the flags.
func (c *cli) connect(ctx context.Context) (*cluster, func(), error) {
	if c.opened != nil {
		return newCluster(c.opened, c.clock, worker.Events{}), func() {}, nil
	}
	if len(c.filers) == 0 {
		return nil, nil, usage(fault.WithHint("name a filer: --filer host:port", fault.New(fault.Unsupported, "no filer is named")))
	}
	fl, err := filer.Dial(ctx, filer.Config{Addresses: c.filers, Security: c.security, Clock: c.clock})
	switch {
	case fault.Is(err, fault.Unsupported):
		return nil, nil, usage(err) // an address, or the security file
	case err != nil:
		return nil, nil, err
	}
	return newCluster(fl, c.clock, worker.Events{}), func() { _ = fl.Close() }, nil
}

// tableFlags are the flags of commands about one table.
type tableFlags struct {
	table  string
	set    []string
	where  string
	branch string
	unsafe bool
	// own are the name=value of settings with a flag of their own, as given.
	own func() []string
}

func (f *tableFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.table, "table", "", "the table as bucket/namespace/table")
	_ = cmd.MarkFlagRequired("table") // the flag is there
}

func (f *tableFlags) addSettings(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "a setting as name=value, over everything else; repeat")
	cmd.Flags().StringVar(&f.where, "where", "", "only the partitions that this predicate selects")
	cmd.Flags().StringVar(&f.branch, "branch", "", "the branch to work on (default main)")
	f.own = ownFlags(cmd)
}

// ownFlags adds the flags of the settings that have one. The function returned
// gives those the command line names.
func ownFlags(cmd *cobra.Command) func() []string {
	type given struct {
		flag  config.Flag
		value *string
	}
	var all []given
	for _, d := range config.Flags() {
		if d.Worker {
			continue
		}
		all = append(all, given{d, cmd.Flags().String(d.Name, d.Default, strings.ReplaceAll(d.Usage, "`", ""))})
		if d.Kind == config.KindBool {
			cmd.Flags().Lookup(d.Name).NoOptDefVal = "true"
		}
	}
	return func() []string {
		var out []string
		for _, g := range all {
			if cmd.Flags().Changed(g.flag.Name) {
				out = append(out, g.flag.Setting+"="+*g.value)
			}
		}
		return out
	}
}

// id is the table the flags name.
func (f *tableFlags) id() (iceberg.TableID, error) {
	id, err := iceberg.ParseTableID(f.table)
	return id, usage(err)
}

// layers are the settings the flags give. kinds are the operations they are
// for; none is all that the settings name.
func (f *tableFlags) layers(kinds []ops.Kind) (config.Layers, error) {
	all := slices.Concat(f.set, f.own())
	if f.where != "" {
		all = append(all, "where="+f.where)
	}
	if f.branch != "" {
		all = append(all, "branch="+f.branch)
	}
	flags, err := assignments(all)
	if err != nil {
		return config.Layers{}, usage(err)
	}
	for _, k := range kinds {
		if !k.Removes() {
			continue
		}
		// A person who narrows a removal must not get the whole of it.
		for _, name := range []string{"where", "branch"} {
			if v := flags[name]; v != "" && (name != "branch" || v != "main") {
				return config.Layers{}, usage(fault.WithHint("leave "+name+" out; refs and their own limits decide what is kept",
					fault.New(fault.Unsupported, fmt.Sprintf("%s works on the whole table: %s = %q cannot narrow it", k, name, v))))
			}
		}
	}
	return config.Layers{Flags: flags, UnsafeAge: f.unsafe}, nil
}

// load reads the table. A setting that a flag gives and that cannot be used is
// a mistake in the command line.
func (cl *cluster) load(ctx context.Context, id iceberg.TableID, l config.Layers) (*worker.Target, error) {
	t, err := cl.runner.Load(ctx, id, l)
	return t, ofFlags(err)
}

// ofFlags tells mistakes in the command line from other errors of loading.
func ofFlags(err error) error {
	err = absent("seaice tables lists the tables there are", err)
	e, ok := errors.AsType[*config.Error](err)
	if ok && slices.ContainsFunc(e.Problems, func(p config.Problem) bool { return p.Origin.Source == config.FromFlag }) {
		return usage(err)
	}
	return err
}

// operations are what a command names: one, or all, which is nil.
func operations(name string) (kinds []ops.Kind, err error) {
	set, err := config.ParseOperations(name)
	if err != nil {
		return nil, usage(err)
	}
	if set.All {
		return nil, nil
	}
	if len(set.Operations) != 1 {
		return nil, usage(fault.New(fault.Unsupported, fmt.Sprintf("%q names several operations; name one, or all", name)))
	}
	if k := set.Operations[0]; !registry().Has(k) {
		return nil, usage(fault.New(fault.Unsupported, fmt.Sprintf("operation %s is not available in this version", k)))
	}
	return set.Operations, nil
}
