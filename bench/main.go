// Bench runs side-by-side benchmarks and prints a line for each; see package
// harness for its form, and docs/benchmarks.md for the last full run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seaice/seaice/bench/harness"
)

// benches are all comparisons in the order in which they run. A new one is a
// file with a function that returns it, and a line here.
func benches() []harness.Bench {
	all := []harness.Bench{
		manifestReadFull(),
		manifestReadProjected(),
		peakMemoryManifestStream(),
		expireShared("expire_shared_100", 100, true),
		expireShared("expire_shared_1k", 1000, true),
		expireShared("expire_shared_10k", 10_000, false),
		rewriteManifestsBench(),
	}
	for _, c := range compactions(dataFiles, dataRows) {
		all = append(all, c.bench())
	}
	all = append(all,
		engineBench("engine_append", distinct(dataFiles, dataRows)),
		engineBench("engine_repeating", repeating(dataFiles, dataRows)))
	all = append(all, costs()...)
	for _, r := range rivals {
		all = append(all, contended(r.name, distinct(dataFiles, dataRows), r.rival))
	}
	all = append(all, sizes()...)
	return append(all, readback()...)
}

// children are the works that run in processes of their own.
var children = harness.Children{
	streamOurs: streamManifestOurs,
	streamPeer: streamManifestPeer,

	compactOurs:    childCompactsOurs,
	compactBuiltin: childCompactsBuiltin,
	idleOurs:       childIdles,
	idleBuiltin:    childIdles,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	children.Main(ctx)

	names := flag.String("run", "", "benches to run, separated by commas; empty is all")
	list := flag.Bool("list", false, "list the benches and do not run them")
	flag.Parse()
	chosen, err := harness.Select(benches(), *names)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if *list {
		for _, b := range chosen {
			fmt.Println(b.Name)
		}
		return
	}
	if err := errors.Join(harness.RunAll(ctx, os.Stdout, chosen), data.remove()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
