// Seaice keeps Iceberg tables healthy on SeaweedFS: a maintenance worker for
// the admin server of SeaweedFS and a command line over the same engine.
//
// This package turns flags into calls and results into text or JSON; it decides
// nothing. Each subcommand has a file of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seaice/seaice/internal/clock"
)

func main() {
	// The first signal ends the work in hand in an orderly way; the second one
	// kills the process, because stop restores the default.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	c := newCLI(os.Stdin, os.Stdout, os.Stderr, clock.System())
	os.Exit(c.run(ctx, os.Args[1:]))
}
