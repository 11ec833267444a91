package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/expire"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

// registry is every operation this version has.
func registry() *ops.Registry {
	return ops.NewRegistry(rewritemanifests.New(), expire.New())
}

// cluster is an open filer with what works on it.
type cluster struct {
	fl     filer.Filer
	refs   *trash.References
	runner *worker.Runner
}

func newCluster(fl filer.Filer, c clock.Clock, e worker.Events) *cluster {
	refs := trash.NewReferences(fl)
	return &cluster{fl: fl, refs: refs, runner: worker.New(worker.Options{
		Filer: fl, Clock: c, Registry: registry(), Tenancy: refs, Events: e,
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
	if err != nil {
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
}

func (f *tableFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.table, "table", "", "the table as bucket/namespace/table")
	_ = cmd.MarkFlagRequired("table") // the flag is there
}

func (f *tableFlags) addSettings(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "a setting as name=value, over everything else; repeat")
	cmd.Flags().StringVar(&f.where, "where", "", "only the partitions that this predicate selects")
	cmd.Flags().StringVar(&f.branch, "branch", "", "the branch to work on (default main)")
}

// id is the table the flags name.
func (f *tableFlags) id() (iceberg.TableID, error) {
	id, err := iceberg.ParseTableID(f.table)
	return id, usage(err)
}

// layers are the settings the flags give.
func (f *tableFlags) layers() (config.Layers, error) {
	flags, err := assignments(f.set)
	if err != nil {
		return config.Layers{}, usage(err)
	}
	if f.where != "" {
		flags["where"] = f.where
	}
	if f.branch != "" {
		flags["branch"] = f.branch
	}
	return config.Layers{Flags: flags, UnsafeAge: f.unsafe}, nil
}

// operations are what a command names: one, or all.
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
	return set.Operations, nil
}
