package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	builtin "github.com/seaweedfs/seaweedfs/weed/worker/tasks/iceberg"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// The works that compact a table in a process of their own; args are the
// filer's addresses, security.toml and the table.
const (
	compactOurs    = "compact_ours"
	compactBuiltin = "compact_builtin"
	// idleOurs and idleBuiltin open the same connections and do nothing.
	idleOurs    = "idle_ours"
	idleBuiltin = "idle_builtin"
)

// visitor connects a child to the lake of its parent.
type visitor struct {
	lake
	id iceberg.TableID
}

func visit(ctx context.Context, args []string) (*visitor, error) {
	if len(args) != 4 {
		return nil, fmt.Errorf("want two addresses, a security.toml and a table, got %q", args)
	}
	v := &visitor{}
	var err error
	if v.id, err = iceberg.ParseTableID(args[3]); err != nil {
		return nil, err
	}
	if v.fl, err = filer.Dial(ctx, filer.Config{Addresses: []string{args[0]}, Security: args[2]}); err != nil {
		return nil, err
	}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	const large = 1 << 30
	if v.conn, err = grpc.NewClient(args[1], plain, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(large), grpc.MaxCallSendMsgSize(large))); err != nil {
		return nil, err
	}
	v.builtin = builtin.NewHandler(plain)
	return v, nil
}

func (l *lake) visitorArgs(id iceberg.TableID) []string {
	return []string{l.Filer, l.FilerGRPC, l.Security, id.String()}
}

func childCompactsOurs(ctx context.Context, args []string) error {
	v, err := visit(ctx, args)
	if err != nil {
		return err
	}
	_, err = v.run(ctx, v.id, config.Compact)
	return err
}

func childCompactsBuiltin(ctx context.Context, args []string) error {
	v, err := visit(ctx, args)
	if err != nil {
		return err
	}
	return builtinCompact(ctx, &v.lake, v.id)
}

func childIdles(ctx context.Context, args []string) error {
	v, err := visit(ctx, args)
	if err != nil {
		return err
	}
	_, err = v.fl.Clock(ctx)
	return err
}

// inChild compacts a fresh table in a child and returns what figure makes of
// what that used.
func (a *arena) inChild(name string, figure func(u harness.Usage) float64) harness.Side {
	return func(ctx context.Context) (float64, error) {
		id, err := a.cook(ctx, a.recipe)
		if err != nil {
			return 0, fmt.Errorf("make table: %w", err)
		}
		u, err := harness.InChild(ctx, name, a.visitorArgs(id)...)
		if err != nil {
			return 0, err
		}
		if err := a.merged(ctx, id, a.recipe); err != nil {
			return 0, err
		}
		return figure(u), a.drop(ctx, id)
	}
}

// cpuAppend is the CPU time of the whole process for a GB of data files.
func cpuAppend() harness.Bench {
	return costOf("cpu_append", "s/GB", distinct(dataFiles, dataRows), appended, func(a *arena, _ harness.Usage) func(harness.Usage) float64 {
		return func(u harness.Usage) float64 { return u.CPUSeconds / (float64(a.stored.bytes) / 1e9) }
	})
}

// peakMemory is the most memory that compaction needs beyond an idle process.
func peakMemory(name string, s shape, table func(ctx context.Context, l *lake, s *stored) (*recipe, error)) harness.Bench {
	return costOf("peak_memory_"+name, "MB", s, table, func(_ *arena, idle harness.Usage) func(harness.Usage) float64 {
		return func(u harness.Usage) float64 { return float64(u.PeakBytes-idle.PeakBytes) / megabyte }
	})
}

func costOf(name, unit string, s shape, table func(ctx context.Context, l *lake, s *stored) (*recipe, error),
	figure func(a *arena, idle harness.Usage) func(harness.Usage) float64,
) harness.Bench {
	return harness.Bench{Name: name, Unit: unit, Better: harness.Lower, Runs: 3, Prepare: func(ctx context.Context) (*harness.Contest, error) {
		l, err := openLake(ctx)
		if err != nil {
			return nil, err
		}
		contest, err := l.costs(ctx, s, table, figure)
		if err != nil {
			l.close()
		}
		return contest, err
	}}
}

func (l *lake) costs(ctx context.Context, s shape, table func(ctx context.Context, l *lake, s *stored) (*recipe, error),
	figure func(a *arena, idle harness.Usage) func(harness.Usage) float64,
) (*harness.Contest, error) {
	a, err := l.fill(ctx, s, table)
	if err != nil {
		return nil, err
	}
	nobody := l.visitorArgs(iceberg.TableID{Bucket: lakeBucket, Namespace: lakeNamespace, Name: "none"})
	ours, err := harness.InChild(ctx, idleOurs, nobody...)
	if err != nil {
		return nil, err
	}
	peer, err := harness.InChild(ctx, idleBuiltin, nobody...)
	if err != nil {
		return nil, err
	}
	return &harness.Contest{
		Ours: a.inChild(compactOurs, figure(a, ours)), Peer: a.inChild(compactBuiltin, figure(a, peer)), Close: l.close,
	}, nil
}

func costs() []harness.Bench {
	return []harness.Bench{
		cpuAppend(),
		peakMemory("append", distinct(8, 4*dataRows), appended),
		peakMemory("posdelete", distinct(8, 4*dataRows), withPositionDeletes),
		peakMemory("wide", wide(8, 500, 2000), appended),
	}
}
