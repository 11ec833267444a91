package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/plugin"
	"github.com/seaice/seaice/worker"
)

// readHeaderTimeout ends connections that never ask for anything.
const readHeaderTimeout = 10 * time.Second

type workerFlags struct {
	admin, id, metrics, pools, format string
	debug                             bool
}

func (c *cli) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker --admin HOST:PORT",
		Short: "Run as the maintenance worker of weed admin, instead of the built-in one",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.worker(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.admin, "admin", "", "the admin as host:port, as weed worker takes it")
	_ = cmd.MarkFlagRequired("admin") // the flag is there
	cmd.Flags().StringVar(&f.id, "id", "", "the worker's name, the same over restarts (default from the host's name)")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "serve /metrics, /health and /ready at this address")
	cmd.Flags().StringVar(&f.pools, "pools", "", "how many tables are worked on at once, as metadata=2,light=2,heavy=1")
	cmd.Flags().StringVar(&f.format, "log", "text", "log as text or json")
	cmd.Flags().BoolVar(&f.debug, "debug", false, "log decisions too")
	return cmd
}

func (c *cli) worker(ctx context.Context, f workerFlags) error {
	log, err := c.logger(f)
	if err != nil {
		return err
	}
	flags := map[string]string{}
	if f.pools != "" {
		flags["pools"] = f.pools
	}
	scope, err := config.ResolveScope(nil, flags)
	if err != nil {
		return usage(err)
	}
	slots := int64(0)
	for _, n := range scope.Pools {
		slots += n
	}
	info, _ := debug.ReadBuildInfo()
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	events := worker.Listeners(worker.Logged(log), worker.Measured(reg))
	engine := &engine{clock: c.clock, security: c.security, events: events, open: map[string]*opened{}}
	defer engine.close()
	client, err := plugin.New(plugin.Options{
		Admin: f.admin, ID: f.id, Clock: c.clock, Version: versionsOf(buildVersion, buildRevision, info).Version,
		Handler:        &plugin.Maintenance{Engine: engine, Filers: c.filers, Log: log},
		ExecutionSlots: int(slots), Security: c.security, Log: log,
	})
	switch {
	case fault.Is(err, fault.Unsupported):
		return usage(err) // the address, or the security file
	case err != nil:
		return err
	}
	stop, err := serve(f.metrics, reg, client, log)
	if err != nil {
		return err
	}
	defer stop()
	log.Info("worker starts", "admin", f.admin, "id", client.ID())
	return client.Run(ctx)
}

func (c *cli) logger(f workerFlags) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.debug {
		o.Level = slog.LevelDebug
	}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(c.errOut, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.errOut, o)), nil
	}
	return nil, usage(fault.New(fault.Unsupported, fmt.Sprintf("--log %q is neither text nor json", f.format)))
}

// engine keeps one open filer for each set of addresses the admin has named.
type engine struct {
	clock    clock.Clock
	security string
	events   worker.Events

	mu   sync.Mutex
	open map[string]*opened
}

type opened struct {
	fl *filer.Client
	cl *cluster
}

// Open implements plugin.Engine.
func (e *engine) Open(ctx context.Context, filers []string) (filer.Filer, *worker.Runner, error) {
	sorted := slices.Sorted(slices.Values(filers))
	key := strings.Join(sorted, ",")
	e.mu.Lock()
	defer e.mu.Unlock()
	o, ok := e.open[key]
	if !ok {
		fl, err := filer.Dial(ctx, filer.Config{Addresses: sorted, Security: e.security, Clock: e.clock})
		if err != nil {
			return nil, nil, err
		}
		o = &opened{fl: fl, cl: newCluster(fl, e.clock, e.events)}
		e.open[key] = o
	}
	return o.fl, o.cl.runner, nil
}

func (e *engine) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range e.open {
		_ = o.fl.Close() // the process ends
	}
}

// serve answers metrics and health. Ready says why not.
func serve(addr string, reg *prometheus.Registry, client *plugin.Client, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, local(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		s := client.Status()
		if !s.Connected {
			why := "no answer yet"
			if s.Err != nil {
				why = s.Err.Error()
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "not connected to the admin: %s\n", why)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics server ended", "error", err)
		}
	}()
	log.Info("metrics are served", "address", l.Addr().String())
	return func() { _ = srv.Close() }, nil // the process ends
}
